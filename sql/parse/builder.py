"""SyntaxBuilder: what the parser calls for each rule of the grammar, bottom up.

A method has the name of a rule, or of its alias, and gets the parts; None stands for an optional
part that is not there.
"""

from decimal import Decimal
from typing import Any

from lark import Token, v_args
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from sql.errors import SyntaxFailed
from sql.syntax import expressions as ex
from sql.syntax import queries as qu
from sql.syntax import type_names as ty
from sql.syntax.node import NOWHERE, Position

BIGINT_MAX = 2**63 - 1
DIGITS_MAX = 400  # of a number; no type holds more

# Any: lark hands over whatever the methods of the parts returned.
Parts = list[Any]


def at(meta: Meta) -> Position:
    """Where a rule's text begins."""
    return NOWHERE if meta.empty else Position(meta.line, meta.column)


def present(parts: Parts) -> Parts:
    """The parts that are there."""
    return [each for each in parts if each is not None]


def unquoted(token: str) -> str:
    """A text without its quotes; doubled ones inside are single."""
    quote = token[0]
    return token[1:-1].replace(quote * 2, quote)


def failed(message: str, place: Position, *, hint: str = "") -> SyntaxFailed:
    """An error that begins with its place."""
    return SyntaxFailed(
        f"line {place.line}:{place.column}: {message}",
        line=place.line,
        column=place.column,
        hint=hint,
    )


