"""Scan: the records of a topic as rows."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from broker.client.serde import BytesSerde, Serde
from broker.client.serde.rows.row_format import Row
from broker.errors import SerdeError
from sql.backends.native.row_times import time_reader
from sql.backends.native.rows import AnySerde, key_serde, stored_rows, value_serde, windowed
from sql.backends.native.steps import QueryContext, RowStream, RowTable, then
from sql.errors import ProcessingFailed
from sql.plan import Scan
from sql.schema import HeaderColumn
from streams.processor import NodeContext, Process
from streams.record import Headers, Windowed
from streams.stream_time import TimestampExtractor

READ = "SQL-SCAN-"
DECODE = "SQL-DECODE-"

# Told what failed, and on which row if it is known.
Log = Callable[[Exception, Row | None], None]
THROW_ON_INVALID = "ksql.timestamp.throw.on.invalid"


def scan(step: Scan, context: QueryContext) -> RowStream | RowTable:
    """The rows of a topic, as a stream or a table."""
    shape = step.shape
    topic_key = key_serde(step.key_format, shape.key, context.registry, shape.window)
    values = value_serde(step.value_format, step.value, context.registry)
    extractor = _extractor(step, context)
    stream: RowStream
    if step.topic in context.shared_topics:
        raw = context.builder.stream(step.topic, key=BytesSerde(), value=BytesSerde())
        decoding = DecodeRecords(
            step.topic, topic_key, values, extractor, context.log_of(step.name)
        )
        stream = then(raw, DECODE, decoding)
    else:
        stream = context.builder.stream(
            step.topic, key=topic_key, value=values, timestamp_extractor=extractor
        )
    read = then(stream, READ, ReadRows(step.headers, len(shape.key), shape.window is not None))
    if not shape.is_table:
        return read
    table: RowTable = read.to_table(
        store=context.name_of(step, "-Reduce"),
        key=windowed(stored_rows(shape.key), shape.window),
        value=stored_rows(shape.row),
        caching=False,
    )
    # Who sends rows to where a key of this table lies needs the bytes that it has in its topic.
    table.node.key_serde = topic_key
    return table


@dataclass(frozen=True, slots=True)
class DecodeRecords:
    """Reads keys and values of a topic that others read, too; what cannot be read is dropped."""

    topic: str
    key: AnySerde
    value: Serde[Row]
    extractor: TimestampExtractor | None
    log: Log

    def open(self, context: NodeContext) -> Process:
        """The node's code."""
        forward, drop, topic, log = context.forward, context.drop, self.topic, self.log
        key_of, value_of, extractor = self.key.deserialize, self.value.deserialize, self.extractor

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            try:
                new_key = key_of(topic, cast("bytes | None", key))
                row = value_of(topic, cast("bytes | None", value))
            except SerdeError as error:
                log(error, None)
                drop("a record that cannot be read")
                return
            if extractor is not None:
                timestamp_ms = extractor(new_key, row, timestamp_ms, -1)
                if timestamp_ms < 0:
                    drop("a record without a time")
                    return
            forward(new_key, row, timestamp_ms, headers)

        return process


@dataclass(frozen=True, slots=True)
class ReadRows:
    """Adds to a record's value what else a row has: headers, times, place, window and key."""

    headers: tuple[HeaderColumn, ...]
    key_columns: int
    is_windowed: bool

    def open(self, context: NodeContext) -> Process:
        """The node's code."""
        if self.headers or self.is_windowed:
            return self._open_with_more(context)
        forward = context.forward
        no_key: Row = (None,) * self.key_columns

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if value is None:
                forward(key, None, timestamp_ms, headers)
                return
            position = context.position
            assert position is not None, "records of a topic have a place"
            place = (timestamp_ms, position[1], position[2])
            key_row = no_key if key is None else cast("Row", key)
            forward(key, cast("Row", value) + place + key_row, timestamp_ms, headers)

        return process

    def _open_with_more(self, context: NodeContext) -> Process:
        forward, is_windowed = context.forward, self.is_windowed
        no_key: Row = (None,) * self.key_columns
        header_values = [_header_reader(each) for each in self.headers]

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if value is None:
                forward(key, None, timestamp_ms, headers)
                return
            position = context.position
            assert position is not None, "records of a topic have a place"
            window: Row = (None, None) if is_windowed else ()
            key_row = key
            if is_windowed and key is not None:
                key_row, *bounds = cast("Windowed[object]", key)
                window = tuple(bounds)
            row = (
                *cast("Row", value),
                *(read(headers) for read in header_values),
                timestamp_ms,
                position.partition,
                position.offset,
                *window,
                *(no_key if key_row is None else cast("Row", key_row)),
            )
            forward(key, row, timestamp_ms, headers)

        return process


def _header_reader(column: HeaderColumn) -> Callable[[Headers], object]:
    wanted = column.key
    if wanted is None:
        return lambda headers: [{"KEY": key, "VALUE": value} for key, value in headers]

    def last(headers: Headers) -> object:
        return next((value for key, value in reversed(headers) if key == wanted), None)

    return last


def _extractor(step: Scan, context: QueryContext) -> TimestampExtractor | None:
    """The time of a row by its TIMESTAMP column; what has none is dropped, and logged."""
    if step.timestamp is None:
        return None
    columns = (*step.value, *step.shape.key)
    read = time_reader(step.timestamp, columns)
    width = len(step.value)
    no_value: Row = (None,) * width
    no_key: Row = (None,) * len(step.shape.key)
    log, fatal = context.log_of(step.name), context.flag(THROW_ON_INVALID)

    def extract(key: object, value: object, timestamp_ms: int, partition_time_ms: int) -> int:
        if value is None:
            return timestamp_ms
        plain = key.key if isinstance(key, Windowed) else key
        row = (
            *(no_value if value is None else cast("Row", value)),
            *(no_key if plain is None else cast("Row", plain)),
        )
        try:
            found = read(row)
        except Exception as error:  # whatever a text that is no time raises
            if fatal:
                raise ProcessingFailed(
                    f"Fatal error: could not extract a timestamp from the record: {error}"
                ) from error
            log(error, row)
            return -1
        if found < 0:
            log(ProcessingFailed(f"the time of the record is negative: {found}"), row)
        return found

    return extract
