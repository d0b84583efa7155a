"""Faults of the input: which records move, how far, and in what order all are sent."""

from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.simulation.scenario import Fault
from millstream.testing import crash, duplicate, late, reorder
from millstream.testing.faults import FaultScope, InputFault, last_within, ordered_records
from millstream.testing.records import FIRST_MS, EncodedRecord, Input, Record, encode_records
from millstream.testing.report import described

BY_MS = 5_000
ORDERS = encode_records(
    {"orders": [("ann", number) for number in range(10)]}, lambda topic: (None, None)
)


def numbers(records: list[EncodedRecord]) -> list[int]:
    return [each.number for each in records]


def moved(kind: str, number: int, behind: int) -> InputFault:
    return InputFault(0, kind, "orders", 0, "orders[0]", number, behind)


def test_records_without_a_time_are_one_second_apart() -> None:
    times = [each.timestamp_ms for each in ORDERS["orders"]]
    assert times == [FIRST_MS + 1_000 * number for number in range(10)]


def test_serdes_follow_from_the_type_of_a_value_or_are_given() -> None:
    made = encode_records(
        {"a": [Record("k", {"n": 1}, 5)], "b": Input([("7", None)], key=str, value=int)},
        lambda topic: (None, None),
    )
    assert (made["a"][0].key, made["a"][0].value, made["a"][0].timestamp_ms) == (
        b"k",
        b'{"n":1}',
        5,
    )
    assert made["b"][0].value is None


def test_a_late_record_comes_behind_newer_ones() -> None:
    sent = ordered_records(ORDERS, [moved("late", 2, 5), moved("late", 3, 5)])
    assert numbers(sent) == [0, 1, 4, 5, 2, 3, 6, 7, 8, 9]


def test_a_duplicate_is_sent_twice() -> None:
    sent = ordered_records(ORDERS, [moved("duplicate", 2, 2), moved("duplicate", 8, 9)])
    assert numbers(sent) == [0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 8]


def test_topics_are_merged_by_time() -> None:
    topics = encode_records(
        {"a": [("k", 1, 10), ("k", 2, 30), ("k", 3, 5)], "b": [("k", 4, 20), ("k", 5, 30)]},
        lambda topic: (None, None),
    )
    sent = [(each.topic, each.timestamp_ms) for each in ordered_records(topics, [])]
    assert sent == [("a", 10), ("b", 20), ("a", 30), ("a", 5), ("b", 30)]


def test_other_faults_do_not_change_the_input() -> None:
    assert numbers(ordered_records(ORDERS, [Fault(1, "kill")])) == list(range(10))


@given(
    times=st.lists(st.integers(0, 60), min_size=1, max_size=20),
    seed=st.integers(0, 100),
    kind=st.sampled_from(["late", "reorder"]),
)
def test_no_record_is_later_than_the_test_allows(times: list[int], seed: int, kind: str) -> None:
    topics = encode_records(
        {"orders": [("k", 0, time * 1_000) for time in sorted(times)]}, lambda topic: (None, None)
    )
    limit = timedelta(milliseconds=BY_MS)
    made = late(by=limit) if kind == "late" else reorder(within=limit)
    faults = made.choose(Random(seed), FaultScope(["application"], 1_000, topics))
    newest_ms = 0
    sent = ordered_records(topics, faults)
    for each in sent:
        newest_ms = max(newest_ms, each.timestamp_ms)
        assert newest_ms - each.timestamp_ms <= BY_MS
    assert sorted(numbers(sent)) == list(range(len(times)))


def test_the_place_of_a_record_is_bounded_by_time() -> None:
    assert last_within(ORDERS["orders"], 2, 2_500) == 4
    assert last_within(ORDERS["orders"], 2, 0) == 2
    assert last_within(ORDERS["orders"], 9, 2_500) == 9


def test_crashes_hit_whom_they_should() -> None:
    field = FaultScope(["application 1", "application 2"], 1_000, {})
    for of, targets in (
        (["application"], {"application 1", "application 2"}),
        (["broker"], {"broker"}),
    ):
        kind = crash(of=of, times=2)
        found = [kind.choose(Random(seed), field) for seed in range(30)]
        assert {len(faults) for faults in found} == {1, 2}
        assert {fault.target for faults in found for fault in faults} == targets
        assert all(described(fault) for faults in found for fault in faults)


def test_faults_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ValueError, match='"application", "broker" or both'):
        crash(of=["worker"])
    with pytest.raises(ValueError, match="must not be negative"):
        late(by=timedelta(seconds=-1))
    assert duplicate().choose(Random(1), FaultScope([], 1_000, {"empty": ()})) == []
