"""StreamsBuilder: creates streams and tables, and builds the topology."""

import re
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import replace
from typing import Any, TypedDict, TypeVar, Unpack, overload

from streams.dsl import names
from streams.dsl.compile import compile_steps
from streams.dsl.logical import (
    GlobalTableStep,
    Graph,
    SourceStep,
    StateStoreStep,
    StreamNode,
    TableNode,
    TableSourceStep,
)
from streams.dsl.optimise import Optimize
from streams.dsl.stored import Stored, Typed, refuse_unknown, serde_of, stored
from streams.dsl.stream import Stream
from streams.dsl.table import GlobalTable, Table, source_state
from streams.errors import TopologyError
from streams.operators.tables import TableSource
from streams.operators.user_processor import UserProcessor
from streams.processor import Processor
from streams.state.store import StoreSpec
from streams.stream_time import TimestampExtractor
from streams.topology import Topology
from streams.where import user_line
from streams.windows import Duration

K = TypeVar("K")
V = TypeVar("V")

Topics = str | Iterable[str] | re.Pattern[str]


class SourceOptions(TypedDict, total=False):
    """Options of all methods that read a topic."""

    timestamp_extractor: TimestampExtractor | None
    offset_reset: str | None  # "earliest" or "latest"
    name: str | None


class TableOptions(SourceOptions, total=False):
    """Options of all methods that read a topic as a table; `store` names its store."""

    store: str | Stored | None
    caching: bool | None
    logging: bool
    persistent: bool
    topic_config: Mapping[str, str] | None
    versioned_history: Duration | None


