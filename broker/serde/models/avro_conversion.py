"""Models to fastavro's values and back: dicts with numbers for times and bytes for decimals.

A value of a union has the name of its branch; otherwise fastavro would try all branches.
"""

from typing import assert_never

from broker.errors import SchemaError
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
from broker.serde.models.shapes import (
    ArrayShape,
    DecimalShape,
    EnumShape,
    Family,
    LiteralShape,
    MapShape,
    ModelShape,
    OptionalShape,
    Scalar,
    Shape,
    UnionShape,
)
from broker.serde.program import Program

BASE: dict[Scalar, str] = {
    Scalar.BOOLEAN: "boolean",
    Scalar.INT: "int",
    Scalar.LONG: "long",
    Scalar.FLOAT: "float",
    Scalar.DOUBLE: "double",
    Scalar.STRING: "string",
    Scalar.BYTES: "bytes",
    Scalar.UUID: "string",
    Scalar.DATE: "int",
    Scalar.TIME: "long",
    Scalar.TIMESTAMP: "long",
    Scalar.LOCAL_TIMESTAMP: "long",
    Scalar.DURATION: "long",
}
# The Python class of values before they are written; after they are read, they have the same class
# or that of the base type.
PYTHON: dict[Scalar, str] = {
    Scalar.BOOLEAN: "bool",
    Scalar.INT: "int",
    Scalar.LONG: "int",
    Scalar.FLOAT: "float",
    Scalar.DOUBLE: "float",
    Scalar.STRING: "str",
    Scalar.BYTES: "bytes",
    Scalar.UUID: "UUID",
    Scalar.DATE: "date",
    Scalar.TIME: "time",
    Scalar.TIMESTAMP: "datetime",
    Scalar.LOCAL_TIMESTAMP: "datetime",
    Scalar.DURATION: "timedelta",
}


def branch_name(shape: Shape) -> str:
    """The name of a union's branch: the type, or the name of a named type."""
    match shape:
        case Scalar():
            return BASE[shape]
        case DecimalShape():
            return "bytes"
        case LiteralShape(scalar=scalar):
            return BASE[scalar]
        case EnumShape():
            return f"{shape.namespace}.{shape.name}" if shape.namespace else shape.name
        case ModelShape():
            return shape.full_name
        case ArrayShape():
            return "array"
        case MapShape():
            return "map"
        case OptionalShape() | UnionShape():
            raise AssertionError("a union has no unions in it")
        case _:
            assert_never(shape)


class AvroWriting(Conversion):
    """From models."""

    templates = CHECKED | {
        Scalar.DATE: "days({x})",
        Scalar.TIME: "day_micros({x})",
        Scalar.TIMESTAMP: "micros({x})",
        Scalar.LOCAL_TIMESTAMP: "local_micros({x})",
        Scalar.DURATION: "micros_of({x})",
    }

    def optional(self, inner: Shape, x: str) -> str:
        """With the name of the branch."""
        if isinstance(inner, UnionShape):
            return self.union(inner, x)
        return f"({branch_name(inner)!r}, {self.source(inner, x)})"

    def array(self, shape: ArrayShape, x: str) -> str:
        """A list."""
        return self.items(shape, f"elements({x})")

    def union(self, shape: UnionShape, x: str) -> str:
        """The first branch whose class the value has, with its name."""
        name, lines = self.program.name("union"), []
        for option in derived_first(shape.options):
            test = written_test(self.program, option)
            lines.append(f"if {test}: return ({branch_name(option)!r}, {self.source(option, 'x')})")
        self.program.define(name, "x", *lines, "return refuse(x)")
        return f"{name}({x})"

    def decimal(self, shape: DecimalShape, x: str) -> str:
        """Bytes."""
        return f"{self.program.constant('decimal', values.decimal_writer(shape))}({x})"

    def enum(self, shape: EnumShape, x: str) -> str:
        """The symbol."""
        cls = self.program.constant("cls", shape.cls)
        return f"({x}._name_ if isinstance({x}, {cls}) else refuse({x}))"

    def model(self, shape: ModelShape) -> list[str]:
        """A dict."""
        fields = reading_fields(shape)
        items = (f"{field.name!r}: {self.source(field.shape, name)}" for field, name, _ in fields)
        return [
            class_check(self.program, shape),
            *(f"{name} = {where}" for _, name, where in fields),
            f"return {{{', '.join(items)}}}",
        ]


