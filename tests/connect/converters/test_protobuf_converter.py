"""Protobuf through a registry, mapped as Confluent's converter maps it."""

import datetime
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.serde import RegistryProtobufSerde
from broker.serde.schema.schema import SchemaKind
from connect.converters.protobuf_converter import ProtobufConverter
from connect.converters.protobuf_types import ENUM, TAG, UNION
from connect.data import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    ConnectSchema,
    Field,
    Struct,
    Type,
    array,
    date,
    decimal,
    map_of,
    struct,
    time,
    timestamp,
)
from connect.errors import DataError
from tests.connect.converters.registered import Registered, framed
from tests.connect.converters.values import (
    ABSENT,
    ADDRESS,
    ANNA,
    CUSTOMER,
    PRESENT,
    SCHEMAS,
    Example,
    examples,
)

# Protobuf has no lists right in lists, and no null in them.
POSSIBLE = [each for each in PRESENT if each.name not in ("array of arrays", "array with null")]


def protobuf(**settings: str) -> Registered:
    """A converter with some settings."""
    return Registered(ProtobufConverter, settings)


def tagged(schema: ConnectSchema, number: int) -> ConnectSchema:
    """A field's schema as it is read: optional, with the number that it has."""
    parameters = {**(schema.parameters or {}), TAG: str(number)}
    return schema.with_(optional=True, parameters=parameters)


@pytest.mark.parametrize("example", POSSIBLE + ABSENT, ids=lambda example: example.name)
@pytest.mark.parametrize("setting", ["optional_for_nullables", "wrapper_for_nullables"])
def test_every_type_comes_back(example: Example, setting: str) -> None:
    holder = struct("shop.Holder", {"value": example.schema})
    given_struct = Struct(holder, [example.value])
    _, value = protobuf(**{setting: "true"}).there_and_back(holder, given_struct)
    assert isinstance(value, Struct)
    assert value.to_dict() == given_struct.to_dict()


def is_possible(schema: ConnectSchema) -> bool:
    """Whether Protobuf has such a schema, and can tell null from what is empty."""
    inner = schema.value_schema
    if schema.type in (Type.ARRAY, Type.MAP) and inner is not None:
        nested = inner.type in (Type.ARRAY, Type.MAP) and schema.type is Type.ARRAY
        null = inner.optional and (
            schema.type is Type.ARRAY or inner.type in (Type.ARRAY, Type.MAP)
        )
        return not schema.optional and not nested and not null and is_possible(inner)
    return all(is_possible(each.schema) for each in schema.fields)


@settings(deadline=None)
@given(st.data())
def test_what_is_written_is_read_again(data: st.DataObject) -> None:
    example = data.draw(examples(SCHEMAS.filter(is_possible)))
    holder = struct("holder", {"value": example.schema})
    given_struct = Struct(holder, [example.value])
    converter = protobuf(optional_for_nullables="true")
    _, value = converter.there_and_back(holder, given_struct)
    assert isinstance(value, Struct)
    assert value.to_dict() == given_struct.to_dict()


FIELDS: list[tuple[ConnectSchema, str]] = [
    (
        INT8,
        'int32 f = 1 [(confluent.field_meta) = {params: [{key: "connect.type", value: "int8"}]}];',
    ),
    (INT32, "int32 f = 1;"),
    (INT64, "int64 f = 1;"),
    (FLOAT32, "float f = 1;"),
    (FLOAT64, "double f = 1;"),
    (BOOLEAN, "bool f = 1;"),
    (STRING, "string f = 1;"),
    (BYTES, "bytes f = 1;"),
    (OPTIONAL_STRING, "string f = 1;"),
    (date(), "google.type.Date f = 1;"),
    (time(), "google.type.TimeOfDay f = 1;"),
    (timestamp(), "google.protobuf.Timestamp f = 1;"),
    (
        decimal(2),
        "confluent.type.Decimal f = 1 [(confluent.field_meta) = "
        '{params: [{key: "scale", value: "2"}]}];',
    ),
    (array(STRING), "repeated string f = 1;"),
    (array(ADDRESS), "repeated Address f = 1;"),
    (map_of(STRING, INT32), "repeated ConnectDefault1Entry f = 1;"),
    (map_of(STRING, INT32).with_(name="by_name"), "repeated ByNameEntry f = 1;"),
    (struct("shop.f", {"x": INT32}), "fMessage f = 1;"),
]


@pytest.mark.parametrize(("schema", "declared"), FIELDS)
def test_fields_are_declared_as_confluent_maps_them(schema: ConnectSchema, declared: str) -> None:
    converter = protobuf()
    holder = struct("shop.Holder", {"f": schema})
    converter.write(holder, Struct(holder, [some_value(schema)]))
    text = " ".join(converter.text().split())
    assert text.startswith('syntax = "proto3"; package shop;')
    assert declared.replace("{ ", "{").replace(" }", "}") in text.replace("{ ", "{").replace(
        " }", "}"
    )


def some_value(schema: ConnectSchema) -> object:
    """Any value that fits."""
    found = [
        each.value for each in PRESENT if each.schema.with_(optional=schema.optional) == schema
    ]
    if found:
        return found[0]
    if schema.type is Type.STRUCT:
        return Struct(schema, [1])
    return {"a": 1} if schema.type is Type.MAP else []


