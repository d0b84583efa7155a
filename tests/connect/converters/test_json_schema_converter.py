"""JSON through a registry, mapped as Confluent's converter maps it."""

import datetime
from decimal import Decimal

import orjson
import pytest
from hypothesis import given, settings

from broker.serde.schema.schema import Reference, Schema, SchemaKind
from connect.converters.json_schema_converter import JsonSchemaConverter
from connect.converters.json_schema_types import UNION_NAME
from connect.data import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    OPTIONAL_STRING,
    STRING,
    ConnectSchema,
    Struct,
    array,
    date,
    decimal,
    map_of,
    struct,
)
from connect.errors import ConfigError, DataError
from tests.connect.converters.registered import Registered, framed
from tests.connect.converters.values import ABSENT, ADDRESS, PRESENT, Example, examples

ENUM = {
    "io.confluent.connect.json.Enum": "",
    "io.confluent.connect.json.Enum.red": "red",
    "io.confluent.connect.json.Enum.blue": "blue",
}


def json_schema(**settings: str) -> Registered:
    """A converter with some settings."""
    return Registered(JsonSchemaConverter, settings)


@pytest.mark.parametrize("example", PRESENT + ABSENT, ids=lambda example: example.name)
@pytest.mark.parametrize("form", ["BASE64", "NUMERIC"])
def test_every_type_comes_back_with_its_schema(example: Example, form: str) -> None:
    holder = struct("holder", {"value": example.schema})
    converter = json_schema(decimal_format=form)
    found, value = converter.there_and_back(holder, Struct(holder, [example.value]))
    assert found == holder.with_(version=1)
    assert isinstance(value, Struct)
    assert value.values == [example.value]


@settings(deadline=None)
@given(examples())
def test_what_is_written_is_read_again(example: Example) -> None:
    found, value = json_schema().there_and_back(example.schema, example.value)
    assert found.with_(version=None) == example.schema.with_(version=None)
    plain = value.to_dict() if isinstance(value, Struct) else value
    given_value = example.value
    assert plain == (given_value.to_dict() if isinstance(given_value, Struct) else given_value)


SCHEMAS: list[tuple[ConnectSchema, object]] = [
    (INT8, {"type": "integer", "connect.type": "int8"}),
    (FLOAT32, {"type": "number", "connect.type": "float32"}),
    (BOOLEAN, {"type": "boolean"}),
    (STRING, {"type": "string"}),
    (BYTES, {"type": "string", "connect.type": "bytes"}),
    (STRING.with_(parameters=ENUM), {"enum": ["red", "blue"]}),
    (
        STRING.with_(name="n", version=3, doc="d", default="x", parameters={"a": "b"}),
        {
            "type": "string",
            "title": "n",
            "description": "d",
            "default": "x",
            "connect.version": 3,
            "connect.parameters": {"a": "b"},
        },
    ),
    (OPTIONAL_STRING, {"oneOf": [{"type": "null"}, {"type": "string"}]}),
    (
        date(),
        {
            "type": "integer",
            "connect.type": "int32",
            "title": "org.apache.kafka.connect.data.Date",
            "connect.version": 1,
        },
    ),
    (
        decimal(2),
        {
            "type": "number",
            "connect.type": "bytes",
            "title": "org.apache.kafka.connect.data.Decimal",
            "connect.version": 1,
            "connect.parameters": {"scale": "2"},
        },
    ),
    (array(STRING), {"type": "array", "items": {"type": "string"}}),
    (
        map_of(STRING, STRING),
        {"type": "object", "additionalProperties": {"type": "string"}, "connect.type": "map"},
    ),
    (
        map_of(INT32, STRING),
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "key": {"type": "integer", "connect.type": "int32", "connect.index": 0},
                    "value": {"type": "string", "connect.index": 1},
                },
            },
            "connect.type": "map",
        },
    ),
    (
        ADDRESS,
        {
            "type": "object",
            "properties": {
                "street": {"type": "string", "connect.index": 0},
                "number": {
                    "oneOf": [{"type": "null"}, {"type": "integer", "connect.type": "int32"}],
                    "connect.index": 1,
                },
            },
            "title": "shop.Address",
        },
    ),
]

VALUES: list[object] = [
    1,
    1.5,
    True,
    "a",
    b"a",
    "red",
    "a",
    "a",
    datetime.date(2024, 5, 17),
    Decimal("1.25"),
    ["a"],
    {"a": "b"},
    {1: "b"},
    Struct(ADDRESS, ["Hill", 1]),
]


