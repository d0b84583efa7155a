"""Conversion of Connect's schemas to .proto files and back, as in Confluent's converter.

INT8 to INT32   int32; the smaller ones have a parameter   Decimal     confluent.type.Decimal
INT64           int64                                     Date        google.type.Date
FLOAT32, 64     float, double                             Time        google.type.TimeOfDay
BOOLEAN         bool                                      Timestamp   google.protobuf.Timestamp
STRING          string; enum with parameters              STRUCT      message
BYTES           bytes                                     ARRAY       repeated field
MAP             repeated message of key and value         union       oneof

A null field is not set. When it is read it has its default, unless it is declared optional or is
one of Google's wrappers, depending on settings. All of Connect's fields are optional then, and
their numbers are stored in a parameter. A primitive value is one of Google's wrappers.
"""

import base64
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    FieldDescriptor,
    OneofDescriptor,
)

from broker.serde.schema.protobuf_fields import (
    DATE_MESSAGE,
    DECIMAL_MESSAGE,
    TIME_MESSAGE,
    TIMESTAMP_MESSAGE,
    entry_of,
    field_parameters,
    fields_outside,
    is_repeated,
    union_name,
    unions,
)
from broker.serde.schema.protobuf_known import known_file
from broker.serde.schema.protobuf_schema import parse_protobuf
from connect.converters.scrubbed_names import scrubbed
from connect.data import (
    DATE_NAME,
    DECIMAL_NAME,
    TIME_NAME,
    TIMESTAMP_NAME,
    ConnectSchema,
    Field,
    Type,
    date,
    decimal,
    time,
    timestamp,
)
from connect.errors import DataError
from connect.logical_values import logical_name

NAMESPACE = "io.confluent.connect.protobuf"
TAG = f"{NAMESPACE}.Tag"
ENUM = f"{NAMESPACE}.Enum"
UNION = f"{NAMESPACE}.Union."
DEFAULT_NAME = "ConnectDefault"
PRECISION = "connect.decimal.precision"
DEPTH_MAX = 100

_WRAPPERS_FILE = "google/protobuf/wrappers.proto"
_META_FILE = "confluent/meta.proto"
_LOGICAL = {
    DECIMAL_NAME: (DECIMAL_MESSAGE, "confluent/type/decimal.proto"),
    DATE_NAME: (DATE_MESSAGE, "google/type/date.proto"),
    TIME_NAME: (TIME_MESSAGE, "google/type/timeofday.proto"),
    TIMESTAMP_NAME: (TIMESTAMP_MESSAGE, "google/protobuf/timestamp.proto"),
}
_SCALARS = {
    Type.INT8: ("int32", "Int32Value"),
    Type.INT16: ("int32", "Int32Value"),
    Type.INT32: ("int32", "Int32Value"),
    Type.INT64: ("int64", "Int64Value"),
    Type.FLOAT32: ("float", "FloatValue"),
    Type.FLOAT64: ("double", "DoubleValue"),
    Type.BOOLEAN: ("bool", "BoolValue"),
    Type.STRING: ("string", "StringValue"),
    Type.BYTES: ("bytes", "BytesValue"),
}
WRAPPERS: dict[str, Type] = {
    f"google.protobuf.{wrapper}": kind for kind, (_, wrapper) in _SCALARS.items()
} | {"google.protobuf.UInt32Value": Type.INT64, "google.protobuf.UInt64Value": Type.INT64}


@dataclass(frozen=True, slots=True)
class ProtobufOptions:
    """The settings that change the mapping."""

    enhanced: bool = False
    scrub: bool = False
    optional_for_nullables: bool = False
    wrapper_for_nullables: bool = False
    wrapper_for_raw_primitives: bool = True

    def name(self, name: str) -> str:
        """A name in Protobuf."""
        return scrubbed(name, underline_first=False) if self.scrub else name


@dataclass(frozen=True, slots=True)
class ProtoFile:
    """The text of a .proto file, and the full name of its message."""

    text: str
    message: str


