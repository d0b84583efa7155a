"""CogroupedStream: several grouped streams, each with its own adder, aggregated into one table."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Generic, TypeVar, Unpack, cast, overload

from streams.dsl.aggregated import ResultStore, Window, add_aggregate, choose_store
from streams.dsl.grouped import AnyGroupedStream, GroupedStream
from streams.dsl.logical import CopartitionStep, Graph, ProcessStep, Step
from streams.dsl.stored import Stored, StoreOptions, stored
from streams.dsl.stream import AnyFunction, check_function
from streams.dsl.table import Table
from streams.errors import TopologyError
from streams.operators.aggregate import Aggregate
from streams.operators.stateless import PassThrough
from streams.record import Windowed
from streams.where import user_line
from streams.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")
KR = TypeVar("KR")

COGROUP_AGGREGATE = "COGROUPKSTREAM-AGGREGATE-"
COGROUP_MERGE = "COGROUPKSTREAM-MERGE-"


class CogroupedStream(Generic[K, A]):
    """Grouped streams of one key type. Created by `cogroup` of a GroupedStream.

    >>> carts = clicks.cogroup(add_click).cogroup(orders, add_order).aggregate(Cart)
    """

    __slots__ = ("_adders", "_parents")

    def __init__(self, adders: Mapping[AnyGroupedStream, AnyFunction]) -> None:
        self._adders = MappingProxyType(dict(adders))
        self._parents: dict[AnyGroupedStream, Step] = {}

    @staticmethod
    def of(grouped: GroupedStream[K, V], adder: Callable[[K, V, A], A]) -> "CogroupedStream[K, A]":
        """The first stream of a cogroup."""
        return CogroupedStream({grouped: cast("AnyFunction", adder)})

    def cogroup(
        self, grouped: GroupedStream[K, V], adder: Callable[[K, V, A], A]
    ) -> "CogroupedStream[K, A]":
        """Add another stream: adder(key, value, aggregate)."""
        check_function(adder, "adder")
        if not isinstance(grouped, GroupedStream):
            raise TopologyError(
                f"{grouped!r} is not a GroupedStream", at=user_line(), hint="group the stream first"
            )
        if grouped.node.graph is not self._graph:
            raise TopologyError(
                "the grouped streams come from different builders",
                at=user_line(),
                hint="create all with the same StreamsBuilder",
            )
        return CogroupedStream({**self._adders, grouped: cast("AnyFunction", adder)})

    def aggregate(
        self,
        initializer: Callable[[], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> Table[K, A]:
        """Aggregate the records of each key over all streams."""
        check_function(initializer, "initializer")
        return self.table(cast("AnyFunction", initializer), None, None, name, stored(**options))

    @overload
    def windowed_by(
        self, windows: TimeWindows | UnlimitedWindows | SlidingWindows
    ) -> "TimeWindowedCogroupedStream[K, A]": ...
    @overload
    def windowed_by(self, windows: SessionWindows) -> "SessionWindowedCogroupedStream[K, A]": ...
    def windowed_by(
        self, windows: TimeWindows | UnlimitedWindows | SlidingWindows | SessionWindows
    ) -> "TimeWindowedCogroupedStream[K, A] | SessionWindowedCogroupedStream[K, A]":
        """Aggregate by windows of time."""
        window = Window.of(windows, "on_update")
        if isinstance(windows, SessionWindows):
            return SessionWindowedCogroupedStream(self, window)
        return TimeWindowedCogroupedStream(self, window)

    @property
    def _graph(self) -> Graph:
        return next(iter(self._adders)).node.graph

    def table(
        self,
        initializer: AnyFunction,
        merger: AnyFunction | None,
        window: Window | None,
        name: str | None,
        options: Stored,
    ) -> Table[KR, A]:
        """Add the nodes: repartitions, one aggregate per stream, and a merge."""
        graph = self._graph
        key_serde = next((g.key_serde for g in self._adders if g.key_serde is not None), None)
        result_store = choose_store(
            graph, options.with_default_serdes(key_serde, None), COGROUP_AGGREGATE, window
        )
        parents = self._repartitioned(result_store)
        aggregates: list[Step] = []
        for number, (grouped, adder) in enumerate(self._adders.items()):
            node_name = graph.names.node(name, COGROUP_AGGREGATE, suffix=f"-cogroup-agg-{number}")
            make = _operator(result_store, initializer, adder, merger)
            aggregates.append(
                add_aggregate(
                    graph, node_name, parents[grouped], result_store, make, has_store=number > 0
                )
            )
        step = graph.add(
            ProcessStep(
                name=graph.names.node(name, COGROUP_MERGE, suffix="-cogroup-merge"),
                parents=tuple(aggregates),
                make=PassThrough,
            )
        )
        return Table(result_store.table_node(graph, step))

    def _repartitioned(self, result_store: ResultStore) -> dict[AnyGroupedStream, Step]:
        """The steps above the aggregates, partitioned by key in the same way."""
        graph, unnamed = self._graph, 0
        for grouped in self._adders:
            if not grouped.node.needs_repartition:
                self._parents[grouped] = grouped.node.step
                continue
            base_name = grouped.repartition_name
            if base_name is None:
                # One topic for each stream: the first has the name that Kafka Streams gives it.
                base_name = (
                    result_store.spec.name
                    if unnamed == 0
                    else f"{result_store.spec.name}-{unnamed}"
                )
                unnamed += 1
            step = graph.new_repartition(
                grouped.node.step,
                base_name,
                key_serde=grouped.key_serde,
                value_serde=grouped.value_serde,
            )
            if grouped not in self._parents:
                self._parents[grouped] = graph.add(step)
        if len(self._parents) > 1:
            graph.add(CopartitionStep(name="", parents=tuple(self._parents.values())))
        return self._parents


def _operator(
    result_store: ResultStore,
    initializer: AnyFunction,
    adder: AnyFunction,
    merger: AnyFunction | None,
) -> AnyFunction:
    spec, window = result_store.spec, result_store.window
    if window is not None:
        return lambda state: window.operator(spec, state, initializer, adder, merger)
    return lambda state: Aggregate(
        spec.name, initializer, adder, spec.caching, state.sends_old, state.versioned
    )


class TimeWindowedCogroupedStream(Generic[K, A]):
    """Cogrouped streams, by tumbling, hopping, sliding or unlimited window."""

    __slots__ = ("_cogrouped", "_window")

    def __init__(self, cogrouped: CogroupedStream[K, A], window: Window) -> None:
        self._cogrouped, self._window = cogrouped, window

    def aggregate(
        self,
        initializer: Callable[[], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> Table[Windowed[K], A]:
        """Aggregate the records of each key and window over all streams."""
        check_function(initializer, "initializer")
        function = cast("AnyFunction", initializer)
        return self._cogrouped.table(function, None, self._window, name, stored(**options))


class SessionWindowedCogroupedStream(Generic[K, A]):
    """Cogrouped streams, by session."""

    __slots__ = ("_cogrouped", "_window")

    def __init__(self, cogrouped: CogroupedStream[K, A], window: Window) -> None:
        self._cogrouped, self._window = cogrouped, window

    def aggregate(
        self,
        initializer: Callable[[], A],
        merger: Callable[[K, A, A], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> Table[Windowed[K], A]:
        """Aggregate the records of each session over all streams; merger(key, left, right)."""
        check_function(initializer, "initializer")
        check_function(merger, "merger")
        functions = cast("tuple[AnyFunction, AnyFunction]", (initializer, merger))
        return self._cogrouped.table(*functions, self._window, name, stored(**options))
