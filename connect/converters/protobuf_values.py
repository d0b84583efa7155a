"""Conversion of Connect's values to Protobuf messages and back, by generated functions.

Structs are converted to dicts, from which Google's library creates a whole message in one call.
Messages are read by generated functions (`broker/serde/protobuf_codec`).
"""

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, partial
from typing import Any

from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    FieldDescriptor,
    OneofDescriptor,
)

from broker.serde.program import Program
from broker.serde.protobuf_codec.decoding import (
    DecodedRecord,
    DecodedUnion,
    Decoding,
    is_unsigned_64,
    signed,
    symbol_of,
)
from broker.serde.protobuf_codec.encoding import Choice, Encoding, Parts
from broker.serde.schema.protobuf_fields import Member, fields_outside, is_repeated, unions
from connect.converters.compiled import (
    SIMPLE,
    Convert,
    check_struct,
    float32_bytes,
    located,
    one_field,
    struct_values,
)
from connect.converters.protobuf_types import (
    WRAPPERS,
    ProtobufOptions,
    is_null_when_unset,
    is_union,
)
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


# Writing messages.


@dataclass(frozen=True, slots=True)
class Place:
    """The schema of values, and their path for errors."""

    schema: ConnectSchema
    path: str = ""


def to_fields(schema: ConnectSchema, message: Descriptor, options: ProtobufOptions) -> Convert:
    """A function from structs to the fields of messages."""
    return _encoding(options).function(message, Place(schema))


def _encoding(options: ProtobufOptions) -> Encoding[Place]:
    program = Program("generated Protobuf writer of Connect")
    return Encoding(program, _Writing(program, options))


class _Writing:
    """Reads values by their schemas."""

    def __init__(self, program: Program, options: ProtobufOptions) -> None:
        self._program = program
        self._options = options
        program.shared(Struct=Struct)

    def leaf(self, field: FieldDescriptor, wanted: Place, x: str) -> str | None:
        """Fields of logical types, Google's wrappers, and validated values."""
        schema, message = wanted.schema, field.message_type
        name = logical_name(schema)
        if schema.type in (Type.ARRAY, Type.MAP):
            raise _unsuitable(schema, field)
        if name is not None and message is not None:
            return f"{self._program.constant('fields', _logical_fields(schema, name))}({x})"
        if schema.type is Type.STRUCT and message is not None:
            return None
        if message is not None and message.full_name in WRAPPERS:
            return f"{{'value': {self._scalar(message.fields_by_name['value'], schema, x)}}}"
        if message is not None or schema.type is Type.STRUCT or name is not None:
            raise _unsuitable(schema, field)
        return self._scalar(field, schema, x)

    def _scalar(self, field: FieldDescriptor, schema: ConnectSchema, x: str) -> str:
        if schema.type is Type.FLOAT32:
            return f"{self._program.constant('float32', _float32)}({x})"
        same = self._program.constant("same", partial(_same, schema))
        if is_unsigned_64(field):
            return f"{same}({x}) % {1 << 64}"
        simple = "type({0}) is float" if schema.type is Type.FLOAT64 else SIMPLE[schema.type]
        other = f"bytes({same}({x}))" if schema.type is Type.BYTES else f"{same}({x})"
        return f"{x} if {simple.format(x)} else {other}"

    def null(self, field: FieldDescriptor, wanted: Place) -> str:
        """The schema's default, an unset field, or an error."""
        schema = wanted.schema
        if schema.default is not NO_DEFAULT:
            convert = _encoding(self._options).present_function(field, wanted)
            return self._program.constant("default", convert(schema.default))
        if schema.optional:
            return "None"
        return f"{self._program.constant('null', _refuse_null)}()"

    def null_item(self, field: FieldDescriptor, wanted: Place) -> str:
        """An error in lists, and an unset field in maps."""
        if is_repeated(field):
            return f"{self._program.constant('null', _refuse_null_item)}()"
        return self.null(field, wanted)

    def record(self, message: Descriptor, wanted: Place) -> Parts[Place]:
        """The values of a struct."""
        schema = wanted.schema
        by_name = {each.name: each for each in fields_outside(message)}
        # Connect has the index of a oneof in the field's name, and its name in the schema's.
        by_union = {each.name: each for each in unions(message)}
        members: list[tuple[Member, str, Place]] = []
        for at, field in enumerate(schema.fields):
            union = (field.schema.name or "").rpartition(".")[2]
            found: Member | None = by_name.get(self._options.name(field.name))
            if is_union(field.schema):
                found = by_union.get(union)
            if found is None:
                raise _missing(message, field.name)
            members.append((found, f"v{at}", Place(field.schema, f'field "{field.name}"')))
        explain = self._program.constant("explained", self._explained(members))
        return Parts(struct_values(self._program, schema, check_struct(schema)), members, explain)

    def _explained(
        self, members: Sequence[tuple[Member, str, Place]]
    ) -> Callable[[Struct, Exception], Exception]:
        """Converts the fields one by one, to find the one that failed."""

        @cache
        def converts() -> list[Convert]:
            return [
                located(each.path, _encoding(self._options).member_function(member, each))
                for member, _, each in members
            ]

        def explained(value: Struct, error: Exception) -> Exception:
            for convert, each in zip(converts(), value.values, strict=True):
                convert(each)
            return error

        return explained

    def union(self, union: OneofDescriptor, wanted: Place) -> Choice[Place]:
        """The field of a struct that has a value."""
        schema = wanted.schema
        by_name = {each.name: each for each in union.fields}
        options = []
        for at, field in enumerate(schema.fields):
            found = by_name.get(self._options.name(field.name))
            if found is None:
                raise _missing(union.containing_type, field.name)
            options.append((f"v{at} is not None", found, f"v{at}", Place(field.schema)))
        check = check_struct(schema, "Mismatching struct schema")
        lines = ["if x is None: return {}", *struct_values(self._program, schema, check)]
        none = self._program.constant("none", _no_option)
        return Choice(lines, options, f"return {none}()")

    def items(self, field: FieldDescriptor, wanted: Place, x: str) -> tuple[str, Place, str]:
        """The items of a list."""
        schema = wanted.schema
        if schema.type is not Type.ARRAY or schema.value_schema is None:
            raise _unsuitable(schema, field)
        part = Place(schema.value_schema)
        explain = self._program.constant("explained", self._explained_items(field, part))
        return f"{self._checked(schema, list)}({x})", part, explain

    def _explained_items(
        self, field: FieldDescriptor, part: Place
    ) -> Callable[[Sequence[object], Exception], Exception]:
        @cache
        def convert() -> Convert:
            return _encoding(self._options).item_function(field, part)

        def explained(value: Sequence[object], error: Exception) -> Exception:
            if isinstance(error, DataError) and isinstance(value, list):
                for at, each in enumerate(value):
                    located(f"element {at}", convert())(each)
            return error

        return explained

    def entries(
        self, field: FieldDescriptor, wanted: Place, x: str
    ) -> tuple[str, Place, Place] | None:
        """The entries of a dict; but a list may have structs of key and value."""
        schema = wanted.schema
        if schema.type is not Type.MAP or schema.key_schema is None or schema.value_schema is None:
            return None
        pairs = f"{self._checked(schema, dict)}({x}).items()"
        return pairs, Place(schema.key_schema), Place(schema.value_schema)

    def _checked(self, schema: ConnectSchema, kind: type) -> str:
        # Any: the function validates the type.
        def checked(value: Any) -> Any:
            if not isinstance(value, kind):
                validate(schema, value)
            return value

        return self._program.constant("checked", checked)