def proto_of(schema: ConnectSchema, options: ProtobufOptions) -> ProtoFile:
    """The .proto file for a schema of Connect."""
    if schema.type is not Type.STRUCT:
        if logical_name(schema) in _LOGICAL or schema.type not in _SCALARS:
            raise DataError(
                f"Unsupported root schema of type {schema.type.name}",
                hint="a Protobuf value must be a message: wrap the value in a struct",
            )
        return ProtoFile(_wrappers_text(), f"google.protobuf.{_SCALARS[schema.type][1]}")
    writer = _Writer(options)
    package, _, short = (schema.name or writer.next_name()).rpartition(".")
    name = options.name(short)
    lines = writer.message(name, schema)
    imports = "".join(f'import "{each}";\n' for each in sorted(writer.imports))
    header = f"package {package};\n" if package else ""
    text = f'syntax = "proto3";\n{header}\n{imports}\n' + "\n".join(lines) + "\n"
    return ProtoFile(text, f"{package}.{name}" if package else name)


@cache
def _wrappers_text() -> str:
    content = known_file(_WRAPPERS_FILE).SerializeToString()
    return parse_protobuf(base64.b64encode(content).decode("ascii"), {}).canonical


def is_union(schema: ConnectSchema) -> bool:
    """Whether a struct represents a oneof."""
    return schema.type is Type.STRUCT and (schema.name or "").startswith(UNION)


class _Writer:
    """Writes messages; numbers the generated names, and collects imports."""

    def __init__(self, options: ProtobufOptions) -> None:
        self.options = options
        self.names = 0
        self.imports: set[str] = set()

    def next_name(self) -> str:
        self.names += 1
        return f"{DEFAULT_NAME}{self.names}"

    def message(self, name: str, schema: ConnectSchema) -> list[str]:
        lines = [f"message {name} {{"]
        nested: dict[str, list[str]] = {}
        numbers = _numbers(schema)
        for field in schema.fields:
            if is_union(field.schema):
                lines += self._oneof(field.schema, nested, numbers)
            else:
                declared = self._field(field, nested)
                lines.append(f"  {_numbered(declared, next(numbers))}")
        inner = [f"  {line}" for each in nested.values() for line in each]
        return [*lines, *inner, "}"]

    def _oneof(
        self, schema: ConnectSchema, nested: dict[str, list[str]], numbers: Iterator[int]
    ) -> list[str]:
        name = self.options.name((schema.name or "").removeprefix(UNION).rpartition(".")[2])
        lines = [f"  oneof {name} {{"]
        for field in schema.fields:
            declared = self._declared(field.name, field.schema, nested)
            lines.append(f"    {_numbered(declared, next(numbers))}")
        return [*lines, "  }"]

    def _field(self, field: Field, nested: dict[str, list[str]]) -> tuple[str, str]:
        schema = field.schema
        label = ""
        if schema.type is Type.ARRAY:
            label = "repeated "
            if schema.value_schema is None or schema.value_schema.type in (Type.ARRAY, Type.MAP):
                raise DataError(
                    "Array cannot be nested",
                    at=f'field "{field.name}"',
                    hint="wrap the inner array in a struct",
                )
            schema = schema.value_schema
        elif schema.type is Type.MAP:
            label = "repeated "
        elif self.options.optional_for_nullables and schema.optional:
            label = "optional "
        declared, options = self._declared(field.name, schema, nested)
        return label + declared, options

    def _declared(
        self, name: str, schema: ConnectSchema, nested: dict[str, list[str]]
    ) -> tuple[str, str]:
        """A field without label and number, and its options."""
        field_name = self.options.name(name)
        kind = self._type(field_name, schema, nested)
        parameters = _parameters(schema)
        if not parameters:
            return f"{kind} {field_name}", ""
        self.imports.add(_META_FILE)
        pairs = ", ".join(
            f'{{ key: "{key}", value: "{value}" }}' for key, value in parameters.items()
        )
        return f"{kind} {field_name}", f" [(confluent.field_meta) = {{ params: [{pairs}] }}]"

    def _type(self, field: str, schema: ConnectSchema, nested: dict[str, list[str]]) -> str:
        logical = _LOGICAL.get(logical_name(schema) or "")
        if logical is not None:
            self.imports.add(logical[1])
            return logical[0]
        if schema.type is Type.STRUCT:
            name = self._short(schema)
            # A message and a field beside it cannot have the same name.
            name = f"{name}Message" if name == field else name
            if name not in nested:
                nested[name] = self.message(name, schema)
            return name
        if schema.type is Type.MAP:
            return self._map(schema, nested)
        if schema.type is Type.STRING and ENUM in (schema.parameters or {}):
            return self._enum(schema, nested)
        scalar, wrapper = _SCALARS[schema.type]
        if not (self.options.wrapper_for_nullables and schema.optional):
            return scalar
        self.imports.add(_WRAPPERS_FILE)
        return f"google.protobuf.{wrapper}"

    def _map(self, schema: ConnectSchema, nested: dict[str, list[str]]) -> str:
        if schema.key_schema is None or schema.value_schema is None:
            raise DataError("a map has no schema of its keys or values")
        name = self._short(schema)
        if "_" in name:
            name = "".join(part[:1].upper() + part[1:].lower() for part in name.split("_"))
        name = f"{name}Entry"
        entry = ConnectSchema(
            Type.STRUCT,
            fields=(Field("key", schema.key_schema), Field("value", schema.value_schema)),
        )
        nested[name] = self.message(name, entry)
        return name

    def _enum(self, schema: ConnectSchema, nested: dict[str, list[str]]) -> str:
        parameters = schema.parameters or {}
        name = self.options.name(parameters[ENUM].rpartition(".")[2])
        symbols = sorted(
            (
                (int(number), each.removeprefix(f"{ENUM}."))
                for each, number in parameters.items()
                if each.startswith(f"{ENUM}.")
            ),
        )
        lines = [f"  {symbol} = {number};" for number, symbol in symbols]
        nested[name] = [f"enum {name} {{", *lines, "}"]
        return name

    def _short(self, schema: ConnectSchema) -> str:
        return self.options.name((schema.name or self.next_name()).rpartition(".")[2])


