"""Functions of numbers."""

from decimal import Decimal
from math import inf, isfinite, nan, pi

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.errors import StatementFailed
from sql.functions.builtin import builtin_functions
from sql.functions.registry import Scalar
from tests.sql.functions.calls import Typed, call, result_type, same, type_, typed

D = Decimal
LONG_MAX = 2**63 - 1

CASES = [
    ("ABS", [-3], 3),
    ("ABS", [-(2**31)], -(2**31)),
    ("ABS", [-(2**40)], 2**40),
    ("ABS", [-(2**63)], -(2**63)),
    ("ABS", [-2.5], 2.5),
    ("ABS", [D("-1234567890123456789012345678901.20")], D("1234567890123456789012345678901.20")),
    ("CEIL", [7], 7),
    ("CEIL", [2**40], 2**40),
    ("CEIL", [1.2], 2.0),
    ("CEIL", [-0.2], -0.0),
    ("CEIL", [nan], nan),
    ("CEIL", [D("1.21")], D("2.00")),
    ("CEIL", [D("-0.21")], D("0.00")),
    ("FLOOR", [7], 7),
    ("FLOOR", [2**40], 2**40),
    ("FLOOR", [-1.2], -2.0),
    ("FLOOR", [-inf], -inf),
    ("FLOOR", [D("-1.21")], D("-2.00")),
    ("ROUND", [7], 7),
    ("ROUND", [2**40], 2**40),
    ("ROUND", [2.5], 3),
    ("ROUND", [-2.5], -2),
    ("ROUND", [-2.51], -3),
    ("ROUND", [0.49999999999999994], 0),
    ("ROUND", [4503599627370497.0], 4503599627370497),
    ("ROUND", [1e30], LONG_MAX),
    ("ROUND", [-inf], -LONG_MAX - 1),
    ("ROUND", [nan], 0),
    ("ROUND", [1.005, 2], 1.01),
    ("ROUND", [-1.005, 2], -1.0),
    ("ROUND", [1234.5, -2], 1200.0),
    ("ROUND", [-0.4, 0], 0.0),
    ("ROUND", [0.1, 2**31 - 1], 0.1),
    ("ROUND", [1e300, -(2**31)], 0.0),
    ("ROUND", [D("2.5")], D("3")),
    ("ROUND", [D("-2.5")], D("-2")),
    ("ROUND", [D("-0.5")], D("0")),
    ("ROUND", [D("7.4567"), 2], D("7.4600")),
    ("ROUND", [D("-7.4550"), 2], D("-7.4500")),
    ("ROUND", [D("7.4567"), 9], D("7.4567")),
    ("ROUND", [D("987.65"), -2], D("1000.00")),
    ("ROUND", [D("987.65"), -(2**31)], D("0.00")),
    ("TRUNC", [7], 7),
    ("TRUNC", [2**40], 2**40),
    ("TRUNC", [-2.9], -2),
    ("TRUNC", [inf], LONG_MAX),
    ("TRUNC", [nan], 0),
    ("TRUNC", [2.987, 2], 2.98),
    ("TRUNC", [-2987.0, -2], -2900.0),
    ("TRUNC", [-0.01, 1], 0.0),
    ("TRUNC", [D("-2.98")], D("-2")),
    ("TRUNC", [D("2.987"), 1], D("2.900")),
    ("SIGN", [-7], -1),
    ("SIGN", [2**40], 1),
    ("SIGN", [0.0], 0),
    ("SIGN", [nan], 0),
    ("SQRT", [16], 4.0),
    ("SQRT", [2**40], float(2**20)),
    ("SQRT", [-1.0], nan),
    ("CBRT", [-27], -3.0),
    ("CBRT", [0.0], 0.0),
    ("EXP", [0], 1.0),
    ("EXP", [1000.0], inf),
    ("EXP", [-1000.0], 0.0),
    ("LN", [1], 0.0),
    ("LN", [0], -inf),
    ("LN", [-1.0], nan),
    ("LN", [inf], inf),
    ("LOG", [1.0], 0.0),
    ("LOG", [0], -inf),
    ("LOG", [2, 1024], 10.0),
    ("LOG", [10.0, 0.001], -3.0),
    ("LOG", [1, 5], nan),
    ("LOG", [-2, 5], nan),
    ("LOG", [2, -5], nan),
    ("LOG", [2, 0], -inf),
    ("POWER", [2, 10], 1024.0),
    ("POWER", [2**40, 2], float(2**80)),
    ("POWER", [10.0, 400], inf),
    ("POWER", [-10.0, 401], -inf),
    ("POWER", [0, -1], inf),
    ("POWER", [-0.0, -3], -inf),
    ("POWER", [-1.5, 0.5], nan),
    ("POWER", [1.0, inf], nan),
    ("POWER", [nan, 0], 1.0),
    ("SIN", [0], 0.0),
    ("SIN", [pi / 2], 1.0),
    ("SIN", [inf], nan),
    ("COS", [0], 1.0),
    ("TAN", [0.0], 0.0),
    ("COT", [0], inf),
    ("COT", [pi / 4], 1.0000000000000002),
    ("COT", [inf], nan),
    ("SINH", [-1000.0], -inf),
    ("SINH", [0], 0.0),
    ("COSH", [1000], inf),
    ("COSH", [0], 1.0),
    ("TANH", [1000.0], 1.0),
    ("ASIN", [1], pi / 2),
    ("ASIN", [1.5], nan),
    ("ACOS", [-1], pi),
    ("ACOS", [2], nan),
    ("ATAN", [1], pi / 4),
    ("ATAN2", [1, -1.0], 3 * pi / 4),
    ("ATAN2", [0, 0], 0.0),
    ("DEGREES", [pi], 180.0),
    ("RADIANS", [180], pi),
    ("PI", [], pi),
    ("GEO_DISTANCE", [0, 0, 0, 180], pi * 6371),
    ("GEO_DISTANCE", [0.0, 0.0, 90.0, 0.0, " Miles "], pi / 2 * 3959),
    ("GEO_DISTANCE", [0.0, 0.0, 90.0, 0.0, typed("STRING", None)], pi / 2 * 6371),
    ("GEO_DISTANCE", [typed("DOUBLE", None), 0.0, 90.0, 0.0, "km"], None),
    ("ABS", [typed("INT", None)], None),
    ("ROUND", [2.5, typed("INT", None)], None),
]


