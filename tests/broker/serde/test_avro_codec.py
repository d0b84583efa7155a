"""The fast writers of Avro write what fastavro writes, and leave to it what they do not know."""

import io
import json
from collections import UserDict
from datetime import date
from decimal import Decimal
from enum import IntEnum

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.serde.avro_codec.fastavro_codec import decoder, encoder
from broker.serde.avro_codec.plain_values import writer_of
from broker.serde.schema.avro_schema import AvroSchema, parse_avro
from tests.broker.serde.avro_values import Json, schemas_with_values

POINT = {
    "type": "record",
    "name": "Point",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "boolean", "default": True}],
}
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
PLAIN: list[Json] = [
    *("boolean", "int", "long", "float", "double", "bytes", "string"),
    {"type": "enum", "name": "E", "symbols": ["A", "B"]},
    {"type": "fixed", "name": "F", "size": 2},
    {"type": "array", "items": "long"},
    {"type": "map", "values": "boolean"},
    {"type": "int", "logicalType": "date"},
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "string", "logicalType": "uuid"},
    {"type": "string", "logicalType": "unheard-of"},
    {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 5},
    DECIMAL,
    POINT,
]
SCHEMAS: list[Json] = [
    "null",
    *PLAIN,
    *(["null", each] for each in PLAIN),
    *([each, "null"] for each in PLAIN),
    ["null", "string", "long"],
    ["string"],
]


class Colour(IntEnum):
    """A number that is not exactly one."""

    RED = 1


ODD = [
    *(None, True, 0, -1, 2**31, -(2**63), 2**63, 1.5, float("inf"), 1e300, "", "A", "x\ud800"),
    *(b"", b"ab", bytearray(b"ab"), [], [1], [True], (), {}, {"a": True}, {1: True}, {"x": 1}),
    *({"x": 1, "y": 0}, {"x": True, "y": False}, {"x": 1, "-type": "Point"}, {"-type": "No"}),
    *(UserDict({"x": 1, "y": True}), ("Point", {"x": 1}), Colour.RED, Decimal("1.5")),
    *(Decimal("1.234"), object(), ("string", "a")),
]


def parsed(schema: Json) -> AvroSchema:
    return parse_avro(json.dumps(schema), {})


def by_fastavro(schema: AvroSchema, value: object) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema.fastavro, value)
    return out.getvalue()


@pytest.mark.slow
@given(schemas_with_values())
def test_any_value_of_any_schema_has_fastavros_bytes(typed: tuple[Json, object]) -> None:
    schema, value = parsed(typed[0]), typed[1]
    fast = writer_of(schema.root)
    assert fast is not None
    assert fast(value) == by_fastavro(schema, value)
    assert decoder(schema)(fast(value)) == value


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_odd_values_end_as_they_do_with_fastavro(schema: Json) -> None:
    known = parsed(schema)
    encode = encoder(known)
    for value in ODD:
        try:
            expected = by_fastavro(known, value)
        except Exception as error:  # whatever it raises, we raise as well
            with pytest.raises(type(error)):
                encode(value)
        else:
            assert encode(value) == expected, repr(value)


@given(st.integers(0, 63), st.integers(-2, 2), st.booleans())
def test_numbers_at_the_borders_of_bytes_have_fastavros_bytes(
    bits: int, nearby: int, negative: bool
) -> None:
    number = (1 << bits) + nearby
    value = max(-(2**63), min(-number if negative else number, 2**63 - 1))
    schema = parsed("long")
    assert encoder(schema)(value) == by_fastavro(schema, value)


@pytest.mark.parametrize("size", [0, 63, 64, 2_047, 2_048, 8_191, 8_192, 1_048_576])
def test_lengths_at_the_borders_of_bytes_have_fastavros_bytes(size: int) -> None:
    for schema, value in (
        ("string", "x" * size),
        ("bytes", b"x" * size),
        ({"type": "array", "items": "boolean"}, [True] * min(size, 10_000)),
    ):
        known = parsed(schema)
        assert encoder(known)(value) == by_fastavro(known, value)


