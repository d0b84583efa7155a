"""TimeWindowedStream and SessionWindowedStream: aggregates by windows of time."""

from collections.abc import Callable
from typing import Generic, TypeVar, Unpack, cast

from broker.serde import LongSerde
from streams.dsl.aggregated import AGGREGATE, REDUCE, ResultStore, Window
from streams.dsl.grouped import GroupedStream, skip_store_name
from streams.dsl.stored import Stored, StoreOptions, stored
from streams.dsl.stream import AnyFunction, check_function
from streams.dsl.table import Table
from streams.operators.aggregate import (
    count_adder,
    count_initializer,
    count_merger,
    merging,
    no_initial_value,
    reducing,
)
from streams.record import Windowed

K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A")


class TimeWindowedStream(Generic[K, V]):
    """Records by key and tumbling, hopping, sliding or unlimited window.

    >>> clicks.group_by_key().windowed_by(tumbling(60_000)).count().to_stream().to("per-minute")
    """

    __slots__ = ("_grouped", "_window")

    def __init__(self, grouped: GroupedStream[K, V], window: Window) -> None:
        self._grouped, self._window = grouped, window

    def count(
        self, *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> Table[Windowed[K], int]:
        """Count the records of each key and window."""
        given = stored(**options)
        skip_store_name(self._grouped.node, given, AGGREGATE)
        result_store = self._choose_store(given.with_default_serdes(None, LongSerde()), AGGREGATE)
        return self._table(result_store, name, AGGREGATE, (count_initializer, count_adder))

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> Table[Windowed[K], V]:
        """Combine the values of each key and window into one: reducer(old, new)."""
        check_function(reducer, "reducer")
        given = stored(**options).with_default_serdes(None, self._grouped.value_serde)
        result_store = self._choose_store(given, REDUCE)
        add = reducing(cast("AnyFunction", reducer))
        return self._table(result_store, name, REDUCE, (no_initial_value, add))

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> Table[Windowed[K], A]:
        """Aggregate the values of each key and window: adder(key, value, aggregate)."""
        check_function(initializer, "initializer")
        check_function(adder, "adder")
        result_store = self._choose_store(stored(**options), AGGREGATE)
        functions = cast("tuple[AnyFunction, AnyFunction]", (initializer, adder))
        return self._table(result_store, name, AGGREGATE, functions)

    def _choose_store(self, options: Stored, prefix: str) -> ResultStore:
        return self._grouped.choose_store(options, prefix, self._window)

    def _table(
        self,
        result_store: ResultStore,
        name: str | None,
        prefix: str,
        functions: tuple[AnyFunction, AnyFunction],
    ) -> Table[Windowed[K], A]:
        window = self._window
        node = self._grouped.add_step(
            result_store,
            name,
            prefix,
            lambda state: window.operator(result_store.spec, state, *functions),
        )
        return Table(node)


class SessionWindowedStream(Generic[K, V]):
    """Records by key and session."""

    __slots__ = ("_grouped", "_window")

    def __init__(self, grouped: GroupedStream[K, V], window: Window) -> None:
        self._grouped, self._window = grouped, window

    def count(
        self, *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> Table[Windowed[K], int]:
        """Count the records of each session."""
        given = stored(**options)
        skip_store_name(self._grouped.node, given, AGGREGATE)
        result_store = self._choose_store(given.with_default_serdes(None, LongSerde()), AGGREGATE)
        return self._table(
            result_store, name, AGGREGATE, (count_initializer, count_adder, count_merger)
        )

    def reduce(
        self,
        reducer: Callable[[V, V], V],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> Table[Windowed[K], V]:
        """Combine the values of each session into one: reducer(old, new)."""
        check_function(reducer, "reducer")
        given = stored(**options).with_default_serdes(None, self._grouped.value_serde)
        result_store = self._choose_store(given, REDUCE)
        function = cast("AnyFunction", reducer)
        functions = (no_initial_value, reducing(function), merging(function))
        return self._table(result_store, name, REDUCE, functions)

    def aggregate(
        self,
        initializer: Callable[[], A],
        adder: Callable[[K, V, A], A],
        merger: Callable[[K, A, A], A],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> Table[Windowed[K], A]:
        """Aggregate the values of each session; merger(key, left, right) merges two sessions."""
        for function, kind in ((initializer, "initializer"), (adder, "adder"), (merger, "merger")):
            check_function(function, kind)
        result_store = self._choose_store(stored(**options), AGGREGATE)
        functions = cast(
            "tuple[AnyFunction, AnyFunction, AnyFunction]", (initializer, adder, merger)
        )
        return self._table(result_store, name, AGGREGATE, functions)

    def _choose_store(self, options: Stored, prefix: str) -> ResultStore:
        return self._grouped.choose_store(options, prefix, self._window)

    def _table(
        self,
        result_store: ResultStore,
        name: str | None,
        prefix: str,
        functions: tuple[AnyFunction, AnyFunction, AnyFunction],
    ) -> Table[Windowed[K], A]:
        window = self._window
        node = self._grouped.add_step(
            result_store,
            name,
            prefix,
            lambda state: window.operator(result_store.spec, state, *functions),
        )
        return Table(node)
