"""PositionFinder: finds the positions of partitions that have none or must validate them.

Three requests, each sent without waiting and repeated until answered: for the committed offset of
the group (COMMITTED), for the offset of the start, the end or a time (RESET), and whether the new
leader's log still has the records that were read (VALIDATE). The order of the phases is drawn in
broker/client/positions.py. It also looks up the end of a log for callers that need the lag before a
fetch reports it: the fetch of an idle partition may wait at the broker for long.
"""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import cast

from broker.client.answers import code_of
from broker.client.api import FoundOffset, GroupMetadata, OffsetAndMetadata
from broker.client.cluster import Cluster
from broker.client.consumer_config import ConsumerConfig
from broker.client.coordinator_link import CoordinatorLink
from broker.client.group_offsets import (
    VERSION_WITH_NAMES,
    fetched_error,
    fetched_offsets,
    list_offsets_request,
    listed_offsets,
    offset_fetch_request,
)
from broker.client.positions import (
    NO_EPOCH,
    PartitionState,
    PositionPhase,
    Positions,
    reset_by_policy,
)
from broker.client.retry import is_retriable
from broker.client.wake_signal import Signal
from broker.errors import BrokerError, ClientError, ErrorCode, MillstreamError
from broker.model import LATEST_TIMESTAMP, TopicPartition
from broker.protocol.messages.fetch import (
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from broker.protocol.messages.offsets import OffsetFetchResponse

COORDINATOR_GONE = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
NO_END_OFFSET = -1

Turns = dict[TopicPartition, tuple[PartitionState, int]]


class PositionFinder:
    """Finds positions for a consumer."""

    def __init__(
        self,
        cluster: Cluster,
        positions: Positions,
        config: ConsumerConfig,
        signal: Signal,
        group: tuple[CoordinatorLink, str] | None,
    ) -> None:
        self._cluster = cluster
        self._positions = positions
        self._config = config
        self._signal = signal
        self._group = group
        self._requested_ends: dict[TopicPartition, PartitionState] = {}
        self._ends_not_before_ms = 0

    def step(self) -> int | None:
        """Send the requests that are due; None when no partition waits, else the wait in ms."""
        now_ms = self._cluster.clock.monotonic_ms()
        self._validate_after_leader_change()
        wait_ms = self._find_committed(now_ms)
        self._ask_leaders(PositionPhase.RESET, now_ms)
        self._ask_leaders(PositionPhase.VALIDATE, now_ms)
        if self._requested_ends and now_ms >= self._ends_not_before_ms:
            self._find_ends()
        missing = [s for s in self._positions.states() if s.phase is not PositionPhase.FETCHING]
        if not missing:
            return None
        pauses = [s.not_before_ms - now_ms for s in missing if s.not_before_ms > now_ms]
        waits = [wait_ms, *pauses, self._cluster.config.request_timeout_ms]
        return min(wait for wait in waits if wait is not None)

    # --- committed offsets --------------------------------------------------------------------

    def _find_committed(self, now_ms: int) -> int | None:
        waiting = self._positions.waiting(PositionPhase.COMMITTED, now_ms)
        if not waiting:
            return None
        if self._group is None:
            with self._positions.lock:
                for state in waiting:
                    self._reset_by_policy(state)
            return None
        link, group_id = self._group
        if (wait_ms := link.step()) is not None:
            return wait_ms
        turns = self._mark(waiting)
        request = offset_fetch_request(GroupMetadata(group_id), turns)
        send = partial(link.send, request, version_max=VERSION_WITH_NAMES)
        self._ask(turns, send, self._take_committed)
        return None

    def _take_committed(self, turns: Turns, answer: object) -> None:
        response = cast(OffsetFetchResponse, answer)
        whole = code_of(fetched_error(response))
        if whole is not ErrorCode.NONE:
            raise BrokerError(whole, f"cannot fetch committed offsets: {_text(whole)}")
        found = fetched_offsets(response)
        for tp, (state, turn) in turns.items():
            self._positions.update(
                state, turn, partial(self._start_at_committed, committed=found.get(tp))
            )

    def _start_at_committed(
        self, state: PartitionState, committed: OffsetAndMetadata | ErrorCode | None
    ) -> None:
        match committed:
            case OffsetAndMetadata():
                state.move(committed.offset, committed.leader_epoch)
            case ErrorCode():
                what = f"cannot fetch the committed offset of {state.topic_partition}"
                self._defer_error(state, BrokerError(committed, f"{what}: {_text(committed)}"))
            case None:
                self._reset_by_policy(state)

    def _reset_by_policy(self, state: PartitionState) -> None:
        if not reset_by_policy(state, self._config):
            state.error = ClientError(
                f"no offset is committed for {state.topic_partition}",
                hint='seek, or set auto_offset_reset to "earliest" or "latest"',
            )

    # --- offsets by time, and offsets of leader epochs ----------------------------------------

    def _ask_leaders(self, phase: PositionPhase, now_ms: int) -> None:
        by_leader: dict[int, list[PartitionState]] = {}
        for state in self._positions.waiting(phase, now_ms):
            leader = self._cluster.known_leader(state.topic_partition)
            if leader is None:
                self._cluster.invalidate(state.topic_partition.topic)
            else:
                by_leader.setdefault(leader, []).append(state)
        for leader, states in by_leader.items():
            turns = self._mark(states)
            if phase is PositionPhase.RESET:
                request: object = list_offsets_request(
                    {tp: state.reset_timestamp for tp, (state, _) in turns.items()},
                    isolation=self._config.isolation,
                    timeout_ms=self._cluster.config.request_timeout_ms,
                )
                take = self._take_listed
            else:
                request = self._epoch_request(states)
                take = self._take_epochs
            self._ask(turns, partial(self._cluster.submit, leader, request), take)

    def _take_listed(self, turns: Turns, answer: object) -> None:
        found = listed_offsets(cast(ListOffsetsResponse, answer))
        for tp, (state, turn) in turns.items():
            self._positions.update(state, turn, partial(self._start_at_listed, found=found.get(tp)))

    def _start_at_listed(
        self, state: PartitionState, found: FoundOffset | ErrorCode | None
    ) -> None:
        match found:
            case FoundOffset():
                state.move(found.offset)
                state.leader_epoch = found.leader_epoch
            case ErrorCode():
                what = f"cannot find an offset of {state.topic_partition}"
                self._defer_error(state, BrokerError(found, f"{what}: {_text(found)}"))
            case None:
                self._pause(state)

    # --- ends of logs -------------------------------------------------------------------------

    def request_end(self, state: PartitionState) -> None:
        """Look up the end of a partition; called by the polling thread."""
        if not state.end_asked and state.topic_partition not in self._requested_ends:
            self._requested_ends[state.topic_partition] = state
            if self._cluster.clock.monotonic_ms() >= self._ends_not_before_ms:
                self._signal.set()

    def _find_ends(self) -> None:
        wanted, self._requested_ends = self._requested_ends, {}
        by_leader: dict[int, list[PartitionState]] = {}
        for tp, state in wanted.items():
            if self._positions.get(tp) is not state or state.end(self._config.isolation) >= 0:
                continue
            leader = self._cluster.known_leader(tp)
            if leader is None:
                self._pause_ends()
            else:
                by_leader.setdefault(leader, []).append(state)
        for leader, states in by_leader.items():
            request = list_offsets_request(
                {state.topic_partition: LATEST_TIMESTAMP for state in states},
                isolation=self._config.isolation,
                timeout_ms=self._cluster.config.request_timeout_ms,
            )
            for state in states:
                state.end_asked = True
            try:
                future = self._cluster.submit(leader, request)
            except MillstreamError:
                self._end_answered(states, None)
            else:
                future.add_done_callback(partial(self._end_answered, states))

    def _end_answered(self, states: list[PartitionState], done: Future[object] | None) -> None:
        """Store the ends, unless a fetch was faster; callers that still need one ask again."""
        found: Mapping[TopicPartition, FoundOffset | ErrorCode] = {}
        if done is not None and not done.cancelled() and done.exception() is None:
            found = listed_offsets(cast(ListOffsetsResponse, done.result()))
        with self._positions.lock:
            for state in states:
                state.end_asked = False
                end = found.get(state.topic_partition)
                if isinstance(end, FoundOffset):
                    state.learn_end(end.offset, self._config.isolation)
                else:
                    self._pause_ends()
        self._signal.set()

    def _pause_ends(self) -> None:
        pause_ms = self._cluster.config.retry_backoff_ms
        self._ends_not_before_ms = self._cluster.clock.monotonic_ms() + pause_ms

    def _epoch_request(self, states: Iterable[PartitionState]) -> OffsetForLeaderEpochRequest:
        topics: dict[str, OffsetForLeaderTopic] = {}
        for state in states:
            name, number = state.topic_partition
            info = self._cluster.known_partition(state.topic_partition)
            topics.setdefault(name, OffsetForLeaderTopic(topic=name)).partitions.append(
                OffsetForLeaderPartition(
                    partition=number,
                    current_leader_epoch=NO_EPOCH if info is None else info.leader_epoch,
                    leader_epoch=state.position_epoch,
                )
            )
        return OffsetForLeaderEpochRequest(replica_id=-1, topics=list(topics.values()))

    def _take_epochs(self, turns: Turns, answer: object) -> None:
        for topic in cast(OffsetForLeaderEpochResponse, answer).topics:
            for item in topic.partitions:
                asked = turns.get(TopicPartition(topic.topic, item.partition))
                if asked is not None:
                    change = partial(
                        self._check_truncation,
                        code=code_of(item.error_code),
                        end=(item.end_offset, item.leader_epoch),
                    )
                    self._positions.update(*asked, change)

    def _check_truncation(
        self, state: PartitionState, code: ErrorCode, end: tuple[int, int]
    ) -> None:
        end_offset, epoch = end
        if code is not ErrorCode.NONE:
            what = f"cannot check the leader epoch of {state.topic_partition}"
            self._defer_error(state, BrokerError(code, f"{what}: {_text(code)}"))
        elif end_offset != NO_END_OFFSET and end_offset >= state.position:
            state.phase = PositionPhase.FETCHING
        elif self._config.auto_offset_reset == "none":
            state.error = ClientError(
                f"{state.topic_partition} was truncated to offset {end_offset}, "
                f"this consumer has read up to {state.position}",
                hint="seek to the offset to continue from",
            )
            state.phase = PositionPhase.FETCHING
        elif end_offset == NO_END_OFFSET:
            reset_by_policy(state, self._config)
        else:
            state.move(end_offset, epoch)

    def _validate_after_leader_change(self) -> None:
        with self._positions.lock:
            for state in self._positions.states():
                if state.phase is not PositionPhase.FETCHING:
                    continue
                info = self._cluster.known_partition(state.topic_partition)
                if info is None or info.leader_epoch <= state.leader_epoch:
                    continue
                before, state.leader_epoch = state.leader_epoch, info.leader_epoch
                if before != NO_EPOCH and state.position_epoch != NO_EPOCH:
                    state.move(state.position, state.position_epoch)
                    state.phase = PositionPhase.VALIDATE

    # --- common -------------------------------------------------------------------------------

    def _mark(self, states: Iterable[PartitionState]) -> Turns:
        with self._positions.lock:
            for state in states:
                state.in_flight = True
            return {state.topic_partition: (state, state.turn) for state in states}

    def _ask(
        self,
        turns: Turns,
        send: Callable[[], Future[object]],
        take: Callable[[Turns, object], None],
    ) -> None:
        def answered(done: Future[object]) -> None:
            try:
                take(turns, done.result())
            except MillstreamError as error:
                self._fail(turns, error)
            self._signal.set()

        try:
            future = send()
        except MillstreamError as error:
            self._fail(turns, error)
        else:
            future.add_done_callback(answered)

    def _fail(self, turns: Turns, error: MillstreamError) -> None:
        if isinstance(error, BrokerError) and error.code in COORDINATOR_GONE and self._group:
            self._group[0].forget()
        for state, turn in turns.values():
            self._positions.update(state, turn, partial(self._defer_error, error=error))

    def _defer_error(self, state: PartitionState, error: MillstreamError) -> None:
        if not is_retriable(error):
            state.error = error
        else:
            self._cluster.invalidate(state.topic_partition.topic)
        self._pause(state)

    def _pause(self, state: PartitionState) -> None:
        pause_ms = self._cluster.config.retry_backoff_ms
        state.not_before_ms = self._cluster.clock.monotonic_ms() + pause_ms


def _text(code: ErrorCode) -> str:
    return code.name.lower().replace("_", " ")
