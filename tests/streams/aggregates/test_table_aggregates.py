"""Aggregates of a grouped table: subtract, then add."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.dsl.builder import StreamsBuilder
from streams.dsl.grouped import GroupedTable
from tests.streams.aggregates.running import (
    AnyTable,
    Given,
    Running,
    append,
    empty,
    last_by_key,
    remove,
)


def by_group(builder: StreamsBuilder) -> GroupedTable[str, str]:
    """Rows "group:value" by their group; a row without one is in no group."""

    def select(key: str, value: str) -> Any:
        group, _, rest = value.partition(":")
        return group or None, rest or None

    table = builder.table("in", key=str, value=str, store="rows")
    return table.group_by(select, key=str, value=str)


def appending(builder: StreamsBuilder) -> AnyTable:
    return by_group(builder).aggregate(empty, append, remove, value=str, store="texts")


def counting(builder: StreamsBuilder) -> AnyTable:
    return by_group(builder).count(store="counts")


def test_a_row_that_stays_in_its_group_gives_one_result() -> None:
    assert Running(appending).feed(("k", "g:1", 1), ("k", "g:2", 2)) == [
        ("g", "0+1", 1),
        ("g", "0+1-1+2", 2),
    ]


def test_a_row_that_moves_leaves_its_old_group_first() -> None:
    assert Running(appending).feed(("k", "g:1", 5), ("j", "h:2", 6), ("k", "h:3", 3)) == [
        ("g", "0+1", 5),
        ("h", "0+2", 6),
        ("g", "0+1-1", 5),
        ("h", "0+2+3", 6),
    ]


def test_old_releases_cannot_read_both_values_of_a_row_at_once() -> None:
    run = Running(appending, config={"upgrade_from": "3.3"})
    assert run.feed(("k", "g:1", 1), ("k", "g:2", 2)) == [
        ("g", "0+1", 1),
        ("g", "0+1-1", 2),
        ("g", "0+1-1+2", 2),
    ]


def test_a_deleted_row_is_subtracted() -> None:
    run = Running(counting)
    assert run.feed(("k", "g:1", 1), ("j", "g:1", 2), ("k", None, 3), ("j", None, 4)) == [
        ("g", 1, 1),
        ("g", 2, 2),
        ("g", 1, 3),
        ("g", 0, 4),
    ]
    assert run.feed(("unknown", None, 5)) == []


def test_rows_without_a_group_or_a_value_are_in_no_group() -> None:
    run = Running(counting)
    assert run.feed(("k", ":1", 1), ("j", "g:", 2), ("i", "g:1", 3)) == [("g", 1, 3)]
    assert run.feed(("i", ":1", 4)) == [("g", 0, 4)]


def test_a_selector_may_say_that_a_row_is_in_no_group() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        table = builder.table("in", key=str, value=str)
        grouped: GroupedTable[str, str] = table.group_by(
            lambda key, value: (key[0], value) if value else None,  # type: ignore[arg-type, return-value]
            key=str,
            value=str,
        )
        return grouped.count()

    assert Running(build).feed(("ab", "", 1), ("ac", "x", 2)) == [("a", 1, 2)]


def test_a_subtractor_that_gives_nothing_removes_the_group() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        return by_group(builder).reduce(
            lambda aggregate, value: f"{aggregate}+{value}",
            lambda aggregate, value: None,  # type: ignore[arg-type, return-value]
            store="texts",
        )

    assert Running(build).feed(("k", "g:1", 1), ("j", "g:2", 2), ("k", None, 3)) == [
        ("g", "1", 1),
        ("g", "1+2", 2),
        ("g", None, 3),
    ]


def test_an_out_of_order_row_is_applied_and_the_time_stays_the_largest() -> None:
    assert Running(appending).feed(("k", "g:1", 10), ("k", "g:2", 4)) == [
        ("g", "0+1", 10),
        ("g", "0+1-1+2", 10),
    ]


def test_groups_of_groups_are_right_after_every_change() -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        counts = by_group(builder).count()
        by_count = counts.group_by(lambda group, count: (str(count), group), key=str, value=str)
        return by_count.count()

    run = Running(build)
    found = last_by_key(run.feed(("a", "g:1", 1), ("b", "g:1", 2), ("c", "h:1", 3)))
    assert found == {"2": 1, "1": 1}


ROWS = st.lists(
    st.tuples(
        st.sampled_from(["k", "j", "i"]),
        st.one_of(st.none(), st.sampled_from(["g:1", "g:5", "h:2", ":9"])),
        st.integers(0, 30),
    ),
    max_size=14,
)


@pytest.mark.slow
@given(ROWS)
def test_sums_of_groups_equal_a_computation_from_scratch(records: list[Given]) -> None:
    def build(builder: StreamsBuilder) -> AnyTable:
        def add(key: str, value: str, total: int) -> int:
            return total + int(value)

        def subtract(key: str, value: str, total: int) -> int:
            return total - int(value)

        return by_group(builder).aggregate(lambda: 0, add, subtract, value=int, store="sums")

    run = Running(build)
    rows: dict[Any, str] = {}
    with run.driver:
        for key, value, timestamp_ms in records:
            run.feed((key, value, timestamp_ms))
            rows.pop(key, None)
            if value is not None:
                rows[key] = value
            expected: dict[str, int] = {}
            for row in rows.values():
                group, _, number = row.partition(":")
                if group:
                    expected[group] = expected.get(group, 0) + int(number)
            stored = dict(run.driver.get_state_store("sums").all())
            assert {group: total for group, (total, _) in stored.items() if total} == expected
