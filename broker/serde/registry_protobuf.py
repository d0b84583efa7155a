"""RegistryProtobufSerde: Protobuf with schemas in a registry, as Confluent's serializers."""

import base64
from collections.abc import Callable, Mapping
from typing import cast

from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    FileDescriptor,
)
from google.protobuf.message import Message  # type: ignore[import-untyped]

from broker.errors import MillstreamError, SchemaError, SerdeError
from broker.serde.declaration import as_schema
from broker.serde.framing import (
    BoundedCache,
    Convert,
    Decode,
    Encode,
    ParsedSchemas,
    converted_decoder,
    wrong_schema,
)
from broker.serde.registry.api import SchemaRegistry
from broker.serde.registry.cached_registry import CachedRegistry
from broker.serde.schema.protobuf_known import KNOWN_IMPORTS
from broker.serde.schema.protobuf_schema import ProtobufSchema
from broker.serde.schema.schema import Reference, Schema, SchemaKind
from broker.serde.serde import cannot_decode, cannot_encode
from broker.serde.subjects import SubjectSchemas, SubjectStrategy, topic_name
from broker.serde.wire_format import PREFIX_BYTES, frame, frame_indexes, read_indexes, schema_id_of

_INDEXES = PREFIX_BYTES + 1  # where indexes begin, after their count


class RegistryProtobufSerde:
    """Protobuf messages with the id of their schema and their message indexes.

        serde = RegistryProtobufSerde(HttpSchemaRegistry("http://127.0.0.1:8081"), Order)

    The schema is a generated class, the text of a .proto file, or None: then messages are written
    with the schemas of their own classes, and read as classes created from the registry's schemas.
    """

    def __init__(  # noqa: PLR0913 - one argument per option
        self,
        registry: SchemaRegistry,
        schema: type[Message] | Schema | str | None = None,
        *,
        message: str | None = None,
        is_key: bool = False,
        subject: SubjectStrategy = topic_name,
        auto_register: bool = True,
        use_latest: bool = False,
        normalize: bool = False,
        reader: type[Message] | None = None,
        to_value: Convert | None = None,
        from_value: Convert | None = None,
    ) -> None:
        """No request is sent before the first record.

        A class is registered with the files it imports, each under the subject of its name. A
        .proto file may declare several messages: `message` is the one to write, by default the
        first. Values are messages, or mappings of their fields. Records are read as the class
        `reader`, by default as the class given as schema, otherwise as the schema that they were
        written with.
        """
        if isinstance(schema, type):
            _check_class(schema)
        self._class: type[Message] | None = schema if isinstance(schema, type) else None
        given = None if schema is None or isinstance(schema, type) else schema
        self._given = None if given is None else as_schema(given, SchemaKind.PROTOBUF)
        self._message = message
        self._reader = self._class if reader is None else reader
        self._to_value = to_value
        self._from_value = from_value
        self._subjects = SubjectSchemas(
            registry=CachedRegistry.of(registry),
            subject=subject,
            is_key=is_key,
            auto_register=auto_register,
            use_latest=use_latest,
            normalize=normalize,
        )
        self._schemas = ParsedSchemas(SchemaKind.PROTOBUF, self._subjects)
        self._encoders: BoundedCache[tuple[str, type[object]], Encode] = BoundedCache()
        self._decoders: BoundedCache[bytes, Decode] = BoundedCache()
        if self._given is not None and not self._given.references:
            self._declared(self._given)

    def serialize(self, topic: str, value: object) -> bytes | None:
        """The message's bytes; the first record of a topic may register the schema."""
        if value is None:
            return None
        try:
            if self._to_value is not None:
                value = self._to_value(value)
            encode = self._encoders.get((topic, type(value)))
            if encode is None:
                encode = self._encoder(topic, value)
            return encode(value)
        except MillstreamError:
            raise
        except Exception as error:  # values raise whatever their own types raise
            reason = f"{type(error).__name__}: {error}"
            raise cannot_encode(topic, "Protobuf", reason) from error

    def deserialize(self, topic: str, data: bytes | None) -> object:
        """The message of bytes."""
        if data is None:
            return None
        # Correct if each index takes one byte; otherwise the key is not found, and they are read.
        decode = (
            self._decoders.get(data[: _INDEXES + (data[PREFIX_BYTES] >> 1)])
            if len(data) > PREFIX_BYTES
            else None
        )
        if decode is None:
            decode = self._decoder(topic, data)
        try:
            return decode(data)
        except MillstreamError:
            raise
        except Exception as error:  # a converter may raise anything
            reason = f"{type(error).__name__}: {error}"
            raise cannot_decode(topic, "Protobuf", reason) from error

    def _declared(self, schema: Schema) -> tuple[ProtobufSchema, str]:
        """A schema given as text, and the name of the message to write."""
        parsed = cast(ProtobufSchema, self._schemas.parsed(schema))
        name = self._message or parsed.default_message
        parsed.indexes_of(name)
        return parsed, name

    def _encoder(self, topic: str, value: object) -> Encode:
        try:
            opened = self._open_encoder(topic, value)
        except SchemaError as error:
            raise SerdeError(error.message, at=f'topic "{topic}"', hint=error.hint) from error
        if not self._subjects.use_latest:  # the latest may change with the next record
            self._encoders.keep((topic, type(value)), opened)
        return opened

    def _open_encoder(self, topic: str, value: object) -> Encode:
        if self._given is not None:
            _, name = self._declared(self._given)
            schema_id, schema = self._subjects.find(topic, self._given, name)
            written = cast(ProtobufSchema, self._schemas.parsed(schema))
            return _message_encoder(
                frame(schema_id) + frame_indexes(written.indexes_of(name)),
                written.message_class(name),
            )
        if self._class is None and isinstance(value, Mapping) and self._subjects.use_latest:
            return self._latest_encoder(topic)
        message_class = self._class or cast(type[Message], type(value))
        _check_class(message_class)
        descriptor = message_class.DESCRIPTOR
        if self._subjects.use_latest:
            schema_id, schema = self._subjects.find(topic, None, descriptor.full_name)
            written = cast(ProtobufSchema, self._schemas.parsed(schema))
            indexes = written.indexes_of(descriptor.full_name)
        else:
            schema = self._schema_of_file(descriptor.file, {})
            schema_id, _ = self._subjects.find(topic, schema, descriptor.full_name)
            indexes = _place(descriptor)
        return _message_encoder(frame(schema_id) + frame_indexes(indexes), message_class)

    def _latest_encoder(self, topic: str) -> Encode:
        """The encoder of mappings, if only the registry has the schema."""
        schema_id, schema = self._subjects.find(topic, None, self._message)
        written, name = self._declared(schema)
        prefix = frame(schema_id) + frame_indexes(written.indexes_of(name))
        return _message_encoder(prefix, written.message_class(name))

    def _schema_of_file(self, file: FileDescriptor, done: dict[str, Reference]) -> Schema:
        """The schema of a class's file, after the schemas of the files that it imports."""
        references = []
        for imported in file.dependencies:
            if imported.name in KNOWN_IMPORTS:
                continue
            if imported.name not in done:
                schema = self._schema_of_file(imported, done)
                done[imported.name] = self._subjects.refer(imported.name, schema)
            references.append(done[imported.name])
        text = base64.b64encode(file.serialized_pb).decode("ascii")
        return Schema(text, SchemaKind.PROTOBUF, tuple(references))

    def _decoder(self, topic: str, data: bytes) -> Decode:
        writer = cast(ProtobufSchema, self._schemas.of_bytes(topic, data))
        indexes, end = read_indexes(topic, data)
        known = self._decoders.get(data[:end])
        if known is not None:
            return known
        try:
            name = writer.name_at(indexes)
            written = writer.message_class(indexes)
        except SchemaError as error:
            raise wrong_schema(topic, schema_id_of(topic, data), error) from error
        read = _as_reader(topic, name, written, self._reader)

        def decode(data: bytes) -> object:
            return read(data[end:])

        return self._decoders.keep(data[:end], converted_decoder(decode, self._from_value))


