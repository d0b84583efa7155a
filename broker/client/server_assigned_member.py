"""ServerAssignedMember: a member of a consumer group whose partitions the broker assigns.

            poll: heartbeat with epoch 0
   UNJOINED ───────────────────────────► JOINING ──── epoch ────► STABLE
      ▲                                                             │
      └─── fenced, unknown, poll too late, left (partitions lost) ──┘

    any ──► FAILED   refused permanently

There is no barrier: every heartbeat carries the changes of this side (topics, owned partitions),
every response those of the other (epoch, assignment). A separate thread sends all heartbeats. A
new assignment is applied inside `poll`: partitions that are no longer assigned are revoked, and the
next heartbeat reports them to the broker, which may then assign them to other members.
"""

import uuid
from concurrent.futures import Future
from typing import cast

from broker import concurrency
from broker.client.answers import code_of
from broker.client.api import GroupMetadata
from broker.client.classic_group_member import GroupConfig, MembershipState, settle
from broker.client.cluster import Cluster
from broker.client.consumer_protocol import group_by_topic
from broker.client.coordinator_link import CoordinatorLink
from broker.client.heartbeats import Heartbeats, HeartbeatSchedule
from broker.client.positions import Positions
from broker.client.subscription import Subscription
from broker.client.wake_signal import Signal
from broker.errors import BrokerError, ConnectionFailed, ErrorCode, MillstreamError
from broker.model import TopicPartition
from broker.protocol.messages.consumer_groups import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2
NO_EPOCH = -1

Target = tuple[tuple[bytes, int], ...]  # topic id and partition

