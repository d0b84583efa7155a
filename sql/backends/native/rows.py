"""Rows as bytes: in topics in their formats, in stores and internal topics in a fast format.

    stored row, version 0    MessagePack array of the columns' values
    stored row, version n    0xC1, n as 2 bytes (big-endian), array as above

The version is the number of queries with other columns that were replaced on one store or topic:
see `earlier_rows` in sql/plan.py. No MessagePack value begins with 0xC1. Rows written before
versions existed have the format of version 0; they are identified by their number of columns.

In a topology a record's key is the tuple of its key columns (wrapped in its window, if keys have
windows), or None if a single column is null; its value is the row.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from operator import itemgetter
from typing import Any, TypedDict

import msgspec

from broker.serde import BindableSerde, Serde
from broker.serde.registry.api import SchemaRegistry
from broker.serde.serde import cannot_decode, cannot_encode
from sql.catalog import FormatInfo, WindowInfo
from sql.datatypes import ArrayType, Column, DataType, DecimalType, MapType, Primitive, StructType
from sql.rows.formats import format_of
from sql.rows.kafka_rows import KafkaRowSerde
from sql.rows.row_format import Nullable, Row, RowOptions
from sql.syntax.queries import WindowKind
from streams.serdes import SessionWindowedSerde, WindowedSerde

# Any: serdes of keys with and without windows.
AnySerde = Serde[Any]

_PYTHON_TYPES: dict[Primitive, type[object]] = {
    Primitive.BOOLEAN: bool,
    Primitive.INT: int,
    Primitive.BIGINT: int,
    Primitive.DOUBLE: float,
    Primitive.STRING: str,
    Primitive.BYTES: bytes,
    Primitive.TIME: int,
    Primitive.DATE: int,
    Primitive.TIMESTAMP: int,
}


def row_options(info: FormatInfo, *, is_key: bool) -> RowOptions:
    """The serde options for a format's WITH properties."""
    return RowOptions(
        is_key=is_key,
        wrapped=info.wrapped is not False,
        delimiter="," if info.delimiter is None else info.delimiter,
        full_name=info.full_name,
        schema_id=info.schema_id,
        nullable=Nullable.NONE if info.nullable is None else Nullable(info.nullable),
    )


def value_serde(
    info: FormatInfo, columns: Sequence[Column], registry: SchemaRegistry | None
) -> Serde[Row]:
    """The serde of a topic's values."""
    return format_of(info.name).serde(columns, row_options(info, is_key=False), registry)


def key_serde(
    info: FormatInfo,
    columns: Sequence[Column],
    registry: SchemaRegistry | None,
    window: WindowInfo | None = None,
) -> AnySerde:
    """The serde of a topic's keys, with their windows if they have any."""
    return windowed(plain_key_serde(info, columns, registry), window)


def plain_key_serde(
    info: FormatInfo, columns: Sequence[Column], registry: SchemaRegistry | None
) -> Serde[Row]:
    """The serde of keys without windows."""
    if not columns:
        return NoKeySerde()
    inner = format_of(info.name).serde(columns, row_options(info, is_key=True), registry)
    return SingleKeySerde(inner) if len(columns) == 1 else inner


def internal_key_serde(
    info: FormatInfo, columns: Sequence[Column], registry: SchemaRegistry | None
) -> Serde[Row]:
    """The serde of keys between steps: without names that the source has set for its format."""
    return plain_key_serde(replace(info, full_name=None, schema_id=None), columns, registry)


def windowed(inner: Serde[Row], window: WindowInfo | None) -> AnySerde:
    """The serde of keys with windows."""
    if window is None:
        return inner
    if window.kind is WindowKind.SESSION:
        return SessionWindowedSerde(inner)
    assert window.size_ms is not None, "only sessions have no size"
    return WindowedSerde(inner, window.size_ms)


class NoKeySerde:
    """Keys of a source without key columns: not read or written."""

    def serialize(self, topic: str, value: Row | None) -> bytes | None:
        """Always null."""
        return None

    def deserialize(self, topic: str, data: bytes | None) -> Row | None:
        """Always null."""
        return None


