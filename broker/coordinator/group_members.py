"""Members of one classic group: their requests, and what the group derives from them. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from broker.errors import BrokerError, ErrorCode
from broker.pending import Pending
from broker.protocol import message
from broker.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

CONSUMER_PROTOCOL = "consumer"
SUBSCRIPTION_VERSION_MAX = 3


@dataclass(slots=True)
class Join:
    """A client joins, or a member joins the next generation; preferred protocols come first."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: list[tuple[str, bytes]]
    # The client joins again with the member id from the response.
    joins_twice: bool = True
    # The client understands that a leader may have nothing to assign.
    may_skip_assignment: bool = True


@dataclass(slots=True)
class JoinedMember:
    """A member, as its leader sees it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


@dataclass(slots=True)
class JoinResult:
    """The generation that a member is in, or an error; a leader receives the members."""

    member_id: str
    error: ErrorCode = ErrorCode.NONE
    generation: int = -1
    protocol_type: str | None = None
    protocol: str = ""
    leader: str = ""
    members: list[JoinedMember] = field(default_factory=list)
    skip_assignment: bool = False


@dataclass(slots=True)
class Sync:
    """A member requests its assignment; the leader sends those of all members, by id."""

    member_id: str
    instance_id: str | None
    generation: int
    protocol_type: str | None = None
    protocol: str | None = None
    assignments: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(slots=True)
class SyncResult:
    """The assignment of a member, or an error."""

    error: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol: str | None = None
    assignment: bytes = b""


@dataclass(slots=True)
class ClassicMember:
    """One member: its protocols, its assignment, and its pending responses."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: list[tuple[str, bytes]]
    assignment: bytes = b""
    joining: Pending[JoinResult] | None = None
    syncing: Pending[SyncResult] | None = None
    deadline_ms: int = 0
    is_new: bool = False

    @property
    def waits(self) -> bool:
        """Whether a response to it is pending, so that it cannot send heartbeats.

        A member that never got a response may be gone: it still has a deadline.
        """
        return not self.is_new and (self.joining is not None or self.syncing is not None)

    def metadata(self, protocol: str) -> bytes:
        """Its metadata for a protocol; empty if it does not support the protocol."""
        return next((data for name, data in self.protocols if name == protocol), b"")


class Members:
    """The members by id, in the order in which they joined; static ones also by instance id."""

    def __init__(self) -> None:
        self._members: dict[str, ClassicMember] = {}
        self._static: dict[str, str] = {}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._members)

    def __iter__(self) -> Iterator[ClassicMember]:
        """In the order they joined."""
        return iter(list(self._members.values()))

    def __contains__(self, member_id: str) -> bool:
        """Whether there is a member of this id."""
        return member_id in self._members

    def get(self, member_id: str) -> ClassicMember | None:
        """The member of this id."""
        return self._members.get(member_id)

    def static(self, instance_id: str) -> ClassicMember | None:
        """The member that holds this instance id."""
        member_id = self._static.get(instance_id)
        return None if member_id is None else self._members[member_id]

    def add(self, member: ClassicMember) -> None:
        """Add a member."""
        self._members[member.member_id] = member
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id

    def remove(self, member: ClassicMember) -> None:
        """Remove a member."""
        del self._members[member.member_id]
        if member.instance_id is not None:
            self._static.pop(member.instance_id, None)

    def rename(self, member: ClassicMember, member_id: str) -> None:
        """A static member has come back with another id; its position is unchanged."""
        renamed = {
            member_id if key == member.member_id else key: value
            for key, value in self._members.items()
        }
        member.member_id = member_id
        self._members = renamed
        if member.instance_id is not None:
            self._static[member.instance_id] = member_id

    def all_joined(self) -> bool:
        """Whether every member is waiting for the response to its join."""
        return all(member.joining is not None for member in self._members.values())

    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of all members."""
        return max((member.rebalance_timeout_ms for member in self._members.values()), default=0)

    def common_protocols(self) -> set[str]:
        """The protocols that every member supports."""
        counts = Counter(
            name
            for member in self._members.values()
            for name in {name for name, _ in member.protocols}
        )
        return {name for name, count in counts.items() if count == len(self._members)}

    def select_protocol(self) -> str:
        """The protocol that most members prefer among those that all of them support."""
        candidates = self.common_protocols()
        votes = Counter(
            next(name for name, _ in member.protocols if name in candidates)
            for member in self._members.values()
        )
        return votes.most_common(1)[0][0]


def subscribed_topics(members: Iterable[ClassicMember], protocol: str) -> frozenset[str] | None:
    """The topics that consumers subscribe to; None if their metadata is not a subscription."""
    topics: set[str] = set()
    for member in members:
        data = member.metadata(protocol)
        try:
            # Newer versions only add fields at the end, so all can be read as the known version.
            version = int.from_bytes(data[:2], "big", signed=True)
            if version < 0 or len(data) < 2:
                return None
            known = min(version, SUBSCRIPTION_VERSION_MAX)
            view = memoryview(data)
            found, _ = message.decode(ConsumerProtocolSubscription, view, known, 2)
        except (BrokerError, ValueError):
            return None
        topics.update(found.topics)
    return frozenset(topics)
