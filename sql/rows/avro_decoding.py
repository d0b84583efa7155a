"""Columns of Avro's binary encoding, by functions prepared once for each writer's schema.

The values are read without their logical types (`broker/serde/avro_physical.py`), then put into the
places of the columns.
"""

from collections.abc import Callable, Sequence
from typing import cast

from broker.errors import SerdeError
from broker.serde.avro_flat_decoding import flat_reader, is_flat
from broker.serde.avro_physical import physical_reader
from broker.serde.schema.avro_tree import AvroNode
from sql.datatypes import STRING, ArrayType, Column, DataType, DecimalType, MapType, StructType
from sql.numeric_types import fit_decimal
from sql.rows.avro_columns import avro_type
from sql.rows.coercion import Convert, coercion, mismatch, scaled
from sql.rows.row_format import Row

Decode = Callable[[bytes], Row | None]


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