@pytest.mark.parametrize(("case", "value"), list(zip(SCHEMAS, VALUES, strict=True)))
def test_schemas_are_registered_as_confluent_maps_them(
    case: tuple[ConnectSchema, object], value: object
) -> None:
    schema, expected = case
    converter = json_schema()
    found, read = converter.there_and_back(schema, value)
    assert converter.json() == expected
    assert found.with_(version=None) == schema.with_(version=None)
    assert converter.registry.version("t-value").schema.kind is SchemaKind.JSON
    if not isinstance(read, Struct):
        assert read == value


def test_the_bytes_are_json_behind_the_id() -> None:
    converter = json_schema()
    assert converter.write(map_of(INT32, STRING), {1: "a"}) == framed(1, b'[{"key":1,"value":"a"}]')
    assert converter.write(ADDRESS, Struct(ADDRESS, ["Hill", None])) == framed(
        2, b'{"street":"Hill","number":null}'
    )


def test_objects_without_other_properties() -> None:
    converter = json_schema(object_additional_properties="false")
    converter.write(ADDRESS, Struct(ADDRESS, ["Hill", None]))
    written = converter.json()
    assert isinstance(written, dict)
    assert written["additionalProperties"] is False


def test_a_null_with_a_schema_is_written_and_one_without_is_a_tombstone() -> None:
    converter = json_schema()
    assert converter.write(OPTIONAL_STRING, None) == framed(1, b"null")
    assert converter.read(framed(1, b"null")) == (OPTIONAL_STRING.with_(version=1), None)
    assert converter.converter.from_connect_data("t", (), None, None) is None
    assert converter.read(None) == (None, None)


UNION = struct(
    UNION_NAME,
    {f"{UNION_NAME}.field.0": OPTIONAL_INT64, f"{UNION_NAME}.field.1": OPTIONAL_STRING},
)
FOREIGN: list[tuple[object, object, ConnectSchema, object]] = [
    ({"type": "integer"}, 7, INT64, 7),
    ({"type": "number"}, 7, FLOAT64, 7.0),
    ({"type": ["null", "string"], "title": "t"}, "a", OPTIONAL_STRING.with_(name="t"), "a"),
    ({"enum": ["red", "blue"]}, "red", STRING.with_(parameters=ENUM), "red"),
    ({"type": "string", "enum": ["red", "blue"]}, "red", STRING.with_(parameters=ENUM), "red"),
    ({"type": "integer", "enum": [1, 2]}, 1, INT64, 1),
    ({"oneOf": [{"type": "integer"}, {"type": "string"}]}, "a", UNION, [None, "a"]),
    ({"type": ["integer", "string"]}, 7, UNION, [7, None]),
    (
        {"anyOf": [{"type": "null"}, {"type": "integer"}, {"type": "string"}]},
        None,
        UNION.as_optional(),
        None,
    ),
    (
        {
            "type": "object",
            "properties": {"b": {"type": "number"}, "a": {"$ref": "#/definitions/name"}},
            "definitions": {"name": {"type": "string", "default": "x"}},
        },
        {"b": 1},
        struct(None, {"b": FLOAT64, "a": STRING.with_(default="x")}),
        [1.0, "x"],
    ),
    (
        {
            "title": "both",
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}},
                {"properties": {"b": {"type": "integer"}}},
            ],
        },
        {"a": "x", "b": 1},
        struct("both", {"a": STRING, "b": INT64}),
        ["x", 1],
    ),
    ({"allOf": [{"type": "string"}, {"maxLength": 5}]}, "a", STRING, "a"),
    ({"type": "integer", "default": "wrong"}, 1, INT64, 1),
]


@pytest.mark.parametrize(("written", "payload", "schema", "expected"), FOREIGN)
def test_what_others_wrote_is_read_as_confluent_maps_it(
    written: object, payload: object, schema: ConnectSchema, expected: object
) -> None:
    converter = json_schema()
    schema_id = converter.register(written, SchemaKind.JSON)
    found, value = converter.read(framed(schema_id, orjson.dumps(payload)))
    assert found == schema.with_(version=1)
    assert (value.values if isinstance(value, Struct) else value) == expected


def test_a_union_is_written_as_the_value_that_it_has() -> None:
    converter = json_schema()
    cases: list[tuple[list[object], bytes]] = [([7, None], b"7"), ([None, "a"], b'"a"')]
    for values, payload in cases:
        assert converter.write(UNION, Struct(UNION, values))[5:] == payload
    with pytest.raises(DataError, match="no field of the union has a value"):
        converter.write(UNION, Struct(UNION))
    assert converter.write(UNION.as_optional(), Struct(UNION.as_optional()))[5:] == b"null"
    assert converter.json() == {
        "oneOf": [
            {"type": "null"},
            {"type": "integer", "connect.type": "int64", "connect.index": 0},
            {"type": "string", "connect.index": 1},
        ]
    }


