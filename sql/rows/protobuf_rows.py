"""PROTOBUF and PROTOBUF_NOSR: rows as ksqlDB's messages, with and without a registry.

A null field is not set. Whether it is read as null or as a default depends on the schema: see
sql/rows/protobuf_columns.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from google.protobuf.message import Message  # type: ignore[import-untyped]

from broker.errors import SchemaError, SerdeError
from broker.serde.registry.api import SchemaRegistry
from broker.serde.schema.protobuf_schema import ProtobufSchema, parse_protobuf
from broker.serde.schema.schema import ParsedSchema, Schema, SchemaKind
from broker.serde.serde import Serde, cannot_decode, cannot_encode
from broker.serde.wire_format import PREFIX_BYTES, frame, frame_indexes, read_indexes
from sql.datatypes import Column
from sql.rows.mismatch import undecodable, unencodable
from sql.rows.none_rows import NullSerde
from sql.rows.protobuf_columns import Nulls, protobuf_columns, protobuf_text
from sql.rows.protobuf_decoding import row_reader
from sql.rows.protobuf_encoding import row_writer
from sql.rows.registered_rows import placed, registered_rows
from sql.rows.row_format import Nullable, Row, RowFormat, RowOptions

FIRST_MESSAGE: tuple[int, ...] = (0,)
FIRST_MESSAGE_BYTES = frame_indexes(FIRST_MESSAGE)
_NULLS = {
    Nullable.NONE: Nulls.NOTHING,
    Nullable.OPTIONAL: Nulls.OPTIONAL,
    Nullable.WRAPPER: Nulls.WRAPPER,
}


class ProtobufRows(RowFormat):
    """The format PROTOBUF."""

    name = "PROTOBUF"

    def serde(
        self,
        columns: Sequence[Column],
        options: RowOptions,
        registry: SchemaRegistry | None = None,
    ) -> Serde[Row]:
        """A serde of rows of these columns."""
        if options.is_key and not columns:
            return NullSerde()
        _check_wrapped(self.name, options)
        return registered_rows(_ProtobufCodec(tuple(columns), options), options, registry)

    def schema_of(self, columns: Sequence[Column], options: RowOptions) -> Schema:
        """The schema that ksqlDB registers for such columns."""
        return Schema(_parsed(columns, options).canonical, SchemaKind.PROTOBUF)

    def columns_of(self, schema: ParsedSchema, options: RowOptions) -> tuple[Column, ...]:
        """The fields of the named message, or of the first one."""
        _check_wrapped(self.name, options)
        found = _protobuf(schema)
        name = options.full_name or found.default_message
        found.indexes_of(name)
        message = found.pool.FindMessageTypeByName(name)
        return protobuf_columns(message, upper=options.schema_id is None)


class ProtobufNosrRows(RowFormat):
    """The format PROTOBUF_NOSR: only the message; both sides know the field numbers."""

    name = "PROTOBUF_NOSR"

    def serde(
        self,
        columns: Sequence[Column],
        options: RowOptions,
        registry: SchemaRegistry | None = None,
    ) -> Serde[Row]:
        """A serde of rows of these columns."""
        if options.is_key and not columns:
            return NullSerde()
        _check_wrapped(self.name, options)
        return _PlainRows(columns, options)


class _PlainRows:
    """Rows as messages without a prefix."""

    def __init__(self, columns: Sequence[Column], options: RowOptions) -> None:
        message_class = _message_class(_parsed(columns, options), None)
        self._encode = row_writer(message_class, columns, b"")
        self._parse = message_class.FromString
        self._project = row_reader(message_class.DESCRIPTOR, columns)

    def serialize(self, topic: str, value: Row | None) -> bytes | None:
        """The row's bytes."""
        if value is None:
            return None
        try:
            return self._encode(value)
        except SerdeError as error:
            raise placed(error, topic) from error
        except ValueError as error:
            raise unencodable(topic, "PROTOBUF_NOSR", error) from error
        except Exception as error:  # a value of a wrong type may raise anything
            reason = f"{type(error).__name__}: {error}"
            raise cannot_encode(topic, "PROTOBUF_NOSR", reason) from error

    def deserialize(self, topic: str, data: bytes | None) -> Row | None:
        """The row of bytes."""
        if data is None:
            return None
        try:
            return self._project(self._parse(data))
        except SerdeError as error:
            raise placed(error, topic) from error
        except ValueError as error:
            raise undecodable(topic, "PROTOBUF_NOSR", error) from error
        except Exception as error:  # Google's DecodeError is a plain Exception
            reason = f"{type(error).__name__}: {error}"
            raise cannot_decode(topic, "PROTOBUF_NOSR", reason) from error


