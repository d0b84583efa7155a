"""Rows of a topic read by a consumer, without a topology: for pull queries on streams."""

from collections.abc import Callable, Iterator
from typing import cast

from broker.client.api import ConsumerRecord
from broker.client.opening import Target, consumer
from broker.errors import MillstreamError
from broker.model import TopicPartition
from broker.serde.registry.api import SchemaRegistry
from sql.backends.native.row_times import time_reader
from sql.backends.native.rows import key_serde, value_serde
from sql.errors import StatementFailed
from sql.plan import Scan
from sql.rows.row_format import Row
from sql.schema import HeaderColumn
from streams.record import Windowed

POLL_MS = 50
POLL_RECORDS = 1_000
SILENT_POLLS_MAX = 600


def records_to_end(target: Target, topic: str) -> Iterator[ConsumerRecord]:
    """The committed records of a topic, up to its current end."""
    with consumer(target, client_id="millstream-sql", isolation_level="read_committed") as reader:
        places = [TopicPartition(topic, number) for number in reader.partitions_for(topic)]
        reader.assign(places)
        ends = reader.end_offsets(places)
        reader.seek_to_beginning(places)
        left = {place for place in places if reader.position(place) < ends[place]}
        silent = 0
        while left:
            records = reader.poll(POLL_MS, max_records=POLL_RECORDS)
            silent = 0 if records else silent + 1
            if silent > SILENT_POLLS_MAX:
                raise StatementFailed(f"timed out reading topic {topic} to its end")
            for record in records:
                if record.offset < ends[TopicPartition(topic, record.partition)]:
                    yield record
            # Markers of transactions advance the position without returning a record.
            left = {place for place in left if reader.position(place) < ends[place]}


def row_reader(
    scan: Scan, registry: SchemaRegistry | None
) -> Callable[[ConsumerRecord], Row | None]:
    """A function from records to rows of a Scan; None for unreadable records, and without a row."""
    key = key_serde(scan.key_format, scan.shape.key, registry, scan.shape.window)
    value = value_serde(scan.value_format, scan.value, registry)
    headers = [_header(each) for each in scan.headers]
    no_key: Row = (None,) * len(scan.shape.key)
    columns = (*scan.value, *scan.shape.key)
    time_of = None if scan.timestamp is None else time_reader(scan.timestamp, columns)

    def read(record: ConsumerRecord) -> Row | None:
        try:
            found_key = key.deserialize(record.topic, record.key)
            values = value.deserialize(record.topic, record.value)
        except MillstreamError:
            return None
        if values is None:
            return None
        window: Row = ()
        if scan.shape.window is not None:
            window = (None, None)
            if isinstance(found_key, Windowed):
                found_key, *bounds = found_key
                window = tuple(bounds)
        key_row = no_key if found_key is None else cast("Row", found_key)
        timestamp_ms = record.timestamp_ms
        if time_of is not None:
            try:
                timestamp_ms = time_of((*values, *key_row))
            except Exception:  # a string that is not a valid time may raise anything
                return None
        place = (timestamp_ms, record.partition, record.offset)
        found = (each(record.headers) for each in headers)
        return (*values, *found, *place, *window, *key_row)

    return read


def _header(column: HeaderColumn) -> Callable[[tuple[tuple[str, bytes | None], ...]], object]:
    wanted = column.key
    if wanted is None:
        return lambda headers: [{"KEY": key, "VALUE": value} for key, value in headers]
    return lambda headers: next((value for key, value in reversed(headers) if key == wanted), None)