# mypy knows lark's decorator and base class, but not that it calls methods by their names.
@v_args(meta=True)
class ExpressionBuilder(Transformer_NonRecursive[Token, Any]):
    """Names, types and expressions."""

    def name(self, meta: Meta, parts: Parts) -> str:
        (word,) = parts
        if word[0] in '`"':
            return unquoted(word)
        return str(word).upper()

    alias_name = name
    window_name = name

    def word(self, meta: Meta, parts: Parts) -> str:
        return str(parts[0])

    def function(self, meta: Meta, parts: Parts) -> str:
        (word,) = parts
        return unquoted(word) if word[0] == "`" else str(word).upper()

    def number(self, meta: Meta, parts: Parts) -> int:
        return _whole(str(parts[0]), at(meta))

    def unit(self, meta: Meta, parts: Parts) -> str:
        return str(parts[0]).upper()

    def duration(self, meta: Meta, parts: Parts) -> qu.Duration:
        return qu.Duration(*parts, position=at(meta))

    def named_type(self, meta: Meta, parts: Parts) -> ty.NamedType:
        name, *parameters = present(parts)
        numbers = tuple(each for each in parameters if isinstance(each, int))
        return ty.NamedType(name, numbers, position=at(meta))

    def parameter(self, meta: Meta, parts: Parts) -> object:
        return _whole(str(parts[0]), at(meta)) if parts else ""

    def array_type(self, meta: Meta, parts: Parts) -> ty.ArrayOf:
        return ty.ArrayOf(parts[1], position=at(meta))

    def map_type(self, meta: Meta, parts: Parts) -> ty.MapOf:
        return ty.MapOf(*parts[1:], position=at(meta))

    def struct_type(self, meta: Meta, parts: Parts) -> ty.StructOf:
        return ty.StructOf(tuple(present(parts[1:])), position=at(meta))

    def field(self, meta: Meta, parts: Parts) -> tuple[str, ty.TypeSyntax]:
        return parts[0], parts[1]

    def null(self, meta: Meta, parts: Parts) -> ex.Null:
        return ex.Null(position=at(meta))

    def true(self, meta: Meta, parts: Parts) -> ex.BooleanLiteral:
        return ex.BooleanLiteral(True, position=at(meta))

    def false(self, meta: Meta, parts: Parts) -> ex.BooleanLiteral:
        return ex.BooleanLiteral(False, position=at(meta))

    def integer(self, meta: Meta, parts: Parts) -> ex.IntegerLiteral:
        value = _whole(str(parts[0]), at(meta))
        return ex.IntegerLiteral(value, position=at(meta))

    def decimal(self, meta: Meta, parts: Parts) -> ex.DecimalLiteral:
        return ex.DecimalLiteral(_decimal(parts[0], at(meta)), position=at(meta))

    def double(self, meta: Meta, parts: Parts) -> ex.DoubleLiteral:
        value = float(parts[0])
        if value in (float("inf"), float("-inf")):
            raise failed(f"Number overflows DOUBLE: {parts[0]}", at(meta))
        return ex.DoubleLiteral(value, position=at(meta))

    def negative(self, meta: Meta, parts: Parts) -> ex.Literal:
        _, number = parts
        if number.type == "WHOLE":
            return ex.IntegerLiteral(-_whole(str(number), at(meta)), position=at(meta))
        if number.type == "FRACTION":
            return ex.DecimalLiteral(-_decimal(number, at(meta)), position=at(meta))
        return ex.DoubleLiteral(-float(number), position=at(meta))

    def text(self, meta: Meta, parts: Parts) -> ex.StringLiteral:
        return ex.StringLiteral(unquoted(parts[0]), position=at(meta))

    def column(self, meta: Meta, parts: Parts) -> ex.Name:
        if len(parts) == 1:
            return ex.Name(parts[0], position=at(meta))
        source, name = parts
        return ex.Name(name, source, position=at(meta))

    def field_of(self, meta: Meta, parts: Parts) -> ex.FieldOf:
        return ex.FieldOf(*parts, position=at(meta))

    def subscript(self, meta: Meta, parts: Parts) -> ex.Subscript:
        return ex.Subscript(*parts, position=at(meta))

    def call(self, meta: Meta, parts: Parts) -> ex.Call:
        name, arguments = parts
        return ex.Call(name, arguments or (), position=at(meta))

    def arguments(self, meta: Meta, parts: Parts) -> tuple[ex.Expression, ...]:
        return tuple(parts)

    expressions = arguments

    def star(self, meta: Meta, parts: Parts) -> ex.Star:
        return ex.Star(position=at(meta))

    def interval_unit(self, meta: Meta, parts: Parts) -> ex.IntervalUnit:
        return ex.IntervalUnit(str(parts[0]).upper(), position=at(meta))

    def lambda_of(self, meta: Meta, parts: Parts) -> ex.Lambda:
        head, body = parts
        names = str(head)[:-2].strip().strip("()").split(",")
        parameters = tuple(each.strip().upper() for each in names)
        return ex.Lambda(parameters, body, position=at(meta))

    def cast(self, meta: Meta, parts: Parts) -> ex.Cast:
        return ex.Cast(*parts[1:], position=at(meta))

    def case(self, meta: Meta, parts: Parts) -> ex.Case:
        _, operand, *whens, default = parts
        return ex.Case(operand, tuple(whens), default, position=at(meta))

    def when(self, meta: Meta, parts: Parts) -> ex.When:
        return ex.When(*parts, position=at(meta))

    def array_of_values(self, meta: Meta, parts: Parts) -> ex.ArrayOfValues:
        return ex.ArrayOfValues(parts[1] or (), position=at(meta))

    def map_of_values(self, meta: Meta, parts: Parts) -> ex.MapOfValues:
        return ex.MapOfValues(tuple(present(parts[1:])), position=at(meta))

    def map_entry(self, meta: Meta, parts: Parts) -> tuple[ex.Expression, ex.Expression]:
        return parts[0], parts[1]

    def struct_of_values(self, meta: Meta, parts: Parts) -> ex.StructOfValues:
        return ex.StructOfValues(tuple(present(parts[1:])), position=at(meta))

    struct_entry = map_entry

    def logical_or(self, meta: Meta, parts: Parts) -> ex.Logical:
        return ex.Logical("OR", *parts, position=at(meta))

    def logical_and(self, meta: Meta, parts: Parts) -> ex.Logical:
        return ex.Logical("AND", *parts, position=at(meta))

    def negated(self, meta: Meta, parts: Parts) -> ex.Not:
        return ex.Not(parts[1], position=at(meta))

    def comparison(self, meta: Meta, parts: Parts) -> ex.Comparison:
        left, operator, right = parts
        shown = "<>" if operator == "!=" else str(operator)
        return ex.Comparison(shown, left, right, position=at(meta))

    def distinct_from(self, meta: Meta, parts: Parts) -> ex.Comparison:
        left, negated, right = parts
        operator = "IS NOT DISTINCT FROM" if negated else "IS DISTINCT FROM"
        return ex.Comparison(operator, left, right, position=at(meta))

    def between(self, meta: Meta, parts: Parts) -> ex.Between:
        value, negated, low, high = parts
        return ex.Between(value, low, high, negated is not None, position=at(meta))

    def in_list(self, meta: Meta, parts: Parts) -> ex.In:
        value, negated, choices = parts
        return ex.In(value, choices, negated is not None, position=at(meta))

    def like(self, meta: Meta, parts: Parts) -> ex.Like:
        value, negated, pattern, escape = parts
        sign = None if escape is None else unquoted(escape)
        return ex.Like(value, pattern, sign, negated is not None, position=at(meta))

    def is_null(self, meta: Meta, parts: Parts) -> ex.IsNull:
        value, negated = parts
        return ex.IsNull(value, negated is not None, position=at(meta))

    def concatenation(self, meta: Meta, parts: Parts) -> ex.Concatenation:
        return ex.Concatenation(*parts, position=at(meta))

    def arithmetic(self, meta: Meta, parts: Parts) -> ex.Arithmetic:
        left, operator, right = parts
        return ex.Arithmetic(str(operator), left, right, position=at(meta))

    def signed(self, meta: Meta, parts: Parts) -> ex.Expression:
        sign, value = parts
        if sign == "-" and isinstance(value, _NUMBERS) and value.value >= 0:
            return _negative(value, at(meta))
        return ex.Signed(str(sign), value, position=at(meta))


_NUMBERS = ex.IntegerLiteral | ex.DecimalLiteral | ex.DoubleLiteral


def _negative(number: _NUMBERS, place: Position) -> ex.Expression:
    match number:
        case ex.IntegerLiteral(value):
            return ex.IntegerLiteral(-value, position=place)
        case ex.DecimalLiteral(value):
            return ex.DecimalLiteral(-value, position=place)
        case ex.DoubleLiteral(value):
            return ex.DoubleLiteral(-value, position=place)


def _whole(text: str, place: Position) -> int:
    if len(text) > DIGITS_MAX or int(text) > BIGINT_MAX:
        raise failed(f"Invalid numeric literal: {text[:DIGITS_MAX]}", place)
    return int(text)


def _decimal(text: str, place: Position) -> Decimal:
    if len(text) > DIGITS_MAX:
        raise failed(f"Invalid numeric literal: {text[:DIGITS_MAX]}", place)
    return Decimal(text)
