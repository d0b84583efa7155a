"""Values of columns as Avro's binary encoding, by functions prepared once for each schema.

    int, long       zigzag varint           string, bytes   length as long, then the bytes
    float, double   4, 8 bytes, little      boolean         00 or 01
    record          its fields              enum            index of the symbol as int
    array           count as long, items, 00; empty: 00
    map             the same, each item a string and a value
    union           index of the branch as long, then the value

A null where the schema has none is the field's default, if that has one. fastavro would look for
the branch of each nullable field each time; here it is known.
"""

import struct
from collections.abc import Callable, Mapping, Sequence

from broker.errors import SchemaError, SerdeError
from broker.serde.schema.avro_tree import AvroNode, NodeField
from broker.serde.schema.avro_types import MISSING
from sql.datatypes import (
    BIGINT,
    INT,
    STRING,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from sql.rows.avro_columns import avro_type
from sql.rows.coercion import two_complement, unscaled

Write = Callable[..., bytes]

_VARINTS = [bytes((number,)) for number in range(128)]
_DOUBLE = struct.Struct("<d").pack
_FLOAT = struct.Struct("<f").pack
_END = b"\0"


def row_writer(node: AvroNode, columns: Sequence[Column], prefix: bytes) -> Write:
    """From a row to the bytes of a record, with a prefix."""
    places = {each.name: (f"[{index}]", each.type) for index, each in enumerate(columns)}
    return _record(node, places, prefix + _branch(node), "")


def single_writer(
    node: AvroNode, column: Column, prefix: bytes
) -> Callable[[Sequence[object]], bytes | None]:
    """From a row of one column to the bytes of its value alone; null is a tombstone."""
    write = _present(node, column.type, column.name)
    head = prefix + _branch(node)

    def write_single(row: Sequence[object]) -> bytes | None:
        value = row[0]
        return None if value is None else head + write(value)

    return write_single


def _record(
    node: AvroNode, places: Mapping[str, tuple[str, DataType]], head: bytes, path: str
) -> Write:
    """From a row or dict to a record's bytes; `places` say where the value of a field is."""
    if node.kind != "record":
        raise SchemaError(f"the Avro schema has {node.kind} where the columns are a record")
    missing = places.keys() - {each.name for each in node.fields}
    if missing:
        raise SchemaError(
            f'the Avro schema lacks field "{path}{min(missing)}"',
            hint=f"its fields are {', '.join(each.name for each in node.fields)}",
        )
    # One expression for all fields: names in it are ours, and what they stand for is bound here.
    bound: dict[str, object] = {"head": head, "join": b"".join}
    parts = ["head"]
    for index, each in enumerate(node.fields):
        place = places.get(each.name)
        if place is None:
            bound[f"null{index}"] = _without_column(each, path)
            parts.append(f"null{index}")
            continue
        bound[f"write{index}"] = _present(each.type, place[1], path + each.name)
        bound[f"branch{index}"] = _branch(each.type)
        bound[f"null{index}"] = _null(each, path)
        null = f"null{index}" if isinstance(bound[f"null{index}"], bytes) else f"null{index}()"
        parts.append(
            f"{null} if (value := row{place[0]}) is None else branch{index} + write{index}(value)"
        )
    made: Write = eval(f"lambda row: join(({', '.join(parts)},))", bound)
    return made


def _branch(node: AvroNode) -> bytes:
    """What is in front of a value that is there; branches of larger unions write their own."""
    if node.null_at is None or node.kind == "union":
        return b""
    return _varint(1 - node.null_at)


def _null(field: NodeField, path: str) -> bytes | Callable[[], bytes]:
    """The bytes of null, or of the default that is there instead."""
    node = field.type
    if node.null_at is not None:
        return _varint(node.null_at)
    if field.default is not MISSING:
        return _default(node, field.default)

    def refuse() -> bytes:
        raise SerdeError(
            f'field "{path}{field.name}" is null, but its Avro schema has neither null nor a '
            "default"
        )

    return refuse


def _without_column(field: NodeField, path: str) -> bytes:
    if field.default is not MISSING and field.default is not None:
        return _default(field.type, field.default)
    if field.type.null_at is None:
        raise SchemaError(
            f'the Avro schema has a field "{path}{field.name}" that has no column',
            hint="give the field a default, or make it nullable",
        )
    return _varint(field.type.null_at)


def _default(node: AvroNode, value: object) -> bytes:
    """The bytes of a default, which is JSON; in a union it is of the first branch."""
    if node.kind == "union":
        if value is None and node.null_at is not None:
            return _varint(node.null_at)
        first = node.fields[0]
        return _varint(1 if node.null_at == 0 else 0) + _default(first.type, value)
    if value is None and node.null_at is not None:
        return _varint(node.null_at)
    head = _branch(node)
    match node.kind, value:
        case "record", dict():
            return head + b"".join(
                _default(each.type, value[each.name])
                if each.name in value
                else _without_column(each, f"{node.name}.")
                for each in node.fields
            )
        case (("array" | "entries"), list()):
            return head + _block([_default(_entry(node), each) for each in value])
        case "map", dict() if node.item is not None:
            parts = [_string(key) + _default(node.item, each) for key, each in value.items()]
            return head + _block(parts)
        case "bytes", str():
            return head + _bytes(value.encode("latin-1"))
        case "fixed", str():
            return head + value.encode("latin-1")
        case _:
            return head + _scalar(node, avro_type(node))(value)


def _entry(node: AvroNode) -> AvroNode:
    if node.item is not None and node.kind == "array":
        return node.item
    return AvroNode("record", fields=node.fields)


def _present(node: AvroNode, data_type: DataType, path: str) -> Write:
    """From a value that is there to its bytes, without a branch in front."""
    match data_type:
        case ArrayType(element) if node.kind == "array" and node.item is not None:
            return _array(_nullable(node.item, element, path))
        case MapType(key, value) if node.item is not None and key is STRING:
            each = _nullable(node.item, value, path)
            if node.kind == "map":
                return _map(_string, each)
            if node.kind == "entries" and node.key is not None:
                first = node.fields[0].name == "key"
                return _map(_nullable(node.key, key, path), each, key_first=first)
        case StructType(fields) if node.kind == "union":
            return _union(node, {each.name: each.type for each in fields}, path)
        case StructType(fields):
            places = {each.name: (f".get({each.name!r})", each.type) for each in fields}
            return _record(node, places, b"", f"{path}.")
        case _ if node.item is None and not node.fields:
            found = avro_type(node)
            if found == data_type or (found is BIGINT and data_type is INT):
                return _scalar(node, data_type)
    raise SchemaError(
        f'the Avro schema has {node.logical or node.kind} for "{path}", which is {data_type}'
    )


def _nullable(node: AvroNode, data_type: DataType, path: str) -> Write:
    """The same for a value that may be null."""
    write, branch = _present(node, data_type, path), _branch(node)
    null = _null(NodeField("", node), path)
    if isinstance(null, bytes):
        return lambda value: null if value is None else branch + write(value)
    return lambda value: null() if value is None else write(value)


def _scalar(node: AvroNode, data_type: DataType) -> Write:
    if isinstance(data_type, DecimalType):
        return _decimal(node, data_type)
    if node.kind == "enum":
        return {each: _varint(index) for index, each in enumerate(node.symbols)}.__getitem__
    if node.kind == "fixed":
        return _fixed(node.size)
    return _SCALARS[node.kind]


def _decimal(node: AvroNode, data_type: DecimalType) -> Write:
    if node.kind == "fixed":
        size = node.size
        return lambda value: unscaled(value, data_type).to_bytes(size, "big", signed=True)
    return lambda value: _bytes(two_complement(unscaled(value, data_type)))


def _fixed(size: int) -> Write:
    def write(value: object) -> bytes:
        if not isinstance(value, bytes) or len(value) != size:
            raise SerdeError(f"a value is not {size} bytes long, as its Avro schema requires")
        return value

    return write


def _array(write: Write) -> Write:
    return lambda items: _block([write(each) for each in items])


def _map(write_key: Write, write: Write, *, key_first: bool = True) -> Write:
    if key_first:
        return lambda value: _block([write_key(key) + write(value[key]) for key in value])
    return lambda value: _block([write(value[key]) + write_key(key) for key in value])


def _block(items: list[bytes]) -> bytes:
    return b"".join([_varint(len(items)), *items, _END]) if items else _END


def _union(node: AvroNode, types: Mapping[str, DataType], path: str) -> Write:
    """Of a struct with one field for each branch, of which at most one is not null."""
    unknown = types.keys() - {each.name for each in node.fields}
    if unknown:
        raise SchemaError(f'the Avro union at "{path}" has no branch "{min(unknown)}"')
    writes: dict[str, tuple[bytes, Write]] = {}
    for index, each in enumerate(node.fields):
        if each.name in types:
            place = index + (node.null_at is not None and index >= node.null_at)
            writes[each.name] = (
                _varint(place),
                _present(each.type, types[each.name], f"{path}.{each.name}"),
            )

    def write(value: Mapping[str, object]) -> bytes:
        present = [name for name in writes if value.get(name) is not None]
        if len(present) == 1:
            branch, write_branch = writes[present[0]]
            return branch + write_branch(value[present[0]])
        if present or node.null_at is None:
            raise SerdeError(f'{len(present)} branches of the Avro union at "{path}" have values')
        return _varint(node.null_at)

    return write


def _varint(number: int) -> bytes:
    number = (number << 1) ^ (number >> 63)
    if 0 <= number < 128:
        return _VARINTS[number]
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def _int(value: int) -> bytes:
    if not -(1 << 31) <= value < 1 << 31:
        raise SerdeError(f"{value} is out of the range of an int")
    return _varint(value)


def _long(value: int) -> bytes:
    if not -(1 << 63) <= value < 1 << 63:
        raise SerdeError(f"{value} is out of the range of a long")
    return _varint(value)


def _boolean(value: bool) -> bytes:
    if value is True:
        return b"\1"
    if value is False:
        return b"\0"
    raise SerdeError(f"{value!r} is not a boolean")


def _bytes(value: bytes) -> bytes:
    return _varint(len(value)) + value


def _string(value: str) -> bytes:
    data = value.encode()
    return _varint(len(data)) + data


_SCALARS: dict[str, Write] = {
    "boolean": _boolean,
    "int": _int,
    "long": _long,
    "float": _FLOAT,
    "double": _DOUBLE,
    "bytes": _bytes,
    "string": _string,
}
