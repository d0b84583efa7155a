"""Models to Protobuf messages and back."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from dataclasses import field as attribute
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from keyword import iskeyword
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
    Conversion,
    class_check,
    derived_first,
    made,
    reading_fields,
)
from broker.serde.models.protobuf_derivation import (
    DATE,
    DECIMAL,
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
from broker.serde.schema.protobuf_schema import ProtobufSchema

NANOS = 1000  # in a microsecond

# Any in this file: messages, whose classes are made of descriptors.


class Messages:
    """The classes of messages, by their full names."""

    def __init__(self, schema: ProtobufSchema) -> None:
        """All models are in the package of the first one."""
        self.named: Callable[[str], Any] = schema.message_class
        self._package = schema.file.package

    def of(self, shape: ModelShape) -> Any:
        """The message of a model."""
        return self.named(f"{self._package}.{shape.name}" if self._package else shape.name)


class ProtobufWriting(Conversion):
    """From models."""

    templates = CHECKED

    def __init__(self, title: str, messages: Messages) -> None:
        super().__init__(title)
        self._messages = messages

    def source(self, shape: Shape, x: str) -> str:
        """Times are messages of their own."""
        if isinstance(shape, Scalar) and shape in MESSAGES:
            make = _WRITERS[MESSAGES[shape]](self._messages.named(MESSAGES[shape]))
            return f"{self.program.constant('time', make)}({x})"
        return super().source(shape, x)

    def array(self, shape: ArrayShape, x: str) -> str:
        """A list."""
        return self.items(shape, f"elements({x})")

    def decimal(self, shape: DecimalShape, x: str) -> str:
        """A message of bytes."""
        message, write = self._messages.named(DECIMAL), values.decimal_writer(shape)
        precision, scale = shape.precision, shape.scale

        def make(value: Decimal) -> Any:
            return message(value=write(value), precision=precision, scale=scale)

        return f"{self.program.constant('decimal', make)}({x})"

    def enum(self, shape: EnumShape, x: str) -> str:
        """The number."""
        cls = self.program.constant("cls", shape.cls)
        numbers = self.program.constant("numbers", enum_numbers(shape))
        return f"({numbers}[{x}._name_] if isinstance({x}, {cls}) else refuse({x}))"

    def model(self, shape: ModelShape) -> list[str]:
        """A message; what is None is not set."""
        fields = reading_fields(shape)
        message = self.program.constant("message", self._messages.of(shape))
        arguments = []
        for field, name, _ in fields:
            inner = inner_of(field.shape)
            if isinstance(inner, UnionShape):
                arguments.append(f"**{self._oneof(field, inner)}({name})")
            elif iskeyword(field.name):
                arguments.append(f"**{{{field.name!r}: {self.source(field.shape, name)}}}")
            else:
                arguments.append(f"{field.name}={self.source(field.shape, name)}")
        return [
            class_check(self.program, shape),
            *(f"{name} = {where}" for _, name, where in fields),
            f"return {message}({', '.join(arguments)})",
        ]

    def _oneof(self, field: FieldShape, union: UnionShape) -> str:
        """A function to the one field of a oneof that is set."""
        name, lines = self.program.name("oneof"), []
        if isinstance(field.shape, OptionalShape):
            lines.append("if x is None: return {}")
        options = {option.shape: option for option in options_of(field, union)}
        for option in map(options.__getitem__, derived_first(union.options)):
            test = self._test(option.shape)
            lines.append(f"if {test}: return {{{option.name!r}: {self.source(option.shape, 'x')}}}")
        self.program.define(name, "x", *lines, "return refuse(x)")
        return name

    def _test(self, shape: Shape) -> str:
        if isinstance(shape, ModelShape | EnumShape):
            is_dict = isinstance(shape, ModelShape) and shape.family is Family.DICT
            return f"isinstance(x, {self.program.constant('cls', dict if is_dict else shape.cls)})"
        if isinstance(shape, LiteralShape):
            return f"x in {shape.values!r}"
        kind = Decimal if isinstance(shape, DecimalShape) else _PYTHON[shape]
        return f"type(x) is {self.program.constant('kind', kind)}"


# Any: what comes out is known to the shape alone.
def message_reader(title: str, shape: Shape, message: Descriptor) -> Callable[[Any], Any]:
    """A function from messages to values of a shape."""
    program = Program(title)
    return Decoding(program, _Reading(program)).function(message, _Wanted(shape))


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A shape, and the field that has it, which says what takes the place of a missing value."""

    shape: Shape
    field: FieldShape | None = attribute(default=None, compare=False)


class _Reading:
    """Makes models."""

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
        """From what the schema has for the shape."""
        shape = inner_of(wanted.shape)
        match shape:
            case Scalar():
                return _TEMPLATES[shape].format(x=x)
            case DecimalShape():
                # The scale is the one it was written with.
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
        members = [
            message.oneofs_by_name[each.name]
            if isinstance(inner_of(each.shape), UnionShape)
            else message.fields_by_name[each.name]
            for each in shape.fields
        ]
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
            # A default that could be changed must not be shared.
            return f"deepcopy({default})" if isinstance(field.shape, ModelShape) else default
        if isinstance(field.shape, OptionalShape):
            return "None"
        return f"missing({field.attribute!r})"

    def items(self, field: FieldDescriptor, wanted: _Wanted, x: str) -> tuple[_Wanted, str]:
        """In the container of the hint."""
        shape = inner_of(wanted.shape)
        assert isinstance(shape, ArrayShape), "no other shape has a repeated field"
        make = x if shape.make is list else f"{self._program.constant('make', shape.make)}({x})"
        return _Wanted(shape.element), make

    def entries(self, field: FieldDescriptor, wanted: _Wanted) -> tuple[_Wanted, _Wanted]:
        """Keys are strings."""
        shape = inner_of(wanted.shape)
        assert isinstance(shape, MapShape), "no other shape has a map"
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


def _timestamp_writer(message: Any) -> Any:
    def write(value: datetime) -> Any:
        seconds, rest = divmod(values.micros(value), values.SECOND)
        return message(seconds=seconds, nanos=rest * NANOS)

    return write


def _duration_writer(message: Any) -> Any:
    def write(value: timedelta) -> Any:
        total = values.micros_of(value)
        seconds, rest = divmod(abs(total), values.SECOND)
        # Both have the sign of the whole.
        sign = -1 if total < 0 else 1
        return message(seconds=sign * seconds, nanos=sign * rest * NANOS)

    return write


def _date_writer(message: Any) -> Any:
    def write(value: date) -> Any:
        values.days(value)  # which refuses a datetime
        return message(year=value.year, month=value.month, day=value.day)

    return write


def _time_writer(message: Any) -> Any:
    def write(value: time) -> Any:
        values.day_micros(value)  # which refuses a time zone
        return message(
            hours=value.hour,
            minutes=value.minute,
            seconds=value.second,
            nanos=value.microsecond * NANOS,
        )

    return write


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


_WRITERS = {
    TIMESTAMP: _timestamp_writer,
    DURATION: _duration_writer,
    DATE: _date_writer,
    TIME: _time_writer,
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
