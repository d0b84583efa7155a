"""Columns of Avro's binary encoding, by functions prepared once for each writer's schema.

fastavro reads the bytes by a schema of the same bytes in which logical types are gone, so that
times stay whole numbers, and in which each branch of a union is a record of one field, so that it
is known which it was. What it read is then put into the places of the columns.
"""

import io
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import fastavro

from broker.client.serde.rows.avro_flat_decoding import flat_reader, is_flat
from broker.client.serde.rows.coercion import Convert, coercion, mismatch, scaled
from broker.client.serde.rows.row_format import Row
from broker.errors import SchemaError, SerdeError
from broker.schema.avro_columns import avro_type
from broker.schema.avro_tree import AvroNode, NodeField
from broker.schema.datatypes import (
    STRING,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from broker.schema.java_numbers import fit_decimal

Decode = Callable[[bytes], Row | None]
T = TypeVar("T")


def row_reader(node: AvroNode, columns: Sequence[Column], *, skip: int) -> Decode:
    """From the bytes of a record to a row; columns that the record has not are null."""
    if node.kind != "record":
        raise SerdeError(
            f"the Avro schema must be a record, not {node.kind}",
            hint="set WRAP_SINGLE_VALUE to false if the topic holds single values",
        )
    parts = _parts(node, [(each.name, each.type) for each in columns], "")
    if is_flat(node):
        # There a number's range is looked at while it is read.
        wanted = [(name, None if convert is _int else convert) for _, name, convert in parts]
        return flat_reader(node, wanted, skip=skip)
    project = _compiled(parts, "lambda record: ({})", "{value},", by_get=False)
    return physical_reader(node, cast(Callable[[object], Row], project), skip=skip)


def single_reader(node: AvroNode, column: Column, *, skip: int) -> Decode:
    """From the bytes of a value alone to a row of one column."""
    convert = _value(node, column.type, column.name)
    if convert is None:
        return physical_reader(node, lambda value: (value,), skip=skip)
    known = convert
    return physical_reader(node, lambda value: (known(value),), skip=skip)


def physical_reader(
    node: AvroNode, project: Callable[[object], T], *, skip: int
) -> Callable[[bytes], T | None]:
    """From bytes to what is made of their values; those have no logical types.

    The value of a union is a dict of one field, whose name is that of the branch.
    """
    try:
        schema = fastavro.parse_schema(_Physical().schema(node))
    except SchemaError:
        raise
    except Exception as error:  # fastavro raises whatever its dictionaries raise
        raise SchemaError(f"fastavro cannot use the schema: {error}") from error
    read, buffer = fastavro.schemaless_reader, io.BytesIO

    def decode(data: bytes) -> T | None:
        source = buffer(data)
        source.seek(skip)
        found = read(source, schema, None)
        if source.tell() != len(data):
            raise SerdeError(f"{len(data) - source.tell()} bytes are left after the Avro value")
        return None if found is None else project(found)

    return decode


class _Physical:
    """The schema of the same bytes for fastavro; each record in it has a name of its own."""

    def __init__(self) -> None:
        self.names = 0

    def schema(self, node: AvroNode) -> object:
        if node.kind == "union":
            branches: list[object] = [self._record((each,)) for each in node.fields]
            if node.null_at is not None:
                branches.insert(node.null_at, "null")
            return branches
        inner = self._present(node)
        if node.null_at is None:
            return inner
        return ["null", inner] if node.null_at == 0 else [inner, "null"]

    def _present(self, node: AvroNode) -> object:
        match node.kind:
            case "record":
                return self._record(node.fields)
            case "array" | "entries":
                item = node.item if node.kind == "array" else AvroNode("record", fields=node.fields)
                if item is None or not _takes_bytes(item):
                    raise SchemaError(
                        "the Avro schema has arrays whose items take no bytes",
                        hint="change the items of the array; a count would hold the same "
                        "information",
                    )
                return {"type": "array", "items": self.schema(item)}
            case "map" if node.item is not None:
                return {"type": "map", "values": self.schema(node.item)}
            case "enum":
                return {"type": "enum", "name": self._name(), "symbols": list(node.symbols)}
            case "fixed":
                return {"type": "fixed", "name": self._name(), "size": node.size}
            case _:
                return node.kind

    def _record(self, fields: Sequence[NodeField]) -> object:
        return {
            "type": "record",
            "name": self._name(),
            "fields": [{"name": each.name, "type": self.schema(each.type)} for each in fields],
        }

    def _name(self) -> str:
        self.names += 1
        return f"n{self.names}"


def _takes_bytes(node: AvroNode) -> bool:
    if node.null_at is not None and node.kind != "null":
        return True
    if node.kind == "record":
        return any(_takes_bytes(each.type) for each in node.fields)
    return node.kind != "null" and not (node.kind == "fixed" and node.size == 0)


# The name of a field and how its values are converted; no name stands for null.
Part = tuple[str, str | None, Convert | None]


def _parts(node: AvroNode, wanted: Sequence[tuple[str, DataType]], path: str) -> list[Part]:
    """For each column or field that is wanted what it is made of."""
    by_name = {each.name.upper(): each for each in node.fields}
    by_name.update({each.name: each for each in node.fields})
    parts: list[Part] = []
    for name, data_type in wanted:
        # Avro has no dots in names, so columns with them were written with _.
        field = by_name.get(name) or by_name.get(name.upper().replace(".", "_"))
        if field is None:
            parts.append((name, None, None))
        else:
            parts.append((name, field.name, _value(field.type, data_type, path + name)))
    return parts


def _compiled(parts: Sequence[Part], whole: str, item: str, *, by_get: bool) -> Convert:
    """One expression for all parts: names in it are ours or quoted."""
    bound: dict[str, object] = {}
    items = []
    for index, (name, field, convert) in enumerate(parts):
        value = f"record.get({field!r})" if by_get else f"record[{field!r}]"
        if field is None:
            value = "None"
        elif convert is not None:
            bound[f"convert{index}"] = convert
            value = f"None if (value := {value}) is None else convert{index}(value)"
        items.append(
            item.format(name=repr(name).replace("{", "{{").replace("}", "}}"), value=value)
        )
    made: Convert = eval(whole.replace("{}", " ".join(items)), bound)
    return made


def _value(node: AvroNode, wanted: DataType, path: str) -> Convert | None:
    """How what fastavro read becomes a value of a column; None leaves it as it is."""
    match wanted:
        case ArrayType(element) if node.kind == "array" and node.item is not None:
            return _list(_value(node.item, element, path))
        case MapType(key, value) if node.kind == "map" and node.item is not None:
            return _map(coercion(STRING, key, path), _value(node.item, value, path))
        case MapType(key, value) if node.item is not None and node.key is not None:
            return _entries(_value(node.key, key, path), _value(node.item, value, path))
        case StructType(fields) if node.kind in ("record", "union"):
            return _struct(node, [(each.name, each.type) for each in fields], path)
        case ArrayType() | MapType() | StructType():
            pass
        case _ if node.item is None and not node.fields and node.kind != "record":
            return _scalar(node, wanted, path)
    raise mismatch(f"Avro's {node.logical or node.kind}", wanted, path)


def _scalar(node: AvroNode, wanted: DataType, path: str) -> Convert | None:
    written = avro_type(node)
    convert = coercion(written, wanted, path)
    if isinstance(written, DecimalType) and isinstance(wanted, DecimalType):
        scale, from_bytes = written.scale, int.from_bytes
        return lambda data: fit_decimal(scaled(from_bytes(data, "big", signed=True), scale), wanted)
    if node.kind == "int":
        return _int if convert is None else convert
    return convert


def _int(value: int) -> int:
    # fastavro reads an int as it reads a long.
    if not -(1 << 31) <= value < 1 << 31:
        raise SerdeError(f"{value} is out of the range of an int")
    return value


def _list(convert: Convert | None) -> Convert | None:
    if convert is None:
        return None
    return lambda items: [None if each is None else convert(each) for each in items]


def _map(convert_key: Convert | None, convert: Convert | None) -> Convert | None:
    if convert_key is None and convert is None:
        return None
    key_of = convert_key or _same
    value_of = convert or _same
    return lambda given: {
        key_of(key): None if value is None else value_of(value) for key, value in given.items()
    }


def _entries(convert_key: Convert | None, convert: Convert | None) -> Convert:
    if convert_key is None and convert is None:
        return lambda entries: {each["key"]: each["value"] for each in entries}
    key_of, value_of = _or_null(convert_key), _or_null(convert)
    return lambda entries: {key_of(each["key"]): value_of(each["value"]) for each in entries}


def _struct(node: AvroNode, wanted: Sequence[tuple[str, DataType]], path: str) -> Convert | None:
    parts = _parts(node, wanted, f"{path}.")
    names = [each.name for each in node.fields]
    if [(name, name, None) for name in names] == parts and node.kind == "record":
        return None
    return _compiled(parts, "lambda record: {{}}", "{name}: {value},", by_get=node.kind == "union")


def _same(value: object) -> object:
    return value


def _or_null(convert: Convert | None) -> Convert:
    if convert is None:
        return _same
    return lambda value: None if value is None else convert(value)
