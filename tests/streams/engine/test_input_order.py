"""Whose turn it is: records of several inputs by timestamp, and whether to wait for an input."""

import re
from collections.abc import Callable
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.api import OffsetAndMetadata
from broker.model import TopicPartition
from broker.serde import StringSerde
from streams.errors import InvalidTimestamp, ProcessingFailed
from streams.record import Chunk
from streams.stream_time import (
    log_and_skip_on_invalid_timestamp,
    use_partition_time_on_invalid_timestamp,
)
from streams.topology import SourceNode, Topology
from tests.streams.engine.harness import LoneTask
from tests.streams.engine.topologies import sink, source, topology

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def value_time(key: object, value: object, timestamp_ms: int, partition_time_ms: int) -> int:
    return int(str(value))


def two_inputs(extractor: Callable[[object, object, int, int], int] | None = None) -> Topology:
    return topology(
        [
            source("a", timestamp_extractor=extractor),
            source("b", timestamp_extractor=extractor),
            sink("out", "out", "a", "b"),
        ]
    )


def one_input(**more: object) -> Topology:
    return topology([source("a", **more), sink("out", "out", "a")])


def rows(*times: int) -> list[tuple[str | None, bytes | None, int]]:
    return [("k", str(time).encode(), time) for time in times]


def times_sent(lone: LoneTask) -> list[int]:
    return [record.timestamp_ms for record in lone.outbox.sent]


@pytest.mark.parametrize("extractor", [None, value_time])
def test_the_smallest_head_is_next_and_a_partition_is_never_sorted(
    extractor: Callable[[object, object, int, int], int] | None,
) -> None:
    lone = LoneTask(two_inputs(extractor))
    lone.add("a", rows(1, 5, 3))
    lone.add("b", rows(2, 4, 6))
    lone.run()
    assert times_sent(lone) == [1, 2, 4, 5, 3, 6]


def test_equal_heads_take_turns() -> None:
    lone = LoneTask(two_inputs())
    lone.add("a", [("k", b'"a1"', 5), ("k", b'"a2"', 5)])
    lone.add("b", [("k", b'"b1"', 5), ("k", b'"b2"', 5)])
    lone.run()
    assert lone.values == [b'"a1"', b'"b1"', b'"a2"', b'"b2"']


@given(
    left=st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=4),
    right=st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=4),
    limit=st.integers(1, 5),
    looks_inside=st.booleans(),
)
def test_runs_take_the_same_order_as_one_record_at_a_time(
    left: list[list[int]], right: list[list[int]], limit: int, looks_inside: bool
) -> None:
    lone = LoneTask(two_inputs(value_time if looks_inside else None), max_task_idle_ms=-1)
    for topic, chunks in (("a", left), ("b", right)):
        offset = 0
        for times in chunks:
            lone.add(topic, [(topic, str(t).encode(), t) for t in times], offset=offset)
            offset += len(times)
    while lone.task.buffered_total:
        assert 0 < lone.task.process(limit) <= limit
    found = [(record.key, record.timestamp_ms) for record in lone.outbox.sent]
    assert found == expected_order(list(chain(*left)), list(chain(*right)))


def expected_order(left: list[int], right: list[int]) -> list[tuple[bytes, int]]:
    """The rule in its plainest words: smallest head first, equal ones by who waits longest."""
    queues = {b"a": (left, 0), b"b": (right, 1)}
    tick, found = 2, []
    while any(times for times, _ in queues.values()):
        name = min(
            (name for name in queues if queues[name][0]),
            key=lambda name: (queues[name][0][0], queues[name][1]),
        )
        times = queues[name][0]
        found.append((name, times[0]))
        queues[name] = (times[1:], tick)
        tick += 1
    return found


def test_processing_stops_when_an_input_runs_empty_so_that_it_can_be_waited_for() -> None:
    lone = LoneTask(two_inputs())
    lone.add("a", rows(1))
    lone.add("b", rows(2, 3))
    assert lone.task.process(100) == 1
    assert lone.task.process(100) == 2


def test_without_idling_processing_goes_on_with_what_is_there() -> None:
    lone = LoneTask(two_inputs(), max_task_idle_ms=-1)
    lone.add("a", rows(1))
    lone.add("b", rows(2, 3))
    assert lone.task.ready(0, {})
    assert lone.task.process(100) == 3


def test_an_empty_input_is_waited_for_as_long_as_its_lag_is_not_zero() -> None:
    lone = LoneTask(two_inputs())
    assert not lone.task.ready(0, {A: 0, B: 0})  # nothing to do at all
    lone.add("a", rows(1))
    assert not lone.task.ready(0, {})
    assert not lone.task.ready(10**9, {B: 5})
    assert lone.task.metrics.total("enforced-processing-total") == 0
    assert lone.task.ready(0, {B: 0})
    assert lone.task.metrics.total("enforced-processing-total") == 1
    lone.add("b", rows(1))
    assert lone.task.ready(0, {})
    assert lone.task.metrics.total("enforced-processing-total") == 1


