"""RegistryConverter: values with the id of a schema in a registry, in Confluent's format.

    byte 0         0
    bytes 1 to 4   the schema's id, big-endian
    the rest       the value; in Protobuf, the indexes of the message are before it

Encoders and decoders are created once: for the schema of written records, and for the id of read
records.
"""

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from broker.errors import MillstreamError, RegistryError, SchemaError, SerdeError
from broker.serde.framing import ParsedSchemas
from broker.serde.registry.api import SchemaRegistry
from broker.serde.schema.schema import ParsedSchema, Schema, SchemaKind
from broker.serde.subjects import SubjectSchemas, is_refusal
from broker.serde.wire_format import PREFIX_BYTES, frame, schema_id_of
from connect.config_def import ConfigDef
from connect.converters.compiled import Compiled
from connect.converters.registry_settings import (
    RegistrySettings,
    open_registry,
    parse_registry_settings,
)
from connect.converters.settings import Found
from connect.data import ConnectSchema, schema_of
from connect.errors import ConnectError, DataError, RetriableError
from connect.records import Header

Encode = Callable[[object], bytes]
_MESSAGES_MAX = 100
_WRONG_BYTES = (
    *(ValueError, TypeError, IndexError, EOFError, KeyError, OverflowError),
    struct.error,
)


@dataclass(frozen=True, slots=True)
class Decoder:
    """A function that decodes bytes; `front` are the bytes before the value, including the id."""

    front: bytes
    schema: ConnectSchema | None
    decode: Callable[[bytes], object]


class SchemaFormat(ABC):
    """The functions of one schema language; SchemaError or DataError if they fail."""

    @abstractmethod
    def registered(self, schema: ConnectSchema) -> Schema:
        """The schema to register for values of a schema of Connect."""

    @abstractmethod
    def encoder(self, schema: ConnectSchema, written: ParsedSchema, prefix: bytes) -> Encode:
        """A function from values to bytes, by the registered schema."""

    @abstractmethod
    def decoder(self, written: ParsedSchema, data: bytes, version: int | None) -> Decoder:
        """A function from bytes to values; `version` is the schema's version in its subject."""


