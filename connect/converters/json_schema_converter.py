"""JsonSchemaConverter: JSON with schemas in a registry, as Confluent's converter."""

import json
from decimal import Decimal
from typing import ClassVar, cast

import orjson

from broker.serde.schema.json_schema import JsonSchema
from broker.serde.schema.json_text import write_json
from broker.serde.schema.schema import ParsedSchema, Schema, SchemaKind
from broker.serde.wire_format import PREFIX_BYTES
from connect.config_def import CaseInsensitiveValidString, ConfigDef, ConfigType, Importance
from connect.converters.json_decoding import InexactNumber, decoding
from connect.converters.json_encoding import encoding
from connect.converters.json_schema_types import UNION_NAME, JsonSchemaOptions, connect_of, json_of
from connect.converters.payload_options import PayloadOptions
from connect.converters.registry_converter import Decoder, Encode, RegistryConverter, SchemaFormat
from connect.converters.registry_settings import RegistrySettings, registry_definition
from connect.data import ConnectSchema
from connect.errors import DataError


class JsonSchemaFormat(SchemaFormat):
    """JSON with the id of its schema as prefix."""

    def __init__(self, options: JsonSchemaOptions) -> None:
        self._options = options

    def registered(self, schema: ConnectSchema) -> Schema:
        """The JSON Schema for a schema of Connect."""
        return Schema(write_json(json_of(schema, self._options)), SchemaKind.JSON)

    def encoder(self, schema: ConnectSchema, written: ParsedSchema, prefix: bytes) -> Encode:
        """A function from values to bytes; the registered schema does not affect them."""
        convert, dumps = encoding(schema, self._options.payload).convert, orjson.dumps

        def encode(value: object) -> bytes:
            try:
                return prefix + dumps(convert(value))
            except (TypeError, RecursionError) as error:
                raise DataError(f"the value cannot be written as JSON: {error}") from error

        return encode

    def decoder(self, written: ParsedSchema, data: bytes, version: int | None) -> Decoder:
        """A function from bytes to values."""
        schema = connect_of(cast(JsonSchema, written), self._options, version)
        convert, loads = decoding(schema, self._options.payload).convert, orjson.loads

        def decode(data: bytes) -> object:
            payload = data[PREFIX_BYTES:]
            try:
                return convert(loads(payload))
            except InexactNumber:
                return convert(json.loads(payload, parse_float=Decimal))

        return Decoder(data[:PREFIX_BYTES], schema, decode)


_FLAGS = (
    ("object.additional.properties", True, "Whether objects may have additional properties."),
    (
        "use.optional.for.nonrequired",
        False,
        "Whether properties that are not required may be null.",
    ),
)
_DEFINITION = registry_definition(_FLAGS).define(
    "decimal.format",
    ConfigType.STRING,
    "BASE64",
    validator=CaseInsensitiveValidString("BASE64", "NUMERIC"),
    importance=Importance.LOW,
    doc="The format of decimal numbers: BASE64 or NUMERIC. Both are accepted when reading.",
)


class JsonSchemaConverter(RegistryConverter):
    """Keys and values as JSON, with schemas in a registry."""

    kind: ClassVar[SchemaKind] = SchemaKind.JSON
    label: ClassVar[str] = "JSON Schema"
    null_has_bytes: ClassVar[bool] = True
    definition: ClassVar[ConfigDef] = _DEFINITION

    def format(self, settings: RegistrySettings) -> SchemaFormat:
        """The format with these settings."""
        numeric = str(settings.values["decimal.format"]).upper() == "NUMERIC"
        return JsonSchemaFormat(
            JsonSchemaOptions(
                payload=PayloadOptions(
                    numeric_decimals=numeric, entries_as_objects=True, union_name=UNION_NAME
                ),
                additional_properties=settings.is_on("object.additional.properties"),
                optional_for_nonrequired=settings.is_on("use.optional.for.nonrequired"),
            )
        )
