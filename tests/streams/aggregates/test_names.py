"""Names of nodes, stores and topics of aggregates: Kafka Streams' own."""

from typing import Any

from streams.dsl.builder import StreamsBuilder
from streams.dsl.suppressed import until_time_limit, until_window_closes
from streams.topology import ProcessorNode, Topology
from streams.windows import session, tumbling
from tests.streams.aggregates.running import append, empty, grouped, remove


def nodes(topology: Topology) -> dict[str, tuple[str, ...]]:
    """Every node and its stores."""
    return {
        node.name: node.stores if isinstance(node, ProcessorNode) else ()
        for sub in topology.sub_topologies
        for node in sub.nodes
    }


def test_a_count_takes_its_store_its_node_and_then_its_repartition() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by(lambda key, value: value).count()
    topology = builder.build()
    store = "KSTREAM-AGGREGATE-STATE-STORE-0000000002"
    assert nodes(topology) == {
        "KSTREAM-SOURCE-0000000000": (),
        "KSTREAM-KEY-SELECT-0000000001": (),
        "KSTREAM-FILTER-0000000005": (),
        "KSTREAM-SINK-0000000004": (),
        "KSTREAM-SOURCE-0000000006": (),
        "KSTREAM-AGGREGATE-0000000003": (store,),
    }
    assert list(topology.repartition_topics) == [f"{store}-repartition"]
    assert topology.changelogs == {store: f"{store}-changelog"}


def test_a_count_with_options_but_no_store_name_takes_one_number_more() -> None:
    builder = StreamsBuilder()
    grouped(builder).count(caching=False)
    assert nodes(builder.build())["KSTREAM-AGGREGATE-0000000003"] == (
        "KSTREAM-AGGREGATE-STATE-STORE-0000000002",
    )


def test_a_named_group_shares_one_repartition_topic() -> None:
    builder = StreamsBuilder()
    by_value = builder.stream("in").group_by(lambda key, value: value, name="by-value")
    by_value.count(store="one")
    by_value.windowed_by(session(10)).count(store="two", name="sessions")
    topology = builder.build()
    assert list(topology.repartition_topics) == ["by-value-repartition"]
    assert {name: stores for name, stores in nodes(topology).items() if stores} == {
        "KSTREAM-AGGREGATE-0000000002": ("one",),
        "sessions": ("two",),
    }


def test_a_reduce_is_named_so() -> None:
    builder = StreamsBuilder()
    grouped(builder).windowed_by(tumbling(10)).reduce(max)
    assert nodes(builder.build())["KSTREAM-REDUCE-0000000002"] == (
        "KSTREAM-REDUCE-STATE-STORE-0000000001",
    )


def test_a_grouped_table_has_a_repartition_without_a_filter() -> None:
    builder = StreamsBuilder()
    rows: Any = builder.table("in", key=str, value=str)
    rows.group_by(lambda key, value: (value, key)).aggregate(empty, append, remove)
    topology = builder.build()
    store = "KTABLE-AGGREGATE-STATE-STORE-0000000004"
    assert nodes(topology) == {
        "KSTREAM-SOURCE-0000000001": (),
        "KTABLE-SOURCE-0000000002": ("in-STATE-STORE-0000000000",),
        "KTABLE-SELECT-0000000003": (),
        "KSTREAM-SINK-0000000005": (),
        "KSTREAM-SOURCE-0000000006": (),
        "KTABLE-AGGREGATE-0000000007": (store,),
    }
    assert list(topology.repartition_topics) == [f"{store}-repartition"]


def test_cogrouped_streams_are_named_one_after_the_other() -> None:
    builder = StreamsBuilder()
    by_value: Any = builder.stream("in").group_by(lambda key, value: value)
    by_value.cogroup(append).cogroup(grouped(builder, "other"), append).aggregate(empty)
    topology = builder.build()
    store = "COGROUPKSTREAM-AGGREGATE-STATE-STORE-0000000003"
    found = nodes(topology)
    assert {name for name, stores in found.items() if stores == (store,)} == {
        "COGROUPKSTREAM-AGGREGATE-0000000007",
        "COGROUPKSTREAM-AGGREGATE-0000000008",
    }
    assert "COGROUPKSTREAM-MERGE-0000000009" in found
    assert frozenset({"other", f"{store}-repartition"}) in topology.copartitions


def test_the_user_names_the_nodes_of_a_cogroup() -> None:
    builder = StreamsBuilder()
    grouped(builder).cogroup(append).aggregate(empty, name="mine", store="s")
    assert {"mine-cogroup-agg-0", "mine-cogroup-merge"} <= set(nodes(builder.build()))


def test_a_suppress_takes_two_numbers_or_none() -> None:
    builder = StreamsBuilder()
    counts = grouped(builder).windowed_by(tumbling(10)).count()
    counts.suppress(until_window_closes()).suppress(until_time_limit(5, name="mine"))
    found = nodes(builder.build())
    assert found["KTABLE-SUPPRESS-0000000003"] == ("KTABLE-SUPPRESS-STATE-STORE-0000000004",)
    assert found["mine"] == ("mine-store",)
