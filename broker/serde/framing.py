"""Framing: the encoder of a topic's values, and the decoder of bytes with a schema id."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

from broker.errors import MillstreamError, RegistryError, SchemaError, SerdeError
from broker.serde.registry.references import resolve_references
from broker.serde.schema.parsing import parse_schema
from broker.serde.schema.schema import ParsedSchema, Schema, SchemaKind
from broker.serde.serde import cannot_decode, cannot_encode
from broker.serde.subjects import SubjectSchemas, unknown_schema
from broker.serde.wire_format import PREFIX_BYTES, schema_id_of

Convert = Callable[[object], object]
Encode = Callable[[object], bytes]
Decode = Callable[[bytes], object]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

CACHE_ENTRIES_MAX = 10_000


class BoundedCache(dict[K, V], Generic[K, V]):
    """A dict that is cleared when it is full; reads are as fast as those of a dict."""

    __slots__ = ()

    def keep(self, key: K, value: V) -> V:
        """Store a value; racing threads store equal ones."""
        if len(self) >= CACHE_ENTRIES_MAX:
            self.clear()
        self[key] = value
        return value


class NotAllowed(ValueError):
    """A value that is invalid for its schema."""


class ParsedSchemas:
    """Schemas of one kind, each parsed once with its references."""

    __slots__ = ("_kind", "_known", "_subjects")

    def __init__(self, kind: SchemaKind, subjects: SubjectSchemas) -> None:
        """Schema text and references come from the registry."""
        self._kind = kind
        self._subjects = subjects
        self._known: BoundedCache[Schema, ParsedSchema] = BoundedCache()

    def parsed(self, schema: Schema) -> ParsedSchema:
        """The parsed schema; SchemaError if it is invalid."""
        found = self._known.get(schema)
        if found is None:
            resolved = resolve_references(self._subjects.registry, schema)
            found = self._known.keep(schema, parse_schema(schema, resolved))
        return found

    def of_bytes(self, topic: str, data: bytes) -> ParsedSchema:
        """The schema of the encoded bytes."""
        schema_id = schema_id_of(topic, data)
        subject = self._subjects.subject_to_read(topic)
        try:
            schema = self._subjects.registry.schema(schema_id, subject=subject)
            if schema.kind is not self._kind:
                raise SerdeError(
                    f"the bytes are {schema.kind}, not {self._kind}",
                    at=f'topic "{topic}"',
                    hint=_OTHERS[schema.kind],
                )
            return self.parsed(schema)
        except RegistryError as error:
            raise unknown_schema(topic, schema_id, error) from error
        except SchemaError as error:
            raise wrong_schema(topic, schema_id, error) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Codec:
    """The functions of a format for a schema. The label is its name in errors."""

    label: str
    kind: SchemaKind
    open_encoder: Callable[[int, ParsedSchema], Encode]
    open_decoder: Callable[[ParsedSchema], Decode]


class Framing:
    """Creates functions once per topic or id; afterwards a record costs one dict lookup."""

    __slots__ = ("_by_id", "_by_topic", "_codec", "_decoders", "_given", "_schemas", "_subjects")

    def __init__(self, codec: Codec, subjects: SubjectSchemas, given: Schema | None) -> None:
        """A given schema without references is parsed now: SchemaError if it is invalid."""
        self._subjects = subjects
        self._schemas = ParsedSchemas(codec.kind, subjects)
        self._codec = codec
        self._given = given
        self._by_topic: BoundedCache[str, Encode] = BoundedCache()
        self._by_id: BoundedCache[int, Encode] = BoundedCache()
        self._decoders: BoundedCache[bytes, Decode] = BoundedCache()
        if given is not None and not given.references:
            codec.open_encoder(0, self.parsed(given))

    def serialize(self, topic: str, value: object) -> bytes | None:
        """The value's bytes with the id of the schema as prefix."""
        if value is None:
            return None
        encode = self._by_topic.get(topic)
        if encode is None:
            encode = self._encoder(topic)
        try:
            return encode(value)
        except MillstreamError:
            raise
        except NotAllowed as error:
            raise self._not_allowed(
                topic, "encode", "pass a value that the schema allows", error
            ) from error
        except Exception as error:  # values raise whatever their own types raise
            raise cannot_encode(topic, self._codec.label, _said(error)) from error

    def deserialize(self, topic: str, data: bytes | None) -> object:
        """The value of bytes, decoded with the schema of their id."""
        if data is None:
            return None
        decode = self._decoders.get(data[:PREFIX_BYTES])
        if decode is None:
            decode = self._decoder(topic, data)
        try:
            return decode(data)
        except MillstreamError:
            raise
        except NotAllowed as error:
            hint = "fix the producer that wrote it, or read with validate=False"
            raise self._not_allowed(topic, "decode", hint, error) from error
        except Exception as error:  # libraries have no common error for invalid bytes
            raise cannot_decode(topic, self._codec.label, _said(error)) from error

    def parsed(self, schema: Schema) -> ParsedSchema:
        """The parsed schema, with its references."""
        return self._schemas.parsed(schema)

    def _not_allowed(self, topic: str, verb: str, hint: str, error: NotAllowed) -> SerdeError:
        return SerdeError(
            f"cannot {verb} as {self._codec.label}: the schema does not allow it: {error}",
            at=f'topic "{topic}"',
            hint=hint,
        )

    def _encoder(self, topic: str) -> Encode:
        try:
            name = None if self._given is None else self.parsed(self._given).record_name()
            schema_id, schema = self._subjects.find(topic, self._given, name)
            encode = self._by_id.get(schema_id)
            if encode is None:
                opened = self._codec.open_encoder(schema_id, self.parsed(schema))
                encode = self._by_id.keep(schema_id, opened)
        except SchemaError as error:
            raise SerdeError(error.message, at=f'topic "{topic}"', hint=error.hint) from error
        if not self._subjects.use_latest:  # the latest may change with the next record
            self._by_topic.keep(topic, encode)
        return encode

    def _decoder(self, topic: str, data: bytes) -> Decode:
        writer = self._schemas.of_bytes(topic, data)
        try:
            opened = self._codec.open_decoder(writer)
        except SchemaError as error:
            raise wrong_schema(topic, schema_id_of(topic, data), error) from error
        return self._decoders.keep(data[:PREFIX_BYTES], opened)


def converted_encoder(encode: Encode, to_value: Convert | None) -> Encode:
    """An encoder that converts values first, if there is a conversion."""
    return encode if to_value is None else lambda value: encode(to_value(value))


def converted_decoder(decode: Decode, from_value: Convert | None) -> Decode:
    """A decoder that converts values afterwards, if there is a conversion."""
    return decode if from_value is None else lambda data: from_value(decode(data))


def wrong_schema(topic: str, schema_id: int, error: SchemaError) -> SerdeError:
    """The error for bytes whose registered schema cannot be used."""
    return SerdeError(
        f"the schema with id {schema_id} cannot be used: {error.message}",
        at=f'topic "{topic}"',
        hint=error.hint or "check which schema the registry has under this id",
    )


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


_OTHERS = {
    SchemaKind.AVRO: "read the topic with RegistryAvroSerde",
    SchemaKind.JSON: "read the topic with RegistryJsonSerde",
    SchemaKind.PROTOBUF: "read the topic with RegistryProtobufSerde",
}
