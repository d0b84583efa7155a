"""Optimisations: which are chosen, and what they change beyond the description."""

import pytest

from streams import StreamsBuilder, join_within
from streams.dsl.optimise import (
    ALL,
    MERGE_REPARTITIONS,
    REUSE_SOURCE_TOPICS,
    Optimize,
    parse_optimisations,
)
from streams.errors import TopologyError
from streams.topology import ProcessorNode, Topology
from tests.streams.topology.topologies import changed_keys, first, swap, yes

CHOICES: list[tuple[Optimize, frozenset[str]]] = [
    (False, frozenset()),
    ("none", frozenset()),
    ([], frozenset()),
    (True, ALL),
    ("all", ALL),
    (MERGE_REPARTITIONS, frozenset({MERGE_REPARTITIONS})),
    (
        "merge.repartition.topics, reuse.ktable.source.topics",
        frozenset({MERGE_REPARTITIONS, REUSE_SOURCE_TOPICS}),
    ),
    (["reuse.ktable.source.topics"], frozenset({REUSE_SOURCE_TOPICS})),
]


@pytest.mark.parametrize(("given", "expected"), CHOICES)
def test_optimisations_are_chosen_by_name(given: Optimize, expected: frozenset[str]) -> None:
    assert parse_optimisations(given) == expected


@pytest.mark.parametrize("given", ["some", ["all", "none"], "all,merge.repartition.topics"])
def test_other_names_are_refused(given: Optimize) -> None:
    with pytest.raises(TopologyError, match="is not an optimisation"):
        parse_optimisations(given)


def kept_table(optimize: Optimize) -> Topology:
    """A table that a join needs."""
    builder = StreamsBuilder()
    users = builder.table("users", key=str, value=str)
    builder.stream("clicks", key=str, value=str).join(users, first).to("out")
    return builder.build(optimize)


def test_a_source_table_has_a_changelog_of_its_own() -> None:
    topology = kept_table(optimize=False)
    store = "users-STATE-STORE-0000000000"
    assert topology.changelogs == {store: store + "-changelog"}
    assert topology.source_changelogs == frozenset()


def test_a_source_table_can_have_its_topic_as_changelog() -> None:
    topology = kept_table(optimize=REUSE_SOURCE_TOPICS)
    store = "users-STATE-STORE-0000000000"
    assert topology.changelogs == {store: "users"}
    assert topology.source_changelogs == {store}


def test_repartitions_of_the_same_values_become_one_topic() -> None:
    assert set(changed_keys(optimize=False).repartition_topics) == {
        "totals-repartition",
        "KSTREAM-REDUCE-STATE-STORE-0000000011-repartition",
        "KSTREAM-AGGREGATE-STATE-STORE-0000000019-repartition",
    }
    assert set(changed_keys(optimize=True).repartition_topics) == {
        "totals-repartition",
        "KSTREAM-AGGREGATE-STATE-STORE-0000000019-repartition",
    }


def test_a_repartition_stays_when_records_come_past_the_change_of_keys() -> None:
    """Moved above the merge, it would no longer see the other stream's records."""
    builder = StreamsBuilder()
    mapped = builder.stream("one", key=str, value=str).map(swap)
    mapped.group_by_key(name="alone").count().to_stream().to("a")
    other = builder.stream("two", key=str, value=str).map(swap)
    mapped.merge(other).group_by_key(name="both").count().to_stream().to("b")
    topics = builder.build(optimize=True).repartition_topics
    assert set(topics) == {"alone-repartition", "both-repartition"}


def test_building_twice_gives_the_same() -> None:
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=str)
    orders.join(orders, first, join_within(1000)).map(swap).group_by_key().count()
    plain = builder.build().describe()
    optimised = builder.build(optimize=True).describe()
    assert plain != optimised
    assert builder.build().describe() == plain
    assert builder.build(optimize=True).describe() == optimised


def test_topics_that_are_joined_must_have_equal_partition_counts() -> None:
    builder = StreamsBuilder()
    left = builder.stream("orders", key=str, value=str).map(swap)
    users = builder.table("users", key=str, value=str)
    left.filter(yes).join(users, first).to("out")
    assert builder.build().copartitions == (
        frozenset({"KSTREAM-FILTER-0000000005-repartition", "users"}),
    )
    assert builder.build(optimize=True).copartitions == (
        frozenset({"KSTREAM-FILTER-0000000005-repartition", "users"}),
    )


def null_filter(topology: Topology) -> str:
    """The kind of operator before the only repartition."""
    (name,) = topology.repartition_topics
    (found,) = [
        type(node.operator).__name__
        for part in topology.sub_topologies
        for node in part.nodes
        if isinstance(node, ProcessorNode) and node.name == f"{name}-filter"
    ]
    return found


@pytest.mark.parametrize(("left", "expected"), [(False, "DropNullKeys"), (True, "PassThrough")])
def test_null_keys_pass_a_repartition_only_before_a_join_that_takes_them(
    left: bool, expected: str
) -> None:
    builder = StreamsBuilder()
    users = builder.table("users", key=str, value=str)
    mapped = builder.stream("orders", key=str, value=str).map(swap)
    (mapped.left_join if left else mapped.join)(users, first, name="joined").to("out")
    assert null_filter(builder.build()) == expected


def test_a_left_join_of_a_stream_with_itself_keeps_both_windows() -> None:
    """Kafka Streams rewrites it too, and then loses records without a key."""
    builder = StreamsBuilder()
    orders = builder.stream("orders", key=str, value=str)
    orders.left_join(orders, first, join_within(1000)).to("pairs")
    assert len(builder.build(optimize=True).stores) == 3


def test_ways_that_part_and_meet_again_are_walked_once() -> None:
    """Walked one by one, the 2 ** 40 ways of this topology would take for ever."""
    builder = StreamsBuilder()
    words = builder.stream("words", key=str, value=str).map(swap)
    for _ in range(40):
        words = words.filter(yes).merge(words.filter_not(yes))
    words.group_by_key(name="met").count()
    users = builder.table("users", key=str, value=str)
    words.join(users, first).to("out")
    topology = builder.build(optimize=True)
    assert set(topology.repartition_topics) == {"met-repartition"}
    assert topology.copartitions == (frozenset({"met-repartition", "users"}),)
