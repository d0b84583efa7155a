"""Kafka's JSON converter."""

import datetime
from decimal import Decimal

import orjson
import pytest
from hypothesis import given

from connect.converters.json_converter import JsonConverter
from connect.data import (
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    ConnectSchema,
    Struct,
    array,
    date,
    decimal,
    map_of,
    struct,
    time,
    timestamp,
)
from connect.errors import ConfigError, DataError
from tests.connect.converters.values import (
    ABSENT,
    ADDRESS,
    ANNA,
    CUSTOMER,
    NOON,
    PRESENT,
    Example,
    examples,
)


def converter(**settings: str) -> JsonConverter:
    """A converter with some settings; dots are written as underlines."""
    made = JsonConverter()
    made.configure({name.replace("_", "."): value for name, value in settings.items()}, False)
    return made


def payload_of(schema: ConnectSchema | None, value: object, **settings: str) -> object:
    """What is written beside the schema."""
    data = converter(**settings).from_connect_data("t", (), schema, value)
    assert data is not None
    return orjson.loads(data)["payload"]


def read(schema: object, payload: object, **settings: str) -> object:
    """The value of a payload."""
    data = orjson.dumps({"schema": schema, "payload": payload})
    return converter(**settings).to_connect_data("t", (), data)[1]


@pytest.mark.parametrize("example", PRESENT + ABSENT, ids=lambda example: example.name)
@pytest.mark.parametrize("form", ["BASE64", "NUMERIC"])
def test_every_type_comes_back_with_its_schema(example: Example, form: str) -> None:
    json = converter(decimal_format=form)
    data = json.from_connect_data("t", (), example.schema, example.value)
    found = [json.to_connect_data("t", (), data) for _ in range(2)]  # the second one is recognised
    assert found == [(example.schema, example.value)] * 2


@given(examples())
def test_what_is_written_is_read_again(example: Example) -> None:
    json = JsonConverter()
    data = json.from_connect_data("t", (), example.schema, example.value)
    assert json.to_connect_data("t", (), data) == (example.schema, example.value)


PAYLOADS: list[tuple[ConnectSchema, object, object]] = [
    (INT8, 7, 7),
    (FLOAT32, 1.100000023841858, 1.1),
    (FLOAT64, float("nan"), "NaN"),
    (FLOAT64, float("-inf"), "-Infinity"),
    (BYTES, b"abc", "YWJj"),
    (decimal(2), Decimal("1.25"), "fQ=="),
    (decimal(2), Decimal("1.5"), "AJY="),
    (date(), datetime.date(1970, 1, 2), 1),
    (time(), datetime.time(0, 0, 1, 5999), 1005),
    (timestamp(), datetime.datetime(1970, 1, 1, 0, 0, 1, tzinfo=datetime.UTC), 1000),
    (array(INT32), [1, 2], [1, 2]),
    (map_of(STRING, INT32), {"a": 1}, {"a": 1}),
    (map_of(INT32, INT32), {1: 2}, [[1, 2]]),
    (ADDRESS, Struct(ADDRESS, ["Hill", None]), {"street": "Hill", "number": None}),
]


@pytest.mark.parametrize(("schema", "value", "payload"), PAYLOADS)
def test_payloads_are_kafkas(schema: ConnectSchema, value: object, payload: object) -> None:
    assert payload_of(schema, value) == payload


def test_decimals_may_be_numbers_with_all_their_digits() -> None:
    numeric = converter(decimal_format="numeric", schemas_enable="false")
    many = Decimal("12345678901234567890.50")
    assert numeric.from_connect_data("t", (), decimal(2), many) == b"12345678901234567890.50"
    schema = (
        '{"type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}}'
    )
    data = f'{{"schema":{schema},"payload":12345678901234567890.50}}'.encode()
    assert str(converter().to_connect_data("t", (), data)[1]) == "12345678901234567890.50"


def test_the_envelope_is_kafkas() -> None:
    schema = struct("point", {"x": INT32.with_(default=1, doc="across"), "y": array(INT64)})
    point = schema.with_(version=3, parameters={"unit": "mm"}, optional=True)
    data = JsonConverter().from_connect_data("t", (), point, None)
    assert data == (
        b'{"schema":{"type":"struct","fields":['
        b'{"type":"int32","optional":false,"doc":"across","default":1,"field":"x"},'
        b'{"type":"array","items":{"type":"int64","optional":false},"optional":false,"field":"y"}],'
        b'"optional":true,"name":"point","version":3,"parameters":{"unit":"mm"}},"payload":null}'
    )


