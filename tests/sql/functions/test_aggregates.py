"""Aggregates: what rows add up to, taken back, and in sessions that become one."""

from collections.abc import Sequence
from copy import deepcopy
from decimal import Decimal
from math import isclose, nan, sqrt
from statistics import correlation, stdev, variance

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.datatypes import ArrayType, DataType
from sql.errors import RecordFailed, StatementFailed
from sql.functions.aggregates_by_offset import EarliestSeveral, LatestSeveral
from sql.functions.aggregates_distinct import EXACT_MAX
from sql.functions.builtin import builtin_functions
from sql.functions.registry import AggregateOverload, Aggregator, Settings, UndoableAggregator
from tests.sql.functions.calls import same, type_

D = Decimal
Rows = Sequence[object]


def overload(call: str) -> tuple[AggregateOverload, tuple[DataType, ...], tuple[object, ...]]:
    """Of a call as "TOPK(INT, 3)": types of columns, then literals."""
    name, _, rest = call.partition("(")
    types: list[DataType] = []
    constants: list[object] = []
    for part in filter(None, rest.removesuffix(")").split(", ")):
        if part in ("true", "false"):
            types.append(type_("BOOLEAN"))
            constants.append(part == "true")
        elif part.lstrip("-").isdigit():
            types.append(type_("INT"))
            constants.append(int(part))
        else:
            types.append(type_(part.replace(";", ", ")))
    found, _ = builtin_functions().resolve(name, types)
    assert isinstance(found, AggregateOverload)
    assert found.literals(len(types)) == len(constants)
    return found, tuple(types), tuple(constants)


def made(call: str, settings: Settings | None = None) -> Aggregator:
    found, types, constants = overload(call)
    return found.make(types, constants, settings or {})


def state_of(aggregator: Aggregator, rows: Rows) -> object:
    state = aggregator.initial()
    for row in rows:
        state = aggregator.add(state, *(row if isinstance(row, tuple) else (row,)))
    return state


