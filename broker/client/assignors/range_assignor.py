"""RangeAssignor: a contiguous range of each topic's partitions for each member.

The order of members is the same for every topic, so topics with equally many partitions are
co-partitioned: partition n of each goes to the same member.
"""

from collections.abc import Iterable, Mapping, Sequence

from broker.client.assignors.api import MemberAssignment, MemberSubscription, members_by_topic
from broker.model import TopicPartition


class RangeAssignor:
    """Assigns topic by topic; the first members get the remainder."""

    name = "range"
    cooperative = False

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """Not used."""
        return None

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> dict[str, MemberAssignment]:
        """The same assignment as Kafka's RangeAssignor."""
        assigned: dict[str, list[TopicPartition]] = {member.member_id: [] for member in members}
        for topic, takers in sorted(members_by_topic(members).items()):
            share, extra = divmod(partition_counts.get(topic, 0), len(takers))
            start = 0
            for index, member in enumerate(takers):
                end = start + share + (index < extra)
                assigned[member.member_id] += [TopicPartition(topic, n) for n in range(start, end)]
                start = end
        return {member_id: MemberAssignment(tuple(found)) for member_id, found in assigned.items()}

    def on_assignment(self, assignment: MemberAssignment, generation: int) -> None:
        """Not used."""
