"""A stream joined with a table, or with a global table: what the tables of results do not show."""

from pathlib import Path
from typing import Any

import pytest

from streams.dsl.builder import StreamsBuilder
from streams.errors import TopologyError
from streams.record import Headers
from tests.streams.joins.driving import Output, pair, running, stream, table

DROPPED = "dropped-records-total"
VERSIONS = {"store": "versions", "versioned_history": 60_000}


def joined(method: str, grace: int | None = None, **table_options: Any) -> Any:
    def wire(builder: StreamsBuilder) -> Any:
        right = table(builder, "right", **table_options)
        options = {} if grace is None else {"grace": grace}
        return getattr(stream(builder, "left"), method)(right, pair, **options)

    return wire


def test_a_filtered_table_hides_its_values() -> None:
    def wire(builder: StreamsBuilder) -> Any:
        right = table(builder, "right").filter(lambda key, value: value != "hidden")
        return stream(builder, "left").left_join(right.map_values(str.upper), pair)

    with running(wire) as run:
        assert run.run([("right", "k", "a", 0), ("left", "k", "S", 1)]) == [("k", "S-A", 1)]
        assert run.run([("right", "k", "hidden", 2), ("left", "k", "S", 3)]) == [("k", "S-null", 3)]


@pytest.mark.parametrize(
    ("method", "expected", "dropped"), [("join", [], 1), ("left_join", [(None, "S-null", 1)], 0)]
)
@pytest.mark.parametrize("grace", [None, 5])
def test_a_record_without_key(
    method: str, expected: list[Output], dropped: int, grace: int | None
) -> None:
    with running(joined(method, grace, **VERSIONS)) as run:
        assert run.run([("left", None, "S", 1)]) == expected
        assert run.driver.metric(DROPPED) == dropped


def test_a_stream_whose_keys_changed_goes_through_a_topic_first() -> None:
    def wire(builder: StreamsBuilder) -> Any:
        left = stream(builder, "left").select_key(lambda key, value: value)
        return left.join(table(builder, "right"), pair)

    with running(wire, partitions=3) as run:
        assert "KSTREAM-KEY-SELECT-0000000001-repartition" in run.driver.topology.repartition_topics
        assert run.run([("right", "k", "a", 0), ("left", "x", "k", 1)]) == [("k", "k-a", 1)]


@pytest.mark.parametrize(
    ("name", "topic", "node"),
    [
        (
            None,
            "KSTREAM-KEY-SELECT-0000000001-repartition",
            "KSTREAM-JOIN-0000000008",
        ),
        ("mine", "mine-repartition", "mine"),
    ],
)
def test_nodes_and_topics_are_named_as_kafka_names_them(
    name: str | None, topic: str, node: str
) -> None:
    def wire(builder: StreamsBuilder) -> Any:
        left = stream(builder, "left").select_key(lambda key, value: value)
        return left.join(table(builder, "right"), pair, name=name)

    with running(wire) as run:
        assert list(run.driver.topology.repartition_topics) == [topic]
        names = [node.name for part in run.driver.topology.sub_topologies for node in part.nodes]
        assert node in names


def test_records_that_wait_leave_by_time_with_their_own_headers() -> None:
    with running(joined("left_join", 10, **VERSIONS)) as run:
        lefts = run.driver.create_input_topic("left", key=str, value=str)
        results = run.driver.create_output_topic("out", key=str, value=str)
        headers: Headers = (("h", b"1"), ("empty", b""), ("none", None))
        lefts.pipe_input("b", "S7", 7, headers=headers)
        lefts.pipe_input("a", "S5", 5)
        run.pipe("right", "b", "T6", 6)
        assert results.is_empty
        lefts.pipe_input("a", "S17", 17)
        records = results.read_records_to_list()
        assert [(record.value, record.timestamp_ms, record.headers) for record in records] == [
            ("S5-null", 5, ()),
            ("S7-T6", 7, headers),
        ]


def test_equal_records_that_wait_keep_their_order() -> None:
    with running(joined("left_join", 5, **VERSIONS)) as run:
        run.run([("left", "k", "A", 1), ("left", "k", "B", 1), ("left", "k", "C", 1)])
        assert run.run([("left", "x", "t", 6)]) == [
            ("k", "A-null", 1),
            ("k", "B-null", 1),
            ("k", "C-null", 1),
        ]


