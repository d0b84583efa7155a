"""count, reduce and aggregate of a grouped stream."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.dsl.builder import StreamsBuilder
from streams.errors import TopologyError
from tests.streams.aggregates.running import (
    AnyTable,
    Given,
    Running,
    append,
    empty,
    grouped,
    join_texts,
)

CACHED = {"statestore_cache_max_bytes": 10_000_000}


def counting(builder: StreamsBuilder) -> AnyTable:
    return grouped(builder).count(store="counts")


def reducing(builder: StreamsBuilder) -> AnyTable:
    return grouped(builder).reduce(join_texts)


def appending(builder: StreamsBuilder) -> AnyTable:
    return grouped(builder).aggregate(empty, append, value=str, store="texts")


def test_results_have_the_largest_time_of_their_records() -> None:
    run = Running(appending)
    assert run.feed(("a", "1", 10), ("b", "2", 5), ("a", "3", 7), ("a", "4", 20)) == [
        ("a", "0+1", 10),
        ("b", "0+2", 5),
        ("a", "0+1+3", 10),
        ("a", "0+1+3+4", 20),
    ]
    assert dict(run.driver.get_state_store("texts").all()) == {
        "a": ("0+1+3+4", 20),
        "b": ("0+2", 5),
    }


@pytest.mark.parametrize("build", [counting, reducing, appending])
def test_records_without_key_or_value_are_dropped_and_counted(build: Any) -> None:
    run = Running(build)
    assert run.feed((None, "1", 1), ("a", None, 2), (None, None, 3)) == []
    assert run.dropped == 3


def test_the_first_value_of_a_reduce_is_taken_as_it_is() -> None:
    assert Running(reducing).feed(("a", "1", 9), ("a", "2", 3)) == [("a", "1", 9), ("a", "1+2", 9)]


def test_a_null_aggregate_removes_the_entry_and_the_next_record_begins_anew() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        def add(key: str, value: str, aggregate: str) -> Any:
            return None if value == "del" else append(key, value, aggregate)

        return grouped(builder).aggregate(empty, add, value=str, store="texts")

    run = Running(build)
    assert run.feed(("a", "1", 50), ("a", "del", 10), ("a", "2", 20)) == [
        ("a", "0+1", 50),
        ("a", None, 50),
        ("a", "0+2", 20),
    ]


def test_held_back_results_are_one_per_key_and_commit_in_order_of_last_change() -> None:
    run = Running(counting, config=CACHED, commit="manual")
    assert run.feed(("a", "x", 1), ("b", "x", 2), ("a", "x", 3), ("c", "x", 4)) == []
    run.driver.commit()
    assert run.results() == [("b", 1, 2), ("a", 2, 3), ("c", 1, 4)]
    run.driver.commit()
    assert run.results() == []


def test_an_adder_that_changes_its_aggregate_in_place_still_gives_old_values() -> None:
    def add(key: str, value: str, seen: list[str]) -> list[str]:
        seen.append(value)
        return seen

    def build(builder: StreamsBuilder) -> AnyTable:
        lists = grouped(builder).aggregate(list, add, value=list)
        by_length = lists.group_by(lambda key, seen: (str(len(seen)), key), key=str, value=str)
        return by_length.count()

    assert Running(build).feed(("a", "1", 1), ("a", "2", 2)) == [
        ("1", 1, 1),
        ("1", 0, 2),
        ("2", 1, 2),
    ]


RECORDS = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"]), st.integers(0, 50)),
    max_size=12,
)


@pytest.mark.slow
@given(RECORDS)
def test_an_aggregate_is_the_fold_of_its_records(records: list[Given]) -> None:
    expected: dict[Any, tuple[str, int]] = {}
    results = []
    for key, value, timestamp_ms in records:
        text, newest_ms = expected.get(key, ("0", 0))
        expected[key] = (f"{text}+{value}", max(newest_ms, timestamp_ms))
        results.append((key, *expected[key]))
    run = Running(appending)
    with run.driver:
        assert run.feed(*records) == results


def test_what_is_no_function_is_refused_where_it_is_given() -> None:
    source = grouped(StreamsBuilder())
    with pytest.raises(TopologyError, match="reducer is 3"):
        source.reduce(3)  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="adder is None") as caught:
        source.aggregate(empty, None)  # type: ignore[arg-type]
    assert "test_stream_aggregates.py" in str(caught.value)


def test_two_aggregates_cannot_have_the_same_store() -> None:
    builder = StreamsBuilder()
    source = grouped(builder)
    source.count(store="one")
    source.count(store="one")
    with pytest.raises(TopologyError, match='store "one" already exists'):
        builder.build()


def test_an_aggregate_may_be_kept_with_its_history() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        return grouped(builder).count(store="counts", versioned_history=100)

    run = Running(build)
    assert run.feed(("a", "x", 1), ("a", "x", 5)) == [("a", 1, 1), ("a", 2, 5)]
    store = run.driver.get_state_store("counts")
    assert store.get_as_of("a", 3).value == 1
    assert store.get("a").value == 2
