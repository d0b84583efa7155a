"""The Avro schema of a model.

    str string              datetime timestamp-micros       list, tuple, set  array
    int long, Int32 int     LocalTime local-timestamp-micros   dict[str, T]   map
    float double, Float32   date date, time time-micros     T | None  ["null", T], default null
    bytes bytes             timedelta long of microseconds  A | B     [A, B]
    UUID string uuid        Decimal bytes decimal(38, 9) or from DecimalDigits
    Enum enum, by the names of members                      Literal   string or long

Microseconds, because that is the precision of Python's times.
"""

import json
from collections.abc import Sequence
from typing import assert_never

from broker.errors import SchemaError
from broker.serde.models.avro_conversion import BASE, AvroWriting, branch_name
from broker.serde.models.mismatch import find_mismatch
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
)
from broker.serde.schema.schema import Schema, SchemaKind

LOGICAL: dict[Scalar, str] = {
    Scalar.UUID: "uuid",
    Scalar.DATE: "date",
    Scalar.TIME: "time-micros",
    Scalar.TIMESTAMP: "timestamp-micros",
    Scalar.LOCAL_TIMESTAMP: "local-timestamp-micros",
}


def avro_schema_of(shape: Shape) -> Schema:
    """The schema that is registered for values of a shape."""
    return Schema(json.dumps(_Derivation().type(shape)), SchemaKind.AVRO)


class _Derivation:
    """Remembers defined names: later uses only refer to them."""

    def __init__(self) -> None:
        self._defined: set[str] = set()

    def type(self, shape: Shape) -> object:
        """The JSON of a type."""
        match shape:
            case Scalar():
                base, logical = BASE[shape], LOGICAL.get(shape)
                return base if logical is None else {"type": base, "logicalType": logical}
            case DecimalShape(precision=precision, scale=scale):
                digits = {"precision": precision, "scale": scale}
                return {"type": "bytes", "logicalType": "decimal", **digits}
            case LiteralShape(scalar=scalar):
                return BASE[scalar]
            case EnumShape():
                return self._enum(shape)
            case ModelShape():
                return self._record(shape)
            case ArrayShape(element=element):
                return {"type": "array", "items": self.type(element)}
            case MapShape(value=value):
                return {"type": "map", "values": self.type(value)}
            case OptionalShape(inner=inner):
                return ["null", *self._branches(_options(inner))]
            case UnionShape():
                return self._branches(shape.options)
            case _:
                assert_never(shape)

    def _branches(self, options: Sequence[Shape]) -> list[object]:
        names = [branch_name(each) for each in options]
        if len(set(names)) < len(names):
            raise SchemaError(
                "an Avro union can contain each type only once, but this one has "
                f"{', '.join(names)}",
                hint="wrap one of the types in a model",
            )
        return [self.type(each) for each in options]

    def _union_from(self, shape: OptionalShape | UnionShape, first: str) -> list[object]:
        """A union whose first branch is that of the default."""
        options = list(_options(shape.inner if isinstance(shape, OptionalShape) else shape))
        options.sort(key=lambda option: branch_name(option) != first)
        found = self._branches(options)
        if isinstance(shape, OptionalShape):
            found.insert(0 if first == "null" else 1, "null")
        return found

    def _enum(self, shape: EnumShape) -> object:
        if branch_name(shape) in self._defined:
            return branch_name(shape)
        self._defined.add(branch_name(shape))
        return {"type": "enum", **_head(shape), "symbols": list(shape.symbols)}

    def _record(self, shape: ModelShape) -> object:
        if shape.full_name in self._defined:
            return shape.full_name
        self._defined.add(shape.full_name)
        fields = [self._field(shape, field) for field in shape.fields]
        return {"type": "record", **_head(shape), "fields": fields}

    def _field(self, model: ModelShape, field: FieldShape) -> dict[str, object]:
        where = f'field "{field.attribute}" of "{model.cls.__name__}"'
        doc = {"doc": field.doc} if field.doc else {}
        shape, default = field.shape, field.default
        try:
            if default is REQUIRED:
                nullable = isinstance(shape, OptionalShape)
                end: dict[str, object] = {"default": None} if nullable else {}
                return {"name": field.name, "type": self.type(shape), **doc, **end}
            branch, datum = _default(shape, default, where)
            if isinstance(shape, OptionalShape | UnionShape):
                kind: object = self._union_from(shape, branch)
            else:
                kind = self.type(shape)
            return {"name": field.name, "type": kind, **doc, "default": datum}
        except SchemaError as error:
            raise SchemaError(error.message, at=error.at or where, hint=error.hint) from error


def _options(shape: Shape) -> tuple[Shape, ...]:
    return shape.options if isinstance(shape, UnionShape) else (shape,)


def _head(shape: ModelShape | EnumShape) -> dict[str, object]:
    found: dict[str, object] = {"name": shape.name}
    if shape.namespace:
        found["namespace"] = shape.namespace
    if shape.doc:
        found["doc"] = shape.doc
    return found


def _default(shape: Shape, value: object, where: str) -> tuple[str, object]:
    """The branch of a default, if its type is a union, and its JSON."""
    wrong = find_mismatch(shape, value)
    if wrong is not None:
        raise SchemaError(
            f"the default does not match its type: {wrong}", at=where, hint="change one of the two"
        )
    datum = AvroWriting("default").function(shape)(value)
    if isinstance(shape, OptionalShape | UnionShape):
        if datum is None:
            return "null", None
        branch, datum = datum
        return branch, _json(datum)
    return "", _json(datum)


def _json(datum: object) -> object:
    """A datum in the JSON format of defaults."""
    match datum:
        case bytes():
            return datum.decode("latin-1")
        case tuple():
            # A branch of a union: the JSON of defaults does not contain names of branches.
            return _json(datum[1])
        case list():
            return [_json(each) for each in datum]
        case dict():
            return {key: _json(each) for key, each in datum.items()}
        case _:
            return datum