CASES: list[tuple[str, Rows, object]] = [
    ("COUNT(STRING)", ["a", None, "a"], 2),
    ("COUNT()", [(), ()], 2),
    ("COUNT(ARRAY<INT>)", [], 0),
    ("SUM(INT)", [1, None, 2], 3),
    ("SUM(INT)", [2**31 - 1, 1], -(2**31)),
    ("SUM(BIGINT)", [2**63 - 1, 2], -(2**63) + 1),
    ("SUM(DOUBLE)", [0.5, 0.25, None], 0.75),
    ("SUM(DECIMAL(4;1))", [D("100.1"), None, D("-0.1")], D("100.0")),
    ("SUM(DECIMAL(40;1))", [D("1" + "0" * 38 + ".1"), D("0.1")], D("1" + "0" * 38 + ".2")),
    ("SUM(INT)", [], 0),
    ("SUM(DECIMAL(4;1))", [], D("0.0")),
    ("SUM_LIST(ARRAY<INT>)", [[1, None, 2], None, [], [3]], 6),
    ("SUM_LIST(ARRAY<BIGINT>)", [[2**63 - 1, 1]], -(2**63)),
    ("SUM_LIST(ARRAY<DOUBLE>)", [[0.5], [0.5]], 1.0),
    ("AVG(INT)", [1, 2, None], 1.5),
    ("AVG(BIGINT)", [2**40], float(2**40)),
    ("AVG(DOUBLE)", [0.5, 1.5], 1.0),
    ("AVG(INT)", [None], 0.0),
    ("AVG(INT)", [2**31 - 1, 1], -(2.0**30)),
    ("MIN(INT)", [3, None, 1, 2], 1),
    ("MIN(STRING)", ["b", "a"], "a"),
    ("MIN(BYTES)", [b"\x01", b"\x80"], b"\x80"),
    ("MIN(DOUBLE)", [1.0, nan, 2.0], nan),
    ("MIN(DATE)", [], None),
    ("MAX(BIGINT)", [3, None, 5, 2], 5),
    ("MAX(DOUBLE)", [1.0, nan, 2.0], nan),
    ("MAX(DECIMAL(3;1))", [D("1.5"), D("2.5")], D("2.5")),
    ("MAX(STRING)", ["\uffff", "\U00010000"], "\uffff"),
    ("MAX(BYTES)", [b"\x01", b"\x80"], b"\x01"),
    ("MAX(TIME)", [7], 7),
    ("MAX(TIMESTAMP)", [None], None),
    ("STDDEV_SAMP(INT)", [2, 4, None], 2.0),
    ("STDDEV_SAMPLE(BIGINT)", [2, 4], sqrt(2)),
    ("STDDEV_SAMPLE(DOUBLE)", [2.5], 0.0),
    ("CORRELATION(DOUBLE, DOUBLE)", [(1, 2), (2, 4), (None, 7), (9, None), (3, 6)], 1.0),
    ("CORRELATION(INT, INT)", [(1, 2)], nan),
    ("CORRELATION(INT, INT)", [(1, 2), (1, 3)], nan),
    ("CORRELATION(INT, INT)", [], nan),
    ("COLLECT_LIST(INT)", [1, None, 1], [1, None, 1]),
    ("COLLECT_SET(INT)", [1, None, 1, None, 2], [1, None, 2]),
    ("COLLECT_SET(MAP<STRING;INT>)", [{"a": 1}, {"a": 1}], [{"a": 1}]),
    ("HISTOGRAM(STRING)", ["a", "b", None, "a"], {"a": 2, "b": 1}),
    ("ATTR(STRING)", ["a", "a"], "a"),
    ("ATTR(STRING)", ["a", None], None),
    ("ATTR(ARRAY<INT>)", [[1], [1]], [1]),
    ("ATTR(STRING)", [], None),
    ("EARLIEST_BY_OFFSET(INT)", [None, 3, 4], 3),
    ("EARLIEST_BY_OFFSET(INT, true)", [None, 3, 4], 3),
    ("EARLIEST_BY_OFFSET(INT, false)", [None, 3, 4], None),
    ("EARLIEST_BY_OFFSET(INT, 2)", [None, 3, 4, 5], [3, 4]),
    ("EARLIEST_BY_OFFSET(INT, 2, false)", [None, 3, 4], [None, 3]),
    ("EARLIEST_BY_OFFSET(INT, 2)", [], []),
    ("LATEST_BY_OFFSET(INT)", [3, 4, None], 4),
    ("LATEST_BY_OFFSET(INT, false)", [3, 4, None], None),
    ("LATEST_BY_OFFSET(INT, 2)", [3, 4, None, 5], [4, 5]),
    ("LATEST_BY_OFFSET(INT, 2, true)", [3, 4, None, 5], [4, 5]),
    ("LATEST_BY_OFFSET(INT, 2, false)", [3, 4, None], [4, None]),
    ("LATEST_BY_OFFSET(ARRAY<INT>)", [[1], [2]], [2]),
    ("TOPK(INT, 2)", [3, None, 9, 9, 1], [9, 9]),
    ("TOPK(STRING, 2)", ["a", "c", "b"], ["c", "b"]),
    ("TOPK(DOUBLE, 3)", [1.0, 2.0], [2.0, 1.0]),
    (
        "TOPK(BIGINT, STRING, DATE, 2)",
        [(1, "a", 5), (None, "b", 6), (3, None, 7), (1, "c", 8)],
        [{"sort_col": 3, "col0": None, "col1": 7}, {"sort_col": 1, "col0": "a", "col1": 5}],
    ),
    ("TOPKDISTINCT(INT, 2)", [3, None, 9, 9, 1], [9, 3]),
    ("TOPKDISTINCT(DECIMAL(3;1), 2)", [D("1.0"), D("2.0"), D("3.0")], [D("3.0"), D("2.0")]),
    ("TOPKDISTINCT(BYTES, 3)", [b"\x80", b"\x01"], [b"\x01", b"\x80"]),
    ("TOPKDISTINCT(TIMESTAMP, 1)", [5, 7], [7]),
    ("COUNT_DISTINCT(STRING)", ["a", "b", "a", None], 2),
    ("COUNT_DISTINCT(MAP<STRING;INT>)", [{"a": 1, "b": 2}, {"b": 2, "a": 1}], 1),
    ("COUNT_DISTINCT(DECIMAL(3;1))", [D("1.0"), D("1.1"), D("1.0")], 2),
    ("COUNT_DISTINCT(BOOLEAN)", [True, False, True], 2),
    ("COUNT_DISTINCT(DOUBLE)", [1.0, 2.0, 1.0], 2),
    ("COUNT_DISTINCT(BYTES)", [b"", b"a"], 2),
]


