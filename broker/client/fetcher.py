"""Fetcher: keeps one long-poll fetch per leader under way, ahead of the caller, within limits.

The transport's thread buffers responses and sends the next fetch immediately; the polling thread
takes records from the buffer. No fetch is sent for a partition that has a whole fetch buffered, nor
for any partition once fetch_buffer_bytes are buffered. A leader gets a fetch only when all its
partitions have room: otherwise an idle partition would hold the connection in a long poll while a
busy one runs dry.
"""

from collections.abc import Iterator
from concurrent.futures import Future
from typing import NamedTuple, cast

from broker import concurrency
from broker.batch.codec import BatchHeader, decode_rows
from broker.client.answers import code_of
from broker.client.api import ConsumerRecord, FetchedBatch
from broker.client.cluster import Cluster
from broker.client.consumer_config import ConsumerConfig
from broker.client.fetched import FetchedRun, unreadable
from broker.client.positions import NO_EPOCH, PartitionState, Positions, reset_by_policy
from broker.client.wake_signal import Signal
from broker.errors import BrokerError, CorruptBatch, ErrorCode, MillstreamError
from broker.model import AbortedTransaction, TopicPartition
from broker.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

NO_TOPIC_ID = bytes(16)
VERSION_WITH_NAMES = 12
ANSWER_MARGIN_MS = 30_000
LOOK_AGAIN_MS = 1_000  # if nothing happens: responses wake the thread

# Another broker is, or will soon be, the leader: refresh the metadata.
MOVED = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class RequestedPartition(NamedTuple):
    """The state of a partition when it was requested."""

    state: PartitionState
    turn: int
    offset: int


