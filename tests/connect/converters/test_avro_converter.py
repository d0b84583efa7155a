"""Avro through a registry, mapped as Confluent's converter maps it."""

import datetime
import io
from decimal import Decimal

import fastavro
import pytest
from hypothesis import given, settings

from broker.errors import RegistryError
from broker.serde.registry.api import RegisteredSchema
from broker.serde.schema.schema import Schema, SchemaKind
from connect.converters.avro_converter import AvroConverter
from connect.converters.avro_names import UNION_NAME
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
    OPTIONAL_STRING,
    STRING,
    ConnectSchema,
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
from connect.errors import ConfigError, DataError, RetriableError
from tests.connect.converters.registered import Registered, framed
from tests.connect.converters.values import ADDRESS, ANNA, CUSTOMER, PRESENT, Example, examples
from tests.support.memory_registry import MemoryRegistry

FIELD_DEFAULT = {"io.confluent.connect.avro.field.default": "true"}


def avro(*, is_key: bool = False, **settings: str) -> Registered:
    """A converter with some settings."""
    return Registered(AvroConverter, settings, is_key=is_key)


def without_version(schema: ConnectSchema) -> ConnectSchema:
    """The schema as it was before the registry gave it a version."""
    return schema.with_(version=None)


@pytest.mark.parametrize("example", PRESENT, ids=lambda example: example.name)
def test_every_type_comes_back_with_its_schema(example: Example) -> None:
    found, value = avro().there_and_back(example.schema, example.value)
    assert without_version(found) == without_version(example.schema)
    if isinstance(value, Struct):
        assert value.to_dict() == example.value.to_dict()  # type: ignore[attr-defined]
    else:
        assert value == example.value


@settings(deadline=None)
@given(examples())
def test_what_is_written_is_read_again(example: Example) -> None:
    record = struct("holder", {"value": example.schema})
    found, value = avro().there_and_back(record, Struct(record, [example.value]))
    assert without_version(found) == record
    assert isinstance(value, Struct)
    assert value.values == [example.value]


