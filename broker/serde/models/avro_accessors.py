"""Models directly to Avro's bytes and back, for schemas derived from the model.

This takes half the time of conversions to fastavro's dicts. Models that contain themselves are left
to fastavro, because the depth of their values must be checked.
"""

from collections.abc import Callable, Sequence
from typing import Any

from broker.serde.avro_codec.decoding import Decoding, Made
from broker.serde.avro_codec.encoding import Choice, Encoding, Option, Parts
from broker.serde.avro_codec.wire import number
from broker.serde.models import values
from broker.serde.models.avro_conversion import AvroReading, AvroWriting, branch_name, written_test
from broker.serde.models.conversion import class_check, derived_first, made, reading_fields
from broker.serde.models.shapes import (
    ArrayShape,
    DecimalShape,
    EnumShape,
    LiteralShape,
    MapShape,
    ModelShape,
    OptionalShape,
    Scalar,
    Shape,
    UnionShape,
)
from broker.serde.program import Program
from broker.serde.schema.avro_types import AvroType

_SHARED = {name: each for name, each in vars(values).items() if callable(each)}


# Any: only the shape knows the type of the values.
def bytes_writer(title: str, shape: Shape, node: AvroType) -> Callable[[Any], bytes]:
    """A function from values of a shape to the bytes of its schema."""
    program = Program(title)
    return Encoding(program, _Writing(program), values.converted).function(node, shape)


# Any: only the shape knows the type of the values.
def bytes_reader(title: str, shape: Shape, node: AvroType, skip: int = 0) -> Callable[[bytes], Any]:
    """A function from bytes, of which the first are skipped, to a value."""
    program = Program(title)
    return Decoding(program, _Reading(program)).function(node, shape, skip=skip)


class _Writing:
    """Reads the attributes of models."""

    def __init__(self, program: Program) -> None:
        self._program = program
        program.shared(**_SHARED)

    def null(self, node: AvroType, wanted: Shape) -> str | None:
        """The branch of null, if it is allowed."""
        if not isinstance(wanted, OptionalShape) or node.null_at is None:
            return None
        return repr(number(node.null_at))

    def leaf(self, node: AvroType, wanted: Shape, x: str) -> str:
        """The value that fastavro would get, except where the writers validate it."""
        wanted = _inner(wanted)
        match wanted:
            case Scalar.UUID:
                return f"uuid_text({x})"
            case Scalar():
                return AvroWriting.templates[wanted].format(x=x) if wanted in _TIMES else x
            case DecimalShape():
                return f"{self._program.constant('decimal', values.decimal_writer(wanted))}({x})"
            case EnumShape():
                cls = self._program.constant("cls", wanted.cls)
                return f"{x}._name_ if isinstance({x}, {cls}) else refuse({x})"
            case LiteralShape():
                known = self._program.constant("known", frozenset(wanted.values))
                return f"{x} if {x} in {known} else refuse({x})"
        raise AssertionError(f"{wanted} has parts")

    def record(self, node: AvroType, wanted: Shape) -> Parts[Shape]:
        """The attributes of an object, or the items of a dict."""
        shape = _inner(wanted)
        assert isinstance(shape, ModelShape), "no other shape has a record as its schema"
        fields = reading_fields(shape, "x")
        lines = [class_check(self._program, shape, "x")]
        lines += [f"{name} = {where}" for _, name, where in fields]
        return Parts(lines, [(name, field.shape) for field, name, _ in fields])

    def items(self, node: AvroType, wanted: Shape, x: str) -> tuple[str, Shape]:
        """Of a list, tuple or set."""
        return f"elements({x})", _part(wanted)

    def entries(self, node: AvroType, wanted: Shape, x: str) -> tuple[str, Shape]:
        """Of a dict."""
        return f"{x}.items()", _part(wanted)

    def union(
        self, node: AvroType, wanted: Shape, fits: Callable[[AvroType, Shape], bool]
    ) -> Choice[Shape]:
        """The first branch whose class the value has."""
        names = [each.name or each.kind for each in node.branches]
        options = [
            Option(written_test(self._program, each), names.index(branch_name(each)), "x", each)
            for each in derived_first(_options(wanted))
        ]
        return Choice([], options, "return refuse(x)")


class _Reading:
    """Creates models."""

    def __init__(self, program: Program) -> None:
        self._program = program
        program.shared(**_SHARED)

    def leaf(self, node: AvroType, wanted: Shape, x: str) -> str:
        """From the value without its logical type."""
        wanted = _inner(wanted)
        match wanted:
            case Scalar():
                return AvroReading.templates[wanted].format(x=x)
            case DecimalShape():
                return f"{self._program.constant('decimal', values.decimal_reader(wanted))}({x})"
            case EnumShape():
                members = values.EnumMembers(wanted.cls.__name__, wanted.cls.__members__)
                return f"{self._program.constant('members', members)}[{x}]"
            case LiteralShape():
                known = self._program.constant("known", frozenset(wanted.values))
                return f"{x} if {x} in {known} else refuse({x})"
        raise AssertionError(f"{wanted} has parts")

    def record(self, node: AvroType, wanted: Shape) -> Made[Shape]:
        """An object of the model's class, or a dict."""
        shape = _inner(wanted)
        assert isinstance(shape, ModelShape), "no other shape has a record as its schema"

        def source(names: Sequence[str]) -> str:
            attributes = (each.attribute for each in shape.fields)
            return made(self._program, shape, dict(zip(attributes, names, strict=True)))

        return Made([(each.name, each.shape) for each in shape.fields], source)

    def items(self, node: AvroType, wanted: Shape, x: str) -> tuple[Shape, str]:
        """The container of the type hint."""
        shape = _inner(wanted)
        is_list = isinstance(shape, ArrayShape) and shape.make is list
        make = getattr(shape, "make")  # noqa: B009
        return _part(wanted), x if is_list else f"{self._program.constant('make', make)}({x})"

    def entries(self, node: AvroType, wanted: Shape, x: str) -> tuple[Shape, str]:
        """A dict."""
        return _part(wanted), x

    def branches(self, node: AvroType, wanted: Shape, x: str) -> Sequence[tuple[Shape, str]]:
        """The options, by their names."""
        by_name = {branch_name(each): each for each in _options(wanted)}
        present = [each for each in node.branches if each.kind != "null"]
        return [(by_name[each.name or each.kind], x) for each in present]


# Converters for values that the writers of Avro's own types do not support.
_TIMES = AvroWriting.templates.keys() & {
    Scalar.DATE,
    Scalar.TIME,
    Scalar.TIMESTAMP,
    Scalar.LOCAL_TIMESTAMP,
    Scalar.DURATION,
}


def _inner(shape: Shape) -> Shape:
    return shape.inner if isinstance(shape, OptionalShape) else shape


def _options(shape: Shape) -> tuple[Shape, ...]:
    inner = _inner(shape)
    return inner.options if isinstance(inner, UnionShape) else (inner,)


def _part(shape: Shape) -> Shape:
    inner = _inner(shape)
    if isinstance(inner, MapShape):
        return inner.value
    assert isinstance(inner, ArrayShape), "no other shape has elements"
    return inner.element