def _numbered(declared: tuple[str, str], number: int) -> str:
    return f"{declared[0]} = {number}{declared[1]};"


def _numbers(schema: ConnectSchema) -> Iterator[int]:
    """The numbers of fields: those they have, and the next free ones for the others."""
    fields = [
        inner
        for each in schema.fields
        for inner in (each.schema.fields if is_union(each.schema) else (each,))
    ]
    given = [(each.schema.parameters or {}).get(TAG) for each in fields]
    taken = {int(tag) for tag in given if tag is not None}
    free = (number for number in range(1, 1 << 29) if number not in taken)
    return iter([next(free) if tag is None else int(tag) for tag in given])


def _parameters(schema: ConnectSchema) -> dict[str, str]:
    """What a field's option says of the type in Connect."""
    given = schema.parameters or {}
    if logical_name(schema) == DECIMAL_NAME:
        found = {"precision": given.get(PRECISION), "scale": given.get("scale")}
        return {key: value for key, value in found.items() if value is not None}
    if schema.type in (Type.INT8, Type.INT16):
        return {"connect.type": schema.type.value}
    return {}


def connect_of(
    message: Descriptor, options: ProtobufOptions, version: int | None = None
) -> ConnectSchema:
    """The schema of Connect for a message; the version is the registry's."""
    if options.wrapper_for_raw_primitives and message.full_name in WRAPPERS:
        return ConnectSchema(WRAPPERS[message.full_name], version=version)
    return _Reader(options).struct(message).with_(version=version)


