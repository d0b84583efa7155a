"""CooperativeStickyAssignor: like sticky, but members keep reading partitions that do not move.

A partition that moves stays unassigned at first: its owner revokes it and rejoins, and the second
rebalance assigns it to the new owner. User data is the member's generation (int32); the owned
partitions are in the subscription itself.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence

from broker.client.assignors.api import NO_GENERATION, MemberAssignment, MemberSubscription
from broker.client.assignors.balance import Claim, divide, previous_owners


class CooperativeStickyAssignor:
    """The sticky assignment in two steps; one instance belongs to one member."""

    name = "cooperative-sticky"
    cooperative = True

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """The generation of the assignment that this member owns."""
        return struct.pack(">i", self._generation)

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> dict[str, MemberAssignment]:
        """A balanced assignment, without partitions that another member must revoke first."""
        owners = previous_owners(
            Claim(member.member_id, member.owned, _generation(member)) for member in members
        )
        divided = divide(members, partition_counts, owners)
        given_up = {
            partition
            for member in members
            for partition in set(member.owned).difference(divided[member.member_id])
        }
        owned = {member.member_id: set(member.owned) for member in members}
        return {
            member_id: MemberAssignment(
                tuple(
                    partition
                    for partition in found
                    if partition in owned[member_id] or partition not in given_up
                )
            )
            for member_id, found in divided.items()
        }

    def on_assignment(self, assignment: MemberAssignment, generation: int) -> None:
        """Remember the generation."""
        self._generation = generation


def _generation(member: MemberSubscription) -> int:
    """The generation that a member proves: in its subscription, or in its user data."""
    if member.generation != NO_GENERATION or not member.user_data or len(member.user_data) < 4:
        return member.generation
    return int(struct.unpack_from(">i", member.user_data)[0])
