"""Expression trees: walking them and replacing parts."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from typing import cast

from sql.syntax import expressions as ex
from sql.syntax.node import Node

Replacement = Callable[[ex.Expression], ex.Expression | None]


def parts(node: Node) -> Iterator[ex.Expression]:
    """The direct parts of a node, in the order of the statement."""
    for name in _names(node):
        yield from _expressions(getattr(node, name))


def walk(expression: ex.Expression) -> Iterator[ex.Expression]:
    """An expression and all its parts, outer ones first."""
    yield expression
    for part in parts(expression):
        yield from walk(part)


def changed(expression: ex.Expression, change: Replacement) -> ex.Expression:
    """The expression with the replacements that `change` returns; None leaves a part unchanged."""
    found = change(expression)
    return _below(expression, change) if found is None else found


def _below(node: ex.Expression, change: Replacement) -> ex.Expression:
    new: dict[str, object] = {}
    for name in _names(node):
        before = getattr(node, name)
        after = _rebuilt(before, change)
        if after is not before:
            new[name] = after
    # The fields of a node depend on its class.
    return replace(node, **new) if new else node  # type: ignore[arg-type]


def _rebuilt(value: object, change: Replacement) -> object:
    if isinstance(value, ex.When):
        condition, result = changed(value.condition, change), changed(value.result, change)
        return replace(value, condition=condition, result=result)
    if isinstance(value, Node):
        return changed(cast(ex.Expression, value), change)
    if isinstance(value, tuple):
        return tuple(_rebuilt(each, change) for each in value)
    return value


def _expressions(value: object) -> Iterator[ex.Expression]:
    if isinstance(value, ex.When):
        yield value.condition
        yield value.result
    elif isinstance(value, Node):
        yield cast(ex.Expression, value)
    elif isinstance(value, tuple):
        for each in value:
            yield from _expressions(each)


_FIELDS: dict[type, tuple[str, ...]] = {}


def _names(node: Node) -> tuple[str, ...]:
    """The fields of a node that may contain expressions."""
    kind = type(node)
    result = _FIELDS.get(kind)
    if result is None:
        skipped = {"position", "target"} if kind is ex.Cast else {"position"}
        result = tuple(each.name for each in fields(kind) if each.name not in skipped)
        _FIELDS[kind] = result
    return result
