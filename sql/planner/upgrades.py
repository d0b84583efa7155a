"""CREATE OR REPLACE of a query: whether the new plan can continue with the state of the old one.

Conditions and projections may change. Joins and windows may not, and groups must have the same
keys, columns and functions, because their stores contain these. Formats may not change either: a
topic or store would contain records in both. Columns may have been added to a source: `upgraded`
adds the earlier formats of rows in stores and internal topics to the new plan.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from sql import expressions as te
from sql.catalog import FormatInfo
from sql.datatypes import Column
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
    """Refuse a plan that cannot use the state of another."""
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


def upgraded(before: PlanNode, after: PlanNode) -> PlanNode:
    """The new plan, with the earlier rows in the stores and topics of the old one."""
    old = {type(each): each for each in _lasting(before)}
    return _upgraded(after, old)


def _upgraded(node: PlanNode, old: Mapping[type[PlanNode], PlanNode]) -> PlanNode:
    match node:
        case Scan():
            one = old.get(Scan)
            if not isinstance(one, Scan) or not node.shape.is_table:
                return node
            rows = _earlier(one.earlier_rows, one.shape.row, node.shape.row)
            return replace(node, earlier_rows=rows)
        case Aggregate():
            group = old.get(Aggregate)
            result = replace(node, input=_upgraded(node.input, old))
            if not isinstance(group, Aggregate):
                return result
            rows = _earlier(group.earlier_rows, group.input.shape.row, node.input.shape.row)
            return replace(result, earlier_rows=rows)
        case Filter() | Project() | Explode() | Rekey() | Sink():
            return replace(node, input=_upgraded(node.input, old))
        case _:
            return node  # joins cannot be replaced


RowColumns = tuple[Column, ...]


def _earlier(
    earlier: tuple[RowColumns, ...], last: RowColumns, now: RowColumns
) -> tuple[RowColumns, ...]:
    """All earlier versions of rows: rows with the same columns have the same version."""
    types = {each.name: each.type for each in now}
    for each in last:
        if types.get(each.name, each.type) != each.type:
            raise StatementFailed(
                f"Query is not upgradeable. Column `{each.name}` was stored as {each.type}, but is "
                f"{types[each.name]} now"
            )
    return earlier if last == now else (*earlier, last)


def _lasting(node: PlanNode) -> list[PlanNode]:
    """The steps with a store or an internal topic, from the sink to the source."""
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
            _must_match("Sink", "formats", _formats(one), _formats(other))
        case Rekey(), Rekey():
            keys = [_texts(each.expressions) for each in (one, other)]
            _must_match("StreamSelectKey", "key expressions", *keys)
            _must_match("StreamSelectKey", "formats", _formats(one), _formats(other))
        case Aggregate(), Aggregate():
            name = _name(one)
            keys = [_texts(each.grouping) for each in (one, other)]
            _must_match(name, "group by expressions", *keys)
            columns = [_columns(one, before), _columns(other, after)]
            _must_match(name, "columns not part of aggregate", *columns)
            calls = [_calls(each) for each in (one, other)]
            _must_match(name, "aggregation functions", *calls)
            _must_match(name, "formats", _formats(one), _formats(other))


def _formats(step: Sink | Rekey | Aggregate) -> str:
    """The formats of keys and values in the step's topics and stores; columns may be added."""
    return f"[{_format(step.key_format)}, {_format(step.value_format)}]"


def _format(info: FormatInfo) -> str:
    properties = [] if info.delimiter is None else [f"VALUE_DELIMITER={info.delimiter}"]
    if info.wrapped is False:
        properties.append("UNWRAP_SINGLES")
    return f"{info.name} ({', '.join(properties)})" if properties else info.name


def _must_match(step: str, what: str, one: str, other: str) -> None:
    if one != other:
        raise StatementFailed(
            f"Query is not upgradeable. {step} must have matching {what}. "
            f"Values differ: {one} vs. {other}"
        )


def _columns(step: Aggregate, plan: PlanNode) -> str:
    """The columns that an aggregation needs: for its groups, functions and conditions."""
    used = [*step.grouping, *(each for call in step.calls for each in call.arguments)]
    node = step.input
    while isinstance(node, Filter | Explode | Project):
        if isinstance(node, Filter):
            used.append(node.condition)
        node = node.input
    names = dict.fromkeys(each.name for each in te.column_values(tuple(used)))
    return f"[{', '.join(f'`{each}`' for each in names)}]"


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
