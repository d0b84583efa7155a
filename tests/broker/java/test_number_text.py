"""Numbers as Java writes and reads them."""

import math
from ctypes import c_float
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.java.number_text import (
    decimal_text,
    double_text,
    float_text,
    parse_base64,
    parse_double,
    parse_integer,
)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (-12.5, "-12.5"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (-12345678.25, "-1.234567825E7"),
        (1e10, "1.0E10"),
        (1e16, "1.0E16"),
        (1.25e22, "1.25E22"),
        (1e23, "1.0E23"),
        (-1.5e-5, "-1.5E-5"),
        (5e-324, "4.9E-324"),
        (1e-323, "9.9E-324"),
        (2.2250738585072014e-308, "2.2250738585072014E-308"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_doubles_are_written_as_java_does(number: float, text: str) -> None:
    assert double_text(number) == text


@given(st.floats(allow_nan=False))
def test_the_text_of_a_double_is_that_double(number: float) -> None:
    assert parse_double(double_text(number)) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (0.1, "0.1"),
        (-1.5, "-1.5"),
        (16777216.0, "1.6777216E7"),
        (1e10, "1.0E10"),
        (3.4028234663852886e38, "3.4028235E38"),
        (1.401298464324817e-45, "1.4E-45"),
        (math.inf, "Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_floats_of_32_bits_are_written_as_java_does(number: float, text: str) -> None:
    assert float_text(c_float(number).value) == text


@given(st.floats(allow_nan=False, width=32))
def test_the_text_of_a_float_of_32_bits_is_that_float(number: float) -> None:
    assert c_float(parse_double(float_text(number))).value == number


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1", 1.0),
        (" 1.5 \n", 1.5),
        (".5", 0.5),
        ("5.", 5.0),
        ("+1e3", 1000.0),
        ("1d", 1.0),
        ("1.5F", 1.5),
        ("0x1.8p1", 3.0),
        ("1e999", math.inf),
        ("-0x1p99999", -math.inf),
        ("-Infinity", -math.inf),
    ],
)
def test_doubles_are_read_as_java_does(text: str, number: float) -> None:
    assert parse_double(text) == number


@pytest.mark.parametrize(
    "text", ["", "x", "1_0", "inf", "nan", "infinity", "1 0", "0x1", "1e", "."]
)
def test_other_texts_are_no_doubles(text: str) -> None:
    with pytest.raises(ValueError, match="not a number"):
        parse_double(text)


def test_integers_have_digits_and_a_sign_alone() -> None:
    assert parse_integer("+05", -10, 10) == 5
    assert parse_integer("-10", -10, 10) == -10
    for text in ("", "+", "1.0", " 1", "1_0", "0x1", "\u0661"):
        with pytest.raises(ValueError, match="not an integer"):
            parse_integer(text, -10, 10)
    with pytest.raises(ValueError, match="out of range"):
        parse_integer("11", -10, 10)


def test_decimals_are_written_with_plain_digits() -> None:
    assert decimal_text(Decimal("0.0000000001")) == "0.0000000001"
    assert decimal_text(Decimal("1E+3")) == "1000"
    assert decimal_text(Decimal("-0.00")) == "0.00"
    for number in ("NaN", "Infinity", "1E+99999999"):
        with pytest.raises(ValueError, match="plain digits"):
            decimal_text(Decimal(number))


def test_base64_has_padding_and_no_other_characters() -> None:
    assert parse_base64("YQ==") == b"a"
    for text in ("YQ", "Y*==", "_-==", "é"):
        with pytest.raises(ValueError, match="not base64"):
            parse_base64(text)
