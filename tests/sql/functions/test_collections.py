"""Functions of arrays and maps, with lambdas and without."""

from decimal import Decimal
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.functions.containers import SERIES_MAX
from sql.functions.ordering import text_key
from tests.sql.functions.calls import Typed, call, result_type, same, type_, typed

D = Decimal


def ints(*values: int | None) -> Typed:
    return typed("ARRAY<INT>", list(values))


def doubles(*values: float | None) -> Typed:
    return typed("ARRAY<DOUBLE>", list(values))


def texts(*values: str | None) -> Typed:
    return typed("ARRAY<STRING>", list(values))


def counts(**values: int | None) -> Typed:
    return typed("MAP<STRING, INT>", values)


NO_INTS = typed("ARRAY<INT>", None)
NO_COUNTS = typed("MAP<STRING, INT>", None)
LISTS = typed("ARRAY<ARRAY<INT>>", [[1], [2], [1], None])
NESTED = typed("ARRAY<MAP<STRING, INT>>", [{"a": 1}, {"a": 1}, {"a": 2}])

CASES = [
    ("ARRAY_LENGTH", [ints(1, None)], 2),
    ("ARRAY_LENGTH", [NO_INTS], None),
    ("ARRAY_CONTAINS", [doubles(1.0, float("nan")), nan], True),
    ("ARRAY_REMOVE", [doubles(1.0, float("nan")), nan], [1.0]),
    ("ARRAY_EXCEPT", [doubles(float("nan"), 1.0), doubles(nan)], [1.0]),
    ("ARRAY_CONTAINS", [ints(1, 2), 2], True),
    ("ARRAY_CONTAINS", [ints(1, 2), 3], False),
    ("ARRAY_CONTAINS", [ints(1, None), None], True),
    ("ARRAY_CONTAINS", [NO_INTS, 1], False),
    ("ARRAY_CONTAINS", [LISTS, ints(2)], True),
    ("ARRAY_CONCAT", [ints(1, 2), ints(2)], [1, 2, 2]),
    ("ARRAY_CONCAT", [NO_INTS, ints(2)], [2]),
    ("ARRAY_CONCAT", [ints(2), NO_INTS], [2]),
    ("ARRAY_CONCAT", [NO_INTS, NO_INTS], None),
    ("ARRAY_DISTINCT", [ints(3, 1, None, 3, None)], [3, 1, None]),
    ("ARRAY_DISTINCT", [LISTS], [[1], [2], None]),
    ("ARRAY_DISTINCT", [NESTED], [{"a": 1}, {"a": 2}]),
    ("ARRAY_EXCEPT", [ints(1, 2, 2, 3), ints(1, 9)], [2, 3]),
    ("ARRAY_EXCEPT", [ints(1), NO_INTS], None),
    ("ARRAY_INTERSECT", [ints(3, 1, 3, 2), ints(2, 3)], [3, 2]),
    ("ARRAY_INTERSECT", [NO_INTS, ints(1)], None),
    ("ARRAY_UNION", [ints(3, 1, 3), ints(1, 4)], [3, 1, 4]),
    ("ARRAY_UNION", [ints(1), NO_INTS], None),
    ("ARRAY_REMOVE", [ints(1, 2, 1, None), 1], [2, None]),
    ("ARRAY_REMOVE", [ints(1, None), None], [1]),
    ("ARRAY_REMOVE", [NO_INTS, 1], None),
    ("ARRAY_MAX", [ints(1, None, 3)], 3),
    ("ARRAY_MAX", [texts("a", "B")], "a"),
    ("ARRAY_MAX", [typed("ARRAY<DOUBLE>", [1.0, nan])], nan),
    ("ARRAY_MAX", [typed("ARRAY<BOOLEAN>", [False, True])], True),
    ("ARRAY_MAX", [ints()], None),
    ("ARRAY_MIN", [ints(1, None, 3)], 1),
    ("ARRAY_MIN", [typed("ARRAY<DECIMAL(3, 1)>", [D("1.0"), D("-1.0")])], D("-1.0")),
    ("ARRAY_MIN", [ints(None)], None),
    ("ARRAY_SORT", [ints(3, None, 1)], [1, 3, None]),
    ("ARRAY_SORT", [texts("b", "a", "\U00010000", "\uffff")], ["a", "b", "\U00010000", "\uffff"]),
    ("ARRAY_SORT", [ints(3, None, 1), "desc"], [3, 1, None]),
    ("ARRAY_SORT", [ints(3, 1), "Ascending"], [1, 3]),
    ("ARRAY_SORT", [ints(3, 1), "up"], None),
    ("ARRAY_JOIN", [ints(1, None, 3)], "1,null,3"),
    ("ARRAY_JOIN", [typed("ARRAY<BOOLEAN>", [True, False]), "|"], "true|false"),
    ("ARRAY_JOIN", [typed("ARRAY<DOUBLE>", [1.0, 1e10])], "1.0,1.0E10"),
    ("ARRAY_JOIN", [typed("ARRAY<DECIMAL(3, 2)>", [D("1.20")])], "1.20"),
    ("ARRAY_JOIN", [typed("ARRAY<BIGINT>", [2**40]), ";"], str(2**40)),
    ("ARRAY_JOIN", [texts("a", "b"), typed("STRING", None)], "ab"),
    ("ARRAY_JOIN", [texts(), "-"], ""),
    ("ARRAY_JOIN", [NO_INTS, "-"], None),
    ("ARRAY_JOIN", [typed("ARRAY<DATE>", [None])], "null"),
    ("SLICE", [ints(1, 2, 3, 4), 2, 3], [2, 3]),
    ("SLICE", [ints(1, 2, 3), 2, None], [2, 3]),
    ("SLICE", [ints(1, 2, 3), None, 1], [1]),
    ("SLICE", [ints(1, 2, 3), 0, 1], None),
    ("SLICE", [ints(1, 2, 3), 1, 4], None),
    ("SLICE", [ints(1, 2, 3), 3, 1], None),
    ("SLICE", [NO_INTS, 1, 1], None),
    ("GENERATE_SERIES", [1, 4], [1, 2, 3, 4]),
    ("GENERATE_SERIES", [4, 1], [4, 3, 2, 1]),
    ("GENERATE_SERIES", [2, 2], [2]),
    ("GENERATE_SERIES", [1, 8, 3], [1, 4, 7]),
    ("GENERATE_SERIES", [8, 1, -3], [8, 5, 2]),
    ("GENERATE_SERIES", [2**40, 2**40 + 1], [2**40, 2**40 + 1]),
    ("GENERATE_SERIES", [2**40, 2**40 + 5, 5], [2**40, 2**40 + 5]),
    ("GENERATE_SERIES", [typed("INT", None), 1], None),
    ("AS_MAP", [texts("a", "b"), ints(1, 2)], {"a": 1, "b": 2}),
    ("AS_MAP", [texts("a", "b"), ints(1)], {"a": 1, "b": None}),
    ("AS_MAP", [texts("a"), ints(1, 2)], {"a": 1}),
    ("AS_MAP", [texts("a"), NO_INTS], None),
    ("MAP_KEYS", [counts(a=1, b=None)], ["a", "b"]),
    ("MAP_KEYS", [NO_COUNTS], None),
    ("MAP_VALUES", [counts(a=1, b=None)], [1, None]),
    ("MAP_UNION", [counts(a=1, b=2), counts(b=3)], {"a": 1, "b": 3}),
    ("MAP_UNION", [NO_COUNTS, counts(b=3)], {"b": 3}),
    ("MAP_UNION", [counts(b=3), NO_COUNTS], {"b": 3}),
    ("MAP_UNION", [NO_COUNTS, NO_COUNTS], None),
    ("ENTRIES", [counts(b=1, a=2), True], [{"K": "a", "V": 2}, {"K": "b", "V": 1}]),
    ("ENTRIES", [counts(b=1, a=2), False], [{"K": "b", "V": 1}, {"K": "a", "V": 2}]),
    ("ENTRIES", [typed("MAP<STRING, BOOLEAN>", {"a": True}), True], [{"K": "a", "V": True}]),
    ("ENTRIES", [NO_COUNTS, True], None),
    ("AS_VALUE", ["key"], "key"),
    ("FILTER", [ints(1, 5, 3), lambda x: x > 2], [5, 3]),
    ("FILTER", [counts(a=1, b=5), lambda k, v: k == "a" or v > 5], {"a": 1}),
    ("FILTER", [NO_INTS, lambda x: x > 2], None),
    ("TRANSFORM", [ints(1, 2), lambda x: str(x)], ["1", "2"]),
    ("TRANSFORM", [counts(a=1), lambda k, v: v, lambda k, v: k], {1: "a"}),
    ("TRANSFORM", [NO_COUNTS, lambda k, v: v, lambda k, v: k], None),
    ("REDUCE", [ints(1, 2, 3), 10, lambda s, x: s + x], 16),
    ("REDUCE", [ints(1, 2), typed("INT", None), lambda s, x: s + x], None),
    ("REDUCE", [NO_INTS, 10, lambda s, x: s + x], 10),
    ("REDUCE", [counts(a=1, b=2), "", lambda s, k, v: s + k * v], "abb"),
    ("REDUCE", [NO_COUNTS, "start", lambda s, k, v: s + k * v], "start"),
]


