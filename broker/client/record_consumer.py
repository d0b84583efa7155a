"""Consumer: reads records over any transport, alone or as a member of a group.

One thread uses a consumer (except `wakeup`). `poll` does all work of that thread: it takes part in
the group, runs callbacks, commits, finds positions and returns the records that the fetcher has
buffered. Heartbeats have their own thread, and fetches run on the transport's.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Self, TypeVar

from broker.client.api import (
    CommitCallback,
    ConsumerRecord,
    FetchedBatch,
    FoundOffset,
    GroupMetadata,
    OffsetAndMetadata,
    RebalanceListener,
)
from broker.client.assignors.api import NO_GENERATION
from broker.client.classic_group_member import GroupConfig, GroupMember
from broker.client.cluster import Cluster
from broker.client.committer import Committer
from broker.client.consumer_config import ConsumerConfig
from broker.client.coordinator_link import CoordinatorLink
from broker.client.fetcher import Fetcher
from broker.client.offset_lookup import list_offsets
from broker.client.position_finder import PositionFinder
from broker.client.positions import NO_OFFSET, PositionPhase, Positions
from broker.client.server_assigned_member import ServerAssignedMember
from broker.client.subscription import Subscription
from broker.client.wake_signal import Signal
from broker.errors import BrokerError, ClientError, ErrorCode, MillstreamError, RequestTimeout
from broker.linear_patterns import Pattern
from broker.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition

T = TypeVar("T")

CLOSE_TIMEOUT_MS = 30_000


class WokenUp(ClientError):
    """Raised by `poll` after a call of `wakeup`."""


class Consumer:
    """Reads records, alone or as a member of a group.

    One thread uses a consumer; only `wakeup` may be called by others. Callbacks run inside `poll`,
    `unsubscribe` and `close`. The default of timeouts is default_api_timeout_ms.
    """

    def __init__(
        self, cluster: Cluster, config: ConsumerConfig, group: GroupConfig | None = None
    ) -> None:
        """The first poll sends the first request; the cluster is closed with the consumer."""
        self._cluster = cluster
        self._clock = cluster.clock
        self._config = config
        self._signal = Signal(cluster.clock)
        self._positions = Positions()
        self._fetcher = Fetcher(cluster, self._positions, config, self._signal)
        self._member: GroupMember | ServerAssignedMember | None = None
        self._committer: Committer | None = None
        link: CoordinatorLink | None = None
        self._subscription = Subscription(
            cluster, self._positions, config, self._signal, before_rebalance=self._commit_quietly
        )
        if group is not None:
            self._member = self._open_member(group)
            link = self._member.link
            self._committer = Committer(cluster, link, self.group_metadata)
        self._finder = PositionFinder(
            cluster,
            self._positions,
            config,
            self._signal,
            None if group is None or link is None else (link, group.group_id),
        )
        self._subscribed = False
        self._woken = False
        self._closed = False
        self.poll_due_in_ms = 0  # as of the last poll
        self._commit_due_ms = cluster.clock.monotonic_ms() + config.auto_commit_interval_ms
        cluster.on_refresh(self._signal.set)

    def _open_member(self, group: GroupConfig) -> GroupMember | ServerAssignedMember:
        if group.group_protocol == "consumer":
            return ServerAssignedMember(
                self._cluster, group, self._subscription, self._positions, self._signal
            )
        return GroupMember(self._cluster, group, self._subscription, signal=self._signal)

    # --- what to read -------------------------------------------------------------------------

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] | Pattern,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Read topics as a member of the group: by name, or all whose whole name matches."""
        self._check_open()
        if self._member is None:
            raise ClientError("a subscription needs a group", hint='set "group_id", or use assign')
        if isinstance(topics, str):
            raise ClientError(f'topics is the string "{topics}"', hint="pass a list of names")
        if not self._subscribed and self._positions.assigned():
            raise ClientError("partitions are assigned manually", hint="unsubscribe first")
        self._subscribed = True
        self._subscription.subscribe(topics, listener)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read exactly these partitions, without group management."""
        self._check_open()
        if self._subscribed:
            raise ClientError("this consumer is subscribed to topics", hint="unsubscribe first")
        wanted = list(partitions)
        self._cluster.follow({tp.topic for tp in wanted})
        self._positions.assign(wanted)

    def unsubscribe(self) -> None:
        """Read nothing; leave the group."""
        if self._subscribed and self._member is not None:
            self._commit_quietly()
            self._subscription.revoke_all()
            self._member.leave()
            self._subscription.unsubscribe()
        self._subscribed = False
        self._positions.assign(())

    def assignment(self) -> set[TopicPartition]:
        """The assigned partitions."""
        return self._positions.assigned()

    def subscription(self) -> set[str]:
        """The subscribed topics."""
        return set(self._subscription.topics or ())

    def group_metadata(self) -> GroupMetadata:
        """This member of the group, for offsets committed in a transaction."""
        if self._member is None:
            raise ClientError("this consumer has no group", hint='set "group_id"')
        return self._member.metadata

    def enforce_rebalance(self, reason: str = "the application asked for it") -> None:
        """Make the group rebalance at the next poll."""
        if self._member is not None:
            self._member.request_rejoin(reason)

    # --- reading ------------------------------------------------------------------------------

    def poll(self, timeout_ms: int = 0, max_records: int | None = None) -> list[ConsumerRecord]:
        """Return fetched records, or wait for some until the timeout.

        A batch that cannot be read raises CorruptBatchError, after the records before it and until
        the caller seeks to its `next_offset`; other partitions continue.
        """
        count_max = max_records or self._config.max_poll_records
        return self._poll(timeout_ms, lambda: self._fetcher.take_records(count_max))

    def poll_batches(self, timeout_ms: int = 0) -> list[FetchedBatch]:
        """Like `poll`, but returns whole batches, not decoded; see FetchedBatch."""
        return self._poll(timeout_ms, self._fetcher.take_batches)

    def _poll(self, timeout_ms: int, take: Callable[[], list[T]]) -> list[T]:
        self._check_open()
        if not self._subscribed and not self._positions.assigned():
            raise ClientError(
                "this consumer has nothing to read", hint="subscribe to topics or assign partitions"
            )
        # Raised before records are returned: those of other partitions must not hide it forever.
        self._fetcher.raise_error()
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while True:
            if self._woken:
                self._woken = False
                raise WokenUp("the consumer was woken up")
            wait_ms = self._step()
            found = take()
            wait_ms = self.poll_due_in_ms = min(wait_ms, self._fetcher.send_fetches())
            if found:
                return found
            self._fetcher.raise_error()
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0 and not self._fetcher.has_records():
                return found
            self._signal.wait(min(wait_ms, left_ms))

    def _step(self) -> int:
        """Do the work of the group, commits and positions; returns the time until the next step."""
        waits: list[int | None] = [self._cluster.refresh_soon()]
        if self._subscribed and self._member is not None:
            wait_ms = self._subscription.step()
            waits.append(self._member.step() if wait_ms is None else wait_ms)
        if self._committer is not None:
            self._commit_when_due()
            waits.append(self._committer.step())
        waits.append(self._finder.step())
        return min(wait_ms for wait_ms in waits if wait_ms is not None)

    def wakeup(self) -> None:
        """End the current or the next poll with WokenUp; any thread may call it."""
        self._woken = True
        self._signal.set()

    def on_ready(self, listener: Callable[[], None]) -> None:
        """Set a function that any thread calls when a poll may return records or has work to do.

        For callers that poll many consumers without waiting; `poll_due_in_ms` is the time until the
        next poll is due.
        """
        self._signal.listener = listener

    # --- where to read ------------------------------------------------------------------------

    def seek(self, tp: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue reading at an offset."""
        target = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        if target.offset < 0:
            raise ClientError(f"cannot seek {tp} to offset {target.offset}")
        with self._positions.lock:
            self._positions.state(tp).move(target.offset, target.leader_epoch)
        self._signal.set()

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Continue at the first record of these partitions, or of all."""
        self._seek_to_time(partitions, EARLIEST_TIMESTAMP)

    def seek_to_end(self, partitions: Iterable[TopicPartition] = ()) -> None:
        """Continue at the end of these partitions, or of all."""
        self._seek_to_time(partitions, LATEST_TIMESTAMP)

    def _seek_to_time(self, partitions: Iterable[TopicPartition], timestamp: int) -> None:
        with self._positions.lock:
            for tp in list(partitions) or self._positions.assigned():
                self._positions.state(tp).wait_for(PositionPhase.RESET, reset_timestamp=timestamp)
        self._signal.set()

    def position(self, tp: TopicPartition, timeout_ms: int | None = None) -> int:
        """The offset of the next record; waits until it is found."""
        state = self._positions.state(tp)
        limit_ms = self._cluster.config.default_api_timeout_ms if timeout_ms is None else timeout_ms
        deadline_ms = self._clock.monotonic_ms() + limit_ms
        while state.position == NO_OFFSET:
            wait_ms = min(self._cluster.refresh_soon(), self._finder.step() or 0)
            self._fetcher.raise_error()
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if left_ms <= 0:
                raise RequestTimeout(f"the position of {tp} was not found within {limit_ms} ms")
            self._signal.wait(min(wait_ms, left_ms))
        return state.position

    def current_lag(self, tp: TopicPartition) -> int | None:
        """The number of records still to read; None if it is unknown.

        Then the next poll requests it, as Kafka's consumer does: the fetch of an idle partition may
        wait at the broker for long.
        """
        state = self._positions.state(tp)
        if state.position < 0:
            return None
        end = state.end(self._config.isolation)
        if end < 0:
            self._finder.request_end(state)
            return None
        return max(0, end - state.position)

    def has_append_time(self, tp: TopicPartition) -> bool:
        """Whether the last records of a partition have log append times."""
        return self._positions.state(tp).has_append_time

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return no records of these partitions until they are resumed; they stay assigned."""
        self._set_paused(partitions, paused=True)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records of these partitions again."""
        self._set_paused(partitions, paused=False)

    def _set_paused(self, partitions: Iterable[TopicPartition], *, paused: bool) -> None:
        with self._positions.lock:
            states = [self._positions.state(tp) for tp in partitions]
            resumed = not paused and any(state.paused for state in states)
            for state in states:
                state.paused = paused
        if resumed:  # only then a poll may return new records
            self._signal.set()

    def paused(self) -> set[TopicPartition]:
        return {state.topic_partition for state in self._positions.states() if state.paused}

    # --- offsets of the log -------------------------------------------------------------------

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition."""
        return self._offsets_at(partitions, EARLIEST_TIMESTAMP, timeout_ms)

    def end_offsets(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record that this consumer can read."""
        return self._offsets_at(partitions, LATEST_TIMESTAMP, timeout_ms)

    def _offsets_at(
        self, partitions: Iterable[TopicPartition], timestamp: int, timeout_ms: int | None
    ) -> dict[TopicPartition, int]:
        found = list_offsets(
            self._cluster,
            dict.fromkeys(partitions, timestamp),
            isolation=self._config.isolation,
            timeout_ms=timeout_ms,
        )
        return {tp: offset.offset for tp, offset in found.items()}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: int | None = None
    ) -> dict[TopicPartition, FoundOffset | None]:
        """The first record at or after each time; None if all records are older."""
        found = list_offsets(
            self._cluster, timestamps, isolation=self._config.isolation, timeout_ms=timeout_ms
        )
        return {tp: None if offset.offset < 0 else offset for tp, offset in found.items()}

    def partitions_for(self, topic: str, timeout_ms: int | None = None) -> list[int]:
        """The partitions of a topic."""
        return self._cluster.partitions(topic, timeout_ms=timeout_ms)

    # --- committing ---------------------------------------------------------------------------

    def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        timeout_ms: int | None = None,
    ) -> None:
        """Commit the positions, or these offsets, and wait for the response."""
        committer = self._group_committer()
        committer.commit(
            self._positions_to_commit() if offsets is None else offsets, timeout_ms=timeout_ms
        )

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """Commit without waiting; a later `poll` or `close` calls the callback."""
        committer = self._group_committer()
        committer.commit_async(
            self._positions_to_commit() if offsets is None else offsets, callback
        )

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offsets of the group; None if there is no commit."""
        wanted = set(partitions)
        if self._committer is None:
            raise ClientError("this consumer has no group", hint='set "group_id"')
        found = self._committer.committed(wanted, timeout_ms=timeout_ms)
        return {tp: found.get(tp) for tp in wanted}

    def _group_committer(self) -> Committer:
        self._check_open()
        if self._committer is None:
            raise ClientError("nothing can be committed without a group", hint='set "group_id"')
        if self._subscribed and self.group_metadata().generation_id == NO_GENERATION:
            raise BrokerError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                "this consumer is not currently a member of the group",
                hint="poll until partitions are assigned",
            )
        return self._committer

    def _positions_to_commit(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {
            state.topic_partition: OffsetAndMetadata(state.position, state.position_epoch)
            for state in self._positions.states()
            if state.position != NO_OFFSET
        }

    def _commit_when_due(self) -> None:
        now_ms = self._clock.monotonic_ms()
        if self._config.enable_auto_commit and now_ms >= self._commit_due_ms:
            self._commit_due_ms = now_ms + self._config.auto_commit_interval_ms
            offsets = self._positions_to_commit()
            is_member = not self._subscribed or self.group_metadata().generation_id >= 0
            committer = self._committer
            if offsets and is_member and committer is not None and committer.is_idle:
                committer.commit_async(offsets, None)

    def _commit_quietly(self, timeout_ms: int = 5_000) -> None:
        """Commit before partitions are revoked; if it fails, records are read again, not lost."""
        if self._committer is None or not self._config.enable_auto_commit:
            return
        try:
            self._group_committer().commit(self._positions_to_commit(), timeout_ms=timeout_ms)
        except MillstreamError:
            return

    # --- the end ------------------------------------------------------------------------------

    def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS) -> None:
        """Commit if auto commit is enabled, revoke the partitions, leave the group and stop."""
        if self._closed:
            return
        try:
            self._fetcher.close()
            self._commit_quietly(timeout_ms)
            if self._committer is not None:
                self._committer.finish(timeout_ms)
            if self._subscribed:
                self._subscription.revoke_all()
        finally:
            self._closed = True
            if self._member is not None:
                self._member.stop(timeout_ms=min(timeout_ms, 5_000))
            self._cluster.close()

    def _check_open(self) -> None:
        if self._closed:
            raise ClientError("the consumer is closed")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
