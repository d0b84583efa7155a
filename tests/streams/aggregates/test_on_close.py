"""Windows that are emitted once, when they close."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.dsl.builder import StreamsBuilder
from streams.errors import TopologyError
from streams.windows import (
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    hopping,
    session,
    sliding,
    tumbling,
    unlimited,
)
from tests.streams.aggregates.running import AnyTable, Running, at, grouped

ONCE_A_SECOND = {"__emit.interval.ms.kstreams.windowed.aggregation__": 1000}


def counting(windows: TimeWindows | SlidingWindows | SessionWindows, **options: Any) -> Any:
    def build(builder: StreamsBuilder) -> AnyTable:
        if isinstance(windows, SessionWindows):
            return grouped(builder).windowed_by(windows, emit="on_close").count(**options)
        return grouped(builder).windowed_by(windows, emit="on_close").count(**options)

    return build


def test_a_window_is_emitted_when_its_grace_is_over() -> None:
    run = Running(counting(tumbling(10, grace=5)))
    assert run.feed(("a", "x", 1), ("b", "x", 14), ("a", "x", 3)) == []
    assert run.feed(("b", "x", 15)) == [(at("a", 0, 10), 2, 3)]
    assert run.feed(("b", "x", 16), ("a", "x", 4)) == []
    assert run.dropped == 1


def test_all_windows_that_close_in_one_jump_of_time_are_emitted() -> None:
    run = Running(counting(tumbling(10)))
    assert run.feed(("b", "x", 1), ("a", "x", 2), ("c", "x", 11)) == [
        (at("a", 0, 10), 1, 2),
        (at("b", 0, 10), 1, 1),
    ]
    assert run.feed(("z", "x", 1_000_000_000)) == [(at("c", 10, 20), 1, 11)]


def test_windows_are_not_lost_while_nobody_looks_for_them() -> None:
    run = Running(counting(tumbling(10)), config=ONCE_A_SECOND)
    run.feed(("a", "x", 1))
    results = run.feed(*[("a", "x", time) for time in range(2, 200)])
    run.driver.advance_wall_clock_time(1000)
    results += run.feed(("a", "x", 200))
    assert [key.start_ms for key, _, _ in results] == list(range(0, 200, 10))


def test_closed_windows_are_looked_for_once_a_second() -> None:
    run = Running(counting(tumbling(10), retention=86_400_000), config=ONCE_A_SECOND, start_ms=5000)
    assert run.feed(("a", "x", 1), ("a", "x", 11), ("a", "x", 21)) == []
    run.driver.advance_wall_clock_time(999)
    assert run.feed(("a", "x", 22)) == []
    run.driver.advance_wall_clock_time(1)
    assert run.feed(("a", "x", 23)) == [(at("a", 0, 10), 1, 1), (at("a", 10, 20), 1, 11)]


def test_nothing_is_emitted_again_after_a_restart() -> None:
    run = Running(counting(tumbling(10), retention=86_400_000))
    run.feed(("a", "x", 1), ("b", "x", 12))
    run.driver.restart()
    assert run.feed(("b", "x", 25)) == [(at("b", 10, 20), 1, 12)]


def test_results_on_close_are_not_held_back() -> None:
    run = Running(
        counting(tumbling(10)),
        config={"statestore_cache_max_bytes": 1_000_000},
        commit="manual",
    )
    assert run.feed(("a", "x", 1), ("a", "x", 12)) == [(at("a", 0, 10), 1, 1)]


def test_sliding_windows_close_when_their_end_is_past() -> None:
    run = Running(counting(sliding(10)))
    assert run.feed(("a", "x", 20), ("b", "x", 20), ("c", "x", 30)) == [
        (at("a", 10, 20), 1, 20),
        (at("b", 10, 20), 1, 20),
    ]
    assert run.feed(("d", "x", 31)) == [(at("c", 20, 30), 1, 30)]


def test_sessions_close_without_tombstones() -> None:
    run = Running(counting(session(10)))
    assert run.feed(("a", "x", 1), ("a", "x", 6), ("b", "x", 16)) == []
    assert run.feed(("b", "x", 17)) == [(at("a", 1, 6), 2, 6)]


def test_a_closed_session_does_not_grow_again() -> None:
    run = Running(counting(session(10)))
    run.feed(("a", "x", 85), ("b", "x", 100))
    assert run.feed(("a", "x", 91)) == []
    assert run.feed(("b", "x", 120)) == [(at("a", 91, 91), 1, 91), (at("b", 100, 100), 1, 100)]


def test_an_unlimited_window_cannot_be_waited_for() -> None:
    with pytest.raises(TopologyError, match="never closes"):
        grouped(StreamsBuilder()).windowed_by(unlimited(), emit="on_close")


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 100)), max_size=12),
    st.integers(0, 10),
    st.sampled_from([0, 1000]),
)
def test_closed_windows_are_the_last_updates_and_come_once(
    records: list[tuple[str, int]], grace_ms: int, interval_ms: int
) -> None:
    windows = hopping(10, 5, grace=grace_ms)
    last: dict[Any, tuple[int, int]] = {}
    stream_time_ms = -1
    for key, timestamp_ms in records:
        stream_time_ms = max(stream_time_ms, timestamp_ms)
        for start in windows.starts(timestamp_ms):
            if start + 10 > stream_time_ms - grace_ms:
                count, newest_ms = last.get(at(key, start, start + 10), (0, 0))
                last[at(key, start, start + 10)] = (count + 1, max(newest_ms, timestamp_ms))
    run = Running(
        counting(windows),
        config={"__emit.interval.ms.kstreams.windowed.aggregation__": interval_ms},
    )
    with run.driver:
        results = run.feed(*[(key, "x", time) for key, time in records])
        run.driver.advance_wall_clock_time(1000)
        results += run.feed(("end", "x", 10_000))
        told = [(key, (count, time)) for key, count, time in results]
        assert len({key for key, _ in told}) == len(told)
        assert dict(told) == last
