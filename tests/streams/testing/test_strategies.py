"""The strategies make what they promise."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.record import Record
from streams.testing.strategies import (
    interleaved,
    out_of_order_records,
    out_of_order_times,
    shuffled_within,
)

LATENESS_MS = 20

pytestmark = pytest.mark.slow


def latest_before(times: list[int]) -> list[tuple[int, int]]:
    """Each time with the largest that came before it."""
    return list(zip(times, accumulate([0, *times], max), strict=False))


@given(out_of_order_times(lateness=LATENESS_MS))
def test_no_time_is_later_than_it_may_be(times: list[int]) -> None:
    assert all(time >= latest - LATENESS_MS for time, latest in latest_before(times))


@given(out_of_order_times())
def test_without_lateness_times_are_in_order(times: list[int]) -> None:
    assert times == sorted(times)


@given(out_of_order_records(st.sampled_from("ab"), st.integers(0, 3), max_size=5))
def test_records_have_the_keys_and_values_asked_for(records: list[Record[str, int]]) -> None:
    assert len(records) <= 5
    assert all(record.key in "ab" and 0 <= record.value <= 3 for record in records)


@given(st.data(), out_of_order_records(st.just("k"), st.integers(), step=15))
def test_a_shuffle_keeps_all_records_and_the_lateness(
    data: st.DataObject, records: list[Record[str, int]]
) -> None:
    shuffled = data.draw(shuffled_within(records, LATENESS_MS))
    assert sorted(shuffled, key=repr) == sorted(records, key=repr)
    times = [record.timestamp_ms for record in shuffled]
    assert all(time >= latest - LATENESS_MS for time, latest in latest_before(times))


@given(st.data(), st.lists(st.integers()), st.lists(st.integers()))
def test_interleaving_keeps_the_order_of_each_input(
    data: st.DataObject, left: list[int], right: list[int]
) -> None:
    found = data.draw(interleaved(left, right))
    assert [item for number, item in found if number == 0] == left
    assert [item for number, item in found if number == 1] == right