@dataclass(frozen=True, slots=True)
class _ProtobufCodec:
    columns: tuple[Column, ...]
    options: RowOptions
    name: str = "PROTOBUF"
    kind: SchemaKind = SchemaKind.PROTOBUF
    reads_any: bool = False

    def schema(self) -> Schema:
        return PROTOBUF.schema_of(self.columns, self.options)

    def encoder(self, schema: ParsedSchema, schema_id: int) -> Callable[[Row], bytes | None]:
        written = _protobuf(schema)
        message_class = _message_class(written, self.options.full_name)
        place = frame_indexes(written.indexes_of(message_class.DESCRIPTOR.full_name))
        return row_writer(message_class, self.columns, frame(schema_id) + place)

    def decoder(self, schema: ParsedSchema | None) -> Callable[[bytes], Row | None]:
        written = _protobuf(schema)
        columns = self.columns
        # By the message's indexes: as many as the schema has messages.
        known: dict[tuple[int, ...], Callable[[bytes], Row]] = {}

        def message_at(indexes: tuple[int, ...]) -> Callable[[bytes], Row]:
            message_class = written.message_class(indexes)
            parse, project = (
                message_class.FromString,
                row_reader(message_class.DESCRIPTOR, columns),
            )
            known[indexes] = result = lambda content: project(parse(content))
            return result

        def decode(data: bytes) -> Row:
            start, indexes = PREFIX_BYTES + 1, FIRST_MESSAGE
            if data[PREFIX_BYTES:start] != FIRST_MESSAGE_BYTES:
                indexes, start = read_indexes("", data)
            return (known.get(indexes) or message_at(indexes))(data[start:])

        return decode


def _parsed(columns: Sequence[Column], options: RowOptions) -> ProtobufSchema:
    return _parsed_once(tuple(columns), options.full_name, _NULLS[options.nullable])


# Parsing takes milliseconds, and a serde needs its schema more than once.
@lru_cache(maxsize=64)
def _parsed_once(columns: tuple[Column, ...], name: str | None, nulls: Nulls) -> ProtobufSchema:
    text = protobuf_text(columns, name=name, nulls=nulls)
    return parse_protobuf(text, {})


def _message_class(schema: ProtobufSchema, name: str | None) -> type[Message]:
    name = name or schema.default_message
    schema.indexes_of(name)
    try:
        return schema.message_class(name)
    except RecursionError:  # Google's library creates the classes of nested messages recursively
        raise SchemaError(f'the Protobuf message "{name}" is nested too deeply') from None


def _protobuf(schema: ParsedSchema | None) -> ProtobufSchema:
    if not isinstance(schema, ProtobufSchema):
        raise SchemaError("PROTOBUF is given a schema of another kind")
    return schema


def _check_wrapped(name: str, options: RowOptions) -> None:
    if not options.wrapped and not options.is_key:
        raise SchemaError(
            f"Format '{name}' does not support 'WRAP_SINGLE_VALUE' set to 'false'.",
            hint="Protobuf can only encode messages",
        )


PROTOBUF = ProtobufRows()
PROTOBUF_NOSR = ProtobufNosrRows()