class StreamsBuilder:
    """Collects the operations of an application.

    >>> builder = StreamsBuilder()
    >>> clicks = builder.stream("clicks", key=str, value=dict)
    >>> clicks.filter(lambda user, click: click["page"] == "/").to("home")
    >>> topology = builder.build()
    """

    def __init__(self) -> None:
        self._graph = Graph()

    @overload
    def stream(
        self, topics: Topics, *, key: Typed[K], value: Typed[V], **options: Unpack[SourceOptions]
    ) -> Stream[K, V]: ...
    @overload
    def stream(
        self,
        topics: Topics,
        *,
        key: None = None,
        value: Typed[Any] | None = None,
        **options: Unpack[SourceOptions],
    ) -> Stream[Any, Any]: ...
    @overload
    def stream(
        self,
        topics: Topics,
        *,
        key: Typed[Any],
        value: None = None,
        **options: Unpack[SourceOptions],
    ) -> Stream[Any, Any]: ...
    def stream(
        self,
        topics: Topics,
        *,
        key: Typed[Any] | None = None,
        value: Typed[Any] | None = None,
        **options: Unpack[SourceOptions],
    ) -> Stream[Any, Any]:
        """Read one or more topics, or all topics whose whole name matches a pattern.

        `key` and `value` are types or serdes; the application's by default.
        """
        refuse_unknown(options, SourceOptions.__annotations__)
        graph = self._graph
        pattern, listed = _split_topics(topics)
        step = graph.add(
            SourceStep(
                name=graph.names.node(options.get("name"), names.SOURCE),
                topics=listed,
                pattern=pattern,
                key_serde=serde_of(key),
                value_serde=serde_of(value),
                timestamp_extractor=options.get("timestamp_extractor"),
                offset_reset=check_offset_reset(options.get("offset_reset")),
            )
        )
        return Stream(
            StreamNode(
                graph=graph, step=step, key_serde=step.key_serde, value_serde=step.value_serde
            )
        )

    @overload
    def table(
        self, topic: str, *, key: Typed[K], value: Typed[V], **options: Unpack[TableOptions]
    ) -> Table[K, V]: ...
    @overload
    def table(
        self,
        topic: str,
        *,
        key: None = None,
        value: Typed[Any] | None = None,
        **options: Unpack[TableOptions],
    ) -> Table[Any, Any]: ...
    @overload
    def table(
        self,
        topic: str,
        *,
        key: Typed[Any],
        value: None = None,
        **options: Unpack[TableOptions],
    ) -> Table[Any, Any]: ...
    def table(
        self,
        topic: str,
        *,
        key: Typed[Any] | None = None,
        value: Typed[Any] | None = None,
        **options: Unpack[TableOptions],
    ) -> Table[Any, Any]:
        """Read a topic as a table: the newest value of each key.

        `store` names its store, so that it can be queried; `versioned_history` is how long older
        versions are kept, for joins by time.
        """
        check_topics((topic,))
        graph = self._graph
        store_options, source = _split(options, key, value)
        store_name = store_options.name or graph.names.new_store(topic + "-")
        name = source.get("name")
        source_name = graph.names.node(name, names.SOURCE, suffix="-source")
        table_name = graph.names.node(name, names.TABLE_SOURCE)
        state = source_state(store_options, store_name)
        step = graph.add(
            TableSourceStep(
                name=table_name,
                source_name=source_name,
                topic=topic,
                table=state,
                make=lambda: TableSource(state.store, state.sends_old),
                key_serde=store_options.key_serde,
                value_serde=store_options.value_serde,
                timestamp_extractor=source.get("timestamp_extractor"),
                offset_reset=check_offset_reset(source.get("offset_reset")),
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

    @overload
    def global_table(
        self, topic: str, *, key: Typed[K], value: Typed[V], **options: Unpack[TableOptions]
    ) -> GlobalTable[K, V]: ...
    @overload
    def global_table(
        self,
        topic: str,
        *,
        key: None = None,
        value: Typed[Any] | None = None,
        **options: Unpack[TableOptions],
    ) -> GlobalTable[Any, Any]: ...
    @overload
    def global_table(
        self,
        topic: str,
        *,
        key: Typed[Any],
        value: None = None,
        **options: Unpack[TableOptions],
    ) -> GlobalTable[Any, Any]: ...
    def global_table(
        self,
        topic: str,
        *,
        key: Typed[Any] | None = None,
        value: Typed[Any] | None = None,
        **options: Unpack[TableOptions],
    ) -> GlobalTable[Any, Any]:
        """Read all partitions of a topic into a store of every instance."""
        check_topics((topic,))
        graph = self._graph
        store_options, source = _split(options, key, value)
        if store_options.versioned:
            raise TopologyError(
                "a global table cannot be versioned",
                at=user_line(),
                hint="omit versioned_history, or use table()",
            )
        store_name = store_options.name or graph.names.new_store(topic + "-")
        name = source.get("name")
        source_name = graph.names.node(name, names.SOURCE, suffix="-source")
        table_name = graph.names.node(name, names.TABLE_SOURCE)
        # The topic is the changelog; and a global table has no results to emit.
        spec = replace(store_options.table_spec(store_name), logging=False, caching=False)
        graph.add(
            GlobalTableStep(
                name=table_name,
                source_name=source_name,
                topic=topic,
                store=spec,
                make=lambda: TableSource(spec),
                key_serde=store_options.key_serde,
                value_serde=store_options.value_serde,
                timestamp_extractor=source.get("timestamp_extractor"),
            )
        )
        return GlobalTable(spec)

    def add_state_store(self, spec: StoreSpec) -> "StreamsBuilder":
        """Add a store; processors connect to it by name."""
        names.check_name(spec.name, "store")
        self._graph.add(StateStoreStep(name=spec.name, store=spec))
        return self

    def add_global_store(
        self,
        spec: StoreSpec,
        topic: str,
        supplier: Callable[[], Processor[Any, Any, Any, Any]],
        *,
        key: Typed[Any] | None = None,
        value: Typed[Any] | None = None,
        **options: Unpack[SourceOptions],
    ) -> "StreamsBuilder":
        """Add a store of every instance; a Processor fills it from all partitions of a topic."""
        check_topics((topic,))
        refuse_unknown(options, SourceOptions.__annotations__)
        graph, name = self._graph, options.get("name")
        operator = UserProcessor(supplier, at=user_line())
        graph.add(
            GlobalTableStep(
                source_name=graph.names.node(name, names.SOURCE, suffix="-source"),
                name=graph.names.node(name, names.TABLE_SOURCE),
                topic=topic,
                store=replace(spec, logging=False, caching=False),
                make=lambda: operator,
                key_serde=serde_of(key),
                value_serde=serde_of(value),
                timestamp_extractor=options.get("timestamp_extractor"),
            )
        )
        return self

    def build(self, optimize: Optimize = False) -> Topology:
        """Build the topology of all operations so far.

        `optimize` is True (or "all"), False (or "none"), or the names of optimisations:
        "reuse.ktable.source.topics", "merge.repartition.topics", "single.store.self.join".
        """
        return compile_steps(self._graph, optimize)


def _split_topics(topics: Topics) -> tuple[re.Pattern[str] | None, tuple[str, ...]]:
    """The pattern, or the distinct topics."""
    if isinstance(topics, re.Pattern):
        return topics, ()
    if isinstance(topics, str):
        listed: tuple[str, ...] = (topics,)
    else:
        # The order of a set changes from run to run.
        ordered = sorted(topics) if isinstance(topics, Set) else topics
        listed = tuple(dict.fromkeys(ordered))
    check_topics(listed)
    return None, listed


def _split(
    options: TableOptions, key: Typed[Any] | None, value: Typed[Any] | None
) -> tuple[Stored, SourceOptions]:
    """The options of the store, and those of the source."""
    refuse_unknown(options, TableOptions.__annotations__)
    source: SourceOptions = {
        "timestamp_extractor": options.get("timestamp_extractor"),
        "offset_reset": options.get("offset_reset"),
        "name": options.get("name"),
    }
    store_options = stored(
        options.get("store"),
        key=key,
        value=value,
        caching=options.get("caching"),
        logging=options.get("logging", True),
        persistent=options.get("persistent", True),
        topic_config=options.get("topic_config"),
        versioned_history=options.get("versioned_history"),
    )
    return store_options, source


def check_topics(topics: tuple[str, ...]) -> None:
    """Check topic names."""
    if not topics:
        raise TopologyError("no topic is given", at=user_line(), hint="name at least one")
    for topic in topics:
        names.check_name(topic, "topic")


def check_offset_reset(given: str | None) -> str | None:
    """Check the reset policy."""
    if given not in (None, "earliest", "latest"):
        raise TopologyError(
            f'"offset_reset" is "{given}"', at=user_line(), hint='use "earliest" or "latest"'
        )
    return given
