"""One classic group: its members, its leader and its generation. No I/O.

    EMPTY ──join──> PREPARING_REBALANCE ──all joined or timeout──> COMPLETING_REBALANCE
      ^                  ^   │ no members                                │        │
      └──────────────────┼───┘                              leader's sync │        │
                         │                                                v        │
                         ├──join, leave, timeout, leader rejoins────── STABLE      │
                         └──join, leave, timeout, no sync in time──────────────────┘

    state                 join                     sync                   heartbeat   leave, timeout
    EMPTY                 PREPARING (initial) [1]  UNKNOWN_MEMBER_ID      same        -
    PREPARING_REBALANCE   waits                    REBALANCE_IN_PROGRESS  same        may complete
    COMPLETING_REBALANCE  PREPARING or answer [2]  waits for the leader   ok          PREPARING
    STABLE                PREPARING or answer [2]  the assignment         ok          PREPARING
    DEAD                  COORDINATOR_NOT_AVAILABLE for everything

[1] The first join of an empty group waits group.initial.rebalance.delay.ms for others, and again
    while others join, up to the rebalance timeout.
[2] A member that joins again with the same protocols gets the current generation: its response was
    lost. The leader of a stable group requests a rebalance by joining again. A static member that
    comes back under a new id replaces the old one without a rebalance.

Times come from the clock, deadlines are returned by `next_deadline_ms`; the owner of the group then
calls `tick`. State that must be on disk before a response is written with `save`.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from broker.clock import Clock
from broker.coordinator.group_members import (
    CONSUMER_PROTOCOL,
    ClassicMember,
    Join,
    JoinedMember,
    JoinResult,
    Members,
    Sync,
    SyncResult,
    subscribed_topics,
)
from broker.errors import ErrorCode
from broker.pending import Pending

logger = logging.getLogger(__name__)

# A joining client cannot send heartbeats before its first response: it has this timeout instead.
NEW_MEMBER_TIMEOUT_MS = 300_000


class GroupState(Enum):
    """States, by the names that clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


@dataclass(frozen=True, slots=True)
class GroupRules:
    """The settings that apply to every group."""

    initial_rebalance_delay_ms: int
    size_max: int
    session_timeout_min_ms: int
    session_timeout_max_ms: int


Saved = Callable[[ErrorCode], None]
Save = Callable[["ClassicGroup", Mapping[str, bytes], Saved], None]


