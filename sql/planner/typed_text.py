"""Typed expressions as strings: columns by name, conversions as CAST."""

from collections.abc import Callable
from typing import cast

from sql import expressions as te


def typed_text(expression: te.TypedExpression) -> str:
    """An expression with all parentheses."""
    return _TEXTS[type(expression)](expression)


def _listed(parts: tuple[te.TypedExpression, ...]) -> str:
    return ", ".join(map(typed_text, parts))


def _constant(node: te.Constant) -> str:
    if node.value is None:
        return "null"
    if isinstance(node.value, str) and node.type is not None:
        quoted = node.value.replace("'", "''")
        return f"'{quoted}'"
    return str(node.value).lower() if isinstance(node.value, bool) else str(node.value)


def _lambda(node: te.LambdaFunction) -> str:
    names = ", ".join(each.name for each in node.variables)
    return f"({names}) => {typed_text(node.body)}"


def _infix(operator: str) -> Callable[[te.Both | te.Either], str]:
    return lambda node: f"({typed_text(node.left)} {operator} {typed_text(node.right)})"


def _binary(node: te.Calculation | te.Comparing) -> str:
    return f"({typed_text(node.left)} {node.operator} {typed_text(node.right)})"


def _case(node: te.Choosing) -> str:
    whens = "".join(
        f" WHEN {typed_text(condition)} THEN {typed_text(result)}"
        for condition, result in node.branches
    )
    return f"(CASE{whens} ELSE {typed_text(node.default)} END)"


def _like(node: te.Matching) -> str:
    escape = "" if node.escape is None else f" ESCAPE '{node.escape}'"
    return f"({typed_text(node.value)} LIKE {typed_text(node.pattern)}{escape})"


def _map(node: te.NewMap) -> str:
    entries = (f"{typed_text(key)}:={typed_text(value)}" for key, value in node.entries)
    return f"MAP({', '.join(entries)})"


def _struct(node: te.NewStruct) -> str:
    fields = (f"{name}:={typed_text(value)}" for name, value in node.fields)
    return f"STRUCT({', '.join(fields)})"


def _call(node: te.FunctionValue) -> str:
    return f"{node.function.signature.name.upper()}({_listed(node.arguments)})"


def _convert(node: te.Convert) -> str:
    return f"CAST({typed_text(node.value)} AS {node.type})"


# mypy cannot know that the key of a function is the type of its nodes.
_TEXTS = cast(
    "dict[type, Callable[[te.TypedExpression], str]]",
    {
        te.Constant: _constant,
        te.ColumnValue: lambda node: node.name,
        te.LambdaVariable: lambda node: node.name,
        te.LambdaFunction: _lambda,
        te.FieldValue: lambda node: f"{typed_text(node.struct)}->{node.field}",
        te.ElementValue: lambda node: f"{typed_text(node.array)}[{typed_text(node.index)}]",
        te.EntryValue: lambda node: f"{typed_text(node.map)}[{typed_text(node.key)}]",
        te.FunctionValue: _call,
        te.Convert: _convert,
        te.Calculation: _binary,
        te.Negation: lambda node: f"-{typed_text(node.value)}",
        te.Comparing: _binary,
        te.Both: _infix("AND"),
        te.Either: _infix("OR"),
        te.Opposite: lambda node: f"(NOT {typed_text(node.value)})",
        te.NullTest: lambda node: f"({typed_text(node.value)} IS NULL)",
        te.Among: lambda node: f"({typed_text(node.value)} IN ({_listed(node.choices)}))",
        te.Matching: _like,
        te.Choosing: _case,
        te.NewArray: lambda node: f"ARRAY[{_listed(node.elements)}]",
        te.NewMap: _map,
        te.NewStruct: _struct,
    },
)
