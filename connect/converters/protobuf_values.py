"""Values of Connect as fields of Protobuf messages and back, by functions prepared for each schema.

To a message lead dicts, of which Google's library makes messages, all of them at once; from a
message its fields are taken one by one, by one expression.
"""

import datetime
from collections.abc import Callable
from decimal import Decimal
from keyword import iskeyword
from typing import Any

from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    EnumDescriptor,
    FieldDescriptor,
    OneofDescriptor,
)

from broker.serde.schema.protobuf_fields import entry_of, fields_outside, is_repeated, unions
from connect.converters.compiled import (
    Conversion,
    Convert,
    float32_bytes,
    function_of,
    list_to_list,
    located,
    simple_for,
    struct_to_dict,
)
from connect.converters.protobuf_types import WRAPPERS, ProtobufOptions, is_union, says_null
from connect.data import (
    DATE_NAME,
    DECIMAL_NAME,
    NO_DEFAULT,
    TIME_NAME,
    TIMESTAMP_NAME,
    ConnectSchema,
    Struct,
    Type,
    validate,
)
from connect.errors import DataError
from connect.logical_values import (
    NUMBERED,
    decimal_bytes,
    decimal_of_bytes,
    logical_name,
    scale_of,
    timestamp_milliseconds,
    timestamp_of,
)

_NANOSECONDS = 1_000_000
_UNSIGNED_64 = frozenset({FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_FIXED64})
_LONG_END = 1 << 63


# To messages.


def to_fields(schema: ConnectSchema, message: Descriptor, options: ProtobufOptions) -> Convert:
    """From structs to the fields of messages."""
    by_name = {each.name: each for each in fields_outside(message)}
    # Connect has the index of a oneof in the field's name, and its name in the schema's.
    by_union = {each.name: each for each in unions(message)}
    parts: list[tuple[str, Conversion]] = []
    for field in schema.fields:
        name = options.name(field.name)
        if is_union(field.schema):
            union = by_union.get((field.schema.name or "").rpartition(".")[2])
            if union is None:
                raise _missing(message, field.name)
            parts.append((name, _union_to_fields(field.schema, union, options)))
        elif name in by_name:
            parts.append((name, _to_field(field.schema, by_name[name], options)))
        else:
            raise _missing(message, field.name)
    return struct_to_dict(schema, parts)


def _missing(message: Descriptor, name: str) -> DataError:
    return DataError(
        f'the registered message "{message.full_name}" has no field "{name}"',
        hint="register a schema that has it, or set use.latest.version=false",
    )


def _union_to_fields(
    schema: ConnectSchema, union: OneofDescriptor, options: ProtobufOptions
) -> Conversion:
    by_name = {each.name: each for each in union.fields}
    parts = []
    for field in schema.fields:
        name = options.name(field.name)
        if name not in by_name:
            raise _missing(union.containing_type, field.name)
        parts.append((name, _to_field(field.schema, by_name[name], options).convert))

    def convert(value: object) -> dict[str, object]:
        if value is None:
            return {}
        if not isinstance(value, Struct) or not value.schema.matches(schema):
            raise DataError("Mismatching struct schema")
        for (name, convert_field), each in zip(parts, value.values, strict=True):
            if each is not None:
                return {name: convert_field(each)}
        raise DataError("Cannot find non-null field")

    return Conversion(convert, spread=True)


def _to_field(
    schema: ConnectSchema, field: FieldDescriptor, options: ProtobufOptions
) -> Conversion:
    """What a field takes; null leaves it unset."""
    convert, simple = _to_present(schema, field, options)

    def convert_any(value: object) -> object:
        if value is not None:
            return convert(value)
        if schema.default is not NO_DEFAULT:
            return convert(schema.default)
        if not schema.optional:
            raise DataError("Found null value for non-optional schema")
        return None

    return Conversion(convert_any, simple)


def _to_present(
    schema: ConnectSchema, field: FieldDescriptor, options: ProtobufOptions
) -> tuple[Convert, str]:
    entry = entry_of(field)
    if schema.type is Type.MAP and entry is not None:
        return _to_entries(schema, entry, options), ""
    if schema.type is Type.ARRAY and schema.value_schema is not None and is_repeated(field):
        convert = list_to_list(_to_element(schema.value_schema, field, options))
        return _checked(schema, convert), ""
    if is_repeated(field) or schema.type in (Type.ARRAY, Type.MAP):
        raise _unsuitable(schema, field)
    return _to_single(schema, field, options)