class AvroReading(Conversion):
    """To models."""

    templates = SAME | {
        Scalar.UUID: "uuid({x})",
        Scalar.DATE: "day({x})",
        Scalar.TIME: "time_of_day({x})",
        Scalar.TIMESTAMP: "timestamp({x})",
        Scalar.LOCAL_TIMESTAMP: "local_timestamp({x})",
        Scalar.DURATION: "duration({x})",
    }

    def array(self, shape: ArrayShape, x: str) -> str:
        """The container of the type hint; a list of fastavro can be used directly."""
        items = self.items(shape, x)
        if shape.make is list:
            return x if items == f"list({x})" else items
        return f"{self.program.constant('make', shape.make)}({items})"

    def union(self, shape: UnionShape, x: str) -> str:
        """The branch is identified by the class of fastavro's value."""
        name, lines, tests = self.program.name("union"), [], set[str]()
        for option in shape.options:
            test = _read_test(option)
            if test in tests:
                raise SchemaError(
                    "the types of a union cannot be distinguished when they are read from Avro",
                    at=f"union of {', '.join(map(branch_name, shape.options))}",
                    hint="give the models different fields, or wrap one of the types in a model",
                )
            tests.add(test)
            lines.append(f"if {test}: return {self.source(option, 'x')}")
        self.program.define(name, "x", *lines, "return refuse(x)")
        return f"{name}({x})"

    def decimal(self, shape: DecimalShape, x: str) -> str:
        """A Decimal."""
        return f"{self.program.constant('decimal', values.decimal_reader(shape))}({x})"

    def enum(self, shape: EnumShape, x: str) -> str:
        """The member with the symbol."""
        members = values.EnumMembers(shape.cls.__name__, shape.cls.__members__)
        return f"{self.program.constant('members', members)}[{x}]"

    def model(self, shape: ModelShape) -> list[str]:
        """An object of the model's class."""
        lines, parts = [], {}
        for index, field in enumerate(shape.fields):
            name, where = f"a{index}", f"m[{field.name!r}]"
            source = self.source(field.shape, name)
            # A value without a conversion needs no name.
            parts[field.attribute] = where if source == name else source
            lines += [] if source == name else [f"{name} = {where}"]
        return [*lines, f"return {made(self.program, shape, parts)}"]


def written_test(program: Program, option: Shape) -> str:
    """The source of the test whether x is a value of one option of a union."""
    match option:
        case ModelShape(family=Family.DICT) | MapShape():
            return "isinstance(x, dict)"
        case ModelShape(cls=cls) | EnumShape(cls=cls):
            return f"isinstance(x, {program.constant('cls', cls)})"
        case ArrayShape():
            return "isinstance(x, (list, tuple, set, frozenset))"
        case LiteralShape(values=known):
            return f"x in {known!r}"
        case _:
            return f"type(x).__name__ == {_python(option)!r}"


def _read_test(option: Shape) -> str:
    match option:
        case ModelShape():
            return f"isinstance(x, dict) and x.keys() == {{{', '.join(_names(option))}}}"
        case MapShape():
            return "isinstance(x, dict)"
        case ArrayShape():
            return "isinstance(x, list)"
        case EnumShape():
            return "type(x).__name__ == 'str'"
        case LiteralShape(scalar=scalar):
            return f"type(x).__name__ == {PYTHON[scalar]!r}"
        case Scalar.DURATION:
            return "type(x).__name__ == 'int'"
        case _:
            return f"type(x).__name__ == {_python(option)!r}"


def _names(shape: ModelShape) -> list[str]:
    return sorted(repr(field.name) for field in shape.fields) or ["None"]


def _python(option: Shape) -> str:
    return PYTHON[option] if isinstance(option, Scalar) else "Decimal"
