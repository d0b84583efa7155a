"""GroupedStream and GroupedTable: count, reduce and aggregate by key."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack, cast, overload

from broker.serde import LongSerde
from streams.dsl import names
from streams.dsl.aggregated import (
    AGGREGATE,
    REDUCE,
    Emit,
    MakeOperator,
    ResultStore,
    Window,
    add_aggregate,
    choose_store,
)
from streams.dsl.logical import ProcessStep, RepartitionStep, Step, StreamNode, TableNode
from streams.dsl.stored import AnySerde, Stored, StoreOptions, Typed, serde_of, stored
from streams.dsl.stream import AnyFunction, check_function
from streams.dsl.table import Table
from streams.operators.aggregate import (
    Aggregate,
    Reduce,
    count_adder,
    count_initializer,
    count_subtractor,
)
from streams.operators.table_aggregate import TableAggregate, TableReduce, TableSelect
from streams.serdes import ChangeSerde
from streams.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

if TYPE_CHECKING:
    from streams.dsl.cogrouped import CogroupedStream
    from streams.dsl.windowed import SessionWindowedStream, TimeWindowedStream

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")

TABLE_AGGREGATE = "KTABLE-AGGREGATE-"
TABLE_REDUCE = "KTABLE-REDUCE-"


class GroupedStream(Generic[K, V]):
    """Records grouped by key; created by `group_by_key` and `group_by` of a Stream.

    >>> orders.group_by_key().count(store="orders-by-customer")
    """

    __slots__ = ("_name", "_repartition", "key_serde", "node", "value_serde")

    def __init__(
        self,
        node: StreamNode,
        key_serde: AnySerde | None,
        value_serde: AnySerde | None,
        name: str | None,
    ) -> None:
        """`name` is the base name of the repartition topic."""
        self.node, self.key_serde, self.value_serde = node, key_serde, value_serde
        self._name = name
        self._repartition: RepartitionStep | None = None

    def count(self, *, name: str | None = None, **options: Unpack[StoreOptions]) -> Table[K, int]:
        """Count the records of each key."""
        given = stored(**options)
        skip_store_name(self.node, given, AGGREGATE)
        result_store = self.choose_store(given.with_default_serdes(None, LongSerde()), AGGREGATE)
        return Table(self._aggregated(result_store, name, count_initializer, count_adder))

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> Table[K, V]:
        """Combine the values of each key into one: reducer(old, new)."""
        check_function(reducer, "reducer")
        given = stored(**options).with_default_serdes(None, self.value_serde)
        result_store = self.choose_store(given, REDUCE)
        spec = result_store.spec
        function = cast("AnyFunction", reducer)
        node = self.add_step(
            result_store,
            name,
            REDUCE,
            lambda state: Reduce(
                spec.name, function, spec.caching, state.sends_old, state.versioned
            ),
        )
        return Table(node)

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> Table[K, A]:
        """Aggregate the values of each key: adder(key, value, aggregate).

        >>> grouped.aggregate(lambda: 0.0, lambda key, order, total: total + order["amount"])
        """
        check_function(initializer, "initializer")
        check_function(adder, "adder")
        result_store = self.choose_store(stored(**options), AGGREGATE)
        return Table(
            self._aggregated(
                result_store, name, cast("AnyFunction", initializer), cast("AnyFunction", adder)
            )
        )

    @overload
    def windowed_by(
        self,
        windows: TimeWindows | UnlimitedWindows | SlidingWindows,
        *,
        emit: Emit = "on_update",
    ) -> "TimeWindowedStream[K, V]": ...
    @overload
    def windowed_by(
        self, windows: SessionWindows, *, emit: Emit = "on_update"
    ) -> "SessionWindowedStream[K, V]": ...
    def windowed_by(
        self,
        windows: TimeWindows | UnlimitedWindows | SlidingWindows | SessionWindows,
        *,
        emit: Emit = "on_update",
    ) -> "TimeWindowedStream[K, V] | SessionWindowedStream[K, V]":
        """Aggregate by windows of time; with `emit="on_close"`, emit only final results.

        >>> grouped.windowed_by(tumbling(timedelta(minutes=5), grace=timedelta(seconds=10)))
        """
        from streams.dsl.windowed import SessionWindowedStream, TimeWindowedStream

        window = Window.of(windows, emit)
        if isinstance(windows, SessionWindows):
            return SessionWindowedStream(self, window)
        return TimeWindowedStream(self, window)

    def cogroup(self, adder: Callable[[K, V, A], A]) -> "CogroupedStream[K, A]":
        """Aggregate this and other grouped streams into one table: adder(key, value, aggregate)."""
        from streams.dsl.cogrouped import CogroupedStream

        check_function(adder, "adder")
        return CogroupedStream.of(self, adder)

    def choose_store(
        self, options: Stored, prefix: str, window: Window | None = None
    ) -> ResultStore:
        """Choose the store of a result."""
        given = options.with_default_serdes(self.key_serde, None)
        return choose_store(self.node.graph, given, prefix, window)

    def add_step(
        self, result_store: ResultStore, name: str | None, prefix: str, make: MakeOperator
    ) -> TableNode:
        """Add the node of an aggregate, and the repartition above it."""
        graph = self.node.graph
        node_name = graph.names.node(name, prefix)
        step = add_aggregate(
            graph, node_name, self.repartitioned(result_store.spec.name), result_store, make
        )
        return result_store.table_node(graph, step)

    def repartitioned(self, store_name: str) -> Step:
        """The step whose records are partitioned by the key of the group.

        All results share a repartition topic that the user named; otherwise each has its own.
        """
        graph = self.node.graph
        if not self.node.needs_repartition:
            return self.node.step
        step = graph.new_repartition(
            self.node.step,
            self._name or store_name,
            key_serde=self.key_serde,
            value_serde=self.value_serde,
        )
        if self._repartition is None or self._name is None:
            self._repartition = graph.add(step)
        return self._repartition

    @property
    def repartition_name(self) -> str | None:
        """The user's name of the repartition topic."""
        return self._name

    def _aggregated(
        self,
        result_store: ResultStore,
        name: str | None,
        initializer: AnyFunction,
        adder: AnyFunction,
    ) -> TableNode:
        spec = result_store.spec
        return self.add_step(
            result_store,
            name,
            AGGREGATE,
            lambda state: Aggregate(
                spec.name, initializer, adder, spec.caching, state.sends_old, state.versioned
            ),
        )


