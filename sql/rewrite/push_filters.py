"""push_filters: evaluates WHERE conditions on a stream before it is joined with tables.

    SELECT ... FROM s JOIN t ON s.x = t.id WHERE s.a > 1 AND t.b > 2

        Filter(s.a > 1 AND t.b > 2)             Filter(t.b > 2)
          StreamTableJoin                         StreamTableJoin
            Rekey(s.x)              ->              Rekey(s.x)
              Scan(s)                                 Filter(a > 1)
            Scan(t)                                     Scan(s)
                                                    Scan(t)

so rows that the condition excludes are neither sent to the repartition topic nor looked up. Only
conditions that cannot fail are moved: the failures of others would be reported for rows without a
match.

Filters stay above joins of streams, because filtered rows advance the stream time of the join,
which determines which rows are late. They also stay above joins of tables, because the filter of a
table emits tombstones, and a join would emit others.
"""

from dataclasses import replace

from sql import expressions as te
from sql.datatypes import BIGINT, DOUBLE, INT, DataType
from sql.expressions import TypedExpression
from sql.plan import (
    Filter,
    ForeignKeyJoin,
    PlanNode,
    Rekey,
    Scan,
    StreamJoin,
    StreamTableJoin,
    TableJoin,
)
from sql.rewrite.columns import columns_used, on_row

NUMBERS: tuple[DataType, ...] = (INT, BIGINT, DOUBLE)
WIDER = ((INT, BIGINT), (INT, DOUBLE), (BIGINT, DOUBLE))


def push_filters(plan: PlanNode) -> PlanNode:
    """The plan with each condition as near to the source as the rule allows."""
    match plan:
        case Scan():
            return plan
        case StreamJoin() | StreamTableJoin() | TableJoin() | ForeignKeyJoin():
            return replace(plan, left=push_filters(plan.left), right=push_filters(plan.right))
        case Filter(input=StreamTableJoin() as join):
            return _pushed(plan, replace(join, left=push_filters(join.left)))
        case _:
            return replace(plan, input=push_filters(plan.input))


def _pushed(step: Filter, join: StreamTableJoin) -> PlanNode:
    """The join, with the movable conditions of the filter above it below it."""
    node: PlanNode = join
    kept: list[TypedExpression] = []
    for condition in _conditions(step.condition):
        if _is_of_stream(condition, join) and _cannot_fail(condition):
            node = _below(step.name, condition, node)
        else:
            kept.append(condition)
    if not kept:
        return node
    condition = kept[0]
    for each in kept[1:]:
        condition = te.Both(condition, each)
    return Filter(step.name, node, condition)


def _conditions(condition: TypedExpression) -> list[TypedExpression]:
    """The parts of a conjunction: a row is kept if all of them are true."""
    if isinstance(condition, te.Both):
        return [*_conditions(condition.left), *_conditions(condition.right)]
    return [condition]


def _is_of_stream(condition: TypedExpression, join: StreamTableJoin) -> bool:
    width = len(join.left.shape.row)
    return all(each < width for each in columns_used(condition))


def _below(name: str, condition: TypedExpression, node: PlanNode) -> PlanNode:
    """The step with a condition on its rows, as far below it as possible."""
    match node:
        case StreamTableJoin() if _is_of_stream(condition, node):
            moved = _moved(condition, node.left)
            return replace(node, left=_below(name, moved, node.left))
        case Rekey() if not node.shape.is_table and _is_of_input(condition, node):
            moved = _moved(condition, node.input)
            return replace(node, input=_below(name, moved, node.input))
        case _:
            return Filter(name, node, condition)


def _is_of_input(condition: TypedExpression, step: Rekey) -> bool:
    width = len(step.input.shape.row)
    return all(each < width for each in columns_used(condition))


def _moved(condition: TypedExpression, node: PlanNode) -> TypedExpression:
    """A condition, rewritten for the rows of an input: the same columns, possibly renamed."""
    row = node.shape.row
    return on_row(condition, {place: place for place in range(len(row))}, row)


def _cannot_fail(value: TypedExpression) -> bool:
    match value:
        case te.ColumnValue() | te.Constant():
            return True
        case te.FieldValue(struct=inner) | te.Opposite(value=inner) | te.NullTest(value=inner):
            return _cannot_fail(inner)
        case te.Convert(value=inner, type=type_):
            return (inner.type, type_) in WIDER and _cannot_fail(inner)
        case te.Both(left=left, right=right) | te.Either(left=left, right=right):
            return _cannot_fail(left) and _cannot_fail(right)
        case te.Comparing(left=left, right=right):
            return _are_comparable(left, right) and _cannot_fail(left) and _cannot_fail(right)
        case te.Among(value=inner, choices=choices):
            return all(
                _are_comparable(inner, each) and _cannot_fail(each) for each in choices
            ) and _cannot_fail(inner)
        case _:
            return False


def _are_comparable(left: TypedExpression, right: TypedExpression) -> bool:
    return left.type == right.type or (left.type in NUMBERS and right.type in NUMBERS)
