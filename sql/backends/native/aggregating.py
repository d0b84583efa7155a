"""Aggregate: groups of rows, kept as rows of states."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from broker.client.serde.rows.row_format import Row
from sql.backends.native.copies import Copy, copying
from sql.backends.native.evaluating import group_function, row_function
from sql.backends.native.rows import StoredRowSerde, internal_key_serde, stored_rows
from sql.backends.native.steps import QueryContext, RowStream, RowTable
from sql.functions.registry import Aggregator, UndoableAggregator
from sql.plan import Aggregate, AggregateCall, WindowSpec
from sql.schema import WINDOW_BOUNDS
from sql.syntax.queries import WindowKind
from streams.dsl.aggregated import Emit
from streams.dsl.grouped import GroupedStream, GroupedTable
from streams.dsl.stored import StoreOptions
from streams.dsl.table import Table
from streams.record import Windowed
from streams.windows import SessionWindows, TimeWindows

DAY_MS = 86_400_000
BOUND_NAMES = tuple(each.name for each in WINDOW_BOUNDS)


def aggregated(step: Aggregate, rows: RowStream | RowTable, context: QueryContext) -> RowTable:
    """The groups of rows, each with its aggregates."""
    states = States.of(step, context)
    options: StoreOptions = {
        "store": context.name_of(step, "-Aggregate-Materialize"),
        "key": stored_rows(step.shape.key),
        "value": states.serde,
        "caching": False,
    }
    if isinstance(rows, Table):
        table = _grouped_table(step, rows, context).aggregate(
            states.initial, states.add, states.undo, **options
        )
    else:
        grouped = _grouped_stream(step, rows, context)
        table = _aggregated_stream(step, grouped, states, options)
    return table.map_values(group_row(step, states), with_key=True)


def _aggregated_stream(
    step: Aggregate, grouped: GroupedStream[Any, Any], states: "States", options: StoreOptions
) -> RowTable:
    window = step.window
    if window is None:
        return grouped.aggregate(states.initial, states.add, **options)
    if window.retention_ms is not None:
        options["retention"] = window.retention_ms
    emit: Emit = "on_close" if step.final else "on_update"
    if window.kind is WindowKind.SESSION:
        sessions = grouped.windowed_by(session_windows(window), emit=emit)
        return sessions.aggregate(states.initial, states.add, states.merge, **options)
    windows = grouped.windowed_by(time_windows(window), emit=emit)
    return windows.aggregate(states.initial, states.add, **options)


def time_windows(window: WindowSpec) -> TimeWindows:
    """Tumbling or hopping windows."""
    advance_ms = window.size_ms if window.advance_ms is None else window.advance_ms
    return TimeWindows(window.size_ms, advance_ms, _grace_ms(window))


def session_windows(window: WindowSpec) -> SessionWindows:
    """Sessions."""
    return SessionWindows(window.size_ms, _grace_ms(window))


def _grace_ms(window: WindowSpec) -> int:
    return max(DAY_MS - window.size_ms, 0) if window.grace_ms is None else window.grace_ms


def _grouped_stream(
    step: Aggregate, rows: RowStream, context: QueryContext
) -> GroupedStream[Any, Any]:
    """Rows by their group; what is in no group, or has no values, is dropped."""
    present = rows.filter(lambda key, row: row is not None)
    values = stored_rows(step.input.shape.row)
    if step.by_key:
        return present.group_by_key(
            key=internal_key_serde(step.key_format, step.shape.key, context.registry),
            value=values,
            name=context.name_of(step, "-GroupBy"),
        )
    group = group_function(step.grouping, context.log_of(step.name))
    moved: RowStream = present.select_key(lambda key, row: group(row))
    return moved.filter(lambda key, row: key is not None).group_by_key(
        key=internal_key_serde(step.key_format, step.shape.key, context.registry),
        value=values,
        name=context.name_of(step, "-GroupBy"),
    )


def _grouped_table(
    step: Aggregate, rows: RowTable, context: QueryContext
) -> GroupedTable[Any, Any]:
    group = group_function(step.grouping, context.log_of(step.name))
    return rows.group_by(
        lambda key, row: (group(row), row),
        key=internal_key_serde(step.key_format, step.shape.key, context.registry),
        value=stored_rows(step.input.shape.row),
        name=context.name_of(step, "-GroupBy"),
    )


@dataclass(frozen=True, slots=True)
class States:
    """The states of a group's aggregates, one per call."""

    initial: Callable[[], Row]
    add: Callable[[Row, Row, Row], Row]
    undo: Callable[[Row, Row, Row], Row]
    merge: Callable[[Row, Row, Row], Row]
    results: Callable[[Row], Row]
    serde: StoredRowSerde

    @staticmethod
    def of(step: Aggregate, context: QueryContext) -> "States":
        """The functions on states that an aggregation needs."""
        aggregators = [_made(each, context) for each in step.calls]
        copies = [copying(each.state_type) for each in aggregators]
        return States(
            initial=lambda: tuple(each.initial() for each in aggregators),
            add=_changing(step, context, [each.add for each in aggregators], copies),
            undo=_changing(
                step,
                context,
                [cast("UndoableAggregator", each).undo for each in aggregators]
                if step.input.shape.is_table
                else [],
                copies,
            ),
            merge=_merging(aggregators, copies),
            results=_results(aggregators),
            serde=StoredRowSerde([each.state_type for each in aggregators]),
        )


