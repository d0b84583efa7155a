"""What an assignor is asked and what it answers."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from broker.model import TopicPartition

NO_GENERATION = -1


@dataclass(frozen=True, slots=True)
class MemberSubscription:
    """What one member of the group wants, and what it holds now."""

    member_id: str
    topics: tuple[str, ...]
    instance_id: str | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    user_data: bytes | None = None
    rack: str | None = None

    @property
    def order(self) -> tuple[bool, str]:
        """Static members come first, by instance id: a restart does not change their place."""
        return self.instance_id is None, self.instance_id or self.member_id


@dataclass(frozen=True, slots=True)
class MemberAssignment:
    """What one member of the group gets."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None


class Assignor(Protocol):
    """Divides partitions among members; all members of a group agree on one by its name.

    The leader's `assign` decides for all. `user_data` travels with each member's subscription to
    the leader, so that an assignor can know more than topics and owned partitions.
    """

    @property
    def name(self) -> str:
        """The name under which members agree on it."""
        ...

    @property
    def cooperative(self) -> bool:
        """Whether members may keep reading what they hold while the group rebalances."""
        ...

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """Bytes to send with this member's subscription."""
        ...

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> dict[str, MemberAssignment]:
        """An assignment for every member; topics that do not exist have no count."""
        ...

    def on_assignment(self, assignment: MemberAssignment, generation: int) -> None:
        """Learn what this member got."""
        ...


def members_by_topic(
    members: Iterable[MemberSubscription],
) -> dict[str, list[MemberSubscription]]:
    """Members that want each topic, in the order in which they are served."""
    found: dict[str, list[MemberSubscription]] = {}
    for member in sorted(members, key=lambda member: member.order):
        for topic in dict.fromkeys(member.topics):
            found.setdefault(topic, []).append(member)
    return found
