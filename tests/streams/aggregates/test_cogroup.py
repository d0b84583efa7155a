"""Cogrouped streams: several streams, one table."""

from typing import Any

import pytest

from streams.dsl.builder import StreamsBuilder
from streams.errors import TopologyError
from streams.windows import session, sliding, tumbling
from tests.streams.aggregates.running import AnyTable, Running, append, at, empty, grouped


def add_other(key: str, value: str, aggregate: str) -> str:
    return f"{aggregate}*{value}"


def cogrouped(builder: StreamsBuilder) -> Any:
    return grouped(builder).cogroup(append).cogroup(grouped(builder, "other"), add_other)


def together(builder: StreamsBuilder) -> AnyTable:
    return cogrouped(builder).aggregate(empty, value=str, store="texts")  # type: ignore[no-any-return]


def test_all_streams_add_to_one_aggregate() -> None:
    run = Running(together)
    assert run.feed(("a", "1", 5)) == [("a", "0+1", 5)]
    assert run.feed(("a", "2", 3), ("b", "3", 4), topic="other") == [
        ("a", "0+1*2", 5),
        ("b", "0*3", 4),
    ]
    assert run.feed((None, "1", 1), ("a", None, 1)) == []
    assert run.feed((None, "1", 1), topic="other") == []
    assert run.dropped == 3


def test_what_is_held_back_is_one_change_per_key_of_all_streams() -> None:
    run = Running(together, config={"statestore_cache_max_bytes": 1_000_000}, commit="manual")
    run.feed(("a", "1", 1))
    run.feed(("a", "2", 2), topic="other")
    run.feed(("a", "3", 3))
    run.driver.commit()
    assert run.results() == [("a", "0+1*2+3", 3)]


@pytest.mark.parametrize("table_first", [True, False])
def test_what_a_table_above_holds_back_reaches_the_cogroup_in_the_same_commit(
    table_first: bool,
) -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        latest = grouped(builder).reduce(lambda old, new: new)
        above = latest.to_stream().group_by_key()
        other = grouped(builder, "other")
        if table_first:
            both = above.cogroup(append).cogroup(other, add_other)
        else:
            both = other.cogroup(add_other).cogroup(above, append)
        return both.aggregate(empty, value=str)

    run = Running(build, config={"statestore_cache_max_bytes": 1_000_000}, commit="manual")
    run.feed(("a", "1", 1), ("a", "2", 2))
    run.feed(("a", "3", 3), topic="other")
    run.driver.commit()
    assert run.results() == [("a", "0*3+2", 3)]


def test_each_stream_has_a_time_of_its_own() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        windowed = cogrouped(builder).windowed_by(tumbling(10))
        # The store has one time for all streams, so it must keep more than one stream needs.
        return windowed.aggregate(empty, value=str, retention=1000)  # type: ignore[no-any-return]

    run = Running(build)
    run.feed(("a", "1", 5), ("a", "2", 15))
    assert run.feed(("a", "3", 6), topic="other") == [(at("a", 0, 10), "0+1*3", 6)]
    run.feed(("a", "4", 25), topic="other")
    run.feed(("a", "5", 7), topic="other")
    assert run.dropped == 1
    assert run.feed(("a", "6", 16)) == [(at("a", 10, 20), "0+2+6", 16)]


def test_sliding_and_session_windows_are_shared_too() -> None:
    def by_sliding(builder: StreamsBuilder) -> AnyTable:
        windowed = cogrouped(builder).windowed_by(sliding(10, grace=50))
        return windowed.aggregate(empty, value=str)  # type: ignore[no-any-return]

    def by_session(builder: StreamsBuilder) -> AnyTable:
        windowed = cogrouped(builder).windowed_by(session(10, grace=50))
        return windowed.aggregate(empty, lambda key, left, right: right, value=str)  # type: ignore[no-any-return]

    run = Running(by_sliding)
    run.feed(("a", "1", 20))
    assert run.feed(("a", "2", 25), topic="other")[-1] == (at("a", 15, 25), "0+1*2", 25)
    run = Running(by_session)
    run.feed(("a", "1", 20))
    assert run.feed(("a", "2", 25), topic="other") == [
        (at("a", 20, 20), None, 20),
        (at("a", 20, 25), "0+1*2", 25),
    ]


def test_streams_with_new_keys_go_through_topics_of_their_own() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        def by_value(topic: str) -> Any:
            stream = builder.stream(topic, key=str, value=str)
            return stream.group_by(lambda key, value: value, key=str)

        one, two = by_value("in"), by_value("other")
        return one.cogroup(append).cogroup(two, add_other).aggregate(empty, value=str, store="s")  # type: ignore[no-any-return]

    run = Running(build)
    assert set(run.driver.topology.repartition_topics) == {"s-repartition", "s-1-repartition"}
    run.feed(("a", "k", 1))
    assert run.feed(("b", "k", 2), topic="other") == [("k", "0+k*k", 2)]


def test_what_is_no_grouped_stream_of_the_builder_is_refused() -> None:
    builder = StreamsBuilder()
    first = grouped(builder).cogroup(append)
    with pytest.raises(TopologyError, match="is not a GroupedStream"):
        first.cogroup(builder.stream("other"), append)  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="different builders"):
        first.cogroup(grouped(StreamsBuilder()), append)
