"""Prints names, types and expressions, with no more parentheses than necessary."""

import re
from collections.abc import Callable, Iterable
from typing import assert_never

from broker.java.number_text import double_text
from sql.syntax import expressions as ex
from sql.syntax import type_names as ty
from sql.syntax.keywords import RESERVED

PLAIN_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
# Keywords that begin values if [ or ( follows.
BUILDERS = frozenset({"ARRAY", "MAP", "STRUCT"})

# The precedence of expressions; an operand with a lower one is put in parentheses.
OR, AND, NOT, PREDICATE, CONCATENATION, SUM, PRODUCT, SIGN, PRIMARY = range(9)
ARITHMETIC = {"+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT}
LOGICAL = {"OR": OR, "AND": AND}


def name_text(name: str) -> str:
    """A name, in backticks if necessary.

    >>> name_text("ID"), name_text("Id"), name_text("SELECT")
    ('ID', '`Id`', '`SELECT`')
    """
    if PLAIN_NAME.fullmatch(name) and name not in RESERVED and name not in BUILDERS:
        return name
    return "`" + name.replace("`", "``") + "`"


def quoted(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


def print_type(type_: ty.TypeSyntax) -> str:
    """A type in SQL.

    >>> print_type(ty.MapOf(ty.NamedType("STRING"), ty.NamedType("DECIMAL", (4, 2))))
    'MAP<STRING, DECIMAL(4, 2)>'
    """
    match type_:
        case ty.NamedType(name, parameters):
            shown = f"({', '.join(map(str, parameters))})" if parameters else ""
            return name_text(name) + shown
        case ty.ArrayOf(element):
            return f"ARRAY<{print_type(element)}>"
        case ty.MapOf(key, value):
            return f"MAP<{print_type(key)}, {print_type(value)}>"
        case ty.StructOf(fields):
            listed = (f"{name_text(name)} {print_type(each)}" for name, each in fields)
            return f"STRUCT<{', '.join(listed)}>"
        case _:
            assert_never(type_)


def print_expression(expression: ex.Expression) -> str:
    """An expression in SQL.

    >>> a = ex.Name("A")
    >>> print_expression(ex.Arithmetic("*", ex.Arithmetic("+", a, a), a))
    '(A + A) * A'
    """
    return _shown(expression, OR)


def print_value(expression: ex.Expression) -> str:
    """An expression where comparisons, AND, OR and NOT need parentheses."""
    return _shown(expression, CONCATENATION)


def print_primary(expression: ex.Expression) -> str:
    """An expression where operators need parentheses."""
    return _shown(expression, PRIMARY)


def print_expressions(expressions: Iterable[ex.Expression]) -> str:
    """Expressions separated by commas."""
    return ", ".join(map(print_expression, expressions))


def _shown(expression: ex.Expression, least: int) -> str:
    binds, text = _TEXTS[type(expression)](expression)
    return text if binds >= least else f"({text})"


Bound = tuple[int, str]  # the precedence, and the SQL


def _number(text: str) -> Bound:
    # The context prints a minus as a sign.
    return (SIGN if text.startswith("-") else PRIMARY), text


def _decimal(node: ex.DecimalLiteral) -> Bound:
    text = format(node.value, "f")
    return _number(text if "." in text else f"{text}.")


def _double(node: ex.DoubleLiteral) -> Bound:
    text = double_text(node.value)
    return _number(text if "E" in text else f"{text}E0")


def _name(node: ex.Name) -> Bound:
    source = "" if node.source is None else f"{name_text(node.source)}."
    return PRIMARY, source + name_text(node.name)


def _lambda(node: ex.Lambda) -> Bound:
    names = ", ".join(map(name_text, node.parameters))
    head = names if len(node.parameters) == 1 else f"({names})"
    return OR, f"{head} => {print_expression(node.body)}"


def _arithmetic(node: ex.Arithmetic) -> Bound:
    binds = ARITHMETIC[node.operator]
    left, right = _shown(node.left, binds), _shown(node.right, binds + 1)
    return binds, f"{left} {node.operator} {right}"


def _concatenation(node: ex.Concatenation) -> Bound:
    left, right = _shown(node.left, CONCATENATION), _shown(node.right, SUM)
    return CONCATENATION, f"{left} || {right}"


def _signed(node: ex.Signed) -> Bound:
    value = _shown(node.value, SIGN)
    if node.sign == "-" and value[0] in "0123456789.":
        value = f"({value})"  # otherwise it would be parsed as one literal with its sign
    # Two consecutive minuses would start a comment.
    return SIGN, f"{node.sign}{' ' if value[0] == node.sign else ''}{value}"


def _comparison(node: ex.Comparison) -> Bound:
    return PREDICATE, f"{print_value(node.left)} {node.operator} {print_value(node.right)}"


def _logical(node: ex.Logical) -> Bound:
    binds = LOGICAL[node.operator]
    left, right = _shown(node.left, binds), _shown(node.right, binds + 1)
    return binds, f"{left} {node.operator} {right}"


def _not(negated: bool) -> str:
    return "NOT " if negated else ""


def _between(node: ex.Between) -> Bound:
    bounds = f"{print_value(node.low)} AND {print_value(node.high)}"
    return PREDICATE, f"{print_value(node.value)} {_not(node.negated)}BETWEEN {bounds}"


def _in(node: ex.In) -> Bound:
    choices = print_expressions(node.choices)
    return PREDICATE, f"{print_value(node.value)} {_not(node.negated)}IN ({choices})"


def _like(node: ex.Like) -> Bound:
    escape = "" if node.escape is None else f" ESCAPE {quoted(node.escape)}"
    pattern = f"{_not(node.negated)}LIKE {print_value(node.pattern)}{escape}"
    return PREDICATE, f"{print_value(node.value)} {pattern}"


def _case(node: ex.Case) -> Bound:
    parts = ["CASE"]
    if node.operand is not None:
        parts.append(print_expression(node.operand))
    for when in node.whens:
        condition, result = print_expression(when.condition), print_expression(when.result)
        parts.append(f"WHEN {condition} THEN {result}")
    if node.default is not None:
        parts.append(f"ELSE {print_expression(node.default)}")
    return PRIMARY, " ".join([*parts, "END"])


def _map(node: ex.MapOfValues) -> Bound:
    entries = (f"{print_expression(key)} := {print_expression(each)}" for key, each in node.entries)
    return PRIMARY, f"MAP({', '.join(entries)})"


def _struct(node: ex.StructOfValues) -> Bound:
    fields = (f"{name_text(name)} := {print_expression(each)}" for name, each in node.fields)
    return PRIMARY, f"STRUCT({', '.join(fields)})"


# mypy cannot know that the key of a function is the type of its nodes.
_TEXTS: dict[type, Callable[..., Bound]] = {
    ex.Null: lambda node: (PRIMARY, "NULL"),
    ex.BooleanLiteral: lambda node: (PRIMARY, "TRUE" if node.value else "FALSE"),
    ex.IntegerLiteral: lambda node: _number(str(node.value)),
    ex.DecimalLiteral: _decimal,
    ex.DoubleLiteral: _double,
    ex.StringLiteral: lambda node: (PRIMARY, quoted(node.value)),
    ex.IntervalUnit: lambda node: (PRIMARY, node.name),
    ex.Name: _name,
    ex.FieldOf: lambda node: (
        PRIMARY,
        f"{print_primary(node.struct)}->{name_text(node.field)}",
    ),
    ex.Subscript: lambda node: (
        PRIMARY,
        f"{print_primary(node.base)}[{print_value(node.index)}]",
    ),
    ex.Call: lambda node: (
        PRIMARY,
        f"{name_text(node.function)}({print_expressions(node.arguments)})",
    ),
    ex.Star: lambda node: (PRIMARY, "*"),
    ex.Lambda: _lambda,
    ex.Cast: lambda node: (
        PRIMARY,
        f"CAST({print_expression(node.value)} AS {print_type(node.target)})",
    ),
    ex.Arithmetic: _arithmetic,
    ex.Concatenation: _concatenation,
    ex.Signed: _signed,
    ex.Comparison: _comparison,
    ex.Logical: _logical,
    ex.Not: lambda node: (NOT, f"NOT {_shown(node.value, NOT)}"),
    ex.IsNull: lambda node: (PREDICATE, f"{print_value(node.value)} IS {_not(node.negated)}NULL"),
    ex.Between: _between,
    ex.In: _in,
    ex.Like: _like,
    ex.Case: _case,
    ex.ArrayOfValues: lambda node: (PRIMARY, f"ARRAY[{print_expressions(node.elements)}]"),
    ex.MapOfValues: _map,
    ex.StructOfValues: _struct,
}