SCHEMAS: list[tuple[ConnectSchema, object]] = [
    (INT8, {"type": "int", "connect.type": "int8"}),
    (INT16, {"type": "int", "connect.type": "int16"}),
    (INT32, "int"),
    (INT64, "long"),
    (FLOAT32, "float"),
    (FLOAT64, "double"),
    (BOOLEAN, "boolean"),
    (STRING, "string"),
    (BYTES, "bytes"),
    (OPTIONAL_INT32, ["null", "int"]),
    (
        INT32.with_(optional=True, default=5),
        [{"type": "int", "connect.default": 5}, "null"],
    ),
    (
        STRING.with_(name="n", version=3, doc="d", parameters={"a": "b"}),
        {
            "type": "string",
            "connect.doc": "d",
            "connect.version": 3,
            "connect.parameters": {"a": "b"},
            "connect.name": "n",
        },
    ),
    (
        decimal(2),
        {
            "type": "bytes",
            "scale": 2,
            "precision": 64,
            "connect.version": 1,
            "connect.parameters": {"scale": "2"},
            "connect.name": "org.apache.kafka.connect.data.Decimal",
            "logicalType": "decimal",
        },
    ),
    (
        date(),
        {
            "type": "int",
            "connect.version": 1,
            "connect.name": "org.apache.kafka.connect.data.Date",
            "logicalType": "date",
        },
    ),
    (
        time(),
        {
            "type": "int",
            "connect.version": 1,
            "connect.name": "org.apache.kafka.connect.data.Time",
            "logicalType": "time-millis",
        },
    ),
    (
        timestamp(),
        {
            "type": "long",
            "connect.version": 1,
            "connect.name": "org.apache.kafka.connect.data.Timestamp",
            "logicalType": "timestamp-millis",
        },
    ),
    (array(OPTIONAL_STRING), {"type": "array", "items": ["null", "string"]}),
    (map_of(STRING, INT32), {"type": "map", "values": "int"}),
    (
        map_of(INT32, STRING),
        {
            "type": "array",
            "items": {
                "type": "record",
                "name": "io.confluent.connect.avro.MapEntry",
                "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}],
            },
        },
    ),
    (
        map_of(INT32, STRING).with_(name="shop.Names"),
        {
            "type": "array",
            "items": {
                "type": "record",
                "name": "shop.Names",
                "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "string"}],
                "connect.internal.type": "MapEntry",
            },
            "connect.name": "shop.Names",
        },
    ),
    (
        struct("shop.Line", {"a": ADDRESS, "b": ADDRESS, "c": ADDRESS.as_optional()}),
        {
            "type": "record",
            "name": "shop.Line",
            "fields": [
                {
                    "name": "a",
                    "type": {
                        "type": "record",
                        "name": "shop.Address",
                        "fields": [
                            {"name": "street", "type": "string"},
                            {"name": "number", "type": ["null", "int"], "default": None},
                        ],
                        "connect.name": "shop.Address",
                    },
                },
                {"name": "b", "type": "shop.Address"},
                {"name": "c", "type": ["null", "shop.Address"], "default": None},
            ],
            "connect.name": "shop.Line",
        },
    ),
    (
        struct(None, {"a": struct(None, {"b": INT32})}),
        {
            "type": "record",
            "name": "io.confluent.connect.avro.ConnectDefault",
            "fields": [
                {
                    "name": "a",
                    "type": {
                        "type": "record",
                        "name": "io.confluent.connect.avro.ConnectDefault2",
                        "fields": [{"name": "b", "type": "int"}],
                    },
                }
            ],
        },
    ),
    (
        struct(
            "d",
            {
                "a": BYTES.with_(default=b"\xff\0"),
                "b": date().with_(default=datetime.date(1970, 1, 3)),
            },
        ),
        {
            "type": "record",
            "name": "d",
            "fields": [
                {
                    "name": "a",
                    "type": {"type": "bytes", "connect.default": "\xff\0"},
                    "default": "\xff\0",
                },
                {
                    "name": "b",
                    "type": {
                        "type": "int",
                        "connect.version": 1,
                        "connect.default": 2,
                        "connect.name": "org.apache.kafka.connect.data.Date",
                        "logicalType": "date",
                    },
                    "default": 2,
                },
            ],
            "connect.name": "d",
        },
    ),
]


@pytest.mark.parametrize(("schema", "expected"), SCHEMAS)
def test_schemas_are_registered_as_confluent_maps_them(
    schema: ConnectSchema, expected: object
) -> None:
    converter = avro()
    converter.write(schema, some_value(schema))
    assert converter.json() == expected


def some_value(schema: ConnectSchema) -> object:
    """Any value that fits."""
    logical = {
        "Decimal": Decimal(1),
        "Date": datetime.date(2024, 1, 1),
        "Time": datetime.time(1),
        "Timestamp": datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
    }
    found = logical.get((schema.name or "").rpartition(".")[2])
    if found is not None:
        return found
    match schema.type:
        case Type.STRUCT:
            return Struct(schema, [some_value(each.schema) for each in schema.fields])
        case Type.ARRAY:
            return []
        case Type.MAP:
            return {}
        case Type.STRING:
            return ""
        case Type.BYTES:
            return b""
        case Type.BOOLEAN:
            return True
        case Type.FLOAT32 | Type.FLOAT64:
            return 1.0
    return 1


def test_the_bytes_are_those_of_fastavro_behind_the_id() -> None:
    converter = avro()
    data = converter.write(CUSTOMER, ANNA)
    source = io.BytesIO(data)
    assert source.read(5) == b"\0\0\0\0\1"
    found = fastavro.schemaless_reader(source, fastavro.parse_schema(converter.json()), None)
    assert found == {
        "id": 7,
        "name": "Änna",
        "limit": Decimal("12.50"),
        "since": datetime.date(2020, 2, 29),
        "address": {"street": "Hill", "number": None},
        "tags": ["a", ""],
        "scores": {"x": 1.5},
    }
    assert source.read() == b""


