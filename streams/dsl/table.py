"""Table: the latest value of each key, as it changes; and GlobalTable, in all instances.

A table has a store only if the user names one, if a join looks values up, or if something below
needs old values. See `stream` for the imports between these modules.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, Unpack, cast, overload

from streams.dsl import names
from streams.dsl.logical import ProcessStep, StreamNode, TableNode, TableState
from streams.dsl.stored import Stored, StoreOptions, Typed, stored
from streams.dsl.stream import AnyFunction, Joiner, Stream, check_function
from streams.operators.tables import (
    ChangesToStream,
    DeriveTable,
    TableSource,
    TransformedView,
    Transformer,
    TransformTable,
    filter_by,
    map_by,
)
from streams.operators.views import Derive, DerivedView, StoreView
from streams.processor import Operator
from streams.state.store import StoreSpec

if TYPE_CHECKING:
    from streams.dsl.grouped import GroupedTable
    from streams.dsl.suppressed import Suppressed

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
VO = TypeVar("VO")
KO = TypeVar("KO")


class Table(Generic[K, V]):
    """A table that is updated by each record; the value None deletes the key."""

    __slots__ = ("node",)

    def __init__(self, node: TableNode) -> None:
        self.node = node

    @property
    def queryable_store_name(self) -> str | None:
        """The name of the store to query; None if the user has not named one."""
        return self.node.queryable_store_name

    def filter(
        self,
        predicate: Callable[[K, V], object],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, V]":
        """Keep only the keys for which the predicate is true; delete the others."""
        check_function(predicate, "predicate")
        derive = filter_by(cast(AnyFunction, predicate))
        return Table(self._filtered(derive, name, stored(**options)))

    def filter_not(
        self,
        predicate: Callable[[K, V], object],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, V]":
        """Keep only the keys for which the predicate is false."""
        check_function(predicate, "predicate")
        derive = filter_by(cast(AnyFunction, predicate), negate=True)
        return Table(self._filtered(derive, name, stored(**options)))

    @overload
    def map_values(
        self,
        mapper: Callable[[V], V2],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, V2]": ...
    @overload
    def map_values(
        self,
        mapper: Callable[[K, V], V2],
        *,
        with_key: Literal[True],
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, V2]": ...
    def map_values(
        self,
        mapper: AnyFunction,
        *,
        with_key: bool = False,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, Any]":
        """Replace the value of each key. The mapper is not called for deletions."""
        check_function(mapper, "mapper")
        store_options = stored(**options)
        derive = map_by(mapper, with_key=with_key)
        if store_options.given and store_options.name is None:
            self.node.graph.names.new_store(names.TABLE_MAP_VALUES)
        store_options = store_options.with_default_serdes(self.node.key_serde, None)
        state = self._derived_state(store_options)
        parent = self.node.state
        state.make_view = lambda: DerivedView(parent.view(), derive)

        def make() -> Operator:
            return DeriveTable(derive, state.sends_old, store=state.store)

        return Table(self._then(make, state, store_options, names.TABLE_MAP_VALUES, name))

    def transform_values(
        self,
        supplier: Callable[[], Transformer],
        *,
        stores: Iterable[str] = (),
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, Any]":
        """Replace the value of each key by means of an object with `transform(key, value)`.

        The supplier returns a new object for each task, and another one for each join that looks up
        values of a table without a store.
        """
        check_function(supplier, "supplier")
        used = tuple(stores)
        store_options = stored(**options).with_default_serdes(self.node.key_serde, None)
        state = self._derived_state(store_options)
        parent = self.node.state
        state.make_view = lambda: TransformedView(parent.view(), supplier, used)

        def make() -> Operator:
            return TransformTable(supplier, state.sends_old, state.store)

        node = self._then(make, state, store_options, names.TABLE_TRANSFORM_VALUES, name, used)
        return Table(node)

    @overload
    def to_stream(self, *, name: str | None = None) -> Stream[K, V]: ...
    @overload
    def to_stream(
        self, key_mapper: Callable[[K, V], K2], *, name: str | None = None
    ) -> Stream[K2, V]: ...
    def to_stream(
        self, key_mapper: AnyFunction | None = None, *, name: str | None = None
    ) -> Stream[Any, V]:
        """Convert the changes to records: new values, None for deletions."""
        graph = self.node.graph
        step = graph.add(
            ProcessStep(
                name=graph.names.node(name, names.TABLE_TO_STREAM),
                parents=(self.node.step,),
                make=ChangesToStream,
            )
        )
        stream: Stream[Any, V] = Stream(
            StreamNode(
                graph=graph,
                step=step,
                key_serde=self.node.key_serde,
                value_serde=self.node.value_serde,
            )
        )
        return stream if key_mapper is None else stream.select_key(key_mapper)

    def suppress(self, suppressed: "Suppressed") -> "Table[K, V]":
        """Suppress changes until their window closes, or for a time."""
        from streams.dsl.suppressed import suppress_table

        return suppress_table(self, suppressed)

    def group_by(
        self,
        selector: Callable[[K, V], tuple[K2, V2]],
        *,
        key: Typed[K2] | None = None,
        value: Typed[V2] | None = None,
        name: str | None = None,
    ) -> "GroupedTable[K2, V2]":
        """Group rows by another key; the selector returns the new key and value of a row."""
        from streams.dsl.grouped import group_table

        check_function(selector, "selector")
        return group_table(self, selector, key=key, value=value, name=name)

    # ---- joins

    @overload
    def join(
        self,
        other: "Table[K, VO]",
        joiner: Joiner[V, VO, V2, K],
        *,
        with_key: bool = False,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, V2]": ...
    @overload
    def join(
        self,
        other: "Table[KO, VO]",
        joiner: Joiner[V, VO, V2, K],
        *,
        foreign_key: Callable[[V], KO | None] | Callable[[K, V], KO | None],
        with_key: bool = False,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, V2]": ...
    def join(
        self,
        other: Any,
        joiner: AnyFunction,
        *,
        foreign_key: AnyFunction | None = None,
        with_key: bool = False,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, Any]":
        """Join rows of both tables with the same key.

        With `foreign_key`, a function of this table's value (or of key and value), rows are joined
        with the other table's row of that key.
        """
        from streams.dsl.joins import join_table

        return join_table(
            self,
            other,
            joiner,
            kind="inner",
            foreign_key=foreign_key,
            with_key=with_key,
            name=name,
            **options,
        )

    @overload
    def left_join(
        self,
        other: "Table[K, VO]",
        joiner: Joiner[V, VO, V2, K],
        *,
        with_key: bool = False,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, V2]": ...
    @overload
    def left_join(
        self,
        other: "Table[KO, VO]",
        joiner: Joiner[V, VO, V2, K],
        *,
        foreign_key: Callable[[V], KO | None] | Callable[[K, V], KO | None],
        with_key: bool = False,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, V2]": ...
    def left_join(
        self,
        other: Any,
        joiner: AnyFunction,
        *,
        foreign_key: AnyFunction | None = None,
        with_key: bool = False,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, Any]":
        """Join all rows of this table with the other's, or with None."""
        from streams.dsl.joins import join_table

        return join_table(
            self,
            other,
            joiner,
            kind="left",
            foreign_key=foreign_key,
            with_key=with_key,
            name=name,
            **options,
        )

    def outer_join(
        self,
        other: "Table[K, VO]",
        joiner: Joiner[V, VO, V2, K],
        *,
        with_key: bool = False,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, V2]":
        """Join all rows of both tables, with None where the other table has no row."""
        from streams.dsl.joins import join_table

        return join_table(
            self, other, joiner, kind="outer", with_key=with_key, name=name, **options
        )

    # ---- for the methods above

    def _derived_state(self, store_options: Stored) -> TableState:
        store = None if store_options.name is None else store_options.table_spec(store_options.name)
        parent = self.node.state
        return TableState(
            parents=(parent,),
            store=store,
            versioned=parent.versioned if store is None else store_options.versioned,
        )

    def _filtered(self, derive: Derive, name: str | None, store_options: Stored) -> TableNode:
        if store_options.given and store_options.name is None:
            self.node.graph.names.new_store(names.TABLE_FILTER)
        store_options = store_options.with_default_serdes(
            self.node.key_serde, self.node.value_serde
        )
        state, parent = self._derived_state(store_options), self.node.state
        state.make_view = lambda: DerivedView(parent.view(), derive)
        # If old values are available anyway, keys that were never emitted are not deleted.
        has_old_values = parent.need_old_values(force=False)
        if has_old_values:
            state.sends_old = True

        def make() -> Operator:
            return DeriveTable(
                derive,
                state.sends_old,
                drop_unseen=state.sends_old and not parent.versioned,
                store=state.store,
            )

        return self._then(make, state, store_options, names.TABLE_FILTER, name)

    def _then(
        self,
        make: Callable[[], Operator],
        state: TableState,
        store_options: Stored,
        prefix: str,
        name: str | None,
        used: tuple[str, ...] = (),
    ) -> TableNode:
        graph = self.node.graph
        step = graph.add(
            ProcessStep(
                name=graph.names.node(name, prefix),
                parents=(self.node.step,),
                make=make,
                new_stores=lambda: () if state.store is None else (state.store,),
                stores=lambda: used,
            )
        )
        return TableNode(
            graph=graph,
            step=step,
            state=state,
            key_serde=store_options.key_serde,
            value_serde=store_options.value_serde,
            queryable_store_name=store_options.name,
        )


