"""The Protobuf file of a model: one message for each class, the model's own first.

    str string              datetime google.protobuf.Timestamp   list, tuple, set  repeated
    int int64, Int32 int32  timedelta google.protobuf.Duration   dict[str, T]      map
    float double, Float32   date google.type.Date                T | None          optional
    bytes bytes             time google.type.TimeOfDay           A | B             oneof
    UUID string             Decimal confluent.type.Decimal       Literal  string or int64
    Enum enum: COLOUR_UNSPECIFIED = 0, COLOUR_RED = 1 and so on; the members' numbers if all
    of them are integers from 0

Fields are numbered in their order, from 1, or from the FieldNumber of a previous one. A field with
a default is also optional, so that a record without it differs from one with a zero. Protobuf does
not support, and Millstream refuses: lists in lists or maps, None in lists or maps, a list or map
that may be None, a datetime without a time zone, a union that is not the type of a field.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import assert_never

from broker.errors import SchemaError
from broker.serde.models.shapes import (
    REQUIRED,
    ArrayShape,
    DecimalShape,
    EnumShape,
    FieldShape,
    LiteralShape,
    MapShape,
    ModelShape,
    OptionalShape,
    Scalar,
    Shape,
    UnionShape,
    enums_in,
    models_in,
)
from broker.serde.schema.schema import Schema, SchemaKind

PRIMITIVES: dict[Scalar, str] = {
    Scalar.BOOLEAN: "bool",
    Scalar.INT: "int32",
    Scalar.LONG: "int64",
    Scalar.FLOAT: "float",
    Scalar.DOUBLE: "double",
    Scalar.STRING: "string",
    Scalar.BYTES: "bytes",
    Scalar.UUID: "string",
}
TIMESTAMP = "google.protobuf.Timestamp"
DURATION = "google.protobuf.Duration"
DATE = "google.type.Date"
TIME = "google.type.TimeOfDay"
DECIMAL = "confluent.type.Decimal"
MESSAGES: dict[Scalar, str] = {
    Scalar.TIMESTAMP: TIMESTAMP,
    Scalar.DURATION: DURATION,
    Scalar.DATE: DATE,
    Scalar.TIME: TIME,
}
IMPORTS = {
    TIMESTAMP: "google/protobuf/timestamp.proto",
    DURATION: "google/protobuf/duration.proto",
    DATE: "google/type/date.proto",
    TIME: "google/type/timeofday.proto",
    DECIMAL: "confluent/type/decimal.proto",
}
NUMBER_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Option:
    """One of the types of a union: a field of a oneof."""

    name: str
    shape: Shape


def protobuf_schema_of(shape: Shape) -> Schema:
    """The schema that is registered for values of a model."""
    if not isinstance(shape, ModelShape):
        raise SchemaError(
            "only models have a Protobuf schema", hint="wrap the value in a dataclass with a field"
        )
    models, enums = models_in(shape), enums_in(shape)
    named: list[ModelShape | EnumShape] = [*models, *enums]
    for index, each in enumerate(named):
        if each.name in {other.name for other in named[:index]}:
            raise SchemaError(
                f'two classes have the name "{each.name}" in one Protobuf file',
                hint="give one of them another __schema_name__",
            )
    body = [line for model in models for line in _message(model)]
    body += [line for enum in enums for line in _enum(enum)]
    head = ['syntax = "proto3";']
    head += [f"package {shape.namespace};"] if shape.namespace else []
    used = "\n".join(body)
    head += [f'import "{IMPORTS[name]}";' for name in IMPORTS if re.search(rf"\b{name}\b", used)]
    return Schema("\n".join([*head, "", *body, ""]), SchemaKind.PROTOBUF)


def inner_of(shape: Shape) -> Shape:
    """The shape of an optional shape without None; otherwise the shape itself."""
    return shape.inner if isinstance(shape, OptionalShape) else shape


def has_default(field: FieldShape) -> bool:
    """Whether there is a value for a field that a record does not have."""
    return field.default is not REQUIRED or field.factory is not None


def has_presence(field: FieldShape) -> bool:
    """Whether a record distinguishes a missing field from its default."""
    inner = inner_of(field.shape)
    if isinstance(inner, ArrayShape | MapShape):
        return False
    optional = isinstance(field.shape, OptionalShape) or has_default(field)
    return optional or type_name(inner) in IMPORTS or isinstance(inner, ModelShape | UnionShape)


def options_of(field: FieldShape, union: UnionShape) -> list[Option]:
    """The fields of a union's oneof."""
    return [Option(f"{field.name}_{_snake(type_name(each))}", each) for each in union.options]


