"""Offsets of a checkpoint and the arithmetic of micro-batches."""

import json
import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from broker.errors import ConfigError
from broker.model import TopicPartition
from sql.backends.spark.offsets import (
    OFFSET_MAX,
    PACKING,
    PARTITION_MAX,
    Packing,
    Span,
    of_text,
    of_tree,
    pack,
    packing_of,
    share,
    spans,
    to_tree,
)

PARTITIONS = st.builds(TopicPartition, st.sampled_from(["a", "b", "c"]), st.integers(0, 9))
LOGS = st.dictionaries(PARTITIONS, st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)))
SPANS = st.dictionaries(PARTITIONS, st.tuples(st.integers(0, 10**6), st.integers(1, 5000))).map(
    lambda found: [
        Span(tp.topic, tp.partition, start, start + size) for tp, (start, size) in found.items()
    ]
)


@given(st.dictionaries(PARTITIONS, st.integers(0, (1 << 63) - 1)))
def test_offsets_come_back_from_a_checkpoint(offsets: dict[TopicPartition, int]) -> None:
    assert of_text(json.dumps(to_tree(offsets)), "checkpoint") == offsets


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sometimes",
        "[]",
        '{"a": 1}',
        '{"a": {"x": 1}}',
        '{"a": {"-1": 1}}',
        '{"a": {"0": "1"}}',
        '{"a": {"0": true}}',
        '{"a": {"0": -3}}',
        '{"a": {"0": 9223372036854775808}}',
        '{"a": {"9999999999": 0}}',
    ],
)
def test_what_is_no_offset_is_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigError, match="starting_offsets"):
        of_text(text, "starting_offsets", least=-2)


NUMBERS = st.integers(0, PARTITION_MAX + 1).map(str)
ANYTHING = st.none() | st.integers(-2, OFFSET_MAX + 1) | st.text(max_size=3)


@given(st.dictionaries(NUMBERS | st.text(max_size=3), st.integers(0, 9) | ANYTHING, max_size=3))
@example({str(PARTITION_MAX): OFFSET_MAX})
@example({str(PARTITION_MAX + 1): 0})
@example({"0": OFFSET_MAX + 1})
@example({"0": -1})
@example({"-0": 0})
def test_offsets_of_partitions_are_taken_and_anything_else_is_refused(
    partitions: dict[str, object],
) -> None:
    are_offsets = all(
        re.fullmatch(r"\d+", number)
        and int(number) < 2**31
        and isinstance(offset, int)
        and 0 <= offset < 2**63
        for number, offset in partitions.items()
    )
    if are_offsets:
        expected = {TopicPartition("topic", int(each)): partitions[each] for each in partitions}
        assert of_tree({"topic": partitions}, "checkpoint") == expected
    else:
        with pytest.raises(ConfigError, match=r"checkpoint.*topic"):
            of_tree({"topic": partitions}, "checkpoint")


@given(st.dictionaries(PARTITIONS, st.integers(0, 99)), st.integers(0, 9), st.integers(0, 9))
def test_the_packing_lies_beside_the_offsets(
    offsets: dict[TopicPartition, int], least: int, most: int
) -> None:
    tree = {**to_tree(offsets), PACKING: Packing(least, most).to_tree()}
    found = json.loads(json.dumps(tree))
    assert of_tree(found, "checkpoint") == offsets
    assert packing_of(found) == Packing(least, most)
    assert packing_of(to_tree(offsets)) is None


@pytest.mark.parametrize("packing", [1, "2", {}, {"least": 1}, {"least": 1, "most": "2"}, []])
def test_a_packing_that_cannot_be_read_is_refused(packing: object) -> None:
    with pytest.raises(ConfigError, match="the task packing of the checkpoint"):
        packing_of({PACKING: packing})


@given(LOGS, st.integers(1, 10**7))
def test_a_batch_takes_all_it_may_and_no_more(
    logs: dict[TopicPartition, tuple[int, int]], limit: int
) -> None:
    start = {tp: at for tp, (at, _) in logs.items()}
    end = {tp: at + size for tp, (at, size) in logs.items()}
    reached = share(start, end, limit)
    assert reached.keys() == end.keys()
    assert all(start[tp] <= at <= end[tp] for tp, at in reached.items())
    total = sum(size for _, size in logs.values())
    assert sum(reached[tp] - start[tp] for tp in start) == min(limit, total)


def test_partitions_share_a_batch_by_what_they_hold() -> None:
    large, small = TopicPartition("a", 0), TopicPartition("a", 1)
    assert share({large: 0, small: 0}, {large: 900, small: 100}, 100) == {large: 90, small: 10}


def test_a_small_partition_does_not_wait_behind_a_large_one() -> None:
    large, small = TopicPartition("a", 0), TopicPartition("a", 1)
    assert share({large: 0, small: 0}, {large: 10**9, small: 1}, 100)[small] == 1


def test_a_log_that_became_shorter_ends_where_it_ends() -> None:
    short, other = TopicPartition("a", 0), TopicPartition("a", 1)
    assert share({short: 50, other: 0}, {short: 10, other: 9}, 5) == {short: 10, other: 5}


def test_spans_are_what_lies_between() -> None:
    one, two, new = (TopicPartition("a", number) for number in range(3))
    found = spans({one: 3, two: 7}, {one: 5, two: 7, new: 4})
    assert found == [Span("a", 0, 3, 5)]


@given(SPANS, st.integers(0, 40), st.integers(0, 12))
def test_tasks_hold_every_offset_once(found: list[Span], least: int, most: int) -> None:
    tasks = pack(found, least=least, most=most)
    held = [
        (span.topic, span.partition, offset)
        for task in tasks
        for span in task
        for offset in (span.start, span.end - 1)
    ]
    assert sum(span.size for task in tasks for span in task) == sum(span.size for span in found)
    pieces = sorted(span for task in tasks for span in task)
    for before, after in pairwise(pieces):
        if before.topic_partition == after.topic_partition:
            assert before.end == after.start
    assert {(span.topic, span.partition, span.start) for span in found} <= set(held)
    assert all(task for task in tasks)
    if most:
        assert len(tasks) <= most
    elif sum(span.size for span in found) >= least and found:
        assert len(tasks) >= min(least, sum(span.size for span in found))


@given(SPANS, st.randoms(use_true_random=False))
def test_a_batch_done_again_has_the_same_tasks(found: list[Span], order: object) -> None:
    again = list(found)
    getattr(order, "shuffle")(again)  # noqa: B009 - hypothesis gives no type that has it
    assert pack(found, least=7, most=3) == pack(again, least=7, most=3)


def test_large_spans_are_spread_over_tasks() -> None:
    found = [Span("a", number, 0, size) for number, size in enumerate([100, 50, 50])]
    assert [sum(span.size for span in task) for task in pack(found, most=2)] == [100, 100]
