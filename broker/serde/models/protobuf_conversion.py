"""Models to Protobuf messages and back."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from dataclasses import field as attribute
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from google.protobuf.descriptor import (  # type: ignore[import-untyped]
    Descriptor,
    FieldDescriptor,
    OneofDescriptor,
)

from broker.serde.models import values
from broker.serde.models.conversion import (
    CHECKED,
    SAME,
    class_check,
    derived_first,
    made,
    reading_fields,
)
from broker.serde.models.protobuf_derivation import (
    DATE,
    DURATION,
    MESSAGES,
    TIME,
    TIMESTAMP,
    enum_numbers,
    has_presence,
    inner_of,
    options_of,
)
from broker.serde.models.shapes import (
    REQUIRED,
    ArrayShape,
    DecimalShape,
    EnumShape,
    Family,
    FieldShape,
    LiteralShape,
    MapShape,
    ModelShape,
    OptionalShape,
    Scalar,
    Shape,
    UnionShape,
)
from broker.serde.program import Program
from broker.serde.protobuf_codec.decoding import Chosen, Decoding, Made
from broker.serde.protobuf_codec.encoding import Choice, Encoding, Parts
from broker.serde.schema.protobuf_fields import Member

NANOS = 1000  # in a microsecond

# Any in this file: messages, whose classes are created from descriptors.


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A shape, and its field, which defines the default of a missing value."""

    shape: Shape
    field: FieldShape | None = attribute(default=None, compare=False)


# Any: only the shape knows the type of the values.
def fields_writer(title: str, shape: Shape, message: Descriptor) -> Callable[[Any], dict[str, Any]]:
    """A function from values of a shape to the fields of messages."""
    program = Program(title)
    return Encoding(program, _Writing(program)).function(message, _Wanted(shape))


class _Writing:
    """Reads the attributes of models."""

    def __init__(self, program: Program) -> None:
        self._program = program
        program.shared(**{name: each for name, each in vars(values).items() if callable(each)})

    def leaf(self, field: FieldDescriptor, wanted: _Wanted, x: str) -> str | None:
        """Times and decimals as the fields of their messages; models are messages."""
        shape = inner_of(wanted.shape)
        match shape:
            case Scalar() if shape in MESSAGES:
                return f"{self._program.constant('fields', _FIELDS[MESSAGES[shape]])}({x})"
            case Scalar():
                return CHECKED[shape].format(x=x)
            case DecimalShape():
                return f"{self._program.constant('decimal', _decimal_writer(shape))}({x})"
            case EnumShape(cls=kind):
                cls = self._program.constant("cls", kind)
                numbers = self._program.constant("numbers", enum_numbers(shape))
                return f"({numbers}[{x}._name_] if isinstance({x}, {cls}) else refuse({x}))"
            case LiteralShape():
                known = self._program.constant("known", frozenset(shape.values))
                return f"({x} if {x} in {known} else refuse({x}))"
        return None

    def null(self, field: FieldDescriptor, wanted: _Wanted) -> str | None:
        """None is an unset field."""
        return "None" if isinstance(wanted.shape, OptionalShape) else None

    def null_item(self, field: FieldDescriptor, wanted: _Wanted) -> str | None:
        """Lists and maps cannot contain None."""
        return None

    def record(self, message: Descriptor, wanted: _Wanted) -> Parts[_Wanted]:
        """The attributes of an object, or the items of a dict."""
        shape = inner_of(wanted.shape)
        assert isinstance(shape, ModelShape), "no other shape has a message as its schema"
        fields = reading_fields(shape, "x")
        lines = [class_check(self._program, shape, "x")]
        lines += [f"{name} = {where}" for _, name, where in fields]
        return Parts(
            lines,
            [(_member(message, each), name, _Wanted(each.shape, each)) for each, name, _ in fields],
        )

    def union(self, union: OneofDescriptor, wanted: _Wanted) -> Choice[_Wanted]:
        """The one field of a oneof that is set."""
        field, shape = wanted.field, inner_of(wanted.shape)
        assert field is not None, "only fields have unions"
        assert isinstance(shape, UnionShape), "only unions have a oneof as their schema"
        by_name = {each.name: each for each in union.fields}
        names = {each.shape: each.name for each in options_of(field, shape)}
        options = [
            (self._test(each), by_name[names[each]], "x", _Wanted(each))
            for each in derived_first(shape.options)
        ]
        is_optional = isinstance(wanted.shape, OptionalShape)
        lines = ["if x is None: return {}"] if is_optional else []
        return Choice(lines, options, "return refuse(x)")

    def _test(self, shape: Shape) -> str:
        if isinstance(shape, ModelShape | EnumShape):
            is_dict = isinstance(shape, ModelShape) and shape.family is Family.DICT
            return f"isinstance(x, {self._program.constant('cls', dict if is_dict else shape.cls)})"
        if isinstance(shape, LiteralShape):
            return f"x in {shape.values!r}"
        kind = Decimal if isinstance(shape, DecimalShape) else _PYTHON[shape]
        return f"type(x) is {self._program.constant('kind', kind)}"

    def items(self, field: FieldDescriptor, wanted: _Wanted, x: str) -> tuple[str, _Wanted, str]:
        """Of a list, tuple or set."""
        shape = inner_of(wanted.shape)
        assert isinstance(shape, ArrayShape), "no other shape has a repeated field"
        return f"elements({x})", _Wanted(shape.element), ""

    def entries(
        self, field: FieldDescriptor, wanted: _Wanted, x: str
    ) -> tuple[str, _Wanted, _Wanted] | None:
        """A dict; but a list may have models with the names of map entries."""
        shape = inner_of(wanted.shape)
        if not isinstance(shape, MapShape):
            return None
        return f"{x}.items()", _Wanted(Scalar.STRING), _Wanted(shape.value)


