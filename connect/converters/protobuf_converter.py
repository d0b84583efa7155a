"""ProtobufConverter: Protobuf with schemas in a registry, as Confluent's converter."""

from typing import ClassVar, cast

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

from broker.serde.schema.protobuf_schema import ProtobufSchema
from broker.serde.schema.schema import ParsedSchema, Schema, SchemaKind
from broker.serde.wire_format import frame_indexes, read_indexes
from connect.config_def import ConfigDef
from connect.converters.compiled import Convert
from connect.converters.protobuf_types import WRAPPERS, ProtobufOptions, connect_of, proto_of
from connect.converters.protobuf_values import from_message, to_fields
from connect.converters.registry_converter import Decoder, Encode, RegistryConverter, SchemaFormat
from connect.converters.registry_settings import RegistrySettings, registry_definition
from connect.data import ConnectSchema, Type, validate
from connect.errors import DataError


class ProtobufFormat(SchemaFormat):
    """Protobuf messages with the id of their schema and their message indexes."""

    def __init__(self, options: ProtobufOptions) -> None:
        self._options = options

    def registered(self, schema: ConnectSchema) -> Schema:
        """The .proto file for a schema of Connect."""
        return Schema(proto_of(schema, self._options).text, SchemaKind.PROTOBUF)

    def encoder(self, schema: ConnectSchema, written: ParsedSchema, prefix: bytes) -> Encode:
        """A function from values to bytes."""
        parsed = cast(ProtobufSchema, written)
        wanted = proto_of(schema, self._options).message
        name = wanted if wanted in parsed.message_names else parsed.default_message
        made = parsed.message_class(name)
        front = prefix + frame_indexes(parsed.indexes_of(name))
        if schema.type is Type.STRUCT:
            fields = to_fields(schema, made.DESCRIPTOR, self._options)
        else:
            fields = _wrapped(schema)

        def encode(value: object) -> bytes:
            try:
                return front + cast(bytes, made(**fields(value)).SerializeToString())
            except (TypeError, ValueError) as error:
                raise DataError(f"the value does not match its Protobuf schema: {error}") from error

        return encode

    def decoder(self, written: ParsedSchema, data: bytes, version: int | None) -> Decoder:
        """A function from bytes to values."""
        parsed = cast(ProtobufSchema, written)
        indexes, end = read_indexes("", data)
        made = parsed.message_class(indexes)
        message = made.DESCRIPTOR
        schema = connect_of(message, self._options, version)
        is_wrapper = message.full_name in WRAPPERS and schema.type is not Type.STRUCT
        convert = None if is_wrapper else from_message(schema, message)

        def decode(data: bytes) -> object:
            try:
                found = made.FromString(data[end:])
            except DecodeError as error:
                raise DataError(f"the bytes are not a valid Protobuf message: {error}") from error
            return found.value if convert is None else convert(found)

        return Decoder(data[:end], schema, decode)


def _wrapped(schema: ConnectSchema) -> Convert:
    def fields(value: object) -> dict[str, object]:
        validate(schema, value)
        return {"value": value}

    return fields


_FLAGS = (
    ("enhanced.protobuf.schema.support", False, "Whether full message names are preserved."),
    (
        "scrub.invalid.names",
        False,
        "Whether names that are invalid in Protobuf are replaced with valid ones.",
    ),
    ("optional.for.nullables", False, "Whether nullable fields are declared optional."),
    ("wrapper.for.nullables", False, "Whether nullable fields use wrapper messages."),
    (
        "wrapper.for.raw.primitives",
        True,
        "Whether a wrapper message at the root is read as a primitive.",
    ),
)


class ProtobufConverter(RegistryConverter):
    """Keys and values as Protobuf, with schemas in a registry."""

    kind: ClassVar[SchemaKind] = SchemaKind.PROTOBUF
    label: ClassVar[str] = "Protobuf"
    names_hint: ClassVar[str] = "set scrub.invalid.names=true to replace invalid names"
    definition: ClassVar[ConfigDef] = registry_definition(_FLAGS)

    def format(self, settings: RegistrySettings) -> SchemaFormat:
        """The format with these settings."""
        return ProtobufFormat(
            ProtobufOptions(
                enhanced=settings.is_on("enhanced.protobuf.schema.support"),
                scrub=settings.is_on("scrub.invalid.names"),
                optional_for_nullables=settings.is_on("optional.for.nullables"),
                wrapper_for_nullables=settings.is_on("wrapper.for.nullables"),
                wrapper_for_raw_primitives=settings.is_on("wrapper.for.raw.primitives"),
            )
        )
