"""Stream joined with stream: what the tables of results do not show."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.dsl.builder import StreamsBuilder
from streams.errors import TopologyError
from streams.topology import Topology
from streams.windows import JoinWindows, join_within
from tests.streams.joins.driving import Input, Output, pair, running, stream

DROPPED = "dropped-records-total"


def joined(method: str, within: JoinWindows, **options: Any) -> Any:
    def wire(builder: StreamsBuilder) -> Any:
        left, right = stream(builder, "left"), stream(builder, "right")
        return getattr(left, method)(right, pair, within, **options)

    return wire


def test_an_unmatched_record_waits_for_its_grace_although_it_is_out_of_order() -> None:
    # Kafka gives A-null at once, and A-b later all the same (KAFKA-19536).
    with running(joined("left_join", join_within(10, grace=50))) as run:
        assert run.run([("right", "x", "t", 100), ("left", "a", "A", 60)]) == []
        assert run.run([("right", "a", "b", 70)]) == [("a", "A-b", 70)]
        assert run.run([("right", "x", "t", 500)]) == []


def test_an_unmatched_record_beyond_its_grace_is_given_at_once() -> None:
    with running(joined("outer_join", join_within(10, grace=5))) as run:
        assert run.run([("left", "x", "t", 100), ("left", "a", "A", 84)]) == [("a", "A-null", 84)]
        assert run.run([("right", "b", "B", 84)]) == [("b", "null-B", 84)]
        assert run.run([("left", "c", "C", 85)]) == []


def test_left_records_wait_for_after_and_right_ones_for_before() -> None:
    with running(joined("outer_join", join_within(before=5, after=20))) as run:
        assert run.run([("left", "a", "A", 0), ("right", "b", "B", 0)]) == []
        assert run.run([("left", "x", "t", 5)]) == []
        assert run.run([("left", "x", "t", 6)]) == [("b", "null-B", 0)]
        assert run.run([("left", "x", "t", 20)]) == []
        assert run.run([("left", "x", "t", 21)]) == [("a", "A-null", 0)]


def test_a_match_cancels_all_equal_records() -> None:
    with running(joined("left_join", join_within(10))) as run:
        assert run.run([("left", "a", "A", 0), ("left", "a", "B", 0), ("left", "b", "C", 0)]) == []
        assert run.run([("right", "a", "r", 5)]) == [("a", "A-r", 5), ("a", "B-r", 5)]
        assert run.run([("right", "x", "t", 100)]) == [("b", "C-null", 0)]


def test_unmatched_records_come_by_time_right_before_left_and_by_key() -> None:
    waiting: list[Input] = [
        ("left", "b", "1", 5),
        ("left", "a", "2", 5),
        ("right", "d", "3", 5),
        ("right", "c", "4", 5),
        ("left", "e", "5", 3),
        ("right", "f", "6", 7),
    ]
    with running(joined("outer_join", join_within(10))) as run:
        assert run.run(waiting) == []
        results = run.run([("left", "x", "t", 100)])
        assert [(key, at) for key, _, at in results] == [
            ("e", 3),
            ("c", 5),
            ("d", 5),
            ("a", 5),
            ("b", 5),
            ("f", 7),
        ]


def test_results_without_partner_come_at_most_once_in_the_interval() -> None:
    interval = {"__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": 1000}
    with running(joined("outer_join", join_within(10)), settings=interval) as run:
        first = run.run([("left", "a", "A", 0), ("left", "b", "B", 100)])
        assert first == [("a", "A-null", 0)]
        assert run.run([("left", "c", "C", 200)]) == []
        run.driver.advance_wall_clock_time(1000)
        assert run.take() == []
        assert run.run([("left", "d", "D", 300)]) == [("b", "B-null", 100), ("c", "C-null", 200)]


def test_the_interval_is_one_second_by_default() -> None:
    wire = joined("left_join", join_within(10))
    with running(
        wire, settings={"__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": None}
    ) as run:
        assert run.run([("left", "a", "A", 0), ("left", "b", "B", 100)]) == [("a", "A-null", 0)]
        run.driver.advance_wall_clock_time(999)
        assert run.run([("left", "c", "C", 200)]) == []
        run.driver.advance_wall_clock_time(1)
        assert len(run.run([("left", "d", "D", 300)])) == 2


def test_eager_results_come_at_once_and_again_with_a_match() -> None:
    eager = JoinWindows(100, 100, 10, eager_unmatched=True)
    with running(joined("outer_join", eager)) as run:
        assert run.run([("left", "a", "A", 0)]) == [("a", "A-null", 0)]
        assert run.run([("right", "a", "b", 0)]) == [("a", "A-b", 0)]
        assert run.run([("right", "c", "d", 0)]) == [("c", "null-d", 0)]


@pytest.mark.parametrize(
    ("method", "left", "right", "dropped"),
    [
        ("join", [], [], 2),
        ("left_join", [(None, "A-null", 1)], [], 1),
        ("outer_join", [(None, "A-null", 1)], [(None, "null-b", 2)], 0),
    ],
)
def test_a_record_without_key_has_no_partner(
    method: str, left: list[Output], right: list[Output], dropped: int
) -> None:
    with running(joined(method, join_within(10))) as run:
        assert run.run([("left", None, "A", 1)]) == left
        assert run.run([("right", None, "b", 2)]) == right
        assert run.driver.metric(DROPPED) == dropped


@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
def test_a_record_without_value_is_dropped(method: str) -> None:
    with running(joined(method, join_within(10))) as run:
        assert run.run([("left", "a", None, 1), ("right", None, None, 2)]) == []
        assert run.driver.metric(DROPPED) == 2


@pytest.mark.parametrize("on_disk", [False, True])
def test_records_that_wait_survive_a_restart(tmp_path: Path, on_disk: bool) -> None:
    directory = tmp_path if on_disk else None
    wire = joined("outer_join", join_within(10, grace=5))
    with running(wire, state_directory=directory) as run:
        run.run([("left", "a", "A", 0), ("left", "a", "B", 0), ("right", "b", "C", 3)])
        run.driver.restart()
        assert run.run([("left", "b", "D", 4)]) == [("b", "D-C", 4)]
        run.driver.restart()
        assert run.run([("right", "x", "t", 16)]) == [("a", "A-null", 0), ("a", "B-null", 0)]
        run.driver.restart()
        assert run.run([("right", "y", "t", 17)]) == []


@pytest.mark.parametrize("on_disk", [False, True])
def test_a_restart_does_not_mix_up_records_of_one_time(tmp_path: Path, on_disk: bool) -> None:
    wire = joined("join", join_within(10))
    with running(wire, state_directory=tmp_path if on_disk else None) as run:
        for value in "ABCD":
            run.run([("left", "a", value, 0)])
            run.driver.restart()
        results = run.run([("right", "a", "r", 5)])
        assert sorted(value for _, value, _ in results if value) == ["A-r", "B-r", "C-r", "D-r"]


def test_the_join_remembers_its_time_over_a_restart() -> None:
    with running(joined("left_join", join_within(10))) as run:
        run.run([("left", "x", "t", 100)])
        run.driver.restart()
        assert run.run([("left", "a", "A", 50)]) == [("a", "A-null", 50)]


def test_the_joiner_may_have_the_key() -> None:
    def wire(builder: StreamsBuilder) -> Any:
        return stream(builder, "left").outer_join(
            stream(builder, "right"),
            lambda key, left, right: f"{key}:{left}:{right}",
            join_within(10),
            with_key=True,
        )

    with running(wire) as run:
        assert run.run([("left", "a", "A", 0), ("right", "a", "b", 1)]) == [("a", "a:A:b", 1)]
        assert run.run([("right", "c", "d", 2), ("right", "x", "t", 100)]) == [("c", "c:None:d", 2)]


def test_streams_whose_keys_changed_go_through_a_topic_first() -> None:
    def wire(builder: StreamsBuilder) -> Any:
        left = stream(builder, "left").select_key(lambda key, value: value[0])
        return left.left_join(stream(builder, "right"), pair, join_within(10))

    with running(wire, partitions=3) as run:
        out = run.run([("right", "a", "r", 0), ("left", "x", "a1", 1), ("left", "y", "b1", 2)])
        assert out == [("a", "a1-r", 1)]


def nodes(topology: Topology) -> list[str]:
    return sorted(node.name for part in topology.sub_topologies for node in part.nodes)


@pytest.mark.parametrize(
    ("method", "expected_nodes", "expected_stores"),
    [
        (
            "join",
            [
                "KSTREAM-JOINOTHER-0000000005",
                "KSTREAM-JOINTHIS-0000000004",
                "KSTREAM-MERGE-0000000006",
                "KSTREAM-SINK-0000000007",
                "KSTREAM-SOURCE-0000000000",
                "KSTREAM-SOURCE-0000000001",
                "KSTREAM-WINDOWED-0000000002",
                "KSTREAM-WINDOWED-0000000003",
            ],
            ["KSTREAM-JOINOTHER-0000000005-store", "KSTREAM-JOINTHIS-0000000004-store"],
        ),
        (
            "left_join",
            [
                "KSTREAM-JOINTHIS-0000000004",
                "KSTREAM-MERGE-0000000006",
                "KSTREAM-OUTEROTHER-0000000005",
                "KSTREAM-SINK-0000000007",
                "KSTREAM-SOURCE-0000000000",
                "KSTREAM-SOURCE-0000000001",
                "KSTREAM-WINDOWED-0000000002",
                "KSTREAM-WINDOWED-0000000003",
            ],
            [
                "KSTREAM-JOINTHIS-0000000004-store",
                "KSTREAM-OUTEROTHER-0000000005-store",
                "KSTREAM-OUTERSHARED-0000000004-store",
            ],
        ),
        (
            "outer_join",
            [
                "KSTREAM-MERGE-0000000006",
                "KSTREAM-OUTEROTHER-0000000005",
                "KSTREAM-OUTERTHIS-0000000004",
                "KSTREAM-SINK-0000000007",
                "KSTREAM-SOURCE-0000000000",
                "KSTREAM-SOURCE-0000000001",
                "KSTREAM-WINDOWED-0000000002",
                "KSTREAM-WINDOWED-0000000003",
            ],
            [
                "KSTREAM-OUTEROTHER-0000000005-store",
                "KSTREAM-OUTERSHARED-0000000004-store",
                "KSTREAM-OUTERTHIS-0000000004-store",
            ],
        ),
    ],
)
def test_nodes_and_stores_are_named_as_kafka_names_them(
    method: str, expected_nodes: list[str], expected_stores: list[str]
) -> None:
    with running(joined(method, join_within(10, grace=5))) as run:
        topology = run.driver.topology
        assert nodes(topology) == expected_nodes
        assert sorted(topology.stores) == expected_stores
        window = topology.stores[next(name for name in expected_stores if "OTHER" in name)]
        assert (window.retention_ms, window.window_size_ms) == (25, 20)
        assert window.retain_duplicates


def test_a_named_join_names_everything_after_itself() -> None:
    with running(joined("outer_join", join_within(10), name="pay", store_name="kept")) as run:
        topology = run.driver.topology
        assert [name for name in nodes(topology) if not name.startswith("KSTREAM")] == [
            "pay-merge",
            "pay-other-windowed",
            "pay-outer-other-join",
            "pay-outer-this-join",
            "pay-this-windowed",
        ]
        assert sorted(topology.stores) == [
            "kept-outer-other-join-store",
            "kept-outer-shared-join-store",
            "kept-outer-this-join-store",
        ]


def test_stores_are_kept_as_the_user_wants() -> None:
    plain = joined("outer_join", join_within(10))
    with running(plain) as run:
        stores = run.driver.topology.stores.values()
        assert all(store.logging and store.persistent for store in stores)
        assert len(run.driver.topology.changelogs) == 3
    asked = joined("outer_join", join_within(10), logging=False, persistent=False)
    with running(asked) as run:
        stores = run.driver.topology.stores.values()
        assert len(stores) == 3
        assert not any(store.logging or store.persistent for store in stores)
        assert not run.driver.topology.changelogs
        assert run.run([("left", "a", "A", 0), ("right", "a", "b", 1)]) == [("a", "A-b", 1)]


def test_what_does_not_fit_a_join_of_streams_is_refused() -> None:
    builder = StreamsBuilder()
    left, right = stream(builder, "left"), stream(builder, "right")
    untyped: Any = left
    with pytest.raises(TopologyError, match='"within" of a join of two streams is None'):
        untyped.join(right, pair)
    with pytest.raises(TopologyError, match='"grace" is not allowed'):
        untyped.join(right, pair, join_within(1), grace=1)
    with pytest.raises(TopologyError, match="joiner is None"):
        untyped.join(right, None, join_within(1))
    with pytest.raises(TopologyError, match="different builders"):
        left.join(stream(StreamsBuilder(), "right"), pair, join_within(1))


# ---- against an offline join

GRACE_MS = 30


@st.composite
def in_grace(draw: st.DrawFn) -> list[Input]:
    """Records out of order, none later than the grace."""
    inputs: list[Input] = []
    newest_ms = 0
    steps = st.tuples(
        st.sampled_from(["left", "right"]), st.sampled_from("ab"), st.integers(-GRACE_MS, 25)
    )
    for number, (topic, key, step_ms) in enumerate(draw(st.lists(steps, max_size=25))):
        timestamp_ms = max(0, newest_ms + step_ms)
        newest_ms = max(newest_ms, timestamp_ms)
        inputs.append((topic, key, f"{topic[0]}{number}", timestamp_ms))
    return inputs


def offline(inputs: list[Input], within: JoinWindows, method: str) -> list[Output]:
    lefts = [record for record in inputs if record[0] == "left"]
    rights = [record for record in inputs if record[0] == "right"]
    pairs = [
        (left, right)
        for left in lefts
        for right in rights
        if left[1] == right[1] and -within.before_ms <= right[3] - left[3] <= within.after_ms
    ]
    found = [(a[1], pair(a[2], b[2]), max(a[3], b[3])) for a, b in pairs]
    if method != "join":
        matched = [left for left, _ in pairs]
        found += [(k, pair(v, None), at) for _, k, v, at in (r for r in lefts if r not in matched)]
    if method == "outer_join":
        matched = [right for _, right in pairs]
        found += [(k, pair(None, v), at) for _, k, v, at in (r for r in rights if r not in matched)]
    return sorted(found, key=repr)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["join", "left_join", "outer_join"])
@settings(max_examples=60, deadline=None)
@given(inputs=in_grace(), before_ms=st.integers(1, 20), after_ms=st.integers(1, 20))
def test_any_order_within_grace_gives_what_an_offline_join_gives(
    method: str, inputs: list[Input], before_ms: int, after_ms: int
) -> None:
    within = JoinWindows(before_ms, after_ms, GRACE_MS)
    with running(joined(method, within)) as run:
        results = run.run(inputs)
        # Everything that waits is let go; the tick itself has no partner, and goes on waiting.
        results += run.run([("left", "tick", "tick", 1_000_000)])
        assert sorted(results, key=repr) == offline(inputs, within, method)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    times=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 120)), max_size=20),
    before_ms=st.integers(-10, 30),
    after_ms=st.integers(-10, 30),
    grace_ms=st.sampled_from([0, 10, 1000]),
)
def test_a_stream_joined_with_itself_is_the_same_with_one_store(
    times: list[tuple[str, int]], before_ms: int, after_ms: int, grace_ms: int
) -> None:
    if before_ms + after_ms < 0:
        before_ms, after_ms = -after_ms, -before_ms
    within = JoinWindows(before_ms, after_ms, grace_ms)
    inputs: list[Input] = [("in", key, str(n), at) for n, (key, at) in enumerate(times)]
    results = []
    for optimize in (False, True):

        def wire(builder: StreamsBuilder) -> Any:
            one = stream(builder, "in")
            return one.join(one, pair, within)

        with running(wire, optimize=optimize) as run:
            assert len(run.driver.topology.stores) == (1 if optimize else 2)
            results.append(run.run(inputs))
    assert results[0] == results[1]