def test_settings_define_how_null_is_encoded() -> None:
    holder = struct("Holder", {"a": OPTIONAL_INT32})
    row = Struct(holder)
    for setting, declared, read in (
        ({}, "int32 a = 1;", 0),
        ({"optional_for_nullables": "true"}, "optional int32 a = 1;", None),
        ({"wrapper_for_nullables": "true"}, "google.protobuf.Int32Value a = 1;", None),
    ):
        converter = protobuf(**setting)
        _, value = converter.there_and_back(holder, row)
        assert declared in converter.text()
        assert isinstance(value, Struct)
        assert value["a"] == read


def test_schemas_are_read_as_confluent_maps_them() -> None:
    found, _ = protobuf().there_and_back(CUSTOMER, ANNA)
    address = struct("Address", {"street": tagged(STRING, 1), "number": tagged(OPTIONAL_INT32, 2)})
    scores = map_of(tagged(STRING, 1), tagged(FLOAT64, 2)).with_(name="connect_default1")
    assert found == struct(
        "Customer",
        {
            "id": tagged(INT64, 1),
            "name": tagged(STRING, 2),
            "limit": tagged(decimal(2), 3),
            "since": tagged(date(), 4),
            "address": tagged(address, 5),
            "tags": tagged(array(OPTIONAL_STRING), 6),
            "scores": tagged(scores, 7),
        },
    ).with_(version=1)


def test_what_was_read_can_be_written_again_and_keeps_its_numbers() -> None:
    converter = protobuf(enhanced_protobuf_schema_support="true")
    text = """
        syntax = "proto3"; package shop;
        message Order {
          string note = 9; int64 id = 3;
          oneof pay { string card = 5; int32 cash = 6; }
          Color color = 7; enum Color { RED = 0; BLUE = 4; }
          repeated Line lines = 8; message Line { uint32 count = 2; }
        }"""
    schema_id = converter.register(text, SchemaKind.PROTOBUF)
    serde = RegistryProtobufSerde(converter.registry, text, subject=lambda *_: "t-value")
    fields = {"note": "n", "id": 1, "cash": 5, "color": "BLUE", "lines": [{"count": 2}]}
    data = serde.serialize("t", fields)
    assert data is not None
    schema, value = converter.read(data)
    assert isinstance(value, Struct)
    assert value.to_dict() == {
        "pay_0": {"card": None, "cash": 5},
        "note": "n",
        "id": 1,
        "color": "BLUE",
        "lines": [{"count": 2}],
    }
    color = {ENUM: "Color", f"{ENUM}.RED": "0", f"{ENUM}.BLUE": "4"}
    assert schema is not None
    assert schema.name == "shop.Order"
    assert schema.field("color") == Field(
        "color", tagged(STRING.with_(name="Color", parameters=color), 7)
    )
    assert schema.field("pay_0") == Field(
        "pay_0",
        struct(UNION + "pay", {"card": tagged(STRING, 5), "cash": tagged(INT32, 6)}, optional=True),
    )
    again = converter.write(schema, value, topic="other")
    assert schema_id == 1
    assert again[6:] == data[6:]


def test_the_bytes_name_the_message_by_its_place() -> None:
    converter = protobuf()
    text = """
        syntax = "proto3";
        message A { string a = 1; }
        message B { string b = 1; message C { string c = 1; } }"""
    schema_id = converter.register(text, SchemaKind.PROTOBUF)
    for place, name in ((b"\0", "a"), (b"\2\2", "b"), (b"\4\2\0", "c")) * 2:
        schema, value = converter.read(framed(schema_id, place + b"\n\1x"))
        assert schema is not None
        assert [each.name for each in schema.fields] == [name]
        assert isinstance(value, Struct)
        assert value.values == ["x"]
    with pytest.raises(DataError, match="no message at"):
        converter.read(framed(schema_id, b"\2\x08\n\1x"))


def test_a_primitive_alone_is_a_wrapper_of_googles() -> None:
    converter = protobuf()
    for schema, value in (
        (STRING, "x"),
        (INT32, 7),
        (INT64, -1),
        (FLOAT64, 1.5),
        (FLOAT32, 1.5),
        (BOOLEAN, True),
        (BYTES, b"x"),
    ):
        found, read = converter.there_and_back(schema, value)
        assert (found.with_(version=None), read) == (schema, value)
    assert "message StringValue" in converter.text()
    whole = protobuf(wrapper_for_raw_primitives="false")
    found, read = whole.there_and_back(STRING, "x")
    assert isinstance(read, Struct)
    assert read.to_dict() == {"value": "x"}
    for schema in (array(STRING), map_of(STRING, STRING), date()):
        with pytest.raises(DataError, match="Unsupported root schema of type"):
            converter.write(schema, [])