@pytest.mark.parametrize(("call", "rows", "result"), CASES)
def test_rows_add_up_to_a_result(call: str, rows: Rows, result: object) -> None:
    aggregator = made(call)
    found = aggregator.result(state_of(aggregator, rows))
    assert same(found, result), found


@pytest.mark.parametrize(("call", "rows", "result"), CASES)
def test_states_are_values_that_can_be_stored(call: str, rows: Rows, result: object) -> None:
    aggregator = made(call)
    state = aggregator.initial()
    for row in rows:
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(_plain(state)))
        state = _from_plain(state, aggregator.state_type)
        state = aggregator.add(state, *(row if isinstance(row, tuple) else (row,)))
    assert same(aggregator.result(state), result)


def _plain(state: object) -> object:
    return str(state) if isinstance(state, Decimal) else state


def _from_plain(state: object, type_: DataType) -> object:
    if str(type_).startswith("DECIMAL") and isinstance(state, str):
        return Decimal(state)
    if isinstance(type_, ArrayType) and isinstance(state, list):
        return [_from_plain(each, type_.element) for each in state]
    return state


@pytest.mark.parametrize(("call", "rows", "result"), CASES)
def test_a_result_does_not_change_when_rows_follow(call: str, rows: Rows, result: object) -> None:
    aggregator = made(call)
    state = state_of(aggregator, rows)
    found = aggregator.result(state)
    kept = deepcopy(found)
    state = aggregator.merge(aggregator.initial(), state)
    for row in rows:
        state = aggregator.add(state, *(row if isinstance(row, tuple) else (row,)))
    assert same(found, kept)


@pytest.mark.parametrize(("call", "rows", "result"), CASES)
def test_an_empty_session_changes_nothing(call: str, rows: Rows, result: object) -> None:
    aggregator = made(call)
    for left, right in ((rows, []), ([], rows)):
        merged = aggregator.merge(state_of(aggregator, left), state_of(aggregator, right))
        assert same(aggregator.result(merged), result)


UNDOABLE = (
    "ATTR AVG COLLECT_LIST CORRELATION COUNT HISTOGRAM STDDEV_SAMP STDDEV_SAMPLE SUM SUM_LIST"
)


def test_tables_can_be_aggregated_by_what_can_be_taken_back() -> None:
    found = {
        each.name
        for each in builtin_functions()
        for one in each.overloads
        if isinstance(one, AggregateOverload) and one.undoable
    }
    assert " ".join(sorted(found)) == UNDOABLE


WHOLE = st.none() | st.integers(-(2**20), 2**20)
TEXTS = st.none() | st.sampled_from(["a", "b", "c"])
ROWS: dict[str, st.SearchStrategy[object]] = {
    "COUNT(INT)": WHOLE,
    "COUNT()": st.just(()),
    "SUM(INT)": st.none() | st.integers(-(2**31), 2**31 - 1),
    "SUM(BIGINT)": st.none() | st.integers(-(2**63), 2**63 - 1),
    "SUM(DECIMAL(20;2))": st.none() | st.decimals(-1000, 1000, places=2),
    "SUM_LIST(ARRAY<INT>)": st.none() | st.lists(st.none() | st.integers(-(2**31), 2**31 - 1)),
    "AVG(BIGINT)": WHOLE,
    "STDDEV_SAMP(INT)": st.none() | st.integers(-100, 100),
    "CORRELATION(INT, INT)": st.tuples(WHOLE, WHOLE),
    "COLLECT_LIST(STRING)": TEXTS,
    "HISTOGRAM(STRING)": TEXTS,
    "ATTR(STRING)": TEXTS,
}


@pytest.mark.parametrize("call", ROWS)
@pytest.mark.slow
@given(data=st.data())
def test_a_row_that_is_taken_back_leaves_no_trace(call: str, data: st.DataObject) -> None:
    found, types, constants = overload(call)
    assert found.undoable
    aggregator: UndoableAggregator = found.make(types, constants, {})  # type: ignore[assignment]
    rows = data.draw(st.lists(ROWS[call], max_size=5))
    row = data.draw(ROWS[call])
    values = row if isinstance(row, tuple) else (row,)
    before = aggregator.result(state_of(aggregator, rows))
    state = aggregator.add(state_of(aggregator, rows), *values)
    after = aggregator.result(aggregator.undo(state, *values))
    if isinstance(before, float):
        assert same(before, after) or isclose(before, after, rel_tol=1e-6, abs_tol=1e-6)
    else:
        assert same(after, before)


