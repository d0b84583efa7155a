"""Avro's primitive types as bytes: functions that generated code calls.

int, long       zigzag varint           string, bytes   length as long, then the bytes
float, double   4, 8 bytes, little      boolean         00 or 01
record          its fields              enum            index of the symbol as int
array           count as long, items, 00; empty: 00
map             the same, each item a string and a value
union           index of the branch as long, then the value
"""

from collections.abc import Callable
from struct import Struct
from typing import Any

INT_END, LONG_END = 1 << 31, 1 << 63
GROUP_BITS = 14  # two bytes of a varint
GROUP = (1 << GROUP_BITS) - 1
SMALL_END = 64  # numbers from -64 on take one byte

# Any: each writer checks the type itself.
Write = Callable[[Any], bytes]
# Converts a value that does not have exactly the Python type of an Avro type.
Other = Callable[[str, Any], Any]

pack_float = Struct("<f").pack
pack_double = Struct("<d").pack


def _slowly(rest: int) -> bytes:
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


# Varints in steps of two bytes: the last two, and those before.
_LAST = [_slowly(rest) for rest in range(GROUP + 1)]
_MORE = [bytes((rest & 0x7F | 0x80, rest >> 7 | 0x80)) for rest in range(GROUP + 1)]


def _varint(rest: int) -> bytes:
    out = b""
    while rest > GROUP:
        out += _MORE[rest & GROUP]
        rest >>= GROUP_BITS
    return out + _LAST[rest]


def number(value: int) -> bytes:
    """A number of at most 64 bits."""
    return _varint(value << 1 ^ value >> 63)


# A number from -64 to 63 is its own index; negative ones count from the end.
SMALL = tuple(map(number, (*range(SMALL_END), *range(-SMALL_END, 0))))


def write_block(items: list[bytes]) -> bytes:
    """An array or map in one block, followed by the empty block."""
    return b"".join([_varint(len(items) << 1), *items, b"\0"]) if items else b"\0"


def primitive_writers(other: Other) -> dict[str, Write]:
    """A writer for each primitive type; `other` raises if a value cannot be written."""

    def write_boolean(value: Any) -> bytes:
        if value is not True and value is not False:
            value = other("boolean", value)
        return b"\1" if value else b"\0"

    def write_string(value: Any) -> bytes:
        data: bytes = (value if type(value) is str else other("string", value)).encode()
        size = len(data) << 1
        return (_LAST[size] if size <= GROUP else _varint(size)) + data

    def write_bytes(value: Any) -> bytes:
        data: bytes = value if type(value) is bytes else other("bytes", value)
        size = len(data) << 1
        return (_LAST[size] if size <= GROUP else _varint(size)) + data

    def write_null(value: Any) -> bytes:
        if value is not None:
            other("null", value)
        return b""

    return {
        "null": write_null,
        "boolean": write_boolean,
        "bytes": write_bytes,
        "string": write_string,
        "int": _integer_writer("int", INT_END, other),
        "long": _integer_writer("long", LONG_END, other),
        "float": _float_writer("float", pack_float, other),
        "double": _float_writer("double", pack_double, other),
    }


def _integer_writer(kind: str, end: int, other: Other) -> Write:
    def write(value: Any) -> bytes:
        if type(value) is not int or not -end <= value < end:
            value = other(kind, value)
        rest = value << 1 ^ value >> 63
        return _LAST[rest] if rest <= GROUP else _varint(rest)

    return write


def _float_writer(kind: str, pack: Callable[[float], bytes], other: Other) -> Write:
    return lambda value: pack(value if type(value) is float else other(kind, value))
