"""Assignors: agreed examples, and balance and stickiness as properties."""

import struct
from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.assignors import (
    Assignor,
    CooperativeStickyAssignor,
    MemberAssignment,
    MemberSubscription,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from broker.client.assignors.sticky import decode_previous, encode_previous
from broker.model import TopicPartition

Held = dict[str, tuple[TopicPartition, ...]]

TOPICS = ("a", "b", "c")
counts = st.fixed_dictionaries({topic: st.integers(0, 12) for topic in TOPICS})
wishes = st.dictionaries(
    st.sampled_from([f"m{n}" for n in range(8)]),
    st.sets(st.sampled_from(TOPICS)).map(lambda topics: tuple(sorted(topics))),
    min_size=1,
)


def members_of(
    wanted: Mapping[str, tuple[str, ...]], held: Held | None = None, generation: int = 1
) -> list[MemberSubscription]:
    """Subscriptions that say what each holds in both ways: owned, and as sticky user data."""
    return [
        MemberSubscription(
            member_id,
            topics,
            owned=(held or {}).get(member_id, ()),
            generation=generation,
            user_data=encode_previous((held or {}).get(member_id, ()), generation),
        )
        for member_id, topics in wanted.items()
    ]


def run(
    assignor: Assignor, members: list[MemberSubscription], partitions: Mapping[str, int]
) -> Held:
    assigned = assignor.assign(members, partitions)
    return {member_id: assignment.partitions for member_id, assignment in assigned.items()}


def text(held: Held) -> dict[str, str]:
    return {
        member_id: " ".join(f"{topic}{number}" for topic, number in partitions)
        for member_id, partitions in held.items()
    }


def numbered(partitions: Mapping[str, int], topics: Iterable[str]) -> set[TopicPartition]:
    return {TopicPartition(topic, n) for topic in topics for n in range(partitions.get(topic, 0))}


@pytest.mark.parametrize(
    ("wanted", "partitions", "expected"),
    [
        ({"m1": ("a",), "m2": ("a",)}, {"a": 3}, {"m1": "a0 a1", "m2": "a2"}),
        (
            {"m1": ("a", "b"), "m2": ("a", "b")},
            {"a": 3, "b": 3},
            {"m1": "a0 a1 b0 b1", "m2": "a2 b2"},
        ),
        ({"m1": ("a",), "m2": ("a",)}, {"a": 1}, {"m1": "a0", "m2": ""}),
        ({"m1": ("gone",)}, {"a": 1}, {"m1": ""}),
        (
            {"m2": ("a",), "m1": ("a", "b"), "m3": ("b",)},
            {"a": 4, "b": 2},
            {"m1": "a0 a1 b0", "m2": "a2 a3", "m3": "b1"},
        ),
    ],
)
def test_range_gives_runs_of_each_topic(
    wanted: dict[str, tuple[str, ...]], partitions: dict[str, int], expected: dict[str, str]
) -> None:
    assert text(run(RangeAssignor(), members_of(wanted), partitions)) == expected


@pytest.mark.parametrize(
    ("wanted", "partitions", "expected"),
    [
        (
            {"m1": ("a", "b"), "m2": ("a", "b")},
            {"a": 3, "b": 3},
            {"m1": "a0 a2 b1", "m2": "a1 b0 b2"},
        ),
        (
            {"m1": ("a",), "m2": ("a", "b"), "m3": ("a", "b", "c")},
            {"a": 1, "b": 2, "c": 3},
            {"m1": "a0", "m2": "b0", "m3": "b1 c0 c1 c2"},
        ),
        ({"m1": (), "m2": ("a",)}, {"a": 2}, {"m1": "", "m2": "a0 a1"}),
    ],
)
def test_round_robin_deals_partitions_in_turn(
    wanted: dict[str, tuple[str, ...]], partitions: dict[str, int], expected: dict[str, str]
) -> None:
    assert text(run(RoundRobinAssignor(), members_of(wanted), partitions)) == expected


def test_static_members_come_first_whatever_their_member_id() -> None:
    members = [
        MemberSubscription("a-dynamic", ("a",)),
        MemberSubscription("z", ("a",), instance_id="i1"),
        MemberSubscription("b", ("a",), instance_id="i2"),
    ]
    held = run(RangeAssignor(), members, {"a": 4})
    assert text(held) == {"a-dynamic": "a3", "z": "a0 a1", "b": "a2"}


@given(wanted=wishes, partitions=counts)
@pytest.mark.parametrize(
    "make", [RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor]
)
def test_every_wanted_partition_has_one_reader_that_wants_it(
    make: type[Assignor], wanted: dict[str, tuple[str, ...]], partitions: dict[str, int]
) -> None:
    held = run(make(), members_of(wanted), partitions)
    given_out = [partition for found in held.values() for partition in found]
    assert len(given_out) == len(set(given_out))
    assert set(given_out) == numbered(partitions, {t for topics in wanted.values() for t in topics})
    assert all(topic in wanted[m] for m, found in held.items() for topic, _ in found)
    assert held.keys() == wanted.keys()


@given(wanted=wishes, partitions=counts, after=wishes, grown=counts)
@pytest.mark.parametrize("make", [StickyAssignor, CooperativeStickyAssignor])
def test_sticky_stays_balanced_whatever_was_held(
    make: type[Assignor],
    wanted: dict[str, tuple[str, ...]],
    partitions: dict[str, int],
    after: dict[str, tuple[str, ...]],
    grown: dict[str, int],
) -> None:
    held = run(make(), members_of(wanted), partitions)
    held = settle(make, after, grown, held)
    assert {p for found in held.values() for p in found} == numbered(
        grown, {t for topics in after.values() for t in topics}
    )
    for rich, found in held.items():
        for poor, topics in after.items():
            if any(topic in topics for topic, _ in found):
                assert len(held[rich]) - len(held[poor]) <= 1


def settle(
    make: type[Assignor],
    wanted: Mapping[str, tuple[str, ...]],
    partitions: dict[str, int],
    held: Held,
) -> Held:
    """Rebalance as members do until nothing moves: a cooperative member gives up, then rejoins."""
    for generation in range(2, 6):
        assigned = run(make(), members_of(wanted, held, generation), partitions)
        if assigned == held:
            return held
        if make is CooperativeStickyAssignor:
            for member_id, found in assigned.items():
                others = {
                    p for m, old in held.items() if m != member_id for p in old if m in wanted
                }
                assert not others.intersection(found), "given before it was given up"
        held = assigned
    return held


@given(wanted=wishes, partitions=counts)
@pytest.mark.parametrize("make", [StickyAssignor, CooperativeStickyAssignor])
def test_sticky_moves_nothing_when_nothing_changed(
    make: type[Assignor], wanted: dict[str, tuple[str, ...]], partitions: dict[str, int]
) -> None:
    held = run(make(), members_of(wanted), partitions)
    again = run(make(), members_of(wanted, held), partitions)
    assert {m: set(found) for m, found in again.items()} == {m: set(f) for m, f in held.items()}


@given(size=st.integers(1, 6), partitions=counts, leaves=st.integers(0, 6))
@pytest.mark.parametrize("make", [StickyAssignor, CooperativeStickyAssignor])
def test_who_stays_keeps_everything_when_a_member_leaves(
    make: type[Assignor], size: int, partitions: dict[str, int], leaves: int
) -> None:
    wanted = {f"m{n}": TOPICS for n in range(size + 1)}
    held = run(make(), members_of(wanted), partitions)
    del wanted[f"m{leaves % (size + 1)}"]
    after = run(make(), members_of(wanted, held), partitions)
    assert all(set(held[member_id]) <= set(found) for member_id, found in after.items())


@given(size=st.integers(1, 6), partitions=counts)
@pytest.mark.parametrize("make", [StickyAssignor, CooperativeStickyAssignor])
def test_a_new_member_moves_no_more_than_its_own_share(
    make: type[Assignor], size: int, partitions: dict[str, int]
) -> None:
    wanted = {f"m{n}": TOPICS for n in range(size)}
    held = run(make(), members_of(wanted), partitions)
    wanted["m9"] = TOPICS
    after = settle(make, wanted, partitions, held)
    moved = sum(len(set(found) - set(after[m])) for m, found in held.items())
    assert moved == len(after["m9"])


def test_of_two_claims_the_newer_generation_wins_and_equal_ones_are_void() -> None:
    both = (TopicPartition("a", 0), TopicPartition("a", 1))
    members = [
        MemberSubscription("m1", ("a",), user_data=encode_previous(both, 3)),
        MemberSubscription("m2", ("a",), user_data=encode_previous(both, 4)),
    ]
    assert text(run(StickyAssignor(), members, {"a": 2})) == {"m1": "a1", "m2": "a0"}


def test_sticky_user_data_has_the_bytes_that_java_members_write() -> None:
    held = (TopicPartition("t", 1), TopicPartition("t", 2))
    data = bytes.fromhex("0000000100017400000002000000010000000200000007")
    assert encode_previous(held, 7) == data
    assert decode_previous(data) == (list(held), 7)
    assert decode_previous(data[:-4]) == (list(held), -1)


@given(st.binary(max_size=40))
def test_any_user_data_is_taken_or_ignored(data: bytes) -> None:
    decode_previous(data)
    members = [MemberSubscription("m", ("a",), user_data=data)]
    for assignor in (StickyAssignor(), CooperativeStickyAssignor()):
        assert text(run(assignor, members, {"a": 1})) == {"m": "a0"}


def test_an_eager_sticky_member_remembers_what_it_got() -> None:
    assignor = StickyAssignor()
    assert assignor.user_data(["a"]) is None
    assignor.on_assignment(MemberAssignment((TopicPartition("a", 3),)), 5)
    assert decode_previous(assignor.user_data(["a"])) == ([TopicPartition("a", 3)], 5)


def test_a_cooperative_member_sends_its_generation() -> None:
    assignor = CooperativeStickyAssignor()
    assignor.on_assignment(MemberAssignment(), 9)
    assert assignor.user_data(["a"]) == struct.pack(">i", 9)
