"""Tables joined by key: what the tables of results do not show."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.dsl.builder import StreamsBuilder
from streams.dsl.table import Table
from tests.streams.joins.driving import pair, running, table

DROPPED = "dropped-records-total"
METHODS = ["join", "left_join", "outer_join"]


def joined(method: str, **options: Any) -> Any:
    def wire(builder: StreamsBuilder) -> Any:
        left, right = table(builder, "left"), table(builder, "right")
        return getattr(left, method)(right, pair, **options)

    return wire


def test_results_have_the_later_time() -> None:
    with running(joined("join")) as run:
        assert run.run([("left", "k", "A", 10), ("right", "k", "b", 5)]) == [("k", "A-b", 10)]
        assert run.run([("right", "k", "c", 20)]) == [("k", "A-c", 20)]


def test_the_inner_join_deletes_what_may_never_have_been() -> None:
    with running(joined("join")) as run:
        assert run.run([("right", "k", "b", 1), ("left", "k", None, 2)]) == [("k", None, 2)]


@pytest.mark.parametrize("method", ["left_join", "outer_join"])
def test_other_joins_know_that_there_was_nothing(method: str) -> None:
    with running(joined(method)) as run:
        assert run.run([("left", "k", None, 1)]) == []
        assert run.run([("left", "k", "A", 2), ("left", "k", None, 3), ("left", "k", None, 4)]) == [
            ("k", "A-null", 2),
            ("k", None, 3),
        ]


def test_a_join_that_is_not_kept_is_computed_when_it_is_looked_up() -> None:
    def wire(builder: StreamsBuilder) -> Any:
        left = table(builder, "left").filter(lambda key, value: value != "hidden")
        right = table(builder, "right").map_values(str.upper)
        return left.outer_join(right, pair).join(table(builder, "third"), pair)

    with running(wire) as run:
        # Only the three sources are kept.
        assert len(run.driver.topology.stores) == 3
        run.run([("left", "k", "A", 1), ("right", "k", "b", 2)])
        assert run.run([("third", "k", "T", 3)]) == [("k", "A-B-T", 3)]
        assert run.run([("left", "k", "hidden", 4)]) == [("k", "null-B-T", 4)]
        assert run.run([("third", "k", "U", 5)]) == [("k", "null-B-U", 5)]
        assert run.run([("right", "k", None, 6)]) == [("k", None, 6)]
        assert run.run([("third", "k", "V", 7)]) == []


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("join", []),
        ("left_join", [("k", "A-null-T", 2)]),
        ("outer_join", [("k", "A-null-T", 2)]),
    ],
)
def test_a_lookup_finds_what_the_join_has(method: str, expected: list[Any]) -> None:
    def wire(builder: StreamsBuilder) -> Any:
        first: Table[str, str] = joined(method)(builder)
        return table(builder, "third").join(first, lambda third, both: f"{both}-{third}")

    with running(wire) as run:
        assert run.run([("left", "k", "A", 1), ("third", "k", "T", 2)]) == expected


def test_a_lookup_of_an_outer_join_finds_right_values_alone() -> None:
    for method, expected in (("left_join", []), ("outer_join", [("k", "null-b-T", 2)])):

        def wire(builder: StreamsBuilder, method: str = method) -> Any:
            first: Table[str, str] = joined(method)(builder)
            return table(builder, "third").join(first, lambda third, both: f"{both}-{third}")

        with running(wire) as run:
            assert run.run([("right", "k", "b", 1), ("third", "k", "T", 2)]) == expected


@pytest.mark.parametrize("method", METHODS)
def test_records_without_key_are_dropped(method: str) -> None:
    with running(joined(method)) as run:
        assert run.run([("left", None, "A", 1), ("right", None, "b", 2)]) == []
        assert run.driver.metric(DROPPED) == 2


def test_a_table_may_be_joined_with_itself() -> None:
    def wire(builder: StreamsBuilder) -> Any:
        one = table(builder, "left")
        return one.join(one, pair)

    with running(wire) as run:
        assert run.run([("left", "k", "A", 1)]) == [("k", "A-A", 1), ("k", "A-A", 1)]


def test_results_held_back_are_told_once_at_the_commit() -> None:
    wire = joined("outer_join", store="result", value=str)
    with running(wire, cache_bytes=1_000_000, commit="manual") as run:
        run.run([("left", "k", "A", 1), ("right", "k", "b", 2), ("left", "k", "C", 3)])
        run.driver.commit()
        assert run.take() == [("k", "C-b", 3)]
        run.run([("left", "j", "A", 4), ("left", "j", None, 5)])
        run.driver.commit()
        assert run.take() == []


def test_a_result_may_have_a_past() -> None:
    def wire(builder: StreamsBuilder) -> Any:
        both = table(builder, "left").join(
            table(builder, "right"), pair, store="result", value=str, versioned_history=1000
        )
        return builder.stream("asking", key=str, value=str).join(both, pair)

    with running(wire) as run:
        run.run([("left", "k", "A", 10), ("right", "k", "b", 20), ("right", "k", "c", 30)])
        assert run.run([("asking", "k", "Q", 25)]) == [("k", "Q-A-b", 25)]
        assert run.run([("asking", "k", "Q", 35)]) == [("k", "Q-A-c", 35)]


@pytest.mark.parametrize("method", METHODS)
def test_nodes_are_named_as_kafka_names_them(method: str) -> None:
    with running(joined(method)) as run:
        names = [node.name for part in run.driver.topology.sub_topologies for node in part.nodes]
        assert {
            "KTABLE-MERGE-0000000006",
            "KTABLE-JOINTHIS-0000000007",
            "KTABLE-JOINOTHER-0000000008",
        } <= set(names)
    with running(joined(method, name="both")) as run:
        names = [node.name for part in run.driver.topology.sub_topologies for node in part.nodes]
        assert {"both", "both-join-this", "both-join-other"} <= set(names)


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["left", "right"]),
        st.sampled_from("ab"),
        st.none() | st.sampled_from("123"),
    ),
    max_size=25,
)


def relational(method: str, left: dict[str, str], right: dict[str, str]) -> dict[str, str]:
    keys = {
        "join": left.keys() & right.keys(),
        "left_join": left.keys(),
        "outer_join": left.keys() | right.keys(),
    }[method]
    return {key: pair(left.get(key), right.get(key)) for key in keys}


@pytest.mark.slow
@pytest.mark.parametrize("cache_bytes", [0, 1_000_000])
@pytest.mark.parametrize("store", [None, "result"])
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25, deadline=None)
@given(changes=CHANGES)
def test_after_any_changes_the_result_is_the_relational_join(
    method: str,
    store: str | None,
    cache_bytes: int,
    changes: list[tuple[str, str, str | None]],
) -> None:
    """Counted per value, too: what is added must be taken away, so old values must be right."""

    def wire(builder: StreamsBuilder) -> Any:
        options = {} if store is None else {"store": store, "value": str}
        both: Table[str, str] = joined(method, **options)(builder)
        counts = both.group_by(lambda key, value: (value, key), key=str, value=str).count()
        counts.to_stream().map_values(str).to("counts", key=str, value=str)
        return both

    tables: dict[str, dict[str, str]] = {"left": {}, "right": {}}
    seen: dict[str | None, str | None] = {}
    with running(wire, cache_bytes=cache_bytes) as run:
        for number, (topic, key, value) in enumerate(changes):
            if value is None:
                tables[topic].pop(key, None)
            else:
                tables[topic][key] = value
            seen |= {k: v for k, v, _ in run.run([(topic, key, value, number)])}
            expected = relational(method, tables["left"], tables["right"])
            assert {k: v for k, v in seen.items() if v is not None} == expected
        totals = {k: v for k, v, _ in run.take("counts") if v != "0"}
        expected_values = list(relational(method, tables["left"], tables["right"]).values())
        last = {value: str(expected_values.count(value)) for value in expected_values}
        assert {k: v for k, v in totals.items() if k in last} == last