def test_changes_of_the_table_let_no_record_go() -> None:
    with running(joined("join", 10, **VERSIONS)) as run:
        run.run([("right", "k", "T", 0), ("left", "k", "S", 1)])
        assert run.run([("right", "k", "U", 1000)]) == []
        assert run.run([("left", "x", "t", 11)]) == [("k", "S-T", 1)]


@pytest.mark.parametrize("on_disk", [False, True])
def test_records_that_wait_survive_a_restart(tmp_path: Path, on_disk: bool) -> None:
    wire = joined("left_join", 10, **VERSIONS)
    with running(wire, state_directory=tmp_path if on_disk else None) as run:
        assert "KSTREAM-LEFTJOIN-0000000003-Buffer" in run.driver.topology.stores
        run.run([("left", "k", "A", 1), ("left", "k", "B", 1), ("right", "k", "T", 0)])
        run.driver.restart()
        assert run.run([("left", "k", "C", 1), ("left", "x", "t", 11)]) == [
            ("k", "A-T", 1),
            ("k", "B-T", 1),
            ("k", "C-T", 1),
        ]
        run.driver.restart()
        assert run.run([("left", "y", "t", 12)]) == []


def test_a_grace_needs_a_table_that_remembers_as_long() -> None:
    builder = StreamsBuilder()
    left = stream(builder, "left")
    with pytest.raises(TopologyError, match="needs a versioned table"):
        left.join(table(builder, "plain"), pair, grace=5)
    short = table(builder, "short", store="short", versioned_history=4)
    with pytest.raises(TopologyError, match="5 ms is longer than the table's history of 4 ms"):
        left.join(short.filter(lambda key, value: True), pair, grace=5)
    with pytest.raises(TopologyError, match='"grace" is -1 ms'):
        left.join(short, pair, grace=-1)
    left.join(short, pair, grace=4)


def test_what_does_not_fit_is_refused() -> None:
    builder = StreamsBuilder()
    left: Any = stream(builder, "left")
    with pytest.raises(TopologyError, match='"key_mapper" is not allowed'):
        left.join(table(builder, "right"), pair, key_mapper=lambda key, value: key)
    with pytest.raises(TopologyError, match="key_mapper is None"):
        left.join(builder.global_table("all", key=str, value=str), pair)
    with pytest.raises(TopologyError, match="'text' cannot be joined"):
        left.join("text", pair)
    with pytest.raises(TopologyError, match='"store_name" is not allowed'):
        left.join(table(builder, "other"), pair, store_name="s")


# ---- global tables


def globally(method: str) -> Any:
    def wire(builder: StreamsBuilder) -> Any:
        right = builder.global_table("right", key=str, value=str)
        left = stream(builder, "left")
        return getattr(left, method)(
            right, pair, key_mapper=lambda key, value: value.partition("|")[2] or None
        )

    return wire


@pytest.mark.parametrize(
    ("method", "missing", "unmapped", "dropped"),
    [
        ("join", [], [], 3),
        ("left_join", [("k", "B|y-null", 2)], [(None, "C-null", 3)], 2),
    ],
)
def test_a_global_table_is_looked_up_by_the_mapped_key(
    method: str, missing: list[Output], unmapped: list[Output], dropped: int
) -> None:
    with running(globally(method)) as run:
        assert run.run([("right", "x", "X", 100), ("left", "k", "A|x", 1)]) == [("k", "A|x-X", 1)]
        assert run.run([("left", None, "A|x", 1)]) == [(None, "A|x-X", 1)]
        assert run.run([("left", "k", "B|y", 2)]) == missing
        # Mapped to no key: a left join keeps it only if it has no key of its own.
        assert run.run([("left", "k", "C", 3), ("left", None, "C", 3)]) == unmapped
        assert run.run([("left", "k", None, 4)]) == []
        assert run.driver.metric(DROPPED) == dropped
        assert run.run([("right", "y", "Y", 5)]) == []
        names = [node.name for part in run.driver.topology.sub_topologies for node in part.nodes]
        assert any(name.startswith("KSTREAM-LEFTJOIN-") for name in names)
