"""StickyAssignor: balanced, and partitions keep their owners (eager rebalances).

In an eager rebalance members revoke everything before they join, so each remembers its assignment
and sends it as user data (all integers big-endian, strings with a 16-bit length):

    previous assignment => [topic partitions]     32-bit count
      topic             => string
      partitions        => [int32]                32-bit count
    generation          => int32                  absent in version 0
"""

import struct
from collections.abc import Iterable, Mapping, Sequence

from broker.client.assignors.api import NO_GENERATION, MemberAssignment, MemberSubscription
from broker.client.assignors.balance import Claim, divide, previous_owners
from broker.model import TopicPartition
from broker.protocol.primitives import string


class StickyAssignor:
    """Remembers the last assignment of its member; one instance belongs to one member."""

    name = "sticky"
    cooperative = False

    def __init__(self) -> None:
        self._held: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    def user_data(self, topics: Iterable[str]) -> bytes | None:
        """The last assignment of this member, with its generation."""
        return None if self._held is None else encode_previous(self._held, self._generation)

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> dict[str, MemberAssignment]:
        """A balanced assignment that moves few partitions."""
        claims = []
        for member in members:
            held, generation = decode_previous(member.user_data)
            claims.append(Claim(member.member_id, held, generation))
        divided = divide(members, partition_counts, previous_owners(claims))
        return {member_id: MemberAssignment(tuple(found)) for member_id, found in divided.items()}

    def on_assignment(self, assignment: MemberAssignment, generation: int) -> None:
        """Remember the assignment for the next rebalance."""
        self._held = assignment.partitions
        self._generation = generation


def encode_previous(held: Iterable[TopicPartition], generation: int) -> bytes:
    """User data, version 1."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in held:
        by_topic.setdefault(topic, []).append(partition)
    parts = [struct.pack(">i", len(by_topic))]
    for topic, partitions in by_topic.items():
        parts.append(string(topic))
        parts.append(struct.pack(f">i{len(partitions)}i", len(partitions), *partitions))
    parts.append(struct.pack(">i", generation))
    return b"".join(parts)


def decode_previous(user_data: bytes | None) -> tuple[list[TopicPartition], int]:
    """User data of any version; invalid user data count as no partitions."""
    if not user_data:
        return [], NO_GENERATION
    try:
        held: list[TopicPartition] = []
        (topics,), position = struct.unpack_from(">i", user_data), 4
        for _ in range(topics):
            (size,) = struct.unpack_from(">h", user_data, position)
            if size < 0:
                return [], NO_GENERATION
            topic = bytes(user_data[position + 2 : position + 2 + size]).decode()
            position += 2 + size
            (count,) = struct.unpack_from(">i", user_data, position)
            numbers = struct.unpack_from(f">{count}i", user_data, position + 4)
            held += [TopicPartition(topic, number) for number in numbers]
            position += 4 + 4 * count
        if position == len(user_data):
            return held, NO_GENERATION
        return held, struct.unpack_from(">i", user_data, position)[0]
    except (struct.error, UnicodeDecodeError):
        return [], NO_GENERATION