MERGED: dict[str, st.SearchStrategy[object]] = {
    **{call: rows for call, rows in ROWS.items() if not call.startswith(("STD", "COR"))},
    "MIN(INT)": WHOLE,
    "MAX(STRING)": st.none() | st.text(),
    "COLLECT_SET(STRING)": TEXTS,
    "TOPK(INT, 3)": WHOLE,
    "TOPKDISTINCT(STRING, 2)": TEXTS,
    "COUNT_DISTINCT(INT)": WHOLE,
    "EARLIEST_BY_OFFSET(INT)": WHOLE,
    "LATEST_BY_OFFSET(INT, false)": WHOLE,
    "EARLIEST_BY_OFFSET(INT, 3)": WHOLE,
    "LATEST_BY_OFFSET(INT, 3, false)": WHOLE,
}


@pytest.mark.parametrize("call", MERGED)
@pytest.mark.slow
@given(data=st.data())
def test_sessions_may_become_one_in_any_order(call: str, data: st.DataObject) -> None:
    aggregator = made(call)
    rows = st.lists(MERGED[call], max_size=5)
    first, second, third = (state_of(aggregator, data.draw(rows)) for _ in range(3))

    def merge(left: object, right: object) -> object:
        return aggregator.merge(deepcopy(left), deepcopy(right))

    assert same(
        aggregator.result(merge(merge(first, second), third)),
        aggregator.result(merge(first, merge(second, third))),
    )


@pytest.mark.parametrize(
    "call",
    [
        call
        for call in MERGED
        if not call.startswith(("EARLIEST", "LATEST", "SUM(DEC", "CORR", "STD"))
    ],
)
@pytest.mark.slow
@given(data=st.data())
def test_a_session_of_all_rows_is_the_merged_one(call: str, data: st.DataObject) -> None:
    aggregator = made(call)
    rows = data.draw(st.lists(MERGED[call], max_size=8))
    cut = data.draw(st.integers(0, len(rows)))
    merged = aggregator.merge(state_of(aggregator, rows[:cut]), state_of(aggregator, rows[cut:]))
    assert same(aggregator.result(merged), aggregator.result(state_of(aggregator, rows)))


@pytest.mark.slow
@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20))
def test_deviations_are_those_of_statistics(values: list[float]) -> None:
    spread = made("STDDEV_SAMP(DOUBLE)")
    found = spread.result(state_of(spread, values))
    assert isclose(found, variance(values), rel_tol=1e-6, abs_tol=1e-3)
    deviation = made("STDDEV_SAMPLE(DOUBLE)")
    found = deviation.result(state_of(deviation, values))
    assert isclose(found, stdev(values), rel_tol=1e-6, abs_tol=1e-1)
    cut = len(values) // 2
    halves = (state_of(spread, values[:cut]), state_of(spread, values[cut:]))
    merged = spread.result(spread.merge(*halves))
    assert isclose(merged, variance(values), rel_tol=1e-6, abs_tol=1e-3)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2))
def test_correlations_are_those_of_statistics(rows: list[tuple[int, int]]) -> None:
    x, y = zip(*rows, strict=True)
    found = made("CORRELATION(INT, INT)")
    result = found.result(state_of(found, rows))
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert isclose(result, correlation(x, y), rel_tol=1e-9, abs_tol=1e-9)
    else:
        assert result != result


def test_a_decimal_sum_that_is_too_large_stops_the_query() -> None:
    aggregator = made("SUM(DECIMAL(3;1))")
    state = aggregator.add(aggregator.initial(), D("99.9"))
    with pytest.raises(RecordFailed, match=r"Numeric field overflow: .* Got 100\.0"):
        aggregator.add(state, D("0.1"))


@pytest.mark.parametrize(("limit", "kept"), [(2, 2), ("2", 2), (0, 0), (-1, 3), (None, 3)])
def test_collections_have_the_limit_that_is_set(limit: object, kept: int) -> None:
    for name in ("COLLECT_LIST", "COLLECT_SET"):
        settings = {f"ksql.functions.{name.lower()}.limit": limit}
        aggregator = made(f"{name}(INT)", settings)
        assert aggregator.result(state_of(aggregator, [1, 2, 3])) == [1, 2, 3][:kept]
        merged = aggregator.merge(state_of(aggregator, [1, 2]), state_of(aggregator, [3, 4]))
        assert len(aggregator.result(merged)) == (kept if kept < 3 else 4)


