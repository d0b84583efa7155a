"""Rows as Protobuf messages: one expression makes the fields, upb makes the message of them."""

from collections.abc import Callable, Mapping, Sequence

from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    FieldDescriptor,
    OneofDescriptor,
)
from google.protobuf.message import Message  # type: ignore[import-untyped]

from broker.errors import SchemaError, SerdeError
from broker.serde.schema.protobuf_fields import (
    entry_of,
    fields_outside,
    is_repeated,
    union_name,
    unions,
)
from sql.datatypes import (
    BIGINT,
    DATE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    MapType,
    Primitive,
    StructType,
)
from sql.rows.coercion import Convert
from sql.rows.protobuf_columns import WRAPPERS, scalar_type
from sql.rows.protobuf_values import date_fields, decimal_fields, time_fields, timestamp_fields
from sql.rows.row_format import Row

_TIMES: dict[DataType, Convert] = {
    DATE: date_fields,
    TIME: time_fields,
    TIMESTAMP: timestamp_fields,
}
# What stands for null inside a list or map, where it has no other sign.
_DEFAULTS: dict[int, object] = {
    FieldDescriptor.CPPTYPE_BOOL: False,
    FieldDescriptor.CPPTYPE_STRING: "",
    FieldDescriptor.CPPTYPE_FLOAT: 0.0,
    FieldDescriptor.CPPTYPE_DOUBLE: 0.0,
}


def row_writer(
    message_class: type[Message], columns: Sequence[Column], prefix: bytes
) -> Callable[[Row], bytes]:
    """From a row to the bytes of a message; nulls are fields that are not set."""
    wanted = [(each.name, f"[{index}]", each.type) for index, each in enumerate(columns)]
    # Any-typed: classes of messages are made while we run.
    fields = _fields(message_class.DESCRIPTOR, wanted, "")

    def write(row: Row) -> bytes:
        found: bytes = prefix + message_class(**fields(row)).SerializeToString()
        return found

    return write


def _fields(
    message: Descriptor, wanted: Sequence[tuple[str, str, DataType]], path: str
) -> Callable[..., dict[str, object]]:
    """From a row or dict to a message's fields; `wanted` has names, places and types."""
    by_name = {each.name: each for each in fields_outside(message)}
    by_union = {union_name(each): each for each in unions(message)}
    # One expression for all fields: names in it are ours or quoted.
    bound: dict[str, object] = {}
    parts = []
    for index, (name, place, data_type) in enumerate(wanted):
        if name in by_union:
            bound[f"union{index}"] = _union(by_union[name], data_type, path + name)
            parts.append(f"**union{index}(row{place})")
            continue
        if name not in by_name:
            raise SchemaError(
                f'the Protobuf message "{message.full_name}" lacks field "{path}{name}"',
                hint=f"its fields are {', '.join([*by_union, *by_name])}",
            )
        convert = _value(by_name[name], data_type, path + name)
        value = f"row{place}"
        if convert is not None:
            bound[f"convert{index}"] = convert
            value = f"None if (value := {value}) is None else convert{index}(value)"
        parts.append(f"{name!r}: {value}")
    made: Callable[..., dict[str, object]] = eval(f"lambda row: {{{', '.join(parts)}}}", bound)
    return made


def _value(field: FieldDescriptor, data_type: DataType, path: str) -> Convert | None:
    """From a value that is there to what upb accepts for a field; None leaves it as it is."""
    entry = entry_of(field)
    match data_type:
        case MapType(key, value) if entry is not None and key is STRING:
            each = _element(entry.fields_by_name["value"], value, path)
            if entry.GetOptions().map_entry:
                return lambda given: {name: each(item) for name, item in given.items()}
            return _entries(entry, value, path)
        case ArrayType(element) if entry is None and is_repeated(field):
            convert = _single(field, element, path)
            null = _null(field)
            if convert is None:
                return lambda items: [null if item is None else item for item in _list(items)]
            return lambda items: [null if item is None else convert(item) for item in _list(items)]
        case _ if not is_repeated(field):
            return _single(field, data_type, path)
    raise _unsuitable(field, data_type, path)


def _entries(entry: Descriptor, value: DataType, path: str) -> Convert:
    """Entries as Connect has them, where value may be anything, a list too."""
    key_of = _single(entry.fields_by_name["key"], STRING, path)
    value_of = _value(entry.fields_by_name["value"], value, path)
    keyed = (lambda name: name) if key_of is None else key_of
    valued = (lambda item: item) if value_of is None else value_of
    return lambda given: [
        {"key": keyed(name), "value": None if item is None else valued(item)}
        for name, item in given.items()
    ]


def _element(field: FieldDescriptor, data_type: DataType, path: str) -> Convert:
    convert, null = _value(field, data_type, path), _null(field)
    if convert is None:
        return lambda item: null if item is None else item
    return lambda item: null if item is None else convert(item)


def _single(field: FieldDescriptor, data_type: DataType, path: str) -> Convert | None:
    """The same for a field's value, or for each of them if there are many."""
    found = scalar_type(field)
    if isinstance(data_type, StructType) and found is None:
        wanted = [(each.name, f".get({each.name!r})", each.type) for each in data_type.fields]
        return _fields(field.message_type, wanted, f"{path}.")
    if isinstance(data_type, DecimalType) and isinstance(found, DecimalType):
        return lambda value: decimal_fields(value, data_type)
    if not isinstance(data_type, Primitive) or not (
        found == data_type or (found is BIGINT and data_type is INT)
    ):
        raise _unsuitable(field, data_type, path)
    if data_type in _TIMES:
        return _TIMES[data_type]
    if field.message_type is not None and field.message_type.full_name in WRAPPERS:
        return lambda value: {"value": value}
    return None


def _null(field: FieldDescriptor) -> object:
    if scalar_type(field) is DATE:
        return date_fields(0)
    if field.message_type is not None:
        return {}
    if field.type == FieldDescriptor.TYPE_BYTES:
        return b""
    return _DEFAULTS.get(field.cpp_type, 0)


def _list(items: object) -> list[object]:
    # A text would be a list of letters otherwise.
    if not isinstance(items, list):
        raise SerdeError(f"{type(items).__name__} is not a list")
    return items


def _union(union: OneofDescriptor, data_type: DataType, path: str) -> Convert:
    """From a struct of a union's fields to the one of them that has a value."""
    if not isinstance(data_type, StructType):
        raise SchemaError(f'"{path}" is a union in Protobuf, but the column is {data_type}')
    by_name = {each.name: each for each in union.fields}
    converts: dict[str, Convert | None] = {}
    for each in data_type.fields:
        if each.name not in by_name:
            raise SchemaError(f'the union "{path}" has no field "{each.name}"')
        converts[each.name] = _value(by_name[each.name], each.type, f"{path}.{each.name}")

    def chosen(value: Mapping[str, object] | None) -> dict[str, object]:
        if value is None:
            return {}
        present = [name for name in converts if value.get(name) is not None]
        if len(present) > 1:
            raise SerdeError(f'{len(present)} fields of the union "{path}" have values')
        if not present:
            return {}
        convert, given = converts[present[0]], value[present[0]]
        return {present[0]: given if convert is None else convert(given)}

    return chosen


def _unsuitable(field: FieldDescriptor, data_type: DataType, path: str) -> SchemaError:
    return SchemaError(
        f'the Protobuf field "{field.full_name}" cannot have values of column "{path}", '
        f"which are {data_type}"
    )
