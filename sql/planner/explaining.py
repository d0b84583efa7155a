"""Plans as text: for EXPLAIN, for errors, and for comparisons in tests.

The last step comes first; its inputs are below it, indented.
"""

from collections.abc import Iterator, Sequence

from sql.plan import (
    Aggregate,
    Explode,
    Filter,
    ForeignKeyJoin,
    PlanNode,
    Project,
    Rekey,
    Scan,
    Shape,
    Sink,
    StreamJoin,
    StreamTableJoin,
    TableJoin,
    inputs,
)
from sql.planner.typed_text import typed_text
from sql.schema import PSEUDO_COLUMNS

AnyJoin = StreamJoin | StreamTableJoin | TableJoin | ForeignKeyJoin
INDENT = "   "


def explain_text(plan: PlanNode, rules: Sequence[str] = ()) -> str:
    """All steps of a plan, one per line, and the rules that have rewritten it."""
    lines = list(_lines(plan, 0))
    if rules:
        lines.append(f"Rewritten by: {', '.join(rules)}")
    return "\n".join(lines)


def _lines(node: PlanNode, depth: int) -> Iterator[str]:
    details = _details(node)
    shown = f" {details}" if details else ""
    schema = _schema(node.shape)
    yield f"{INDENT * depth}> [ {_title(node)} ] | Schema: {schema} | Step: {node.name}{shown}"
    for each in inputs(node):
        yield from _lines(each, depth + 1)


def _title(node: PlanNode) -> str:
    match node:
        case Scan():
            return "SOURCE"
        case Explode():
            return "FLAT_MAP"
        case Rekey():
            return "REKEY"
        case StreamJoin() | StreamTableJoin() | TableJoin():
            return "JOIN"
        case ForeignKeyJoin():
            return "FOREIGN_KEY_JOIN"
        case _:
            return type(node).__name__.upper()


def _schema(shape: Shape) -> str:
    keys = [f"`{each.name}` {each.type} KEY" for each in shape.key]
    hidden = {*shape.key, *PSEUDO_COLUMNS}
    values = [f"`{each.name}` {each.type}" for each in shape.row if each not in hidden]
    return ", ".join([*keys, *values])


def _details(node: PlanNode) -> str:
    match node:
        case Scan():
            formats = f"{node.key_format.name}, {node.value_format.name}"
            return f"| {node.source} from {node.topic} ({formats})"
        case Filter():
            return f"| {typed_text(node.condition)}"
        case Project():
            shown = (f"{typed_text(each)} AS {name}" for name, each in node.columns)
            return f"| {', '.join(shown)}"
        case Explode():
            calls = (
                f"{overload.signature.name.upper()}({', '.join(map(typed_text, arguments))})"
                for overload, arguments in node.calls
            )
            return f"| {', '.join(calls)}"
        case Rekey():
            key = ", ".join(map(typed_text, node.expressions)) or "NULL"
            return f"| {key} ({node.key_format.name})"
        case Aggregate():
            return _aggregate_details(node)
        case Sink():
            return f"| to {node.topic} ({node.key_format.name}, {node.value_format.name})"
        case _:
            return _join_details(node)


def _aggregate_details(node: Aggregate) -> str:
    calls = (
        f"{each.function.signature.name.upper()}("
        f"{', '.join([*map(typed_text, each.arguments), *map(str, each.constants)])}) "
        f"AS {each.column.name}"
        for each in node.calls
    )
    by = "by key " if node.by_key else "by "
    parts = [by + ", ".join(map(typed_text, node.grouping)), ", ".join(calls)]
    if node.window is not None:
        advance = f" advance {node.window.advance_ms} ms" if node.window.advance_ms else ""
        parts.append(
            f"{node.window.kind.value} {node.window.size_ms} ms{advance} "
            f"grace {node.window.grace_ms} ms"
        )
    if node.final:
        parts.append("final")
    return "| " + " | ".join(parts)


def _join_details(node: AnyJoin) -> str:
    shown = f"| {node.kind.value}"
    if isinstance(node, StreamJoin):
        grace = "" if node.grace_ms is None else f" grace {node.grace_ms} ms"
        return f"{shown} within {node.before_ms} ms, {node.after_ms} ms{grace}"
    if isinstance(node, ForeignKeyJoin):
        return f"{shown} on {typed_text(node.foreign_key)}"
    return shown
