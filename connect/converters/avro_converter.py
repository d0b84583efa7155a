"""AvroConverter: Avro with a schema registry, as Confluent's converter."""

from typing import ClassVar, cast

from broker.serde.schema.avro_schema import AvroSchema
from broker.serde.schema.avro_tree import avro_tree
from broker.serde.schema.json_text import write_json
from broker.serde.schema.schema import ParsedSchema, Schema, SchemaKind
from broker.serde.wire_format import PREFIX_BYTES
from connect.config_def import ConfigDef, Importance
from connect.converters.avro_schemas import AvroOptions, avro_of, connect_of
from connect.converters.avro_values import decoder, encoder
from connect.converters.registry_converter import Decoder, Encode, RegistryConverter, SchemaFormat
from connect.converters.registry_settings import RegistrySettings, registry_definition
from connect.data import ConnectSchema


class AvroFormat(SchemaFormat):
    """Avro's binary encoding."""

    def __init__(self, options: AvroOptions) -> None:
        self._options = options

    def registered(self, schema: ConnectSchema) -> Schema:
        """The Avro schema for a schema of Connect."""
        return Schema(write_json(avro_of(schema, self._options)))

    def encoder(self, schema: ConnectSchema, written: ParsedSchema, prefix: bytes) -> Encode:
        """A function from values to bytes."""
        node = avro_tree(cast(AvroSchema, written).root)
        return encoder(schema, node, self._options, prefix)

    def decoder(self, written: ParsedSchema, data: bytes, version: int | None) -> Decoder:
        """A function from bytes to values."""
        root = cast(AvroSchema, written).root
        node = avro_tree(root)  # refuses recursive schemas, which Connect does not support
        schema = connect_of(root, self._options, version)
        decode = decoder(schema, node, skip=PREFIX_BYTES)
        return Decoder(data[:PREFIX_BYTES], schema, decode)


_FLAGS = (
    ("enhanced.avro.schema.support", False, "Whether enums and full names are preserved."),
    (
        "scrub.invalid.names",
        False,
        "Whether names that are invalid in Avro are replaced with valid ones.",
    ),
    ("connect.meta.data", True, "Whether Connect's metadata is stored in schema properties."),
    ("allow.optional.map.keys", False, "Whether maps with optional string keys are Avro maps."),
    (
        "ignore.default.for.nullables",
        False,
        "Whether null is written for fields that have a default.",
    ),
)


class AvroConverter(RegistryConverter):
    """Keys and values as Avro, with schemas in a registry."""

    kind: ClassVar[SchemaKind] = SchemaKind.AVRO
    label: ClassVar[str] = "Avro"
    names_hint: ClassVar[str] = "set scrub.invalid.names=true to replace invalid names"
    definition: ClassVar[ConfigDef] = registry_definition(_FLAGS, Importance.LOW)

    def format(self, settings: RegistrySettings) -> SchemaFormat:
        """The format with these settings."""
        return AvroFormat(
            AvroOptions(
                enhanced=settings.is_on("enhanced.avro.schema.support"),
                scrub=settings.is_on("scrub.invalid.names"),
                meta_data=settings.is_on("connect.meta.data"),
                optional_map_keys=settings.is_on("allow.optional.map.keys"),
                ignore_default_for_nullables=settings.is_on("ignore.default.for.nullables"),
            )
        )
