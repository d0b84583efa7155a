"""Fetch: returns slices of the log, immediately or when enough data is available."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from broker.coordinator.partition import Partition
from broker.coordinator.parts import Parts
from broker.errors import BrokerError, ErrorCode
from broker.handlers.fetch_sessions import (
    TARGETS_MAX,
    FetchPlan,
    FetchTarget,
    Key,
    requested_targets,
    too_many_targets,
)
from broker.handlers.partitions import error_code_of
from broker.handlers.state import BrokerState, Handler, RequestContext
from broker.model import TopicPartition
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)

logger = logging.getLogger(__name__)

TOPIC_ID_VERSION_MIN = 13
READ_COMMITTED = 1
NO_RECORDS = b""
AT_ONCE_MAX = 1_000  # partitions that are read without a pause for other requests
LARGE_WAIT_MS = 250


def fetch(state: BrokerState, request: FetchRequest, context: RequestContext) -> object:
    """Respond immediately if there is enough data or an error, otherwise wait for more."""
    by_topic_id = context.version >= TOPIC_ID_VERSION_MIN
    try:
        if context.prepared is not None and len(context.prepared) > TARGETS_MAX:
            raise too_many_targets()
        plan = state.fetch_sessions.plan(request, by_topic_id=by_topic_id, targets=context.prepared)
    except BrokerError as error:
        return FetchResponse(error_code=error.code)
    work = _Fetch(state, request, plan, by_topic_id=by_topic_id)
    if len(plan.targets) > AT_ONCE_MAX:
        return _fetch_in_parts(work)
    reading = work.read()
    if reading.complete or reading.bytes_read >= request.min_bytes or request.max_wait_ms <= 0:
        return work.respond(reading)
    return _Wait(work).pending


def prepare(
    state: BrokerState, request: FetchRequest, context: RequestContext
) -> dict[Key, FetchTarget] | None:
    """The partitions of a large request, before the lock is acquired."""
    if sum(len(topic.partitions) for topic in request.topics) <= AT_ONCE_MAX:
        return None
    return requested_targets(request, by_topic_id=context.version >= TOPIC_ID_VERSION_MIN)


def _fetch_in_parts(work: "_Fetch") -> Parts[FetchResponse | Pending[FetchResponse]]:
    """A fetch of many partitions, with other requests in between.

    New data does not wake it; it checks again periodically.
    """
    reading = yield from work.read_in_parts()
    request = work.request
    if reading.complete or reading.bytes_read >= request.min_bytes or request.max_wait_ms <= 0:
        return (yield from work.respond_in_parts(reading))
    pending: Pending[FetchResponse] = Pending()

    def look_again() -> None:
        work.state.timers.run_in_parts(finish())

    def finish() -> Parts[None]:
        if not pending.done:
            again = yield from work.read_in_parts()
            pending.complete((yield from work.respond_in_parts(again)))

    work.state.timers.schedule(min(request.max_wait_ms, LARGE_WAIT_MS), look_again)
    return pending


@dataclass(slots=True)
class _Reading:
    """The results of one pass over the partitions."""

    answers: list[tuple[FetchTarget, PartitionData]] = field(default_factory=list)
    served: list[tuple[FetchTarget, int, int]] = field(default_factory=list)  # size, next offset
    bytes_read: int = 0
    complete: bool = False  # an error or a diverging epoch: do not wait for more


class _Fetch:
    """One fetch request being served."""

    __slots__ = ("_by_topic_id", "_bytes_max", "committed", "plan", "request", "state")

    def __init__(
        self, state: BrokerState, request: FetchRequest, plan: FetchPlan, *, by_topic_id: bool
    ) -> None:
        self.state = state
        self.request = request
        self.plan = plan
        self._by_topic_id = by_topic_id
        self._bytes_max = min(request.max_bytes, state.config.fetch_max_bytes)
        self.committed = request.isolation_level == READ_COMMITTED

    def read(self) -> _Reading:
        """Read the partitions in order, up to the maximum bytes of the client."""
        reading = _Reading(complete=not self.plan.targets)
        for target in self.plan.targets:
            self._read_target(target, reading)
        return reading

    def read_in_parts(self) -> Parts[_Reading]:
        """The same as `read`, with other requests in between."""
        reading = _Reading(complete=not self.plan.targets)
        for target in self.plan.targets:
            self._read_target(target, reading)
            yield
        return reading

    def _read_target(self, target: FetchTarget, reading: _Reading) -> None:
        try:
            data = self._read_partition(target, reading)
        except Exception as error:
            data = self._failed(target, error)
            reading.complete = True
        reading.answers.append((target, data))

    def partition_of(self, target: FetchTarget) -> Partition:
        """The partition of a target; fills in the name if it was requested by id."""
        if self._by_topic_id:
            topic = self.state.topics.by_id(target.topic_id)
            if topic is None:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID)
            if target.topic_partition.topic != topic.name:
                target.topic_partition = TopicPartition(
                    topic.name, target.topic_partition.partition
                )
        return self.state.partitions.leader(target.topic_partition, target.leader_epoch)

    def _read_partition(self, target: FetchTarget, reading: _Reading) -> PartitionData:
        partition = self.partition_of(target)
        data = PartitionData(
            target.topic_partition.partition,
            ErrorCode.NONE,
            partition.high_watermark,
            partition.last_stable_offset,
            partition.start_offset,
            aborted_transactions=None,
            records=NO_RECORDS,
        )
        if target.last_fetched_epoch >= 0:
            diverging = partition.diverges(target.fetch_offset, target.last_fetched_epoch)
            if diverging is not None:
                data.diverging_epoch = EpochEndOffset(*diverging)
                reading.complete = True
                return data
        bytes_max = min(target.bytes_max, max(self._bytes_max - reading.bytes_read, 0))
        fetched = partition.read(
            target.fetch_offset,
            bytes_max=bytes_max,
            committed=self.committed,
            minimum_one=reading.bytes_read == 0,
        )
        size = len(fetched.records)
        data.records = fetched.records
        reading.bytes_read += size
        if size:
            reading.served.append((target, size, fetched.next_offset))
        if self.committed:
            data.aborted_transactions = []
            if size:
                aborted = partition.aborted_transactions(target.fetch_offset, fetched.next_offset)
                data.aborted_transactions = [AbortedTransaction(*one) for one in aborted]
        return data

    def _failed(self, target: FetchTarget, error: Exception) -> PartitionData:
        if not isinstance(error, BrokerError):
            logger.error("cannot read %s", target.topic_partition, exc_info=error)
        return PartitionData(
            target.topic_partition.partition,
            error_code_of(error),
            -1,
            aborted_transactions=None,
            records=NO_RECORDS,
        )

    def respond(self, reading: _Reading) -> FetchResponse:
        """The response: all partitions, or in a running session those with changes."""
        session = self.plan.session
        answers = reading.answers
        if session is not None:
            incremental = self.plan.incremental
            answers = [pair for pair in answers if _is_news(*pair) or not incremental]
            if incremental:
                session.serve_last([target for target, _, _ in reading.served])
        self._count(reading)
        return FetchResponse(session_id=self.plan.session_id, responses=self._by_topic(answers))

    def respond_in_parts(self, reading: _Reading) -> Parts[FetchResponse]:
        """The same as `respond`, with other requests in between."""
        answers = []
        incremental = self.plan.session is not None and self.plan.incremental
        for target, data in reading.answers:
            news = self.plan.session is None or _is_news(target, data)
            if news or not incremental:
                answers.append((target, data))
            yield
        if self.plan.session is not None and incremental:
            self.plan.session.serve_last([target for target, _, _ in reading.served])
        self._count(reading)
        yield
        return FetchResponse(session_id=self.plan.session_id, responses=self._by_topic(answers))

    def _by_topic(
        self, answers: list[tuple[FetchTarget, PartitionData]]
    ) -> list[FetchableTopicResponse]:
        topics: dict[str | bytes, FetchableTopicResponse] = {}
        for target, data in answers:
            name = target.topic_partition.topic
            key = target.topic_id if self._by_topic_id else name
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = FetchableTopicResponse(name, target.topic_id)
            topic.partitions.append(data)
        return list(topics.values())

    def _count(self, reading: _Reading) -> None:
        for target, size, next_offset in reading.served:
            stats = self.state.metrics.topic(target.topic_partition.topic)
            stats.fetch_requests += 1
            stats.bytes_out += size
            stats.messages_out += next_offset - target.fetch_offset


class _Wait:
    """A fetch that waits until its partitions have enough data, or until its timeout."""

    __slots__ = ("_timer", "_watched", "_work", "pending")

    def __init__(self, work: _Fetch) -> None:
        self._work = work
        self.pending: Pending[FetchResponse] = Pending(on_abandon=self._forget)
        self._watched: list[tuple[Partition, Callable[[], None]]] = []
        for target in work.plan.targets:
            partition = work.partition_of(target)
            callback = partial(self._moved, partition, target)
            partition.subscribe(callback)
            self._watched.append((partition, callback))
        self._timer = work.state.timers.schedule(work.request.max_wait_ms, self._expire)

    def _moved(self, partition: Partition, target: FetchTarget) -> None:
        """More data may be readable in one partition: check whether it is enough."""
        limit = partition.limit(committed=self._work.committed)
        if limit <= target.fetch_offset or self.pending.done:
            return
        reading = self._work.read()
        if reading.complete or reading.bytes_read >= self._work.request.min_bytes:
            self._finish(reading)

    def _expire(self) -> None:
        self._finish(self._work.read())

    def _finish(self, reading: _Reading) -> None:
        self._forget()
        self.pending.complete(self._work.respond(reading))

    def _forget(self) -> None:
        self._timer.cancel()
        for partition, callback in self._watched:
            partition.unsubscribe(callback)
        self._watched.clear()


def _is_news(target: FetchTarget, data: PartitionData) -> bool:
    """Whether the response must contain this partition of a session; remembers what is sent."""
    news = (
        data.error_code != ErrorCode.NONE
        or data.diverging_epoch.end_offset >= 0
        or len(data.records or NO_RECORDS) > 0
        or data.high_watermark != target.known_high_watermark
        or data.log_start_offset != target.known_start_offset
    )
    # After an error the client does not know the offsets, so the next response contains them again.
    target.known_high_watermark = data.high_watermark
    target.known_start_offset = data.log_start_offset
    return news


PREPARATIONS: dict[ApiKey, Handler] = {ApiKey.FETCH: prepare}
HANDLERS: dict[ApiKey, Handler] = {ApiKey.FETCH: fetch}
