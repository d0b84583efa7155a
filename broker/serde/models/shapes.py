"""Shapes: type hints, reduced to the kinds that schemas support."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

# The default of a field that has none.
REQUIRED = object()


class Scalar(Enum):
    """Scalar values; the string is their name in errors."""

    BOOLEAN = "a bool"
    INT = "a 32-bit int"
    LONG = "a 64-bit int"
    FLOAT = "a float "  # of 32 bits; the space prevents an alias
    DOUBLE = "a float"
    STRING = "a str"
    BYTES = "bytes"
    UUID = "a UUID"
    DATE = "a date"
    TIME = "a time without a time zone"
    TIMESTAMP = "a datetime with a time zone"
    LOCAL_TIMESTAMP = "a datetime without a time zone"
    DURATION = "a timedelta"


@dataclass(frozen=True, slots=True)
class DecimalShape:
    """Decimals with a number of digits."""

    precision: int
    scale: int


@dataclass(frozen=True, slots=True)
class EnumShape:
    """Members of an Enum, by their names."""

    cls: type[Enum]
    name: str
    namespace: str
    doc: str
    symbols: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LiteralShape:
    """One of some strings, or of some numbers."""

    scalar: Scalar
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class ArrayShape:
    """Values of one shape, in the container that `make` creates."""

    element: "Shape"
    make: Callable[[list[object]], object]


@dataclass(frozen=True, slots=True)
class MapShape:
    """Values of one shape by string."""

    value: "Shape"


@dataclass(frozen=True, slots=True)
class OptionalShape:
    """A value or None."""

    inner: "Shape"


@dataclass(frozen=True, slots=True)
class UnionShape:
    """A value of one of several shapes, none of them optional."""

    options: tuple["Shape", ...]


class Family(Enum):
    """Kinds of classes, by how they are read and created."""

    ATTRIBUTES = "attributes"  # dataclasses, msgspec.Struct, attrs, NamedTuple
    DICT = "dict"  # TypedDict
    PYDANTIC = "pydantic"


@dataclass(frozen=True, slots=True)
class FieldShape:
    """A field: its name in the class, its name in the schema, and its shape."""

    attribute: str
    name: str
    shape: "Shape"
    default: object = REQUIRED
    factory: Callable[[], object] | None = None
    doc: str = ""
    number: int | None = None
    may_be_absent: bool = False  # of a TypedDict


# Compared by identity, because a model may contain itself.
@dataclass(eq=False, slots=True)
class ModelShape:
    """A class with named fields, which are added later, because they may refer to it."""

    cls: type
    family: Family
    name: str
    namespace: str
    doc: str
    fields: list[FieldShape] = field(default_factory=list)

    @property
    def full_name(self) -> str:
        """With the namespace, if it has one."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


Shape = (
    Scalar
    | DecimalShape
    | EnumShape
    | LiteralShape
    | ArrayShape
    | MapShape
    | OptionalShape
    | UnionShape
    | ModelShape
)


def models_in(shape: Shape) -> list[ModelShape]:
    """All models of a shape, including nested ones, each once, in the order of the walk."""
    return [each for each in _named(shape, []) if isinstance(each, ModelShape)]


def enums_in(shape: Shape) -> list[EnumShape]:
    """All enums of a shape, likewise."""
    return [each for each in _named(shape, []) if isinstance(each, EnumShape)]


def is_recursive(shape: Shape) -> bool:
    """Whether a model contains itself, directly or through others."""
    return any(
        model in models_in(field.shape) for model in models_in(shape) for field in model.fields
    )


def _named(shape: Shape, met: list[ModelShape | EnumShape]) -> list[ModelShape | EnumShape]:
    match shape:
        case ModelShape():
            if shape not in met:
                met.append(shape)
                for each in shape.fields:
                    _named(each.shape, met)
        case EnumShape():
            if shape not in met:
                met.append(shape)
        case ArrayShape(element=inner) | MapShape(value=inner) | OptionalShape(inner=inner):
            _named(inner, met)
        case UnionShape(options=options):
            for option in options:
                _named(option, met)
        case _:
            pass
    return met
