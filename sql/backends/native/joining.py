"""Joins: combined rows of two sides; the columns of a missing side are null."""

from collections.abc import Callable

from broker.serde.registry.api import SchemaRegistry
from sql.backends.native.evaluating import row_function
from sql.backends.native.rows import AnySerde, internal_key_serde, stored_rows, windowed
from sql.backends.native.stateless import as_key
from sql.backends.native.steps import RowStream, RowTable, StepContext
from sql.catalog import FormatInfo
from sql.plan import ForeignKeyJoin, Shape, StreamJoin, StreamTableJoin, TableJoin
from sql.rows.row_format import Row
from sql.syntax.queries import JoinKind
from streams.dsl.joins import join_table
from streams.dsl.stored import JoinOptions, StoreOptions
from streams.record import Windowed
from streams.windows import JoinWindows

DAY_MS = 86_400_000
# key, left row, right row
Joiner = Callable[[object, Row | None, Row | None], Row]


def joined_streams(
    step: StreamJoin, left: RowStream, right: RowStream, context: StepContext
) -> RowStream:
    """Two streams; without a grace period, unmatched rows are emitted immediately."""
    grace_ms = DAY_MS if step.grace_ms is None else step.grace_ms
    within = JoinWindows(
        step.before_ms, step.after_ms, grace_ms, eager_unmatched=step.grace_ms is None
    )
    kind, left_step, right_step = step.kind, step.left, step.right
    joiner = row_joiner(step)
    formats = step.left_formats[0]
    if kind is JoinKind.RIGHT:
        # The same join with swapped sides.
        within = JoinWindows(
            step.after_ms, step.before_ms, grace_ms, eager_unmatched=step.grace_ms is None
        )
        left, right, left_step, right_step = right, left, right_step, left_step
        joiner = turned(joiner)
    options: JoinOptions = {
        "with_key": True,
        "key": _topic_key(formats, step.shape, context.registry),
        "value": stored_rows(left_step.shape.row),
        "other_value": stored_rows(right_step.shape.row),
        "name": context.name_of(step),
        "store_name": context.name_of(step),
    }
    if kind is JoinKind.INNER:
        return left.join(right, joiner, within, **options)
    if kind is JoinKind.OUTER:
        return left.outer_join(right, joiner, within, **options)
    return left.left_join(right, joiner, within, **options)


def joined_with_table(
    step: StreamTableJoin, left: RowStream, right: RowTable, context: StepContext
) -> RowStream:
    """A stream with a table."""
    options: JoinOptions = {
        "with_key": True,
        "key": _topic_key(step.left_formats[0], step.shape, context.registry),
        "value": stored_rows(step.left.shape.row),
        "other_value": stored_rows(step.right.shape.row),
        "name": context.name_of(step),
    }
    joiner = row_joiner(step)
    if step.kind is JoinKind.INNER:
        return left.join(right, joiner, **options)
    return left.left_join(right, joiner, **options)


def joined_tables(
    step: TableJoin, left: RowTable, right: RowTable, context: StepContext
) -> RowTable:
    """Two tables by their keys."""
    joiner = row_joiner(step)
    if step.kind is JoinKind.INNER:
        return left.join(right, joiner, with_key=True)
    if step.kind is JoinKind.OUTER:
        return left.outer_join(right, joiner, with_key=True)
    if step.kind is JoinKind.RIGHT:
        return right.left_join(left, turned(joiner), with_key=True)
    return left.left_join(right, joiner, with_key=True)


def joined_by_foreign_key(
    step: ForeignKeyJoin, left: RowTable, right: RowTable, context: StepContext
) -> RowTable:
    """Two tables by a value of the left one."""
    evaluate = row_function([step.foreign_key], context.log_of(step.name))
    options: StoreOptions = {
        "store": context.name_of(step, "-Materialize"),
        "key": stored_rows(step.shape.key),
        "value": stored_rows(step.shape.row),
        "caching": False,
    }
    return join_table(
        left,
        right,
        row_joiner(step),
        kind="inner" if step.kind is JoinKind.INNER else "left",
        foreign_key=lambda key, row: as_key(evaluate(row)),
        with_key=True,
        name=context.name_of(step),
        **options,
    )


def row_joiner(step: StreamJoin | StreamTableJoin | TableJoin | ForeignKeyJoin) -> Joiner:
    """The joined row: both sides, then the key if the plan has a column for it."""
    left_width, right_width = len(step.left.shape.row), len(step.right.shape.row)
    no_left: Row = (None,) * left_width
    no_right: Row = (None,) * right_width
    with_key = len(step.shape.row) > left_width + right_width
    assert not with_key or len(step.shape.row) == left_width + right_width + len(step.shape.key)

    def join(key: object, left: Row | None, right: Row | None) -> Row:
        row = (no_left if left is None else left) + (no_right if right is None else right)
        if not with_key:
            return row
        plain = key.key if isinstance(key, Windowed) else key
        return (*row, *plain)  # type: ignore[misc]

    return join


def turned(joiner: Joiner) -> Joiner:
    """The joiner with swapped sides."""
    return lambda key, left, right: joiner(key, right, left)


def _topic_key(formats: FormatInfo, shape: Shape, registry: SchemaRegistry | None) -> AnySerde:
    return windowed(internal_key_serde(formats, shape.key, registry), shape.window)