def _to_element(
    schema: ConnectSchema, field: FieldDescriptor, options: ProtobufOptions
) -> Conversion:
    convert, simple = _to_single(schema, field, options)

    def convert_present(value: object) -> object:
        if value is None:
            raise DataError("Protobuf arrays cannot contain null", hint="remove the element")
        return convert(value)

    return Conversion(convert_present, simple and f"{{0}} is not None and {simple}")


def _checked(schema: ConnectSchema, convert: Convert) -> Convert:
    kind = list if schema.type is Type.ARRAY else dict

    def convert_checked(value: object) -> object:
        if not isinstance(value, kind):
            validate(schema, value)
        return convert(value)

    return convert_checked


def _to_entries(schema: ConnectSchema, entry: Descriptor, options: ProtobufOptions) -> Convert:
    assert schema.key_schema is not None, "it was read or checked before"
    assert schema.value_schema is not None, "it was read or checked before"
    key = _to_field(schema.key_schema, entry.fields_by_name["key"], options).convert
    value = _to_field(schema.value_schema, entry.fields_by_name["value"], options).convert
    if entry.GetOptions().map_entry:
        return _checked(schema, lambda given: {key(name): value(given[name]) for name in given})
    return _checked(
        schema,
        lambda given: [{"key": key(name), "value": value(given[name])} for name in given],
    )


def _to_single(
    schema: ConnectSchema, field: FieldDescriptor, options: ProtobufOptions
) -> tuple[Convert, str]:
    message = field.message_type
    name = logical_name(schema)
    if name is not None and message is not None:
        return _logical_fields(schema, name), ""
    if schema.type is Type.STRUCT and message is not None:
        return to_fields(schema, message, options), ""
    if message is not None and message.full_name in WRAPPERS:
        convert, _ = _to_scalar(schema, message.fields_by_name["value"])
        return lambda value: {"value": convert(value)}, ""
    if message is not None or schema.type is Type.STRUCT or name is not None:
        raise _unsuitable(schema, field)
    return _to_scalar(schema, field)


def _to_scalar(schema: ConnectSchema, field: FieldDescriptor) -> tuple[Convert, str]:
    if schema.type is Type.FLOAT32:
        return _float32, ""
    if field.type in _UNSIGNED_64:
        return lambda value: _same(schema, value) % (2 * _LONG_END), ""
    simple = "type({0}) is float" if schema.type is Type.FLOAT64 else simple_for(schema)
    if schema.type is Type.BYTES:
        return lambda value: bytes(_same(schema, value)), simple
    return lambda value: _same(schema, value), simple


def _same(schema: ConnectSchema, value: Any) -> Any:
    validate(schema, value)
    return value


def _float32(value: object) -> object:
    float32_bytes(value)
    return value


def _logical_fields(schema: ConnectSchema, name: str) -> Convert:
    if name == DECIMAL_NAME:
        scale = scale_of(schema)
        return lambda value: _decimal_fields(
            value if type(value) is Decimal else _same(schema, value), scale
        )
    make, kind = _FIELDS[name], NUMBERED[name][0]

    def fields(value: object) -> object:
        try:
            if type(value) is kind:
                return make(value)
        except TypeError:  # a datetime without a time zone
            pass
        return make(_same(schema, value))

    return fields


def _decimal_fields(value: Decimal, scale: int) -> dict[str, object]:
    # From the first digit to the last: what Java's decimals call their precision.
    digits = max(value.adjusted() + scale, 0) + 1
    return {"value": decimal_bytes(value, scale), "precision": digits, "scale": scale}


def _date_fields(value: datetime.date) -> dict[str, int]:
    return {"year": value.year, "month": value.month, "day": value.day}


def _time_fields(value: datetime.time) -> dict[str, int]:
    milliseconds = value.microsecond // 1000
    return {
        "hours": value.hour,
        "minutes": value.minute,
        "seconds": value.second,
        "nanos": milliseconds * _NANOSECONDS,
    }


def _timestamp_fields(value: datetime.datetime) -> dict[str, int]:
    seconds, milliseconds = divmod(timestamp_milliseconds(value), 1000)
    return {"seconds": seconds, "nanos": milliseconds * _NANOSECONDS}


_FIELDS: dict[str, Convert] = {
    DATE_NAME: _date_fields,
    TIME_NAME: _time_fields,
    TIMESTAMP_NAME: _timestamp_fields,
}


def _unsuitable(schema: ConnectSchema, field: FieldDescriptor) -> DataError:
    return DataError(f'the Protobuf field "{field.full_name}" cannot hold {schema}')


