"""Expressions as strings, as in errors: (A + 1.5), ARRAY[1, 2], CAST(A AS STRING)."""

from collections.abc import Callable
from decimal import Decimal

from sql.printer.expressions import name_text, print_type, quoted
from sql.syntax import expressions as ex

__all__ = ["NameText", "expression_text", "name_text", "reference_text"]

NameText = Callable[[ex.Name], str]


def reference_text(reference: ex.Name) -> str:
    """A column, with its source if the statement has it."""
    if reference.source is None:
        return name_text(reference.name)
    return f"{name_text(reference.source)}.{name_text(reference.name)}"


def expression_text(expression: ex.Expression, names: NameText = reference_text) -> str:
    """An expression with all parentheses; `names` formats columns."""

    def shown(part: ex.Expression) -> str:
        return expression_text(part, names)

    return _TEXTS[type(expression)](expression, shown, names)


Shown = Callable[[ex.Expression], str]


def _listed(parts: tuple[ex.Expression, ...], shown: Shown) -> str:
    return ", ".join(map(shown, parts))


def _lambda(node: ex.Lambda, shown: Shown, names: NameText) -> str:
    parameters = ", ".join(node.parameters)
    head = parameters if len(node.parameters) == 1 else f"({parameters})"
    return f"{head} => {shown(node.body)}"


def _like(node: ex.Like, shown: Shown, names: NameText) -> str:
    escape = f" ESCAPE '{node.escape}'" if node.escape is not None else ""
    return _negated(
        f"({shown(node.value)} LIKE {shown(node.pattern)}{escape})", negated=node.negated
    )


def _between(node: ex.Between, shown: Shown, names: NameText) -> str:
    text = f"({shown(node.value)} BETWEEN {shown(node.low)} AND {shown(node.high)})"
    return _negated(text, negated=node.negated)


def _in(node: ex.In, shown: Shown, names: NameText) -> str:
    text = f"({shown(node.value)} IN ({_listed(node.choices, shown)}))"
    return _negated(text, negated=node.negated)


def _negated(text: str, *, negated: bool) -> str:
    return f"(NOT {text})" if negated else text


def _case(node: ex.Case, shown: Shown, names: NameText) -> str:
    operand = f" {shown(node.operand)}" if node.operand is not None else ""
    whens = "".join(
        f" WHEN {shown(each.condition)} THEN {shown(each.result)}" for each in node.whens
    )
    default = f" ELSE {shown(node.default)}" if node.default is not None else ""
    return f"(CASE{operand}{whens}{default} END)"


def _infix(node: ex.Arithmetic | ex.Comparison | ex.Logical, shown: Shown, names: NameText) -> str:
    return f"({shown(node.left)} {node.operator} {shown(node.right)})"


def _map(node: ex.MapOfValues, shown: Shown, names: NameText) -> str:
    entries = (f"{shown(key)}:={shown(value)}" for key, value in node.entries)
    return f"MAP({', '.join(entries)})"


def _struct(node: ex.StructOfValues, shown: Shown, names: NameText) -> str:
    fields = (f"{name_text(name)}:={shown(value)}" for name, value in node.fields)
    return f"STRUCT({', '.join(fields)})"


def _signed(node: ex.Signed, shown: Shown, names: NameText) -> str:
    value = shown(node.value)
    # Two consecutive minuses would start a comment.
    return f"{node.sign}{' ' if value.startswith(node.sign) else ''}{value}"


# mypy cannot know that the key of a function is the type of its nodes.
_TEXTS: dict[type, Callable[..., str]] = {
    ex.Null: lambda node, shown, names: "null",
    ex.BooleanLiteral: lambda node, shown, names: "true" if node.value else "false",
    ex.IntegerLiteral: lambda node, shown, names: str(node.value),
    ex.DecimalLiteral: lambda node, shown, names: format(node.value, "f"),
    ex.DoubleLiteral: lambda node, shown, names: _double(node.value),
    ex.StringLiteral: lambda node, shown, names: quoted(node.value),
    ex.IntervalUnit: lambda node, shown, names: node.name,
    ex.Name: lambda node, shown, names: names(node),
    ex.FieldOf: lambda node, shown, names: f"{shown(node.struct)}->{name_text(node.field)}",
    ex.Subscript: lambda node, shown, names: f"{shown(node.base)}[{shown(node.index)}]",
    ex.Call: lambda node, shown, names: f"{node.function}({_listed(node.arguments, shown)})",
    ex.Star: lambda node, shown, names: "*",
    ex.Lambda: _lambda,
    ex.Cast: lambda node, shown, names: f"CAST({shown(node.value)} AS {print_type(node.target)})",
    ex.Arithmetic: _infix,
    ex.Concatenation: lambda node, shown, names: f"({shown(node.left)} || {shown(node.right)})",
    ex.Signed: _signed,
    ex.Comparison: _infix,
    ex.Logical: _infix,
    ex.Not: lambda node, shown, names: f"(NOT {shown(node.value)})",
    ex.IsNull: lambda node, shown, names: (
        f"({shown(node.value)} IS {'NOT ' if node.negated else ''}NULL)"
    ),
    ex.Between: _between,
    ex.In: _in,
    ex.Like: _like,
    ex.Case: _case,
    ex.ArrayOfValues: lambda node, shown, names: f"ARRAY[{_listed(node.elements, shown)}]",
    ex.MapOfValues: _map,
    ex.StructOfValues: _struct,
}


def _double(value: float) -> str:
    """With an exponent, so that the string is a DOUBLE: 1.5E3."""
    sign, digits, _ = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    fraction = f".{''.join(rest)}" if rest else ""
    exponent = Decimal(repr(value)).adjusted() if value else 0
    return f"{'-' if sign else ''}{first}{fraction}E{exponent}"
