"""The broker's assignors, for groups whose assignment the broker computes. Pure functions.

uniform  as even as the subscriptions allow; members keep their partitions where possible.
range    per topic, in the order of the members: ranges of consecutive partitions, so that equal
         partition numbers of several topics are assigned to the same member.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heapreplace
from itertools import islice

Partition = tuple[bytes, int]
Partitions = frozenset[Partition]

NOTHING: Partitions = frozenset()

# Each round balances every topic once; few are needed, the limit is for unusual subscriptions.
BALANCE_ROUNDS_MAX = 32


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A member, as an assignor sees it."""

    topics: frozenset[bytes]
    instance_id: str | None = None
    current: Partitions = field(default=NOTHING)


Subscribers = Mapping[str, Subscriber]
Assignor = Callable[[Subscribers, Mapping[bytes, int]], dict[str, Partitions]]


def assign_uniform(members: Subscribers, topics: Mapping[bytes, int]) -> dict[str, Partitions]:
    """Assign every partition of the subscribed topics (id to partition count) to one member."""
    if not members:
        return {}
    kept = _still_valid(members, topics)
    subscriptions = {member.topics for member in members.values()}
    if len(subscriptions) == 1:
        return _assign_evenly(kept, _all_partitions(subscriptions.pop(), topics))
    return _assign_mixed(members, kept, topics)


def assign_range(members: Subscribers, topics: Mapping[bytes, int]) -> dict[str, Partitions]:
    """Assign each member a range of every topic it subscribes to."""
    # Static members come first, by instance id, so that a restart does not change the assignment.
    order = sorted(
        members, key=lambda key: (members[key].instance_id is None, members[key].instance_id or key)
    )
    given: dict[str, set[Partition]] = {member_id: set() for member_id in members}
    for topic, count in topics.items():
        subscribed = [member_id for member_id in order if topic in members[member_id].topics]
        start = 0
        for index, member_id in enumerate(subscribed):
            size, extra = divmod(count, len(subscribed))
            end = start + size + (index < extra)
            given[member_id].update((topic, number) for number in range(start, end))
            start = end
    return {member_id: frozenset(partitions) for member_id, partitions in given.items()}


ASSIGNORS: dict[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}


def _all_partitions(subscribed: frozenset[bytes], topics: Mapping[bytes, int]) -> list[Partition]:
    return [
        (topic, number) for topic in sorted(subscribed) for number in range(topics.get(topic, 0))
    ]


def _still_valid(members: Subscribers, topics: Mapping[bytes, int]) -> dict[str, list[Partition]]:
    """The partitions that each member may keep, in order; none is listed twice."""
    taken: set[Partition] = set()
    kept = {}
    for member_id in sorted(members):
        member = members[member_id]
        kept[member_id] = [
            (topic, number)
            for topic, number in sorted(member.current - taken)
            if topic in member.topics and number < topics.get(topic, 0)
        ]
        taken.update(kept[member_id])
    return kept


def _assign_evenly(
    kept: dict[str, list[Partition]], partitions: list[Partition]
) -> dict[str, Partitions]:
    """All members have the same subscription: each gets the quota, some get one more."""
    quota, extras = divmod(len(partitions), len(kept))
    given: dict[str, list[Partition]] = {}
    # The members with the most partitions get one more, so that as few as possible move.
    for member_id in sorted(kept, key=lambda key: -len(kept[key])):
        size = quota
        if extras and len(kept[member_id]) > quota:
            size += 1
            extras -= 1
        given[member_id] = kept[member_id][:size]
    taken = {partition for member in given.values() for partition in member}
    free = iter([partition for partition in partitions if partition not in taken])
    for member in given.values():
        member.extend(islice(free, max(quota - len(member), 0)))
    for member in given.values():
        if len(member) == quota:
            member.extend(islice(free, 1))
    return {member_id: frozenset(member) for member_id, member in given.items()}


def _assign_mixed(
    members: Subscribers, kept: dict[str, list[Partition]], topics: Mapping[bytes, int]
) -> dict[str, Partitions]:
    """Members have different subscriptions: fill up the least loaded, then balance."""
    given = {member_id: set(partitions) for member_id, partitions in kept.items()}
    taken = {partition for member in given.values() for partition in member}
    subscribers: dict[bytes, list[str]] = defaultdict(list)
    for member_id in sorted(members):
        for topic in members[member_id].topics & topics.keys():
            subscribers[topic].append(member_id)
    # Topics with few subscribers first: the others can compensate for them.
    order = sorted(subscribers, key=lambda topic: (len(subscribers[topic]), topic))
    for topic in order:
        loads = [(len(given[member_id]), member_id) for member_id in subscribers[topic]]
        heapify(loads)
        for number in range(topics[topic]):
            if (topic, number) not in taken:
                load, least = loads[0]
                given[least].add((topic, number))
                heapreplace(loads, (load + 1, least))
    for _ in range(BALANCE_ROUNDS_MAX):
        if sum(_even_out(topic, subscribers[topic], given) for topic in order) == 0:
            break
    return {member_id: frozenset(partitions) for member_id, partitions in given.items()}


def _even_out(topic: bytes, subscribed: list[str], given: dict[str, set[Partition]]) -> bool:
    """Move partitions of one topic from loaded members to others; whether any was moved."""
    owned = {
        member_id: sorted(item for item in given[member_id] if item[0] == topic)
        for member_id in subscribed
    }
    moved = False
    while True:
        givers = [member_id for member_id in subscribed if owned[member_id]]
        if not givers:
            return moved
        most = max(givers, key=lambda key: len(given[key]))
        least = min(subscribed, key=lambda key: len(given[key]))
        if len(given[most]) - len(given[least]) <= 1:
            return moved
        partition = owned[most].pop()
        given[most].remove(partition)
        given[least].add(partition)
        owned[least].append(partition)
        moved = True