# From messages.


def from_message(schema: ConnectSchema, message: Descriptor) -> Convert:
    """From messages to structs."""
    scope: dict[str, object] = {"Struct": Struct, "schema": schema}
    items = []
    members = [*unions(message), *fields_outside(message)]
    for index, (field, member) in enumerate(zip(schema.fields, members, strict=True)):
        if isinstance(member, OneofDescriptor):
            scope[f"convert{index}"] = _from_union(field.schema, member)
            items.append(f"convert{index}(value)")
            continue
        convert = _from_field(field.schema, member)
        value = _attribute(member.name)
        if convert is not None:
            scope[f"convert{index}"] = located(f'field "{field.name}"', convert)
            value = f"convert{index}({value})"
        if says_null(member):
            value = f"({value} if value.HasField({member.name!r}) else None)"
        items.append(value)
    return function_of([f"return Struct(schema, [{', '.join(items)}])"], scope)


def _attribute(name: str) -> str:
    plain = name.isidentifier() and not iskeyword(name)
    return f"value.{name}" if plain else f"getattr(value, {name!r})"


def _from_union(schema: ConnectSchema, union: OneofDescriptor) -> Convert:
    converts = [
        (each.name, _from_field(field.schema, each))
        for field, each in zip(schema.fields, union.fields, strict=True)
    ]
    places = {name: at for at, (name, _) in enumerate(converts)}
    count, name_of_union = len(converts), union.name

    def convert(message: Any) -> object:
        name = message.WhichOneof(name_of_union)
        if name is None:
            return None
        at = places[name]
        found, convert_one = getattr(message, name), converts[at][1]
        values: list[object] = [None] * count
        values[at] = found if convert_one is None else convert_one(found)
        return Struct(schema, values)

    return convert


def _from_field(schema: ConnectSchema, field: FieldDescriptor) -> Convert | None:
    """From a field's value, or its list; None leaves it as it is."""
    entry = entry_of(field)
    if entry is not None:
        return _from_entries(schema, entry)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        convert = _from_single(schema.value_schema, field)
        if convert is None:
            return list
        known = convert
        return lambda items: [known(each) for each in items]
    return _from_single(schema, field)


def _from_entries(schema: ConnectSchema, entry: Descriptor) -> Convert:
    assert schema.key_schema is not None, "it was made from a map"
    assert schema.value_schema is not None, "it was made from a map"
    value_field = entry.fields_by_name["value"]
    key = _from_field(schema.key_schema, entry.fields_by_name["key"]) or _unchanged
    value = _from_field(schema.value_schema, value_field) or _unchanged
    if entry.GetOptions().map_entry:
        return lambda entries: {key(name): value(each) for name, each in entries.items()}
    if not says_null(value_field):
        return lambda entries: {key(each.key): value(each.value) for each in entries}
    return lambda entries: {
        key(each.key): value(each.value) if each.HasField("value") else None for each in entries
    }


def _unchanged(value: object) -> object:
    return value


def _from_single(schema: ConnectSchema, field: FieldDescriptor) -> Convert | None:
    message = field.message_type
    if message is not None:
        name = logical_name(schema)
        if name is not None:
            return _VALUES[name]
        if schema.type is Type.STRUCT:
            return from_message(schema, message)
        inner = _from_single(schema, message.fields_by_name["value"]) or _unchanged
        return lambda value: inner(value.value)
    if field.enum_type is not None:
        return _symbol_of(field.enum_type)
    if field.type in _UNSIGNED_64:
        return lambda value: value - 2 * _LONG_END if value >= _LONG_END else value
    if schema.type in (Type.INT8, Type.INT16):
        return lambda value: _same(schema, value)
    return None


def _symbol_of(enum: EnumDescriptor) -> Convert:
    symbols = {each.number: each.name for each in enum.values}
    name = enum.name
    return lambda number: symbols.get(number) or f"UNKNOWN_ENUM_VALUE_{name}_{number}"


_VALUES: dict[str, Callable[[Any], object]] = {
    DECIMAL_NAME: lambda message: decimal_of_bytes(message.value, message.scale),
    DATE_NAME: lambda message: datetime.date(message.year, message.month, message.day),
    TIME_NAME: lambda message: datetime.time(
        message.hours, message.minutes, message.seconds, message.nanos // _NANOSECONDS * 1000
    ),
    TIMESTAMP_NAME: lambda message: timestamp_of(
        message.seconds * 1000 + message.nanos // _NANOSECONDS
    ),
}
