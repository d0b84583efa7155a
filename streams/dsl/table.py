"""Table: the newest value of each key, as it changes; and GlobalTable: all of it everywhere.

A table is kept in a store only when the user names one, a join looks values up, or something
below needs to know old values. See `stream` for how the modules know each other.
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
    KeepNewest,
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
    """A table that changes with every record: None as value deletes the key."""

    __slots__ = ("node",)

    def __init__(self, node: TableNode) -> None:
        """For the DSL itself: users get tables from a StreamsBuilder, or by grouping streams."""
        self.node = node

    @property
    def queryable_store_name(self) -> str | None:
        """The store to ask for values from outside; None if the user named none."""
        return self.node.queryable_store_name

    def filter(
        self,
        predicate: Callable[[K, V], object],
        *,
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, V]":
        """Only the keys whose value the predicate takes; others are deleted."""
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
        """Only the keys whose value the predicate does not take."""
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
        """Another value for each key. The mapper is not asked about deletions."""
        check_function(mapper, "mapper")
        kept = stored(**options)
        derive = map_by(mapper, with_key=with_key)
        if kept.given and kept.name is None:
            self.node.graph.names.new_store(names.TABLE_MAP_VALUES)
        kept = kept.with_default_serdes(self.node.key_serde, None)
        state = self._derived_state(kept)
        parent = self.node.state
        state.make_view = lambda: DerivedView(parent.view(), derive)

        def make() -> Operator:
            return DeriveTable(derive, state.sends_old, store=state.store)

        return Table(self._then(make, state, kept, names.TABLE_MAP_VALUES, name))

    def transform_values(
        self,
        supplier: Callable[[], Transformer],
        *,
        stores: Iterable[str] = (),
        name: str | None = None,
        **options: Unpack[StoreOptions],
    ) -> "Table[K, Any]":
        """Another value for each key, by an object with `transform(key, value)` and stores.

        The supplier makes a new object for each task, and one more for each join that looks up
        values of a table that is not kept.
        """
        check_function(supplier, "supplier")
        used = tuple(stores)
        kept = stored(**options).with_default_serdes(self.node.key_serde, None)
        state = self._derived_state(kept)
        parent = self.node.state
        state.make_view = lambda: TransformedView(parent.view(), supplier, used)

        def make() -> Operator:
            return TransformTable(supplier, state.sends_old, state.store)

        node = self._then(make, state, kept, names.TABLE_TRANSFORM_VALUES, name, used)
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
        """The changes as records: new values, None for deletions."""
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
        """Hold changes back: until their window closes, or for a time."""
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
        """Group rows by another key; the selector gives the new key and value of a row."""
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
        """Rows of both tables with the same key.

        With `foreign_key`, a function of this table's value (or of key and value), the other
        table's row is the one that it names.
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
        """All rows of this table, with the other's or with None."""
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
        """All rows of both tables, with None where the other has none."""
        from streams.dsl.joins import join_table

        return join_table(
            self, other, joiner, kind="outer", with_key=with_key, name=name, **options
        )

    # ---- for the methods above

    def _derived_state(self, kept: Stored) -> TableState:
        store = None if kept.name is None else kept.table_spec(kept.name)
        parent = self.node.state
        return TableState(
            parents=(parent,),
            store=store,
            versioned=parent.versioned if store is None else kept.versioned,
        )

    def _filtered(self, derive: Derive, name: str | None, kept: Stored) -> TableNode:
        if kept.given and kept.name is None:
            self.node.graph.names.new_store(names.TABLE_FILTER)
        kept = kept.with_default_serdes(self.node.key_serde, self.node.value_serde)
        state, parent = self._derived_state(kept), self.node.state
        state.make_view = lambda: DerivedView(parent.view(), derive)
        # Old values that come for nothing spare the children deletions of keys they never saw.
        knows_old = parent.need_old_values(force=False)
        if knows_old:
            state.sends_old = True

        def make() -> Operator:
            return DeriveTable(
                derive,
                state.sends_old,
                drop_unseen=state.sends_old and not parent.versioned,
                store=state.store,
            )

        return self._then(make, state, kept, names.TABLE_FILTER, name)

    def _then(
        self,
        make: Callable[[], Operator],
        state: TableState,
        kept: Stored,
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
            key_serde=kept.key_serde,
            value_serde=kept.value_serde,
            queryable_store_name=kept.name,
        )


class GlobalTable(Generic[K, V]):
    """All rows of a topic in every instance; streams are joined with it by any key."""

    __slots__ = ("store",)

    def __init__(self, store: StoreSpec) -> None:
        """For the DSL itself: users get global tables from a StreamsBuilder."""
        self.store = store

    @property
    def view(self) -> StoreView:
        """How a join looks values up."""
        return StoreView(self.store.name)

    @property
    def queryable_store_name(self) -> str:
        """The store to ask for values from outside."""
        return self.store.name


def table_of_stream(stream: Stream[K, V], kept: Stored, name: str | None) -> Table[K, V]:
    """The newest value of each key of a stream."""
    node = stream.node
    graph = node.graph
    step_name = graph.names.node(name, names.TO_TABLE)
    store_name = kept.name or graph.names.new_store(names.TO_TABLE)
    kept = kept.with_default_serdes(node.key_serde, node.value_serde)
    parent = node.step
    if node.needs_repartition:
        parent = graph.add(
            graph.new_repartition(
                parent, step_name, key_serde=kept.key_serde, value_serde=kept.value_serde
            )
        )
    state = source_state(kept, store_name)
    step = graph.add(
        ProcessStep(
            name=step_name,
            parents=(parent,),
            make=lambda: KeepNewest(state.store, state.sends_old),
            new_stores=lambda: () if state.store is None else (state.store,),
        )
    )
    return Table(
        TableNode(
            graph=graph,
            step=step,
            state=state,
            key_serde=kept.key_serde,
            value_serde=kept.value_serde,
            queryable_store_name=kept.name,
        )
    )


def source_state(kept: Stored, store_name: str) -> TableState:
    """The state of a table made of records: it gets its store when one is needed."""
    spec = kept.table_spec(store_name)
    state = TableState(versioned=kept.versioned)

    def need_store() -> None:
        state.store = spec

    state.need_store = need_store
    # A history that cannot be looked up would be useless.
    if kept.name is not None or kept.versioned:
        need_store()
    return state