def test_bytes_alone_have_no_length() -> None:
    converter = avro()
    assert converter.write(BYTES, b"abc") == framed(1, b"abc")
    assert converter.read(framed(1, b"abc")) == (BYTES.with_(version=1), b"abc")
    assert converter.write(BYTES.as_optional(), b"abc") == framed(2, b"\2\6abc")


FOREIGN: list[tuple[object, object, ConnectSchema, object]] = [
    (
        {"type": "enum", "name": "shop.Color", "symbols": ["RED", "BLUE"], "doc": "of paint"},
        "BLUE",
        STRING.with_(
            name="shop.Color",
            parameters={
                "io.confluent.connect.avro.enum.doc.Color": "of paint",
                "io.confluent.connect.avro.Enum": "shop.Color",
                "io.confluent.connect.avro.Enum.RED": "RED",
                "io.confluent.connect.avro.Enum.BLUE": "BLUE",
            },
        ),
        "BLUE",
    ),
    (
        {"type": "fixed", "name": "Four", "size": 4},
        b"abcd",
        BYTES.with_(name="Four", parameters={"connect.fixed.size": "4"}),
        b"abcd",
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        Decimal("1.25"),
        decimal(2).with_(parameters={"scale": "2", "connect.decimal.precision": "9"}),
        Decimal("1.25"),
    ),
    (
        {"type": "long", "logicalType": "timestamp-micros"},
        datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC),
        INT64,
        1_000_000,
    ),
    ({"type": "string", "logicalType": "uuid"}, "0" * 32, STRING, None),
    (
        {"type": "string", "avro.java.string": "String"},
        "a",
        STRING.with_(parameters={"avro.java.string": "String"}),
        "a",
    ),
    (
        ["null", "int", "string"],
        "x",
        struct(UNION_NAME, {"int": OPTIONAL_INT32, "string": OPTIONAL_STRING}, optional=True),
        {"int": None, "string": "x"},
    ),
    (["string"], "x", STRING, "x"),
    (
        {
            "type": "record",
            "name": "shop.Item",
            "doc": "what is sold",
            "fields": [
                {"name": "count", "type": "int", "default": 1, "doc": "how many"},
                {"name": "note", "type": ["null", "string"], "default": None},
            ],
        },
        {"count": 2, "note": None},
        struct(
            "shop.Item",
            {"count": INT32.with_(default=1, parameters=FIELD_DEFAULT), "note": OPTIONAL_STRING},
        ).with_(
            parameters={
                "io.confluent.connect.avro.record.doc": "what is sold",
                "io.confluent.connect.avro.field.doc.count": "how many",
            }
        ),
        {"count": 2, "note": None},
    ),
]


@pytest.mark.parametrize(("written", "value", "schema", "expected"), FOREIGN)
def test_what_others_wrote_is_read_as_confluent_maps_it(
    written: object, value: object, schema: ConnectSchema, expected: object
) -> None:
    converter = avro()
    schema_id = converter.register(written, SchemaKind.AVRO)
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(written), value)
    payload = value if schema.name == "org.apache.kafka.connect.data.Decimal" else None
    raw = out.getvalue() if payload is None else out.getvalue()[1:]
    found, read = converter.read(framed(schema_id, raw))
    assert found is not None
    assert without_version(found) == without_version(schema)
    if expected is not None:
        assert (read.to_dict() if isinstance(read, Struct) else read) == expected


