"""OutputBuffer: collects the output of a runner's tasks in record batches.

Rows are buffered per partition until they fill a batch, or until the runner sends them; the C
encoder writes the batch and the producer sends it unchanged. A commit sends all rows and waits
until they are acknowledged. It returns the end of each partition, which for changelogs is where a
later restore continues.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from broker import concurrency
from broker.batch.codec import Record, decode_records, encode_batch
from broker.batch.records import Row
from broker.client.api import RecordMetadata
from broker.client.partitioner import POSITIVE, murmur2
from broker.client.record_producer import Producer
from broker.errors import BrokerError, ErrorCode, MillstreamError
from broker.model import TopicPartition
from streams.errors import ProductionFailed, TaskMigrated
from streams.handlers import Answer, DeadLetter, Failure, FailureKind, Handler
from streams.record import NO_HEADERS, Headers
from streams.runtime.output import SendTo

# key, value, headers, timestamp_ms
OutputRow = tuple[bytes | None, bytes | None, Headers, int]

BATCH_BYTES = 256 * 1024
ROW_OVERHEAD_BYTES = 24
ROWS_MEASURED = 64  # measured to estimate how many rows fill a batch
RETRIES_MAX = 10
FENCED = frozenset(
    {
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
    }
)


def _row_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """The estimated size of a row in a batch, an overestimate rather than an underestimate."""
    size = ROW_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
    if headers:
        size += sum(len(name) + len(data or b"") + 10 for name, data in headers)
    return size


class _PartitionRows:
    """The buffered rows of one partition."""

    __slots__ = ("room", "rows")

    def __init__(self, limit: int) -> None:
        self.rows: list[Row] = []
        self.room = limit  # the free bytes of its batch


class _TopicRows:
    """The buffered rows of a topic, by partition."""

    __slots__ = ("buffers", "count", "limit", "sticky", "topic")

    def __init__(self, topic: str, count: int, limit: int) -> None:
        self.topic = topic
        self.count = count
        self.limit = limit
        self.buffers = [_PartitionRows(limit) for _ in range(count)]
        self.sticky = 0  # the partition of records without a key; changes after each batch

    def grow(self, count: int) -> None:
        """Add the buffers of new partitions."""
        self.buffers += [_PartitionRows(self.limit) for _ in range(count - self.count)]
        self.count = count

    def drain(self, partition: int) -> list[Row]:
        """Remove and return the rows of a partition."""
        buffer = self.buffers[partition]
        rows, buffer.rows = buffer.rows, []
        buffer.room = self.limit
        return rows


class _RefusedBatch(NamedTuple):
    """A batch that was not written to its topic."""

    tp: TopicPartition
    batch: bytes
    error: BaseException
    was_sent: bool  # the broker refused it; its transaction cannot be committed


class OutputBuffer:
    """An Output over one producer; the runner's thread uses it."""

    def __init__(
        self,
        producer: Producer,
        *,
        handler: Handler,
        before_send: Callable[[], None] = lambda: None,
        batch_limit: Callable[[str], int] = lambda topic: BATCH_BYTES,
        transactional: bool = False,
        dead_letter_topic: str | None = None,
    ) -> None:
        """`before_send` is called before each batch; it begins transactions."""
        self._producer = producer
        self._handler = handler
        self._before_send = before_send
        self._batch_limit = batch_limit
        self._transactional = transactional
        self._dead_letter_topic = dead_letter_topic
        self._routes: dict[str, _TopicRows] = {}
        self._lock = concurrency.Lock()  # callbacks come from the producer's thread
        self._failed: deque[_RefusedBatch] = deque()
        self._ends: dict[TopicPartition, int] = {}
        self.is_abandoned = (
            False  # the application is being deleted: refused records are not handled
        )
        self.records_sent = 0
        self.bytes_sent = 0

    def replace_producer(self, producer: Producer) -> None:
        """Replace the producer; buffered rows are kept."""
        self._producer = producer

    # --- Output -------------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers,
        partition: int | None,
    ) -> None:
        """Queue a record; see Output."""
        route = self._route(topic, partition or 0)
        if partition is None:
            partition = route.sticky if key is None else (murmur2(key) & POSITIVE) % route.count
        size = _row_bytes(key, value, headers)
        buffer = route.buffers[partition]
        if size > buffer.room and buffer.rows:
            self._send_rows(route, partition)
        buffer.rows.append((key, value, headers, timestamp_ms))
        buffer.room -= size

    def sender_to(self, topic: str) -> SendTo:
        """Like `send`, but with less work per record."""
        routes, open_route, send_rows = self._routes, self._route, self._send_rows

        def send_to(
            hashed: bytes | None,
            key: bytes | None,
            value: bytes | None,
            timestamp_ms: int,
            headers: Headers,
        ) -> None:
            route = routes.get(topic) or open_route(topic)
            partition = (
                route.sticky if hashed is None else (murmur2(hashed) & POSITIVE) % route.count
            )
            buffer = route.buffers[partition]
            size = (
                _row_bytes(key, value, headers)
                if headers or key is None or value is None
                else len(key) + len(value) + ROW_OVERHEAD_BYTES
            )
            if size > buffer.room and buffer.rows:
                send_rows(route, partition)
            buffer.room -= size
            buffer.rows.append((key, value, headers, timestamp_ms))

        return send_to

    def partition_count(self, topic: str) -> int:
        """The number of partitions of a topic."""
        return self._route(topic).count

    def send_all(self, tp: TopicPartition, rows: Sequence[OutputRow]) -> None:
        """Send many records to one partition, after the buffered ones."""
        topic, partition = tp
        route = self._route(topic, partition)
        if route.buffers[partition].rows:
            self._send_rows(route, partition)
        measured = [_row_bytes(*row[:3]) for row in rows[:ROWS_MEASURED]]
        step = max(1, route.limit * len(measured) // max(1, sum(measured)))
        start = 0
        while start < len(rows):
            piece = rows[start : start + step]
            batch = encode_batch(piece)
            if len(batch) > route.limit and len(piece) > 1:
                step = len(piece) // 2
                continue
            self._send_batch(tp, batch, len(piece))
            start += len(piece)

    def _route(self, topic: str, partition: int = 0) -> _TopicRows:
        """The buffers of a topic that has this partition."""
        route = self._routes.get(topic)
        if route is not None and partition < route.count:
            return route
        count = len(self._producer.partitions_for(topic))
        if partition >= count:
            raise ProductionFailed(
                f'topic "{topic}" has {count} partitions, but a record is for partition '
                f"{partition}",
                hint="the partitioner must return a number below the partition count",
            )
        if route is None:
            route = self._routes[topic] = _TopicRows(topic, count, self._batch_limit(topic))
        else:
            route.grow(count)
        return route

    # --- batches ------------------------------------------------------------------------------

    def _send_rows(self, route: _TopicRows, partition: int) -> None:
        rows = route.drain(partition)
        route.sticky = (partition + 1) % route.count
        self._send_batch(TopicPartition(route.topic, partition), encode_batch(rows), len(rows))

    def _send_batch(self, tp: TopicPartition, batch: bytes, count: int) -> None:
        def on_sent(metadata: RecordMetadata | None, error: BaseException | None) -> None:
            with self._lock:
                if error is not None:
                    self._failed.append(_RefusedBatch(tp, batch, error, was_sent=True))
                elif metadata is not None:
                    self._ends[tp] = max(self._ends.get(tp, 0), metadata.offset + count)

        self._before_send()
        self.records_sent += count
        self.bytes_sent += len(batch)
        try:
            self._producer.send_batch(tp, batch, callback=on_sent)
        except BrokerError as error:
            if error.code in FENCED:
                raise TaskMigrated(f"the producer was fenced: {error}") from error
            self._failed.append(_RefusedBatch(tp, batch, error, was_sent=False))

    @property
    def has_rows(self) -> bool:
        """Whether rows are buffered."""
        return any(buffer.rows for route in self._routes.values() for buffer in route.buffers)

    def send_buffered(self) -> None:
        """Send all buffered rows, also in batches that are not full."""
        for route in self._routes.values():
            for partition, buffer in enumerate(route.buffers):
                if buffer.rows:
                    self._send_rows(route, partition)

    def flush(self, timeout_ms: int) -> dict[TopicPartition, int]:
        """Send everything and wait for it; returns the end offsets of the partitions."""
        for _ in range(RETRIES_MAX):
            self.send_buffered()
            self._producer.flush(timeout_ms)
            if not self._handle_failures():
                break
        else:
            raise ProductionFailed(f"results were refused {RETRIES_MAX} times")
        with self._lock:
            ends, self._ends = self._ends, {}
        return ends

    def discard(self) -> None:
        """Drop all buffered rows, and the results of all batches that were sent."""
        for route in self._routes.values():
            for partition in range(route.count):
                route.drain(partition)
        with self._lock:
            self._failed.clear()
            self._ends.clear()

    # --- failures -----------------------------------------------------------------------------

    def _handle_failures(self) -> bool:
        """Pass each refused record to the handler; returns whether any must be sent again."""
        with self._lock:
            failed, self._failed = self._failed, deque()
        if failed and self.is_abandoned:
            raise TaskMigrated("the application is being deleted")
        must_retry = False
        for refused in failed:
            error = refused.error
            if isinstance(error, BrokerError) and error.code in FENCED:
                raise TaskMigrated(f"the producer was fenced: {error}") from error
            for record in decode_records(refused.batch):
                must_retry |= self._handle_failure(refused, record)
        return must_retry

    def _handle_failure(self, refused: _RefusedBatch, record: Record) -> bool:
        tp, error = refused.tp, refused.error
        _, timestamp_ms, key, value, headers = record
        failure = Failure(
            FailureKind.PRODUCTION,
            error if isinstance(error, Exception) else MillstreamError(str(error)),
            node=tp.topic,
            task_id="",
            position=None,
            timestamp_ms=timestamp_ms,
            headers=headers or NO_HEADERS,
            raw_key=key,
            raw_value=value,
        )
        answer = self._handler(failure)
        dead_letters = self._dead_letter_topic
        if isinstance(answer, DeadLetter):
            dead_letters, fails = answer.topic, answer.fail
        else:
            fails = answer is Answer.FAIL
        if fails or (self._transactional and refused.was_sent):
            raise ProductionFailed(
                f"the broker refused a result: {error}",
                at=str(tp),
                hint='see "production_exception_handler"',
            ) from error
        if answer is Answer.RETRY:
            self.send(tp.topic, key, value, timestamp_ms, failure.headers, tp.partition)
            return True
        if dead_letters is not None and dead_letters != tp.topic:
            self.send(dead_letters, key, value, timestamp_ms, failure.headers, None)
            return True
        return False
