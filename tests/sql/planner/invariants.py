"""What is true of every plan: expressions use columns that the rows before them have."""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

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
    Shape,
    Sink,
    StreamJoin,
    StreamTableJoin,
    TableJoin,
)


def check_plan(node: PlanNode, *, rewritten: bool = False) -> None:
    """Check a plan step by step; AssertionError says what is not true.

    Rows of `rewritten` plans need not have the columns of their key.
    """
    match node:
        case Scan():
            assert rewritten or set(node.shape.key) <= set(node.shape.row)
            assert rewritten or node.kept is None
        case StreamJoin() | StreamTableJoin() | TableJoin() | ForeignKeyJoin():
            _check_join(node)
            row = {column.name for column in node.shape.row}
            assert rewritten or all(each.name in row for each in node.shape.key)
            check_plan(node.left, rewritten=rewritten)
            check_plan(node.right, rewritten=rewritten)
        case _:
            _check_step(node)
            check_plan(node.input, rewritten=rewritten)
    assert all(column.name for column in (*node.shape.key, *node.shape.row))


def _check_step(node: Filter | Project | Explode | Rekey | Aggregate | Sink) -> None:
    before, after = node.input.shape, node.shape
    match node:
        case Filter():
            _check_columns(node.condition, before)
        case Project():
            _check_columns(node.columns, before)
            shown = [(name, value.type) for name, value in node.columns]
            assert shown == [(each.name, each.type) for each in after.row]
            assert [each.type for each in after.key] == [each.type for each in before.key]
        case Explode():
            _check_columns(node.calls, before)
            assert after.row[: len(before.row)] == before.row
            assert len(after.row) == len(before.row) + len(node.calls)
        case Rekey():
            _check_columns(node.expressions, before)
            assert [each.type for each in node.expressions] == [each.type for each in after.key]
            assert after.row in (before.row, (*before.row, *after.key))
        case Aggregate():
            _check_columns((node.grouping, node.calls), before)
            assert [each.type for each in node.grouping] == [each.type for each in after.key]
            columns = after.row[: len(node.calls)]
            assert columns == tuple(each.column for each in node.calls)
        case Sink():
            assert (after.key, after.row) == (before.key, before.row)


def _check_join(node: StreamJoin | StreamTableJoin | TableJoin | ForeignKeyJoin) -> None:
    left, right = node.left.shape, node.right.shape
    sides = [each.type for each in (*left.row, *right.row)]
    assert [each.type for each in node.shape.row[: len(sides)]] == sides
    assert node.shape.row[len(sides) :] in ((), node.shape.key)
    if isinstance(node, ForeignKeyJoin):
        _check_columns(node.foreign_key, left)
        assert node.foreign_key.type == right.key[0].type
    else:
        assert left.key[0].type == right.key[0].type == node.shape.key[0].type


def _check_columns(expression: object, shape: Shape) -> None:
    for column in _columns(expression):
        found = shape.row[column.index]
        assert (found.name, found.type) == (column.name, column.type)


def _columns(value: object) -> Iterator[ColumnValue]:
    if isinstance(value, ColumnValue):
        yield value
    elif isinstance(value, tuple):
        for each in value:
            yield from _columns(each)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _columns(getattr(value, field.name))