class Fetcher:
    """Fetches for all partitions of a consumer."""

    def __init__(
        self, cluster: Cluster, positions: Positions, config: ConsumerConfig, signal: Signal
    ) -> None:
        """Starts to fetch with the first `send_fetches`."""
        self._cluster = cluster
        self._positions = positions
        self._config = config
        self._signal = signal
        self._guard = concurrency.Lock()
        self._pumping = False
        self._again = False
        self._closed = False
        self._busy: set[int] = set()  # nodes with a fetch under way
        self._many_at_once = bool(getattr(cluster.transport, "takes_many_fetches", False))
        self._failures: dict[int, int] = {}
        self._not_before_ms: dict[int, int] = {}

    # --- fetching -----------------------------------------------------------------------------

    def send_fetches(self) -> int:
        """Send a fetch to every idle leader; returns the time in ms until the next call.

        Responses that are available immediately (from an embedded broker) call this again: a loop
        handles them, not recursion.
        """
        with self._guard:
            if self._pumping or self._closed:
                self._again = True
                return LOOK_AGAIN_MS
            self._pumping = True
        while True:
            self._again = False
            plan, wait_ms = self._plan()
            for node_id, asked in plan.items():
                self._ask(node_id, asked)
            with self._guard:
                if not self._again:
                    self._pumping = False
                    return wait_ms

    def close(self) -> None:
        """Send no more fetches."""
        self._closed = True

    def _plan(self) -> tuple[dict[int, list[RequestedPartition]], int]:
        """The partitions to fetch from each leader; called under the lock."""
        now_ms = self._cluster.clock.monotonic_ms()
        wait_ms = LOOK_AGAIN_MS
        plan: dict[int, list[RequestedPartition]] = {}
        with self._positions.lock:
            for state in self._positions.states():
                if state.fetchable and state.not_before_ms > now_ms:
                    wait_ms = min(wait_ms, state.not_before_ms - now_ms)
            for leader, states in self._ready(now_ms).items():
                pause_ms = self._not_before_ms.get(leader, 0) - now_ms
                if pause_ms > 0:
                    wait_ms = min(wait_ms, pause_ms)
                    continue
                self._busy.add(leader)
                plan[leader] = [
                    RequestedPartition(state, state.turn, state.fetch_offset) for state in states
                ]
                for state in states:
                    state.in_flight = True
        return plan, wait_ms

    def _ready(self, now_ms: int) -> dict[int, list[PartitionState]]:
        """The partitions to fetch, of leaders that are idle and whose partitions have room."""
        ready: dict[int, list[PartitionState]] = {}
        full: set[int] = set()
        states = self._positions.states()
        room = sum(state.buffered_bytes for state in states) < self._config.fetch_buffer_bytes
        for state in states:
            if not state.fetchable or state.not_before_ms > now_ms:
                continue
            leader = self._cluster.known_leader(state.topic_partition)
            if leader is None or (leader in self._busy and not self._many_at_once):
                continue
            if not room or state.buffered_bytes >= self._config.max_partition_fetch_bytes:
                full.add(leader)
            elif not state.in_flight:
                ready.setdefault(leader, []).append(state)
        return {leader: found for leader, found in ready.items() if leader not in full}

    def _ask(self, node_id: int, asked: list[RequestedPartition]) -> None:
        request, version_max = self._request(asked)
        timeout_ms = self._config.fetch_max_wait_ms + ANSWER_MARGIN_MS
        try:
            future = self._cluster.submit(
                node_id, request, timeout_ms=timeout_ms, version_max=version_max
            )
        except MillstreamError:
            self._finish(node_id, asked, None)
            return
        future.add_done_callback(lambda done: self._answered(node_id, asked, done))

    def _request(self, asked: list[RequestedPartition]) -> tuple[FetchRequest, int | None]:
        config = self._config
        topics: dict[str, FetchTopic] = {}
        version_max = None
        for state, _, offset in asked:
            name, number = state.topic_partition
            if name not in topics:
                known = self._cluster.known_topic(name)
                topic_id = NO_TOPIC_ID if known is None else known.id
                if topic_id == NO_TOPIC_ID:
                    version_max = VERSION_WITH_NAMES
                topics[name] = FetchTopic(topic=name, topic_id=topic_id)
            info = self._cluster.known_partition(state.topic_partition)
            topics[name].partitions.append(
                FetchPartition(
                    partition=number,
                    current_leader_epoch=NO_EPOCH if info is None else info.leader_epoch,
                    fetch_offset=offset,
                    partition_max_bytes=config.max_partition_fetch_bytes,
                )
            )
        request = FetchRequest(
            max_wait_ms=config.fetch_max_wait_ms,
            min_bytes=config.fetch_min_bytes,
            max_bytes=config.fetch_max_bytes,
            isolation_level=config.isolation,
            topics=list(topics.values()),
            rack_id=config.client_rack,
        )
        return request, version_max

    # --- responses, on the transport's thread ---------------------------------------------------

    def _answered(
        self, node_id: int, asked: list[RequestedPartition], done: Future[object]
    ) -> None:
        failed = done.cancelled() or done.exception() is not None
        self._finish(node_id, asked, None if failed else cast(FetchResponse, done.result()))

    def _finish(
        self, node_id: int, asked: list[RequestedPartition], response: FetchResponse | None
    ) -> None:
        with self._positions.lock:
            self._busy.discard(node_id)
            for state, turn, _ in asked:
                if state.turn == turn:
                    state.in_flight = False
            if response is None or response.error_code:
                self._back_off(node_id, asked)
            else:
                self._failures.pop(node_id, None)
                by_partition = {each.state.topic_partition: each for each in asked}
                for tp, data in self._partitions_of(response):
                    if tp in by_partition:
                        self._take(by_partition[tp], data)
        self._signal.set()
        if not self._closed:
            self.send_fetches()

    def _back_off(self, node_id: int, asked: list[RequestedPartition]) -> None:
        failures = self._failures[node_id] = self._failures.get(node_id, 0) + 1
        delay_ms = self._cluster.backoff.delay_ms(failures)
        self._not_before_ms[node_id] = self._cluster.clock.monotonic_ms() + delay_ms
        for topic in {each.state.topic_partition.topic for each in asked}:
            self._cluster.invalidate(topic)

    def _partitions_of(
        self, response: FetchResponse
    ) -> Iterator[tuple[TopicPartition, PartitionData]]:
        for topic in response.responses:
            name = topic.topic or self._cluster.topic_name(topic.topic_id)
            if name is not None:
                for data in topic.partitions:
                    yield TopicPartition(name, data.partition_index), data

    def _take(self, asked: RequestedPartition, data: PartitionData) -> None:
        state = asked.state
        if self._positions.get(state.topic_partition) is not state or state.turn != asked.turn:
            return  # revoked, or moved by a seek
        code = code_of(data.error_code)
        if code is not ErrorCode.NONE:
            self._take_error(asked, code, data)
            return
        state.learn(data.high_watermark, data.last_stable_offset, data.log_start_offset)
        if data.records is None or not len(data.records):
            return
        aborted = data.aborted_transactions if self._config.isolation else None
        try:
            run = FetchedRun(
                state.topic_partition,
                memoryview(cast(bytes, data.records)),
                offsets=(asked.offset, data.high_watermark),
                aborted=[AbortedTransaction(a.producer_id, a.first_offset) for a in aborted or ()],
                check_crcs=self._config.check_crcs,
            )
        except MillstreamError as error:
            error.at = error.at or str(state.topic_partition)
            state.error = error
            return
        state.append(run)

    def _take_error(self, asked: RequestedPartition, code: ErrorCode, data: PartitionData) -> None:
        state = asked.state
        tp = state.topic_partition
        delay_ms = self._cluster.config.retry_backoff_ms
        if code in MOVED:
            leader = data.current_leader
            if leader.leader_id >= 0 and self._cluster.learn_leader(
                tp, leader.leader_id, leader.leader_epoch
            ):
                return
            self._cluster.invalidate(tp.topic)
        elif code is ErrorCode.OFFSET_OUT_OF_RANGE:
            # Records that were fetched before are returned first: they are still valid.
            if state.position == asked.offset and not state.buffered:
                self._reset_position(state)
        else:
            state.error = BrokerError(code, f"cannot fetch from {tp}: {_text(code)}", at=str(tp))
        state.not_before_ms = self._cluster.clock.monotonic_ms() + delay_ms

    def _reset_position(self, state: PartitionState) -> None:
        offset = state.position
        if not reset_by_policy(state, self._config):
            state.move(offset)
            state.error = BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} of {state.topic_partition} is not in the log",
                hint='seek to an offset in the log, or set auto_offset_reset to "earliest" '
                'or "latest"',
            )

    # --- the polling thread -------------------------------------------------------------------

    def has_records(self) -> bool:
        """Whether fetched records are buffered."""
        return any(
            state.takeable and (state.buffered or state.decoded)
            for state in self._positions.states()
        )

    def raise_error(self) -> None:
        """Raise the error of a partition, once; the partition is retried after that.

        Records before the error are returned first: a caller may seek past the error.
        """
        for state in self._positions.states():
            if state.error is not None and not state.buffered:
                error, state.error = state.error, None
                raise error

    def take_records(self, count_max: int) -> list[ConsumerRecord]:
        """Records of all partitions in rotation, up to a maximum."""
        found: list[ConsumerRecord] = []
        for state in self._positions.states():
            if len(found) >= count_max:
                break
            if not state.takeable:
                continue
            before = len(found)
            try:
                self._take_from(state, found, count_max)
            except MillstreamError as error:
                self._defer_error(state, error)
            if len(found) > before:
                self._positions.rotate(state.topic_partition)
        return found

    def _take_from(
        self, state: PartitionState, found: list[ConsumerRecord], count_max: int
    ) -> None:
        while len(found) < count_max and (head := self._peek(state)) is not None:
            batch, header = head
            state.has_append_time = header.has_log_append_time
            records = state.decoded
            if not records:
                tp = state.topic_partition
                try:
                    records = decode_rows(batch, 0, ConsumerRecord, tp)
                except CorruptBatch as error:
                    raise unreadable(tp, header, state.position, error) from error
                if header.base_offset < state.position:
                    records = [record for record in records if record.offset >= state.position]
            room = count_max - len(found)
            found += records[:room]
            if len(records) > room:
                state.decoded = records[room:]
                state.position = records[room].offset
                state.position_epoch = header.leader_epoch
            else:
                self._skip_batch(
                    state, header
                )  # may raise at a bad batch: the records before it are kept

    def take_batches(self) -> list[FetchedBatch]:
        """All buffered batches; a batch that was returned in part is returned whole."""
        found: list[FetchedBatch] = []
        for state in self._positions.states():
            if not state.takeable:
                continue
            try:
                while (head := self._peek(state)) is not None:
                    batch, header = head
                    found.append(FetchedBatch(state.topic_partition, batch, header, state.position))
                    self._skip_batch(state, header)
            except MillstreamError as error:
                self._defer_error(state, error)
        return found

    def _peek(self, state: PartitionState) -> tuple[memoryview, BatchHeader] | None:
        """The first batch with records at or after the position."""
        while state.buffered:
            run = state.buffered[0]
            head = run.peek()
            if head is not None and head[1].next_offset > state.position:
                return head
            if head is not None:
                run.advance()
                continue
            with self._positions.lock:
                # Markers and aborted batches at the end of the run are skipped, too.
                state.position = max(state.position, run.next_offset)
                state.drop_first()
        return None

    def _skip_batch(self, state: PartitionState, header: BatchHeader) -> None:
        state.buffered[0].advance()
        state.decoded = []
        state.position = header.next_offset
        state.position_epoch = header.leader_epoch
        self._peek(state)  # so that the position moves past invisible records

    def _defer_error(self, state: PartitionState, error: MillstreamError) -> None:
        """Keep an error for the next poll, after the records before it were returned."""
        with self._positions.lock:
            state.move(state.position, state.position_epoch)
            error.at = error.at or f"{state.topic_partition} after offset {state.position - 1}"
            error.hint = error.hint or "seek past the batch to continue without it"
            state.error = error


def _text(code: ErrorCode) -> str:
    return code.name.lower().replace("_", " ")