def test_without_schemas_there_is_only_the_payload() -> None:
    plain = converter(schemas_enable="false")
    data = plain.from_connect_data("t", (), CUSTOMER, ANNA)
    assert data is not None
    found = plain.to_connect_data("t", (), data)
    assert found == (None, orjson.loads(data))
    assert plain.to_connect_data("t", (), b"[1,2.5,null]") == (None, [1, 2.5, None])


def test_only_a_null_without_a_schema_is_a_tombstone() -> None:
    for enable in ("true", "false"):
        assert converter(schemas_enable=enable).from_connect_data("t", (), None, None) is None
    plain = converter(schemas_enable="false")
    assert plain.from_connect_data("t", (), OPTIONAL_STRING, None) == b"null"
    written = JsonConverter().from_connect_data("t", (), OPTIONAL_STRING, None)
    assert written == b'{"schema":{"type":"string","optional":true},"payload":null}'
    assert JsonConverter().to_connect_data("t", (), None) == (None, None)
    assert plain.to_connect_data("t", (), b"") == (None, None)


SCHEMALESS: list[tuple[object, bytes]] = [
    ({"a": [1, 2.5, True, None, "x"]}, b'{"a":[1,2.5,true,null,"x"]}'),
    (b"abc", b'"YWJj"'),
    ({1: "a"}, b'[[1,"a"]]'),
    ([float("inf"), float("nan"), None], b'["Infinity","NaN",null]'),
    ({"address": Struct(ADDRESS, ["Hill", 1])}, b'{"address":{"street":"Hill","number":1}}'),
]


@pytest.mark.parametrize(("value", "payload"), SCHEMALESS)
def test_values_without_a_schema_are_written_as_they_are(value: object, payload: bytes) -> None:
    plain = converter(schemas_enable="false")
    assert plain.from_connect_data("t", (), None, value) == payload
    data = JsonConverter().from_connect_data("t", (), None, value)
    assert data == b'{"schema":null,"payload":' + payload + b"}"
    assert JsonConverter().to_connect_data("t", (), data) == (None, orjson.loads(payload))


@pytest.mark.parametrize("value", [NOON, Decimal(1), {"a": [NOON]}, object()])
def test_a_value_that_needs_a_schema_is_refused_without_one(value: object) -> None:
    with pytest.raises(
        DataError, match=r"does not have corresponding schema type\.\n.*\n  hint: set a schema"
    ):
        JsonConverter().from_connect_data("t", (), None, value)


def test_a_null_is_replaced_by_its_default_both_ways() -> None:
    schema = struct("s", {"a": OPTIONAL_STRING.with_(default="x")})
    assert payload_of(schema, Struct(schema)) == {"a": "x"}
    assert payload_of(schema, Struct(schema), replace_null_with_default="false") == {"a": None}
    written = orjson.loads(
        JsonConverter().from_connect_data("t", (), schema, Struct(schema)) or b""
    )
    for payload in ({"a": None}, {}):
        assert read(written["schema"], payload) == Struct(schema, ["x"])
        kept = read(written["schema"], payload, replace_null_with_default="false")
        assert kept == Struct(schema, [None])


def test_defaults_of_every_type_come_back() -> None:
    fields = {
        f"f{place}": each.schema.with_(default=each.value) for place, each in enumerate(PRESENT)
    }
    schema = struct("defaults", fields)
    for form in ("BASE64", "NUMERIC"):
        json = converter(decimal_format=form)
        data = json.from_connect_data("t", (), schema, Struct(schema))
        expected = Struct(schema, [each.value for each in PRESENT])
        assert json.to_connect_data("t", (), data) == (schema, expected)


def test_a_fixed_schema_reads_payloads_alone() -> None:
    json = converter(schema_content='{"type":"struct","fields":[{"type":"int32","field":"a"}]}')
    schema, value = json.to_connect_data("t", (), b'{"a":5}')
    assert isinstance(value, Struct)
    assert (value.schema, value["a"]) == (schema, 5)
    with pytest.raises(DataError, match="Failed to parse schema in converter config"):
        converter(schema_content="{")


def test_spaces_and_order_of_the_envelope_have_no_meaning() -> None:
    json = JsonConverter()
    for data in (
        b'{"schema":{"type":"int32","optional":false},"payload":1}',
        b' { "payload" : 1, "schema" : { "optional":false, "type": "int32" } } ',
        b'{"schema":{"type":"int32","optional":false},"payload": 1 } ',
    ):
        assert json.to_connect_data("t", (), data) == (INT32, 1)


