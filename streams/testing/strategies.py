"""Strategies for hypothesis: input that is out of order, late, or of several topics at once.

The lateness of a record is how far its timestamp is behind the largest earlier one.
"""

from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st

from streams.record import Record
from streams.windows import Duration, milliseconds

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

SIZE_MAX = 30


@st.composite
def out_of_order_times(
    draw: st.DrawFn,
    *,
    lateness: Duration = 0,
    step: Duration = 10,
    start_ms: int = 0,
    min_size: int = 0,
    max_size: int = SIZE_MAX,
) -> list[int]:
    """Timestamps in order of arrival, with steps of up to `step` and records late by `lateness`.

    All are at or after `start_ms`; without lateness they are in order.
    """
    lateness_ms = milliseconds(lateness, "lateness")
    step_ms = milliseconds(step, "step")
    times: list[int] = []
    stream_time_ms = start_ms
    for late in draw(st.lists(st.booleans(), min_size=min_size, max_size=max_size)):
        if late and lateness_ms:
            earliest = max(start_ms, stream_time_ms - lateness_ms)
            times.append(draw(st.integers(earliest, stream_time_ms)))
        else:
            stream_time_ms += draw(st.integers(0, step_ms))
            times.append(stream_time_ms)
    return times


@st.composite
def out_of_order_records(
    draw: st.DrawFn,
    keys: st.SearchStrategy[K],
    values: st.SearchStrategy[V],
    *,
    lateness: Duration = 0,
    step: Duration = 10,
    max_size: int = SIZE_MAX,
) -> list[Record[K, V]]:
    """Records in order of arrival, with timestamps of `out_of_order_times`."""
    times = draw(out_of_order_times(lateness=lateness, step=step, max_size=max_size))
    return [Record(draw(keys), draw(values), time) for time in times]


@st.composite
def shuffled_within(
    draw: st.DrawFn, records: Sequence[Record[K, V]], lateness: Duration
) -> list[Record[K, V]]:
    """The same records in another order of arrival, none later than `lateness`."""
    lateness_ms = milliseconds(lateness, "lateness")
    waiting = sorted(records, key=lambda record: record.timestamp_ms)
    arrived: list[Record[K, V]] = []
    while waiting:
        # The oldest remaining record must not become later than allowed.
        limit_ms = waiting[0].timestamp_ms + lateness_ms
        allowed = sum(record.timestamp_ms <= limit_ms for record in waiting)
        arrived.append(waiting.pop(draw(st.integers(0, allowed - 1))))
    return arrived


@st.composite
def interleaved(draw: st.DrawFn, *inputs: Sequence[T]) -> list[tuple[int, T]]:
    """Items of several inputs in one order, each with the number of its input.

    The order within an input does not change, as for records of topics or partitions.
    """
    waiting = [list(items) for items in inputs]
    merged: list[tuple[int, T]] = []
    while any(waiting):
        number = draw(st.sampled_from([n for n, items in enumerate(waiting) if items]))
        merged.append((number, waiting[number].pop(0)))
    return merged
