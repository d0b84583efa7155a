"""suppress: until a window closes, until a time limit; bounds, restarts and old values."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.dsl.builder import StreamsBuilder
from streams.dsl.suppressed import Suppressed, until_time_limit, until_window_closes
from streams.errors import BufferOverflow, TopologyError
from streams.windows import UNLIMITED_END_MS, session, sliding, tumbling, unlimited
from tests.streams.aggregates.running import (
    AnyTable,
    Given,
    Running,
    append,
    at,
    empty,
    grouped,
    last_by_key,
    remove,
)


def table(suppressed: Suppressed) -> Any:
    def build(builder: StreamsBuilder) -> AnyTable:
        return builder.table("in", key=str, value=str).suppress(suppressed)

    return build


def final(windows: Any, **options: Any) -> Any:
    def build(builder: StreamsBuilder) -> AnyTable:
        counts = grouped(builder).windowed_by(windows).count()
        return counts.suppress(until_window_closes(**options))  # type: ignore[no-any-return]

    return build


def test_a_later_change_replaces_the_value_and_keeps_the_deadline() -> None:
    run = Running(table(until_time_limit(10)))
    assert run.feed(("a", "1", 0), ("a", "2", 5), ("b", "3", 9)) == []
    assert run.feed(("b", "4", 10)) == [("a", "2", 5)]
    assert run.feed(("c", "5", 19)) == [("b", "4", 10)]


def test_rows_leave_by_time_and_then_by_serialised_key() -> None:
    run = Running(table(until_time_limit(10)))
    run.feed(("c", "1", 3), ("b", "1", 1), ("a", "1", 3), ("d", "1", 2))
    assert [key for key, _, _ in run.feed(("z", "1", 50))] == ["b", "d", "a", "c"]


def test_deletions_are_passed_on_after_a_time_limit() -> None:
    run = Running(table(until_time_limit(10)))
    run.feed(("a", "1", 0), ("a", None, 1))
    assert run.feed(("z", "1", 10)) == [("a", None, 1)]


def test_headers_are_those_of_the_last_change() -> None:
    run = Running(table(until_time_limit(10)))
    given_topic = run.driver.create_input_topic("in", key=str, value=str)
    given_topic.pipe_input("a", "1", 0, headers=(("h", b"1"),))
    given_topic.pipe_input("a", "2", 1, headers=(("h", b"2"), ("n", None)))
    run.driver.restart()
    given_topic = run.driver.create_input_topic("in", key=str, value=str)
    given_topic.pipe_input("z", "1", 10)
    out = run.driver.create_output_topic("out", key=str, value=str)
    assert out.read_record().headers == (("h", b"2"), ("n", None))


def test_a_full_buffer_lets_the_oldest_row_leave_early() -> None:
    run = Running(table(until_time_limit(UNLIMITED_END_MS, max_records=1)))
    assert run.feed(("a", "1", 0), ("a", "2", 1)) == []
    assert run.feed(("b", "3", 2)) == [("a", "2", 1)]
    run = Running(table(until_time_limit(UNLIMITED_END_MS, max_bytes=1)))
    assert run.feed(("a", "1", 0), ("b", "2", 1)) == [("a", "1", 0), ("b", "2", 1)]


def test_a_full_buffer_may_stop_the_application() -> None:
    run = Running(table(until_time_limit(100, max_records=1, when_full="shut_down")))
    run.feed(("a", "1", 0))
    with pytest.raises(Exception, match="suppress buffer is full") as caught:
        run.feed(("b", "1", 1))
    assert any(isinstance(e, BufferOverflow) for e in (caught.value, caught.value.__cause__))


def test_only_the_last_result_of_a_window_is_seen() -> None:
    run = Running(final(tumbling(10, grace=5)))
    assert run.feed(("b", "x", 1), ("a", "x", 2), ("a", "x", 14), ("a", "x", 3)) == []
    assert run.feed(("z", "x", 15)) == [(at("a", 0, 10), 2, 3), (at("b", 0, 10), 1, 1)]
    assert run.feed(("a", "x", 4), ("z", "x", 16)) == []


def test_merged_sessions_leave_no_tombstones() -> None:
    run = Running(final(session(5, grace=2)))
    assert run.feed(("a", "x", 0), ("a", "x", 4), ("b", "x", 3)) == []
    assert run.feed(("z", "x", 11)) == [(at("b", 3, 3), 1, 3), (at("a", 0, 4), 2, 4)]


def test_a_sliding_window_is_released_when_no_record_can_enter_it_any_more() -> None:
    run = Running(final(sliding(5, grace=3)))
    assert run.feed(("a", "x", 10), ("b", "x", 13), ("a", "x", 10)) == []
    assert run.feed(("b", "x", 14)) == [(at("a", 5, 10), 2, 10)]


def test_the_buffer_and_its_time_survive_a_restart() -> None:
    run = Running(final(tumbling(10)))
    run.feed(("a", "x", 1), ("b", "x", 2))
    run.driver.restart()
    assert run.feed(("a", "x", 3), ("z", "x", 10)) == [
        (at("a", 0, 10), 2, 3),
        (at("b", 0, 10), 1, 2),
    ]
    run.driver.restart()
    assert run.feed(("z", "x", 20)) == [(at("z", 10, 20), 1, 10)]


def test_an_aggregate_of_a_suppressed_table_subtracts_what_it_was_told() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        rows = builder.table("in", key=str, value=str).suppress(until_time_limit(10))
        by_all = rows.group_by(lambda key, value: ("all", value), key=str, value=str)
        return by_all.aggregate(empty, append, remove, value=str)

    run = Running(build)
    run.feed(("k", "1", 0), ("k", "2", 5), ("t", "x", 10), ("k", "3", 12), ("k", "4", 15))
    assert run.feed(("t", "y", 22))[-1] == ("all", "0+2+y-2+4", 22)


def test_a_join_sees_of_a_suppressed_table_what_was_emitted() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        rows = builder.table("in", key=str, value=str).suppress(until_time_limit(10))
        others = builder.table("other", key=str, value=str)
        return others.left_join(rows, lambda left, right: f"{left}{right}", value=str)

    run = Running(build)
    run.feed(("a", "1", 0), ("t", "x", 10), ("a", "2", 11))
    assert run.feed(("a", "l", 12), topic="other") == [("a", "l1", 12)]
    assert run.feed(("t", "y", 21)) == [("a", "l2", 12)]


def test_what_cannot_be_suppressed_is_refused() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="needs a windowed table"):
        builder.table("one", key=str, value=str).suppress(until_window_closes())
    with pytest.raises(TopologyError, match="needs a windowed table"):
        grouped(builder).windowed_by(unlimited()).count().suppress(until_window_closes())
    history = builder.table("two", key=str, value=str, store="v", versioned_history=10)
    with pytest.raises(TopologyError, match="versioned"):
        history.suppress(until_time_limit(10))
    with pytest.raises(TopologyError, match="is not a suppression"):
        builder.table("three", key=str, value=str).suppress(10)  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="the time limit is -1 ms"):
        until_time_limit(-1)
    with pytest.raises(TopologyError, match='"max_records" is -1'):
        until_time_limit(1, max_records=-1)
    with pytest.raises(TopologyError, match='"when_full" is'):
        until_time_limit(1, when_full="drop")  # type: ignore[arg-type]
    with pytest.raises(TopologyError, match="not final"):
        until_window_closes(when_full="emit_early")  # type: ignore[arg-type]


def test_a_filtered_table_by_windows_can_still_be_suppressed() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        counts = grouped(builder).windowed_by(tumbling(10)).count()
        even = counts.filter(lambda window, count: count % 2 == 0)
        return even.suppress(until_window_closes())

    run = Running(build)
    run.feed(("a", "x", 1), ("a", "x", 2), ("b", "x", 3))
    assert run.feed(("a", "x", 12), ("a", "x", 13)) == [(at("a", 0, 10), 2, 2)]


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "b", "c"]),
            st.one_of(st.none(), st.sampled_from(["1", "2"])),
            st.integers(0, 60),
        ),
        max_size=12,
    ),
    st.integers(0, 20),
    st.one_of(st.none(), st.integers(0, 3)),
    st.integers(0, 12),
)
def test_in_the_end_a_suppressed_table_equals_the_table(
    records: list[Given], limit_ms: int, records_max: int | None, restart_after: int
) -> None:
    run = Running(table(until_time_limit(limit_ms, max_records=records_max)))
    with run.driver:
        results = run.feed(*records[:restart_after])
        run.driver.restart()
        results += run.feed(*records[restart_after:], ("end", "x", 10_000), ("end", "y", 20_000))
        expected = last_by_key([*records, ("end", "y", 0)])
        assert last_by_key(results) == expected
