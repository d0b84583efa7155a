"""JsonConverter: Kafka's JSON converter, with schemas beside the payload or without.

    schemas.enable=true     {"schema": {"type": "int32", "optional": false}, "payload": 7}
    schemas.enable=false    7

The text in front of the payload is the same for all records of a schema. It is written once, and
recognized without being parsed when it is read again.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import cast

import orjson

from connect.config_def import (
    CaseInsensitiveValidString,
    ConfigDef,
    ConfigType,
    Importance,
    Range,
    Width,
)
from connect.converters.compiled import Compiled, Convert, within
from connect.converters.json_decoding import InexactNumber, decoding
from connect.converters.json_encoding import encode_bytes, encoding
from connect.converters.json_envelope import schema_of_json, schema_to_json
from connect.converters.payload_options import PayloadOptions
from connect.converters.settings import Found, HeaderConversion, converter_settings, parse_settings
from connect.data import ConnectSchema, Struct
from connect.errors import DataError
from connect.records import Header

_SCHEMA = b'{"schema":'
_PAYLOAD = b',"payload":'
_END = ord("}")
_TOPICS_MAX = 1_000
_NO_SCHEMA = _SCHEMA + b"null" + _PAYLOAD

# Values that orjson does not support are converted by `_schemaless`, as in Kafka.
_PLAIN = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


class JsonConverter(HeaderConversion):
    """Keys, values and headers as JSON."""

    def __init__(self) -> None:
        self.configure({}, False)

    @classmethod
    def config(cls) -> ConfigDef:
        """The definition of its settings."""
        return _SETTINGS

    def configure(self, config: Mapping[str, object], is_key: bool) -> None:
        """Configures it."""
        settings = parse_settings(_SETTINGS, config, is_key)
        self._with_schemas = settings["schemas.enable"] is True
        self._options = PayloadOptions(
            numeric_decimals=str(settings["decimal.format"]).upper() == "NUMERIC",
            replace_null_with_default=settings["replace.null.with.default"] is True,
        )
        capacity = int(str(settings["schemas.cache.size"]))
        self._encoders: Compiled[ConnectSchema, Callable[[object], bytes]] = Compiled(
            self._encoder, capacity=capacity
        )
        self._decoders: Compiled[bytes, tuple[ConnectSchema | None, Convert | None]] = Compiled(
            self._decoder, capacity=capacity
        )
        # The text in front of a topic's latest payload, and its schema.
        self._latest: dict[str, tuple[bytes, ConnectSchema | None, Convert | None]] = {}
        self._content = self._fixed(settings["schema.content"])

    def from_connect_data(
        self, topic: str, headers: Sequence[Header], schema: ConnectSchema | None, value: object
    ) -> bytes | None:
        """The JSON of a value; None only if there is neither schema nor value."""
        try:
            if schema is not None:
                return self._encoders[schema](value)
            if value is None:
                return None
            payload = _schemaless_json(value)
            return _NO_SCHEMA + payload + b"}" if self._with_schemas else payload
        except DataError as error:
            raise within(f'topic "{topic}"', error) from error.__cause__
        except (TypeError, RecursionError) as error:
            raise DataError(
                "Converting Kafka Connect data to byte[] failed due to serialization error: "
                f"{error}",
                at=f'topic "{topic}"',
            ) from error

    def to_connect_data(self, topic: str, headers: Sequence[Header], data: bytes | None) -> Found:
        """The schema and value of JSON bytes."""
        if data is None:
            return None, None
        latest = self._latest.get(topic)
        if latest is not None and data.startswith(latest[0]) and data.endswith(b"}"):
            prefix, schema, decode = latest
            try:
                payload = orjson.loads(data[len(prefix) : -1])
                return schema, payload if decode is None else decode(payload)
            except (DataError, InexactNumber, orjson.JSONDecodeError):
                pass  # the slow path, which raises a better error
        try:
            return self._decoded(topic, data)
        except DataError as error:
            raise within(f'topic "{topic}"', error) from error.__cause__

    def from_connect_many(
        self, topic: str, schemas: Sequence[ConnectSchema | None], values: Sequence[object]
    ) -> Sequence[bytes | None]:
        """The JSON of many values."""
        schema = schemas[0]
        if schema is not None and schemas.count(schema) == len(schemas):
            return list(map(self._encoders[schema], values))
        if schema is None and values.count(None) == schemas.count(None) == len(values):
            return [None] * len(values)
        convert = self.from_connect_data
        return [
            convert(topic, (), each, value) for each, value in zip(schemas, values, strict=True)
        ]

    def to_connect_many(
        self, topic: str, data: Sequence[bytes | None]
    ) -> tuple[Sequence[ConnectSchema | None], Sequence[object]]:
        """The schemas and values of many JSON values."""
        if data.count(None) == len(data):
            return [None] * len(data), [None] * len(data)
        latest = self._latest.get(topic)
        if latest is not None:
            prefix, schema, decode = latest
            begin, loads = len(prefix), orjson.loads
            try:
                if all(each and each.startswith(prefix) and each[-1] == _END for each in data):
                    payloads = [loads(each[begin:-1]) for each in cast("Sequence[bytes]", data)]
                    found = payloads if decode is None else list(map(decode, payloads))
                    return [schema] * len(data), found
            except (DataError, InexactNumber, orjson.JSONDecodeError):
                pass  # converted one by one
        convert = self.to_connect_data
        schemas, values = zip(*[convert(topic, (), each) for each in data], strict=True)
        return schemas, values

    def _encoder(self, schema: ConnectSchema) -> Callable[[object], bytes]:
        convert, dumps = encoding(schema, self._options).convert, orjson.dumps
        if not self._with_schemas:
            return lambda value: dumps(convert(value))
        prefix = _SCHEMA + dumps(schema_to_json(schema, self._options)) + _PAYLOAD
        return lambda value: prefix + dumps(convert(value)) + b"}"

    def _decoder(self, schema_text: bytes) -> tuple[ConnectSchema | None, Convert | None]:
        try:
            schema = schema_of_json(orjson.loads(schema_text), self._options)
        except InexactNumber:  # in a default
            exact = json.loads(schema_text, parse_float=Decimal)
            schema = schema_of_json(exact, self._options)
        return schema, None if schema is None else decoding(schema, self._options).convert

    def _fixed(self, content: object) -> tuple[ConnectSchema | None, Convert | None] | None:
        if not content:
            return None
        try:
            return self._decoder(str(content).encode())
        except orjson.JSONDecodeError as error:
            raise DataError(
                f"Failed to parse schema in converter config due to serialization error: {error}",
                hint="schema.content must be a schema in the form used in messages",
            ) from error

    def _decoded(self, topic: str, data: bytes) -> Found:
        whole = _loads(data)
        if not self._with_schemas:
            return None, whole
        if self._content is not None:
            schema, decode = self._content
            return schema, _value(decode, whole, data)
        if not isinstance(whole, dict) or whole.keys() != {"schema", "payload"}:
            raise DataError(
                'JsonConverter with schemas.enable requires "schema" and "payload" fields and may '
                "not contain additional fields. If you are trying to deserialize plain JSON data, "
                "set schemas.enable=false in your converter configuration.",
                hint="set value.converter.schemas.enable=false (and key.converter.schemas.enable)",
            )
        schema_text = _schema_text(data, whole["schema"])
        schema, decode = self._decoders[schema_text]
        prefix = _SCHEMA + schema_text + _PAYLOAD
        if data.startswith(prefix):
            if len(self._latest) >= _TOPICS_MAX:
                self._latest.clear()
            self._latest[topic] = (prefix, schema, decode)
        return schema, _value(decode, whole["payload"], data, "payload")


def _schema_text(data: bytes, schema: object) -> bytes:
    """The text of the schema, if it is in front of the payload."""
    text = data[len(_SCHEMA) : data.find(_PAYLOAD)]
    try:
        if data.startswith(_SCHEMA) and orjson.loads(text) == schema:
            return text
    except orjson.JSONDecodeError:
        pass
    return orjson.dumps(schema)


def _value(decode: Convert | None, payload: object, data: bytes, part: str = "") -> object:
    if decode is None:
        return payload
    try:
        return decode(payload)
    except InexactNumber:
        exact = json.loads(data, parse_float=Decimal)
        return decode(exact[part] if part else exact)


def _loads(data: bytes) -> object:
    if not data:
        return None  # as Jackson
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise DataError(
            f"Converting byte[] to Kafka Connect data failed due to serialization error: {error}",
            hint="the topic may have another format; use the converter that it was written with",
        ) from error


def _schemaless_json(value: object) -> bytes:
    try:
        data = orjson.dumps(value, _schemaless, _PLAIN)
    except TypeError as error:
        if isinstance(error.__cause__, DataError):
            raise error.__cause__ from None
        return orjson.dumps(_exact(value), _schemaless, _PLAIN)  # keys that are not strings
    # orjson writes null for NaN and infinities; without a null there is none of them.
    return orjson.dumps(_exact(value), _schemaless, _PLAIN) if b"null" in data else data


def _schemaless(value: object) -> object:
    match value:
        case bytes() | bytearray() | memoryview():
            return encode_bytes(value)
        case Struct():
            return encoding(value.schema, PayloadOptions()).convert(value)
    raise DataError(
        f"Python class {type(value).__name__} does not have corresponding schema type.",
        hint="set a schema for the record: the type of such a value cannot be inferred",
    )


def _exact(value: object) -> object:
    match value:
        case float() if not -float("inf") < value < float("inf"):
            return str(value).replace("inf", "Infinity").replace("nan", "NaN")
        case dict() if all(isinstance(key, str) for key in value):
            return {key: _exact(each) for key, each in value.items()}
        case dict():
            return [[_exact(key), _exact(each)] for key, each in value.items()]
        case list() | tuple():
            return [_exact(each) for each in value]
    return value


_SETTINGS = (
    converter_settings()
    .define(
        "schemas.enable",
        ConfigType.BOOLEAN,
        True,
        importance=Importance.HIGH,
        doc="Whether every message includes its schema.",
        group="Schemas",
        order=0,
        width=Width.MEDIUM,
        display_name="Enable Schemas",
    )
    .define(
        "schemas.cache.size",
        ConfigType.INT,
        1_000,
        validator=Range(1),
        importance=Importance.HIGH,
        doc="The maximum number of cached schemas.",
        group="Schemas",
        order=1,
        width=Width.MEDIUM,
        display_name="Schema Cache Size",
    )
    .define(
        "schema.content",
        ConfigType.STRING,
        None,
        importance=Importance.HIGH,
        doc="The schema of all messages that are read; the messages then do not include a schema.",
        group="Schemas",
        order=2,
        width=Width.MEDIUM,
        display_name="Schema Content",
    )
    .define(
        "decimal.format",
        ConfigType.STRING,
        "BASE64",
        validator=CaseInsensitiveValidString("BASE64", "NUMERIC"),
        importance=Importance.LOW,
        doc="The format of decimal numbers: BASE64 or NUMERIC. Both are accepted when reading.",
        group="Serialization",
        order=0,
        width=Width.MEDIUM,
        display_name="Decimal Format",
    )
    .define(
        "replace.null.with.default",
        ConfigType.BOOLEAN,
        True,
        importance=Importance.LOW,
        doc="Whether a null is replaced with the default of its schema, if there is one.",
        group="Serialization",
        order=1,
        width=Width.MEDIUM,
        display_name="Replace null with default",
    )
)
