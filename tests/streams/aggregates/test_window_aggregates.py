"""Aggregates by tumbling, hopping and unlimited windows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.partitioner import partition_for_key
from streams.dsl.builder import StreamsBuilder
from streams.errors import TopologyError
from streams.processor import CacheBudget
from streams.windows import (
    UNLIMITED_END_MS,
    TimeWindows,
    UnlimitedWindows,
    hopping,
    sliding,
    tumbling,
    unlimited,
)
from tests.streams.aggregates.running import (
    AnyTable,
    Given,
    Running,
    append,
    at,
    empty,
    grouped,
    join_texts,
)
from tests.streams.engine.harness import LoneTask


def appending(windows: TimeWindows | UnlimitedWindows) -> Any:
    def build(builder: StreamsBuilder) -> AnyTable:
        windowed = grouped(builder).windowed_by(windows)
        return windowed.aggregate(empty, append, value=str, store="texts")

    return build


def test_windows_begin_at_the_epoch_and_end_before_their_end() -> None:
    assert Running(appending(tumbling(10))).feed(("a", "1", 9), ("a", "2", 10), ("a", "3", 19)) == [
        (at("a", 0, 10), "0+1", 9),
        (at("a", 10, 20), "0+2", 10),
        (at("a", 10, 20), "0+2+3", 19),
    ]


def test_a_late_record_inside_grace_updates_its_window() -> None:
    run = Running(appending(tumbling(10, grace=5)))
    run.feed(("a", "1", 1), ("b", "2", 14))
    assert run.feed(("a", "3", 9)) == [(at("a", 0, 10), "0+1+3", 9)]
    run.feed(("b", "4", 15))
    assert run.feed(("a", "5", 9)) == []
    assert run.dropped == 1


def test_each_closed_window_of_a_hopping_record_counts_as_dropped() -> None:
    run = Running(appending(hopping(10, 5)))
    run.feed(("a", "1", 17))
    assert run.feed(("a", "2", 12)) == [(at("a", 10, 20), "0+1+2", 17)]
    assert run.dropped == 1
    run.feed(("a", "3", 3))
    assert run.dropped == 2


def test_no_window_starts_before_the_epoch() -> None:
    assert Running(appending(hopping(10, 4))).feed(("a", "1", 2), ("a", "2", 5)) == [
        (at("a", 0, 10), "0+1", 2),
        (at("a", 0, 10), "0+1+2", 5),
        (at("a", 4, 14), "0+2", 5),
    ]


def test_only_null_keys_are_dropped_and_they_move_no_time() -> None:
    run = Running(appending(tumbling(10)))
    assert run.feed((None, "1", 100), ("a", None, 3)) == [(at("a", 0, 10), "0+None", 3)]
    assert run.dropped == 1


def test_stream_time_is_that_of_the_operator_and_of_all_its_keys() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        records = builder.stream("in", key=str, value=str).filter(lambda key, value: value != "no")
        return records.group_by_key().windowed_by(tumbling(10)).count()

    run = Running(build)
    run.feed(("x", "no", 1000), ("a", "1", 5), ("b", "1", 20))
    assert run.feed(("a", "2", 6)) == []
    assert run.dropped == 1


def test_stream_time_survives_a_restart() -> None:
    run = Running(appending(tumbling(10)))
    run.feed(("a", "1", 25))
    run.driver.restart()
    assert run.feed(("a", "2", 19)) == []
    assert run.dropped == 1


def test_the_stream_times_of_many_operators_survive_a_restart() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        grouped = builder.stream("in", key=str, value=str).group_by_key()
        return [grouped.windowed_by(tumbling(10)).count() for _ in range(300)][-1]

    run = Running(build)
    run.feed(("a", "1", 25))
    run.driver.restart()
    assert run.feed(("a", "2", 19)) == []
    assert run.dropped == 300


@pytest.mark.parametrize(
    "windows", [tumbling(10), hopping(10, 5), sliding(10, grace=0)], ids=lambda each: str(each)[:10]
)
def test_a_window_that_the_store_no_longer_keeps_gives_no_result(windows: Any) -> None:
    """As when the time of the operator is lost: only the store knows that it is too late."""
    builder = StreamsBuilder()
    appending(windows)(builder).to_stream().map(lambda key, value: (str(key), value)).to("out")
    lone = LoneTask(builder.build(), cache=CacheBudget(0))
    lone.add("in", [("a", b"1", 10_000_000_000)])
    lone.run()
    before = len(lone.outbox.sent)
    for time in lone.task._context.times.values():
        time.ms = -1
    lone.add("in", [("a", b"2", 5)], offset=1)
    lone.run()
    assert len(lone.outbox.sent) == before
    assert lone.task.metrics.total("dropped-records-total") > 0


def test_windowed_count_and_reduce_do_not_skip_null_values() -> None:
    def counting(builder: StreamsBuilder) -> AnyTable:
        return grouped(builder).windowed_by(tumbling(10)).count()

    def reducing(builder: StreamsBuilder) -> AnyTable:
        return grouped(builder).windowed_by(tumbling(10)).reduce(join_texts)

    assert Running(counting).feed(("a", None, 1), ("a", "x", 2))[-1] == (at("a", 0, 10), 2, 2)
    assert Running(reducing).feed(("a", None, 1), ("a", "x", 2), ("a", "y", 3)) == [
        (at("a", 0, 10), None, 1),
        (at("a", 0, 10), "x", 2),
        (at("a", 0, 10), "x+y", 3),
    ]


def test_an_unlimited_window_never_closes_and_begins_at_its_start() -> None:
    run = Running(appending(unlimited(50)))
    assert run.feed(("a", "0", 49), ("a", "1", 1_000_000), ("a", "2", 50)) == [
        (at("a", 50, UNLIMITED_END_MS), "0+1", 1_000_000),
        (at("a", 50, UNLIMITED_END_MS), "0+1+2", 1_000_000),
    ]
    assert run.dropped == 0


def test_old_values_of_windows_are_subtracted_from_their_groups() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        counts = grouped(builder).windowed_by(tumbling(10, grace=100)).count()
        by_key = counts.group_by(lambda window, count: (window.key, count), key=str, value=int)
        return by_key.reduce(lambda total, count: total + count, lambda total, count: total - count)

    assert Running(build).feed(("a", "x", 1), ("a", "x", 12), ("a", "x", 3)) == [
        ("a", 1, 1),
        ("a", 2, 12),
        ("a", 3, 12),
    ]


def test_held_back_windows_come_once_per_commit() -> None:
    run = Running(
        appending(tumbling(10, grace=20)),
        config={"statestore_cache_max_bytes": 1_000_000},
        commit="manual",
    )
    assert run.feed(("a", "1", 1), ("b", "2", 2), ("a", "3", 11), ("a", "4", 3)) == []
    run.driver.commit()
    assert run.results() == [
        (at("b", 0, 10), "0+2", 2),
        (at("a", 10, 20), "0+3", 11),
        (at("a", 0, 10), "0+1+4", 3),
    ]


def test_windowed_results_are_partitioned_by_their_plain_keys() -> None:
    run = Running(appending(tumbling(10)), partitions=4)
    with run.driver:
        given_topic = run.driver.create_input_topic("in", key=str, value=str)
        out = run.driver.create_output_topic("out", key=bytes, value=str)
        for number in range(20):
            key = f"key{number}"
            given_topic.pipe_input(key, "x", number)
            assert out.read_logged().partition == partition_for_key(key.encode(), 4)


def test_windows_of_two_tables_can_be_joined() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        windowed = grouped(builder).windowed_by(tumbling(10))
        return windowed.count().join(windowed.reduce(max), lambda count, value: f"{count}:{value}")

    run = Running(build)
    with run.driver:
        run.driver.create_input_topic("in", key=str, value=str).pipe_input("a", "x", 1)
        out = run.driver.create_output_topic("out", key=bytes, value=bytes)
        assert out.read_value() == b'"1:x"'


def test_a_store_that_would_forget_open_windows_is_refused() -> None:
    windowed = grouped(StreamsBuilder()).windowed_by(tumbling(10, grace=5))
    with pytest.raises(TopologyError, match="these windows need at least 15 ms"):
        windowed.count(store="counts", retention=14)
    windowed.count(store="counts", retention=15)


def test_windows_that_are_none_are_refused() -> None:
    with pytest.raises(TopologyError, match="60000 does not define windows"):
        grouped(StreamsBuilder()).windowed_by(60_000)  # type: ignore[call-overload]
    with pytest.raises(TopologyError, match='"emit" is'):
        grouped(StreamsBuilder()).windowed_by(tumbling(1), emit="late")  # type: ignore[call-overload]


RECORDS = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"]), st.integers(0, 60)),
    max_size=12,
)


@pytest.mark.slow
@given(RECORDS, st.integers(1, 20), st.integers(1, 20), st.integers(0, 20))
def test_results_are_those_of_the_definition(
    records: list[Given], size_ms: int, advance_ms: int, grace_ms: int
) -> None:
    windows = TimeWindows(size_ms, min(advance_ms, size_ms), grace_ms)
    expected, dropped, stream_time_ms = [], 0, -1
    texts: dict[Any, tuple[str, int]] = {}
    for key, value, timestamp_ms in records:
        stream_time_ms = max(stream_time_ms, timestamp_ms)
        for start in windows.starts(timestamp_ms):
            if start + size_ms <= stream_time_ms - grace_ms:
                dropped += 1
                continue
            window = at(str(key), start, start + size_ms)
            text, newest_ms = texts.get(window, ("0", 0))
            texts[window] = (f"{text}+{value}", max(newest_ms, timestamp_ms))
            expected.append((window, *texts[window]))
    run = Running(appending(windows))
    with run.driver:
        assert run.feed(*records) == expected
        assert run.dropped == dropped
