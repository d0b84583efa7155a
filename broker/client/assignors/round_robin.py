"""RoundRobinAssignor: all partitions assigned one by one to the members."""

from collections.abc import Iterable, Mapping, Sequence

from broker.client.assignors.api import MemberAssignment, MemberSubscription
from broker.model import TopicPartition


class RoundRobinAssignor:
    """Assigns partitions in order; members that are not subscribed to a topic are passed over."""

    name = "roundrobin"
    cooperative = False

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """Not used."""
        return None

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> dict[str, MemberAssignment]:
        """The same assignment as Kafka's RoundRobinAssignor."""
        ring = sorted(members, key=lambda member: member.order)
        assigned: dict[str, list[TopicPartition]] = {member.member_id: [] for member in ring}
        turn = 0
        for topic in sorted({topic for member in ring for topic in member.topics}):
            for number in range(partition_counts.get(topic, 0)):
                while topic not in ring[turn % len(ring)].topics:
                    turn += 1
                assigned[ring[turn % len(ring)].member_id].append(TopicPartition(topic, number))
                turn += 1
        return {member_id: MemberAssignment(tuple(found)) for member_id, found in assigned.items()}

    def on_assignment(self, assignment: MemberAssignment, generation: int) -> None:
        """Not used."""
