"""GroupMember: a member of a classic group, of any protocol type.

              poll: revoke, then join
     UNJOINED ────────────────────────► JOINING
      ▲  ▲ ▲                              │ all members have joined
      │  │ └── join or sync refused ──────┤ (the leader assigns)
      │  │                                ▼
      │  └──── another rebalance ────── SYNCING
      │                                   │ assignment
      │                                   ▼
      └──── rebalance, kicked out, ◄─── STABLE
            poll too late, metadata changed

    any ──► FAILED   fenced by another with the same instance id, or refused permanently
    any ──► LEFT     left on request; the next poll joins again

The caller's thread joins, syncs and runs callbacks, inside `poll`. A thread of its own sends
heartbeats in SYNCING and STABLE; it only records the responses of the coordinator, and the next
`poll` acts on them. A member that is kicked out (unknown member, old generation, poll too late)
loses its generation: its partitions are lost, not revoked, as others may already own them.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from enum import Enum
from typing import cast

from broker import concurrency
from broker.client.answers import code_of
from broker.client.api import GroupMetadata, GroupProtocol, JoinedMember
from broker.client.assignors.api import NO_GENERATION
from broker.client.cluster import Cluster
from broker.client.config import one_of
from broker.client.coordinator_link import CoordinatorLink
from broker.client.heartbeats import Heartbeats, HeartbeatSchedule
from broker.client.wake_signal import Signal
from broker.errors import BrokerError, ConfigError, ConnectionFailed, ErrorCode, MillstreamError
from broker.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

NO_MEMBER = ""
JOIN_ANSWER_MARGIN_MS = 5_000


class MembershipState(Enum):
    """The states of a member; the transitions are drawn at the top."""

    UNJOINED = "unjoined"
    JOINING = "joining"
    SYNCING = "syncing"
    STABLE = "stable"
    FAILED = "failed"
    LEFT = "left"


class Reaction(Enum):
    """How a member reacts to an error code of the coordinator."""

    RETRY = "try again after a pause"
    FIND_COORDINATOR = "the coordinator moved"
    REJOIN = "join again with the same id"
    LOSE_GENERATION = "join again with the same id; the partitions are lost"
    LOSE_MEMBERSHIP = "join again as a new member; the partitions are lost"
    FAIL = "the user must resolve it"


REACTIONS = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: Reaction.RETRY,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: Reaction.FIND_COORDINATOR,
    ErrorCode.NOT_COORDINATOR: Reaction.FIND_COORDINATOR,
    ErrorCode.REQUEST_TIMED_OUT: Reaction.FIND_COORDINATOR,
    ErrorCode.REBALANCE_IN_PROGRESS: Reaction.REJOIN,
    ErrorCode.ILLEGAL_GENERATION: Reaction.LOSE_GENERATION,
    ErrorCode.UNKNOWN_MEMBER_ID: Reaction.LOSE_MEMBERSHIP,
}


@dataclass(frozen=True, slots=True)
class GroupConfig:
    """The settings of a member of a group."""

    group_id: str
    group_instance_id: str | None = None
    leave_group_on_close: bool | None = None  # None: unless there is a group_instance_id
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    group_protocol: str = "classic"  # "consumer": the broker assigns, and has its own timeouts
    group_remote_assignor: str | None = None

    def __post_init__(self) -> None:
        if not self.group_id:
            raise ConfigError('"group_id" is empty', hint="set the name of the group")
        if not 0 < self.heartbeat_interval_ms < self.session_timeout_ms:
            raise ConfigError(
                f'"heartbeat_interval_ms" is {self.heartbeat_interval_ms}',
                hint=f'it must be below "session_timeout_ms", {self.session_timeout_ms}',
            )
        one_of("group_protocol", self.group_protocol, ("classic", "consumer"))
        if self.max_poll_interval_ms <= 0:
            raise ConfigError(f'"max_poll_interval_ms" is {self.max_poll_interval_ms}')


class GroupMember:
    """Joins a group and stays in it while `poll` is called, which also runs callbacks."""

    def __init__(
        self,
        cluster: Cluster,
        config: GroupConfig,
        protocol: GroupProtocol,
        *,
        signal: Signal | None = None,
    ) -> None:
        """The first poll sends the first request."""
        self._cluster = cluster
        self._config = config
        self._protocol = protocol
        self._clock = cluster.clock
        self._signal = signal or Signal(cluster.clock)
        self.link = CoordinatorLink(cluster, config.group_id, self._signal)
        self._lock = concurrency.RLock()  # what the heartbeat thread and the caller both write
        self._state = MembershipState.UNJOINED
        self._generation = NO_GENERATION
        self._member_id = NO_MEMBER
        self._protocol_name = ""
        self._lost = False
        self._prepared = False
        self._rejoin_reason = ""
        self._failure: MillstreamError | None = None
        self._waiting: Future[object] | None = None
        self._not_before_ms = 0
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

    # --- the interface ------------------------------------------------------------------------

    @property
    def state(self) -> MembershipState:
        """The state of the membership."""
        return self._state

    @property
    def metadata(self) -> GroupMetadata:
        """The current member id and generation."""
        with self._lock:
            return GroupMetadata(
                self._config.group_id,
                self._generation,
                self._member_id,
                self._config.group_instance_id,
            )

    def poll(self, timeout_ms: int) -> bool:
        """Take part until the member is stable or the time is up; whether it is stable."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        while True:
            wait_ms = self.step()
            left_ms = deadline_ms - self._clock.monotonic_ms()
            if wait_ms is None or left_ms <= 0:
                return wait_ms is None
            self._signal.wait(min(wait_ms, left_ms))

    def request_rejoin(self, reason: str) -> None:
        """Request a rebalance; the next poll joins again."""
        with self._lock:
            self._rejoin_reason = self._rejoin_reason or reason
        self._signal.set()

    def leave(self, *, timeout_ms: int = 5_000) -> None:
        """Leave the group; a static member remains in it until its session times out.

        `leave_group_on_close` overrides this.
        """
        future = self._send_leave("the member leaves the group")
        with self._lock:
            self._forget_membership(MembershipState.LEFT, lost=False)
            self._lost = False
        self._heartbeats.wake()
        if future is not None:
            settle(future, timeout_ms)

    def stop(self, *, timeout_ms: int = 5_000) -> None:
        """Leave the group and end the heartbeat thread."""
        self.leave(timeout_ms=timeout_ms)
        self._heartbeats.stop()

    def close(self, *, timeout_ms: int = 5_000) -> None:
        """Leave the group and close the cluster."""
        self.stop(timeout_ms=timeout_ms)
        self._cluster.close()

    # --- the caller's thread ------------------------------------------------------------------

    def step(self) -> int | None:
        """Do what needs no waiting; None when the member is stable, else how long to wait."""
        self._heartbeats.polled()
        while True:
            if self._failure is not None:
                raise self._failure
            wait_ms = self._advance()
            if wait_ms is None or wait_ms > 0:
                return wait_ms

    def _advance(self) -> int | None:
        """One transition; 0 when another may follow immediately."""
        if self._state is MembershipState.STABLE:
            reason = self._rejoin_reason or self._protocol.wants_rejoin()
            if not reason:
                return None
            with self._lock:
                self._rejoin_reason = reason
                if self._state is MembershipState.STABLE:
                    self._state = MembershipState.UNJOINED
            return 0
        if self._state in (MembershipState.JOINING, MembershipState.SYNCING):
            waiting = self._waiting
            assert waiting is not None, "a join or sync is under way in these states"
            if not waiting.done():
                return self._config.max_poll_interval_ms
            return self._take_answer(waiting)
        return self._begin()

    def _begin(self) -> int | None:
        wait_ms = self.link.step()
        if wait_ms is None:
            wait_ms = self._not_before_ms - self._clock.monotonic_ms()
        if wait_ms > 0:
            return wait_ms
        if not self._prepared:
            # Once per rebalance, even if the join is retried.
            self._prepared = True
            lost, self._lost = self._lost, False
            self._protocol.prepare_join(lost=lost)
        protocols = self._protocol.protocols()
        with self._lock:
            request = self._join_request(protocols)
            self._rejoin_reason = ""
            self._state = MembershipState.JOINING
        self._heartbeats.start()
        # The coordinator answers when all have joined, which may take the rebalance timeout.
        return self._send(request)

    def _send(self, request: object) -> int:
        """Send a join or sync; never under the lock: the response may already be available."""
        timeout_ms = self._config.max_poll_interval_ms + JOIN_ANSWER_MARGIN_MS
        try:
            self._waiting = self.link.send(request, timeout_ms=timeout_ms)
        except ConnectionFailed:
            with self._lock:
                self._apply_reaction(Reaction.FIND_COORDINATOR)
        return 0

    def _join_request(self, protocols: Sequence[tuple[str, bytes]]) -> JoinGroupRequest:
        config = self._config
        return JoinGroupRequest(
            group_id=config.group_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            member_id=self._member_id,
            group_instance_id=config.group_instance_id,
            protocol_type=self._protocol.protocol_type,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in protocols
            ],
            reason=self._rejoin_reason or None,
        )

    def _take_answer(self, waiting: Future[object]) -> int:
        try:
            answer = waiting.result()
        except BrokerError as error:
            self._fail(error)
            return 0
        except MillstreamError:
            with self._lock:
                self._apply_reaction(Reaction.FIND_COORDINATOR)
            return 0
        if isinstance(answer, JoinGroupResponse):
            self._take_join(answer)
        else:
            self._take_sync(cast(SyncGroupResponse, answer))
        return 0

    def _take_join(self, answer: JoinGroupResponse) -> None:
        code = code_of(answer.error_code)
        if code is ErrorCode.MEMBER_ID_REQUIRED:
            with self._lock:
                self._member_id = answer.member_id
                self._state = MembershipState.UNJOINED
            return
        if code is not ErrorCode.NONE:
            self._react(code, "join")
            return
        assignments: Mapping[str, bytes] = {}
        name = answer.protocol_name or ""
        if answer.leader == answer.member_id and not answer.skip_assignment:
            members = [
                JoinedMember(member.member_id, member.group_instance_id, bytes(member.metadata))
                for member in answer.members
            ]
            assignments = self._protocol.assign(name, members)
        with self._lock:
            self._member_id = answer.member_id
            self._generation = answer.generation_id
            self._protocol_name = name
            self._state = MembershipState.SYNCING
        request = SyncGroupRequest(
            group_id=self._config.group_id,
            generation_id=answer.generation_id,
            member_id=answer.member_id,
            group_instance_id=self._config.group_instance_id,
            protocol_type=self._protocol.protocol_type,
            protocol_name=name,
            assignments=[
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in assignments.items()
            ],
        )
        self._send(request)
        self._heartbeats.joined()

    def _take_sync(self, answer: SyncGroupResponse) -> None:
        code = code_of(answer.error_code)
        if code is not ErrorCode.NONE:
            self._react(code, "sync")
            return
        with self._lock:
            if self._state is not MembershipState.SYNCING:
                return  # kicked out meanwhile
            self._state = MembershipState.STABLE
            self._prepared = False
        self._protocol.on_assignment(self._protocol_name, bytes(answer.assignment), self.metadata)

    # --- both threads -------------------------------------------------------------------------

    def _react(self, code: ErrorCode, doing: str) -> None:
        reaction = REACTIONS.get(code, Reaction.FAIL)
        if reaction is Reaction.FAIL:
            self._fail(
                BrokerError(code, f'cannot {doing} group "{self._config.group_id}": {_text(code)}')
            )
            return
        with self._lock:
            self._apply_reaction(reaction)
        self._signal.set()

    def _apply_reaction(self, reaction: Reaction) -> None:
        if reaction in (Reaction.LOSE_GENERATION, Reaction.LOSE_MEMBERSHIP):
            member_id = self._member_id
            self._forget_membership(MembershipState.UNJOINED, lost=True)
            if reaction is Reaction.LOSE_GENERATION:
                self._member_id = member_id
            return
        if reaction is Reaction.FIND_COORDINATOR:
            self.link.forget()
        if reaction is Reaction.RETRY:
            self._not_before_ms = self._clock.monotonic_ms() + self.link.retry_backoff_ms
        if self._state in (MembershipState.JOINING, MembershipState.SYNCING):
            self._state = MembershipState.UNJOINED

    def _forget_membership(self, state: MembershipState, *, lost: bool) -> None:
        """Forget the member id; partitions are lost only if the member had a generation."""
        self._lost = self._lost or (lost and self._generation != NO_GENERATION)
        self._prepared = False
        self._state = state
        self._generation = NO_GENERATION
        self._member_id = NO_MEMBER
        self._rejoin_reason = ""

    def _fail(self, error: MillstreamError) -> None:
        with self._lock:
            self._state = MembershipState.FAILED
            self._failure = error
        self._signal.set()

    def _send_leave(self, reason: str) -> Future[object] | None:
        member_id, instance_id = self._member_id, self._config.group_instance_id
        leaves = self._config.leave_group_on_close
        if not (instance_id is None if leaves is None else leaves):
            return None
        # Before its first join is answered, the coordinator may know a static member already.
        joins = instance_id is not None and self._state is MembershipState.JOINING
        if member_id == NO_MEMBER and not joins:
            return None
        request = LeaveGroupRequest(
            group_id=self._config.group_id,
            member_id=member_id,
            members=[
                MemberIdentity(member_id=member_id, group_instance_id=instance_id, reason=reason)
            ],
        )
        try:
            return self.link.send(request)
        except ConnectionFailed:
            return None  # the session times out

    # --- the heartbeat thread -----------------------------------------------------------------

    @property
    def needs_heartbeats(self) -> bool:
        """Whether the coordinator expects heartbeats now."""
        return self._state in (MembershipState.SYNCING, MembershipState.STABLE)

    def send_heartbeat(self) -> Future[object] | None:
        """Send one heartbeat; None when the coordinator is unknown."""
        try:
            if self.link.step() is not None:
                return None
        except BrokerError as error:
            self._fail(error)
            return None
        with self._lock:
            generation = self._generation
            request = HeartbeatRequest(
                group_id=self._config.group_id,
                generation_id=generation,
                member_id=self._member_id,
                group_instance_id=self._config.group_instance_id,
            )
        try:
            future = self.link.send(request)
        except ConnectionFailed:
            return None
        future.add_done_callback(lambda done: self._take_heartbeat(done, generation))
        return future

    def _take_heartbeat(self, done: Future[object], generation: int) -> None:
        try:
            answer = cast(HeartbeatResponse, done.result())
        except BrokerError as error:
            self._fail(error)
            return
        except MillstreamError:
            with self._lock:
                self._apply_reaction(Reaction.FIND_COORDINATOR)
            return
        code = code_of(answer.error_code)
        with self._lock:
            if generation != self._generation or not self.needs_heartbeats:
                return  # it concerns an earlier membership
            if code is ErrorCode.NONE:
                return
            if code is ErrorCode.REBALANCE_IN_PROGRESS:
                if self._state is MembershipState.STABLE:
                    self._rejoin_reason = self._rejoin_reason or "the group is rebalancing"
                    self._signal.set()
                return
        self._react(code, "stay in")

    def on_poll_timeout(self) -> None:
        """Leave the group: the caller has not polled for max.poll.interval.ms."""
        self._send_leave("the member has not polled for max.poll.interval.ms")
        with self._lock:
            self._forget_membership(MembershipState.UNJOINED, lost=True)
        self._signal.set()

    def on_session_timeout(self) -> None:
        """Look for the coordinator again: no heartbeat was answered for a session timeout."""
        self.link.forget()


def settle(future: Future[object], timeout_ms: int) -> None:
    """Wait for a response whose content does not matter."""
    try:
        future.result(timeout=timeout_ms / 1000)
    except (MillstreamError, TimeoutError):
        return


def _text(code: ErrorCode) -> str:
    return code.name.lower().replace("_", " ")