def _missing(message: Descriptor, name: str) -> DataError:
    return DataError(
        f'the registered message "{message.full_name}" has no field "{name}"',
        hint="register a schema that has it, or set use.latest.version=false",
    )


def _refuse_null() -> object:
    raise DataError("Found null value for non-optional schema")


def _refuse_null_item() -> object:
    raise DataError("Protobuf arrays cannot contain null", hint="remove the element")


def _no_option() -> dict[str, object]:
    raise DataError("Cannot find non-null field")


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
    # The digits from the first to the last, as in the precision of Java's BigDecimal.
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


# Reading messages.


def from_message(schema: ConnectSchema, message: Descriptor) -> Convert:
    """A function from messages to structs."""
    program = Program("generated Protobuf reader of Connect")
    return Decoding(program, _Reading(program)).function(message, Place(schema))


class _Reading:
    """Creates values of schemas."""

    def __init__(self, program: Program) -> None:
        self._program = program
        program.shared(Struct=Struct)

    def leaf(self, field: FieldDescriptor, wanted: Place, x: str) -> str | None:
        """The value of its logical type, without Google's wrapper."""
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

    def record(self, message: Descriptor, wanted: Place) -> DecodedRecord[Place]:
        """A struct of all members."""
        before = f"{wanted.path}, " if wanted.path else ""
        members: list[Member] = [*unions(message), *fields_outside(message)]
        places = [
            (member, Place(each.schema, f'{before}field "{each.name}"'))
            for member, each in zip(members, wanted.schema.fields, strict=True)
        ]
        schema = self._program.constant("schema", wanted.schema)
        return DecodedRecord(places, lambda values: f"Struct({schema}, [{', '.join(values)}])")

    def union(self, union: OneofDescriptor, wanted: Place) -> DecodedUnion[Place]:
        """A struct with a field for each option."""
        schema = wanted.schema
        one_of = self._program.constant("one_of", partial(one_field, schema))

        def whole(at: int) -> Callable[[str], str]:
            return lambda x: f"{one_of}({at}, {x})"

        options = [
            (each, Place(field.schema, wanted.path), whole(at))
            for at, (each, field) in enumerate(zip(union.fields, schema.fields, strict=True))
        ]
        return DecodedUnion(options, "None", "None")

    def absent(self, field: FieldDescriptor, wanted: Place) -> str | None:
        """Null, if the field is nullable."""
        return "None" if is_null_when_unset(field) else None

    def items(self, field: FieldDescriptor, wanted: Place, x: str) -> tuple[Place, str]:
        """A list."""
        assert wanted.schema.value_schema is not None, "derived from the field"
        return Place(wanted.schema.value_schema, wanted.path), x

    def entries(self, field: FieldDescriptor, wanted: Place) -> tuple[Place, Place]:
        """A dict."""
        schema = wanted.schema
        assert schema.key_schema is not None, "derived from the field"
        assert schema.value_schema is not None, "derived from the field"
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
