"""The functions that only test cases call."""

from decimal import Decimal

import pytest

from sql.errors import StatementFailed
from sql.functions.builtin import FAMILIES
from sql.functions.registry import AggregateOverload, FunctionRegistry, Scalar, TableOverload
from tests.sql.functions.calls import Typed, argument_type, type_, typed
from tests.support.sql_test_functions import CASE_FUNCTIONS, before_case

REGISTRY = FunctionRegistry([*FAMILIES, CASE_FUNCTIONS])
BIG = type_("BIGINT")


@pytest.mark.parametrize(
    ("name", "arguments", "result"),
    [
        ("TEST_UDF", [1, "a"], "doStuffIntString"),
        ("TEST_UDF", [Typed(1, BIG), "a"], "doStuffLongString"),
        ("TEST_UDF", [Typed(1, BIG), None], "doStuffLongString"),
        ("TEST_UDF", [Typed(1, BIG), Typed(1, BIG), None], "doStuffLongLongString"),
        ("TEST_UDF", [1, 2, 3, 4], "doStuffLongVarargs"),
        ("TEST_UDF", [typed("STRUCT<A STRING>", {"A": "x"})], "x"),
        ("TEST_UDF", [], {"A": "foo"}),
        ("TOSTRUCT", ["x"], {"A": "x"}),
        ("BAD_UDF", [False], 0),
        ("WHENCONDITION", [False, True], False),
        ("WHENRESULT", [7, True], 7),
        ("TEST_UDTF", [typed("DECIMAL(4, 1)", Decimal("1.5"))], [Decimal("1.5")]),
        ("THROWING_UDTF", [False], [False]),
        (
            "TEST_UDTF",
            [
                *(1, Typed(2, BIG), 30.0, True, "s", Decimal("1.50")),
                typed("STRUCT<A STRING>", {"A": "x"}),
            ],
            ["1", "2", "30.0", "true", "s", "1.50", "Struct{A=x}"],
        ),
    ],
)
def test_a_call_gives_its_result(name: str, arguments: list[object], result: object) -> None:
    overload, _ = REGISTRY.resolve(name, [argument_type(each) for each in arguments])
    assert isinstance(overload, Scalar | TableOverload)
    values = [each.value if isinstance(each, Typed) else each for each in arguments]
    assert overload.call(*values) == result


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("BAD_UDF", [1]), ("BAD_UDF", [True]), ("WHENRESULT", [1, False]), ("THROWING_UDTF", [True])],
)
def test_some_calls_throw(name: str, arguments: list[object]) -> None:
    overload, _ = REGISTRY.resolve(name, [argument_type(each) for each in arguments])
    assert isinstance(overload, Scalar | TableOverload)
    with pytest.raises((RuntimeError, AssertionError)):
        overload.call(*arguments)


def test_every_other_call_gives_null() -> None:
    overload, _ = REGISTRY.resolve("BAD_UDF", [type_("STRING")])
    assert isinstance(overload, Scalar)
    for _ in range(2):
        before_case()
        assert [overload.call("a") for _ in range(3)] == [None, "a", None]


@pytest.mark.parametrize(
    ("name", "types", "constants", "rows", "result"),
    [
        ("TEST_UDAF", ["BIGINT"], [], [(1,), (2,)], 3),
        ("TEST_UDAF", ["INT"], [], [(2**31 - 1,), (1,)], 2**31),
        ("TEST_UDAF", ["DOUBLE"], [], [(0.5,), (None,)], 0.5),
        ("TEST_UDAF", ["STRING", "STRING"], ["abc"], [("xy",)], 5),
        ("TEST_UDAF", ["STRUCT<A INT, B INT>"], [], [({"A": 1, "B": 2},)], {"A": 1, "B": 2}),
        ("VAR_ARG", ["BIGINT", "STRING", "STRING"], [], [(1, "ab", None), (None, "", "c")], 4),
        ("MID_VAR_ARG", ["BIGINT", "STRING", "INT", "INT"], [7, 3], [(1, "ab")], 13),
        ("MULTI_ARG", ["BIGINT", "STRING", "INT", "STRING"], [5, "10"], [(1, "abc")], 11),
        ("FIVE_ARG", ["BIGINT", *["STRING"] * 3, "INT", "INT"], [5], [(1, "a", "b", None, 2)], 10),
        ("OBJ_COL_ARG", ["INT", "STRING", "BOOLEAN"], [], [(1, "a", True), (2, None, True)], [1]),
        ("GENERIC_VAR_ARG", ["DATE", "STRING", "INT", "INT"], [], [(1, "a", 2, 3)], [1]),
    ],
)
def test_rows_add_up_to_a_result(
    name: str,
    types: list[str],
    constants: list[object],
    rows: list[tuple[object, ...]],
    result: object,
) -> None:
    arguments = tuple(type_(each) for each in types)
    overload, _ = REGISTRY.resolve(name, arguments)
    assert isinstance(overload, AggregateOverload)
    assert overload.literals(len(types)) == len(constants)
    aggregator = overload.make(arguments, tuple(constants), {})
    state = aggregator.initial()
    for row in rows:
        state = aggregator.add(state, *row)
    assert aggregator.result(state) == result


def test_a_start_may_be_set() -> None:
    overload, _ = REGISTRY.resolve("TEST_UDAF", [type_("INT")])
    assert isinstance(overload, AggregateOverload)
    settings = {"ksql.functions.test_udaf.init": 100}
    assert overload.make((type_("INT"),), (), settings).initial() == 100


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("GENERIC_VAR_ARG", ["DECIMAL(5, 1)", "INT", "DOUBLE", "STRING", "DOUBLE"]),
        ("MID_VAR_ARG", ["BIGINT", "STRING", "STRING", "INT"]),
        ("MID_VAR_ARG", ["STRING", "STRING", "INT", "INT"]),
        ("MULTI_ARG", ["BIGINT", "STRING"]),
        ("MULTI_ARG", ["BIGINT", "INT", "STRING", "STRING", "STRING"]),
        ("VAR_ARG", ["BIGINT", "INT"]),
    ],
)
def test_other_types_are_refused(name: str, types: list[str]) -> None:
    with pytest.raises(StatementFailed, match=f"Function '{name}' does not accept parameters"):
        REGISTRY.resolve(name, [type_(each) for each in types])
