"""Aggregate: groups of rows, stored as rows of aggregate states."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count, zip_longest
from typing import Any, ClassVar, cast

from sql.backends.native.aggregate_code import add_code, result_code
from sql.backends.native.copies import Copy, copying
from sql.backends.native.evaluating import group_function, row_function
from sql.backends.native.row_run import RowRun
from sql.backends.native.rows import StoredRowSerde, internal_key_serde, stored_rows
from sql.backends.native.source_code import ColumnSource, PythonCode
from sql.backends.native.steps import RowTable, StepContext
from sql.functions.registry import Aggregator, UndoableAggregator
from sql.plan import Aggregate, WindowSpec
from sql.rows.row_format import Row
from sql.schema import WINDOW_BOUNDS
from sql.syntax.queries import WindowKind
from streams.dsl.aggregated import Emit
from streams.dsl.grouped import GroupedStream, GroupedTable
from streams.dsl.stored import StoreOptions
from streams.processor import NodeContext
from streams.windows import SessionWindows, TimeWindows

DAY_MS = 86_400_000
BOUND_NAMES = tuple(each.name for each in WINDOW_BOUNDS)


def aggregated(step: Aggregate, groups: RowTable, context: StepContext) -> RowTable:
    """The aggregated rows of the groups."""
    return groups.map_values(group_row(step, context), with_key=True)


def changed_groups(step: Aggregate, groups: RowTable, context: StepContext) -> RowRun:
    """The changes of groups, as a stream to which steps can be added."""
    return RowRun(groups.to_stream(), GroupStates(step, context))


def grouped_table(step: Aggregate, rows: RowTable, context: StepContext) -> RowTable:
    """The states of groups of a table's rows."""
    states, undo = States.of(step, context), _undo(step, context)
    return _grouped_table(step, rows, context).aggregate(
        states.initial, states.add, undo, **_stored(step, states, context)
    )


def grouped_stream(step: Aggregate, rows: RowRun, context: StepContext) -> RowTable:
    """The states of groups of a stream's rows; rows without a group, or null, are dropped."""
    if step.by_key and not rows.stream.node.needs_repartition:
        # Before the grouping, no other part of a row is needed.
        arguments = [each for call in step.calls for each in call.arguments]
        stream = rows.present().selected(arguments, context.log_of(step.name)).added()
        states = States.of(step, context, computed=True)
    else:
        groups = rows.present()
        if not step.by_key:
            groups = rows.grouped(step.grouping, context.log_of(step.name))
        stream, states = groups.added(), States.of(step, context)
    grouped = stream.group_by_key(
        key=internal_key_serde(step.key_format, step.shape.key, context.registry),
        value=stored_rows(step.input.shape.row, step.earlier_rows),
        name=context.name_of(step, "-GroupBy"),
    )
    return _aggregated_stream(step, grouped, states, _stored(step, states, context))


def _stored(step: Aggregate, states: "States", context: StepContext) -> StoreOptions:
    return {
        "store": context.name_of(step, "-Aggregate-Materialize"),
        "key": stored_rows(step.shape.key),
        "value": states.serde,
        "caching": False,
    }


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


def _grouped_table(step: Aggregate, rows: RowTable, context: StepContext) -> GroupedTable[Any, Any]:
    group = group_function(step.grouping, context.log_of(step.name))
    return rows.group_by(
        lambda key, row: (group(row), row),
        key=internal_key_serde(step.key_format, step.shape.key, context.registry),
        value=stored_rows(step.input.shape.row, step.earlier_rows),
        name=context.name_of(step, "-GroupBy"),
    )


@dataclass(frozen=True, slots=True)
class States:
    """The states of a group's aggregates, one per call."""

    initial: Callable[[], Row]
    add: Callable[[Row, Row, Row], Row]
    merge: Callable[[Row, Row, Row], Row]
    serde: StoredRowSerde

    @staticmethod
    def of(step: Aggregate, context: StepContext, *, computed: bool = False) -> "States":
        """The states of an aggregation; `computed`: rows are already the arguments' values."""
        aggregators = _aggregators(step, context)
        copies = [copying(each.state_type) for each in aggregators]
        add = _changing(step, [each.add for each in aggregators], copies, _added(step, aggregators))

        def initial() -> Row:
            return tuple(each.initial() for each in aggregators)

        return States(
            # Immutable states are created once.
            initial=cache(initial) if not any(copies) else initial,
            add=add if computed else _of_rows(add, step, context),
            merge=_merging(aggregators, copies),
            serde=StoredRowSerde([each.state_type for each in aggregators]),
        )


def _aggregators(step: Aggregate, context: StepContext) -> list[Aggregator]:
    settings = context.settings
    return [each.function.make(each.types, each.constants, settings) for each in step.calls]


