"""Aggregates by sliding windows, against their definition."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.dsl.builder import StreamsBuilder
from streams.errors import TopologyError
from streams.windows import SlidingWindows, sliding
from tests.streams.aggregates.running import AnyTable, Running, append, at, empty, grouped

LONG_GRACE_MS = 10_000


def appending(windows: SlidingWindows) -> Any:
    def build(builder: StreamsBuilder) -> AnyTable:
        windowed = grouped(builder).windowed_by(windows)
        return windowed.aggregate(empty, append, value=str, store="texts")

    return build


def listing(windows: SlidingWindows) -> Any:
    """An adder that changes its aggregate in place."""

    def add(key: str, value: str, seen: list[str]) -> list[str]:
        seen.append(value)
        seen.sort()
        return seen

    def build(builder: StreamsBuilder) -> AnyTable:
        return grouped(builder).windowed_by(windows).aggregate(list, add, value=list, store="lists")

    return build


def test_a_record_has_a_window_that_ends_with_it() -> None:
    assert Running(appending(sliding(10))).feed(("a", "1", 20)) == [(at("a", 10, 20), "0+1", 20)]


def test_both_ends_are_inclusive() -> None:
    run = Running(appending(sliding(10, grace=50)))
    run.feed(("a", "1", 20))
    assert run.feed(("a", "2", 30)) == [
        (at("a", 21, 31), "0+2", 30),
        (at("a", 20, 30), "0+1+2", 30),
    ]
    assert run.feed(("a", "3", 42))[-1] == (at("a", 32, 42), "0+3", 42)


def test_an_out_of_order_record_gets_a_right_window_without_itself() -> None:
    run = Running(appending(sliding(10, grace=50)))
    run.feed(("a", "1", 30))
    assert run.feed(("a", "2", 25)) == [
        (at("a", 20, 30), "0+1+2", 30),
        (at("a", 15, 25), "0+2", 25),
        (at("a", 26, 36), "0+1", 30),
    ]


def test_early_records_share_the_window_that_starts_at_the_epoch() -> None:
    assert Running(appending(sliding(10, grace=50))).feed(("a", "1", 3), ("a", "2", 7)) == [
        (at("a", 0, 10), "0+1", 3),
        (at("a", 4, 14), "0+2", 7),
        (at("a", 0, 10), "0+1+2", 7),
    ]


def test_null_keys_null_values_and_late_records_are_dropped() -> None:
    run = Running(appending(sliding(10, grace=5)))
    assert run.feed((None, "1", 1), ("a", None, 2)) == []
    run.feed(("a", "1", 100))
    assert run.feed(("a", "2", 84)) == []
    assert run.dropped == 3
    # At 85 + 10 the right windows of the record are still open, its left window is closed.
    run.feed(("a", "2", 85))
    assert run.dropped == 4


def test_a_difference_of_nothing_groups_records_of_one_instant() -> None:
    run = Running(appending(sliding(0, grace=50)))
    assert run.feed(("a", "1", 5), ("a", "2", 5), ("a", "3", 6)) == [
        (at("a", 5, 5), "0+1", 5),
        (at("a", 5, 5), "0+1+2", 5),
        (at("a", 6, 6), "0+3", 6),
    ]


def test_old_values_of_new_windows_are_nothing() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        counts = grouped(builder).windowed_by(sliding(10, grace=50)).count()
        return counts.group_by(lambda window, count: ("all", count), key=str, value=int).count()

    run = Running(build)
    run.feed(("a", "x", 20), ("a", "x", 25), ("a", "x", 22))
    windows = list(run.driver.get_state_store(_window_store(run)).all())
    assert run.driver.get_state_store(_count_store(run)).get("all")[0] == len(windows)


def _window_store(run: Running) -> str:
    return next(name for name in run.driver.topology.stores if name.startswith("KSTREAM-"))


def _count_store(run: Running) -> str:
    return next(name for name in run.driver.topology.stores if name.startswith("KTABLE-"))


def test_a_store_that_would_forget_open_windows_is_refused() -> None:
    windowed = grouped(StreamsBuilder()).windowed_by(sliding(10, grace=5))
    with pytest.raises(TopologyError, match="these windows need at least 25 ms"):
        windowed.count(retention=24)


def defined(times: list[int], difference_ms: int) -> dict[tuple[int, int], list[str]]:
    """Left windows of all records, and those right windows that hold something."""
    starts = {max(0, t - difference_ms) for t in times} | {t + 1 for t in times}
    found = {}
    for start in starts:
        end = start + difference_ms
        held = sorted(str(t) for t in times if start <= t <= end)
        if held:
            found[start, end] = held
    return found


@pytest.mark.slow
@given(st.lists(st.integers(0, 40), max_size=9), st.integers(0, 15))
def test_windows_are_those_of_the_definition(times: list[int], difference_ms: int) -> None:
    run = Running(listing(sliding(difference_ms, grace=LONG_GRACE_MS)))
    with run.driver:
        run.feed(*[("a", str(t), t) for t in times])
        stored = run.driver.get_state_store("lists").all()
        found = {(window.start_ms, window.end_ms): value for window, (value, _) in stored}
        assert found == defined(times, difference_ms)


@pytest.mark.slow
@given(st.lists(st.integers(0, 40), max_size=9), st.integers(0, 15))
def test_the_last_result_of_each_window_is_what_is_stored(
    times: list[int], difference_ms: int
) -> None:
    run = Running(listing(sliding(difference_ms, grace=LONG_GRACE_MS)))
    with run.driver:
        results = run.feed(*[("a", str(t), t) for t in times])
        stored = dict(run.driver.get_state_store("lists").all())
        assert {key: (value, time) for key, value, time in results} == stored