class SingleKeySerde:
    """Keys of one column: a null column is a null key."""

    def __init__(self, inner: Serde[Row]) -> None:
        self._inner = inner

    def serialize(self, topic: str, value: Row | None) -> bytes | None:
        """The column's bytes."""
        if value is None or value[0] is None:
            return None
        return self._inner.serialize(topic, value)

    def deserialize(self, topic: str, data: bytes | None) -> Row | None:
        """The column, or None."""
        row = self._inner.deserialize(topic, data)
        return None if row is None or row[0] is None else row

    def encoder(self, topic: str) -> Callable[[Row], bytes | None]:
        """The equivalent of `serialize` for a topic."""
        inner = self._inner
        encode = (
            inner.encoder(topic)
            if isinstance(inner, BindableSerde)
            else partial(inner.serialize, topic)
        )
        if isinstance(inner, KafkaRowSerde):
            return encode  # a null column also becomes a null record
        return lambda row: None if row[0] is None else encode(row)

    def decoder(self, topic: str) -> Callable[[bytes], Row | None]:
        """The equivalent of `deserialize` for a topic."""
        inner = self._inner
        decode: Callable[[bytes], Row | None] = (
            inner.decoder(topic)
            if isinstance(inner, BindableSerde)
            else partial(inner.deserialize, topic)
        )
        if isinstance(inner, KafkaRowSerde):
            return decode  # which only handles null records
        return lambda data: None if (row := decode(data)) is None or row[0] is None else row

    def chunk_decoder(self, topic: str) -> Callable[[Sequence[bytes]], list[Row | None]]:
        """The equivalent of `decoder` for many keys."""
        inner = self._inner
        if isinstance(inner, KafkaRowSerde):
            return inner.chunk_decoder(topic)
        decode = self.decoder(topic)
        return lambda data: list(map(decode, data))


class StoredRowSerde:
    """Rows in stores and internal topics: MessagePack, decoded by the types of the columns."""

    def __init__(self, types: Sequence[DataType]) -> None:
        self.encode = msgspec.msgpack.Encoder().encode
        parts = tuple(_python_type(each) for each in types)
        # Any: the types are created at run time.
        row: Any = tuple[parts] if parts else tuple[()]  # type: ignore[valid-type]
        self.decode: Callable[[bytes], Row] = msgspec.msgpack.Decoder(row).decode

    def serialize(self, topic: str, value: Row | None) -> bytes | None:
        """The row's bytes."""
        if value is None:
            return None
        try:
            return self.encode(value)
        except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as error:
            raise cannot_encode(topic, "stored row", str(error)) from error

    def deserialize(self, topic: str, data: bytes | None) -> Row | None:
        """The row."""
        if data is None:
            return None
        try:
            return self.decode(data)
        except (msgspec.MsgspecError, ValueError) as error:
            raise cannot_decode(topic, "stored row", str(error)) from error

    def encoder(self, topic: str) -> Callable[[Row], bytes | None]:
        """The equivalent of `serialize` for any topic."""
        return self.encode

    def decoder(self, topic: str) -> Callable[[bytes], Row | None]:
        """The equivalent of `deserialize` for any topic."""
        return self.decode


VERSIONED = 0xC1
VERSION_BYTES = 2
PREFIX_BYTES = 1 + VERSION_BYTES
ARRAY_16, ARRAY_32 = 0xDC, 0xDD  # the first bytes of MessagePack's longer arrays


