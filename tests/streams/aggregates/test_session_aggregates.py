"""Aggregates by sessions."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.dsl.builder import StreamsBuilder
from streams.errors import TopologyError
from streams.windows import SessionWindows, session
from tests.streams.aggregates.running import (
    AnyTable,
    Running,
    append,
    at,
    empty,
    grouped,
    join_texts,
)


def merge(key: str, left: str, right: str) -> str:
    return f"({left}|{right})"


def appending(windows: SessionWindows) -> Any:
    def build(builder: StreamsBuilder) -> AnyTable:
        windowed = grouped(builder).windowed_by(windows)
        return windowed.aggregate(empty, append, merge, value=str, store="texts")

    return build


def counting(windows: SessionWindows) -> Any:
    def build(builder: StreamsBuilder) -> AnyTable:
        return grouped(builder).windowed_by(windows).count(store="counts")

    return build


def test_a_session_that_grows_is_withdrawn_under_its_old_bounds() -> None:
    assert Running(counting(session(10))).feed(("a", "x", 5), ("a", "x", 15)) == [
        (at("a", 5, 5), 1, 5),
        (at("a", 5, 5), None, 5),
        (at("a", 5, 15), 2, 15),
    ]


def test_a_record_more_than_a_gap_away_begins_a_session() -> None:
    assert Running(counting(session(10))).feed(("a", "x", 5), ("a", "x", 16)) == [
        (at("a", 5, 5), 1, 5),
        (at("a", 16, 16), 1, 16),
    ]


def test_a_record_at_the_same_instant_replaces_the_session_quietly() -> None:
    assert Running(counting(session(10))).feed(("a", "x", 5), ("a", "x", 5)) == [
        (at("a", 5, 5), 1, 5),
        (at("a", 5, 5), 2, 5),
    ]


def test_a_record_inside_a_session_withdraws_it_all_the_same() -> None:
    run = Running(counting(session(10)))
    run.feed(("a", "x", 5), ("a", "x", 15))
    assert run.feed(("a", "x", 10)) == [(at("a", 5, 15), None, 15), (at("a", 5, 15), 3, 15)]


def test_sessions_are_merged_in_order_and_the_record_is_added_last() -> None:
    run = Running(appending(session(10, grace=100)))
    run.feed(("a", "1", 0), ("a", "2", 20))
    assert run.feed(("a", "3", 10)) == [
        (at("a", 0, 0), None, 0),
        (at("a", 20, 20), None, 20),
        (at("a", 0, 20), "((0|0+1)|0+2)+3", 20),
    ]


def test_a_late_record_that_touches_an_open_session_is_taken() -> None:
    run = Running(counting(session(10)))
    run.feed(("a", "x", 20), ("b", "x", 25))
    assert run.feed(("a", "x", 12))[-1] == (at("a", 12, 20), 2, 20)
    assert run.feed(("c", "x", 12)) == []
    assert run.dropped == 1


def test_only_null_keys_are_dropped() -> None:
    run = Running(appending(session(10)))
    assert run.feed((None, "1", 1), ("a", None, 2)) == [(at("a", 2, 2), "0+None", 2)]
    assert run.dropped == 1


def test_a_reduce_merges_sessions_with_its_reducer() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        windowed = grouped(builder).windowed_by(session(10, grace=100))
        return windowed.reduce(join_texts, store="texts")

    run = Running(build)
    run.feed(("a", "1", 0), ("a", "2", 20))
    assert run.feed(("a", "3", 10))[-1] == (at("a", 0, 20), "1+2+3", 20)


def test_sessions_that_come_and_go_between_commits_leave_no_trace() -> None:
    run = Running(
        counting(session(10)), config={"statestore_cache_max_bytes": 1_000_000}, commit="manual"
    )
    run.feed(("a", "x", 5), ("a", "x", 9))
    run.driver.commit()
    assert run.results() == [(at("a", 5, 9), 2, 9)]
    run.feed(("a", "x", 12))
    run.driver.commit()
    assert run.results() == [(at("a", 5, 9), None, 9), (at("a", 5, 12), 3, 12)]


def test_regrouped_sessions_add_up() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        counts = grouped(builder).windowed_by(session(10, grace=100)).count()
        by_key = counts.group_by(lambda window, count: (window.key, count), key=str, value=int)
        return by_key.reduce(lambda total, count: total + count, lambda total, count: total - count)

    run = Running(build)
    results = run.feed(("a", "x", 5), ("a", "x", 5), ("a", "x", 40), ("a", "x", 12))
    assert results[-1] == ("a", 4, 40)


def test_a_store_that_would_forget_open_sessions_is_refused() -> None:
    windowed = grouped(StreamsBuilder()).windowed_by(session(10, grace=5))
    with pytest.raises(TopologyError, match="these windows need at least 15 ms"):
        windowed.count(retention=14)


def defined(times: list[int], gap_ms: int) -> dict[tuple[int, int], int]:
    """Runs of times that are at most a gap apart."""
    runs: list[list[int]] = []
    for time in sorted(times):
        if runs and time - runs[-1][-1] <= gap_ms:
            runs[-1].append(time)
        else:
            runs.append([time])
    return {(run[0], run[-1]): len(run) for run in runs}


@pytest.mark.slow
@given(st.lists(st.integers(0, 80), max_size=10), st.integers(1, 15))
def test_sessions_are_those_of_the_definition_in_any_order(times: list[int], gap_ms: int) -> None:
    run = Running(counting(session(gap_ms, grace=10_000)))
    with run.driver:
        results = run.feed(*[("a", "x", time) for time in times])
        stored = run.driver.get_state_store("counts").all()
        found = {(key.start_ms, key.end_ms): count for key, count in stored}
        assert found == defined(times, gap_ms)
        told = {(key.start_ms, key.end_ms): count for key, count, _ in results}
        assert {key: count for key, count in told.items() if count is not None} == found