@pytest.mark.parametrize(("name", "arguments", "result"), CASES)
def test_a_call_gives_what_java_gives(name: str, arguments: list[object], result: object) -> None:
    found = call(name, *arguments)
    assert same(found, result), found


@pytest.mark.parametrize(
    ("name", "types", "result"),
    [
        ("ABS", ["DECIMAL(5, 2)"], "DECIMAL(5, 2)"),
        ("CEIL", ["DECIMAL(5, 2)"], "DECIMAL(5, 2)"),
        ("FLOOR", ["INT"], "INT"),
        ("ROUND", ["DECIMAL(5, 2)"], "DECIMAL(3, 0)"),
        ("ROUND", ["DECIMAL(5, 2)", "INT"], "DECIMAL(5, 2)"),
        ("ROUND", ["INT"], "BIGINT"),
        ("ROUND", ["DOUBLE"], "BIGINT"),
        ("ROUND", ["DOUBLE", "INT"], "DOUBLE"),
        ("TRUNC", ["DECIMAL(5, 2)"], "DECIMAL(3, 0)"),
        ("TRUNC", ["DECIMAL(5, 2)", "INT"], "DECIMAL(5, 2)"),
        ("SQRT", ["DECIMAL(5, 2)"], "DOUBLE"),
        ("POWER", ["BIGINT", "INT"], "DOUBLE"),
    ],
)
def test_a_result_has_the_type_that_its_arguments_give(
    name: str, types: list[str], result: str
) -> None:
    assert result_type(name, *types) == type_(result)


def test_a_decimal_without_whole_digits_cannot_be_rounded_to_them() -> None:
    with pytest.raises(StatementFailed, match="DECIMAL precision must be >= 1"):
        result_type("ROUND", "DECIMAL(2, 2)")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ([91.0, 0.0, 0.0, 0.0], "latitudes"),
        ([0.0, 0.0, 0.0, -181.0], "longitudes"),
        ([0.0, 0.0, 0.0, 0.0, "feet"], "no unit 'feet'"),
    ],
)
def test_places_that_are_not_on_the_globe_are_refused(arguments: list[object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        call("GEO_DISTANCE", *arguments)


def test_what_is_no_number_has_no_places() -> None:
    with pytest.raises(ValueError, match="cannot be rounded"):
        call("ROUND", inf, 2)


def test_random_numbers_differ_and_are_known_to() -> None:
    assert len({call("RANDOM") for _ in range(10)}) == 10
    (overload,) = builtin_functions().get("RANDOM").overloads
    assert isinstance(overload, Scalar)
    assert overload.volatile


ONE_NUMBER = (
    "SQRT CBRT EXP LN LOG SIN COS TAN COT SINH COSH TANH ASIN ACOS ATAN DEGREES RADIANS CEIL FLOOR "
    "ABS SIGN"
)


@pytest.mark.parametrize("name", ONE_NUMBER.split())
@pytest.mark.slow
@given(value=st.floats())
def test_no_double_raises(name: str, value: float) -> None:
    assert call(name, value) is not None


@pytest.mark.slow
@given(base=st.floats(), exponent=st.floats())
def test_powers_and_logarithms_of_all_doubles_are_doubles(base: float, exponent: float) -> None:
    assert isinstance(call("POWER", base, exponent), float)
    assert isinstance(call("LOG", base, exponent), float)
    assert isinstance(call("ATAN2", base, exponent), float)


@pytest.mark.slow
@given(value=st.floats(-1e9, 1e9), places=st.integers(-12, 12))
def test_rounding_twice_is_rounding_once(value: float, places: int) -> None:
    once = call("ROUND", value, places)
    assert isinstance(once, float)
    assert isfinite(once)
    assert call("ROUND", once, places) == once


@pytest.mark.slow
@given(
    number=st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**40)),
    places=st.integers(-50, 50),
)
def test_decimals_keep_their_digits_behind_the_point(number: Decimal, places: int) -> None:
    kind = Typed(number, type_("DECIMAL(60, 4)"))
    for name in ("ROUND", "TRUNC"):
        found = call(name, kind, places)
        assert isinstance(found, Decimal)
        assert found.as_tuple().exponent == -4
        assert abs(found - number) <= Decimal(10) ** -places or places > 4