def _member(message: Descriptor, field: FieldShape) -> Member:
    is_union = isinstance(inner_of(field.shape), UnionShape)
    found: Member = (message.oneofs_by_name if is_union else message.fields_by_name)[field.name]
    return found


# Any: only the shape knows the type of the values.
def message_reader(title: str, shape: Shape, message: Descriptor) -> Callable[[Any], Any]:
    """A function from messages to values of a shape."""
    program = Program(title)
    return Decoding(program, _Reading(program)).function(message, _Wanted(shape))


class _Reading:
    """Creates models."""

    def __init__(self, program: Program) -> None:
        self._program = program
        program.shared(
            uuid=values.uuid,
            without_none=values.without_none,
            read_timestamp=_read_timestamp,
            read_duration=_read_duration,
            read_date=_read_date,
            read_time=_read_time,
            deepcopy=deepcopy,
            missing=_missing,
        )

    def leaf(self, field: FieldDescriptor, wanted: _Wanted, x: str) -> str | None:
        """From the schema's value for the shape."""
        shape = inner_of(wanted.shape)
        match shape:
            case Scalar():
                return _TEMPLATES[shape].format(x=x)
            case DecimalShape():
                # The scale is the one with which it was written.
                return f"{self._program.constant('decimal', _read_decimal)}({x})"
            case EnumShape(cls=cls):
                members = {number: cls[name] for name, number in enum_numbers(shape).items()}
                found = values.EnumMembers(cls.__name__, members)
                return f"{self._program.constant('members', found)}[{x}]"
            case LiteralShape():
                return f"{self._program.constant('known', _known(frozenset(shape.values)))}({x})"
        return None

    def record(self, message: Descriptor, wanted: _Wanted) -> Made[_Wanted]:
        """An object of the model's class, or a dict."""
        shape = inner_of(wanted.shape)
        assert isinstance(shape, ModelShape), "no other shape has a message as its schema"
        members = [_member(message, each) for each in shape.fields]
        fields = [_Wanted(each.shape, each) for each in shape.fields]

        def source(sources: Sequence[str]) -> str:
            names = (each.attribute for each in shape.fields)
            return made(self._program, shape, dict(zip(names, sources, strict=True)))

        return Made([*zip(members, fields, strict=True)], source)

    def union(self, union: OneofDescriptor, wanted: _Wanted) -> Chosen[_Wanted]:
        """The value of the field of a oneof that is set."""
        field, shape = wanted.field, inner_of(wanted.shape)
        assert field is not None, "only fields have unions"
        assert isinstance(shape, UnionShape), "only unions have a oneof as their schema"
        by_name = {each.name: each for each in union.fields}
        options = [
            (by_name[each.name], _Wanted(each.shape), str) for each in options_of(field, shape)
        ]
        absent = self._absent(field)
        return Chosen(options, absent, absent)

    def absent(self, field: FieldDescriptor, wanted: _Wanted) -> str | None:
        """The default of a field that a record does not have."""
        found = wanted.field
        return self._absent(found) if found is not None and has_presence(found) else None

    def _absent(self, field: FieldShape) -> str:
        if field.factory is not None:
            return f"{self._program.constant('factory', field.factory)}()"
        if field.default is not REQUIRED and field.default is not None:
            default = self._program.constant("default", field.default)
            # A mutable default must not be shared.
            return f"deepcopy({default})" if isinstance(field.shape, ModelShape) else default
        if isinstance(field.shape, OptionalShape):
            return "None"
        return f"missing({field.attribute!r})"

    def items(self, field: FieldDescriptor, wanted: _Wanted, x: str) -> tuple[_Wanted, str]:
        """The container of the type hint."""
        shape = inner_of(wanted.shape)
        assert isinstance(shape, ArrayShape), "no other shape has a repeated field"
        make = x if shape.make is list else f"{self._program.constant('make', shape.make)}({x})"
        return _Wanted(shape.element), make

    def entries(self, field: FieldDescriptor, wanted: _Wanted) -> tuple[_Wanted, _Wanted] | None:
        """A dict; but a list may have models with the names of map entries."""
        shape = inner_of(wanted.shape)
        if not isinstance(shape, MapShape):
            return None
        return _Wanted(Scalar.STRING), _Wanted(shape.value)


