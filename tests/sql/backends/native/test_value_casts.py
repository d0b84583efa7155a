"""CAST makes the values and texts that ksqlDB makes."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sql.analyse.casts import castable
from sql.analyse.type_names import data_type
from sql.backends.native.value_casts import cast_function
from sql.datatypes import BIGINT, DOUBLE, INT, STRING, DataType, DecimalType
from sql.parse import parse_type
from tests.sql.analyse.typing_scope import COLUMNS
from tests.sql.backends.native.random_expressions import values_of


def type_of(text: str) -> DataType:
    """A type as SQL writes it."""
    return data_type(parse_type(text), {})


def cast(value: object, given_: str, wanted: str) -> object:
    """CAST(value AS wanted)."""
    change = cast_function(type_of(given_), type_of(wanted))
    return value if change is None else change(value)


@pytest.mark.parametrize(
    ("value", "given_type", "wanted", "result"),
    [
        (True, "BOOLEAN", "STRING", "true"),
        (7, "INT", "BIGINT", 7),
        (7, "INT", "DOUBLE", 7.0),
        (7, "INT", "DECIMAL(3, 1)", Decimal("7.0")),
        (-7, "INT", "STRING", "-7"),
        (2**31, "BIGINT", "INT", -(2**31)),
        (2**53 + 1, "BIGINT", "DOUBLE", 2.0**53),
        (Decimal("-10.99"), "DECIMAL(4, 2)", "INT", -10),
        (Decimal("4294967297.5"), "DECIMAL(12, 1)", "INT", 1),
        (Decimal("10.25"), "DECIMAL(4, 2)", "DECIMAL(4, 1)", Decimal("10.3")),
        (Decimal("-10.25"), "DECIMAL(4, 2)", "DECIMAL(4, 1)", Decimal("-10.3")),
        (Decimal("-0.04"), "DECIMAL(4, 2)", "DECIMAL(4, 1)", Decimal("0.0")),
        (Decimal("10.10"), "DECIMAL(4, 2)", "STRING", "10.10"),
        (Decimal("0.0000001"), "DECIMAL(8, 7)", "STRING", "0.0000001"),
        (2.9, "DOUBLE", "INT", 2),
        (-2.9, "DOUBLE", "BIGINT", -2),
        (1e20, "DOUBLE", "INT", 2**31 - 1),
        (-math.inf, "DOUBLE", "BIGINT", -(2**63)),
        (math.nan, "DOUBLE", "INT", 0),
        (0.99, "DOUBLE", "DECIMAL(2, 1)", Decimal("1.0")),
        (1e10, "DOUBLE", "STRING", "1.0E10"),
        ("true", "STRING", "BOOLEAN", True),
        (" Y ", "STRING", "BOOLEAN", True),
        ("yes please", "STRING", "BOOLEAN", False),
        ("", "STRING", "BOOLEAN", False),
        (" +12 ", "STRING", "INT", 12),
        ("-9223372036854775808", "STRING", "BIGINT", -(2**63)),
        ("1.5e3", "STRING", "DOUBLE", 1500.0),
        (" 1.25 ", "STRING", "DECIMAL(2, 1)", Decimal("1.3")),
        ("10:30", "STRING", "TIME", 37_800_000),
        ("1970-01-11", "STRING", "DATE", 10),
        ("1970-01-01T00:00:00.010+0000", "STRING", "TIMESTAMP", 10),
        ("AQI=", "STRING", "BYTES", b"\x01\x02"),
        (-2000, "TIMESTAMP", "TIME", 86_398_000),
        (-2000, "TIMESTAMP", "DATE", -1),
        (2, "DATE", "TIMESTAMP", 172_800_000),
        (10, "TIMESTAMP", "STRING", "1970-01-01T00:00:00.010"),
        (10, "DATE", "STRING", "1970-01-11"),
        (5000, "TIME", "STRING", "00:00:05"),
        ([1, None, 2**31], "ARRAY<BIGINT>", "ARRAY<INT>", [1, None, -(2**31)]),
        ([1, None], "ARRAY<INT>", "ARRAY<BIGINT>", [1, None]),
        ([1, None], "ARRAY<INT>", "STRING", "[1, null]"),
        ({"a": {"b": "1"}}, "MAP<STRING, MAP<STRING, STRING>>", "MAP<STRING, MAP<STRING, INT>>",
         {"a": {"b": 1}}),
        ({1: 2, 3: None}, "MAP<INT, INT>", "MAP<STRING, DOUBLE>", {"1": 2.0, "3": None}),
        ({"a": 1.0, "b": None}, "MAP<STRING, DOUBLE>", "STRING", "{a=1.0, b=null}"),
        ({"A": "5", "B": 1}, "STRUCT<a STRING, b INT>", "STRUCT<c INT, a INT>",
         {"C": None, "A": 5}),
        ({"A": 1, "b": None, "C": "x"}, "STRUCT<a INT, `b` INT, c STRING>", "STRING",
         "Struct{A=1,C=x}"),
        ([Decimal("0.0000001"), Decimal("1.50000")], "ARRAY<DECIMAL(9, 7)>", "STRING",
         "[1E-7, 1.50000]"),
        ([0], "ARRAY<TIMESTAMP>", "STRING", "[1970-01-01 00:00:00.0]"),
        ([3_600_000], "ARRAY<TIME>", "STRING", "[01:00:00]"),
        ([b"\x01"], "ARRAY<BYTES>", "STRING", "[AQ==]"),
        ({"A": [True]}, "STRUCT<a ARRAY<BOOLEAN>>", "STRING", "Struct{A=[true]}"),
    ],
)  # fmt: skip
def test_values_are_cast(value: object, given_type: str, wanted: str, result: object) -> None:
    assert castable(type_of(given_type), type_of(wanted))
    found = cast(value, given_type, wanted)
    assert found == result
    assert type(found) is type(result)
    if isinstance(found, Decimal) and isinstance(result, Decimal):
        assert found.as_tuple() == result.as_tuple()


@pytest.mark.parametrize(
    ("value", "given_type", "wanted"),
    [
        ("x", "STRING", "INT"),
        ("2147483648", "STRING", "INT"),
        ("1.5", "STRING", "BIGINT"),
        ("x", "STRING", "DOUBLE"),
        ("x", "STRING", "DECIMAL(2, 1)"),
        ("10", "STRING", "DECIMAL(2, 1)"),
        (10, "INT", "DECIMAL(2, 1)"),
        (9.99, "DOUBLE", "DECIMAL(2, 1)"),
        (math.nan, "DOUBLE", "DECIMAL(2, 1)"),
        (Decimal("99.99"), "DECIMAL(4, 2)", "DECIMAL(3, 1)"),
        ("2024-02-30", "STRING", "DATE"),
        ("25:00", "STRING", "TIME"),
        ("now", "STRING", "TIMESTAMP"),
        ("*", "STRING", "BYTES"),
        (["x"], "ARRAY<STRING>", "ARRAY<INT>"),
    ],
)
def test_what_is_no_such_value_raises(value: object, given_type: str, wanted: str) -> None:
    with pytest.raises((ValueError, ArithmeticError)):
        cast(value, given_type, wanted)


def test_all_types_that_can_be_cast_have_a_function() -> None:
    types = [*COLUMNS.values(), DecimalType(7, 3)]
    for given_type in types:
        for wanted in types:
            if castable(given_type, wanted):
                cast_function(given_type, wanted)


@pytest.mark.slow
@pytest.mark.parametrize("type_", [INT, BIGINT, DOUBLE, DecimalType(9, 4)], ids=str)
@given(data=st.data())
def test_numbers_are_read_as_they_are_written(data: st.DataObject, type_: DataType) -> None:
    value = data.draw(values_of(type_).filter(lambda each: each is not None))
    write, read = cast_function(type_, STRING), cast_function(STRING, type_)
    assert write is not None
    assert read is not None
    found = read(write(value))
    assert found == value or found != found
    assert type(found) is type(value)