def test_an_empty_input_is_waited_for_as_long_as_the_setting_says() -> None:
    lone = LoneTask(two_inputs(), max_task_idle_ms=100)
    lone.add("a", rows(1))
    assert not lone.task.ready(1000, {B: 0})
    assert not lone.task.ready(1099, {B: 0})
    assert lone.task.ready(1100, {B: 0})
    # Records at the broker end the waiting; it begins anew when they are gone.
    assert not lone.task.ready(1101, {B: 1})
    assert not lone.task.ready(1102, {B: 0})
    assert lone.task.ready(1202, {B: 0})


def test_a_negative_time_stops_the_task_by_default() -> None:
    lone = LoneTask(one_input())
    lone.add("a", rows(-1))
    with pytest.raises(InvalidTimestamp, match="timestamp -1") as caught:
        lone.run()
    assert caught.value.at == 'topic "a" partition 0 offset 0, source node "a"'


def test_a_negative_time_from_an_extractor_drops_the_record() -> None:
    lone = LoneTask(one_input(timestamp_extractor=log_and_skip_on_invalid_timestamp))
    lone.add("a", rows(-1, 5, -7, 6))
    lone.run()
    assert times_sent(lone) == [5, 6]
    assert lone.task.metrics.total("dropped-records-total") == 2
    assert lone.task.offsets()[A].offset == 4


def test_records_skipped_at_the_end_are_committed_too() -> None:
    lone = LoneTask(two_inputs(log_and_skip_on_invalid_timestamp))
    lone.add("a", rows(3, -1))
    lone.add("b", rows(-1, -1))
    lone.run()
    assert times_sent(lone) == [3]
    assert {tp: found.offset for tp, found in lone.task.offsets().items()} == {A: 2, B: 2}


def test_an_extractor_may_use_the_largest_time_of_the_partition() -> None:
    lone = LoneTask(one_input(timestamp_extractor=use_partition_time_on_invalid_timestamp))
    lone.add("a", rows(10, -1, 7, -1))
    lone.run()
    assert times_sent(lone) == [10, 10, 7, 10]


def test_an_extractor_that_fails_is_named_with_the_record() -> None:
    lone = LoneTask(one_input(value_serde=StringSerde(), timestamp_extractor=value_time))
    lone.add("a", [("k", b"no number", 5)])
    with pytest.raises(ProcessingFailed, match="timestamp extractor failed: ValueError") as caught:
        lone.run()
    assert 'topic "a" partition 0 offset 0' in caught.value.at


def test_the_extractor_of_the_settings_serves_sources_without_their_own() -> None:
    lone = LoneTask(one_input(), default_timestamp_extractor=value_time)
    lone.add("a", [("k", b"77", 5)])
    lone.run()
    assert times_sent(lone) == [77]


def test_offsets_go_over_gaps_of_the_log() -> None:
    lone = LoneTask(one_input())
    lone.task.add(Chunk("a", 0, [3, 7], [1, 2], [b"k", b"k"], [b"1", b"2"], None, 12))
    assert lone.task.process(1) == 1
    assert lone.task.offsets()[A].offset == 7
    assert lone.task.process(1) == 1
    assert lone.task.offsets()[A].offset == 12
    lone.task.add(Chunk("a", 0, [], [], [], [], None, 20))  # control batches only
    assert lone.task.offsets()[A].offset == 20


def test_offsets_are_given_until_they_are_committed() -> None:
    lone = LoneTask(one_input())
    assert lone.task.offsets() == {}
    lone.add("a", rows(1))
    lone.run()
    assert lone.task.offsets() == lone.task.offsets() != {}
    lone.task.committed()
    assert lone.task.offsets() == {}


def test_a_task_goes_on_from_a_commit() -> None:
    lone = LoneTask(one_input(timestamp_extractor=use_partition_time_on_invalid_timestamp))
    lone.add("a", rows(50))
    lone.run()
    other = LoneTask(one_input(timestamp_extractor=use_partition_time_on_invalid_timestamp))
    other.task.resume_from(lone.task.offsets())
    assert other.task.stream_time_ms == 50
    other.add("a", rows(-1), offset=1)
    other.run()
    assert times_sent(other) == [50]


def test_metadata_of_others_is_ignored() -> None:
    lone = LoneTask(one_input())
    lone.task.resume_from({A: OffsetAndMetadata(4, metadata="AgAAAZMZ1bQx")})
    assert lone.task.stream_time_ms == -1
    assert lone.task.offsets()[A].offset == 4


def test_a_topic_of_a_pattern_joins_with_its_first_records() -> None:
    lone = LoneTask(
        topology(
            [SourceNode("s", pattern=re.compile("logs-.")), sink("out", "out", "s")],
        )
    )
    lone.add("logs-x", rows(1))
    lone.add("logs-y", rows(2))
    lone.run()
    assert times_sent(lone) == [1, 2]
    assert lone.task.inputs == (TopicPartition("logs-x", 0), TopicPartition("logs-y", 0))
    with pytest.raises(Exception, match='does not read topic "logs"'):
        lone.add("logs", rows(1))