class _Reader:
    """Follows messages to schemas; `open` are those that are being followed."""

    def __init__(self, options: ProtobufOptions) -> None:
        self._options = options
        self._open: list[str] = []

    def struct(self, message: Descriptor) -> ConnectSchema:
        name = message.full_name
        if name in self._open or len(self._open) >= DEPTH_MAX:
            raise DataError(
                f'the Protobuf message "{name}" is recursive',
                hint="Connect does not support recursive schemas",
            )
        self._open.append(name)
        fields = [Field(union_name(each), self._union(each)) for each in unions(message)]
        fields += [Field(each.name, self._field(each)) for each in fields_outside(message)]
        self._open.pop()
        short = name if self._options.enhanced else message.name
        return ConnectSchema(Type.STRUCT, name=short, fields=tuple(fields))

    def _union(self, union: OneofDescriptor) -> ConnectSchema:
        fields = tuple(Field(each.name, self._field(each)) for each in union.fields)
        return ConnectSchema(Type.STRUCT, True, UNION + union.name, fields=fields)

    def _field(self, field: FieldDescriptor) -> ConnectSchema:
        entry = entry_of(field)
        if entry is not None:
            made = self._map(entry)
        else:
            made = self._single(field)
            if is_repeated(field):
                element = made.with_(optional=True)
                made = ConnectSchema(Type.ARRAY, True, value_schema=element)
        parameters = {**(made.parameters or {}), TAG: str(field.number)}
        optional = made.optional or self._is_nullable(field)
        return made.with_(parameters=parameters, optional=optional)

    def _is_nullable(self, field: FieldDescriptor) -> bool:
        if self._options.optional_for_nullables:
            return declared_optional(field)
        return not self._options.wrapper_for_nullables

    def _map(self, entry: Descriptor) -> ConnectSchema:
        fields = entry.fields_by_name
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", entry.name.removesuffix("Entry")).lower()
        return ConnectSchema(
            Type.MAP,
            name=name,
            key_schema=self._field(fields["key"]),
            value_schema=self._field(fields["value"]),
        )

    def _single(self, field: FieldDescriptor) -> ConnectSchema:
        if field.message_type is not None:
            return self._message(field).with_(optional=True)
        if field.enum_type is not None:
            return _enum(field)
        if field.type in _NARROW:
            named = field_parameters(field).get("connect.type")
            return ConnectSchema(_NAMED.get(named, Type.INT32))
        return ConnectSchema(_TYPES.get(field.type, Type.INT64))

    def _message(self, field: FieldDescriptor) -> ConnectSchema:
        name = field.message_type.full_name
        match name:
            case _ if name == DECIMAL_MESSAGE:
                return _decimal(field)
            case _ if name == DATE_MESSAGE:
                return date()
            case _ if name == TIME_MESSAGE:
                return time()
            case _ if name == TIMESTAMP_MESSAGE:
                return timestamp()
        if self._options.wrapper_for_nullables and name in WRAPPERS:
            return ConnectSchema(WRAPPERS[name])
        return self.struct(field.message_type)


_NAMED: dict[str | None, Type] = {"int8": Type.INT8, "int16": Type.INT16}
_NARROW = frozenset(
    {FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_SINT32, FieldDescriptor.TYPE_SFIXED32}
)
_TYPES = {
    FieldDescriptor.TYPE_FLOAT: Type.FLOAT32,
    FieldDescriptor.TYPE_DOUBLE: Type.FLOAT64,
    FieldDescriptor.TYPE_BOOL: Type.BOOLEAN,
    FieldDescriptor.TYPE_STRING: Type.STRING,
    FieldDescriptor.TYPE_BYTES: Type.BYTES,
}


def declared_optional(field: FieldDescriptor) -> bool:
    """Whether a field that is not a message has presence."""
    if is_repeated(field) or field.message_type is not None:
        return False
    union = field.containing_oneof
    if union is not None:
        return bool(union.name == f"_{field.name}" and len(union.fields) == 1)
    return bool(field.has_presence)


def says_null(field: FieldDescriptor) -> bool:
    """Whether a field that is not set is null, and has no default instead."""
    is_message = field.message_type is not None and not is_repeated(field)
    return is_message or declared_optional(field)


def _enum(field: FieldDescriptor) -> ConnectSchema:
    enum = field.enum_type
    parameters = {ENUM: enum.name}
    parameters |= {f"{ENUM}.{each.name}": str(each.number) for each in enum.values}
    return ConnectSchema(Type.STRING, True, enum.name, parameters=parameters)


def _decimal(field: FieldDescriptor) -> ConnectSchema:
    given = field_parameters(field)
    scale = given.get("scale", "0")
    schema = decimal(int(scale) if scale.lstrip("-").isdigit() else 0)
    if "precision" not in given:
        return schema
    return schema.with_(parameters={**(schema.parameters or {}), PRECISION: given["precision"]})