class RegistryConverter(ABC):
    """A converter with schemas in a registry."""

    kind: ClassVar[SchemaKind]
    label: ClassVar[str]
    names_hint: ClassVar[str] = ""
    null_has_bytes: ClassVar[bool] = False  # if it has a schema
    definition: ClassVar[ConfigDef]

    def __init__(self, registry: SchemaRegistry | None = None) -> None:
        """The default registry is that of the settings."""
        self._given = registry

    @abstractmethod
    def format(self, settings: RegistrySettings) -> SchemaFormat:
        """The format with these settings."""

    @classmethod
    def config(cls) -> ConfigDef:
        """The definition of its settings."""
        return cls.definition

    def configure(self, config: Mapping[str, object], is_key: bool) -> None:
        """Configures it; no request is sent to the registry yet."""
        if self._given is not None:
            config = {"schema.registry.url": "given", **config}
        settings = parse_registry_settings(self.definition, config, is_key)
        self._format = self.format(settings)
        self._subjects = SubjectSchemas(
            registry=open_registry(settings, self._given),
            subject=settings.subject,
            is_key=is_key,
            auto_register=settings.is_on("auto.register.schemas"),
            use_latest=settings.is_on("use.latest.version"),
            normalize=settings.is_on("normalize.schemas"),
        )
        self._schemas = ParsedSchemas(self.kind, self._subjects)
        capacity = settings.number("schemas.cache.config")
        self._registered = Compiled(self._format.registered, capacity=capacity)
        self._encoders = Compiled(self._open_encoder, capacity=capacity)
        # The id is part of the key: the latest schema may change with the next record.
        self._latest_encoders = Compiled(self._open_latest_encoder, capacity=capacity)
        # By topic and id; a Protobuf schema may have several messages.
        self._decoders: dict[tuple[str, bytes], tuple[Decoder, ...]] = {}
        self._capacity = capacity

    def from_connect_data(
        self, topic: str, headers: Sequence[Header], schema: ConnectSchema | None, value: object
    ) -> bytes | None:
        """The bytes of a value; None for null."""
        if value is None and (schema is None or (schema.optional and not self.null_has_bytes)):
            return None
        try:
            if schema is None:
                schema = _inferred(value)
            if self._subjects.use_latest:
                schema_id = self._find(topic, schema)[0]
                return self._latest_encoders[topic, schema, schema_id](value)
            return self._encoders[topic, schema](value)
        except MillstreamError as error:
            raise self._failed(f"serialize {self.label} data from", topic, error) from error

    def to_connect_data(self, topic: str, headers: Sequence[Header], data: bytes | None) -> Found:
        """The schema and value of bytes."""
        if data is None:
            return None, None
        try:
            for decoder in self._decoders.get((topic, data[:PREFIX_BYTES]), ()):
                if data.startswith(decoder.front):
                    return decoder.schema, decoder.decode(data)
            opened = self._open_decoder(topic, data)
            return opened.schema, opened.decode(data)
        except MillstreamError as error:
            raise self._failed(f"deserialize data of {self.label} for", topic, error) from error
        except _WRONG_BYTES as error:
            wrong = DataError(f"the bytes do not match their schema: {error}")
            raise self._failed(f"deserialize data of {self.label} for", topic, wrong) from error

    def _find(self, topic: str, schema: ConnectSchema) -> tuple[int, Schema]:
        registered = self._registered[schema]
        return self._subjects.find(
            topic, registered, self._schemas.parsed(registered).record_name()
        )

    def _open_encoder(self, key: tuple[str, ConnectSchema]) -> Encode:
        topic, schema = key
        schema_id, written = self._find(topic, schema)
        return self._format.encoder(schema, self._schemas.parsed(written), frame(schema_id))

    def _open_latest_encoder(self, key: tuple[str, ConnectSchema, int]) -> Encode:
        return self._open_encoder((key[0], key[1]))

    def _open_decoder(self, topic: str, data: bytes) -> Decoder:
        written = self._schemas.of_bytes(topic, data)
        opened = self._format.decoder(written, data, self._version(topic, data, written))
        if len(self._decoders) >= self._capacity:
            self._decoders.clear()
        key = (topic, data[:PREFIX_BYTES])
        self._decoders[key] = (opened, *self._decoders.get(key, ())[:_MESSAGES_MAX])
        return opened

    def _version(self, topic: str, data: bytes, written: ParsedSchema) -> int | None:
        """The version of a schema in its subject, which becomes that of Connect's schema."""
        registry = self._subjects.registry
        try:
            subject = self._subjects.subject_of(topic, written.record_name())
            schema = registry.schema(schema_id_of(topic, data), subject=subject)
            return registry.lookup(subject, schema).version
        except SerdeError:
            return None
        except RegistryError as error:
            if is_refusal(error):
                return None  # it is in another subject
            raise

    def _failed(self, what: str, topic: str, error: MillstreamError) -> ConnectError:
        message = f"Failed to {what} topic {topic} : {error.message}"
        if isinstance(error, RegistryError):
            return RetriableError(
                message, hint="check whether the schema registry is running and reachable"
            )
        if isinstance(error, DataError):
            return DataError(message, at=error.at, hint=error.hint)
        # The hints of other errors are for users of serdes.
        writing = what.startswith("serialize")
        if isinstance(error, SchemaError):
            return DataError(message, hint=self.names_hint if writing else "")
        return DataError(message, hint=_WRITING if writing else _READING)


_READING = "the topic may have another format; use the converter that it was written with"
_WRITING = (
    "set auto.register.schemas=true, or register a schema that is compatible "
    "with the other versions of its subject"
)


def _inferred(value: object) -> ConnectSchema:
    schema = schema_of(value)
    if schema is None:
        raise DataError(
            f"there is no schema for a {type(value).__name__}",
            hint="set a schema for the record: this format requires one",
        )
    return schema