def _undo(step: Aggregate, context: StepContext) -> Callable[[Row, Row, Row], Row]:
    """The function that removes a row from the states of its group."""
    aggregators = [cast("UndoableAggregator", each) for each in _aggregators(step, context)]
    copies = [copying(each.state_type) for each in aggregators]
    return _of_rows(_changing(step, [each.undo for each in aggregators], copies), step, context)


def _of_rows(
    change: Callable[[Row, Row, Row], Row], step: Aggregate, context: StepContext
) -> Callable[[Row, Row, Row], Row]:
    """A function of a row, from a function of the values of the arguments."""
    log = context.log_of(step.name)
    evaluate = row_function([each for call in step.calls for each in call.arguments], log)
    return lambda key, row, states: change(key, evaluate(row), states)


def _added(step: Aggregate, aggregators: list[Aggregator]) -> list[str | None]:
    """The source of the states after adding a row, if it can be inlined."""
    return [
        add_code(each, f"states[{place}]", given)
        for place, (each, given) in enumerate(zip(aggregators, _given(step), strict=True))
    ]


def _given(step: Aggregate) -> list[list[str]]:
    """The places of each call's arguments in the values of a row."""
    places = count()
    return [[f"values[{next(places)}]" for _ in call.arguments] for call in step.calls]


def _changing(
    step: Aggregate,
    changes: list[Callable[..., object]],
    copies: list[Copy | None],
    written: Sequence[str | None] = (),
) -> Callable[[Row, Row, Row], Row]:
    """The function that adds the values of a row to the states of its group, or removes them.

    Aggregators may change the states that they get, but stored states must not change, so they get
    copies. For some aggregators, `written` is used instead of a call.
    """
    parts: list[str] = []
    for place, (given, code) in enumerate(zip_longest(_given(step), written)):
        state = f"states[{place}]"
        kept = state if copies[place] is None else f"k{place}({state})"
        parts.append(code or f"c{place}({', '.join([kept, *given])})")
    names: dict[str, object] = {f"c{place}": each for place, each in enumerate(changes)}
    names |= {f"k{place}": each for place, each in enumerate(copies)}
    code = f"lambda key, values, states: {_tuple(parts)}"
    return cast("Callable[[Row, Row, Row], Row]", _generated(code, names))


def _tuple(parts: list[str]) -> str:
    return f"({''.join(f'{each}, ' for each in parts)})"


# Any: a function whose type its caller knows.
def _generated(code: str, names: dict[str, object]) -> Any:
    """Compiles an expression that this module has generated; without a loop over aggregates."""
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


def group_row(step: Aggregate, context: StepContext) -> Callable[[object, Row], Row]:
    """The function that creates the row of a group: aggregates, window bounds, key."""
    names, parts = _group_columns(step, context)
    code = f"lambda key, value: {_tuple(parts)}"
    return cast("Callable[[object, Row], Row]", _generated(code, names))


def _group_columns(step: Aggregate, context: StepContext) -> tuple[dict[str, object], list[str]]:
    """The source of a group's columns, from its key and its states, and the names it uses."""
    aggregators = _aggregators(step, context)
    names: dict[str, object] = {f"r{place}": each.result for place, each in enumerate(aggregators)}
    parts = [
        result_code(each, f"value[{place}]") or f"r{place}(value[{place}])"
        for place, each in enumerate(aggregators)
    ]
    keys = [each.name for each in step.shape.key]
    for column in step.shape.row[len(aggregators) :]:
        if column.name in keys:
            place = keys.index(column.name)
            parts.append(f"key[{place}]" if step.window is None else f"key[0][{place}]")
        else:
            parts.append(f"key[{1 + BOUND_NAMES.index(column.name)}]")
    return names, parts


@dataclass(frozen=True, slots=True)
class GroupStates:
    """Records of groups: rows consist of results, window bounds and the key."""

    step: Aggregate
    context: StepContext
    before: ClassVar[tuple[str, ...]] = ()
    row: ClassVar[str] = "group_row(key, value)"
    read: ClassVar[str] = "group_row(key, value)"

    @property
    def objects_named(self) -> tuple[str, ...]:
        """The results of the aggregates, and the function for the whole row."""
        return ("group_row", *(f"r{place}" for place in range(len(self.step.calls))))

    def columns(self) -> ColumnSource:
        """The source of results and key columns."""
        return _GroupColumns(_group_columns(self.step, self.context)[1])

    def objects(self, context: NodeContext) -> dict[str, object]:
        """The objects with these names."""
        names, _ = _group_columns(self.step, self.context)
        return {**names, "group_row": group_row(self.step, self.context)}


@dataclass(frozen=True, slots=True)
class _GroupColumns:
    """The columns of groups."""

    parts: list[str]
    parameters: str = "key, value"

    def code(self, index: int) -> PythonCode:
        """The result of an aggregate is computed; other columns are read."""
        text = self.parts[index]
        return PythonCode(text, atom=not text.endswith(")"))
