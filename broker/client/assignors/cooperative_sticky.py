"""CooperativeStickyAssignor: as sticky, but members keep reading what they keep.

A partition that moves stays unassigned at first; its owner gives it up and joins again, and the
second rebalance hands it over. So only partitions that really move are paused. User data is the
member's generation (int32); what it holds is in the subscription itself.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence

from broker.client.assignors.api import NO_GENERATION, MemberAssignment, MemberSubscription
from broker.client.assignors.balance import Claim, divide, previous_owners


class CooperativeStickyAssignor:
    """Sticky division in two steps; one instance belongs to one member."""

    name = "cooperative-sticky"
    cooperative = True

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """The generation in which this member got what it owns."""
        return struct.pack(">i", self._generation)

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> dict[str, MemberAssignment]:
        """A balanced division without what another member still holds."""
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
        """Remember when it was."""
        self._generation = generation


def _generation(member: MemberSubscription) -> int:
    """The newest the member can prove: newer subscriptions carry it themselves."""
    if member.generation != NO_GENERATION or not member.user_data or len(member.user_data) < 4:
        return member.generation
    return int(struct.unpack_from(">i", member.user_data)[0])
