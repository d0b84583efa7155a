"""Records of cases: what is written is read again as the same."""

from decimal import Decimal

import pytest

from sql.catalog import FormatInfo
from sql.datatypes import (
    BIGINT,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
)
from sql.testing.comparing import same
from sql.testing.memory_registry import MemoryRegistry
from sql.testing.records import TopicSide, as_typed, decode, encode, json_text

ALL = ["JSON", "AVRO", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR"]
VALUES: list[tuple[DataType, object]] = [
    (INT, 5),
    (BIGINT, 2**40),
    (DOUBLE, Decimal("1.5")),
    (DecimalType(6, 2), Decimal("12.30")),
    (STRING, "text"),
    (BYTES, "AQI="),
    (DATE, 12),
    (ArrayType(INT), [1, 2]),
    (MapType(STRING, DOUBLE), {"a": Decimal("0.5")}),
    (StructType((Field("F", DecimalType(4, 1)),)), {"F": Decimal("1.0")}),
]


def side(
    name: str, *types: DataType, is_key: bool = False, wrapped: bool | None = None
) -> TopicSide:
    columns = tuple(Column(f"C{n}", each) for n, each in enumerate(types))
    return TopicSide("t", FormatInfo(name, wrapped=wrapped), columns, is_key)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("type_", "value"), VALUES, ids=[str(each) for each, _ in VALUES])
def test_rows_are_read_as_they_were_written(name: str, type_: DataType, value: object) -> None:
    registry = MemoryRegistry()
    row = {"C0": value, "C1": "x"}
    values = side(name, type_, STRING)
    assert same(decode(values, encode(values, row, registry), registry), row)


@pytest.mark.parametrize("name", ["JSON", "AVRO", "JSON_SR"])
@pytest.mark.parametrize(("type_", "value"), VALUES[:5], ids=[str(each) for each, _ in VALUES[:5]])
def test_a_single_key_stands_alone(name: str, type_: DataType, value: object) -> None:
    registry = MemoryRegistry()
    keys = side(name, type_, is_key=True)
    assert same(decode(keys, encode(keys, value, registry), registry), value)


@pytest.mark.parametrize(
    ("type_", "value", "data"),
    [
        (INT, 258, b"\0\0\1\2"),
        (BIGINT, 1, b"\0\0\0\0\0\0\0\1"),
        (STRING, "ab", b"ab"),
        (BYTES, "ab", b"ab"),
        (INT, "no number", b"no number"),
    ],
)
def test_kafka_keys_are_plain_bytes(type_: DataType, value: object, data: bytes) -> None:
    assert encode(side("KAFKA", type_, is_key=True), value, MemoryRegistry()) == data


def test_formats_without_values_write_none() -> None:
    registry = MemoryRegistry()
    for name in (*ALL, "KAFKA", "DELIMITED", "NONE"):
        assert encode(side(name, INT), None, registry) is None
        assert decode(side(name, INT), None, registry) is None
    assert encode(side("NONE", INT, is_key=True), 1, registry) is None


def test_delimited_rows_are_compared_as_strings() -> None:
    values = side("DELIMITED", STRING, INT)
    assert decode(values, encode(values, 'a,"b",1', MemoryRegistry()), MemoryRegistry()) == (
        'a,"b",1'
    )


def test_a_wrong_type_can_be_written_to_json_on_purpose() -> None:
    assert encode(side("JSON", INT), {"C0": "no number"}, MemoryRegistry()) == (
        b'{"C0":"no number"}'
    )


def test_digits_stay_as_they_are() -> None:
    text = json_text({"a": Decimal("1.10"), "b": [Decimal("1.0E+10"), None, True, 'q"']})
    assert text == '{"a":1.10,"b":[1.0E+10,null,true,"q\\""]}'


@pytest.mark.parametrize(
    ("given", "type_", "value"),
    [
        ("12", INT, 12),
        (12, STRING, "12"),
        ("1.5", DecimalType(4, 2), Decimal("1.50")),
        ({"f": 1}, StructType((Field("F", INT), Field("G", INT))), {"F": 1, "G": None}),
        ({"1": "2"}, MapType(INT, BIGINT), {1: 2}),
    ],
)
def test_json_stands_for_values_of_types(given: object, type_: DataType, value: object) -> None:
    assert as_typed(given, type_) == value
