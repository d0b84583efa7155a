"""prune_columns: removes unused columns from repartition topics and the stores of joins.

    SELECT b, SUM(a) FROM s GROUP BY b           SELECT s.id, c FROM s JOIN t ON s.id = t.id

      Aggregate                                    StreamTableJoin
        Project(b, a)      <- new                    Scan(s)
          Scan(s)                                    Scan(t)   <- keeps only c

A Project is added before each step whose rows are stored or sent to a topic: GROUP BY, a join of
streams, and a stream with a new key that is joined with a table. The store of a joined table
contains only some columns (`kept` in sql/plan.py).

The store of a table that is not joined contains whole rows: CREATE OR REPLACE may select a column
that no statement has used before. Rows before a GROUP BY may be pruned, because a new statement
must have the same groups and functions; and joins cannot be replaced (planner/upgrades.py). The
left table of a foreign-key join also has whole rows: a response of the right table is only valid if
the row that requested it has not changed.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from sql.datatypes import Column
from sql.expressions import ColumnValue
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
from sql.rewrite.columns import columns_used, on_row
from sql.schema import ROWTIME

Join = StreamJoin | StreamTableJoin | TableJoin | ForeignKeyJoin


@dataclass(frozen=True, slots=True)
class _Pruned:
    """A step, and the new indexes of its remaining columns by their old indexes."""

    node: PlanNode
    places: dict[int, int]


def prune_columns(plan: PlanNode) -> PlanNode:
    """The plan with fewer columns in stores and repartition topics."""
    return _pruned(plan, _all(plan), joined=False).node


def _all(node: PlanNode) -> frozenset[int]:
    return frozenset(range(len(node.shape.row)))


def _unchanged(node: PlanNode) -> _Pruned:
    return _Pruned(node, {place: place for place in range(len(node.shape.row))})


def _pruned(node: PlanNode, needed: frozenset[int], *, joined: bool) -> _Pruned:
    """A step with at least the needed columns; `joined`: it is the input of a join."""
    match node:
        case Scan():
            return _scan(node, needed) if joined and node.shape.is_table else _unchanged(node)
        case Filter():
            below = _pruned(node.input, needed | columns_used(node.condition), joined=joined)
            condition = on_row(node.condition, below.places, below.node.shape.row)
            return _Pruned(replace(node, input=below.node, condition=condition), below.places)
        case Project():
            below = _pruned(node.input, columns_used(node.columns), joined=joined)
            columns = on_row(node.columns, below.places, below.node.shape.row)
            return _unchanged(replace(node, input=below.node, columns=columns))
        case Explode():
            below = _before(node, needed | columns_used(node.calls), joined=joined)
            calls = on_row(node.calls, below.places, below.node.shape.row)
            return _widened(replace(node, input=below.node, calls=calls), node, below)
        case Rekey():
            below = _before(node, needed | columns_used(node.expressions), joined=joined)
            expressions = on_row(node.expressions, below.places, below.node.shape.row)
            return _widened(replace(node, input=below.node, expressions=expressions), node, below)
        case Aggregate():
            return _unchanged(_aggregate(node))
        case StreamJoin() | StreamTableJoin() | TableJoin() | ForeignKeyJoin():
            return _join(node, needed)
        case Sink():
            return _unchanged(replace(node, input=_pruned(node.input, needed, joined=False).node))
        case _:
            assert_never(node)


def _scan(node: Scan, needed: frozenset[int]) -> _Pruned:
    """A table whose store has the needed columns."""
    assert node.kept is None, "a plan is rewritten once"
    kept = _chosen(node, needed)
    if len(kept) == len(node.shape.row):
        return _unchanged(node)
    shape = replace(node.shape, row=_columns(node, kept))
    return _Pruned(replace(node, shape=shape, kept=kept), _places(kept))


def _before(step: Explode | Rekey, used: frozenset[int], *, joined: bool) -> _Pruned:
    """The input of a step that adds columns after those of its input."""
    return _pruned(step.input, used & _all(step.input), joined=joined)


def _widened(step: Explode | Rekey, before: Explode | Rekey, below: _Pruned) -> _Pruned:
    """A step on other rows, with the same additional columns."""
    old, new = len(before.input.shape.row), len(below.node.shape.row)
    added = before.shape.row[old:]
    shape = replace(before.shape, row=(*below.node.shape.row, *added))
    places = {**below.places, **{old + n: new + n for n in range(len(added))}}
    return _Pruned(replace(step, shape=shape), places)


def _aggregate(node: Aggregate) -> Aggregate:
    used = columns_used((node.grouping, tuple(each.arguments for each in node.calls)))
    if node.by_key and not _has_new_key(node.input):
        below = _pruned(node.input, used, joined=False)
    else:
        below = _only(_pruned(node.input, used, joined=False), used, f"{node.name}/Columns")
    row = below.node.shape.row
    calls = tuple(
        replace(each, arguments=on_row(each.arguments, below.places, row)) for each in node.calls
    )
    grouping = on_row(node.grouping, below.places, row)
    return replace(node, input=below.node, grouping=grouping, calls=calls)


def _has_new_key(node: PlanNode) -> bool:
    """Whether a stream's rows are repartitioned before they are stored."""
    while isinstance(node, Filter | Project | Explode):
        node = node.input
    return isinstance(node, Rekey)