class VersionedRowSerde:
    """Rows of a query that has replaced others: columns that old rows do not have are null."""

    def __init__(self, columns: Sequence[Column], earlier: Sequence[Sequence[Column]]) -> None:
        """Rows of these columns; `earlier` are the columns of previous versions, oldest first."""
        layouts = [*earlier, columns]
        self._prefix = bytes([VERSIONED]) + len(earlier).to_bytes(VERSION_BYTES, "big")
        self._current = StoredRowSerde([each.type for each in columns])
        self._readers = [_row_reader(each, columns) for each in layouts]
        self._by_length: dict[int, int] = {}
        for version, layout in enumerate(layouts):
            self._by_length.setdefault(len(layout), version)

    def serialize(self, topic: str, value: Row | None) -> bytes | None:
        """The row's bytes."""
        data = self._current.serialize(topic, value)
        return None if data is None else self._prefix + data

    def deserialize(self, topic: str, data: bytes | None) -> Row | None:
        """The row, with the current columns."""
        if data is None:
            return None
        try:
            return self._read(data)
        except (msgspec.MsgspecError, ValueError) as error:
            raise cannot_decode(topic, "stored row", str(error)) from error

    def encoder(self, topic: str) -> Callable[[Row], bytes | None]:
        """The equivalent of `serialize` for any topic."""
        prefix, encode = self._prefix, self._current.encode
        return lambda row: prefix + encode(row)

    def decoder(self, topic: str) -> Callable[[bytes], Row | None]:
        """The equivalent of `deserialize` for any topic."""
        prefix, decode, read = self._prefix, self._current.decode, self._read

        def decode_row(data: bytes) -> Row:
            return decode(data[PREFIX_BYTES:]) if data[:PREFIX_BYTES] == prefix else read(data)

        return decode_row

    def _read(self, data: bytes) -> Row:
        return self._readers[self._version(data)](data)

    def _version(self, data: bytes) -> int:
        if not data:
            raise ValueError("a stored row has no bytes")
        if data[0] != VERSIONED:
            return self._by_length.get(_array_length(data), 0)
        version = int.from_bytes(data[1:PREFIX_BYTES], "big")
        if version >= len(self._readers):
            raise ValueError(
                f"the row has version {version}, but this query only supports versions up to "
                f"{len(self._readers) - 1}"
            )
        return version


def _array_length(data: bytes) -> int:
    """The length of a MessagePack array; 0 for other bytes."""
    first = data[0]
    if first & 0xF0 == 0x90:
        return first & 0x0F
    if first in (ARRAY_16, ARRAY_32):
        return int.from_bytes(data[1 : 3 if first == ARRAY_16 else 5], "big")
    return 0


def _row_reader(columns: Sequence[Column], wanted: Sequence[Column]) -> Callable[[bytes], Row]:
    """A function that reads rows of some columns, with or without a version, as the wanted ones."""
    decode = StoredRowSerde([each.type for each in columns]).decode

    def read(data: bytes) -> Row:
        return decode(data[PREFIX_BYTES:] if data[0] == VERSIONED else data)

    if tuple(columns) == tuple(wanted):
        return read
    known = {each.name: place for place, each in enumerate(columns)}
    places = [known.get(each.name, -1) for each in wanted]
    if len(places) < 2:  # for one index itemgetter does not return a tuple
        return lambda data: tuple((*read(data), None)[place] for place in places)
    choose = itemgetter(*places)
    return lambda data: choose((*read(data), None))


def stored_rows(columns: Sequence[Column], earlier: Sequence[Sequence[Column]] = ()) -> Serde[Row]:
    """The serde of stored rows of these columns; there may also be rows of `earlier` columns."""
    if earlier:
        return VersionedRowSerde(columns, earlier)
    return StoredRowSerde([each.type for each in columns])


# Any: a type created at run time.
def _python_type(type_: DataType) -> Any:
    match type_:
        case Primitive():
            return _PYTHON_TYPES[type_] | None
        case DecimalType():
            return Decimal | None
        case ArrayType(element=element):
            return list[_python_type(element)] | None  # type: ignore[misc]
        case MapType(key=key, value=value):
            return dict[_python_type(key), _python_type(value)] | None  # type: ignore[misc]
        case StructType(fields=fields):
            parts = {each.name: _python_type(each.type) for each in fields}
            return TypedDict("STRUCT", parts, total=False) | None  # type: ignore[operator]
