"""The sticky assignment: balanced first, then with as few moved partitions as possible.

Balanced: no member could take a partition it is subscribed to from a member that has at least two
more.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from broker.client.assignors.api import MemberSubscription, members_by_topic
from broker.model import TopicPartition

Division = dict[str, list[TopicPartition]]


@dataclass(frozen=True, slots=True)
class Claim:
    """Partitions that a member claims to have owned as of a generation of the group."""

    member_id: str
    partitions: Iterable[TopicPartition]
    generation: int


def previous_owners(claims: Iterable[Claim]) -> dict[TopicPartition, str]:
    """The last owner of each partition: the newest claim; two equally new claims are both void."""
    newest: dict[TopicPartition, tuple[int, str | None]] = {}
    for claim in claims:
        for partition in set(claim.partitions):
            generation, _ = newest.get(partition, (None, None))
            if generation is None or claim.generation > generation:
                newest[partition] = (claim.generation, claim.member_id)
            elif claim.generation == generation:
                newest[partition] = (generation, None)
    return {
        partition: member_id
        for partition, (_, member_id) in newest.items()
        if member_id is not None
    }


def divide(
    members: Sequence[MemberSubscription],
    partition_counts: Mapping[str, int],
    owners: Mapping[TopicPartition, str],
) -> Division:
    """Assign all partitions of the subscribed topics."""
    takers = members_by_topic(members)
    partitions = [
        TopicPartition(topic, number)
        for topic in sorted(takers)
        for number in range(partition_counts.get(topic, 0))
    ]
    kept: Division = {
        member.member_id: [] for member in sorted(members, key=lambda member: member.order)
    }
    wants = {member.member_id: set(member.topics) for member in members}
    for partition in partitions:
        owner = owners.get(partition)
        if owner in wants and partition.topic in wants[owner]:
            kept[owner].append(partition)
    if len({frozenset(topics) for topics in wants.values()}) == 1:
        return _divide_equally(kept, partitions)
    return _divide_by_subscription(kept, partitions, takers)


def _divide_equally(kept: Division, partitions: Sequence[TopicPartition]) -> Division:
    """All members have the same subscription: each gets an equal share, in one pass."""
    share, extra = divmod(len(partitions), len(kept))
    held: set[TopicPartition] = set()
    for found in kept.values():
        more = extra > 0 and len(found) > share
        extra -= more
        del found[share + more :]
        held.update(found)
    free = iter([partition for partition in partitions if partition not in held])
    # Round by round, so that neighbouring partitions of a topic go to different members.
    short = [found for found in kept.values() if len(found) < share]
    while short:
        for found in short:
            found.append(next(free))
        short = [found for found in short if len(found) < share]
    level = iter([found for found in kept.values() if len(found) == share])
    for partition in free:
        next(level).append(partition)
    return kept


def _divide_by_subscription(
    kept: Division,
    partitions: Sequence[TopicPartition],
    takers: Mapping[str, Sequence[MemberSubscription]],
) -> Division:
    """Members have different subscriptions: assign free partitions, then move until balanced."""
    owner = {partition: member_id for member_id, found in kept.items() for partition in found}
    load = {member_id: len(found) for member_id, found in kept.items()}
    ids = {topic: [member.member_id for member in wanting] for topic, wanting in takers.items()}

    def least_loaded(topic: str) -> str:
        return min(ids[topic], key=load.__getitem__)

    # Topics with few subscribers come first: they leave the least choice.
    ordered = sorted(partitions, key=lambda partition: (len(ids[partition.topic]), partition))
    for partition in ordered:
        if partition not in owner:
            owner[partition] = least_loaded(partition.topic)
            load[owner[partition]] += 1
    moved = True
    while moved:  # every move lowers the sum of the squares of the loads, so this ends
        moved = False
        for partition in ordered:
            taker = least_loaded(partition.topic)
            if load[owner[partition]] > load[taker] + 1:
                load[owner[partition]] -= 1
                load[taker] += 1
                owner[partition] = taker
                moved = True
    divided: Division = {member_id: [] for member_id in kept}
    for partition in sorted(owner):
        divided[owner[partition]].append(partition)
    return divided