def _message_encoder(prefix: bytes, message_class: type[Message]) -> Encode:
    full_name = message_class.DESCRIPTOR.full_name

    def encode(value: object) -> bytes:
        if isinstance(value, message_class):
            return prefix + cast(bytes, value.SerializeToString())
        if isinstance(value, Mapping):
            return prefix + cast(bytes, message_class(**value).SerializeToString())
        if isinstance(value, Message) and value.DESCRIPTOR.full_name == full_name:
            return prefix + cast(bytes, value.SerializeToString())
        raise TypeError(f'the value is a {_kind_of(value)}, not a message "{full_name}"')

    return encode


def _kind_of(value: object) -> str:
    if isinstance(value, Message):
        return f'message "{value.DESCRIPTOR.full_name}"'
    return type(value).__name__


def _as_reader(
    topic: str, name: str, written: type[Message], reader: type[Message] | None
) -> Callable[[bytes], object]:
    if reader is None:
        return cast(Callable[[bytes], object], written.FromString)
    # Packages are sometimes renamed. Bytes of another message would be decoded without an error.
    if reader.DESCRIPTOR.name != name.rpartition(".")[2]:
        raise SerdeError(
            f'the record is a "{name}", not a "{reader.DESCRIPTOR.full_name}"',
            at=f'topic "{topic}"',
            hint="pass the right class; or read without a class, and distinguish messages by "
            "their DESCRIPTOR",
        )
    return cast(Callable[[bytes], object], reader.FromString)


def _place(descriptor: Descriptor) -> tuple[int, ...]:
    """The indexes of a message: in the file, then in each enclosing message."""
    outer = descriptor.containing_type
    if outer is None:
        names = list(descriptor.file.message_types_by_name)
        return (names.index(descriptor.name),)
    nested = [each.name for each in outer.nested_types]
    return (*_place(outer), nested.index(descriptor.name))


def _check_class(given: type[object]) -> None:
    if not issubclass(given, Message):
        raise SchemaError(
            f'"{given.__name__}" is not a Protobuf message class',
            hint="give a class that protoc generated, or the text of a .proto file",
        )