def test_a_schema_of_avro_comes_through_unchanged() -> None:
    """Enums, unions, docs and defaults are kept when what was read is written again."""
    given_schema = {
        "type": "record",
        "name": "shop.Item",
        "doc": "what is sold",
        "fields": [
            {"name": "count", "type": "int", "default": 1, "doc": "how many"},
            {
                "name": "color",
                "type": {"type": "enum", "name": "shop.Color", "symbols": ["RED", "BLUE"]},
            },
            {"name": "code", "type": {"type": "fixed", "name": "shop.Code", "size": 2}},
            {
                "name": "any",
                "type": [
                    "null",
                    "int",
                    "string",
                    {
                        "type": "record",
                        "name": "shop.Inner",
                        "fields": [{"name": "x", "type": "int"}],
                    },
                ],
            },
        ],
    }
    converter = avro(enhanced_avro_schema_support="true")
    schema_id = converter.register(given_schema, SchemaKind.AVRO)
    for inner in (None, 7, "x", {"x": 1}):
        out = io.BytesIO()
        row = {"count": 2, "color": "BLUE", "code": b"ab", "any": inner}
        fastavro.schemaless_writer(out, fastavro.parse_schema(given_schema), row)
        schema, value = converter.read(framed(schema_id, out.getvalue()))
        again = converter.write(schema, value, topic="other")
        assert again[5:] == out.getvalue()
    written = converter.json("other-value")
    assert isinstance(written, dict)
    by_name = {each["name"]: each for each in written["fields"]}
    assert written["doc"] == "what is sold"
    assert (by_name["count"]["default"], by_name["count"]["doc"]) == (1, "how many")
    assert by_name["color"]["type"]["symbols"] == ["RED", "BLUE"]
    assert by_name["code"]["type"]["size"] == 2
    assert [each if isinstance(each, str) else each["name"] for each in by_name["any"]["type"]] == [
        "null",
        "int",
        "string",
        "shop.Inner",
    ]


def test_without_enhanced_support_an_enum_is_written_as_a_text() -> None:
    converter = avro()
    written = {"type": "enum", "name": "shop.Color", "symbols": ["RED", "BLUE"]}
    schema_id = converter.register(written, SchemaKind.AVRO)
    schema, value = converter.read(framed(schema_id, b"\2"))
    assert value == "BLUE"
    converter.write(schema, value, topic="other")
    again = converter.json("other-value")
    assert isinstance(again, dict)
    assert again["type"] == "string"


def test_the_version_is_that_of_the_subject_unless_the_schema_has_one() -> None:
    converter = avro()
    for version, schema in enumerate((INT32, INT64), start=1):
        found, _ = converter.read(converter.write(schema, 1))
        assert found == schema.with_(version=version)
    found, _ = converter.read(converter.write(INT32.with_(version=7), 1))
    assert found == INT32.with_(version=7)
    elsewhere = converter.register('"string"', SchemaKind.AVRO, "other")
    assert converter.read(framed(elsewhere, b"\0")) == (STRING, "")


def test_names_that_avro_has_not_are_scrubbed_when_that_is_set() -> None:
    schema = struct("my-shop.my item", {"a-b": INT32, "1st": STRING, "ü": OPTIONAL_STRING})
    row = Struct(schema, [1, "x", None])
    with pytest.raises(DataError, match=r"hint: set scrub\.invalid\.names=true"):
        avro().write(schema, row)
    converter = avro(scrub_invalid_names="true")
    found, value = converter.read(converter.write(schema, row))
    written = converter.json()
    assert isinstance(written, dict)
    assert written["name"] == "my_shop.my_item"
    assert [each["name"] for each in written["fields"]] == ["a_b", "x1st", "x_C3_BC"]
    assert isinstance(value, Struct)
    assert value.values == [1, "x", None]
    assert found is not None
    assert found.name == "my-shop.my item"


def test_without_meta_data_schemas_are_plain() -> None:
    converter = avro(connect_meta_data="false")
    converter.write(STRING.with_(doc="d", name="n"), "x")
    assert converter.json() == "string"


def test_null_has_no_bytes() -> None:
    converter = avro().converter
    assert converter.from_connect_data("t", (), None, None) is None
    assert converter.from_connect_data("t", (), OPTIONAL_STRING, None) is None
    assert converter.to_connect_data("t", (), None) == (None, None)
    with pytest.raises(DataError, match="Found null value for non-optional schema"):
        converter.from_connect_data("t", (), STRING, None)


