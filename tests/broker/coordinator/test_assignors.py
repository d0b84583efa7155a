"""The broker's assignors: everything is given, once, evenly, and little of it moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.assignors import (
    ASSIGNORS,
    Partitions,
    Subscriber,
    assign_range,
    assign_uniform,
)

TOPIC_IDS = [name * 16 for name in (b"a", b"b", b"c", b"d")]
TOPICS = st.dictionaries(st.sampled_from(TOPIC_IDS), st.integers(1, 12), min_size=1)
SUBSCRIPTIONS = st.frozensets(st.sampled_from(TOPIC_IDS), min_size=1)
PARTITIONS = st.frozensets(st.tuples(st.sampled_from(TOPIC_IDS), st.integers(0, 13)), max_size=8)
MEMBERS = st.dictionaries(
    st.sampled_from("uvwxyz"),
    st.builds(
        Subscriber,
        topics=SUBSCRIPTIONS,
        instance_id=st.none() | st.sampled_from("ij"),
        current=PARTITIONS,
    ),
    min_size=1,
)


@pytest.mark.slow
@given(MEMBERS, TOPICS, st.sampled_from(sorted(ASSIGNORS)))
def test_every_subscribed_partition_has_one_owner(
    members: dict[str, Subscriber], topics: dict[bytes, int], name: str
) -> None:
    given_out = ASSIGNORS[name](members, topics)
    assert given_out.keys() == members.keys()
    everything = [partition for partitions in given_out.values() for partition in partitions]
    assert len(everything) == len(set(everything))
    wanted = {topic for member in members.values() for topic in member.topics}
    assert set(everything) == {
        (topic, number)
        for topic, count in topics.items()
        if topic in wanted
        for number in range(count)
    }
    for member_id, partitions in given_out.items():
        assert {topic for topic, _ in partitions} <= members[member_id].topics


@pytest.mark.slow
@given(MEMBERS, TOPICS, SUBSCRIPTIONS)
def test_uniform_is_even_when_all_subscribe_to_the_same(
    members: dict[str, Subscriber], topics: dict[bytes, int], subscription: frozenset[bytes]
) -> None:
    same = {
        key: Subscriber(subscription, member.instance_id, member.current)
        for key, member in members.items()
    }
    sizes = [len(partitions) for partitions in assign_uniform(same, topics).values()]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.slow
@given(MEMBERS, TOPICS)
def test_uniform_cannot_be_evened_out_further(
    members: dict[str, Subscriber], topics: dict[bytes, int]
) -> None:
    given_out = assign_uniform(members, topics)
    for owner, partitions in given_out.items():
        for topic, _ in partitions:
            for other, member in members.items():
                if topic in member.topics:
                    assert len(given_out[owner]) - len(given_out[other]) <= 1


@pytest.mark.slow
@given(MEMBERS, TOPICS)
def test_uniform_moves_nothing_without_need(
    members: dict[str, Subscriber], topics: dict[bytes, int]
) -> None:
    first = assign_uniform(members, topics)
    assert assign_uniform(_holding(members, first), topics) == first


def _holding(
    members: dict[str, Subscriber], given_out: dict[str, Partitions]
) -> dict[str, Subscriber]:
    return {
        key: Subscriber(member.topics, member.instance_id, given_out[key])
        for key, member in members.items()
    }


def test_uniform_gives_a_newcomer_its_share_and_no_more_moves() -> None:
    topic = TOPIC_IDS[0]
    members = {key: Subscriber(frozenset({topic})) for key in "xy"}
    first = assign_uniform(members, {topic: 12})
    joined = {**_holding(members, first), "z": Subscriber(frozenset({topic}))}
    second = assign_uniform(joined, {topic: 12})
    assert [len(second[key]) for key in "xyz"] == [4, 4, 4]
    assert second["x"] < first["x"]
    assert second["y"] < first["y"]


def test_range_gives_neighbours_and_equal_numbers_of_all_topics() -> None:
    first, second = TOPIC_IDS[:2]
    members = {
        "x": Subscriber(frozenset({first, second})),
        "y": Subscriber(frozenset({first, second}), instance_id="1"),
    }
    given_out = assign_range(members, {first: 5, second: 4})
    assert sorted(given_out["y"]) == [(first, 0), (first, 1), (first, 2), (second, 0), (second, 1)]
    assert sorted(given_out["x"]) == [(first, 3), (first, 4), (second, 2), (second, 3)]
