"""Generated code computes what a plain evaluator does, and keeps errors to themselves."""

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given, settings

from sql.backends.native.expressions import compile_predicate, compile_row_function, row_source
from sql.datatypes import INT, STRING
from sql.errors import StatementFailed
from sql.expressions import Calculation, Convert, FunctionValue, Opposite, TypedExpression
from tests.sql.analyse.typing_scope import COLUMNS, typed
from tests.sql.backends.native.random_expressions import ROWS, condition, expressions
from tests.sql.backends.native.tree_evaluator import NoValue, evaluated

Row = tuple[Any, ...]


def silent(error: Exception, row: object) -> None:
    """Ignore errors."""


def same(left: object, right: object) -> bool:
    """Equal in type, digits and signs; NaN is NaN."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, float) and isinstance(right, float):
        return repr(left) == repr(right)
    if isinstance(left, Decimal) and isinstance(right, Decimal):
        return left.as_tuple() == right.as_tuple()
    return type(left) is type(right) and left == right


def expected(node: TypedExpression, row: Row) -> object:
    """What a column holds then."""
    try:
        return evaluated(node, row)
    except NoValue:
        return None


def typed_or_not(text: str) -> TypedExpression:
    """Random texts may not fit together; those are not what is tested here."""
    try:
        return typed(text)
    except StatementFailed:
        assume(False)
        raise


@pytest.mark.slow
@given(expressions(), expressions(1), ROWS)
def test_generated_code_is_what_expressions_mean(text: str, other: str, row: Row) -> None:
    nodes = [typed_or_not(text), typed_or_not(other)]
    found = compile_row_function(nodes, silent)(row)
    wanted = [expected(node, row) for node in nodes]
    assert all(map(same, found, wanted)), (found, wanted, row_source(nodes))


@pytest.mark.slow
@given(condition(3), ROWS)
def test_conditions_hold_only_if_they_are_true(text: str, row: Row) -> None:
    node = typed_or_not(text)
    assert compile_predicate(node, silent)(row) is (expected(node, row) is True)


def value_of(text: str, **columns: object) -> tuple[object, list[Exception]]:
    """The value of an expression, and the errors on the way."""
    errors: list[Exception] = []
    row = tuple(columns.get(name) for name in COLUMNS)
    (value,) = compile_row_function([typed(text)], lambda error, _: errors.append(error))(row)
    return value, errors


@pytest.mark.parametrize("text", ["I / D", "D / I", "D / D2", "I + D", "D * D2"])
def test_a_null_is_reported_as_such(text: str) -> None:
    for columns in ({"I": 1}, {"D": 1.0}, {}):
        value, (error,) = value_of(text, **columns)
        assert value is None
        assert "NoneType" in str(error)


@pytest.mark.parametrize(
    ("text", "columns", "value"),
    [
        ("I + 1", {"I": 2**31 - 1}, -(2**31)),
        ("-I", {"I": -(2**31)}, -(2**31)),
        ("I * I * I", {"I": 2**16 + 1}, 196_609),
        ("I * I + L", {"I": 2**16, "L": 1}, 1),
        ("L - 1", {"L": -(2**63)}, 2**63 - 1),
        ("L / L2", {"L": -(2**63), "L2": -1}, -(2**63)),
        ("I / 2", {"I": -7}, -3),
        ("I / I2", {"I": 7, "I2": -2}, -3),
        ("I % 3", {"I": -7}, -1),
        ("I % I2", {"I": 7, "I2": -3}, 1),
        ("D / 0", {"D": 1.0}, math.inf),
        ("D / D2", {"D": -1.0, "D2": 0.0}, -math.inf),
        ("D / D2", {"D": 1.0, "D2": -0.0}, -math.inf),
        ("I + D", {"I": 1, "D": 0.5}, 1.5),
        ("N + 1", {"N": Decimal("1.25")}, Decimal("2.25")),
        ("N * N", {"N": Decimal("-0.10")}, Decimal("0.0100")),
        ("N * 0", {"N": Decimal("-1.00")}, Decimal("0.00")),
        ("N / 4", {"N": Decimal("1.00")}, Decimal("0.2500000000000")),
        ("N % N2", {"N": Decimal("-7.25"), "N2": Decimal("2.0")}, Decimal("-1.25")),
        ("N = D", {"N": Decimal("0.10"), "D": 0.1}, True),
        ("2 * 3 + I", {"I": 1}, 7),
        ("S + S2", {"S": "a"}, "anull"),
        ("S || S2", {"S": "a"}, "a"),
        ("S < S2", {"S": "😀", "S2": "\ue000"}, True),
        ("S < '\ue000'", {"S": "😀"}, True),
        ("Y > Y", {"Y": b"\x80"}, False),
        ("S LIKE 'a%'", {"S": "abc"}, True),
        ("S LIKE '%c'", {"S": "abc"}, True),
        ("S LIKE '%b%'", {"S": "abc"}, True),
        ("S LIKE 'a_c'", {"S": "abc"}, True),
        ("S LIKE 'abc'", {"S": "abc"}, True),
        ("S LIKE '%'", {"S": ""}, True),
        ("S LIKE 'a.c'", {"S": "abc"}, False),
        ("S LIKE '10!%' ESCAPE '!'", {"S": "10%"}, True),
        ("S LIKE S2", {"S": "abc", "S2": "%b_"}, True),
        ("A[1]", {"A": [5]}, 5),
        ("A[-1]", {"A": [5, 6]}, 6),
        ("A[0]", {"A": [5]}, None),
        ("A[2]", {"A": [5]}, None),
        ("A[I]", {}, None),
        ("M['x']", {"M": {"k": 1}}, None),
        ("ST->F", {}, None),
        ("EACH(AA, x => EACH(x, y => y + I))", {"AA": [[1], [2]], "I": 1}, [[2], [3]]),
        ("EACH(AA, x => EACH(x, x => x * 2))", {"AA": [[1], [2]]}, [[2], [4]]),
        ("CASE WHEN I > 0 THEN 1 / I ELSE 0 END", {"I": 0}, 0),
        ("CASE I WHEN 1 THEN 'a' WHEN 2 THEN 'b' END", {"I": 2}, "b"),
        ("TS > '1970-01-01'", {"TS": 1}, True),
        ("DAY = TS", {"DAY": 1, "TS": 86_400_000}, True),
        ("UNIT(HOURS, 2)", {}, "2 HOURS"),
    ],
)
def test_values(text: str, columns: dict[str, object], value: object) -> None:
    found, errors = value_of(text, **columns)
    assert same(found, value)
    assert not errors


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I = I2", False),
        ("I <> 1", False),
        ("I < 1", False),
        ("NOT (I = 1)", True),
        ("I IS DISTINCT FROM 1", True),
        ("I IS DISTINCT FROM I2", False),
        ("I IS NOT DISTINCT FROM I2", True),
        ("D IS DISTINCT FROM D2", False),
        ("I IN (1, NULL)", False),
        ("I NOT IN (1, 2)", True),
        ("I IN (I2, L)", False),
        ("I BETWEEN 1 AND 2", False),
        ("I NOT BETWEEN 1 AND 2", True),
        ("I IS NULL AND S IS NULL", True),
        ("A = A", False),
        ("LENGTH(S)", None),
        ("OR_ELSE(LENGTH(S), 3)", 3),
        ("CAST(I AS STRING)", None),
        ("CASE WHEN I = 1 THEN 'a' ELSE 'b' END", "b"),
        ("S || 'a'", "a"),
    ],
)
def test_null_makes_comparisons_false_and_most_functions_null(text: str, value: object) -> None:
    found, errors = value_of(text)
    assert found is value if isinstance(value, bool) else found == value
    assert not errors


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I + 1", None),
        ("-D", None),
        ("N * 2", None),
        ("1 / (I2 - 1)", None),
        ("5.0 / 0", None),
        ("1.0 / 3", None),
        ("S LIKE 'a%'", None),
        ("'a' LIKE S", None),
        ("'a' LIKE 'a!' ESCAPE '!'", None),
        ("B AND TRUE", None),
        ("NOT B", None),
        ("CASE WHEN B THEN 1 ELSE 2 END", None),
        ("FAILING(1)", None),
        ("CAST('x' AS INT)", None),
        ("OR_ELSE(CAST('x' AS INT), 7)", 7),
        ("OR_ELSE(FAILING(1), 7)", 7),
        ("OR_ELSE(I + 1, 7)", None),
        ("CAST('x' AS INT) IS NULL", True),
        ("(I + 1) IS NULL", None),
        ("ARRAY[1, I + 1]", [1, None]),
        ("STRUCT(a := FAILING(1), b := 2)", {"A": None, "B": 2}),
        ("MAP('a' := I + 1)", {"a": None}),
        ("DAY < '2024-99'", None),
    ],
)
def test_what_raises_is_null_and_reported(text: str, value: object) -> None:
    found, errors = value_of(text, I2=1, DAY=1)
    assert found == value
    assert len(errors) == 1


def test_one_column_that_raises_leaves_the_others() -> None:
    errors: list[tuple[Exception, object]] = []
    nodes = [typed(each) for each in ("I", "1 / I", "S", "FAILING(I)")]
    compute = compile_row_function(nodes, lambda error, row: errors.append((error, row)))
    row = tuple({"I": 0, "S": "a"}.get(name) for name in COLUMNS)
    assert compute(row) == (0, None, "a", None)
    assert [type(error) for error, _ in errors] == [ZeroDivisionError, ValueError]
    assert all(each is row for _, each in errors)


def test_conditions_that_raise_or_are_null_do_not_hold() -> None:
    for text in ("I + 1 > 0", "B", "B OR TRUE", "S LIKE '%'"):
        assert compile_predicate(typed(text), silent)((None,) * len(COLUMNS)) is False


def test_columns_alone_need_no_code() -> None:
    row = tuple(range(len(COLUMNS)))
    assert compile_row_function([typed("L"), typed("I")], silent)(row) == (1, 0)
    assert compile_row_function([typed("L")], silent)(row) == (1,)
    assert compile_row_function([], silent)(row) == ()


def test_what_is_constant_is_computed_once_unless_it_can_be_changed() -> None:
    assert "10" in row_source([typed("2 * 3 + 4")])
    compute = compile_row_function([typed("ARRAY[1, 2]")], silent)
    assert compute(())[0] is not compute(())[0]


def test_no_text_of_the_user_is_in_the_source() -> None:
    texts = ["S = 'inject'", "S LIKE '%inject_'", "STRUCT(`inject` := 1)->`inject`", "M['inject']"]
    assert "inject" not in row_source([typed(each) for each in texts])


def test_long_chains_are_no_deep_nests() -> None:
    chain = typed(" OR ".join(f"I = {number}" for number in range(150)))
    assert compile_predicate(chain, silent)((149,) * len(COLUMNS))
    for operator, result in (("+", 290), ("*", 0), ("/", 0), ("%", 0), ("-", -286)):
        chain = typed(f" {operator} ".join(["I"] * 145))
        assert compile_row_function([chain], silent)((2,) * len(COLUMNS)) == (result,)


def test_nested_ranges_and_choices_compute_their_operand_once() -> None:
    between = operand = "I"
    for _ in range(25):
        between = f"CASE WHEN {between} BETWEEN I2 - 1 AND L THEN 1 ELSE 2 END"
        operand = f"CASE {operand} WHEN 1 THEN 1 WHEN 2 THEN 3 ELSE I2 END"
    row = (1,) * len(COLUMNS)
    assert compile_row_function([typed(between), typed(operand)], silent)(row) == (1, 1)


@pytest.mark.slow
def test_deep_expressions_are_split_over_several_functions() -> None:
    node: TypedExpression = typed("S")
    function = typed("LENGTH(S)")
    assert isinstance(function, FunctionValue)
    for _ in range(120):
        node = Convert(replace(function, arguments=(node,)), STRING)
    row = tuple({"S": "abc"}.get(name) for name in COLUMNS)
    assert compile_row_function([node], silent)(row) == ("1",)
    failing = Calculation("+", Convert(node, INT), typed("I"), INT)
    errors: list[Exception] = []
    assert compile_row_function([failing], lambda error, _: errors.append(error))(row) == (None,)
    assert len(errors) == 1


def test_expressions_that_are_too_deep_are_refused() -> None:
    node = typed("B")
    for _ in range(5000):
        node = Opposite(node)
    with pytest.raises(StatementFailed, match="too deep"):
        compile_row_function([node], silent)


@pytest.mark.slow
@settings(max_examples=20)
@given(ROWS)
def test_all_columns_compare_with_themselves(row: Row) -> None:
    for name, index in ((name, index) for index, name in enumerate(COLUMNS)):
        (found,) = compile_row_function([typed(f"{name} = {name}")], silent)(row)
        value = row[index]
        assert found is (value is not None and value == value)