def test_a_null_becomes_the_default_unless_it_is_ignored() -> None:
    schema = struct("s", {"a": OPTIONAL_STRING.with_(default="x")})
    _, value = avro().there_and_back(schema, Struct(schema))
    assert isinstance(value, Struct)
    assert value.values == ["x"]
    kept = avro(ignore_default_for_nullables="true")
    _, value = kept.there_and_back(schema, Struct(schema))
    assert isinstance(value, Struct)
    assert value.values == [None]


def test_values_without_a_schema_get_one_if_it_can_be_inferred() -> None:
    converter = avro()
    assert converter.read(converter.write(None, {"a": 1}))[1] == {"a": 1}
    with pytest.raises(DataError, match="hint: set a schema for the record"):
        converter.write(None, [1, "a"])


def test_subjects_are_named_by_their_strategy() -> None:
    java = "io.confluent.kafka.serializers.subject."
    for strategy, subject in (
        ("TopicNameStrategy", "t-value"),
        (java + "TopicNameStrategy", "t-value"),
        (java + "RecordNameStrategy", "shop.Address"),
        ("TopicRecordNameStrategy", "t-shop.Address"),
    ):
        converter = avro(value_subject_name_strategy=strategy)
        data = converter.write(ADDRESS, Struct(ADDRESS, ["Hill", 1]))
        assert converter.registry.version(subject).version == 1
        assert converter.read(data)[0] == ADDRESS.with_(version=1)
    key = avro(is_key=True)
    key.write(STRING, "x")
    assert key.registry.version("t-key").version == 1


def test_the_latest_schema_is_written_with_when_that_is_set() -> None:
    converter = avro(use_latest_version="true")
    with pytest.raises(DataError, match="Failed to serialize Avro data from topic t"):
        converter.write(ADDRESS, Struct(ADDRESS, ["Hill", 1]))
    latest = {
        "type": "record",
        "name": "shop.Address",
        "fields": [
            {"name": "number", "type": ["null", "long"]},
            {"name": "street", "type": ["int", "string"]},
            {"name": "city", "type": "string", "default": "Ulm"},
            {"name": "zip", "type": ["null", "string"], "default": None},
        ],
    }
    converter = avro(use_latest_version="true")
    converter.register(latest, SchemaKind.AVRO)
    _, value = converter.read(converter.write(ADDRESS, Struct(ADDRESS, ["Hill", 1])))
    assert isinstance(value, Struct)
    assert value.to_dict() == {
        "number": 1,
        "street": {"int": None, "string": "Hill"},
        "city": "Ulm",
        "zip": None,
    }
    missing = {"type": "record", "name": "A", "fields": [{"name": "number", "type": "int"}]}
    converter = avro(use_latest_version="true")
    converter.register(missing, SchemaKind.AVRO)
    with pytest.raises(DataError, match='has no field "street"'):
        converter.write(ADDRESS, Struct(ADDRESS, ["Hill", 1]))


def test_a_schema_that_may_not_be_registered_says_what_to_do() -> None:
    converter = avro(auto_register_schemas="false")
    with pytest.raises(DataError, match=r"hint: set auto\.register\.schemas=true"):
        converter.write(STRING, "x")
    converter.register('"string"', SchemaKind.AVRO)
    with pytest.raises(DataError, match="schema not found"):
        converter.write(INT32, 1)


MISFITS: list[tuple[ConnectSchema, object, str, str]] = [
    (INT32, "7", "schema with type INT32: str for value", ""),
    (INT8, 300, "schema with type INT8: int for value", ""),
    (FLOAT64, 7, "schema with type FLOAT64: int for value", ""),
    (FLOAT32, 1e300, "does not match its Avro schema", ""),
    (BYTES.as_optional(), "x", "schema with type BYTES: str for value", ""),
    (array(INT32), {"a": 1}, "schema with type ARRAY: dict for value", ""),
    (map_of(STRING, INT32), {1: 1}, "schema with type STRING: int for key of map value", ""),
    (decimal(1), Decimal("1.25"), "Schema has scale 1, value has scale 2.", ""),
    (ADDRESS, {"street": "x"}, "Mismatching struct schema", ""),
    (ADDRESS, Struct(ADDRESS, [7, None]), "schema with type STRING: int", 'field "street"'),
    (ADDRESS, Struct(ADDRESS, [None, None]), "Found null value for non-optional", 'field "street"'),
    (
        struct("line", {"ends": array(ADDRESS)}),
        Struct(struct("line", {"ends": array(ADDRESS)}), [[Struct(ADDRESS, ["x", "y"])]]),
        "schema with type INT32: str",
        'field "ends", field "number"',
    ),
]