@pytest.mark.parametrize(("name", "arguments", "result"), CASES)
def test_a_call_gives_its_result(name: str, arguments: list[object], result: object) -> None:
    found = call(name, *arguments)
    assert same(found, result), found


@pytest.mark.parametrize(
    ("name", "arguments", "why"),
    [
        ("GENERATE_SERIES", [1, 5, 0], "step cannot be zero"),
        ("GENERATE_SERIES", [1, 5, -1], "step has wrong sign"),
        ("GENERATE_SERIES", [5, 1, 1], "step has wrong sign"),
        ("GENERATE_SERIES", [0, SERIES_MAX], "at most 1000000 numbers"),
        ("ARRAY_JOIN", [typed("ARRAY<DATE>", [1])], "booleans, numbers and strings"),
        ("TRANSFORM", [counts(a=1, b=1), lambda k, v: v, lambda k, v: k], "the same key"),
    ],
)
def test_what_has_no_result_says_why(name: str, arguments: list[object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        call(name, *arguments)


def test_nan_is_one_value() -> None:
    several = doubles(float("nan"), None, float("nan"), 1.0)
    for found in (
        call("ARRAY_DISTINCT", several),
        call("ARRAY_UNION", several, several),
        call("ARRAY_INTERSECT", several, several),
    ):
        assert str(found) == "[nan, None, 1.0]"


@pytest.mark.parametrize("name", ["ARRAY_SORT", "ARRAY_MAX", "ARRAY_MIN"])
def test_what_has_no_order_raises(name: str) -> None:
    with pytest.raises(TypeError):
        call(name, NESTED)


@pytest.mark.parametrize(
    ("name", "types", "result"),
    [
        ("ARRAY_SORT", ["ARRAY<DECIMAL(4, 1)>"], "ARRAY<DECIMAL(4, 1)>"),
        ("ARRAY_MAX", ["ARRAY<STRING>"], "STRING"),
        ("ENTRIES", ["MAP<STRING, BIGINT>", "BOOLEAN"], "ARRAY<STRUCT<K STRING, V BIGINT>>"),
        ("AS_MAP", ["ARRAY<STRING>", "ARRAY<DATE>"], "MAP<STRING, DATE>"),
        ("MAP_VALUES", ["MAP<STRING, DATE>"], "ARRAY<DATE>"),
        ("GENERATE_SERIES", ["INT", "BIGINT"], "ARRAY<BIGINT>"),
        ("ARRAY_JOIN", ["ARRAY<ARRAY<INT>>"], "STRING"),
    ],
)
def test_the_result_has_the_elements_type(name: str, types: list[str], result: str) -> None:
    assert result_type(name, *types) == type_(result)


ELEMENTS = st.one_of(
    st.lists(st.none() | st.integers(-(2**31), 2**31 - 1)),
    st.lists(st.none() | st.floats(allow_nan=False)),
    st.lists(st.none() | st.text()),
    st.lists(st.none() | st.binary()),
    st.lists(st.none() | st.booleans()),
)


@pytest.mark.slow
@given(ELEMENTS)
def test_sorting_twice_is_sorting_once(array: list[object]) -> None:
    for direction in ("ASC", "DESC"):
        once = call("ARRAY_SORT", typed("ARRAY<INT>", array), direction)
        assert isinstance(once, list)
        assert call("ARRAY_SORT", typed("ARRAY<INT>", once), direction) == once
        assert len(once) == len(array)


@pytest.mark.slow
@given(ELEMENTS)
def test_the_smallest_is_the_first_and_the_largest_the_last(array: list[object]) -> None:
    kind = typed("ARRAY<INT>", [each for each in array if each is not None])
    in_order = call("ARRAY_SORT", kind)
    assert isinstance(in_order, list)
    if in_order:
        assert call("ARRAY_MIN", kind) == in_order[0]
        assert call("ARRAY_MAX", kind) == in_order[-1]


@pytest.mark.slow
@given(ELEMENTS, st.data())
def test_set_functions_agree_with_sets(array: list[object], data: st.DataObject) -> None:
    other = data.draw(st.lists(st.sampled_from(array))) if array else []
    left, right = typed("ARRAY<INT>", array), typed("ARRAY<INT>", other)
    for name, wanted in (
        ("ARRAY_UNION", set(array) | set(other)),
        ("ARRAY_INTERSECT", set(array) & set(other)),
        ("ARRAY_EXCEPT", set(array) - set(other)),
    ):
        found = call(name, left, right)
        assert isinstance(found, list)
        assert set(found) == wanted
        assert len(found) == len(wanted)


@pytest.mark.slow
@given(st.text(), st.text())
def test_texts_have_the_order_of_their_utf_16_units(left: str, right: str) -> None:
    def units(text: str) -> bytes:
        return text.encode("utf-16-be", "surrogatepass")

    assert (text_key(left) < text_key(right)) == (units(left) < units(right))
