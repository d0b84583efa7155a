"""Positions: the position of a consumer in each partition, and the records fetched ahead of it.

    assigned ──► COMMITTED? ──► RESET ──► FETCHING ◄──► VALIDATE
                     │ found      (no commit: by policy; out of range; seek to an end)
                     └──────────────────► FETCHING

COMMITTED? waits for the group's committed offset, RESET for an offset by time, VALIDATE for the
confirmation that a new leader still has all records that were read. Only FETCHING partitions are
fetched. `position` is the offset of the next record for the caller, `fetch_offset` that of the next
fetch. The polling thread and the transport's thread use this, each under the lock, and neither
sends requests while holding it.
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from broker import concurrency
from broker.client.api import ConsumerRecord
from broker.client.consumer_config import ConsumerConfig
from broker.client.fetched import FetchedRun
from broker.errors import ClientError, MillstreamError
from broker.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition

NO_OFFSET = -1
NO_EPOCH = -1
RESET_TIMESTAMPS = {"earliest": EARLIEST_TIMESTAMP, "latest": LATEST_TIMESTAMP}


class PositionPhase(Enum):
    """The phases of finding a position, drawn at the top."""

    COMMITTED = "the committed offset"
    RESET = "an offset by time"
    VALIDATE = "the check that nothing was truncated"
    FETCHING = "records"


@dataclass(slots=True)
class PartitionState:
    """One assigned partition."""

    topic_partition: TopicPartition
    phase: PositionPhase = PositionPhase.COMMITTED
    position: int = NO_OFFSET
    position_epoch: int = NO_EPOCH  # leader epoch of the last record returned
    leader_epoch: int = NO_EPOCH  # of the leader the position was checked against
    reset_timestamp: int = 0
    fetch_offset: int = NO_OFFSET
    turn: int = 0  # changes with every seek, so that responses to earlier requests are dropped
    paused: bool = False
    revoking: bool = False
    in_flight: bool = False
    not_before_ms: int = 0
    buffered: deque[FetchedRun] = field(default_factory=deque)
    buffered_bytes: int = 0
    decoded: list[ConsumerRecord] = field(default_factory=list)  # of the first batch
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    end_asked: bool = False  # the end of the log is being looked up
    has_append_time: bool = False  # of the last records returned
    error: MillstreamError | None = None

    @property
    def fetchable(self) -> bool:
        """Whether more may be fetched."""
        return self.takeable and self.error is None

    @property
    def takeable(self) -> bool:
        """Whether buffered records may be returned, even if an error follows them."""
        return self.phase is PositionPhase.FETCHING and not self.paused and not self.revoking

    def end(self, isolation: int) -> int:
        """The end of the log for an isolation level; NO_OFFSET if unknown."""
        return self.last_stable_offset if isolation else self.high_watermark

    def learn(self, high_watermark: int, last_stable_offset: int, log_start_offset: int) -> None:
        """Store the bounds of the log; NO_OFFSET means unknown."""
        if high_watermark >= 0:
            self.high_watermark = high_watermark
        if last_stable_offset >= 0:
            self.last_stable_offset = last_stable_offset
        if log_start_offset >= 0:
            self.log_start_offset = log_start_offset

    def learn_end(self, offset: int, isolation: int) -> None:
        """Store the end of the log, unless it is already known."""
        if isolation and self.last_stable_offset < 0:
            self.last_stable_offset = offset
        elif not isolation and self.high_watermark < 0:
            self.high_watermark = offset

    def move(self, offset: int, epoch: int = NO_EPOCH) -> None:
        """Set the position, and fetch from there."""
        self._drop_fetched()
        self.phase = PositionPhase.FETCHING
        self.position = self.fetch_offset = offset
        self.position_epoch = epoch
        self.error = None

    def wait_for(self, phase: PositionPhase, *, reset_timestamp: int = 0) -> None:
        """Have no position until it is found."""
        self._drop_fetched()
        self.phase = phase
        self.position = self.fetch_offset = NO_OFFSET
        self.position_epoch = NO_EPOCH
        self.reset_timestamp = reset_timestamp
        self.high_watermark = self.last_stable_offset = NO_OFFSET  # the log may have been replaced
        self.not_before_ms = 0
        self.error = None

    def _drop_fetched(self) -> None:
        self.turn += 1
        self.buffered.clear()
        self.buffered_bytes = 0
        self.decoded = []
        self.in_flight = False

    def append(self, run: FetchedRun) -> None:
        """Buffer a fetched run."""
        self.buffered.append(run)
        self.buffered_bytes += run.size
        self.fetch_offset = run.next_offset

    def drop_first(self) -> None:
        """Release a run that is used up."""
        self.buffered_bytes -= self.buffered.popleft().size


class Positions:
    """All assigned partitions."""

    def __init__(self) -> None:
        self.lock = concurrency.RLock()
        self._states: dict[TopicPartition, PartitionState] = {}

    def __contains__(self, tp: TopicPartition) -> bool:
        """Whether the partition is assigned."""
        return tp in self._states

    def assigned(self) -> set[TopicPartition]:
        with self.lock:
            return set(self._states)

    def states(self) -> list[PartitionState]:
        """The states of all assigned partitions."""
        with self.lock:
            return list(self._states.values())

    def get(self, tp: TopicPartition) -> PartitionState | None:
        """The state of a partition; None if it is not assigned."""
        return self._states.get(tp)

    def state(self, tp: TopicPartition) -> PartitionState:
        """The state of a partition; ClientError if it is not assigned."""
        found = self._states.get(tp)
        if found is None:
            raise ClientError(
                f"partition {tp} is not assigned to this consumer",
                hint="assign it, or poll until the group assigns it",
            )
        return found

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Replace the assignment; partitions that stay keep their positions."""
        with self.lock:
            self._states = {
                tp: self._states.get(tp) or PartitionState(tp) for tp in dict.fromkeys(partitions)
            }

    def rotate(self, tp: TopicPartition) -> None:
        """Put this partition last in the order, so that each is served."""
        with self.lock:
            state = self._states.pop(tp, None)
            if state is not None:
                self._states[tp] = state

    def waiting(self, phase: PositionPhase, now_ms: int) -> list[PartitionState]:
        """Partitions in a phase without a request in flight or a backoff."""
        with self.lock:
            return [
                state
                for state in self._states.values()
                if state.phase is phase and not state.in_flight and state.not_before_ms <= now_ms
            ]

    def update(
        self, state: PartitionState, turn: int, change: Callable[[PartitionState], None]
    ) -> bool:
        """Apply a response unless the partition was revoked or moved since the request."""
        with self.lock:
            if self._states.get(state.topic_partition) is not state or state.turn != turn:
                return False
            state.in_flight = False
            change(state)
            return True


def reset_by_policy(state: PartitionState, config: ConsumerConfig) -> bool:
    """Reset the position by auto_offset_reset; False if it is none."""
    timestamp = RESET_TIMESTAMPS.get(config.auto_offset_reset)
    if timestamp is not None:
        state.wait_for(PositionPhase.RESET, reset_timestamp=timestamp)
    return timestamp is not None
