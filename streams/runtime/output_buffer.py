"""OutputBuffer: results of a runner's tasks, row by row in, whole record batches out.

Rows wait per partition until they make a batch, or until the runner says that they have waited long
enough; the C encoder writes it and the producer sends it as it is. A commit sends the rest and
waits until everything is acknowledged; it also learns where each partition ended, which for
changelogs is where a later restore continues.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from broker import concurrency
from broker.batch.codec import Record, decode_records, encode_batch
from broker.batch.records import Row
from broker.client.api import Producer, RecordMetadata
from broker.client.partitioner import POSITIVE, murmur2
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
ROWS_GUESSED = 64  # of a run: how many are measured to guess how many make a batch
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
    """About how much of a batch a row takes, rather more than less."""
    size = ROW_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
    if headers:
        size += sum(len(name) + len(data or b"") + 10 for name, data in headers)
    return size


class _Lane:
    """What waits for one partition."""

    __slots__ = ("room", "rows")

    def __init__(self, limit: int) -> None:
        self.rows: list[Row] = []
        self.room = limit  # how many bytes its batch may still take


class _Route:
    """What `send` must know of a topic."""

    __slots__ = ("count", "lanes", "limit", "sticky", "topic")

    def __init__(self, topic: str, count: int, limit: int) -> None:
        self.topic = topic
        self.count = count
        self.limit = limit
        self.lanes = [_Lane(limit) for _ in range(count)]
        self.sticky = 0  # where records without a key go; the next one after each batch

    def grow(self, count: int) -> None:
        """The topic has more partitions than before."""
        self.lanes += [_Lane(self.limit) for _ in range(count - self.count)]
        self.count = count

    def empty(self, partition: int) -> list[Row]:
        """Take what waits for a partition."""
        lane = self.lanes[partition]
        rows, lane.rows = lane.rows, []
        lane.room = self.limit
        return rows


class _Refused(NamedTuple):
    """A batch that did not get into its topic."""

    tp: TopicPartition
    batch: bytes
    error: BaseException
    was_sent: bool  # it failed at the broker; a transaction that lost it cannot be committed


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
        """`before_send` comes before anything is given to the producer: it opens transactions."""
        self._producer = producer
        self._handler = handler
        self._before_send = before_send
        self._batch_limit = batch_limit
        self._transactional = transactional
        self._dead_letter_topic = dead_letter_topic
        self._routes: dict[str, _Route] = {}
        self._lock = concurrency.Lock()  # callbacks come from the producer's thread
        self._failed: deque[_Refused] = deque()
        self._ends: dict[TopicPartition, int] = {}
        self.is_abandoned = False  # refused records are nobody's any more
        self.pending_bytes = 0  # since the last commit
        self.records_sent = 0
        self.bytes_sent = 0

    def use(self, producer: Producer) -> None:
        """Go on with another producer; what waits stays."""
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
        lane = route.lanes[partition]
        if size > lane.room and lane.rows:
            self._send_rows(route, partition)
        lane.rows.append((key, value, headers, timestamp_ms))
        lane.room -= size

    def sender_to(self, topic: str) -> SendTo:
        """As `send`, with as little as possible per record."""
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
            lane = route.lanes[partition]
            size = (
                _row_bytes(key, value, headers)
                if headers or key is None or value is None
                else len(key) + len(value) + ROW_OVERHEAD_BYTES
            )
            if size > lane.room and lane.rows:
                send_rows(route, partition)
            lane.room -= size
            lane.rows.append((key, value, headers, timestamp_ms))

        return send_to

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has."""
        return self._route(topic).count

    def send_all(self, tp: TopicPartition, rows: Sequence[OutputRow]) -> None:
        """Send many records to one partition, after those that wait for it."""
        topic, partition = tp
        route = self._route(topic, partition)
        if route.lanes[partition].rows:
            self._send_rows(route, partition)
        guessed = [_row_bytes(*row[:3]) for row in rows[:ROWS_GUESSED]]
        step = max(1, route.limit * len(guessed) // max(1, sum(guessed)))
        start = 0
        while start < len(rows):
            piece = rows[start : start + step]
            batch = encode_batch(piece)
            if len(batch) > route.limit and len(piece) > 1:
                step = len(piece) // 2
                continue
            self._send_batch(tp, batch, len(piece))
            start += len(piece)

    def _route(self, topic: str, partition: int = 0) -> _Route:
        """The way to a topic that has such a partition."""
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
            route = self._routes[topic] = _Route(topic, count, self._batch_limit(topic))
        else:
            route.grow(count)
        return route

    # --- batches ------------------------------------------------------------------------------

    def _send_rows(self, route: _Route, partition: int) -> None:
        rows = route.empty(partition)
        route.sticky = (partition + 1) % route.count
        self._send_batch(TopicPartition(route.topic, partition), encode_batch(rows), len(rows))

    def _send_batch(self, tp: TopicPartition, batch: bytes, count: int) -> None:
        def settled(metadata: RecordMetadata | None, error: BaseException | None) -> None:
            with self._lock:
                if error is not None:
                    self._failed.append(_Refused(tp, batch, error, was_sent=True))
                elif metadata is not None:
                    self._ends[tp] = max(self._ends.get(tp, 0), metadata.offset + count)

        self._before_send()
        self.records_sent += count
        self.pending_bytes += len(batch)
        self.bytes_sent += len(batch)
        try:
            self._producer.send_batch(tp, batch, callback=settled)
        except BrokerError as error:
            if error.code in FENCED:
                raise TaskMigrated(f"the producer was fenced: {error}") from error
            self._failed.append(_Refused(tp, batch, error, was_sent=False))

    @property
    def is_waiting(self) -> bool:
        """Whether there are rows whose batch is not full yet."""
        return any(lane.rows for route in self._routes.values() for lane in route.lanes)

    def send_waiting(self) -> None:
        """Give everything that waits for its batch to fill to the producer."""
        for route in self._routes.values():
            for partition, lane in enumerate(route.lanes):
                if lane.rows:
                    self._send_rows(route, partition)

    def flush(self, timeout_ms: int) -> dict[TopicPartition, int]:
        """Send everything and wait for it; the offset after the last record of each partition."""
        for _ in range(RETRIES_MAX):
            self.send_waiting()
            self._producer.flush(timeout_ms)
            if not self._handle_failures():
                break
        else:
            raise ProductionFailed(f"results were refused {RETRIES_MAX} times")
        with self._lock:
            ends, self._ends = self._ends, {}
        self.pending_bytes = 0
        return ends

    def discard(self) -> None:
        """Forget everything that waits, and what became of the rest."""
        for route in self._routes.values():
            for partition in range(route.count):
                route.empty(partition)
        with self._lock:
            self._failed.clear()
            self._ends.clear()
        self.pending_bytes = 0

    # --- failures -----------------------------------------------------------------------------

    def _handle_failures(self) -> bool:
        """Ask the handler about each record that was refused; whether any must be sent again."""
        with self._lock:
            failed, self._failed = self._failed, deque()
        if failed and self.is_abandoned:
            raise TaskMigrated("the application is being deleted")
        again = False
        for refused in failed:
            error = refused.error
            if isinstance(error, BrokerError) and error.code in FENCED:
                raise TaskMigrated(f"the producer was fenced: {error}") from error
            for record in decode_records(refused.batch):
                again |= self._handle_failure(refused, record)
        return again

    def _handle_failure(self, refused: _Refused, record: Record) -> bool:
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
