"""Lists of values that need a common type: IN, ARRAY[...], MAP(...), results of CASE.

The first value that is not NULL determines the type, each later one may widen it. Literals are more
flexible than other expressions: numbers in strings count as numbers, and any literal becomes a
string in a list of strings. Constructors are handled recursively, so ARRAY['1'] is an array of
numbers in a list of such arrays.
"""

from collections.abc import Callable, Iterable
from decimal import Decimal

from broker.java.number_text import CONTROLS_AND_SPACE, DECIMAL
from sql.analyse.casts import base_name, wider
from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INT,
    ArrayType,
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
    decimal_of,
    is_numeric,
)
from sql.errors import StatementFailed
from sql.functions.matching import wider_decimal
from sql.syntax import expressions as ex

LITERALS = (
    ex.BooleanLiteral,
    ex.IntegerLiteral,
    ex.DecimalLiteral,
    ex.DoubleLiteral,
    ex.StringLiteral,
)


class UnsupportedExpression(StatementFailed):
    """Expressions whose types cannot be combined."""


def decimal_literal_type(value: Decimal) -> DecimalType:
    """The decimal type of a number as written; it has at least one digit before the point."""
    sign_digits_exponent = value.as_tuple()
    exponent = sign_digits_exponent.exponent
    assert isinstance(exponent, int), "numbers in strings are finite"
    scale = max(-exponent, 0)
    digits = len(sign_digits_exponent.digits) + max(exponent, 0)
    return DecimalType(max(digits, scale + 1), scale)


class CommonTypes:
    """Determines the common type of several expressions."""

    def __init__(
        self,
        type_of: Callable[[ex.Expression], DataType | None],
        text_of: Callable[[ex.Expression], str],
    ) -> None:
        self._type_of = type_of
        self._text_of = text_of

    def common(
        self, expressions: Iterable[ex.Expression], start: DataType | None = None
    ) -> DataType | None:
        """The common type of all expressions; None if they are all NULL."""
        result = start
        for expression in expressions:
            type_ = self._type_of(expression)
            if type_ is None:
                continue
            result = type_ if result is None else self._widened(expression, type_, result)
        return result

    def _widened(self, expression: ex.Expression, type_: DataType, wanted: DataType) -> DataType:
        result: DataType | None
        try:
            match expression, wanted:
                case ex.ArrayOfValues(), ArrayType():
                    result = self._array(expression, wanted)
                case ex.MapOfValues(), MapType():
                    result = self._map(expression, wanted)
                case ex.StructOfValues(), StructType():
                    result = self._struct(expression, wanted)
                case ex.StringLiteral(text), _ if is_numeric(wanted):
                    result = _with_number(text, wanted)
                case ex.StringLiteral(text), _ if wanted is BOOLEAN:
                    result = _with_boolean(text)
                case _:
                    literal = isinstance(expression, LITERALS)
                    result = wider(type_, wanted, literal=literal)
                    if result is None:
                        result = wider(wanted, type_, literal=literal)
        except _NoCommonType:
            result = None
        if result is None:
            raise _NoCommonType(
                f"operator does not exist: {wanted} = {type_} ({self._text_of(expression)})\n"
                "Hint: You might need to add explicit type casts."
            )
        return result

    def _array(self, expression: ex.ArrayOfValues, wanted: ArrayType) -> DataType:
        return ArrayType(self.common(expression.elements, wanted.element) or wanted.element)

    def _map(self, expression: ex.MapOfValues, wanted: MapType) -> DataType:
        keys = self.common((key for key, _ in expression.entries), wanted.key)
        values = self.common((value for _, value in expression.entries), wanted.value)
        return MapType(keys or wanted.key, values or wanted.value)

    def _struct(self, expression: ex.StructOfValues, wanted: StructType) -> DataType:
        types: dict[str, DataType | None] = dict.fromkeys(name for name, _ in expression.fields)
        types.update((each.name, each.type) for each in wanted.fields)
        for name, value in expression.fields:
            types[name] = self.common([value], types[name])
        return StructType(
            tuple(Field(name, each) for name, each in types.items() if each is not None)
        )


class _NoCommonType(UnsupportedExpression):
    """Types without a common type; the caller adds the containing types to the error."""


def _with_number(text: str, wanted: DataType) -> DataType:
    trimmed = text.strip(CONTROLS_AND_SPACE)
    if DECIMAL.fullmatch(trimmed) is None:
        raise UnsupportedExpression(f'invalid input syntax for type {base_name(wanted)}: "{text}".')
    number = Decimal(trimmed)
    if wanted is DOUBLE:
        return DOUBLE
    whole = trimmed.lstrip("+-").isdigit()
    if whole and not isinstance(wanted, DecimalType):
        if wanted is INT and -(2**31) <= number < 2**31:
            return INT
        if -(2**63) <= number < 2**63:
            return BIGINT
    return wider_decimal(decimal_literal_type(number), decimal_of(wanted))


def _with_boolean(text: str) -> DataType:
    word = text.strip(CONTROLS_AND_SPACE).lower()
    if not word or not any(each.startswith(word) for each in ("true", "false", "yes", "no")):
        raise UnsupportedExpression(f'invalid input syntax for type BOOLEAN: "{text}".')
    return BOOLEAN