def test_a_limit_is_a_number() -> None:
    with pytest.raises(StatementFailed, match="collect_list"):
        made("COLLECT_LIST(INT)", {"ksql.functions.collect_list.limit": "many"})


def test_a_value_beyond_the_limit_cannot_be_taken_back() -> None:
    found, types, constants = overload("COLLECT_LIST(INT)")
    aggregator = found.make(types, constants, {"ksql.functions.collect_list.limit": 1})
    state = state_of(aggregator, [1, 2])
    assert aggregator.undo(state, 2) == [1]  # type: ignore[attr-defined]


def test_nan_is_one_value() -> None:
    rows = [float("nan"), 1.0, float("nan")]
    for call, result in (
        ("COLLECT_SET(DOUBLE)", "[nan, 1.0]"),
        ("TOPKDISTINCT(DOUBLE, 3)", "[nan, 1.0]"),
        ("COUNT_DISTINCT(DOUBLE)", "2"),
    ):
        aggregator = made(call)
        assert str(aggregator.result(state_of(aggregator, rows))) == result
    for call, result in (("COLLECT_LIST(DOUBLE)", "[nan, 1.0]"), ("ATTR(DOUBLE)", "None")):
        aggregator = made(call)
        state = aggregator.undo(state_of(aggregator, rows), float("nan"))  # type: ignore[attr-defined]
        assert str(aggregator.result(state)) == result


def test_a_histogram_counts_a_thousand_strings() -> None:
    aggregator = made("HISTOGRAM(STRING)")
    state = state_of(aggregator, [str(n) for n in range(1001)] + ["0"])
    found = aggregator.result(state)
    assert len(found) == 1000
    assert found["0"] == 2
    assert len(aggregator.result(aggregator.merge(state, {"new": 1}))) == 1000


@pytest.mark.parametrize(
    "call",
    [
        "TOPK(INT, 0)",
        "TOPKDISTINCT(INT, -1)",
        "EARLIEST_BY_OFFSET(INT, 0)",
        "LATEST_BY_OFFSET(INT, 0, true)",
    ],
)
def test_a_number_of_values_is_at_least_one(call: str) -> None:
    with pytest.raises(StatementFailed, match="1 or"):
        made(call)


def test_sessions_know_which_value_was_first_also_after_a_restart() -> None:
    before = EarliestSeveral(type_("INT"), 2, ignore_nulls=True, clock=lambda: 1000)
    after = EarliestSeveral(type_("INT"), 2, ignore_nulls=True, clock=lambda: 2000)
    old, new = before.add([], 7), after.add([], 5)
    assert after.result(after.merge(new, old)) == [7, 5]
    latest = LatestSeveral(type_("INT"), 1, ignore_nulls=True, clock=lambda: 3000)
    assert latest.result(latest.merge(latest.add([], 1), latest.add([], 2))) == [2]


@pytest.mark.parametrize("size", [EXACT_MAX, EXACT_MAX + 1, 5_000, 60_000])
@pytest.mark.slow
def test_distinct_values_are_counted_with_an_error_of_a_few_percent(size: int) -> None:
    aggregator = made("COUNT_DISTINCT(BIGINT)")
    state = state_of(aggregator, range(size))
    found = aggregator.result(state)
    assert abs(found - size) <= (0 if size <= EXACT_MAX else size * 0.03)
    assert len(state) <= 2**14 + 1  # type: ignore[arg-type]
    half = size // 2
    merged = aggregator.merge(
        state_of(aggregator, range(half)), state_of(aggregator, range(half, size))
    )
    assert merged == state
    assert aggregator.merge(state_of(aggregator, [1, 2, 3]), state) == state


def test_results_have_their_types() -> None:
    for call, result in (
        ("COUNT(STRING)", "BIGINT"),
        ("SUM(DECIMAL(4;1))", "DECIMAL(4, 1)"),
        ("AVG(INT)", "DOUBLE"),
        ("COLLECT_LIST(DATE)", "ARRAY<DATE>"),
        ("HISTOGRAM(STRING)", "MAP<STRING, BIGINT>"),
        ("LATEST_BY_OFFSET(DATE, 3)", "ARRAY<DATE>"),
        ("TOPK(INT, STRING, 3)", "ARRAY<STRUCT<sort_col INT, col0 STRING>>"),
    ):
        assert made(call).result_type == type_(result)