def test_real_maps_and_unsigned_numbers_are_read_and_written() -> None:
    text = """
        syntax = "proto3";
        message M {
          map<string, Inner> by_name = 1; message Inner { int32 x = 1; }
          uint64 large = 2; fixed32 small = 3;
        }"""
    converter = protobuf(use_latest_version="true")
    converter.register(text, SchemaKind.PROTOBUF)
    inner = struct("Inner", {"x": INT32})
    schema = struct("M", {"by_name": map_of(STRING, inner), "large": INT64, "small": INT64})
    row = Struct(schema, [{"a": Struct(inner, [1])}, -1, 5])
    _, value = converter.read(converter.write(schema, row))
    assert isinstance(value, Struct)
    assert value.to_dict() == row.to_dict()


def test_the_latest_schema_must_have_the_fields() -> None:
    converter = protobuf(use_latest_version="true")
    converter.register('syntax = "proto3"; message M { string a = 1; }', SchemaKind.PROTOBUF)
    schema = struct("M", {"b": STRING})
    with pytest.raises(DataError, match='message "M" has no field "b"'):
        converter.write(schema, Struct(schema, ["x"]))
    schema = struct("M", {"a": array(STRING)})
    with pytest.raises(DataError, match=r'field "M\.a" cannot hold Schema\{ARRAY\}'):
        converter.write(schema, Struct(schema, [[]]))


def test_null_has_no_bytes() -> None:
    converter = protobuf().converter
    assert converter.from_connect_data("t", (), None, None) is None
    assert converter.from_connect_data("t", (), ADDRESS.as_optional(), None) is None
    assert converter.to_connect_data("t", (), None) == (None, None)


def test_a_null_becomes_the_default() -> None:
    schema = struct("s", {"a": OPTIONAL_INT64.with_(default=7)})
    _, value = protobuf().there_and_back(schema, Struct(schema))
    assert isinstance(value, Struct)
    assert value.values == [7]


def test_names_that_protobuf_has_not_are_scrubbed_when_that_is_set() -> None:
    schema = struct("shop.my item", {"a-b": INT32, "_c": STRING})
    row = Struct(schema, [1, "x"])
    with pytest.raises(DataError, match=r"hint: set scrub\.invalid\.names=true"):
        protobuf().write(schema, row)
    converter = protobuf(scrub_invalid_names="true")
    found, value = converter.there_and_back(schema, row)
    assert found.name == "my_item"
    assert isinstance(value, Struct)
    assert value.to_dict() == {"a_b": 1, "x_c": "x"}


def test_field_names_that_python_has_for_itself() -> None:
    schema = struct("s", {"class": INT32, "from": STRING})
    _, value = protobuf().there_and_back(schema, Struct(schema, [1, "x"]))
    assert isinstance(value, Struct)
    assert value.values == [1, "x"]


MISFITS: list[tuple[ConnectSchema, object, str, str]] = [
    (struct("s", {"a": INT32}), ["7"], "schema with type INT32: str", 'field "a"'),
    (struct("s", {"a": INT16}), [2**15], "schema with type INT16: int", 'field "a"'),
    (struct("s", {"a": FLOAT32}), [1e300], "is out of range for FLOAT32", 'field "a"'),
    (struct("s", {"a": STRING}), [None], "Found null value for non-optional", 'field "a"'),
    (
        struct("s", {"a": array(OPTIONAL_STRING)}),
        [[None]],
        "arrays cannot contain null",
        'field "a", element 0',
    ),
    (struct("s", {"a": array(STRING)}), ["x"], "schema with type ARRAY: str", 'field "a"'),
    (struct("s", {"a": map_of(STRING, INT32)}), [[1]], "schema with type MAP: list", 'field "a"'),
    (struct("s", {"a": array(array(INT32))}), [[[1]]], "Array cannot be nested", 'field "a"'),
    (struct("s", {"a": decimal(1)}), [Decimal("1.25")], "Schema has scale 1", 'field "a"'),
    (
        struct("s", {"a": date()}),
        [datetime.datetime.now(datetime.UTC)],
        "INT32: datetime",
        'field "a"',
    ),
]


@pytest.mark.parametrize(("schema", "values", "words", "at"), MISFITS)
def test_a_value_that_does_not_fit_says_what_and_where(
    schema: ConnectSchema, values: list[object], words: str, at: str
) -> None:
    with pytest.raises(DataError) as failed:
        protobuf().write(schema, Struct(schema, values))
    assert failed.value.message.startswith("Failed to serialize Protobuf data from topic t : ")
    assert words in failed.value.message
    assert failed.value.at == at


def test_bytes_that_are_no_message_are_refused() -> None:
    converter = protobuf()
    schema_id = converter.register(
        'syntax = "proto3"; import "google/type/date.proto"; '
        "message A { string a = 1; google.type.Date d = 2; }",
        SchemaKind.PROTOBUF,
    )
    for payload in (b"", b"\0\xff", b"\0\x12\2\x10\x0d"):
        with pytest.raises(DataError, match="Failed to deserialize data of Protobuf for topic t"):
            converter.read(framed(schema_id, payload))
    recursive = 'syntax = "proto3"; message N { N next = 1; }'
    schema_id = converter.register(recursive, SchemaKind.PROTOBUF, "n")
    with pytest.raises(DataError, match="is recursive"):
        converter.read(framed(schema_id, b"\0"))
