"""One group whose assignment the broker computes (KIP-848). No I/O.

Three numbers describe the progress of the group: the group epoch is incremented when members or
topics change, the target epoch follows when a new assignment is computed, and a member's epoch
follows when the member has revoked and acquired partitions as the target requires (see
reconciliation.py).

    state        when
    Empty        no members
    Assigning    group epoch > target epoch
    Reconciling  some member has not reached the target yet
    Stable       all members have reached it

Refusals are BrokerErrors. Changes since the last write are collected in `changes`, from which the
records are created; it is cleared only when they are written, so the next write includes the
changes of a failed one.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from hashlib import sha256

from broker.clock import Clock
from broker.coordinator.assignors import ASSIGNORS, NOTHING, Partition, Partitions, Subscriber
from broker.coordinator.reconciliation import Holding, MemberState, Target, reconcile
from broker.coordinator.topic_pattern import PatternMatches
from broker.coordinator.topics import Topic
from broker.errors import BrokerError, ErrorCode

logger = logging.getLogger(__name__)

JOIN_EPOCH = 0
LEAVE_EPOCH = -1
LEAVE_STATIC_EPOCH = -2


@dataclass(slots=True)
class Heartbeat:
    """The fields of a heartbeat; None and -1 mean unchanged."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    subscribed_names: list[str] | None = None
    subscribed_regex: str | None = None
    server_assignor: str | None = None
    owned: Partitions | None = None

    @property
    def is_full(self) -> bool:
        """Whether it has all fields, as after a join or a lost response."""
        subscribes = self.subscribed_names is not None or self.subscribed_regex is not None
        return self.epoch == JOIN_EPOCH or (
            subscribes and self.rebalance_timeout_ms != -1 and self.owned is not None
        )


@dataclass(slots=True)
class HeartbeatResult:
    """The response to a member; `assigned` is None if it already has its assignment."""

    member_id: str
    epoch: int
    interval_ms: int = 0
    assigned: Partitions | None = None


@dataclass(frozen=True, slots=True)
class ConsumerGroupRules:
    """The settings that apply to every group."""

    session_timeout_ms: int
    heartbeat_interval_ms: int
    size_max: int
    assignors: tuple[str, ...]


