"""Assignor: the interface of assignors, and their arguments and results."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from broker.model import TopicPartition

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """The subscription of one member, and the partitions that it owns now."""

    member_id: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    user_data: bytes | None = None
    rack: str | None = None

    @property
    def order(self) -> tuple[bool, str]:
        """Static members come first, by instance id: a restart does not change the order."""
        return self.instance_id is None, self.instance_id or self.member_id


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """The assignment of one member."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None


class Assignor(Protocol):
    """Assigns partitions to members; all members of a group must support the same assignor.

    The leader assigns for all. Each member sends its `user_data` to the leader with its
    subscription, for assignors that need more than topics and owned partitions.
    """

    @property
    def name(self) -> str:
        """The protocol name of the assignor."""
        ...

    @property
    def cooperative(self) -> bool:
        """Whether members keep reading their partitions during a rebalance."""
        ...

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """Bytes to send with this member's subscription."""
        ...

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> dict[str, MemberAssignment]:
        """The assignment of every member; topics that do not exist have no partition count."""
        ...

    def on_assignment(self, assignment: MemberAssignment, generation: int) -> None:
        """Called with the assignment of this member."""
        ...


def members_by_topic(
    members: Iterable[MemberSubscription],
) -> dict[str, list[MemberSubscription]]:
    """The subscribed members of each topic, in the order of assignment."""
    found: dict[str, list[MemberSubscription]] = {}
    for member in sorted(members, key=lambda member: member.order):
        for topic in dict.fromkeys(member.topics):
            found.setdefault(topic, []).append(member)
    return found
