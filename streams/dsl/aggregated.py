"""Adds the step, store and table of an aggregate; for grouped, windowed and cogrouped streams."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, assert_never

from streams.dsl.logical import Graph, ProcessStep, Step, TableNode, TableState
from streams.dsl.stored import AnySerde, Stored
from streams.errors import TopologyError
from streams.operators.aggregate import Adder, Initializer, Merger
from streams.operators.session_aggregate import SessionAggregate, SessionView
from streams.operators.sliding_aggregate import SlidingAggregate
from streams.operators.views import TableView
from streams.operators.window_aggregate import WindowAggregate, WindowView
from streams.processor import Operator
from streams.serdes import SessionWindowedSerde, WindowedSerde
from streams.state.store import NO_LIMIT, StoreKind, StoreSpec
from streams.where import user_line
from streams.windows import (
    UNLIMITED_END_MS,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    Windows,
)

AGGREGATE = "KSTREAM-AGGREGATE-"
REDUCE = "KSTREAM-REDUCE-"

Emit = Literal["on_update", "on_close"]
# Creates the operator when the topology is built: only then is `sends_old` known.
MakeOperator = Callable[[TableState], Operator]


@dataclass(eq=False, slots=True, kw_only=True)
class AggregateStep(ProcessStep):
    """An aggregate; a suppress below it needs `windows` to know when results are complete."""

    windows: Windows | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Windows that the user asked for, and when their results are emitted."""

    windows: Windows
    on_close: bool = False

    @staticmethod
    def of(windows: Windows, emit: Emit) -> "Window":
        """Check the arguments; errors name the line of the user's call."""
        known = (TimeWindows, UnlimitedWindows, SlidingWindows, SessionWindows)
        if not isinstance(windows, known):
            raise TopologyError(
                f"{windows!r} does not define windows",
                at=user_line(),
                hint="use tumbling, hopping, sliding, session or unlimited",
            )
        if emit not in ("on_update", "on_close"):
            raise TopologyError(
                f'"emit" is {emit!r}', at=user_line(), hint='it must be "on_update" or "on_close"'
            )
        if emit == "on_close" and isinstance(windows, UnlimitedWindows):
            raise TopologyError(
                'an unlimited window never closes, so emit="on_close" would emit nothing',
                at=user_line(),
                hint='use emit="on_update"',
            )
        return Window(windows=windows, on_close=emit == "on_close")

    @property
    def size_ms(self) -> int:
        """The size of a window; sessions have no fixed size."""
        match self.windows:
            case TimeWindows(size_ms=size_ms):
                return size_ms
            case SlidingWindows(difference_ms=difference_ms):
                return difference_ms
            case UnlimitedWindows():
                return UNLIMITED_END_MS
            case SessionWindows():
                return NO_LIMIT
            case _:
                assert_never(self.windows)

    @property
    def needed_ms(self) -> int:
        """The minimum retention of the store."""
        match self.windows:
            case TimeWindows(size_ms=size_ms, grace_ms=grace_ms):
                return size_ms + grace_ms
            case SlidingWindows(difference_ms=difference_ms, grace_ms=grace_ms):
                return 2 * difference_ms + grace_ms
            case SessionWindows(gap_ms=gap_ms, grace_ms=grace_ms):
                return gap_ms + grace_ms
            case UnlimitedWindows():
                return NO_LIMIT
            case _:
                assert_never(self.windows)

    def spec(self, options: Stored, name: str) -> StoreSpec:
        """The store of the windows."""
        needed_ms, given_ms = self.needed_ms, options.retention_ms
        if given_ms is not None and given_ms < needed_ms:
            raise TopologyError(
                f'store "{name}" retains windows for only {given_ms} ms',
                at=user_line(),
                hint=f"these windows need at least {needed_ms} ms; raise retention or omit it",
            )
        if options.versioned:
            raise TopologyError(
                f'window store "{name}" cannot be versioned',
                at=user_line(),
                hint="omit versioned_history",
            )
        is_session = isinstance(self.windows, SessionWindows)
        return options.spec(
            name,
            StoreKind.SESSION if is_session else StoreKind.TIMESTAMPED_WINDOW,
            # Closed windows are emitted about once a second, so the store must retain them longer.
            retention_ms=2 * needed_ms if self.on_close else needed_ms,
            window_size_ms=self.size_ms,
        )

    def key_serde(self, inner: AnySerde | None) -> AnySerde:
        """The serde of the keys of the result."""
        if isinstance(self.windows, SessionWindows):
            return SessionWindowedSerde(inner)
        return WindowedSerde(inner, self.size_ms)

    def operator(
        self,
        spec: StoreSpec,
        state: TableState,
        initializer: Initializer,
        adder: Adder,
        merger: Merger | None = None,
    ) -> Operator:
        """The operator that computes the aggregates."""
        caching, send_old = spec.caching, state.sends_old
        match self.windows:
            case TimeWindows() | UnlimitedWindows():
                return WindowAggregate(
                    spec.name,
                    self.windows,
                    initializer,
                    adder,
                    caching=caching,
                    send_old=send_old,
                    on_close=self.on_close,
                    retention_ms=spec.retention_ms,
                )
            case SlidingWindows():
                return SlidingAggregate(
                    spec.name,
                    self.windows,
                    initializer,
                    adder,
                    caching=caching,
                    send_old=send_old,
                    on_close=self.on_close,
                    retention_ms=spec.retention_ms,
                )
            case SessionWindows():
                assert merger is not None, "sessions are merged"
                return SessionAggregate(
                    spec.name,
                    self.windows,
                    initializer,
                    adder,
                    merger,
                    caching=caching,
                    send_old=send_old,
                    on_close=self.on_close,
                    retention_ms=spec.retention_ms,
                )
            case _:
                assert_never(self.windows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultStore:
    """The store of the results of an aggregate."""

    spec: StoreSpec
    window: Window | None
    queryable_store_name: str | None
    state: TableState

    @property
    def windows(self) -> Windows | None:
        """The windows of the results, if they have any."""
        return None if self.window is None else self.window.windows

    def table_node(self, graph: Graph, step: Step) -> TableNode:
        """The table of the results."""
        inner = self.spec.key_serde
        return TableNode(
            graph=graph,
            step=step,
            state=self.state,
            key_serde=inner if self.window is None else self.window.key_serde(inner),
            value_serde=self.spec.value_serde,
            queryable_store_name=self.queryable_store_name,
        )


def choose_store(
    graph: Graph, options: Stored, prefix: str, window: Window | None = None
) -> ResultStore:
    """Choose the store of the results; it gets a generated name if the user gave none."""
    name = graph.names.new_store(prefix) if options.name is None else options.name
    if window is None:
        spec = options.table_spec(name)
        state = TableState(store=spec, always_stored=True, versioned=options.versioned)
    else:
        spec = window.spec(options, name)
        view = _view(spec)
        state = TableState(always_stored=True, make_view=lambda: view)
    return ResultStore(spec=spec, window=window, queryable_store_name=options.name, state=state)


def _view(spec: StoreSpec) -> TableView:
    return SessionView(spec.name) if spec.kind is StoreKind.SESSION else WindowView(spec.name)


def add_aggregate(
    graph: Graph,
    name: str,
    parent: Step,
    result_store: ResultStore,
    make: MakeOperator,
    *,
    has_store: bool = False,
) -> AggregateStep:
    """Add the node of an aggregate; with `has_store`, another node has added the store."""
    state, spec = result_store.state, result_store.spec
    new: Sequence[StoreSpec] = () if has_store else (spec,)
    used: Sequence[str] = (spec.name,) if has_store else ()
    return graph.add(
        AggregateStep(
            name=name,
            parents=(parent,),
            make=lambda: make(state),
            new_stores=lambda: new,
            stores=lambda: used,
            keeps_values=False,
            windows=result_store.windows,
        )
    )
