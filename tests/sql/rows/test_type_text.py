"""Texts of column types."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import SchemaError
from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
)
from tests.support.columns import data_types, scalar_types
from tests.support.type_text import DEPTH_MAX, parse_type

ANY_TYPE = data_types(names=st.text(max_size=5), map_keys=scalar_types())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BOOLEAN", BOOLEAN),
        ("INT", INT),
        ("integer", INT),
        ("BIGINT", BIGINT),
        (" Double ", DOUBLE),
        ("STRING", STRING),
        ("VARCHAR", STRING),
        ("VARCHAR(255)", STRING),
        ("VARCHAR(STRING)", STRING),
        ("BYTES", BYTES),
        ("TIME", TIME),
        ("DATE", DATE),
        ("TIMESTAMP", TIMESTAMP),
        ("DECIMAL(4,2)", DecimalType(4, 2)),
        ("decimal ( 4 , 0 )", DecimalType(4, 0)),
        ("ARRAY<INT>", ArrayType(INT)),
        ("map<string, array<int>>", MapType(STRING, ArrayType(INT))),
        ("STRUCT<>", StructType(())),
        (
            "STRUCT<a INT, `b` ARRAY<DECIMAL(4,2)>>",
            StructType((Field("A", INT), Field("b", ArrayType(DecimalType(4, 2))))),
        ),
        ('STRUCT<"a ""b""" INT>', StructType((Field('a "b"', INT),))),
        ("STRUCT<`a``b` INT>", StructType((Field("a`b", INT),))),
        ("STRUCT<array INT, date DATE>", StructType((Field("ARRAY", INT), Field("DATE", DATE)))),
    ],
)
def test_a_text_names_a_type(text: str, expected: DataType) -> None:
    assert parse_type(text) == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected a type"),
        ("FLOAT", 'unknown type "FLOAT"'),
        ("`INT`", "expected a type"),
        ("INT INT", "expected the end of the type"),
        ("INT(4)", "expected the end of the type"),
        ("DECIMAL", 'expected "("'),
        ("DECIMAL(4)", 'expected ","'),
        ("DECIMAL(0, 0)", "invalid precision or scale"),
        ("DECIMAL(2, 3)", "invalid precision or scale"),
        ("DECIMAL(9999999999, 3)", "invalid precision or scale"),
        ("DECIMAL(99999999999, 3)", "cannot be parsed"),
        ("ARRAY<INT", 'expected ">"'),
        ("MAP<INT>", 'expected ","'),
        ("STRUCT<INT>", "expected a type"),
        ("STRUCT<A INT, a BIGINT>", "same name"),
        ("STRUCT<`A INT>", "cannot be parsed"),
        ("INT;", "cannot be parsed"),
        ("ARRAY<" * (DEPTH_MAX + 1) + "INT", "more than 64 deep"),
        ("ARRAY<" * 100_000, "more than 64 deep"),
    ],
)
def test_a_text_that_names_no_type_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SchemaError, match=reason.replace("(", r"\(")):
        parse_type(text)


def test_the_error_says_where_the_text_is_wrong() -> None:
    with pytest.raises(SchemaError) as caught:
        parse_type("STRUCT<A INT, B FLOAT>")
    assert caught.value.at == "character 17: FLOAT>"


@given(ANY_TYPE)
def test_the_text_of_a_type_names_that_type(data_type: DataType) -> None:
    assert parse_type(str(data_type)) == data_type


@given(st.text() | ANY_TYPE.map(str).flatmap(lambda text: st.permutations(text).map("".join)))
def test_any_text_is_a_type_or_an_error(text: str) -> None:
    with suppress(SchemaError):
        parse_type(text)