@dataclass(slots=True)
class ConsumerMember:
    """One member: its subscription and its assignment."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    subscribed_names: tuple[str, ...] = ()
    subscribed_regex: str | None = None
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = None
    holding: Holding = field(default_factory=Holding)
    topics: frozenset[str] = frozenset()  # names, and the current matches of the pattern
    session_deadline_ms: int = 0
    rebalance_deadline_ms: int | None = None

    @property
    def subscription(self) -> tuple[object, ...]:
        """Its subscription; the topics come first."""
        return (
            self.subscribed_names,
            self.subscribed_regex,
            self.rack_id,
            self.server_assignor,
            self.rebalance_timeout_ms,
            self.client_id,
            self.client_host,
        )


@dataclass(slots=True)
class UnsavedChanges:
    """The changes that are not on disk yet; members by id."""

    epoch: bool = False
    target_epoch: bool = False
    members: set[str] = field(default_factory=set)
    targets: set[str] = field(default_factory=set)
    holdings: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)

    def __bool__(self) -> bool:
        """Whether there is anything to write."""
        return bool(
            self.epoch
            or self.target_epoch
            or self.members
            or self.targets
            or self.holdings
            or self.removed
        )


class ConsumerGroup:
    """A group of consumers whose assignment the broker computes."""

    def __init__(
        self,
        group_id: str,
        *,
        rules: ConsumerGroupRules,
        clock: Clock,
        find_topic: Callable[[str], Topic | None],
        matches: PatternMatches,
    ) -> None:
        """No members, epoch 0; other groups may share the matches of patterns."""
        self.group_id = group_id
        self.epoch = 0
        self.topics_hash = 0
        self.target_epoch = 0
        self.target_since_ms = 0
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Partitions] = {}
        self.changes = UnsavedChanges()
        self._rules = rules
        self._clock = clock
        self._find_topic = find_topic
        self._static: dict[str, str] = {}
        self._owners: dict[Partition, str] = {}
        self._subscribers: Counter[str] = Counter()
        self._seen: dict[str, tuple[bytes, int]] = {}  # subscribed topics at the last check
        self._look_again = True
        self._matches = matches

    @property
    def state(self) -> str:
        """The state, by the name that clients see."""
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        if all(
            member.holding.state is MemberState.STABLE and member.holding.epoch == self.target_epoch
            for member in self.members.values()
        ):
            return "Stable"
        return "Reconciling"

    @property
    def assignor(self) -> str:
        """The assignor that most members request, or the first configured one."""
        votes = Counter(
            member.server_assignor for member in self.members.values() if member.server_assignor
        )
        return votes.most_common(1)[0][0] if votes else self._rules.assignors[0]

    # --- heartbeats ---------------------------------------------------------------------------

    def heartbeat(self, asked: Heartbeat) -> HeartbeatResult:
        """A member joins, is alive or reports its partitions; returns its assignment."""
        self._check_assignor(asked.server_assignor)
        if asked.subscribed_regex:
            self._matches.compiled(asked.subscribed_regex)
        member = self._admit(asked)
        resubscribed = self._update(member, asked)
        if self._look_at_topics() or resubscribed:
            self._bump()
        if self.epoch > self.target_epoch:
            self._assign()
        before = member.holding
        self._reconcile(member, asked.owned)
        member.session_deadline_ms = self._clock.monotonic_ms() + self._rules.session_timeout_ms
        assigned = member.holding.assigned
        # A member whose epoch is behind did not get the response with its partitions.
        has_assignment = asked.epoch == before.epoch and not asked.is_full
        return HeartbeatResult(
            member.member_id,
            member.holding.epoch,
            interval_ms=self._rules.heartbeat_interval_ms,
            assigned=None if has_assignment and assigned == before.assigned else assigned,
        )

    def leave(self, asked: Heartbeat) -> HeartbeatResult:
        """A member leaves (-1), a static one possibly only for a while (-2)."""
        member = self._existing(asked.member_id, asked.instance_id)
        if asked.epoch == LEAVE_STATIC_EPOCH:
            # It keeps its partitions until its session times out: it may come back before.
            holding = member.holding
            left = Holding(LEAVE_STATIC_EPOCH, holding.epoch, MemberState.STABLE, holding.assigned)
            self._hold(member, left)
            member.rebalance_deadline_ms = None
        else:
            self.remove(member)
        return HeartbeatResult(asked.member_id, asked.epoch)

    def remove(self, *members: ConsumerMember) -> None:
        """Remove members; their partitions become free."""
        for member in members:
            self._hold(member, Holding())
            self._subscribers.subtract(member.topics)
            self._look_again = True
            del self.members[member.member_id]
            if self._static.get(member.instance_id or "") == member.member_id:
                del self._static[member.instance_id or ""]
            self.targets.pop(member.member_id, None)
            self._note_removed(member.member_id)
        self._bump()

    def find(self, member_id: str, instance_id: str | None) -> ConsumerMember | None:
        """A member by its id, or by its instance id alone."""
        if not member_id and instance_id is not None:
            return self.members.get(self._static.get(instance_id, ""))
        return self.members.get(member_id)

    def _note_removed(self, member_id: str) -> None:
        changes = self.changes
        for noted in (changes.members, changes.targets, changes.holdings):
            noted.discard(member_id)
        changes.removed.add(member_id)

    def _check_assignor(self, name: str | None) -> None:
        if name is not None and name not in self._rules.assignors:
            allowed = ", ".join(self._rules.assignors)
            raise BrokerError(
                ErrorCode.UNSUPPORTED_ASSIGNOR,
                f'server assignor "{name}" is not supported; supported are {allowed}',
            )

    def _admit(self, asked: Heartbeat) -> ConsumerMember:
        """The member that sent the heartbeat; a new one if it joins."""
        member_id, instance_id = asked.member_id, asked.instance_id
        if asked.epoch != JOIN_EPOCH:
            member = self._existing(member_id, instance_id)
            _check_epoch(member, asked)
            return member
        known = self.members.get(member_id)
        static = self.find("", instance_id)
        if static is not None:
            if static.holding.epoch != LEAVE_STATIC_EPOCH:
                raise BrokerError(
                    ErrorCode.UNRELEASED_INSTANCE_ID,
                    f'instance id "{instance_id}" is still used by member {static.member_id}',
                )
            return self._take_place(static, member_id)
        if known is not None:
            # It starts again without partitions: it was fenced, or a response was lost.
            self._hold(known, Holding())
            known.rebalance_deadline_ms = None
            return known
        if len(self.members) >= self._rules.size_max:
            raise BrokerError(
                ErrorCode.GROUP_MAX_SIZE_REACHED,
                f'group "{self.group_id}" already has {self._rules.size_max} members',
            )
        member = self.members[member_id] = ConsumerMember(member_id, instance_id)
        self._note_new(member)
        return member

    def _note_new(self, member: ConsumerMember) -> None:
        self.changes.members.add(member.member_id)
        self.changes.holdings.add(member.member_id)
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id

    def _existing(self, member_id: str, instance_id: str | None) -> ConsumerMember:
        if instance_id is not None:
            static = self.find("", instance_id)
            if static is not None and static.member_id != member_id:
                raise BrokerError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f'instance id "{instance_id}" is now used by member {static.member_id}',
                )
            member = static
        else:
            member = self.members.get(member_id)
        if member is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f'member {member_id} is not a member of group "{self.group_id}"',
            )
        return member

    def _take_place(self, old: ConsumerMember, member_id: str) -> ConsumerMember:
        """A static member rejoins with a new id and keeps its assignment."""
        old_id = old.member_id
        target = self.targets.pop(old_id, NOTHING)
        assigned = old.holding.assigned
        self._hold(old, Holding())
        del self.members[old_id]
        self._note_removed(old_id)
        old.member_id = member_id
        self.members[member_id] = old
        self.targets[member_id] = target
        self.changes.targets.add(member_id)
        self._note_new(old)
        self._hold(old, Holding(assigned=assigned))
        return old

    def _update(self, member: ConsumerMember, asked: Heartbeat) -> bool:
        """Apply the fields of a heartbeat; whether the subscription changed."""
        old = member.subscription
        if asked.subscribed_names is not None:
            member.subscribed_names = tuple(sorted(set(asked.subscribed_names)))
        if asked.subscribed_regex is not None:
            member.subscribed_regex = asked.subscribed_regex or None
        if asked.rack_id is not None:
            member.rack_id = asked.rack_id
        if asked.server_assignor is not None:
            member.server_assignor = asked.server_assignor
        if asked.rebalance_timeout_ms != -1:
            member.rebalance_timeout_ms = asked.rebalance_timeout_ms
        member.client_id = asked.client_id
        member.client_host = asked.client_host
        new = member.subscription
        if old != new:
            self.changes.members.add(member.member_id)
        resubscribed = old[:2] != new[:2]
        if resubscribed:
            self._resolve(member)
        # A member without a target is new, even if it subscribes to nothing.
        return resubscribed or member.member_id not in self.targets

    def _resolve(self, member: ConsumerMember) -> bool:
        """Resolve the topics of a member's subscription; whether they changed."""
        topics = set(member.subscribed_names)
        if member.subscribed_regex:
            topics |= self._matches.matching(member.subscribed_regex)
        if topics == member.topics:
            return False
        self._subscribers.subtract(member.topics)
        member.topics = frozenset(topics)
        self._subscribers.update(member.topics)
        self._look_again = True
        return True

    # --- epochs and assignment ----------------------------------------------------------------

    def topics_changed(self) -> None:
        """Match patterns again after a change; the next heartbeat detects other changes."""
        self._look_again = True
        for member in self.members.values():
            if member.subscribed_regex:
                self._resolve(member)

    def _look_at_topics(self) -> bool:
        """Whether a subscribed topic was created, deleted or extended since the last check."""
        if not self._look_again:
            return False
        self._look_again = False
        seen = {}
        for name, count in self._subscribers.items():
            topic = self._find_topic(name) if count > 0 else None
            if topic is not None:
                seen[name] = (topic.id, topic.partition_count)
        if seen == self._seen:
            return False
        self._seen = seen
        before, self.topics_hash = self.topics_hash, _hash_topics(seen)
        return before != self.topics_hash

    def _bump(self) -> None:
        self.epoch += 1
        self.changes.epoch = True

    def _assign(self) -> None:
        """Compute the target assignment of this epoch."""
        subscribers = {
            member.member_id: Subscriber(
                topics=frozenset(
                    self._seen[name][0] for name in member.topics if name in self._seen
                ),
                instance_id=member.instance_id,
                current=self.targets.get(member.member_id, NOTHING),
            )
            for member in self.members.values()
        }
        targets = ASSIGNORS[self.assignor](subscribers, dict(self._seen.values()))
        for member_id, partitions in targets.items():
            if self.targets.get(member_id) != partitions:
                self.changes.targets.add(member_id)
        self.targets = targets
        self.target_epoch = self.epoch
        self.target_since_ms = self._clock.now_ms()
        self.changes.target_epoch = True

    def _reconcile(self, member: ConsumerMember, owned: Partitions | None) -> None:
        member_id, owners = member.member_id, self._owners
        holding = reconcile(
            member.holding,
            Target(self.target_epoch, self.targets.get(member_id, NOTHING)),
            owned=owned,
            is_free=lambda partition: owners.get(partition, member_id) == member_id,
        )
        if holding.state is not MemberState.UNREVOKED_PARTITIONS:
            member.rebalance_deadline_ms = None
        elif holding is not member.holding:
            now_ms = self._clock.monotonic_ms()
            member.rebalance_deadline_ms = now_ms + max(member.rebalance_timeout_ms, 0)
        self._hold(member, holding)

    def _hold(self, member: ConsumerMember, holding: Holding) -> None:
        """Set a member's assignment, and the owners of its partitions."""
        old = member.holding
        if holding == old:
            return
        member.holding = holding
        self.changes.holdings.add(member.member_id)
        for partition in old.claimed - holding.claimed:
            if self._owners.get(partition) == member.member_id:
                del self._owners[partition]
        for partition in holding.claimed - old.claimed:
            self._owners[partition] = member.member_id

    # --- time ---------------------------------------------------------------------------------

    def next_deadline_ms(self) -> int | None:
        """The monotonic time at which `tick` has something to do."""
        return min((_deadline_ms(member) for member in self.members.values()), default=None)

    def deadline_ms(self, member_id: str) -> int | None:
        """The deadline of one member."""
        member = self.members.get(member_id)
        return None if member is None else _deadline_ms(member)

    def tick(self) -> None:
        """Remove members whose session timed out, or that do not revoke partitions in time."""
        now_ms = self._clock.monotonic_ms()
        late = [member for member in self.members.values() if _deadline_ms(member) <= now_ms]
        for member in late:
            logger.info('group "%s": member %s timed out', self.group_id, member.member_id)
        if late:
            self.remove(*late)

    # --- offsets, restart ---------------------------------------------------------------------

    def check_commit(
        self, member_id: str, instance_id: str | None, epoch: int, *, transactional: bool
    ) -> ErrorCode:
        """Whether these offsets may be committed."""
        if epoch < 0 and not self.members:
            return ErrorCode.NONE
        anonymous = epoch == -1 and not member_id and instance_id is None
        if transactional and anonymous:
            return ErrorCode.NONE
        return self.check_member(member_id, epoch)

    def check_member(self, member_id: str, epoch: int) -> ErrorCode:
        """Check that this member exists and has this epoch."""
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        same = member.holding.epoch == epoch
        return ErrorCode.NONE if same else ErrorCode.STALE_MEMBER_EPOCH

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether any member subscribes to the topic."""
        return self._subscribers[topic] > 0

    def restored(self) -> None:
        """Called when all records are replayed: compute derived state and start sessions."""
        now_ms = self._clock.monotonic_ms()
        self.changes = UnsavedChanges()
        self._owners.clear()
        self._subscribers.clear()
        self._static.clear()
        for member in self.members.values():
            member.topics = frozenset()
            self._restore_pattern(member)
            self._resolve(member)
            if member.instance_id is not None:
                self._static[member.instance_id] = member.member_id
            for partition in member.holding.claimed:
                self._owners[partition] = member.member_id
            member.session_deadline_ms = now_ms + self._rules.session_timeout_ms
            if member.holding.state is MemberState.UNREVOKED_PARTITIONS:
                member.rebalance_deadline_ms = now_ms + max(member.rebalance_timeout_ms, 0)
        # Only a hash of the topics is on disk: the next heartbeat compares it with the topics.
        self._seen = {}
        self._look_again = True

    def _restore_pattern(self, member: ConsumerMember) -> None:
        try:
            if member.subscribed_regex:
                self._matches.compiled(member.subscribed_regex)
        except BrokerError as error:
            logger.warning('group "%s": pattern is ignored: %s', self.group_id, error)
            member.subscribed_regex = None


def _check_epoch(member: ConsumerMember, asked: Heartbeat) -> None:
    given, holding = asked.epoch, member.holding
    if given == holding.epoch:
        return
    # The response with the newer epoch may have been lost.
    lost_answer = given == holding.previous_epoch and given < holding.epoch
    if lost_answer and asked.owned is not None and asked.owned <= holding.assigned:
        return
    raise BrokerError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"member epoch {given} is not the current one ({holding.epoch}): "
        "give up all partitions and join again",
    )


def group_by_topic(partitions: Iterable[Partition]) -> dict[bytes, list[int]]:
    """Partition numbers by topic id, in order."""
    grouped: dict[bytes, list[int]] = {}
    for topic_id, number in sorted(partitions):
        grouped.setdefault(topic_id, []).append(number)
    return grouped


def _hash_topics(topics: dict[str, tuple[bytes, int]]) -> int:
    if not topics:
        return 0
    digest = sha256(repr(sorted(topics.items())).encode()).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def _deadline_ms(member: ConsumerMember) -> int:
    rebalance_ms = member.rebalance_deadline_ms
    session_ms = member.session_deadline_ms
    return session_ms if rebalance_ms is None else min(session_ms, rebalance_ms)