_TEMPLATES = SAME | {
    Scalar.UUID: "uuid({x})",
    Scalar.TIMESTAMP: "read_timestamp({x})",
    Scalar.DURATION: "read_duration({x})",
    Scalar.DATE: "read_date({x})",
    Scalar.TIME: "read_time({x})",
}


def _known(known: frozenset[object]) -> Callable[[object], object]:
    return lambda value: value if value in known else values.refuse(value)


def _missing(name: str) -> object:
    raise ValueError(f'the record has no "{name}"')


def _timestamp_fields(value: datetime) -> dict[str, int]:
    seconds, rest = divmod(values.micros(value), values.SECOND)
    return {"seconds": seconds, "nanos": rest * NANOS}


def _duration_fields(value: timedelta) -> dict[str, int]:
    total = values.micros_of(value)
    seconds, rest = divmod(abs(total), values.SECOND)
    # Both have the sign of the duration.
    sign = -1 if total < 0 else 1
    return {"seconds": sign * seconds, "nanos": sign * rest * NANOS}


def _date_fields(value: date) -> dict[str, int]:
    values.days(value)  # refuses a datetime
    return {"year": value.year, "month": value.month, "day": value.day}


def _time_fields(value: time) -> dict[str, int]:
    values.day_micros(value)  # refuses a time zone
    return {
        "hours": value.hour,
        "minutes": value.minute,
        "seconds": value.second,
        "nanos": value.microsecond * NANOS,
    }


def _decimal_writer(shape: DecimalShape) -> Callable[[Decimal], dict[str, object]]:
    write, precision, scale = values.decimal_writer(shape), shape.precision, shape.scale
    return lambda value: {"value": write(value), "precision": precision, "scale": scale}


def _read_timestamp(found: Any) -> datetime:
    return values.EPOCH + timedelta(0, found.seconds, found.nanos // NANOS)


def _read_duration(found: Any) -> timedelta:
    return timedelta(0, found.seconds, int(found.nanos / NANOS))


def _read_date(found: Any) -> date:
    return date(found.year, found.month, found.day)


def _read_time(found: Any) -> time:
    return time(found.hours, found.minutes, found.seconds, found.nanos // NANOS)


def _read_decimal(found: Any) -> Decimal:
    digits = int.from_bytes(found.value, signed=True)
    return values.scaled(digits, found.scale)


_FIELDS: dict[str, Callable[[Any], dict[str, int]]] = {
    TIMESTAMP: _timestamp_fields,
    DURATION: _duration_fields,
    DATE: _date_fields,
    TIME: _time_fields,
}
_PYTHON: dict[Shape, type] = {
    Scalar.BOOLEAN: bool,
    Scalar.INT: int,
    Scalar.LONG: int,
    Scalar.FLOAT: float,
    Scalar.DOUBLE: float,
    Scalar.STRING: str,
    Scalar.BYTES: bytes,
    Scalar.UUID: UUID,
    Scalar.TIMESTAMP: datetime,
    Scalar.DURATION: timedelta,
    Scalar.DATE: date,
    Scalar.TIME: time,
}