@pytest.mark.parametrize(("schema", "value", "words", "at"), MISFITS)
def test_a_value_that_does_not_fit_says_what_and_where(
    schema: ConnectSchema, value: object, words: str, at: str
) -> None:
    with pytest.raises(DataError) as failed:
        avro().write(schema, value)
    assert failed.value.message.startswith("Failed to serialize Avro data from topic t : ")
    assert words in failed.value.message
    assert failed.value.at == at


@pytest.mark.parametrize(
    "data", [b"", b"\0", b"{}", b"\0\0\0\0\7x", b"\0\0\0\0\1", b"\0\0\0\0\1\2x", b"\0\0\0\0\2\1"]
)
def test_bytes_that_are_no_avro_are_refused(data: bytes) -> None:
    converter = avro()
    converter.register({"type": "array", "items": "string"}, SchemaKind.AVRO)
    converter.registry.register("u-value", Schema('{"type":"string"}', SchemaKind.JSON))
    with pytest.raises(DataError, match="Failed to deserialize data of Avro for topic t : "):
        converter.read(data)


def test_schemas_that_connect_has_not_are_refused() -> None:
    converter = avro()
    recursive = {
        "type": "record",
        "name": "Node",
        "fields": [{"name": "next", "type": ["null", "Node"]}],
    }
    for place, (written, words) in enumerate(
        [(recursive, "contains itself"), ("null", "Standalone null schemas are not supported")]
    ):
        schema_id = converter.register(
            written if isinstance(written, dict) else '"null"', SchemaKind.AVRO, f"s{place}"
        )
        with pytest.raises(DataError, match=words):
            converter.read(framed(schema_id, b"\0"))


class Away(MemoryRegistry):
    """A registry that does not answer."""

    def register(self, subject: str, schema: Schema, *, normalize: bool = False) -> int:
        raise RegistryError(503, "no address answers")

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        raise RegistryError(503, "no address answers")


def test_a_registry_that_does_not_answer_is_asked_again_later() -> None:
    converter = AvroConverter(Away())
    converter.configure({}, False)
    with pytest.raises(RetriableError, match="no address answers"):
        converter.from_connect_data("t", (), STRING, "x")
    registry = Away()
    super(Away, registry).register("t-value", Schema('"string"'))
    converter = AvroConverter(registry)
    converter.configure({}, False)
    with pytest.raises(RetriableError, match="no address answers"):
        converter.to_connect_data("t", (), framed(1, b"\0"))


def test_the_registry_is_asked_once_for_a_schema() -> None:
    converter = avro()
    for number in range(5):
        converter.read(converter.write(INT32, number))
    assert converter.registry.calls == ["register t-value", "schema 1", "lookup t-value"]


def test_settings_are_checked() -> None:
    with pytest.raises(
        ConfigError, match=r'Missing required configuration "schema\.registry\.url"'
    ):
        AvroConverter().configure({}, False)
    with pytest.raises(ConfigError, match="Invalid value Odd for configuration value"):
        avro(value_subject_name_strategy="Odd")
    url = {"schema.registry.url": "http://user:secret@127.0.0.1:1"}
    AvroConverter().configure(url, False)
    AvroConverter().configure(
        {**url, "basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "a:b"}, False
    )
    with pytest.raises(ConfigError, match=r"Invalid value \[hidden\] for configuration basic"):
        AvroConverter().configure(
            {**url, "basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "a"},
            False,
        )