class GlobalTable(Generic[K, V]):
    """All rows of a topic, in every instance; streams can be joined with it by any key."""

    __slots__ = ("store",)

    def __init__(self, store: StoreSpec) -> None:
        self.store = store

    @property
    def view(self) -> StoreView:
        """The view for lookups by joins."""
        return StoreView(self.store.name)

    @property
    def queryable_store_name(self) -> str:
        """The name of the store to query."""
        return self.store.name


def table_of_stream(stream: Stream[K, V], store_options: Stored, name: str | None) -> Table[K, V]:
    """Convert a stream to a table: the latest value of each key."""
    node = stream.node
    graph = node.graph
    step_name = graph.names.node(name, names.TO_TABLE)
    store_name = store_options.name or graph.names.new_store(names.TO_TABLE)
    store_options = store_options.with_default_serdes(node.key_serde, node.value_serde)
    parent = node.step
    if node.needs_repartition:
        parent = graph.add(
            graph.new_repartition(
                parent,
                step_name,
                key_serde=store_options.key_serde,
                value_serde=store_options.value_serde,
            )
        )
    state = source_state(store_options, store_name)
    step = graph.add(
        ProcessStep(
            name=step_name,
            parents=(parent,),
            make=lambda: TableSource(state.store, state.sends_old),
            new_stores=lambda: () if state.store is None else (state.store,),
        )
    )
    return Table(
        TableNode(
            graph=graph,
            step=step,
            state=state,
            key_serde=store_options.key_serde,
            value_serde=store_options.value_serde,
            queryable_store_name=store_options.name,
        )
    )


def source_state(store_options: Stored, store_name: str) -> TableState:
    """The state of a table of records; it gets its store when one is needed."""
    spec = store_options.table_spec(store_name)
    state = TableState(versioned=store_options.versioned)

    def need_store() -> None:
        state.store = spec

    state.need_store = need_store
    # A history that cannot be looked up would be useless.
    if store_options.name is not None or store_options.versioned:
        need_store()
    return state
