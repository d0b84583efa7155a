"""Expands the stars of a SELECT to columns."""

from sql.datatypes import Column
from sql.plan import Explode, Filter, PlanNode, Rekey
from sql.planner.aliases import joined_name
from sql.planner.join_tree import JoinTree
from sql.planner.references import BOUND_NAMES, References
from sql.planner.selection import Selected, Selection, StarItem
from sql.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS
from sql.syntax import expressions as ex

PSEUDO_NAMES = frozenset(each.name for each in PSEUDO_COLUMNS)


def expanded(
    selection: Selection, node: PlanNode, references: References, tree: JoinTree | None
) -> list[Selected]:
    """All columns of a SELECT; stars expand to the columns of the rows."""
    result: list[Selected] = []
    for item in selection.items:
        if isinstance(item, StarItem):
            result.extend(_star(item.source, node, references, tree))
        else:
            result.append(item)
    return result


def keying_step(node: PlanNode) -> PlanNode:
    """The step that defines the key of the rows."""
    while isinstance(node, Explode | Filter):
        node = node.input
    return node


def _star(
    source: str | None, node: PlanNode, references: References, tree: JoinTree | None
) -> list[Selected]:
    step = keying_step(node)
    if isinstance(step, Rekey):
        return _rekeyed_star(step)
    result: list[Selected] = []
    if source is None and tree is not None and tree.has_synthetic_key:
        key = node.shape.key[0].name
        result.append(Selected(key, ex.Name(key)))
    for each in references.sources:
        if source not in (None, each.alias):
            continue
        bounds = WINDOW_BOUNDS if each.info.window is not None else ()
        schema = each.info.schema
        headers = (Column(header.name, header.type) for header in schema.headers)
        for column in (*schema.key, *bounds, *schema.value, *headers):
            name = joined_name(each.alias, column.name) if tree is not None else column.name
            result.append(Selected(name, ex.Name(column.name, each.alias)))
    return result


def _rekeyed_star(step: Rekey) -> list[Selected]:
    """The new key first, then the other columns, except times and offsets."""
    keys = [each.name for each in step.shape.key]
    rest = [each.name for each in step.shape.row if each.name not in keys]
    bounds = [each for each in rest if each in BOUND_NAMES]
    others = [each for each in rest if each not in BOUND_NAMES and each not in PSEUDO_NAMES]
    return [Selected(each, ex.Name(each)) for each in (*keys, *bounds, *others)]
