"""Values of Connect as fields of Protobuf messages and back, by functions prepared for each schema.

To a message lead dicts, of which Google's library makes messages, all of them at once. Messages are
taken apart by generated functions (`broker/serde/protobuf_codec`).
"""

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from typing import Any

from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    FieldDescriptor,
    OneofDescriptor,
)

from broker.serde.program import Program
from broker.serde.protobuf_codec.decoding import (
    Chosen,
    Decoding,
    Made,
    Member,
    is_unsigned_64,
    signed,
    symbol_of,
)
from broker.serde.schema.protobuf_fields import entry_of, fields_outside, is_repeated, unions
from connect.converters.compiled import (
    Conversion,
    Convert,
    float32_bytes,
    list_to_list,
    located,
    one_field,
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
    if is_unsigned_64(field):
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


@dataclass(frozen=True, slots=True)
class Place:
    """A schema of values; and where they are, for errors."""

    schema: ConnectSchema
    path: str = ""


def from_message(schema: ConnectSchema, message: Descriptor) -> Convert:
    """From messages to structs."""
    program = Program("generated Protobuf reader of Connect")
    return Decoding(program, _Reading(program)).function(message, Place(schema))


class _Reading:
    """Makes values of schemas."""

    def __init__(self, program: Program) -> None:
        self._program = program
        program.shared(Struct=Struct)

    def leaf(self, field: FieldDescriptor, wanted: Place, x: str) -> str | None:
        """With its logical type, and without Google's wrapper."""
        message, schema = field.message_type, wanted.schema
        if message is not None:
            name = logical_name(schema)
            if name is not None:
                return self._converted(_VALUES[name], wanted, x)
            if schema.type is Type.STRUCT:
                return None
            return self.leaf(message.fields_by_name["value"], wanted, f"{x}.value")
        if field.enum_type is not None:
            return self._converted(symbol_of(field.enum_type), wanted, x)
        if is_unsigned_64(field):
            return self._converted(signed, wanted, x)
        if schema.type in (Type.INT8, Type.INT16):
            return self._converted(partial(_same, schema), wanted, x)
        return x

    def _converted(self, convert: Convert, wanted: Place, x: str) -> str:
        if wanted.path:
            convert = located(wanted.path, convert)
        return f"{self._program.constant('convert', convert)}({x})"

    def record(self, message: Descriptor, wanted: Place) -> Made[Place]:
        """A struct of all members."""
        before = f"{wanted.path}, " if wanted.path else ""
        members: list[Member] = [*unions(message), *fields_outside(message)]
        places = [
            (member, Place(each.schema, f'{before}field "{each.name}"'))
            for member, each in zip(members, wanted.schema.fields, strict=True)
        ]
        schema = self._program.constant("schema", wanted.schema)
        return Made(places, lambda values: f"Struct({schema}, [{', '.join(values)}])")

    def union(self, union: OneofDescriptor, wanted: Place) -> Chosen[Place]:
        """A struct with a field for each option."""
        schema = wanted.schema
        one_of = self._program.constant("one_of", partial(one_field, schema))

        def whole(at: int) -> Callable[[str], str]:
            return lambda x: f"{one_of}({at}, {x})"

        options = [
            (each, Place(field.schema, wanted.path), whole(at))
            for at, (each, field) in enumerate(zip(union.fields, schema.fields, strict=True))
        ]
        return Chosen(options, "None", "None")

    def absent(self, field: FieldDescriptor, wanted: Place) -> str | None:
        """Null, if the field says so."""
        return "None" if says_null(field) else None

    def items(self, field: FieldDescriptor, wanted: Place, x: str) -> tuple[Place, str]:
        """A list."""
        assert wanted.schema.value_schema is not None, "it was made of the field"
        return Place(wanted.schema.value_schema, wanted.path), x

    def entries(self, field: FieldDescriptor, wanted: Place) -> tuple[Place, Place]:
        """A dict."""
        schema = wanted.schema
        assert schema.key_schema is not None, "it was made of the field"
        assert schema.value_schema is not None, "it was made of the field"
        return Place(schema.key_schema, wanted.path), Place(schema.value_schema, wanted.path)


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
