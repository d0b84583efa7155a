"""Window arithmetic against its definition, and what windows refuse."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.errors import TopologyError
from streams.windows import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    hopping,
    join_within,
    milliseconds,
    session,
    sliding,
    tumbling,
    unlimited,
)

TIMES = st.integers(0, 5_000)


@given(TIMES, st.integers(1, 200), st.integers(1, 200))
def test_a_time_is_in_all_windows_that_hold_it_and_in_no_other(
    timestamp_ms: int, size_ms: int, advance_ms: int
) -> None:
    advance_ms = min(advance_ms, size_ms)
    starts = list(TimeWindows(size_ms, advance_ms).starts(timestamp_ms))
    defined = [
        start
        for start in range(0, timestamp_ms + 1, advance_ms)
        if start <= timestamp_ms < start + size_ms
    ]
    assert starts == defined


@given(TIMES, st.integers(1, 200))
def test_a_time_is_in_exactly_one_tumbling_window(timestamp_ms: int, size_ms: int) -> None:
    (start,) = tumbling(size_ms).starts(timestamp_ms)
    assert start % size_ms == 0
    assert start <= timestamp_ms < start + size_ms


def test_durations_are_milliseconds_or_timedelta() -> None:
    assert tumbling(timedelta(seconds=1), grace=timedelta(milliseconds=5)) == TimeWindows(
        1000, 1000, 5
    )
    assert hopping(timedelta(seconds=1), 250) == TimeWindows(1000, 250)
    assert sliding(timedelta(seconds=2), grace=7) == SlidingWindows(2000, 7)
    assert session(3, grace=timedelta(seconds=1)) == SessionWindows(3, 1000)
    assert join_within(5) == JoinWindows(5, 5)
    assert join_within(before=1, after=timedelta(milliseconds=2), grace=3) == JoinWindows(1, 2, 3)
    assert join_within(before=1, after=2).size_ms == 3


@pytest.mark.parametrize("wrong", [1.5, True, "10", None])
def test_what_is_no_duration_is_refused(wrong: object) -> None:
    with pytest.raises(TopologyError, match="pass milliseconds as an int, or a timedelta"):
        milliseconds(wrong)  # type: ignore[arg-type]


def test_windows_that_cannot_be_are_refused() -> None:
    for make in (
        lambda: tumbling(0),
        lambda: tumbling(10, grace=-1),
        lambda: hopping(10, 0),
        lambda: hopping(10, 11),
        lambda: sliding(-1),
        lambda: sliding(1, grace=-1),
        lambda: session(0),
        lambda: session(1, grace=-1),
        lambda: unlimited(-1),
        lambda: join_within(before=-2, after=1),
        lambda: join_within(1, grace=-1),
    ):
        with pytest.raises(TopologyError):
            make()