def _made(call: AggregateCall, context: QueryContext) -> Aggregator:
    return call.function.make(call.types, call.constants, context.settings)


def _changing(
    step: Aggregate,
    context: QueryContext,
    changes: list[Callable[..., object]],
    copies: list[Copy | None],
) -> Callable[[Row, Row, Row], Row]:
    """A row into, or out of, the states of its group.

    Aggregators may change the states that they get, and stores must keep what was: so they get
    copies.
    """
    log = context.log_of(step.name)
    evaluate = row_function([each for call in step.calls for each in call.arguments], log)
    parts: list[str] = []
    start = 0
    for place, call in enumerate(step.calls):
        end = start + len(call.arguments)
        given = "".join(f", values[{each}]" for each in range(start, end))
        state = f"states[{place}]"
        parts.append(f"c{place}({state if copies[place] is None else f'k{place}({state})'}{given})")
        start = end
    names: dict[str, object] = {f"c{place}": each for place, each in enumerate(changes)}
    names |= {f"k{place}": each for place, each in enumerate(copies)}
    change = _generated(f"lambda values, states: {_tuple(parts)}", names)
    return lambda key, row, states: change(evaluate(row), states)


def _tuple(parts: list[str]) -> str:
    return f"({''.join(f'{each}, ' for each in parts)})"


# Any: a function of what its caller knows.
def _generated(code: str, names: dict[str, object]) -> Any:
    """The function of an expression that this module has written: no loop over aggregates."""
    return eval(compile(code, "<sql aggregates>", "eval"), names)


def _merging(
    aggregators: list[Aggregator], copies: list[Copy | None]
) -> Callable[[Row, Row, Row], Row]:
    merges = [_merge_of_copies(each, copy) for each, copy in zip(aggregators, copies, strict=True)]

    def merge(key: Row, left: Row, right: Row) -> Row:
        return tuple(
            join(first, second) for join, first, second in zip(merges, left, right, strict=True)
        )

    return merge


def _merge_of_copies(
    aggregator: Aggregator, copy: Copy | None
) -> Callable[[object, object], object]:
    merge = aggregator.merge
    if copy is None:
        return merge
    return lambda left, right: merge(copy(left), copy(right))


def _results(aggregators: list[Aggregator]) -> Callable[[Row], Row]:
    parts = [f"r{n}(states[{n}])" for n in range(len(aggregators))]
    names: dict[str, object] = {f"r{n}": each.result for n, each in enumerate(aggregators)}
    return cast("Callable[[Row], Row]", _generated(f"lambda states: {_tuple(parts)}", names))


def group_row(step: Aggregate, states: States) -> Callable[[object, Row], Row]:
    """The row of a group: aggregates, then window bounds and key as the plan says."""
    extras = [each.name for each in step.shape.row[len(step.calls) :]]
    results = states.results
    keys = [each.name for each in step.shape.key]
    if step.window is None and extras == keys:
        return lambda key, row: results(row) + cast("Row", key)
    if step.window is not None and extras == [*BOUND_NAMES, *keys]:

        def with_window(key: object, row: Row) -> Row:
            plain, start_ms, end_ms = cast("Windowed[Row]", key)
            return (*results(row), start_ms, end_ms, *plain)

        return with_window
    known = [*keys, *BOUND_NAMES]
    places = [known.index(each) for each in extras]
    is_windowed = step.window is not None

    def with_extras(key: object, row: Row) -> Row:
        values = cast("Row", key)
        if is_windowed:
            plain, start_ms, end_ms = cast("Windowed[Row]", key)
            values = (*plain, start_ms, end_ms)
        return (*results(row), *(values[place] for place in places))

    return with_extras
