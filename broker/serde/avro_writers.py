"""Functions that write Avro faster than fastavro for values of exactly the expected types.

A function is made for each type once; fastavro looks at the schema again for each value. What they
write is what fastavro writes. All they do not know raises, whatever it is: a missing field that
has a default, a subclass, a number for a text. The caller then asks fastavro, which knows, and has
better words for what is wrong.
"""

import struct
from collections.abc import Callable
from typing import Any

from fastavro.write import LOGICAL_WRITERS

from broker.serde.schema.avro_types import RECORDS, AvroType

Write = Callable[[Any], bytes]  # Any: each checks the type itself

_SMALL_END = 4_096
_INT_END = 1 << 31
_LONG_END = 1 << 63
_pack_float = struct.Struct("<f").pack
_pack_double = struct.Struct("<d").pack


class NotWritten(Exception):
    """A type or a value that is left to fastavro."""


def writer_of(root: AvroType) -> Write | None:
    """A function for values of a type; None when it is left to fastavro."""
    try:
        return _Writers().writer(root)
    except NotWritten:
        return None


def _varint(zigzag: int) -> bytes:
    if zigzag < 1 << 14:
        return bytes((zigzag & 127 | 128, zigzag >> 7))
    if zigzag < 1 << 21:
        return bytes((zigzag & 127 | 128, zigzag >> 7 & 127 | 128, zigzag >> 14))
    out = bytearray()
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


_SMALL = [bytes((each,)) if each < 128 else _varint(each) for each in range(_SMALL_END)]


_SIZES = _SMALL[::2]  # of strings
_SIZES_END = len(_SIZES)


def _size(count: int) -> bytes:
    return _SMALL[count << 1] if count << 1 < _SMALL_END else _varint(count << 1)


def _integer(end: int) -> Write:
    small, small_end, varint = _SMALL, _SMALL_END, _varint

    def write(value: Any) -> bytes:
        if type(value) is not int or not -end <= value < end:
            raise NotWritten
        zigzag = value << 1 ^ value >> 63
        return small[zigzag] if zigzag < small_end else varint(zigzag)

    return write


def _string(value: Any) -> bytes:
    if type(value) is not str:
        raise NotWritten
    data = value.encode()
    count = len(data)
    return (_SIZES[count] if count < _SIZES_END else _size(count)) + data


def _bytes(value: Any) -> bytes:
    if type(value) is not bytes:
        raise NotWritten
    return _size(len(value)) + value


def _boolean(value: Any) -> bytes:
    if type(value) is not bool:
        raise NotWritten
    return b"\1" if value else b"\0"


def _null(value: Any) -> bytes:
    if value is not None:
        raise NotWritten
    return b""


def _number(pack: Callable[[float], bytes]) -> Write:
    def write(value: Any) -> bytes:
        if type(value) is not float and type(value) is not int:
            raise NotWritten
        return pack(value)

    return write


_PRIMITIVES: dict[str, Write] = {
    "null": _null,
    "boolean": _boolean,
    "int": _integer(_INT_END),
    "long": _integer(_LONG_END),
    "float": _number(_pack_float),
    "double": _number(_pack_double),
    "bytes": _bytes,
    "string": _string,
}


class _Writers:
    """The writers of one schema; a recursive record finds the one that is being made."""

    def __init__(self) -> None:
        self._records: dict[int, list[tuple[str, Write]]] = {}

    def writer(self, node: AvroType) -> Write:
        plain = self._plain(node)
        logical = node.properties.get("logicalType")
        if logical is None:
            return plain
        if logical == "decimal" and node.decimal is None:
            raise NotWritten
        prepare = LOGICAL_WRITERS.get(f"{node.kind}-{logical}")
        if prepare is None:
            return plain
        schema = {**node.properties, "type": node.kind, "name": node.name, "size": node.size}
        return lambda value: plain(prepare(value, schema))

    def _plain(self, node: AvroType) -> Write:
        if node.kind in RECORDS:
            return self._record(node)
        match node.kind:
            case "enum":
                return {each: _size(at) for at, each in enumerate(node.symbols)}.__getitem__
            case "fixed":
                return _fixed(node.size)
            case "union":
                return self._optional(node)
        if node.element is not None:
            element = self.writer(node.element)
            return _array(element) if node.kind == "array" else _map(element)
        return _PRIMITIVES[node.kind]

    def _record(self, node: AvroType) -> Write:
        known = self._records.get(id(node))
        fields = [] if known is None else known
        if known is None:
            self._records[id(node)] = fields
            fields += [(each.name, self.writer(each.type)) for each in node.fields]
        join = b"".join

        def write(value: Any) -> bytes:
            if type(value) is not dict:
                raise NotWritten
            return join([write_field(value[name]) for name, write_field in fields])

        return write

    def _optional(self, node: AvroType) -> Write:
        """Null and one other type; which of several is meant is a matter for fastavro."""
        present = [each for each in node.branches if each.kind != "null"]
        if len(present) != 1 or len(node.branches) != 2:
            raise NotWritten
        null_at = 0 if node.branches[0].kind == "null" else 1
        null, some = _size(null_at), _size(1 - null_at)
        write_present = self.writer(present[0])

        def write(value: Any) -> bytes:
            if value is None:
                return null
            if type(value) is dict and "-type" in value:  # a hint at the branch that is meant
                raise NotWritten
            return some + write_present(value)

        return write


def _fixed(size: int) -> Write:
    def write(value: Any) -> bytes:
        if type(value) is not bytes or len(value) != size:
            raise NotWritten
        return value

    return write


def _array(element: Write) -> Write:
    join = b"".join

    def write(value: Any) -> bytes:
        if type(value) is not list:
            raise NotWritten
        if not value:
            return b"\0"
        return _size(len(value)) + join(map(element, value)) + b"\0"

    return write


def _map(element: Write) -> Write:
    def write(value: Any) -> bytes:
        if type(value) is not dict:
            raise NotWritten
        if not value:
            return b"\0"
        parts = [_size(len(value))]
        for key, each in value.items():
            parts.append(_string(key))
            parts.append(element(each))
        parts.append(b"\0")
        return b"".join(parts)

    return write