LOST = frozenset({ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID})
RETRIED = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class ServerAssignedMember:
    """Stays in a group while `step` is called; group.protocol=consumer."""

    def __init__(
        self,
        cluster: Cluster,
        config: GroupConfig,
        subscription: Subscription,
        positions: Positions,
        signal: Signal,
    ) -> None:
        """The first step sends the first request."""
        self._cluster = cluster
        self._config = config
        self._subscription = subscription
        self._positions = positions
        self._signal = signal
        self.link = CoordinatorLink(cluster, config.group_id, signal)
        self._lock = concurrency.RLock()  # what the heartbeat thread and the caller both write
        self._state = MembershipState.UNJOINED
        self._member_id = str(uuid.UUID(int=cluster.random.getrandbits(128), version=4))
        self._epoch = NO_EPOCH
        self._target: Target | None = None
        self._topics_sent: frozenset[str] = frozenset()
        self._held_sent: frozenset[TopicPartition] | None = None  # None: report all partitions
        self._lost = False
        self._failure: MillstreamError | None = None
        schedule = HeartbeatSchedule(
            config.heartbeat_interval_ms, config.session_timeout_ms, config.max_poll_interval_ms
        )
        self._heartbeats = Heartbeats(
            self,
            schedule,
            cluster.clock,
            retry_backoff_ms=cluster.config.retry_backoff_ms,
            shared=None if cluster.threads is None else cluster.threads.heartbeats,
        )

    @property
    def metadata(self) -> GroupMetadata:
        """The current member id; its epoch stands for the generation."""
        with self._lock:
            if self._epoch < 0:
                return GroupMetadata(self._config.group_id)
            return GroupMetadata(
                self._config.group_id, self._epoch, self._member_id, self._config.group_instance_id
            )

    # --- the caller's thread ------------------------------------------------------------------

    def step(self) -> int | None:
        """Do what needs no waiting; None when the member is stable, else how long to wait."""
        self._heartbeats.polled()
        if self._failure is not None:
            raise self._failure
        if self._state in (MembershipState.UNJOINED, MembershipState.LEFT):
            self._join()
        if self._state is not MembershipState.STABLE:
            return self._cluster.config.request_timeout_ms
        wait_ms = self._reconcile()
        if self._has_changes():
            self._heartbeats.send_soon()
        return wait_ms

    def _join(self) -> None:
        if self._lost:
            self._lost = False
            self._subscription.prepare_join(lost=True)
        with self._lock:
            self._state = MembershipState.JOINING
            self._epoch = NO_EPOCH
            self._held_sent = None
            self._target = None
        self._heartbeats.joined()
        self._heartbeats.send_soon()
        self._heartbeats.start()  # last: a heartbeat in flight must count

    def _reconcile(self) -> int | None:
        """Apply the assignment; returns a wait if a topic's name is not known yet."""
        target = self._target
        if target is None:
            return None
        wanted = set()
        for topic_id, number in target:
            name = self._cluster.topic_name(topic_id)
            if name is None:
                self._cluster.invalidate()
                return self._cluster.config.retry_backoff_ms
            wanted.add(TopicPartition(name, number))
        with self._lock:
            if self._target is target:
                self._target = None
        if wanted != self._positions.assigned():
            self._subscription.apply_assignment(wanted)
        return None

    def _has_changes(self) -> bool:
        topics = self._subscription.topics or frozenset()
        held = frozenset(self._positions.assigned())
        return topics != self._topics_sent or held != self._held_sent

    def request_rejoin(self, reason: str) -> None:
        """Do nothing: only the broker decides when to rebalance."""

    def leave(self, *, timeout_ms: int = 5_000) -> None:
        """Leave the group; a static member only announces that it will return."""
        future = self._send_leave()
        with self._lock:
            self._forget(MembershipState.LEFT, lost=False)
        self._heartbeats.wake()
        if future is not None:
            settle(future, timeout_ms)

    def stop(self, *, timeout_ms: int = 5_000) -> None:
        """Leave the group and end the heartbeat thread."""
        self.leave(timeout_ms=timeout_ms)
        self._heartbeats.stop()

    def _send_leave(self) -> Future[object] | None:
        if self._epoch < 0:
            return None
        is_static = self._config.group_instance_id is not None
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._config.group_id,
            member_id=self._member_id,
            instance_id=self._config.group_instance_id,
            member_epoch=LEAVE_STATIC_EPOCH if is_static else LEAVE_EPOCH,
        )
        try:
            return self.link.send(request)
        except ConnectionFailed:
            return None  # the session times out

    def _forget(self, state: MembershipState, *, lost: bool) -> None:
        self._lost = lost
        self._state = state
        self._epoch = NO_EPOCH
        self._target = None
        self._held_sent = None

    # --- the heartbeat thread -----------------------------------------------------------------

    @property
    def needs_heartbeats(self) -> bool:
        """Whether the coordinator expects heartbeats now."""
        return self._state in (MembershipState.JOINING, MembershipState.STABLE)

    def send_heartbeat(self) -> Future[object] | None:
        """Send one heartbeat; None when the coordinator is unknown."""
        try:
            if self.link.step() is not None:
                return None
            with self._lock:
                epoch = self._epoch
                request = self._request()
            future = self.link.send(request)
        except ConnectionFailed:
            return None
        except BrokerError as error:
            self._fail(error)
            return None
        future.add_done_callback(lambda done: self._take(done, epoch))
        return future

    def _request(self) -> ConsumerGroupHeartbeatRequest:
        """The changes since the last heartbeat; everything in the first one and after a failure."""
        everything = self._held_sent is None
        topics = self._subscription.topics or frozenset()
        held = frozenset(self._positions.assigned()) if self._epoch >= 0 else frozenset()
        request = ConsumerGroupHeartbeatRequest(
            group_id=self._config.group_id,
            member_id=self._member_id,
            instance_id=self._config.group_instance_id,
            member_epoch=max(JOIN_EPOCH, self._epoch),
        )
        if everything:
            request.rebalance_timeout_ms = self._config.max_poll_interval_ms
            request.server_assignor = self._config.group_remote_assignor
        if everything or topics != self._topics_sent:
            request.subscribed_topic_names = sorted(topics)
        if everything or held != self._held_sent:
            request.topic_partitions = [
                TopicPartitions(topic_id=known.id, partitions=numbers)
                for topic, numbers in group_by_topic(held).items()
                if (known := self._cluster.known_topic(topic)) is not None
            ]
        self._topics_sent, self._held_sent = topics, held
        return request

    def _take(self, done: Future[object], epoch: int) -> None:
        try:
            answer = cast(ConsumerGroupHeartbeatResponse, done.result())
        except BrokerError as error:
            self._fail(error)
            return
        except MillstreamError:
            self._held_sent = None
            self.link.forget()
            return
        code = code_of(answer.error_code)
        with self._lock:
            if not self.needs_heartbeats or epoch != self._epoch:
                return  # it concerns an earlier membership
            if code is ErrorCode.NONE:
                self._learn(answer)
            elif code in LOST:
                self._forget(MembershipState.UNJOINED, lost=True)
            elif code in RETRIED:
                self._held_sent = None
                self.link.forget()
            else:
                reason = answer.error_message or code.name.lower().replace("_", " ")
                what = f'cannot stay in group "{self._config.group_id}"'
                self._fail(BrokerError(code, f"{what}: {reason}"))
        self._signal.set()

    def _learn(self, answer: ConsumerGroupHeartbeatResponse) -> None:
        self._state = MembershipState.STABLE
        self._member_id = answer.member_id or self._member_id
        self._epoch = answer.member_epoch
        if answer.assignment is not None:
            self._target = tuple(
                (topic.topic_id, number)
                for topic in answer.assignment.topic_partitions
                for number in topic.partitions
            )
        self._heartbeats.set_interval(answer.heartbeat_interval_ms)

    def _fail(self, error: MillstreamError) -> None:
        with self._lock:
            self._state = MembershipState.FAILED
            self._failure = error
        self._signal.set()

    def on_poll_timeout(self) -> None:
        """Leave the group: the caller has not polled for max.poll.interval.ms."""
        self._send_leave()
        with self._lock:
            self._forget(MembershipState.UNJOINED, lost=True)
        self._signal.set()

    def on_session_timeout(self) -> None:
        """Look for the coordinator again: no heartbeat was answered for a session timeout."""
        self.link.forget()
