"""CREATE OR REPLACE of a query: whether the new plan can go on with the state of the old one.

Conditions and projections may change. Joins and windows may not, and groups must have the same
keys, columns and functions, since these are what their stores hold.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields

from sql import expressions as te
from sql.errors import StatementFailed
from sql.plan import (
    Aggregate,
    Explode,
    Filter,
    ForeignKeyJoin,
    PlanNode,
    Project,
    Rekey,
    Scan,
    Sink,
    StreamJoin,
    StreamTableJoin,
    TableJoin,
)
from sql.planner.typed_text import typed_text

FIXED = (StreamJoin, StreamTableJoin, TableJoin, ForeignKeyJoin)
NAMES = {
    StreamJoin: "StreamStreamJoin",
    TableJoin: "TableTableJoin",
    ForeignKeyJoin: "ForeignKeyTableTableJoin",
}


def check_upgrade(before: PlanNode, after: PlanNode) -> None:
    """Refuse a plan that cannot take over the state of another."""
    old, new = _lasting(before), _lasting(after)
    for step in (*old, *new):
        if isinstance(step, FIXED) or (isinstance(step, Aggregate) and step.window is not None):
            raise StatementFailed(f"Upgrades not yet supported for {_name(step)}")
    if [type(each) for each in old] != [type(each) for each in new]:
        raise StatementFailed(
            "Query is not upgradeable. Plan type must match. Values differ: "
            f"{_names(old)} vs. {_names(new)}"
        )
    for one, other in zip(old, new, strict=True):
        _check_step(one, other, before, after)


def _lasting(node: PlanNode) -> list[PlanNode]:
    """The steps that have a state or a topic of their own, from the sink to the source."""
    found: list[PlanNode] = []
    while not isinstance(node, Scan):
        if isinstance(node, FIXED):
            return [*found, node]
        if not isinstance(node, Filter | Project | Explode):
            found.append(node)
        node = node.input
    return [*found, node]


def _check_step(one: PlanNode, other: PlanNode, before: PlanNode, after: PlanNode) -> None:
    match one, other:
        case Scan(), Scan():
            _must_match("Source", "source", one.source, other.source)
        case Sink(), Sink():
            _must_match("Sink", "topic", one.topic, other.topic)
        case Rekey(), Rekey():
            keys = [_texts(each.expressions) for each in (one, other)]
            _must_match("StreamSelectKey", "key expressions", *keys)
        case Aggregate(), Aggregate():
            name = _name(one)
            keys = [_texts(each.grouping) for each in (one, other)]
            _must_match(name, "group by expressions", *keys)
            columns = [_columns(one, before), _columns(other, after)]
            _must_match(name, "columns not part of aggregate", *columns)
            calls = [_calls(each) for each in (one, other)]
            _must_match(name, "aggregation functions", *calls)


def _must_match(step: str, what: str, one: str, other: str) -> None:
    if one != other:
        raise StatementFailed(
            f"Query is not upgradeable. {step} must have matching {what}. "
            f"Values differ: {one} vs. {other}"
        )


def _columns(step: Aggregate, plan: PlanNode) -> str:
    """The columns that an aggregation needs: for its groups, its functions and conditions."""
    used = [*step.grouping, *(each for call in step.calls for each in call.arguments)]
    node = step.input
    while isinstance(node, Filter | Explode):
        if isinstance(node, Filter):
            used.append(node.condition)
        node = node.input
    names = dict.fromkeys(name for each in used for name in column_names(each))
    return f"[{', '.join(f'`{each}`' for each in names)}]"


def column_names(expression: te.TypedExpression) -> Iterator[str]:
    """The columns of an expression, in the order of their places in it."""
    if isinstance(expression, te.ColumnValue):
        yield expression.name
        return
    for field in fields(expression):
        yield from _names_in(getattr(expression, field.name))


def _names_in(value: object) -> Iterator[str]:
    if isinstance(value, tuple):
        for each in value:
            yield from _names_in(each)
    elif isinstance(value, te.TypedExpression):
        yield from column_names(value)


def _calls(step: Aggregate) -> str:
    shown = (
        f"{call.function.signature.name}({_texts(call.arguments)}{list(call.constants) or ''})"
        for call in step.calls
    )
    return f"[{', '.join(shown)}]"


def _texts(expressions: Iterable[te.TypedExpression]) -> str:
    return f"[{', '.join(map(typed_text, expressions))}]"


def _name(step: PlanNode) -> str:
    if isinstance(step, Aggregate):
        source = "Table" if step.input.shape.is_table else "Stream"
        return f"{source}{'Windowed' if step.window is not None else ''}Aggregate"
    return NAMES.get(type(step), type(step).__name__)


def _names(steps: Sequence[PlanNode]) -> str:
    return f"[{', '.join(map(_name, steps))}]"