ENVELOPE = 'JsonConverter with schemas.enable requires "schema" and "payload" fields'
BAD_DATA: list[tuple[bytes, str]] = [
    (b'{"a":1}', ENVELOPE),
    (b"7", ENVELOPE),
    (b'{"schema":null,"payload":1,"more":2}', ENVELOPE),
    (b'{"schema":{"type":"int32","optional":false},"payload":1,"more":2}', ENVELOPE),
    (b'{"schema":{}', "Converting byte[] to Kafka Connect data failed due to serialization error"),
    (b'{"schema":{},"payload":1}', "Schema must contain 'type' field"),
    (b'{"schema":{"type":"int7"},"payload":1}', "Unknown schema type: int7"),
    (b'{"schema":{"type":"array"},"payload":1}', "did not specify the element type"),
    (b'{"schema":{"type":"map"},"payload":1}', "did not specify the key type"),
    (
        b'{"schema":{"type":"map","keys":{"type":"string"}},"payload":1}',
        "did not specify the value type",
    ),
    (b'{"schema":{"type":"struct"},"payload":1}', '"fields" argument is not an array.'),
    (
        b'{"schema":{"type":"struct","fields":[{"type":"int32"}]},"payload":1}',
        "Struct schema's field name not specified properly",
    ),
    (
        b'{"schema":{"type":"int32","parameters":{"a":1}},"payload":1}',
        "Schema parameters must have string values.",
    ),
]


@pytest.mark.parametrize(("data", "words"), BAD_DATA)
def test_bytes_that_are_no_envelope_say_what_is_wrong(data: bytes, words: str) -> None:
    json = JsonConverter()
    json.to_connect_data("t", (), b'{"schema":{"type":"int32","optional":false},"payload":1}')
    with pytest.raises(DataError) as failed:
        json.to_connect_data("t", (), data)
    assert words in failed.value.message
    assert failed.value.at == 'topic "t"'


def test_plain_json_gets_a_hint() -> None:
    with pytest.raises(DataError, match=r"hint: set value\.converter\.schemas\.enable=false"):
        JsonConverter().to_connect_data("t", (), b'{"a":1}')


BAD_PAYLOADS: list[tuple[object, object, str]] = [
    ({"type": "int8"}, 128, "type INT8: int for value"),
    ({"type": "int32"}, "7", "Invalid type for INT32: the JSON has STRING '7'"),
    ({"type": "int32"}, 1.5, "Invalid type for INT32: the JSON has NUMBER 1.5"),
    ({"type": "int32"}, None, "Invalid null value for required INT32 field"),
    ({"type": "string"}, 7, "Invalid type for STRING: the JSON has NUMBER 7"),
    ({"type": "boolean"}, 1, "Invalid type for BOOLEAN"),
    ({"type": "double"}, "x", "Invalid type for FLOAT64"),
    ({"type": "float"}, 1e300, "Invalid type for FLOAT32"),
    ({"type": "bytes"}, "?", "Invalid bytes field"),
    ({"type": "bytes"}, 7, "Invalid type for BYTES"),
    ({"type": "array", "items": {"type": "int32"}}, {}, "Invalid type for ARRAY"),
    (
        {"type": "map", "keys": {"type": "string"}, "values": {"type": "int32"}},
        [],
        "Maps with string fields should be encoded as JSON objects, but found ARRAY",
    ),
    (
        {"type": "map", "keys": {"type": "int32"}, "values": {"type": "int32"}},
        {},
        "Maps with non-string fields should be encoded as JSON array of tuples, but found OBJECT",
    ),
    (
        {"type": "map", "keys": {"type": "int32"}, "values": {"type": "int32"}},
        [1],
        "Found invalid map entry instead of array tuple: NUMBER",
    ),
    (
        {"type": "map", "keys": {"type": "int32"}, "values": {"type": "int32"}},
        [[1]],
        "Found invalid map entry, expected length 2 but found :1",
    ),
    (
        {"type": "struct", "fields": []},
        [],
        "Structs should be encoded as JSON objects, but found ARRAY",
    ),
    (
        {"type": "int32", "name": "org.apache.kafka.connect.data.Date"},
        "x",
        "Invalid type for Date, underlying representation should be integer but was STRING",
    ),
    (
        {"type": "int64", "name": "org.apache.kafka.connect.data.Timestamp"},
        2**62,
        "not in Python's calendar",
    ),
    (
        {"type": "int32", "name": "org.apache.kafka.connect.data.Time"},
        86_400_000,
        "Time values must use number of milliseconds greater than 0",
    ),
    (
        {"type": "bytes", "name": "org.apache.kafka.connect.data.Decimal"},
        "fQ==",
        "Invalid Decimal schema: scale parameter not found.",
    ),
]