@pytest.mark.parametrize("size", [None, 5, 40])
@pytest.mark.parametrize("optional", [False, True])
def test_decimals_are_read_exactly_whatever_their_schema_says(
    size: int | None, optional: bool
) -> None:
    decimal: Json = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    plain: Json = "bytes"
    if size is not None:
        plain = {"type": "fixed", "name": "F", "size": size}
        decimal = {**decimal, **plain}
    typed, untyped = (["null", each] if optional else each for each in (decimal, plain))
    for unscaled in (0, 1, -1, 12_34, -99_99, 2**35 + 7, -(2**39)):
        data = unscaled.to_bytes(size or 6, "big", signed=True)
        encoded = encoder(parsed(untyped))(data)
        assert decoder(parsed(typed))(encoded) == Decimal(unscaled).scaleb(-2)
        assert decoder(parsed(typed), parsed(typed))(encoded) == Decimal(unscaled).scaleb(-2)


def test_a_decimal_of_a_million_bytes_is_refused_before_it_takes_minutes() -> None:
    data = encoder(parsed("bytes"))(b"\x7f" * 1_000_000)
    with pytest.raises(ValueError, match="1000000 bytes"):
        decoder(parsed(DECIMAL))(data)


def test_decimals_within_recursive_records_are_read_exactly_too() -> None:
    schema = {
        "type": "record",
        "name": "Node",
        "fields": [
            {"name": "price", "type": DECIMAL},
            {"name": "next", "type": ["null", "Node"]},
        ],
    }
    value: object = None
    for number in range(90):  # more bytes than are read at once
        value = {"price": Decimal(number).scaleb(-2), "next": value}
    assert decoder(parsed(schema))(encoder(parsed(schema))(value)) == value


def test_a_reader_may_see_decimals_in_a_record_that_has_changed() -> None:
    old = {"type": "record", "name": "R", "fields": [{"name": "price", "type": DECIMAL}]}
    added = {"name": "note", "type": "string", "default": "x"}
    new = {**old, "fields": [{"name": "price", "type": DECIMAL}, added]}
    data = encoder(parsed(old))({"price": Decimal("1.50")})
    found = decoder(parsed(old), parsed(new))(data)
    assert found == {"price": Decimal("1.50"), "note": "x"}


DEFAULTS: list[tuple[Json, Json, object]] = [
    ("bytes", "\u00ff", b"\xff"),
    (["bytes", "null"], "a", b"a"),
    (["null", "bytes"], None, None),
    ({"type": "fixed", "name": "F", "size": 2}, "ab", b"ab"),
    (DECIMAL, "\u0001", Decimal("0.01")),
    ({"type": "int", "logicalType": "date"}, 1, date(1970, 1, 2)),
    ({"type": "array", "items": "bytes"}, ["a"], [b"a"]),
    ({"type": "map", "values": DECIMAL}, {"k": "\u0002"}, {"k": Decimal("0.02")}),
    (POINT, {"x": 3}, {"x": 3, "y": True}),
    (
        {"type": "record", "name": "In", "fields": [{"name": "b", "type": "bytes"}]},
        {"b": "z"},
        {"b": b"z"},
    ),
    ({"type": "enum", "name": "E", "symbols": ["A"]}, "A", "A"),
    ("string", "text", "text"),
]


@pytest.mark.parametrize(("kind", "default", "expected"), DEFAULTS, ids=str)
def test_defaults_are_values_of_their_types_both_ways(
    kind: Json, default: Json, expected: object
) -> None:
    old = parsed({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
    fields = [{"name": "a", "type": "int"}, {"name": "b", "type": kind, "default": default}]
    new = parsed({"type": "record", "name": "R", "fields": fields})
    assert decoder(old, new)(encoder(old)({"a": 1})) == {"a": 1, "b": expected}
    assert decoder(new)(encoder(new)({"a": 1})) == {"a": 1, "b": expected}


def test_who_changes_a_default_changes_no_record_to_come() -> None:
    old = parsed({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
    tags = {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []}
    new = parsed({"type": "record", "name": "R", "fields": [tags]})
    decode, data = decoder(old, new), encoder(old)({"a": 1})
    found = decode(data)
    assert isinstance(found, dict)
    found["tags"].append("x")
    assert decode(data) == {"tags": []}


def test_what_is_a_matter_of_choice_is_left_to_fastavro() -> None:
    assert writer_of(parsed(["null", "string", "long"]).root) is None
    assert encoder(parsed(["null", "string", "long"]), b"p")(3) == b"p\4\6"
