"""Syntax trees of expressions. Unquoted names are already in upper case."""

from dataclasses import dataclass
from decimal import Decimal

from sql.syntax.node import Node
from sql.syntax.type_names import TypeSyntax


@dataclass(frozen=True, slots=True)
class Null(Node):
    """NULL."""


@dataclass(frozen=True, slots=True)
class BooleanLiteral(Node):
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True, slots=True)
class IntegerLiteral(Node):
    """An integer: INTEGER if it fits 32 bits, otherwise BIGINT."""

    value: int


@dataclass(frozen=True, slots=True)
class DecimalLiteral(Node):
    """A number with a point and without an exponent, with exactly its digits."""

    value: Decimal


@dataclass(frozen=True, slots=True)
class DoubleLiteral(Node):
    """A number with an exponent."""

    value: float


@dataclass(frozen=True, slots=True)
class StringLiteral(Node):
    """A string in single quotes."""

    value: str


@dataclass(frozen=True, slots=True)
class IntervalUnit(Node):
    """DAYS, HOURS and so on, as an argument of DATEADD and similar functions."""

    name: str


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column, with or without its source; or a lambda's variable."""

    name: str
    source: str | None = None


@dataclass(frozen=True, slots=True)
class FieldOf(Node):
    """struct->field."""

    struct: "Expression"
    field: str


@dataclass(frozen=True, slots=True)
class Subscript(Node):
    """array[index] or map[key]."""

    base: "Expression"
    index: "Expression"


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function call; COUNT(*) has the one argument Star."""

    function: str
    arguments: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Star(Node):
    """The * of COUNT(*)."""


@dataclass(frozen=True, slots=True)
class Lambda(Node):
    """(x, y) => body."""

    parameters: tuple[str, ...]
    body: "Expression"


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """CAST(value AS type)."""

    value: "Expression"
    target: TypeSyntax


@dataclass(frozen=True, slots=True)
class Arithmetic(Node):
    """left op right, op one of + - * / %."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Concatenation(Node):
    """left || right."""

    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Signed(Node):
    """-value or +value."""

    sign: str
    value: "Expression"


@dataclass(frozen=True, slots=True)
class Comparison(Node):
    """left op right; op one of = <> < <= > >= and IS DISTINCT FROM, IS NOT DISTINCT FROM."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Logical(Node):
    """left AND right, left OR right."""

    operator: str
    left: "Expression"
    right: "Expression"


@dataclass(frozen=True, slots=True)
class Not(Node):
    """NOT value."""

    value: "Expression"


@dataclass(frozen=True, slots=True)
class IsNull(Node):
    """value IS [NOT] NULL."""

    value: "Expression"
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Between(Node):
    """value [NOT] BETWEEN low AND high."""

    value: "Expression"
    low: "Expression"
    high: "Expression"
    negated: bool = False


@dataclass(frozen=True, slots=True)
class In(Node):
    """value [NOT] IN (choices)."""

    value: "Expression"
    choices: tuple["Expression", ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Like(Node):
    """value [NOT] LIKE pattern [ESCAPE sign]."""

    value: "Expression"
    pattern: "Expression"
    escape: str | None = None
    negated: bool = False


@dataclass(frozen=True, slots=True)
class When(Node):
    """WHEN condition THEN result."""

    condition: "Expression"
    result: "Expression"


@dataclass(frozen=True, slots=True)
class Case(Node):
    """CASE [operand] WHEN ... ELSE ... END."""

    operand: "Expression | None"
    whens: tuple[When, ...]
    default: "Expression | None"


@dataclass(frozen=True, slots=True)
class ArrayOfValues(Node):
    """ARRAY[a, b]."""

    elements: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class MapOfValues(Node):
    """MAP(key := value, ...)."""

    entries: tuple[tuple["Expression", "Expression"], ...]


@dataclass(frozen=True, slots=True)
class StructOfValues(Node):
    """STRUCT(name := value, ...)."""

    fields: tuple[tuple[str, "Expression"], ...]


Literal = Null | BooleanLiteral | IntegerLiteral | DecimalLiteral | DoubleLiteral | StringLiteral
Expression = (
    Literal
    | IntervalUnit
    | Name
    | FieldOf
    | Subscript
    | Call
    | Star
    | Lambda
    | Cast
    | Arithmetic
    | Concatenation
    | Signed
    | Comparison
    | Logical
    | Not
    | IsNull
    | Between
    | In
    | Like
    | Case
    | ArrayOfValues
    | MapOfValues
    | StructOfValues
)
