"""Stream: a stream of records. Operations return a new Stream or a Table, or end the stream.

A Stream has a `logical.StreamNode`, a Table a `logical.TableNode` (both as `.node`). `grouped`,
`windowed`, `cogrouped`, `joins` and `suppressed` may import `stream` and `table` at the top;
`stream` and `table` import each other and those modules only inside the methods that need them, so
that no import is circular.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TextIO, TypeVar, Unpack, cast, overload

from streams.dsl import names
from streams.dsl.logical import ProcessStep, SinkStep, StreamNode
from streams.dsl.stored import JoinOptions, StoreOptions, Typed, serde_of, stored
from streams.errors import TopologyError
from streams.operators import stateless
from streams.operators.user_processor import UserProcessor, UserValueProcessor
from streams.processor import Operator, Processor
from streams.state.store import StoreSpec
from streams.topology import Partitioner, TopicChooser
from streams.where import user_line
from streams.windows import Duration, JoinWindows

if TYPE_CHECKING:
    from streams.dsl.branched import BranchedStream
    from streams.dsl.grouped import GroupedStream
    from streams.dsl.table import GlobalTable, Table

K = TypeVar("K")
V = TypeVar("V")
K2 = TypeVar("K2")
V2 = TypeVar("V2")
VO = TypeVar("VO")
KG = TypeVar("KG")

# Any, because operators are independent of the user's types.
AnyFunction = Callable[..., Any]
# joiner(this side's value, the other side's), or, with_key, joiner(key, this, other).
Joiner = Callable[[V, VO], V2] | Callable[[K, V, VO], V2]

# Operations that use no number when the user names them.
_WITHOUT_NUMBERS = frozenset({names.PROCESSOR, names.PROCESS_VALUES})


class Stream(Generic[K, V]):
    """An unbounded sequence of records, each an independent event."""

    __slots__ = ("node",)

    def __init__(self, node: StreamNode) -> None:
        self.node = node

    # ---- one record at a time

    def filter(
        self, predicate: Callable[[K, V], object], *, name: str | None = None
    ) -> "Stream[K, V]":
        """Keep only the records for which the predicate is true.

        >>> orders.filter(lambda key, order: order["amount"] > 100)
        """
        check_function(predicate, "predicate")
        operator = stateless.Filter(cast(AnyFunction, predicate))
        return Stream(self._then(operator, names.FILTER, name))

    def filter_not(
        self, predicate: Callable[[K, V], object], *, name: str | None = None
    ) -> "Stream[K, V]":
        """Keep only the records for which the predicate is false."""
        check_function(predicate, "predicate")
        operator = stateless.Filter(cast(AnyFunction, predicate), negate=True)
        return Stream(self._then(operator, names.FILTER, name))

    def map(
        self, mapper: Callable[[K, V], tuple[K2, V2]], *, name: str | None = None
    ) -> "Stream[K2, V2]":
        """Replace the key and value of each record."""
        check_function(mapper, "mapper")
        operator = stateless.Map(cast(AnyFunction, mapper))
        return Stream(self._then(operator, names.MAP, name, new_key=True, new_value=True))

    @overload
    def map_values(
        self, mapper: Callable[[V], V2], *, name: str | None = None
    ) -> "Stream[K, V2]": ...
    @overload
    def map_values(
        self, mapper: Callable[[K, V], V2], *, with_key: Literal[True], name: str | None = None
    ) -> "Stream[K, V2]": ...
    def map_values(
        self, mapper: AnyFunction, *, with_key: bool = False, name: str | None = None
    ) -> "Stream[K, Any]":
        """Replace the value of each record; with `with_key`, the mapper also gets the key."""
        check_function(mapper, "mapper")
        operator = stateless.MapValues(mapper, with_key=with_key)
        return Stream(self._then(operator, names.MAP_VALUES, name, new_value=True))

    def flat_map(
        self, mapper: Callable[[K, V], Iterable[tuple[K2, V2]]], *, name: str | None = None
    ) -> "Stream[K2, V2]":
        """Replace each record with zero or more records."""
        check_function(mapper, "mapper")
        operator = stateless.FlatMap(cast(AnyFunction, mapper))
        return Stream(self._then(operator, names.FLAT_MAP, name, new_key=True, new_value=True))

    @overload
    def flat_map_values(
        self, mapper: Callable[[V], Iterable[V2]], *, name: str | None = None
    ) -> "Stream[K, V2]": ...
    @overload
    def flat_map_values(
        self,
        mapper: Callable[[K, V], Iterable[V2]],
        *,
        with_key: Literal[True],
        name: str | None = None,
    ) -> "Stream[K, V2]": ...
    def flat_map_values(
        self, mapper: AnyFunction, *, with_key: bool = False, name: str | None = None
    ) -> "Stream[K, Any]":
        """Replace each record with zero or more records with the same key."""
        check_function(mapper, "mapper")
        operator = stateless.FlatMapValues(mapper, with_key=with_key)
        return Stream(self._then(operator, names.FLAT_MAP_VALUES, name, new_value=True))

    def select_key(
        self, selector: Callable[[K, V], K2], *, name: str | None = None
    ) -> "Stream[K2, V]":
        """Replace the key of each record."""
        check_function(selector, "selector")
        operator = stateless.SelectKey(cast(AnyFunction, selector))
        return Stream(self._then(operator, names.SELECT_KEY, name, new_key=True))

    def peek(self, action: Callable[[K, V], object], *, name: str | None = None) -> "Stream[K, V]":
        """Call an action with each record, and pass it on unchanged."""
        check_function(action, "action")
        return Stream(self._then(stateless.Peek(cast(AnyFunction, action)), names.PEEK, name))

    def foreach(self, action: Callable[[K, V], object], *, name: str | None = None) -> None:
        """Call an action with each record; ends the stream."""
        check_function(action, "action")
        self._then(stateless.ForEach(cast(AnyFunction, action)), names.FOREACH, name)

    def print_(
        self,
        *,
        label: str | None = None,
        file: TextIO | None = None,
        mapper: Callable[[K, V], object] | None = None,
        name: str | None = None,
    ) -> None:
        """Write each record as a line "[label]: key, value"; ends the stream."""
        operator = stateless.Print(
            self.node.name if label is None else label, file, cast(AnyFunction | None, mapper)
        )
        self._then(operator, names.PRINT, name)

    # ---- several streams

    def split(self, *, name: str | None = None) -> "BranchedStream[K, V]":
        """Send each record to one of several branches.

        >>> branches = orders.split(name="size-").branch(is_big, name="big").default_branch()
        >>> branches["size-big"].to("big-orders")
        """
        from streams.dsl.branched import BranchedStream

        return BranchedStream(self.node, name)

    def merge(self, other: "Stream[K, V]", *, name: str | None = None) -> "Stream[K, V]":
        """Merge both streams; there is no order between their records."""
        check_stream(other, self.node)
        graph, mine, others = self.node.graph, self.node, other.node
        step = graph.add(
            ProcessStep(
                name=graph.names.node(name, names.MERGE),
                parents=(mine.step, others.step),
                make=stateless.PassThrough,
                merges=True,
            )
        )
        return Stream(
            StreamNode(
                graph=graph,
                step=step,
                # The serdes of the two may differ; they are kept only if they are the same object.
                key_serde=mine.key_serde if mine.key_serde is others.key_serde else None,
                value_serde=mine.value_serde if mine.value_serde is others.value_serde else None,
                needs_repartition=mine.needs_repartition or others.needs_repartition,
            )
        )

    # ---- topics

    def repartition(
        self,
        *,
        partitions: int | None = None,
        partitioner: Partitioner | None = None,
        key: Typed[K] | None = None,
        value: Typed[V] | None = None,
        name: str | None = None,
    ) -> "Stream[K, V]":
        """Send the records through an internal topic, partitioned by their current keys."""
        graph = self.node.graph
        if partitions is not None and partitions < 1:
            raise TopologyError(
                f'"partitions" is {partitions}', at=user_line(), hint="it must be at least 1"
            )
        base_name = graph.names.new(names.REPARTITION) if name is None else names.check_name(name)
        key_serde = serde_of(key, self.node.key_serde)
        value_serde = serde_of(value, self.node.value_serde)
        step = graph.new_repartition(
            self.node.step, base_name, key_serde=key_serde, value_serde=value_serde
        )
        step.partitions, step.partitioner, step.explicit = partitions, partitioner, True
        graph.add(step)
        return Stream(
            StreamNode(graph=graph, step=step, key_serde=key_serde, value_serde=value_serde)
        )

    def to(
        self,
        topic: str | TopicChooser,
        *,
        key: Typed[K] | None = None,
        value: Typed[V] | None = None,
        partitioner: Partitioner | None = None,
        name: str | None = None,
    ) -> None:
        """Write the records to a topic, or to the topic that a function returns for each record."""
        if not callable(topic):
            names.check_name(topic, "topic")
        graph = self.node.graph
        graph.add(
            SinkStep(
                name=graph.names.node(name, names.SINK),
                parents=(self.node.step,),
                topic=topic,
                key_serde=serde_of(key, self.node.key_serde),
                value_serde=serde_of(value, self.node.value_serde),
                partitioner=partitioner,
            )
        )

    def to_table(
        self, *, name: str | None = None, **options: Unpack[StoreOptions]
    ) -> "Table[K, V]":
        """Convert to a table: the latest value of each key. Records without a key are dropped."""
        from streams.dsl.table import table_of_stream

        return table_of_stream(self, stored(**options), name)

    # ---- grouping

    def group_by_key(
        self, *, key: Typed[K] | None = None, value: Typed[V] | None = None, name: str | None = None
    ) -> "GroupedStream[K, V]":
        """Group by the current key; `name` is for the repartition topic, if one is needed."""
        from streams.dsl.grouped import GroupedStream

        if name is not None:
            names.check_name(name)
        return GroupedStream(
            self.node,
            serde_of(key, self.node.key_serde),
            serde_of(value, self.node.value_serde),
            name,
        )

    def group_by(
        self,
        selector: Callable[[K, V], KG],
        *,
        key: Typed[KG] | None = None,
        value: Typed[V] | None = None,
        name: str | None = None,
    ) -> "GroupedStream[KG, V]":
        """Group by another key; records go through an internal topic."""
        from streams.dsl.grouped import GroupedStream

        check_function(selector, "selector")
        operator = stateless.SelectKey(cast(AnyFunction, selector))
        node = self._then(operator, names.SELECT_KEY, name, new_key=True)
        return GroupedStream(node, serde_of(key), serde_of(value, self.node.value_serde), name)

    # ---- joins

    @overload
    def join(
        self,
        other: "Stream[K, VO]",
        joiner: Joiner[V, VO, V2, K],
        within: JoinWindows,
        **options: Unpack[JoinOptions],
    ) -> "Stream[K, V2]": ...
    @overload
    def join(
        self,
        other: "Table[K, VO]",
        joiner: Joiner[V, VO, V2, K],
        *,
        grace: Duration | None = None,
        **options: Unpack[JoinOptions],
    ) -> "Stream[K, V2]": ...
    @overload
    def join(
        self,
        other: "GlobalTable[KG, VO]",
        joiner: Joiner[V, VO, V2, K],
        *,
        key_mapper: Callable[[K, V], KG | None],
        **options: Unpack[JoinOptions],
    ) -> "Stream[K, V2]": ...
    def join(
        self,
        other: Any,
        joiner: AnyFunction,
        within: JoinWindows | None = None,
        *,
        grace: Duration | None = None,
        key_mapper: AnyFunction | None = None,
        **options: Unpack[JoinOptions],
    ) -> "Stream[K, Any]":
        """Join records with the same key: of another stream within a time window, or of a table.

        Streams require `within`. A versioned table can have a `grace`: records wait for late
        changes of the table. A global table requires `key_mapper`, which returns its key for a
        record.
        """
        from streams.dsl.joins import join_stream

        return join_stream(
            self,
            other,
            joiner,
            kind="inner",
            within=within,
            grace=grace,
            key_mapper=key_mapper,
            **options,
        )

    @overload
    def left_join(
        self,
        other: "Stream[K, VO]",
        joiner: Joiner[V, VO, V2, K],
        within: JoinWindows,
        **options: Unpack[JoinOptions],
    ) -> "Stream[K, V2]": ...
    @overload
    def left_join(
        self,
        other: "Table[K, VO]",
        joiner: Joiner[V, VO, V2, K],
        *,
        grace: Duration | None = None,
        **options: Unpack[JoinOptions],
    ) -> "Stream[K, V2]": ...
    @overload
    def left_join(
        self,
        other: "GlobalTable[KG, VO]",
        joiner: Joiner[V, VO, V2, K],
        *,
        key_mapper: Callable[[K, V], KG | None],
        **options: Unpack[JoinOptions],
    ) -> "Stream[K, V2]": ...
    def left_join(
        self,
        other: Any,
        joiner: AnyFunction,
        within: JoinWindows | None = None,
        *,
        grace: Duration | None = None,
        key_mapper: AnyFunction | None = None,
        **options: Unpack[JoinOptions],
    ) -> "Stream[K, Any]":
        """Like `join`; records of this side without a match are joined with None."""
        from streams.dsl.joins import join_stream

        return join_stream(
            self,
            other,
            joiner,
            kind="left",
            within=within,
            grace=grace,
            key_mapper=key_mapper,
            **options,
        )

    def outer_join(
        self,
        other: "Stream[K, VO]",
        joiner: Joiner[V, VO, V2, K],
        within: JoinWindows,
        **options: Unpack[JoinOptions],
    ) -> "Stream[K, V2]":
        """Like `join`; records of either side without a match are joined with None."""
        from streams.dsl.joins import join_stream

        return join_stream(self, other, joiner, kind="outer", within=within, **options)

    # ---- the user's own processors

    def process(
        self,
        supplier: Callable[[], Processor[K, V, K2, V2]],
        *,
        stores: Iterable[str | StoreSpec] = (),
        name: str | None = None,
    ) -> "Stream[K2, V2]":
        """Call a Processor with each record; the records that it forwards are the new stream.

        The supplier returns a new object for each task. `stores` are names of stores added to the
        builder, or specifications of new ones.
        """
        operator = UserProcessor(supplier, at=user_line())
        return Stream(
            self._then(
                operator, names.PROCESSOR, name, new_key=True, new_value=True, stores=tuple(stores)
            )
        )

    def process_values(
        self,
        supplier: Callable[[], Processor[K, V, K, V2]],
        *,
        stores: Iterable[str | StoreSpec] = (),
        name: str | None = None,
    ) -> "Stream[K, V2]":
        """Like `process`, with a Processor that does not change keys."""
        operator = UserValueProcessor(supplier, at=user_line())
        return Stream(
            self._then(operator, names.PROCESS_VALUES, name, new_value=True, stores=tuple(stores))
        )

    def _then(
        self,
        operator: Operator,
        prefix: str,
        name: str | None,
        *,
        new_key: bool = False,
        new_value: bool = False,
        stores: Sequence[str | StoreSpec] = (),
    ) -> StreamNode:
        """Add a node; returns the stream after it."""
        node = self.node
        if name is None or prefix not in _WITHOUT_NUMBERS:
            name = node.graph.names.node(name, prefix)
        specs = tuple(store for store in stores if isinstance(store, StoreSpec))
        used = tuple(store for store in stores if isinstance(store, str))
        step = node.graph.add(
            ProcessStep(
                name=names.check_name(name),
                parents=(node.step,),
                make=lambda: operator,
                new_stores=lambda: specs,
                stores=lambda: used,
                changes_key=new_key,
                keeps_values=not new_value,
            )
        )
        return StreamNode(
            graph=node.graph,
            step=step,
            key_serde=None if new_key else node.key_serde,
            value_serde=None if new_value else node.value_serde,
            needs_repartition=new_key or node.needs_repartition,
        )


def check_function(given: object, kind: str) -> None:
    """Check that an argument is callable; the error names the line of the user's call."""
    if not callable(given):
        raise TopologyError(f"{kind} is {given!r}", at=user_line(), hint="pass a function")


def check_stream(other: object, node: StreamNode) -> None:
    """Check that an argument is a stream of the same builder."""
    if not isinstance(other, Stream):
        raise TopologyError(f"{other!r} is not a Stream", at=user_line(), hint="pass a Stream")
    if other.node.graph is not node.graph:
        raise TopologyError(
            "the two streams come from different builders",
            at=user_line(),
            hint="create both with the same StreamsBuilder",
        )
