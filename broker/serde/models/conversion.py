"""Conversion: generates functions between models and the values of a format's library.

This is the common part: models, containers, None. A format defines how single values are converted,
how a record is created, and how its fields are read.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, assert_never

from broker.serde.models import values
from broker.serde.models.shapes import (
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

# The source of the conversion of a single value, which is named {x}.
Templates = dict[Scalar, str]

CHECKED: Templates = {
    Scalar.BOOLEAN: "({x} if {x} is True or {x} is False else refuse({x}))",
    Scalar.INT: "({x} if type({x}) is int and -2147483648 <= {x} <= 2147483647 else whole32({x}))",
    Scalar.LONG: "({x} if type({x}) is int else whole({x}))",
    Scalar.FLOAT: "({x} if type({x}) is float else number({x}))",
    Scalar.DOUBLE: "({x} if type({x}) is float else number({x}))",
    Scalar.STRING: "({x} if type({x}) is str else text({x}))",
    Scalar.BYTES: "({x} if type({x}) is bytes else refuse({x}))",
    Scalar.UUID: "uuid_text({x})",
}
SAME: Templates = dict.fromkeys(
    (
        Scalar.BOOLEAN,
        Scalar.INT,
        Scalar.LONG,
        Scalar.FLOAT,
        Scalar.DOUBLE,
        Scalar.STRING,
        Scalar.BYTES,
    ),
    "{x}",
)
_SHARED = {name: each for name, each in vars(values).items() if callable(each)}


class Conversion(ABC):
    """Generates the sources of one direction; a format's subclass adds its own parts."""

    templates: Templates

    def __init__(self, title: str) -> None:
        self.program = Program(title)
        self.program.shared(**_SHARED)
        self._models: dict[ModelShape, str] = {}

    # Any: only the shape knows the types.
    def function(self, shape: Shape) -> Callable[[Any], Any]:
        """The conversion of values of a shape."""
        name = self.program.name("convert")
        self.program.define(name, "x", f"return {self.source(shape, 'x')}")
        return self.program.function(name)

    def source(self, shape: Shape, x: str) -> str:
        """The conversion of the value named x, as an expression."""
        match shape:
            case Scalar():
                return self.templates[shape].format(x=x)
            case ModelShape():
                return f"{self._model(shape)}({x})"
            case OptionalShape(inner=inner):
                return f"(None if {x} is None else {self.optional(inner, x)})"
            case ArrayShape():
                return self.array(shape, x)
            case MapShape(value=inner):
                # A unique name, because maps may contain maps.
                each, key = self.program.name("v"), self.program.name("k")
                return f"{{{key}: {self.source(inner, each)} for {key}, {each} in {x}.items()}}"
            case UnionShape():
                return self.union(shape, x)
            case DecimalShape():
                return self.decimal(shape, x)
            case EnumShape():
                return self.enum(shape, x)
            case LiteralShape():
                known = self.program.constant("known", frozenset(shape.values))
                return f"({x} if {x} in {known} else refuse({x}))"
            case _:
                assert_never(shape)

    def _model(self, shape: ModelShape) -> str:
        if shape not in self._models:
            # The name is assigned first, because the function may call itself.
            name = self._models[shape] = self.program.name("model")
            self.program.define(name, "m", *self.model(shape))
        return self._models[shape]

    def items(self, shape: ArrayShape, x: str) -> str:
        """The items of an array as a list."""
        each = self.program.name("e")
        inner = self.source(shape.element, each)
        return f"list({x})" if inner == each else f"[{inner} for {each} in {x}]"

    def optional(self, inner: Shape, x: str) -> str:
        """An optional value that is not None."""
        return self.source(inner, x)

    @abstractmethod
    def array(self, shape: ArrayShape, x: str) -> str:
        """An array."""
        ...

    def union(self, shape: UnionShape, x: str) -> str:
        """One of several shapes; formats without this method convert unions elsewhere."""
        raise AssertionError(f"{shape} is at {x}")

    @abstractmethod
    def decimal(self, shape: DecimalShape, x: str) -> str:
        """A Decimal."""
        ...

    @abstractmethod
    def enum(self, shape: EnumShape, x: str) -> str:
        """A member of an Enum."""
        ...

    @abstractmethod
    def model(self, shape: ModelShape) -> list[str]:
        """The lines of a function for the model named m."""
        ...


def reading_fields(shape: ModelShape, m: str = "m") -> list[tuple[FieldShape, str, str]]:
    """The fields of the model named m: the field, a name for its value, and its source."""
    is_dict = shape.family is Family.DICT
    found = []
    for index, field in enumerate(shape.fields):
        if not is_dict:
            where = f"{m}.{field.attribute}"
        elif field.may_be_absent:
            where = f"{m}.get({field.attribute!r})"
        else:
            where = f"{m}[{field.attribute!r}]"
        found.append((field, f"a{index}", where))
    return found


def derived_first(options: Iterable[Shape]) -> list[Shape]:
    """The options of a union, subclasses first, in the order in which classes are tested."""

    def bases(option: Shape) -> int:
        return len(option.cls.__mro__) if isinstance(option, ModelShape | EnumShape) else 0

    return sorted(options, key=bases, reverse=True)


def class_check(program: Program, shape: ModelShape, m: str = "m") -> str:
    """A line that refuses objects of other classes than the model's."""
    cls = program.constant("cls", dict if shape.family is Family.DICT else shape.cls)
    return f"if {m}.__class__ is not {cls} and not isinstance({m}, {cls}): refuse({m})"


def made(program: Program, shape: ModelShape, parts: dict[str, str]) -> str:
    """The source of an object of a model, from the sources of its fields."""
    match shape.family:
        case Family.ATTRIBUTES:
            cls = program.constant("cls", shape.cls)
            arguments = (f"{_parameter(shape.cls, name)}={each}" for name, each in parts.items())
            return f"{cls}({', '.join(arguments)})"
        case Family.PYDANTIC:
            # Names in the schema are the aliases, which pydantic also expects.
            make = program.constant("make", getattr(shape.cls, "model_validate"))  # noqa: B009
            names = {field.attribute: field.name for field in shape.fields}
            items = (f"{names[name]!r}: {each}" for name, each in parts.items())
            return f"{make}({{{', '.join(items)}}})"
        case Family.DICT:
            found = f"{{{', '.join(f'{name!r}: {each}' for name, each in parts.items())}}}"
            absent = {field.attribute for field in shape.fields if field.may_be_absent}
            return f"without_none({found}, {sorted(absent)!r})" if absent else found


def _parameter(cls: type, name: str) -> str:
    # attrs removes the underscore of a private attribute.
    return name.lstrip("_") if hasattr(cls, "__attrs_attrs__") else name