class ClassicGroup:
    """A group with one member, the leader, that assigns the work to all members."""

    def __init__(
        self,
        group_id: str,
        *,
        rules: GroupRules,
        clock: Clock,
        new_id: Callable[[], str],
        save: Save,
    ) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_since_ms = clock.now_ms()
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members = Members()
        self.subscribed_topics: frozenset[str] | None = None
        self._rules = rules
        self._clock = clock
        self._new_id = new_id
        self._save = save
        self._expected: dict[str, int] = {}  # assigned ids that are not used yet, with deadlines
        self._unsynced: set[str] = set()
        self._join_deadline_ms: int | None = None
        self._sync_deadline_ms: int | None = None
        self._initial_remaining_ms: int | None = None  # None: no initial delay is running
        self._joined_during_delay = False

    # --- join ---------------------------------------------------------------------------------

    def join(self, asked: Join) -> JoinResult | Pending[JoinResult]:
        """A client joins, or rejoins for the next generation."""
        refused = self._refuse_join(asked)
        if refused is not ErrorCode.NONE:
            return JoinResult(asked.member_id, refused)
        if asked.member_id:
            return self._join_known(asked)
        member_id = f"{asked.instance_id or asked.client_id}-{self._new_id()}"
        if asked.instance_id is not None:
            static = self.members.static(asked.instance_id)
            if static is not None:
                return self._replace_static(static, member_id, asked)
        elif asked.joins_twice:
            now_ms = self._clock.monotonic_ms()
            self._expected[member_id] = now_ms + asked.session_timeout_ms
            return JoinResult(member_id, ErrorCode.MEMBER_ID_REQUIRED)
        return self._add(member_id, asked)

    def _refuse_join(self, asked: Join) -> ErrorCode:
        rules = self._rules
        session_ms = asked.session_timeout_ms
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if not rules.session_timeout_min_ms <= session_ms <= rules.session_timeout_max_ms:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        if not self._has_room_for(asked.member_id):
            self._expected.pop(asked.member_id, None)
            return ErrorCode.GROUP_MAX_SIZE_REACHED
        if not self._speaks(asked):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _has_room_for(self, member_id: str) -> bool:
        size_max = self._rules.size_max
        if self.state is GroupState.EMPTY:
            return True
        member = self.members.get(member_id)
        if self.state is GroupState.PREPARING_REBALANCE:
            if member is not None and member.joining is not None:
                return True
            return sum(other.joining is not None for other in self.members) < size_max
        return member is not None or len(self.members) < size_max

    def _speaks(self, asked: Join) -> bool:
        """Whether the member has a protocol in common with all others."""
        if not asked.protocol_type or not asked.protocols:
            return False
        if not self.members:
            return True
        if asked.protocol_type != self.protocol_type:
            return False
        common = self.members.common_protocols()
        return any(name in common for name, _ in asked.protocols)

    def _join_known(self, asked: Join) -> JoinResult | Pending[JoinResult]:
        member_id = asked.member_id
        if member_id in self._expected:
            return self._add(member_id, asked)
        wrong = self._check_identity(member_id, asked.instance_id)
        if wrong is not ErrorCode.NONE:
            return JoinResult(member_id, wrong)
        member = self.members.get(member_id)
        assert member is not None
        same = member.protocols == asked.protocols
        if self.state is GroupState.COMPLETING_REBALANCE and same:
            return self._joined(member)
        if self.state is GroupState.STABLE and same and member_id != self.leader:
            return self._joined(member)
        _update(member, asked)
        pending = _wait_for_join(member)
        self._rebalance()
        return pending

    def _add(self, member_id: str, asked: Join) -> Pending[JoinResult]:
        member = ClassicMember(
            member_id=member_id,
            instance_id=asked.instance_id,
            client_id=asked.client_id,
            client_host=asked.client_host,
            session_timeout_ms=asked.session_timeout_ms,
            rebalance_timeout_ms=asked.rebalance_timeout_ms,
            protocols=asked.protocols,
            deadline_ms=self._clock.monotonic_ms() + NEW_MEMBER_TIMEOUT_MS,
            is_new=True,
        )
        self._expected.pop(member_id, None)
        if not self.members:
            self.protocol_type = asked.protocol_type
        self.members.add(member)
        self.leader = self.leader or member_id
        self._joined_during_delay = True
        pending = _wait_for_join(member)
        self._rebalance()
        return pending

    def _replace_static(
        self, member: ClassicMember, member_id: str, asked: Join
    ) -> JoinResult | Pending[JoinResult]:
        """The same instance with a new id: a member with the old id is fenced."""
        old_id = member.member_id
        old_leader = self.leader
        self._fail_waiting(member, ErrorCode.FENCED_INSTANCE_ID)
        self.members.rename(member, member_id)
        if self.leader == old_id:
            self.leader = member_id
        if old_id in self._unsynced:
            self._unsynced.remove(old_id)
            self._unsynced.add(member_id)
        _update(member, asked)
        if not member.is_new:
            self._extend(member)
        if self.state is GroupState.STABLE and self.members.select_protocol() == self.protocol:
            may_skip = asked.may_skip_assignment
            return self._take_place(member, old_leader, may_skip=may_skip)
        pending = _wait_for_join(member)
        self._rebalance()
        return pending

    def _take_place(
        self, member: ClassicMember, old_leader: str | None, *, may_skip: bool
    ) -> JoinResult | Pending[JoinResult]:
        """Respond with the current generation, once the new id is on disk."""
        result = self._joined(member)
        if may_skip:
            # It remains leader and sees the members, but must not assign: nothing has changed.
            result.skip_assignment = member.member_id == self.leader
        else:
            # If the response names the old leader, the new one fetches its assignment as a
            # follower.
            result.leader = old_leader or ""
            result.members = []
        pending: Pending[JoinResult] = Pending()

        def saved(error: ErrorCode) -> None:
            failed = error is not ErrorCode.NONE
            pending.complete(JoinResult(member.member_id, error) if failed else result)

        self._save(self, self.assignments(), saved)
        return pending

    def _joined(self, member: ClassicMember) -> JoinResult:
        """The response to a join: the leader also receives the members."""
        assert self.protocol is not None
        members = []
        if member.member_id == self.leader:
            members = [
                JoinedMember(other.member_id, other.instance_id, other.metadata(self.protocol))
                for other in self.members
            ]
        return JoinResult(
            member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            leader=self.leader or "",
            members=members,
        )

    # --- sync, heartbeat, leave ---------------------------------------------------------------

    def sync(self, asked: Sync) -> SyncResult | Pending[SyncResult]:
        """A member requests its assignment; the leader sends those of all members."""
        error = self.check(asked.member_id, asked.instance_id, asked.generation)
        if error is ErrorCode.NONE:
            error = self._check_protocol(asked)
        if error is ErrorCode.NONE and self.state is GroupState.PREPARING_REBALANCE:
            error = ErrorCode.REBALANCE_IN_PROGRESS
        if error is not ErrorCode.NONE:
            return SyncResult(error)
        member = self.members.get(asked.member_id)
        assert member is not None
        self._unsynced.discard(member.member_id)
        if not self._unsynced:
            self._sync_deadline_ms = None
        if self.state is GroupState.STABLE:
            self._extend(member)
            return self._synced(member)
        if member.syncing is not None:
            member.syncing.complete(SyncResult(ErrorCode.REBALANCE_IN_PROGRESS))
        pending = member.syncing = Pending()
        if member.member_id == self.leader:
            self._assign(asked.assignments)
        return pending

    def _check_protocol(self, asked: Sync) -> ErrorCode:
        named = (asked.protocol_type, asked.protocol)
        for given, ours in zip(named, (self.protocol_type, self.protocol), strict=True):
            if given is not None and given != ours:
                return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.NONE

    def _assign(self, given: Mapping[str, bytes]) -> None:
        assignments = {
            member.member_id: given.get(member.member_id, b"") for member in self.members
        }
        generation = self.generation

        def saved(error: ErrorCode) -> None:
            # The group may have changed while the disk was busy; then this response is invalid.
            if self.state is not GroupState.COMPLETING_REBALANCE or self.generation != generation:
                return
            if error is not ErrorCode.NONE:
                self._fail_syncs(error)
                self._rebalance()
                return
            self._enter(GroupState.STABLE)
            for member in self.members:
                member.assignment = assignments.get(member.member_id, b"")
                if member.syncing is not None:
                    pending, member.syncing = member.syncing, None
                    self._extend(member)
                    pending.complete(self._synced(member))

        self._save(self, assignments, saved)

    def _synced(self, member: ClassicMember) -> SyncResult:
        return SyncResult(
            protocol_type=self.protocol_type,
            protocol=self.protocol,
            assignment=member.assignment,
        )

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """A member is alive; an error means that it must join again."""
        error = self.check(member_id, instance_id, generation)
        if error is ErrorCode.NONE:
            self.keep_alive(member_id)
            if self.state is GroupState.PREPARING_REBALANCE:
                return ErrorCode.REBALANCE_IN_PROGRESS
        return error

    def keep_alive(self, member_id: str) -> None:
        """Restart the member's session."""
        member = self.members.get(member_id)
        if member is not None:
            self._extend(member)

    def check(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Check that this member exists and is in the current generation."""
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        wrong = self._check_identity(member_id, instance_id)
        if wrong is not ErrorCode.NONE:
            return wrong
        return ErrorCode.NONE if generation == self.generation else ErrorCode.ILLEGAL_GENERATION

    def _check_identity(self, member_id: str, instance_id: str | None) -> ErrorCode:
        if instance_id is not None:
            static = self.members.static(instance_id)
            if static is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if static.member_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def leave(self, member_id: str, instance_id: str | None) -> ErrorCode:
        """A member leaves, identified by its id or, without one, by its instance id."""
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if member_id in self._expected:
            del self._expected[member_id]
            self._try_complete_join()
            return ErrorCode.NONE
        if not member_id and instance_id is not None:
            member = self.members.static(instance_id)
            wrong = ErrorCode.NONE if member else ErrorCode.UNKNOWN_MEMBER_ID
        else:
            member = self.members.get(member_id)
            wrong = self._check_identity(member_id, instance_id)
        if wrong is ErrorCode.NONE and member is not None:
            self._remove(member)
        return wrong

    # --- rebalancing --------------------------------------------------------------------------

    def _rebalance(self) -> None:
        """Start a rebalance unless one is running; complete it if no member is missing."""
        if self.state is not GroupState.PREPARING_REBALANCE:
            if self.state is GroupState.COMPLETING_REBALANCE:
                self._fail_syncs(ErrorCode.REBALANCE_IN_PROGRESS)
            self._unsynced.clear()
            self._sync_deadline_ms = None
            timeout_ms = self.members.rebalance_timeout_ms()
            if self.state is GroupState.EMPTY:
                delay_ms = self._rules.initial_rebalance_delay_ms
                self._initial_remaining_ms = max(timeout_ms - delay_ms, 0)
                self._joined_during_delay = False
                timeout_ms = delay_ms
            self._join_deadline_ms = self._clock.monotonic_ms() + timeout_ms
            self._enter(GroupState.PREPARING_REBALANCE)
        self._try_complete_join()

    def _try_complete_join(self) -> None:
        if self.state is not GroupState.PREPARING_REBALANCE or self._expected:
            return
        if self._initial_remaining_ms is None and self.members.all_joined():
            self._complete_join()

    def _join_time_is_up(self) -> None:
        remaining_ms = self._initial_remaining_ms
        if remaining_ms and self._joined_during_delay:
            delay_ms = min(self._rules.initial_rebalance_delay_ms, remaining_ms)
            self._initial_remaining_ms = remaining_ms - delay_ms
            self._joined_during_delay = False
            self._join_deadline_ms = self._clock.monotonic_ms() + delay_ms
        else:
            self._complete_join()

    def _complete_join(self) -> None:
        """The members that have joined form the next generation."""
        self._initial_remaining_ms = None
        for member in self.members:
            if member.joining is None and member.instance_id is None:
                self._forget(member)
        if self.members and not self._elect():
            # Only static members, none of which has rejoined: give them another round.
            timeout_ms = self.members.rebalance_timeout_ms()
            self._join_deadline_ms = self._clock.monotonic_ms() + timeout_ms
            return
        self._join_deadline_ms = None
        self.generation += 1
        if not self.members:
            self._become_empty()
            return
        self.protocol = self.members.select_protocol()
        self.note_subscriptions()
        self._enter(GroupState.COMPLETING_REBALANCE)
        timeout_ms = self.members.rebalance_timeout_ms()
        self._sync_deadline_ms = self._clock.monotonic_ms() + timeout_ms
        self._unsynced = {member.member_id for member in self.members}
        for member in self.members:
            pending, member.joining = member.joining, None
            self._extend(member)
            if pending is not None:
                member.is_new = False
                pending.complete(self._joined(member))

    def _elect(self) -> bool:
        """Whether a leader has joined; if the old one did not, another one is elected."""
        leader = self.members.get(self.leader or "")
        if leader is None or leader.joining is None:
            leader = next((member for member in self.members if member.joining is not None), None)
        if leader is not None:
            self.leader = leader.member_id
        return leader is not None

    def _become_empty(self) -> None:
        self.protocol = None
        self.leader = None
        self.note_subscriptions()
        self._enter(GroupState.EMPTY)
        self._save(self, {}, _ignore_outcome)

    def note_subscriptions(self) -> None:
        """Determine the topics that the members subscribe to, if they are consumers."""
        self.subscribed_topics = None
        if self.protocol_type == CONSUMER_PROTOCOL:
            self.subscribed_topics = subscribed_topics(self.members, self.protocol or "")

    def _remove(self, member: ClassicMember) -> None:
        self._forget(member)
        if self.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            self._rebalance()
        else:
            self._try_complete_join()

    def _forget(self, member: ClassicMember) -> None:
        self._fail_waiting(member, ErrorCode.UNKNOWN_MEMBER_ID)
        self.members.remove(member)
        self._unsynced.discard(member.member_id)
        if self.leader == member.member_id:
            self.leader = next((other.member_id for other in self.members), None)

    def _fail_syncs(self, error: ErrorCode) -> None:
        for member in self.members:
            member.assignment = b""
            if member.syncing is not None:
                pending, member.syncing = member.syncing, None
                self._extend(member)
                pending.complete(SyncResult(error))

    def _fail_waiting(self, member: ClassicMember, error: ErrorCode) -> None:
        joining, member.joining = member.joining, None
        syncing, member.syncing = member.syncing, None
        if joining is not None:
            joining.complete(JoinResult(member.member_id, error))
        if syncing is not None:
            syncing.complete(SyncResult(error))

    # --- time ---------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """The monotonic time at which `tick` has something to do."""
        deadlines = [member.deadline_ms for member in self.members if not member.waits]
        deadlines += self._expected.values()
        deadlines += [
            deadline_ms
            for deadline_ms in (self._join_deadline_ms, self._sync_deadline_ms)
            if deadline_ms is not None
        ]
        return min(deadlines, default=None)

    def tick(self) -> None:
        """Handle the deadlines of sessions, joins and syncs that have passed."""
        now_ms = self._clock.monotonic_ms()
        for member_id in [key for key, due_ms in self._expected.items() if due_ms <= now_ms]:
            del self._expected[member_id]
            self._try_complete_join()
        for member in self.members:
            gone = self.members.get(member.member_id) is not member
            if member.deadline_ms <= now_ms and not member.waits and not gone:
                logger.info('group "%s": member %s timed out', self.group_id, member.member_id)
                self._remove(member)
        if self._sync_deadline_ms is not None and self._sync_deadline_ms <= now_ms:
            self._sync_deadline_ms = None
            for member in self.members:
                if member.member_id in self._unsynced:
                    self._forget(member)
            self._rebalance()
        if self._join_deadline_ms is not None and self._join_deadline_ms <= now_ms:
            self._join_time_is_up()

    def _extend(self, member: ClassicMember) -> None:
        member.deadline_ms = self._clock.monotonic_ms() + member.session_timeout_ms

    def _enter(self, state: GroupState) -> None:
        self.state = state
        self.state_since_ms = self._clock.now_ms()

    # --- offsets, records ---------------------------------------------------------------------

    def check_commit(
        self, member_id: str, instance_id: str | None, generation: int, *, transactional: bool
    ) -> ErrorCode:
        """Whether these offsets may be committed."""
        if self.state is GroupState.DEAD:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        if generation < 0 and self.state is GroupState.EMPTY:
            return ErrorCode.NONE
        if generation >= 0 or member_id or instance_id is not None:
            wrong = self.check(member_id, instance_id, generation)
            if wrong is not ErrorCode.NONE:
                return wrong
        elif not transactional and self.state is not GroupState.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not transactional and self.state is GroupState.COMPLETING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether members consume the topic; assumed if their subscriptions are unknown."""
        if self.subscribed_topics is None:
            return self.protocol_type == CONSUMER_PROTOCOL
        return topic in self.subscribed_topics

    def die(self) -> None:
        """The group is deleted."""
        self._expected.clear()
        self._enter(GroupState.DEAD)

    def restored(self, *, since_ms: int) -> None:
        """Called after members are restored: they form a generation, and sessions start now."""
        self.state = GroupState.STABLE if self.members else GroupState.EMPTY
        self.state_since_ms = self._clock.now_ms() if since_ms < 0 else since_ms
        for member in self.members:
            self._extend(member)
        self.note_subscriptions()

    def assignments(self) -> dict[str, bytes]:
        """The assignment of each member."""
        return {member.member_id: member.assignment for member in self.members}

    def refuse_offset_delete(self) -> ErrorCode:
        """Check whether its offsets may be deleted; topics in use are refused individually."""
        if self.state is GroupState.DEAD:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if self.state is not GroupState.EMPTY and self.protocol_type != CONSUMER_PROTOCOL:
            return ErrorCode.NON_EMPTY_GROUP
        return ErrorCode.NONE


def _update(member: ClassicMember, asked: Join) -> None:
    member.protocols = asked.protocols
    member.session_timeout_ms = asked.session_timeout_ms
    member.rebalance_timeout_ms = asked.rebalance_timeout_ms
    member.client_id = asked.client_id
    member.client_host = asked.client_host


def _wait_for_join(member: ClassicMember) -> Pending[JoinResult]:
    if member.joining is not None:
        member.joining.complete(JoinResult(member.member_id, ErrorCode.REBALANCE_IN_PROGRESS))
    pending: Pending[JoinResult] = Pending()
    member.joining = pending
    return pending


def _ignore_outcome(error: ErrorCode) -> None:
    """If an empty group is not on disk, a restart restores its old members, which time out."""