def _join(node: Join, needed: frozenset[int]) -> _Pruned:
    width = len(node.left.shape.row)
    both = width + len(node.right.shape.row)
    of_left = frozenset(each for each in needed if each < width)
    of_right = frozenset(each - width for each in needed if width <= each < both)
    if isinstance(node, ForeignKeyJoin):
        of_left = _all(node.left)
    left = _side(node, node.left, of_left, "Left")
    right = _side(node, node.right, of_right, "Right")
    new_width = len(left.node.shape.row)
    new_both = new_width + len(right.node.shape.row)
    key = range(both, len(node.shape.row))
    places = {
        **left.places,
        **{width + old: new_width + new for old, new in right.places.items()},
        **{old: new_both + n for n, old in enumerate(key)},
    }
    kept = sorted(places, key=places.__getitem__)
    shape = replace(node.shape, row=_columns(node, kept))
    return _Pruned(replace(node, left=left.node, right=right.node, shape=shape), places)


def _side(join: Join, node: PlanNode, needed: frozenset[int], which: str) -> _Pruned:
    result = _pruned(node, needed, joined=True)
    is_stored = isinstance(join, StreamJoin) or _has_new_key(node)
    if node.shape.is_table or not is_stored:
        return result
    return _only(result, needed, f"{join.name}/{which}Columns")


def _only(below: _Pruned, needed: frozenset[int], name: str) -> _Pruned:
    """Only the needed columns."""
    node = below.node
    chosen = _chosen(node, frozenset(below.places[each] for each in needed))
    if len(chosen) == len(node.shape.row):
        return below
    row = _columns(node, chosen)
    columns = tuple(
        (column.name, ColumnValue(place, column.name, column.type))
        for place, column in zip(chosen, row, strict=True)
    )
    new = _places(chosen)
    places = {old: new[place] for old, place in below.places.items() if place in new}
    return _Pruned(Project(name, node, columns, replace(node.shape, row=row)), places)


def _chosen(node: PlanNode, needed: frozenset[int]) -> tuple[int, ...]:
    """The needed columns in their order; rows that are only counted have at least their time."""
    if needed:
        return tuple(sorted(needed))
    names = [each.name for each in node.shape.row]
    return (names.index(ROWTIME.name) if ROWTIME.name in names else 0,)


def _places(chosen: tuple[int, ...]) -> dict[int, int]:
    return {old: new for new, old in enumerate(chosen)}


def _columns(node: PlanNode, chosen: Iterable[int]) -> tuple[Column, ...]:
    return tuple(node.shape.row[each] for each in chosen)
