"""Strings, bytes, numbers, UUIDs and booleans, as Java's serializers write them.

string   UTF-8                     float    4 bytes IEEE 754, big-endian
short    2 bytes, big-endian       double   8 bytes IEEE 754, big-endian
integer  4 bytes, big-endian       uuid     its text, 36 bytes
long     8 bytes, big-endian       boolean  one byte, 0 or 1
"""

from struct import Struct
from struct import error as StructError
from typing import cast
from uuid import UUID

from broker.serde.serde import cannot_decode, cannot_encode

SHORT = Struct(">h")
INTEGER = Struct(">i")
LONG = Struct(">q")
FLOAT = Struct(">f")
DOUBLE = Struct(">d")
# The fast path for usual values.
_pack_four, _unpack_four = INTEGER.pack, INTEGER.unpack
_pack_eight, _unpack_eight = LONG.pack, LONG.unpack
_pack_double, _unpack_double = DOUBLE.pack, DOUBLE.unpack
# Java writes every NaN with the same bits.
FLOAT_NAN = bytes.fromhex("7fc00000")
DOUBLE_NAN = bytes.fromhex("7ff8000000000000")


class StringSerde:
    """Strings as UTF-8."""

    def serialize(self, topic: str, value: str | None) -> bytes | None:
        """The UTF-8 bytes of the string."""
        if value is None:
            return None
        try:
            return value.encode()
        except (UnicodeEncodeError, AttributeError) as error:
            raise cannot_encode(topic, "string", str(error)) from error

    def deserialize(self, topic: str, data: bytes | None) -> str | None:
        """The string."""
        if data is None:
            return None
        try:
            return str(data, "utf-8")
        except UnicodeDecodeError as error:
            raise cannot_decode(topic, "string", str(error)) from error


class BytesSerde:
    """Bytes, unchanged."""

    def serialize(self, topic: str, value: bytes | None) -> bytes | None:
        """The same bytes."""
        if value is not None and not isinstance(value, bytes):
            raise cannot_encode(topic, "bytes", f"{type(value).__name__} is not bytes")
        return value

    def deserialize(self, topic: str, data: bytes | None) -> bytes | None:
        """The same bytes."""
        return data


def _pack_integer(layout: Struct, kind: str, topic: str, value: object) -> bytes | None:
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool):
        raise cannot_encode(topic, kind, f"{type(value).__name__} is not a whole number")
    try:
        return layout.pack(value)
    except StructError:
        raise cannot_encode(topic, kind, f"{value} has more than {8 * layout.size} bits") from None


def _unpack(layout: Struct, kind: str, topic: str, data: bytes | None) -> object:
    if data is None:
        return None
    if len(data) != layout.size:
        raise cannot_decode(topic, kind, f"{len(data)} bytes instead of {layout.size}")
    return layout.unpack(data)[0]


class ShortSerde:
    """16-bit integers."""

    def serialize(self, topic: str, value: int | None) -> bytes | None:
        """Two bytes."""
        return _pack_integer(SHORT, "short", topic, value)

    def deserialize(self, topic: str, data: bytes | None) -> int | None:
        """The number of two bytes."""
        return cast("int | None", _unpack(SHORT, "short", topic, data))


class IntegerSerde:
    """32-bit integers."""

    def serialize(self, topic: str, value: int | None) -> bytes | None:
        """Four bytes."""
        if type(value) is int and -(1 << 31) <= value < 1 << 31:
            return _pack_four(value)
        return _pack_integer(INTEGER, "integer", topic, value)

    def deserialize(self, topic: str, data: bytes | None) -> int | None:
        """The number of four bytes."""
        if data is not None and len(data) == INTEGER.size:
            found: int = _unpack_four(data)[0]
            return found
        return cast("int | None", _unpack(INTEGER, "integer", topic, data))


class LongSerde:
    """64-bit integers."""

    def serialize(self, topic: str, value: int | None) -> bytes | None:
        """Eight bytes."""
        if type(value) is int and -(1 << 63) <= value < 1 << 63:
            return _pack_eight(value)
        return _pack_integer(LONG, "long", topic, value)

    def deserialize(self, topic: str, data: bytes | None) -> int | None:
        """The number of eight bytes."""
        if data is not None and len(data) == LONG.size:
            found: int = _unpack_eight(data)[0]
            return found
        return cast("int | None", _unpack(LONG, "long", topic, data))


def _pack_float(layout: Struct, nan: bytes, topic: str, value: object) -> bytes | None:
    if value is None:
        return None
    kind = "float" if layout is FLOAT else "double"
    if not isinstance(value, (float, int)) or isinstance(value, bool):
        raise cannot_encode(topic, kind, f"{type(value).__name__} is not a number")
    if value != value:
        return nan
    try:
        return layout.pack(value)
    except (OverflowError, StructError) as error:
        raise cannot_encode(topic, kind, "the number is too large") from error


class FloatSerde:
    """Single-precision numbers; other values are rounded."""

    def serialize(self, topic: str, value: float | None) -> bytes | None:
        """Four bytes."""
        return _pack_float(FLOAT, FLOAT_NAN, topic, value)

    def deserialize(self, topic: str, data: bytes | None) -> float | None:
        """The number of four bytes."""
        return cast("float | None", _unpack(FLOAT, "float", topic, data))


class DoubleSerde:
    """Double-precision numbers."""

    def serialize(self, topic: str, value: float | None) -> bytes | None:
        """Eight bytes."""
        if type(value) is float and value == value:
            return _pack_double(value)
        return _pack_float(DOUBLE, DOUBLE_NAN, topic, value)

    def deserialize(self, topic: str, data: bytes | None) -> float | None:
        """The number of eight bytes."""
        if data is not None and len(data) == DOUBLE.size:
            found: float = _unpack_double(data)[0]
            return found
        return cast("float | None", _unpack(DOUBLE, "double", topic, data))


class UuidSerde:
    """UUIDs as strings."""

    def serialize(self, topic: str, value: UUID | None) -> bytes | None:
        """The string of 36 characters."""
        if value is None:
            return None
        if not isinstance(value, UUID):
            raise cannot_encode(topic, "uuid", f"{type(value).__name__} is not a UUID")
        return str(value).encode()

    def deserialize(self, topic: str, data: bytes | None) -> UUID | None:
        """The UUID of its string."""
        if data is None:
            return None
        try:
            return UUID(str(data, "utf-8"))
        except ValueError as error:
            raise cannot_decode(topic, "uuid", str(error)) from error


class BooleanSerde:
    """One byte, 0 or 1."""

    def serialize(self, topic: str, value: bool | None) -> bytes | None:
        """The byte."""
        if value is None:
            return None
        if not isinstance(value, bool):
            raise cannot_encode(topic, "boolean", f"{type(value).__name__} is not a boolean")
        return b"\1" if value else b"\0"

    def deserialize(self, topic: str, data: bytes | None) -> bool | None:
        """Whether the byte is 1."""
        if data is None:
            return None
        if data not in (b"\0", b"\1"):
            raise cannot_decode(topic, "boolean", f"{bytes(data[:8])!r} is neither 0 nor 1")
        return data == b"\1"
