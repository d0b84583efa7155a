"""Columns as ksqlDB's Protobuf schemas, and the columns of any message.

A row is the proto3 message ConnectDefault1 with fields numbered from 1. A STRUCT is a message and a
MAP a repeated message of key and value; both are nested, and named ConnectDefault2 and so on in the
order of the fields. ARRAYs are repeated fields, so an ARRAY directly inside an ARRAY is not
supported. A field can only be null if it is `optional` or one of Google's wrappers; all others have
a default instead.
"""

import re
from collections.abc import Sequence
from enum import Enum
from typing import assert_never

from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    FieldDescriptor,
)

from broker.errors import SchemaError
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
from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    Field,
    MapType,
    Primitive,
    StructType,
)
from sql.rows.column_names import struct_of

NODES_MAX = 20_000
DEPTH_MAX = 100  # upb's limit
PRECISION_DEFAULT = 64
DEFAULT_NAME = "ConnectDefault"

TIMES: dict[str, DataType] = {
    DATE_MESSAGE: DATE,
    TIME_MESSAGE: TIME,
    TIMESTAMP_MESSAGE: TIMESTAMP,
}
_FILES = {
    DECIMAL_MESSAGE: ("confluent/meta.proto", "confluent/type/decimal.proto"),
    DATE_MESSAGE: ("google/type/date.proto",),
    TIME_MESSAGE: ("google/type/timeofday.proto",),
    TIMESTAMP_MESSAGE: ("google/protobuf/timestamp.proto",),
}
_WRAPPERS_FILE = "google/protobuf/wrappers.proto"
_SCALARS: dict[Primitive, tuple[str, str]] = {
    BOOLEAN: ("bool", "BoolValue"),
    INT: ("int32", "Int32Value"),
    BIGINT: ("int64", "Int64Value"),
    DOUBLE: ("double", "DoubleValue"),
    STRING: ("string", "StringValue"),
    BYTES: ("bytes", "BytesValue"),
}
_WRITTEN_TIMES = {data_type: name for name, data_type in TIMES.items()}
WRAPPERS: dict[str, DataType] = {
    "google.protobuf.BoolValue": BOOLEAN,
    "google.protobuf.Int32Value": INT,
    "google.protobuf.UInt32Value": BIGINT,
    "google.protobuf.Int64Value": BIGINT,
    "google.protobuf.UInt64Value": BIGINT,
    "google.protobuf.FloatValue": DOUBLE,
    "google.protobuf.DoubleValue": DOUBLE,
    "google.protobuf.StringValue": STRING,
    "google.protobuf.BytesValue": BYTES,
}
_TYPES: dict[int, DataType] = {
    FieldDescriptor.TYPE_BOOL: BOOLEAN,
    FieldDescriptor.TYPE_INT32: INT,
    FieldDescriptor.TYPE_SINT32: INT,
    FieldDescriptor.TYPE_SFIXED32: INT,
    FieldDescriptor.TYPE_UINT32: BIGINT,
    FieldDescriptor.TYPE_FIXED32: BIGINT,
    FieldDescriptor.TYPE_INT64: BIGINT,
    FieldDescriptor.TYPE_SINT64: BIGINT,
    FieldDescriptor.TYPE_SFIXED64: BIGINT,
    FieldDescriptor.TYPE_UINT64: BIGINT,
    FieldDescriptor.TYPE_FIXED64: BIGINT,
    FieldDescriptor.TYPE_FLOAT: DOUBLE,
    FieldDescriptor.TYPE_DOUBLE: DOUBLE,
    FieldDescriptor.TYPE_STRING: STRING,
    FieldDescriptor.TYPE_ENUM: STRING,
    FieldDescriptor.TYPE_BYTES: BYTES,
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Nulls(Enum):
    """The representation of null fields."""

    NOTHING = "a default is there instead"
    OPTIONAL = "`optional` fields"
    WRAPPER = "wrappers of Google's"


def protobuf_text(
    columns: Sequence[Column], *, name: str | None = None, nulls: Nulls = Nulls.NOTHING
) -> str:
    """The .proto file for rows with these columns."""
    writer = _Writer(nulls)
    package, _, short = (name or writer.next_name()).rpartition(".")
    for part in (*package.split("."), short) if package else (short,):
        _check_name(part)
    message = writer.message(short, [(each.name, each.type) for each in columns])
    imports = "".join(f'import "{each}";\n' for each in sorted(writer.imports))
    header = f"package {package};\n" if package else ""
    return f'syntax = "proto3";\n{header}\n{imports}\n' + "\n".join(message) + "\n"


class _Writer:
    """Creates messages; numbers the generated names, and collects imports."""

    def __init__(self, nulls: Nulls) -> None:
        self.nulls = nulls
        self.names = 0
        self.imports: set[str] = set()

    def next_name(self) -> str:
        self.names += 1
        return f"{DEFAULT_NAME}{self.names}"

    def message(self, name: str, fields: Sequence[tuple[str, DataType]]) -> list[str]:
        lines = [f"message {name} {{"]
        nested: list[str] = []
        for number, (field, data_type) in enumerate(fields, start=1):
            declared, inner = self._field(_check_name(field), data_type)
            lines.append(f"  {declared} = {number}{_parameters(data_type)};")
            nested.extend(f"  {line}" for line in inner)
        return [*lines, *nested, "}"]

    def _field(self, name: str, data_type: DataType) -> tuple[str, list[str]]:
        """A field without its number, and the messages that it needs."""
        repeated = isinstance(data_type, ArrayType | MapType)
        if isinstance(data_type, ArrayType):
            data_type = data_type.element
            if isinstance(data_type, ArrayType | MapType):
                raise SchemaError(
                    "Protobuf has no arrays or maps directly inside arrays",
                    at=f'column "{name}"',
                    hint="put a STRUCT between them",
                )
        kind, inner = self._type(name, data_type)
        optional = self.nulls is Nulls.OPTIONAL and not repeated
        label = "repeated " if repeated else "optional " if optional else ""
        return f"{label}{kind} {name}", inner

    def _type(self, field: str, data_type: DataType) -> tuple[str, list[str]]:
        match data_type:
            case Primitive() if data_type in _SCALARS:
                scalar, wrapper = _SCALARS[data_type]
                if self.nulls is not Nulls.WRAPPER:
                    return scalar, []
                self.imports.add(_WRAPPERS_FILE)
                return f"google.protobuf.{wrapper}", []
            case Primitive():
                return self._known(_WRITTEN_TIMES[data_type]), []
            case DecimalType():
                return self._known(DECIMAL_MESSAGE), []
            case MapType(key, value):
                if key is not STRING:
                    raise SchemaError(
                        "PROTOBUF format only supports MAP types with STRING keys",
                        at=f'column "{field}"',
                    )
                name = f"{self.next_name()}Entry"
                return name, self.message(name, [("key", key), ("value", value)])
            case StructType(fields):
                name = self.next_name()
                # A message and a field next to it cannot have the same name.
                name = f"{name}Message" if name == field else name
                return name, self.message(name, [(each.name, each.type) for each in fields])
            case ArrayType():
                raise AssertionError("an array inside an array was let in")
            case _:
                assert_never(data_type)

    def _known(self, name: str) -> str:
        self.imports.update(_FILES[name])
        return name


def _parameters(data_type: DataType) -> str:
    """The precision and scale of a decimal, in the options of its field."""
    if isinstance(data_type, ArrayType):
        data_type = data_type.element
    if not isinstance(data_type, DecimalType):
        return ""
    return (
        f' [(confluent.field_meta) = {{ params: [{{ key: "precision", value: '
        f'"{data_type.precision}" }}, {{ key: "scale", value: "{data_type.scale}" }}] }}]'
    )


def _check_name(name: str) -> str:
    if _NAME.match(name) is None:
        raise SchemaError(
            f'schema is not compatible with Protobuf: illegal name "{name}"',
            hint="names in Protobuf consist of letters, digits and _, and do not start with "
            "a digit",
        )
    return name


def protobuf_columns(message: Descriptor, *, upper: bool = True) -> tuple[Column, ...]:
    """The columns of a message."""
    found = _Reader(upper).struct(message)
    if not found.fields:
        raise SchemaError(f'the Protobuf message "{message.full_name}" has no fields')
    return tuple(Column(each.name, each.type) for each in found.fields)


class _Reader:
    """Converts messages to types; `open` are the enclosing messages."""

    def __init__(self, upper: bool) -> None:
        self.upper = upper
        self.open: list[str] = []
        self.nodes = 0

    def struct(self, message: Descriptor) -> StructType:
        name = message.full_name
        if name in self.open:
            raise SchemaError(
                f'the Protobuf message "{name}" contains itself',
                hint="rows have no recursive types; read it with RegistryProtobufSerde",
            )
        if len(self.open) >= DEPTH_MAX:
            raise SchemaError(f"Protobuf messages are nested more than {DEPTH_MAX} deep")
        self.open.append(name)
        fields = [
            self._named(union_name(each), struct_of(map(self._field, each.fields), "a oneof"))
            for each in unions(message)
        ]
        fields.extend(map(self._field, fields_outside(message)))
        self.open.pop()
        return struct_of(fields, f'the Protobuf message "{name}"')

    def _named(self, name: str, data_type: DataType) -> Field:
        return Field(name.upper() if self.upper else name, data_type)

    def _field(self, field: FieldDescriptor) -> Field:
        self.nodes += 1
        if self.nodes > NODES_MAX:
            raise SchemaError(f"the Protobuf schema expands to more than {NODES_MAX} fields")
        return self._named(field.name, self._type(field))

    def _type(self, field: FieldDescriptor) -> DataType:
        if (entry := entry_of(field)) is not None:
            return MapType(STRING, self._field(entry.fields_by_name["value"]).type)
        element = self._element(field)
        return ArrayType(element) if is_repeated(field) else element

    def _element(self, field: FieldDescriptor) -> DataType:
        if (scalar := scalar_type(field)) is not None:
            return scalar
        return self.struct(field.message_type)


def scalar_type(field: FieldDescriptor) -> DataType | None:
    """The type of a field's values, or of its items; None if they are messages."""
    if field.message_type is None:
        return _TYPES[field.type]
    name = field.message_type.full_name
    if name == DECIMAL_MESSAGE:
        return _decimal(field)
    return TIMES.get(name) or WRAPPERS.get(name)


def _decimal(field: FieldDescriptor) -> DecimalType:
    parameters = field_parameters(field)
    try:
        precision = int(parameters.get("precision", PRECISION_DEFAULT))
        return DecimalType(precision, int(parameters.get("scale", 0)))
    except ValueError as error:
        raise SchemaError(f'the Protobuf field "{field.full_name}" is invalid: {error}') from None
