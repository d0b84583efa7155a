"""Headers as strings."""

import datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connect.converters.simple_header_converter import SimpleHeaderConverter
from connect.data import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    ConnectSchema,
    Struct,
    Type,
    array,
    date,
    decimal,
    map_of,
    time,
    timestamp,
)
from connect.errors import DataError
from tests.connect.converters.values import ADDRESS, NOON

HEADERS = SimpleHeaderConverter()

READ: list[tuple[str, ConnectSchema | None, object]] = [
    ("null", None, None),
    ("", STRING, ""),
    ("   ", STRING, "   "),
    ("true", BOOLEAN, True),
    ("true}", STRING, "true}"),
    ("127", INT8, 127),
    ("-129", INT16, -129),
    ("70000", INT32, 70_000),
    ("5000000000", INT64, 5_000_000_000),
    ("  7 ", INT8, 7),
    ("1.0", INT8, 1),
    ("1e3", INT16, 1000),
    ("0.5", FLOAT32, 0.5),
    ("1e100", FLOAT64, 1e100),
    ("1e400", decimal(-400), Decimal("1e400")),
    ("12345678901234567890", decimal(0), Decimal("12345678901234567890")),
    ("1f", STRING, "1f"),
    ("-", STRING, "-"),
    ("12,5", STRING, "12,5"),
    ("5 5", STRING, "5 5"),
    ("2024-05-17", date(), datetime.date(2024, 5, 17)),
    ("2024-13-45", STRING, "2024-13-45"),
    ("12:30:00.000Z", time(), datetime.time(12, 30)),
    ("12:30", STRING, "12:30"),
    ("2024-05-17T12:00:00.123Z", timestamp(), NOON),
    ("[]", ConnectSchema(Type.ARRAY), []),
    ("[1, 300]", array(INT16), [1, 300]),
    ("[1,2.5]", array(FLOAT32), [1.0, 2.5]),
    ('[1,"a"]', ConnectSchema(Type.ARRAY), [1, "a"]),
    ("[1,]", array(INT8), [1]),
    ("[null]", ConnectSchema(Type.ARRAY), [None]),
    ("[1,null]", STRING, "[1,null]"),
    ("[,1]", STRING, "[,1]"),
    ("[1] x", STRING, "[1] x"),
    ("[a]", STRING, "[a]"),
    ("[12:30:00.000Z]", array(time()), [datetime.time(12, 30)]),
    ('["2024-05-17"]', array(date()), [datetime.date(2024, 5, 17)]),
    ("[[1],[2]]", array(array(INT8)), [[1], [2]]),
    ("{}", ConnectSchema(Type.MAP), {}),
    ('{"a": 1}', map_of(STRING, INT8), {"a": 1}),
    ("{1:2}", map_of(INT8, INT8), {1: 2}),
    ('{"a":null}', ConnectSchema(Type.MAP, key_schema=STRING), {"a": None}),
    ("{null:1}", STRING, "{null:1}"),
    ("{a:1}", STRING, "{a:1}"),
    ('{"a"', STRING, '{"a"'),
    ('["x', STRING, '["x'),
    ("[" * 500 + "]" * 500, STRING, "[" * 500 + "]" * 500),
    ("hello, world", STRING, "hello, world"),
]


@pytest.mark.parametrize(("text", "schema", "value"), READ)
def test_the_type_of_a_text_is_inferred(
    text: str, schema: ConnectSchema | None, value: object
) -> None:
    found = HEADERS.to_connect_header("t", "h", text.encode())
    assert found == (schema, value)


WRITTEN: list[tuple[object, str]] = [
    ("a", "a"),
    (True, "true"),
    (7, "7"),
    (1.5, "1.5"),
    (Decimal("1.50"), "1.50"),
    (b"abc", "YWJj"),
    (NOON, "2024-05-17T12:00:00.123Z"),
    (NOON.date(), "2024-05-17"),
    (datetime.time(1, 2), "01:02:00.000Z"),
    ([1, "a", None, b"abc"], '[1,"a",null,"YWJj"]'),
    ({"a": 'x"\\'}, '{"a":"x\\"\\\\"}'),
    (Struct(ADDRESS, ["Hill", None]), '{"street":"Hill","number":null}'),
]


@pytest.mark.parametrize(("value", "text"), WRITTEN)
def test_values_are_written_as_strings(value: object, text: str) -> None:
    assert HEADERS.from_connect_header("t", "h", None, value) == text.encode()


def test_nothing_stays_nothing_and_invalid_strings_stay_bytes() -> None:
    assert HEADERS.from_connect_header("t", "h", None, None) is None
    assert HEADERS.to_connect_header("t", "h", None) == (None, None)
    assert HEADERS.to_connect_header("t", "h", b"\xff\x00") == (BYTES, b"\xff\x00")


def test_what_has_no_text_is_refused() -> None:
    with pytest.raises(DataError, match="Failed to serialize unexpected value type object"):
        HEADERS.from_connect_header("t", "h", None, object())


@given(st.recursive(st.text() | st.booleans(), lambda inner: st.lists(inner, max_size=3)))
def test_lists_of_strings_come_back(value: object) -> None:
    given_list = [value]
    data = HEADERS.from_connect_header("t", "h", None, given_list)
    found = HEADERS.to_connect_header("t", "h", data)[1]
    written = HEADERS.from_connect_header("t", "h", None, found)
    assert written == data


@given(st.text())
def test_every_text_has_a_value(text: str) -> None:
    schema, value = HEADERS.to_connect_header("t", "h", text.encode("utf-8", "ignore"))
    assert schema is not None or value is None
