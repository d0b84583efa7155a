"""Protobuf messages as rows: one expression takes the fields that columns are for."""

from collections.abc import Callable, Sequence
from keyword import iskeyword
from operator import attrgetter
from typing import cast

from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    EnumDescriptor,
    FieldDescriptor,
    OneofDescriptor,
)
from google.protobuf.message import Message  # type: ignore[import-untyped]

from broker.serde.schema.protobuf_fields import (
    entry_of,
    fields_outside,
    is_repeated,
    union_name,
    unions,
)
from sql.datatypes import (
    DATE,
    TIME,
    TIMESTAMP,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from sql.numeric_types import fit_decimal
from sql.rows.coercion import Convert, coercion, mismatch
from sql.rows.protobuf_columns import WRAPPERS, scalar_type
from sql.rows.protobuf_values import date_of, decimal_of, signed, time_of, timestamp_of
from sql.rows.row_format import Row

_TIMES: dict[DataType, Convert] = {DATE: date_of, TIME: time_of, TIMESTAMP: timestamp_of}
_UNSIGNED = frozenset({FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64})
_UNSIGNED_WRAPPER = "google.protobuf.UInt64Value"

Wanted = Sequence[tuple[str, DataType]]


def row_reader(message: Descriptor, columns: Sequence[Column]) -> Callable[[Message], Row]:
    """From a message to a row; columns that it has no fields for are null."""
    wanted = [(each.name, each.type) for each in columns]
    project = _compiled(message, wanted, "", "lambda message: ({})", "{value},")
    return cast(Callable[[Message], Row], project)


def _compiled(message: Descriptor, wanted: Wanted, path: str, whole: str, item: str) -> Convert:
    """One expression for all that is wanted: names in it are ours, quoted or identifiers."""
    by_name: dict[str, FieldDescriptor | OneofDescriptor] = {}
    every = [(union_name(each), each) for each in unions(message)]
    every.extend((each.name, each) for each in fields_outside(message))
    by_name.update({name.upper(): each for name, each in every})
    by_name.update(dict(every))
    bound: dict[str, object] = {"getattr": getattr}
    items = []
    for index, (name, data_type) in enumerate(wanted):
        found = by_name.get(name) or by_name.get(name.upper())
        value = "None"
        if isinstance(found, FieldDescriptor):
            convert = _value(found, data_type, path + name)
            bound[f"convert{index}"] = convert
            value = _taken(found, None if convert is None else f"convert{index}")
        elif found is not None:
            bound[f"union{index}"] = _union(found, data_type, path + name)
            value = f"union{index}(message)"
        items.append(item.format(name=repr(name), value=value))
    made: Convert = eval(whole.replace("{}", " ".join(items)), bound)
    return made


def _taken(field: FieldDescriptor, convert: str | None) -> str:
    """The expression of a field's value; null where a field says that there is none."""
    plain = field.name.isidentifier() and not iskeyword(field.name)
    value = f"message.{field.name}" if plain else f"getattr(message, {field.name!r})"
    if convert is not None:
        value = f"{convert}({value})"
    if _says_null(field):
        return f"({value} if message.HasField({field.name!r}) else None)"
    return value


def _says_null(field: FieldDescriptor) -> bool:
    """Whether a field that is not set is null; those of proto2 have defaults instead."""
    if is_repeated(field):
        return False
    if field.message_type is not None:
        return True
    union = field.containing_oneof
    return union is not None and union.name == f"_{field.name}"


def _value(field: FieldDescriptor, wanted: DataType, path: str) -> Convert | None:
    """How a field's value, or its list, becomes that of a column; None leaves it as it is."""
    entry = entry_of(field)
    match wanted:
        case MapType(key, value) if entry is not None:
            return _map(entry, key, value, path)
        case ArrayType(element) if entry is None and is_repeated(field):
            convert = _single(field, element, path)
            if convert is None:
                return list
            return lambda items: [convert(each) for each in items]
        case _ if not is_repeated(field):
            return _single(field, wanted, path)
    raise mismatch(f'the Protobuf field "{field.full_name}"', wanted, path)


def _map(entry: Descriptor, key: DataType, value: DataType, path: str) -> Convert:
    key_field, value_field = entry.fields_by_name["key"], entry.fields_by_name["value"]
    key_of = _single(key_field, key, path) or _same
    value_of = _value(value_field, value, path) or _same
    if entry.GetOptions().map_entry:
        return lambda entries: {key_of(name): value_of(each) for name, each in entries.items()}
    if not _says_null(value_field):
        return lambda entries: {key_of(each.key): value_of(each.value) for each in entries}
    return lambda entries: {
        key_of(each.key): value_of(each.value) if each.HasField("value") else None
        for each in entries
    }


def _single(field: FieldDescriptor, wanted: DataType, path: str) -> Convert | None:
    """The same for a field's value, or for each of them if there are many."""
    written = scalar_type(field)
    if written is None:
        if not isinstance(wanted, StructType):
            raise mismatch(f'the Protobuf message "{field.message_type.full_name}"', wanted, path)
        fields = [(each.name, each.type) for each in wanted.fields]
        return _compiled(
            field.message_type, fields, f"{path}.", "lambda message: {{}}", "{name}: {value},"
        )
    convert = coercion(written, wanted, path)
    read = _reading(field, written)
    if isinstance(written, DecimalType) and isinstance(wanted, DecimalType):
        return lambda message: fit_decimal(decimal_of(message), wanted)
    if read is None or convert is None:
        return read or convert
    return lambda value: convert(read(value))


def _reading(field: FieldDescriptor, written: DataType) -> Convert | None:
    """From what upb has to a value of the written type."""
    if field.type == FieldDescriptor.TYPE_ENUM:
        return _symbols(field.enum_type)
    if field.message_type is None:
        return signed if field.type in _UNSIGNED else None
    name = field.message_type.full_name
    if name == _UNSIGNED_WRAPPER:
        return lambda message: signed(message.value)
    return attrgetter("value") if name in WRAPPERS else _TIMES.get(written)


def _symbols(enum: EnumDescriptor) -> Convert:
    names: dict[int, str] = {}
    for each in enum.values:
        names.setdefault(each.number, each.name)
    # A number that the schema does not know has in Java a name that says so.
    unknown = f"UNKNOWN_ENUM_VALUE_{enum.name}_"
    return lambda number: names.get(number) or f"{unknown}{number}"


def _union(union: OneofDescriptor, wanted: DataType, path: str) -> Convert:
    """The struct of a union's fields, of which one at most is not null."""
    if not isinstance(wanted, StructType):
        raise mismatch(f'the Protobuf union "{union.full_name}"', wanted, path)
    by_name = {each.name.upper(): each for each in union.fields}
    by_name.update({each.name: each for each in union.fields})
    chosen: dict[str, tuple[str, Convert]] = {}
    for each in wanted.fields:
        field = by_name.get(each.name) or by_name.get(each.name.upper())
        if field is not None:
            convert = _value(field, each.type, f"{path}.{each.name}")
            chosen[field.name] = (each.name, convert or _same)
    empty = dict.fromkeys(each.name for each in wanted.fields)
    union_of = union.name

    def read(message: Message) -> object:
        present = message.WhichOneof(union_of)
        if present is None:
            return None
        if present not in chosen:
            return dict(empty)
        name, convert = chosen[present]
        return {**empty, name: convert(getattr(message, present))}

    return read


def _same(value: object) -> object:
    return value
