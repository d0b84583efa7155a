"""Typed expressions: the result of analysis, which backends translate.

Every expression has a type; NULL without a type has the type None. Columns are indexes in the row
on which the expression is evaluated. Implicit conversions are explicit, as Convert.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

from sql.datatypes import BOOLEAN, DataType, StructType
from sql.functions.registry import Overload, Scalar


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that is the same for all rows; a NULL without a known type has the type None."""

    value: object
    type: DataType | None


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """A column of the row."""

    index: int
    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class LambdaVariable:
    """A variable of the lambda around it."""

    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class LambdaFunction:
    """(variables) => body; its type is its body's."""

    variables: tuple[LambdaVariable, ...]
    body: "TypedExpression"

    @property
    def type(self) -> DataType | None:
        """The type of its result."""
        return self.body.type


@dataclass(frozen=True, slots=True)
class FieldValue:
    """A field of a struct; null of a null struct."""

    struct: "TypedExpression"
    field: str
    type: DataType


@dataclass(frozen=True, slots=True)
class ElementValue:
    """An element of an array, counted from 1, or from the end if negative; null if none."""

    array: "TypedExpression"
    index: "TypedExpression"
    type: DataType


@dataclass(frozen=True, slots=True)
class EntryValue:
    """The value of a key in a map; null if there is none."""

    map: "TypedExpression"
    key: "TypedExpression"
    type: DataType


@dataclass(frozen=True, slots=True)
class FunctionValue:
    """A function call; interval units are Constants of the type None."""

    function: Scalar
    arguments: tuple["TypedExpression", ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class Convert:
    """CAST, or an implicit conversion.

    A value that cannot be converted is null, and reported; if `strict`, the whole expression fails.
    """

    value: "TypedExpression"
    type: DataType
    strict: bool = False


@dataclass(frozen=True, slots=True)
class Calculation:
    """left op right, op one of + - * / %; both sides have the types that the operator needs."""

    operator: str
    left: "TypedExpression"
    right: "TypedExpression"
    type: DataType


@dataclass(frozen=True, slots=True)
class Negation:
    """-value."""

    value: "TypedExpression"
    type: DataType


class Truth:
    """A boolean expression."""

    __slots__ = ()

    @property
    def type(self) -> DataType:
        """BOOLEAN."""
        return BOOLEAN


@dataclass(frozen=True, slots=True)
class Comparing(Truth):
    """left op right; false if either is null, unless DISTINCT.

    Both have the same type, or are numbers of two types that are compared by value; for a
    comparison with a DECIMAL, a DOUBLE is the decimal number of its shortest digits.
    """

    operator: str
    left: "TypedExpression"
    right: "TypedExpression"


@dataclass(frozen=True, slots=True)
class Both(Truth):
    """left AND right."""

    left: "TypedExpression"
    right: "TypedExpression"


@dataclass(frozen=True, slots=True)
class Either(Truth):
    """left OR right."""

    left: "TypedExpression"
    right: "TypedExpression"


@dataclass(frozen=True, slots=True)
class Opposite(Truth):
    """NOT value."""

    value: "TypedExpression"


@dataclass(frozen=True, slots=True)
class NullTest(Truth):
    """value IS NULL."""

    value: "TypedExpression"


@dataclass(frozen=True, slots=True)
class Among(Truth):
    """value IN (choices), all of one type; false for null."""

    value: "TypedExpression"
    choices: tuple["TypedExpression", ...]


@dataclass(frozen=True, slots=True)
class Matching(Truth):
    """value LIKE pattern; the escape character is one character or None."""

    value: "TypedExpression"
    pattern: "TypedExpression"
    escape: str | None


@dataclass(frozen=True, slots=True)
class Choosing:
    """CASE with conditions; later conditions and other results are not evaluated."""

    branches: tuple[tuple["TypedExpression", "TypedExpression"], ...]
    default: "TypedExpression"
    type: DataType


@dataclass(frozen=True, slots=True)
class NewArray:
    """ARRAY[...]."""

    elements: tuple["TypedExpression", ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class NewMap:
    """MAP(...)."""

    entries: tuple[tuple["TypedExpression", "TypedExpression"], ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class NewStruct:
    """STRUCT(...)."""

    fields: tuple[tuple[str, "TypedExpression"], ...]
    type: StructType


TypedExpression = (
    Constant
    | ColumnValue
    | LambdaVariable
    | LambdaFunction
    | FieldValue
    | ElementValue
    | EntryValue
    | FunctionValue
    | Convert
    | Calculation
    | Negation
    | Comparing
    | Both
    | Either
    | Opposite
    | NullTest
    | Among
    | Matching
    | Choosing
    | NewArray
    | NewMap
    | NewStruct
)


def column_values(value: object) -> Iterator[ColumnValue]:
    """The columns that an expression uses, or all expressions of a step or a tuple."""
    if isinstance(value, ColumnValue):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from column_values(each)
    elif is_dataclass(value) and not isinstance(value, Overload | DataType):
        for field in fields(value):
            yield from column_values(getattr(value, field.name))


def names_used(value: object) -> set[str]:
    """The names of these columns."""
    return {each.name for each in column_values(value)}