def test_the_branch_of_a_union_is_found_by_the_look_of_the_value() -> None:
    branches = [
        {"type": "boolean"},
        {"type": "number"},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "string"}}},
    ]
    converter = json_schema()
    schema_id = converter.register({"oneOf": branches}, SchemaKind.JSON)
    for place, payload in enumerate((b"true", b"1.5", b'["a"]', b'{"a":"b"}')):
        _, value = converter.read(framed(schema_id, payload))
        assert isinstance(value, Struct)
        assert [each is not None for each in value.values].index(True) == place
    for payload in (b'"text"', b'{"z":1}'):
        with pytest.raises(DataError, match="Did not find matching oneof field for data"):
            converter.read(framed(schema_id, payload))


def test_properties_that_are_not_required_may_be_null_when_that_is_set() -> None:
    written = {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a"],
    }
    strict = json_schema()
    data = framed(strict.register(written, SchemaKind.JSON), b'{"a":1}')
    with pytest.raises(DataError, match="Invalid null value for required FLOAT64 field"):
        strict.read(data)
    lenient = json_schema(use_optional_for_nonrequired="true")
    lenient.register(written, SchemaKind.JSON)
    schema, value = lenient.read(data)
    assert schema == struct(None, {"a": FLOAT64, "b": OPTIONAL_FLOAT64}).with_(version=1)
    assert isinstance(value, Struct)
    assert value.values == [1.0, None]


def test_schemas_may_refer_to_others() -> None:
    converter = json_schema()
    converter.register({"type": "string", "title": "name"}, SchemaKind.JSON, "names")
    text = '{"type":"object","properties":{"n":{"$ref":"name.json"}}}'
    reference = Reference("name.json", "names", 1)
    schema_id = converter.registry.register("t-value", Schema(text, SchemaKind.JSON, (reference,)))
    schema, value = converter.read(framed(schema_id, b'{"n":"x"}'))
    assert schema == struct(None, {"n": STRING.with_(name="name")}).with_(version=1)
    assert isinstance(value, Struct)
    assert value["n"] == "x"


UNUSABLE: list[tuple[object, str]] = [
    ({}, "Unsupported schema type"),
    ({"type": "null"}, "Unsupported schema type: null"),
    ({"type": "array"}, "Array schema did not specify the items type"),
    ({"type": "object", "properties": {"next": {"$ref": "#"}}}, "is recursive"),
    ({"type": "object", "connect.type": "map"}, "Unsupported schema type"),
]


@pytest.mark.parametrize(("written", "words"), UNUSABLE)
def test_schemas_that_connect_has_not_are_refused(written: object, words: str) -> None:
    converter = json_schema()
    schema_id = converter.register(written, SchemaKind.JSON)
    with pytest.raises(DataError) as failed:
        converter.read(framed(schema_id, b"{}"))
    assert words in failed.value.message


def test_values_that_do_not_fit_say_what_and_where() -> None:
    with pytest.raises(
        DataError, match="Failed to serialize JSON Schema data from topic t"
    ) as failed:
        json_schema().write(ADDRESS, Struct(ADDRESS, [7, None]))
    assert failed.value.at == 'field "street"'
    converter = json_schema()
    with pytest.raises(DataError, match="Failed to deserialize data of JSON Schema for topic t"):
        converter.read(framed(converter.register({"type": "string"}, SchemaKind.JSON), b"{"))
    schema_id = converter.register(SCHEMAS[12][1], SchemaKind.JSON, "u-value")
    with pytest.raises(DataError, match="encoded as JSON array of objects, but found OBJECT"):
        converter.read(framed(schema_id, b"{}"))
    with pytest.raises(DataError, match="Found invalid map entry instead of object: NUMBER"):
        converter.read(framed(schema_id, b"[1]"))


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value TEXT for configuration decimal\.format"):
        json_schema(decimal_format="TEXT")


def test_optional_keys_make_a_map_an_array() -> None:
    schema = map_of(OPTIONAL_STRING, OPTIONAL_INT32)
    converter = json_schema()
    data = converter.write(schema, {"a": 1})
    assert data[5:] == b'[{"key":"a","value":1}]'
    assert converter.read(data) == (schema.with_(version=1), {"a": 1})