def enum_numbers(shape: EnumShape) -> dict[str, int]:
    """The number of each member of an Enum, by its name."""
    values = [each.value for each in shape.cls]
    if all(isinstance(each, int) and 0 <= each <= NUMBER_MAX for each in values):
        return {each.name: int(each.value) for each in shape.cls}
    return {name: number for number, name in enumerate(shape.symbols, 1)}


def type_name(shape: Shape) -> str:
    """The type in the declaration of a field; "" if it is not a single value."""
    match shape:
        case Scalar():
            return PRIMITIVES.get(shape) or MESSAGES.get(shape, "")
        case DecimalShape():
            return DECIMAL
        case LiteralShape(scalar=scalar):
            return PRIMITIVES[scalar]
        case EnumShape(name=name) | ModelShape(name=name):
            return name
        case ArrayShape() | MapShape() | OptionalShape() | UnionShape():
            return ""
        case _:
            assert_never(shape)


def _message(model: ModelShape) -> Iterator[str]:
    yield from (f"// {line}".rstrip() for line in model.doc.splitlines())
    yield f"message {model.name} {{"
    number, taken = 0, set[int]()
    for field in model.fields:
        number = field.number or number + 1
        lines = list(_field(model, field, number))
        ends = number + (len(lines) - 2 if len(lines) > 1 else 1)
        if taken & set(range(number, ends)):
            raise _refusal(model, field, f"two fields have the number {number}")
        taken |= set(range(number, ends))
        number = ends - 1
        yield from (f"  {line}" for line in lines)
    yield "}"


def _field(model: ModelShape, field: FieldShape, number: int) -> Iterator[str]:
    inner = inner_of(field.shape)
    optional = "optional " if has_presence(field) and type_name(inner) in _PLAIN else ""
    if isinstance(inner, EnumShape) and has_presence(field):
        optional = "optional "
    nullable = isinstance(field.shape, OptionalShape)
    if nullable and has_default(field) and field.default is not None:
        raise _refusal(model, field, "None cannot be distinguished from the default")
    match inner:
        case ArrayShape() | MapShape() if nullable:
            raise _refusal(model, field, "a list or map cannot be None; use an empty one")
        case ArrayShape(element=element):
            yield f"repeated {_single(model, field, element)} {field.name} = {number};"
        case MapShape(value=value):
            yield f"map<string, {_single(model, field, value)}> {field.name} = {number};"
        case UnionShape():
            yield f"oneof {field.name} {{"
            for index, option in enumerate(options_of(field, inner)):
                kind = _single(model, field, option.shape)
                yield f"  {kind} {option.name} = {number + index};"
            yield "}"
        case _:
            yield f"{optional}{_single(model, field, inner)} {field.name} = {number};"


def _single(model: ModelShape, field: FieldShape, shape: Shape) -> str:
    found = type_name(shape)
    if found:
        return found
    what = {
        ArrayShape: "list in a list, map or union",
        MapShape: "map in a list, map or union",
        OptionalShape: "None in a list or map",
        UnionShape: "union in a list or map",
    }
    reason = what.get(type(shape), "datetime without a time zone")
    raise _refusal(model, field, f"it has no {reason}")


def _enum(shape: EnumShape) -> Iterator[str]:
    numbers, prefix = enum_numbers(shape), _snake(shape.name).upper()
    yield from (f"// {line}".rstrip() for line in shape.doc.splitlines())
    yield f"enum {shape.name} {{"
    if 0 not in numbers.values():
        yield f"  {prefix}_UNSPECIFIED = 0;"
    # The first value must be zero.
    for name, number in sorted(numbers.items(), key=lambda item: item[1]):
        yield f"  {prefix}_{name} = {number};"
    yield "}"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.rpartition(".")[2]).lower()


def _refusal(model: ModelShape, field: FieldShape, reason: str) -> SchemaError:
    return SchemaError(
        f"Protobuf does not support the field: {reason}",
        at=f'field "{field.attribute}" of "{model.cls.__name__}"',
        hint="wrap the inner value in a model of its own, or use Avro",
    )


_PLAIN = frozenset(PRIMITIVES.values())
