"""Writes Arrow batches as records; runs in Spark's workers.

Rows are grouped by partition and encoded as whole record batches; a record costs a few operations,
and no call of the producer.
"""

import random
import time
from collections.abc import Iterable, Iterator
from itertools import pairwise, repeat
from typing import Any

import pyarrow as pa

from broker.batch.codec import encode_batch
from broker.batch.records import Row
from broker.client.api import RecordMetadata
from broker.client.partitioner import partition_for_key
from broker.client.record_producer import Producer
from broker.errors import BrokerError, ConfigError, ErrorCode, RequestTimeout, SerdeError
from broker.model import TopicPartition
from sql.backends.spark.marks import RowDigest

BATCH_BYTES = 256 * 1024
ROW_BYTES = 24  # the maximum size of a record without its key and value
TOPIC_LIMIT_MS = 5_000  # how long a broker may take to create a topic
NO_HEADERS: tuple[tuple[str, bytes | None], ...] = ()

# Arrow arrays are Any: the library has no type hints.


class RecordOutput:
    """Writes the rows of one task to topics."""

    def __init__(
        self,
        producer: Producer,
        topic: str | None,
        *,
        bytes_max: int,
        compression: str,
        digest: RowDigest | None = None,
    ) -> None:
        """Write to one topic, or to that of each row; all rows are added to the digest."""
        self._producer = producer
        self._topic = topic
        self._limit = min(BATCH_BYTES, bytes_max // 2)
        self._compression = compression
        self._counts: dict[str, int] = {}
        self._lanes: dict[tuple[str, int], tuple[list[Row], list[int]]] = {}
        self._digest = digest
        self._turn = random.randrange(1 << 16)  # rows without a key start at a random partition
        self._error: BaseException | None = None
        self.written = 0

    def write(self, batch: Any) -> None:
        """Add all rows of a batch."""
        count = batch.num_rows
        columns = {name: batch.column(place) for place, name in enumerate(batch.schema.names)}
        topics = repeat(self._topic, count)
        if self._topic is None:
            topics = columns["topic"].to_pylist()
        partitions = columns["partition"].to_pylist() if "partition" in columns else repeat(None)
        found = binary_list(columns["key"]) if "key" in columns else None
        keys = repeat(None) if found is None else found
        values = binary_list(columns["value"])
        if self._digest is not None:
            self._digest.add(found, values)
        times = _times(columns.get("timestamp"), count)
        headers = _headers(columns.get("headers"))
        lanes = self._lanes
        for topic, partition, key, value, time_ms, pairs in zip(
            topics, partitions, keys, values, times, headers, strict=False
        ):
            if partition is None:
                partition = self._partition_of(topic, key)
            lane = lanes.get((topic, partition))
            if lane is None:
                lane = self._open(topic, partition)
            rows, room = lane
            rows.append((key, value, pairs, time_ms))
            room[0] -= ROW_BYTES + len(key or b"") + len(value or b"")
            if pairs:
                room[0] -= sum(10 + 3 * len(name) + len(it or b"") for name, it in pairs)
            if room[0] <= 0:
                self._send(TopicPartition(topic, partition))
        self.written += count

    def finish(self) -> None:
        """Send the remaining rows, and check that all were accepted."""
        for topic, partition in list(self._lanes):
            self._send(TopicPartition(topic, partition))
        self._producer.flush()
        if self._error is not None:
            raise self._error

    def _partition_of(self, topic: str, key: bytes | None) -> int:
        count = self._counts.get(topic) or self._count(topic)
        if key is not None:
            return partition_for_key(key, count)
        return self._turn % count

    def _count(self, topic: str | None) -> int:
        if topic is None:
            raise SerdeError("a row has no topic", hint='fill "topic", or set the option "topic"')
        count = self._counts[topic] = partition_count(self._producer, topic)
        return count

    def _open(self, topic: str | None, partition: int) -> tuple[list[Row], list[int]]:
        count = self._count(topic)
        assert topic is not None
        if not 0 <= partition < count:
            raise SerdeError(
                f'a row names partition {partition} of "{topic}", which has {count} partitions',
                hint='set a lower "partition", or null to choose it by the key',
            )
        lane = self._lanes[topic, partition] = ([], [self._limit])
        return lane

    def _send(self, tp: TopicPartition) -> None:
        rows, room = self._lanes[tp]
        if not rows:
            return
        if self._error is not None:
            raise self._error
        data = encode_batch(rows, compression=self._compression)
        self._producer.send_batch(tp, data, callback=self._settled)
        rows.clear()
        room[0] = self._limit
        self._turn += 1

    def _settled(self, metadata: RecordMetadata | None, error: BaseException | None) -> None:
        if error is not None and self._error is None:
            self._error = error


def partition_count(producer: Producer, topic: str) -> int:
    """The number of partitions of a topic; the broker creates it, otherwise ConfigError."""
    try:
        return len(producer.partitions_for(topic, TOPIC_LIMIT_MS))
    except RequestTimeout as error:
        cause = error.__cause__
        if (
            isinstance(cause, BrokerError)
            and cause.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ):
            raise
    except BrokerError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise
    raise ConfigError(
        f'topic "{topic}" does not exist, and the broker does not create it',
        hint='create it first, or correct the option or the column "topic"',
    ) from None


def digest_of(batches: Iterable[Any]) -> RowDigest:
    """The digest of rows that are not written."""
    result = RowDigest()
    for batch in batches:
        has_key = "key" in batch.schema.names
        result.add(
            binary_list(batch.column("key")) if has_key else None,
            binary_list(batch.column("value")),
        )
    return result


def binary_list(column: Any) -> list[bytes | None]:
    """The bytes of a binary or string column, sliced from its buffer."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(array):
        return []
    array = array.cast(pa.binary()) if not pa.types.is_binary(array.type) else array
    if array.null_count:
        return list(array.to_pylist())
    _, places, data = array.buffers()
    if data is None:
        return [b""] * len(array)
    starts = memoryview(places).cast("i")[array.offset : array.offset + len(array) + 1].tolist()
    base = starts[0]
    taken = data.slice(base, starts[-1] - base).to_pybytes()
    if base:
        starts = [start - base for start in starts]
    return [taken[start:end] for start, end in pairwise(starts)]


def _times(column: Any, count: int) -> Iterable[int]:
    now_ms = time.time_ns() // 1_000_000
    if column is None:
        return repeat(now_ms, count)
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False).cast(pa.int64())
    if column.null_count:
        column = column.fill_null(now_ms)
    found: list[int] = column.to_pylist()
    if found and min(found) < 0:
        raise SerdeError(f'"timestamp" is {min(found)}', hint="use milliseconds since 1970")
    return found


def _headers(column: Any) -> Iterator[tuple[tuple[str, bytes | None], ...]]:
    if column is None or column.null_count == len(column):
        return repeat(NO_HEADERS)
    return (
        tuple((pair["name"], pair["value"]) for pair in pairs) if pairs else NO_HEADERS
        for pairs in column.to_pylist()
    )


def first_topic(batch: Any, topic: str | None) -> str:
    """A topic that the rows of a batch are written to."""
    found = topic if topic is not None else batch.column("topic")[0].as_py()
    if found is None:
        raise SerdeError("a row has no topic", hint='fill "topic", or set the option "topic"')
    return str(found)


def not_empty(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches that are not empty."""
    return (batch for batch in batches if batch.num_rows)


__all__ = [
    "RecordOutput",
    "binary_list",
    "digest_of",
    "first_topic",
    "not_empty",
    "partition_count",
]