@pytest.mark.parametrize(("schema", "payload", "words"), BAD_PAYLOADS)
def test_a_payload_that_does_not_fit_its_schema_is_refused(
    schema: object, payload: object, words: str
) -> None:
    with pytest.raises(DataError) as failed:
        read(schema, payload)
    assert words in failed.value.message


LINE = struct("line", {"ends": array(struct("point", {"x": INT32})), "width": INT32})
POINT = struct("point", {"x": INT32})
UNWRITABLE: list[tuple[ConnectSchema, object, str, str]] = [
    (INT32, "7", "schema with type INT32: str for value", 'topic "t"'),
    (INT32, None, "null value for field that is required and has no default value", 'topic "t"'),
    (STRING, 7, "schema with type STRING: int for value", 'topic "t"'),
    (FLOAT64, 7, "Invalid type for FLOAT64: int", 'topic "t"'),
    (FLOAT32, 1e300, "is out of range for FLOAT32", 'topic "t"'),
    (BYTES, "x", "Invalid type for bytes type: str", 'topic "t"'),
    (array(INT32), [1, "x"], "type INT32: str for value", 'topic "t", element 1'),
    (map_of(STRING, INT32), {"a": "x"}, "type INT32: str", "topic \"t\", element 'a'"),
    (decimal(1), 1.5, "Invalid type for Decimal, expected Decimal but was float", 'topic "t"'),
    (decimal(1), Decimal("1.25"), "Schema has scale 1, value has scale 2.", 'topic "t"'),
    (decimal(1), Decimal("NaN"), "the decimal number NaN cannot be written", 'topic "t"'),
    (decimal(1), Decimal("1e999999"), "cannot be written", 'topic "t"'),
    (timestamp(), NOON.replace(tzinfo=None), "with type INT64: datetime", 'topic "t"'),
    (date(), NOON, "with type INT32: datetime", 'topic "t"'),
    (POINT, Struct(LINE, [[], 1]), "Mismatching schema.", 'topic "t"'),
    (POINT, {"x": 1}, "Invalid type for STRUCT: dict", 'topic "t"'),
    (
        LINE,
        Struct(LINE, [[Struct(POINT, ["x"])], 1]),
        "type INT32: str",
        'topic "t", field "ends", element 0, field "x"',
    ),
]


@pytest.mark.parametrize(("schema", "value", "words", "at"), UNWRITABLE)
def test_a_value_that_does_not_fit_says_what_and_where(
    schema: ConnectSchema, value: object, words: str, at: str
) -> None:
    with pytest.raises(DataError) as failed:
        JsonConverter().from_connect_data("t", (), schema, value)
    assert words in failed.value.message
    assert failed.value.at == at


def test_a_string_that_is_not_unicode_is_an_error_of_the_data() -> None:
    with pytest.raises(DataError, match="Converting Kafka Connect data to byte"):
        JsonConverter().from_connect_data("t", (), STRING, "\ud800")


def test_numbers_are_read_as_the_schema_has_them() -> None:
    assert read({"type": "double"}, 1) == 1.0
    assert isinstance(read({"type": "double"}, 1), float)
    assert read({"type": "int32"}, 7.0) == 7
    assert read({"type": "float"}, 1.1) == 1.100000023841858
    assert str(read({"type": "double"}, "NaN")) == "nan"


def test_many_schemas_do_not_stay_in_memory() -> None:
    json = converter(schemas_cache_size="2")
    for number in range(9):
        schema = INT32.with_(version=number)
        data = json.from_connect_data("t", (), schema, number)
        assert json.to_connect_data("t", (), data) == (schema, number)
    assert len(json._encoders) <= 2


def test_headers_are_converted_too() -> None:
    json = JsonConverter()
    data = json.from_connect_header("t", "h", INT32, 7)
    assert json.to_connect_header("t", "h", data) == (INT32, 7)


def test_wrong_settings_are_refused_in_kafkas_words() -> None:
    with pytest.raises(ConfigError, match=r"Invalid value TEXT for configuration decimal\.format"):
        converter(decimal_format="TEXT")
    with pytest.raises(ConfigError, match="Value must be at least 1"):
        converter(schemas_cache_size="0")
