"""RegisteredRows: rows whose bytes begin with the id of a schema in a registry."""

from collections.abc import Callable
from typing import Protocol

from broker.errors import MillstreamError, RegistryError, SchemaError, SerdeError
from broker.serde.registry.api import SchemaRegistry
from broker.serde.registry.references import resolve_references
from broker.serde.schema.parsing import parse_schema
from broker.serde.schema.schema import ParsedSchema, Schema, SchemaKind
from broker.serde.serde import cannot_decode, cannot_encode
from broker.serde.wire_format import PREFIX_BYTES, schema_id_of
from sql.rows.mismatch import undecodable, unencodable
from sql.rows.row_format import Row, RowOptions

Encode = Callable[[Row], bytes | None]
Decode = Callable[[bytes], Row | None]

NOT_FOUND = 404
# Bytes may contain arbitrary ids, and some formats do not validate them.
DECODERS_MAX = 1_000


class RowCodec(Protocol):
    """The functions of one format for rows with a given schema."""

    @property
    def name(self) -> str:
        """The SQL name of the format."""
        ...

    @property
    def kind(self) -> SchemaKind:
        """The kind of its schemas."""
        ...

    @property
    def reads_any(self) -> bool:
        """Whether bytes are decoded without their schema."""
        ...

    def schema(self) -> Schema:
        """The schema to register."""
        ...

    def encoder(self, schema: ParsedSchema, schema_id: int) -> Encode:
        """A function from rows to bytes with a prefix; SchemaError if the columns do not match."""
        ...

    def decoder(self, schema: ParsedSchema | None) -> Decode:
        """A function from bytes with a prefix to rows; SerdeError if the columns do not match."""
        ...


class RegisteredRows:
    """A serde of rows; its schema is registered under a topic's subject at the first write."""

    def __init__(self, codec: RowCodec, options: RowOptions, registry: SchemaRegistry) -> None:
        """A schema that is given by its id must have a field for each column."""
        self._codec = codec
        self._registry = registry
        self._suffix = "-key" if options.is_key else "-value"
        self._encoders: dict[str, Encode] = {}
        # By the whole prefix, so that a record costs one dict lookup.
        self._decoders: dict[bytes, Decode] = {}
        self._fixed: Encode | None = None
        self._any = codec.decoder(None) if codec.reads_any else None
        if options.schema_id is not None:
            self._fixed = codec.encoder(self._parsed(options.schema_id, None), options.schema_id)

    def serialize(self, topic: str, value: Row | None) -> bytes | None:
        """The row's bytes."""
        if value is None:
            return None
        encode = self._encoders.get(topic)
        if encode is None:
            encode = self._encoder(topic)
        try:
            return encode(value)
        except SerdeError as error:
            raise placed(error, topic) from error
        except ValueError as error:
            raise unencodable(topic, self._codec.name, error) from error
        except Exception as error:  # a value of a wrong type may raise anything
            raise cannot_encode(topic, self._codec.name, _shown(error)) from error

    def deserialize(self, topic: str, data: bytes | None) -> Row | None:
        """The row of bytes, even if their schema differs from the columns."""
        if data is None:
            return None
        decode = self._decoders.get(data[:PREFIX_BYTES])
        if decode is None:
            decode = self._decoder(topic, data)
        try:
            return decode(data)
        except SerdeError as error:
            raise placed(error, topic) from error
        except ValueError as error:
            raise undecodable(topic, self._codec.name, error) from error
        except Exception as error:  # libraries have no common error for invalid bytes
            raise cannot_decode(topic, self._codec.name, _shown(error)) from error

    def encoder(self, topic: str) -> Encode:
        """The equivalent of `serialize` for a topic; the schema is registered at the first row."""
        encoders, open_encoder = self._encoders, self._encoder

        def encode(row: Row) -> bytes | None:
            return (encoders.get(topic) or open_encoder(topic))(row)

        return encode

    def decoder(self, topic: str) -> Decode:
        """The equivalent of `deserialize` for a topic."""
        decoders, open_decoder = self._decoders, self._decoder

        def decode(data: bytes) -> Row | None:
            return (decoders.get(data[:PREFIX_BYTES]) or open_decoder(topic, data))(data)

        return decode

    def _encoder(self, topic: str) -> Encode:
        encode = self._fixed
        if encode is None:
            schema = self._codec.schema()
            schema_id = self._registry.register(f"{topic}{self._suffix}", schema)
            encode = self._codec.encoder(parse_schema(schema), schema_id)
        self._encoders[topic] = encode
        return encode

    def _decoder(self, topic: str, data: bytes) -> Decode:
        schema_id = schema_id_of(topic, data)
        try:
            decode = self._any or self._codec.decoder(
                self._parsed(schema_id, f"{topic}{self._suffix}")
            )
        except RegistryError as error:
            if error.status != NOT_FOUND:
                raise
            raise cannot_decode(topic, self._codec.name, error.message) from error
        except SchemaError as error:
            raise cannot_decode(topic, self._codec.name, error.message) from error
        except SerdeError as error:
            raise placed(error, topic) from error
        if len(self._decoders) >= DECODERS_MAX:
            self._decoders.clear()
        self._decoders[data[:PREFIX_BYTES]] = decode
        return decode

    def _parsed(self, schema_id: int, subject: str | None) -> ParsedSchema:
        schema = self._registry.schema(schema_id, subject=subject)
        if schema.kind is not self._codec.kind:
            raise SchemaError(
                f"schema {schema_id} is of kind {schema.kind}, not {self._codec.kind}",
                hint="use the format that the topic was written with",
            )
        try:
            return parse_schema(schema, resolve_references(self._registry, schema))
        except RecursionError:
            raise SchemaError(f"schema {schema_id} is nested too deeply") from None


def registered_rows(
    codec: RowCodec, options: RowOptions, registry: SchemaRegistry | None
) -> RegisteredRows:
    """The serde of a codec; SchemaError for columns that have no schema, or without a registry."""
    codec.schema()
    if registry is None:
        raise SchemaError(
            f"{codec.name} needs a schema registry",
            hint="configure one, or use a format without schemas",
        )
    return RegisteredRows(codec, options, registry)


def name_of_single(options: RowOptions) -> str | None:
    """The name of the only column, if a schema is that column and not a record of columns."""
    if options.is_key:
        return "ROWKEY"
    return None if options.wrapped else "ROWVAL"


def placed(error: MillstreamError, topic: str) -> SerdeError:
    """The same error with its topic."""
    return SerdeError(error.message, at=f'topic "{topic}"', hint=error.hint)


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