def skip_store_name(node: StreamNode | TableNode, options: Stored, prefix: str) -> None:
    """Skip a number, as Kafka Streams does for a count with options but without a store name."""
    if options.given and options.name is None:
        node.graph.names.new_store(prefix)


class GroupedTable(Generic[K, V]):
    """Rows of a table grouped by another key; created by `group_by` of a Table.

    A changed row is subtracted from its old group before it is added to its new one.
    """

    __slots__ = ("_key_serde", "_name", "_repartition", "_select", "_value_serde", "node")

    def __init__(
        self,
        node: TableNode,
        selector: AnyFunction,
        key_serde: AnySerde | None,
        value_serde: AnySerde | None,
        name: str | None,
    ) -> None:
        """`name` is the base name of the repartition topic."""
        graph = node.graph
        self.node, self._key_serde, self._value_serde = node, key_serde, value_serde
        self._name = name
        self._repartition: RepartitionStep | None = None
        self._select = graph.add(
            ProcessStep(
                name=graph.names.node(name, names.TABLE_SELECT),
                parents=(node.step,),
                make=lambda: TableSelect(selector),
                changes_key=True,
                keeps_values=False,
            )
        )
        node.state.need_old_values()

    def count(self, *, name: str | None = None, **options: Unpack[StoreOptions]) -> Table[K, int]:
        """Count the rows of each group."""
        result_store = self._choose_store(
            stored(**options).with_default_serdes(None, LongSerde()), TABLE_AGGREGATE
        )
        return Table(
            self._aggregated(result_store, name, (count_initializer, count_adder, count_subtractor))
        )

    def reduce(
        self,
        adder: Callable[[V, V], V],
        subtractor: Callable[[V, V], V],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> Table[K, V]:
        """Combine the rows of each group into one: adder(aggregate, value), and its inverse."""
        check_function(adder, "adder")
        check_function(subtractor, "subtractor")
        given = stored(**options).with_default_serdes(None, self._value_serde)
        result_store = self._choose_store(given, TABLE_REDUCE)
        add, subtract = cast("AnyFunction", adder), cast("AnyFunction", subtractor)
        spec = result_store.spec
        return Table(
            self._add_step(
                result_store,
                name,
                TABLE_REDUCE,
                lambda state: TableReduce(
                    spec.name, add, subtract, spec.caching, state.sends_old, state.versioned
                ),
            )
        )

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        subtractor: Callable[[K, V, A], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> Table[K, A]:
        """Aggregate the rows of each group: adder(key, value, aggregate)."""
        for function, kind in (
            (initializer, "initializer"),
            (adder, "adder"),
            (subtractor, "subtractor"),
        ):
            check_function(function, kind)
        result_store = self._choose_store(stored(**options), TABLE_AGGREGATE)
        functions = cast(
            "tuple[AnyFunction, AnyFunction, AnyFunction]", (initializer, adder, subtractor)
        )
        return Table(self._aggregated(result_store, name, functions))

    def _choose_store(self, options: Stored, prefix: str) -> ResultStore:
        return choose_store(
            self.node.graph, options.with_default_serdes(self._key_serde, None), prefix
        )

    def _aggregated(
        self,
        result_store: ResultStore,
        name: str | None,
        functions: tuple[AnyFunction, AnyFunction, AnyFunction],
    ) -> TableNode:
        spec = result_store.spec
        return self._add_step(
            result_store,
            name,
            TABLE_AGGREGATE,
            lambda state: TableAggregate(
                spec.name, *functions, spec.caching, state.sends_old, state.versioned
            ),
        )

    def _add_step(
        self, result_store: ResultStore, name: str | None, prefix: str, make: MakeOperator
    ) -> TableNode:
        graph = self.node.graph
        sink_name = graph.names.node(name, names.SINK, suffix="-sink")
        source_name = graph.names.node(name, names.SOURCE, suffix="-source")
        node_name = graph.names.node(name, prefix)
        if self._repartition is None or self._name is None:
            base_name = (self._name or result_store.spec.name).removesuffix(
                names.REPARTITION_SUFFIX
            )
            self._repartition = graph.add(
                RepartitionStep(
                    name=source_name,
                    parents=(self._select,),
                    topic=base_name + names.REPARTITION_SUFFIX,
                    sink_name=sink_name,
                    filter_name="",  # groups have keys
                    key_serde=self._key_serde,
                    value_serde=ChangeSerde(self._value_serde),
                    explicit=True,
                )
            )
        step = add_aggregate(graph, node_name, self._repartition, result_store, make)
        return result_store.table_node(graph, step)


def group_table(
    table: Table[Any, Any],
    selector: AnyFunction,
    *,
    key: Typed[K] | None = None,
    value: Typed[V] | None = None,
    name: str | None = None,
) -> GroupedTable[K, V]:
    """Group the rows of a table by the results of the selector."""
    if name is not None:
        names.check_name(name)
    return GroupedTable(table.node, selector, serde_of(key), serde_of(value), name)


# Any, because a grouped stream of a cogroup has a value type of its own.
AnyGroupedStream = GroupedStream[Any, Any]
