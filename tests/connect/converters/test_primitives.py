"""Converters of single values."""

import datetime
from decimal import Decimal

import pytest

from connect.api import Converter
from connect.converters.primitives import (
    BooleanConverter,
    ByteArrayConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
    StringConverter,
)
from connect.data import (
    BOOLEAN,
    BYTES,
    INT32,
    OPTIONAL_BOOLEAN,
    OPTIONAL_BYTES,
    OPTIONAL_FLOAT32,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT16,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    ConnectSchema,
    Struct,
)
from connect.errors import ConfigError, DataError
from tests.connect.converters.values import ADDRESS

CASES: list[tuple[Converter, ConnectSchema, object, bytes]] = [
    (StringConverter(), OPTIONAL_STRING, "größe", "größe".encode()),
    (ByteArrayConverter(), OPTIONAL_BYTES, b"\0\1", b"\0\1"),
    (ShortConverter(), OPTIONAL_INT16, -2, b"\xff\xfe"),
    (IntegerConverter(), OPTIONAL_INT32, 258, b"\0\0\1\2"),
    (LongConverter(), OPTIONAL_INT64, -1, b"\xff" * 8),
    (FloatConverter(), OPTIONAL_FLOAT32, 1.5, b"\x3f\xc0\0\0"),
    (DoubleConverter(), OPTIONAL_FLOAT64, 1.5, b"\x3f\xf8\0\0\0\0\0\0"),
    (BooleanConverter(), OPTIONAL_BOOLEAN, True, b"\1"),
]


@pytest.mark.parametrize(("converter", "schema", "value", "data"), CASES)
def test_values_have_javas_bytes(
    converter: Converter, schema: ConnectSchema, value: object, data: bytes
) -> None:
    converter.configure({}, False)
    for given in (schema, None):
        assert converter.from_connect_data("t", (), given, value) == data
    assert converter.to_connect_data("t", (), data) == (schema, value)


@pytest.mark.parametrize(("converter", "schema", "value", "data"), CASES)
def test_null_stays_null(
    converter: Converter, schema: ConnectSchema, value: object, data: bytes
) -> None:
    assert converter.from_connect_data("t", (), schema, None) is None
    assert converter.to_connect_data("t", (), None) == (schema, None)


TEXTS: list[tuple[object, str]] = [
    (True, "true"),
    (7, "7"),
    (1e10, "1.0E10"),
    (Decimal("1.50"), "1.50"),
    ([1, "a", None], "[1, a, null]"),
    ({"a": [1], "b": {}}, "{a=[1], b={}}"),
    (Struct(ADDRESS, ["Hill", 7]), "Struct{street=Hill,number=7}"),
    (Struct(ADDRESS, ["Hill", None]), "Struct{street=Hill}"),
    (datetime.date(2024, 5, 17), "2024-05-17"),
]


@pytest.mark.parametrize(("value", "text"), TEXTS)
def test_other_values_are_written_as_java_shows_them(value: object, text: str) -> None:
    assert StringConverter().from_connect_data("t", (), None, value) == text.encode()


def test_strings_may_have_another_encoding() -> None:
    latin = StringConverter()
    latin.configure({"converter.encoding": "ISO-8859-1"}, True)
    assert latin.from_connect_data("t", (), STRING, "ä") == b"\xe4"
    assert latin.to_connect_data("t", (), b"\xe4") == (OPTIONAL_STRING, "ä")
    with pytest.raises(DataError, match="Failed to serialize to a string"):
        latin.from_connect_data("t", (), STRING, "世")
    with pytest.raises(ConfigError, match="Invalid value no-such for configuration"):
        latin.configure({"converter.encoding": "no-such"}, True)


MISFITS: list[tuple[Converter, ConnectSchema | None, object, str]] = [
    (ByteArrayConverter(), STRING, b"a", "Invalid schema type for ByteArrayConverter: STRING"),
    (ByteArrayConverter(), BYTES, "a", "not compatible with objects of type str"),
    (StringConverter(), BYTES, b"a", "bytes have no text"),
    (ShortConverter(), None, 70_000, "Failed to serialize to short (was int)"),
    (IntegerConverter(), None, "7", "Failed to serialize to integer (was str)"),
    (LongConverter(), None, True, "Failed to serialize to long (was bool)"),
    (FloatConverter(), None, "x", "Failed to serialize to float (was str)"),
    (DoubleConverter(), None, "x", "Failed to serialize to double (was str)"),
    (BooleanConverter(), INT32, True, "Invalid schema type for BooleanConverter: INT32"),
    (BooleanConverter(), BOOLEAN, 1, "not compatible with objects of type int"),
]


@pytest.mark.parametrize(("converter", "schema", "value", "words"), MISFITS)
def test_a_value_of_another_type_is_refused(
    converter: Converter, schema: ConnectSchema | None, value: object, words: str
) -> None:
    with pytest.raises(DataError) as failed:
        converter.from_connect_data("t", (), schema, value)
    assert words in failed.value.message


BAD_BYTES: list[tuple[Converter, str]] = [
    (StringConverter(), "Failed to deserialize string"),
    (ShortConverter(), "Failed to deserialize short"),
    (IntegerConverter(), "Failed to deserialize integer"),
    (LongConverter(), "Failed to deserialize long"),
    (FloatConverter(), "Failed to deserialize float"),
    (DoubleConverter(), "Failed to deserialize double"),
    (BooleanConverter(), "Failed to deserialize boolean"),
]


@pytest.mark.parametrize(("converter", "words"), BAD_BYTES)
def test_bytes_of_another_format_are_refused(converter: Converter, words: str) -> None:
    with pytest.raises(DataError, match=words):
        converter.to_connect_data("t", (), b"\xff\xff\xff")


def test_headers_are_converted_as_values_are() -> None:
    for converter in (StringConverter(), ByteArrayConverter(), IntegerConverter()):
        value = {"s": "a", "b": b"a", "i": 7}[type(converter).__name__[0].lower()]
        data = converter.from_connect_header("t", "h", None, value)
        assert converter.to_connect_header("t", "h", data)[1] == value
