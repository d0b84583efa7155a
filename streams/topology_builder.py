"""TopologyBuilder: builds topologies of nodes, stores and topics; the DSL uses it.

    builder = TopologyBuilder()
    builder.add_source("clicks", "clicks-topic")
    builder.add_processor("count", Count, "clicks").add_state_store(spec, "count")
    builder.add_sink("counts", "counts-topic", "count")
    topology = builder.build()

Errors are raised immediately; their `at` is the line of the user's call.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, cast

from broker.serde import Serde
from streams.errors import TopologyError
from streams.node_groups import NodeGroups
from streams.operators.user_processor import UserProcessor
from streams.processor import Operator
from streams.state.store import StoreSpec
from streams.stream_time import TimestampExtractor
from streams.topology import (
    GlobalStore,
    Node,
    Partitioner,
    ProcessorNode,
    RepartitionTopic,
    SinkNode,
    SourceNode,
    SubTopology,
    TopicChooser,
    Topology,
)
from streams.where import user_line

CHANGELOG_SUFFIX = "-changelog"
Parents = str | Iterable[str]


@dataclass(slots=True)
class _Store:
    """A store, and the processors that use it."""

    spec: StoreSpec
    users: list[str] = field(default_factory=list)
    source_topic: str | None = None  # its changelog, if that is a source topic


class TopologyBuilder:
    """Collects nodes; `build` returns the immutable Topology. Add parents before children."""

    def __init__(self, where: Callable[[], str] = user_line) -> None:
        """`where` returns the line of the user's call, for errors."""
        self._where = where
        self._nodes: dict[str, Node] = {}
        self._stores: dict[str, _Store] = {}
        self._connected: dict[str, list[str]] = {}  # processor to its stores
        self._global_stores: dict[str, GlobalStore] = {}
        self._repartition_topics: dict[str, RepartitionTopic] = {}
        self._source_topics: dict[str, str] = {}  # topic to the source that reads it
        self._source_patterns: dict[str, re.Pattern[str]] = {}
        self._copartitions: list[frozenset[str]] = []

    # ---- nodes

    def add_source(
        self,
        name: str,
        topics: str | Iterable[str] | re.Pattern[str],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        offset_reset: str | None = None,
    ) -> "TopologyBuilder":
        """Add a source for topics, or for all topics whose whole name matches a pattern."""
        pattern = topics if isinstance(topics, re.Pattern) else None
        listed: tuple[str, ...] = ()
        if not isinstance(topics, re.Pattern):
            listed = (topics,) if isinstance(topics, str) else tuple(topics)
            if not listed:
                raise self._error(f'source "{name}" has no topic', "name at least one")
        self._check_new_node(name)
        self._claim_topics(name, listed)
        if pattern is not None:
            self._claim_pattern(name, pattern)
        self._nodes[name] = SourceNode(
            name=name,
            topics=listed,
            pattern=pattern,
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=timestamp_extractor,
            offset_reset=offset_reset,
        )
        return self

    def add_processor(
        self,
        name: str,
        operator: Operator | Callable[[], Any],
        parents: Parents,
        *,
        stores: Iterable[str | StoreSpec] = (),
    ) -> "TopologyBuilder":
        """Add a node that runs an Operator, or a Processor that a class or function returns.

        `stores` are names of stores added before, or specifications of new ones.
        """
        self._check_new_node(name)
        listed = self._check_parents(name, parents)
        self._nodes[name] = ProcessorNode(name, self._operator(operator), listed)
        for store in stores:
            if isinstance(store, StoreSpec):
                self.add_state_store(store, name)
            else:
                self.connect_processor_and_state_stores(name, store)
        return self

    def add_sink(
        self,
        name: str,
        topic: str | TopicChooser,
        parents: Parents,
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        partitioner: Partitioner | None = None,
    ) -> "TopologyBuilder":
        """Add a sink for a topic, or for the topic that a function returns for each record."""
        self._check_new_node(name)
        listed = self._check_parents(name, parents)
        for parent in listed:
            source = self._nodes[parent]
            if isinstance(source, SourceNode) and topic in source.topics:
                raise self._error(
                    f'sink "{name}" writes topic "{topic}", which its parent "{parent}" reads',
                    "records would loop forever; write to another topic",
                )
        self._nodes[name] = SinkNode(name, topic, listed, key_serde, value_serde, partitioner)
        return self

    # ---- stores

    def add_state_store(self, spec: StoreSpec, *processors: str) -> "TopologyBuilder":
        """Add a store, for the processors named here and later."""
        known = self._stores.get(spec.name)
        if spec.name in self._global_stores or (known is not None and known.spec is not spec):
            raise self._error(
                f'store "{spec.name}" already exists',
                "give each store its own name, or add the same specification only once",
            )
        if known is None:
            self._stores[spec.name] = _Store(spec)
        for processor in processors:
            self.connect_processor_and_state_stores(processor, spec.name)
        return self

    def connect_processor_and_state_stores(self, processor: str, *stores: str) -> "TopologyBuilder":
        """Connect a processor to stores that were added before."""
        node = self._nodes.get(processor)
        if not isinstance(node, ProcessorNode):
            raise self._error(
                f'there is no processor "{processor}" to connect stores to',
                self._known(
                    "processors",
                    [n for n, x in self._nodes.items() if isinstance(x, ProcessorNode)],
                ),
            )
        for name in stores:
            if name in self._global_stores:
                raise self._error(
                    f'store "{name}" is a global one', "every processor can read it anyway"
                )
            store = self._stores.get(name)
            if store is None:
                raise self._error(
                    f'processor "{processor}" uses store "{name}", which does not exist',
                    self._known("stores", self._stores),
                )
            if processor not in store.users:
                store.users.append(processor)
                self._connected.setdefault(processor, []).append(name)
        return self

    def connect_source_store_and_topic(self, store: str, topic: str) -> "TopologyBuilder":
        """Use a source topic as the changelog of a store."""
        self._stores[store].source_topic = topic
        return self

    def add_global_store(  # noqa: PLR0913 - one argument per option
        self,
        spec: StoreSpec,
        source_name: str,
        topic: str,
        processor_name: str,
        operator: Operator | Callable[[], Any],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
    ) -> "TopologyBuilder":
        """Add a store that every instance fills from all partitions of a topic."""
        self._check_new_node(source_name)
        self._check_new_node(processor_name)
        if source_name == processor_name:
            raise self._error(f'"{source_name}" names both nodes', "give each node its own name")
        if spec.name in self._stores or spec.name in self._global_stores:
            raise self._error(f'store "{spec.name}" already exists', "give each store its own name")
        self._claim_topics(source_name, (topic,))
        source = SourceNode(
            name=source_name,
            topics=(topic,),
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=timestamp_extractor,
        )
        processor = ProcessorNode(
            processor_name, self._operator(operator), (source_name,), (spec.name,)
        )
        self._nodes[source_name] = source
        self._nodes[processor_name] = processor
        self._global_stores[spec.name] = GlobalStore(
            spec=replace(spec, logging=False), topic=topic, source=source, processor=processor
        )
        return self

    def add_read_only_state_store(  # noqa: PLR0913 - one argument per option
        self,
        spec: StoreSpec,
        source_name: str,
        topic: str,
        processor_name: str,
        operator: Operator | Callable[[], Any],
        *,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
    ) -> "TopologyBuilder":
        """Add a store that is filled from a topic, which is also its changelog."""
        self.add_source(
            source_name,
            topic,
            key_serde=key_serde,
            value_serde=value_serde,
            timestamp_extractor=timestamp_extractor,
        )
        self.add_processor(processor_name, operator, source_name)
        self.add_state_store(replace(spec, logging=False), processor_name)
        return self.connect_source_store_and_topic(spec.name, topic)

    # ---- topics

    def add_repartition_topic(self, name: str, partitions: int | None = None) -> "TopologyBuilder":
        """Add an internal topic between two sub-topologies."""
        self._repartition_topics[name] = RepartitionTopic(name, partitions)
        return self

    def copartition(self, topics: Iterable[str]) -> "TopologyBuilder":
        """Require equal partition counts of topics."""
        group = frozenset(topics)
        if len(group) > 1 and group not in self._copartitions:
            self._copartitions.append(group)
        return self

    # ---- the result

    def build(self) -> Topology:
        """Build the topology; the builder can still be used."""
        self._check_complete()
        groups = self._groups()
        global_nodes = {
            node
            for store in self._global_stores.values()
            for node in (store.source.name, store.processor.name)
        }
        numbers = {store: groups.number(g.source.name) for store, g in self._global_stores.items()}
        sub_topologies = []
        for number, members in groups.numbered():
            if members & global_nodes:
                continue
            nodes = tuple(self._with_stores(n) for n in self._nodes.values() if n.name in members)
            stores = tuple(
                name for name, store in self._stores.items() if members.intersection(store.users)
            )
            sub_topologies.append(SubTopology(number, nodes, stores))
        stores_in_use = {name: store for name, store in self._stores.items() if store.users}
        return Topology(
            sub_topologies=tuple(sub_topologies),
            stores={name: store.spec for name, store in stores_in_use.items()},
            global_stores={
                name: replace(store, number=numbers[name])
                for name, store in self._global_stores.items()
            },
            repartition_topics=dict(self._repartition_topics),
            changelogs=self._changelogs(stores_in_use),
            source_changelogs=frozenset(
                name for name, store in stores_in_use.items() if store.source_topic is not None
            ),
            copartitions=tuple(self._copartitions),
        )

    def _changelogs(self, stores: dict[str, _Store]) -> dict[str, str]:
        logs = {}
        for name, store in stores.items():
            if store.source_topic is not None:
                logs[name] = store.source_topic
            elif store.spec.logging:
                logs[name] = name + CHANGELOG_SUFFIX
        return logs

    def _with_stores(self, node: Node) -> Node:
        if not isinstance(node, ProcessorNode):
            return node
        return replace(node, stores=tuple(self._connected.get(node.name, node.stores)))

    def _groups(self) -> NodeGroups:
        groups = NodeGroups()
        for name, node in self._nodes.items():
            groups.add(name)
            if not isinstance(node, SourceNode):
                for parent in node.parents:
                    groups.unite(name, parent)
        for store in self._stores.values():
            for user in store.users[1:]:
                groups.unite(store.users[0], user)
        return groups

    # ---- checks

    def _check_complete(self) -> None:
        if not self._nodes:
            raise self._error("the topology has no node", "read at least one topic")
        if not any(isinstance(node, SourceNode) for node in self._nodes.values()):
            raise self._error("the topology has no source", "read at least one topic")

    def _check_new_node(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise self._error(f"the name of a node is {name!r}", "pass a string that is not empty")
        if name in self._nodes:
            raise self._error(f'node "{name}" already exists', "give each node its own name")

    def _check_parents(self, name: str, parents: Parents) -> tuple[str, ...]:
        listed = (parents,) if isinstance(parents, str) else tuple(parents)
        if not listed:
            raise self._error(f'node "{name}" has no parent', "name at least one")
        for parent in listed:
            node = self._nodes.get(parent)
            if parent == name or node is None:
                raise self._error(
                    f'node "{name}" has parent "{parent}", which does not exist',
                    self._known("nodes", self._nodes) + "; add parents first",
                )
            if isinstance(node, SinkNode):
                raise self._error(
                    f'node "{name}" has parent "{parent}", which is a sink',
                    "a sink has no children; read its topic with a source",
                )
        return listed

    def _claim_topics(self, source: str, topics: Iterable[str]) -> None:
        for topic in topics:
            readers = [name for name, p in self._source_patterns.items() if p.fullmatch(topic)]
            reader = self._source_topics.get(topic, readers[0] if readers else None)
            if reader is not None:
                raise self._read_twice(topic, reader)
            self._source_topics[topic] = source

    def _claim_pattern(self, source: str, pattern: re.Pattern[str]) -> None:
        for topic, reader in self._source_topics.items():
            if pattern.fullmatch(topic):
                raise self._read_twice(topic, reader)
        self._source_patterns[source] = pattern

    def _read_twice(self, topic: str, reader: str) -> TopologyError:
        return self._error(
            f'topic "{topic}" is already read by source "{reader}"', "use one source for both"
        )

    def _operator(self, given: Operator | Callable[[], Any]) -> Operator:
        # A Processor class may have an `open` of its own; an operator is never a class.
        if not isinstance(given, type) and callable(getattr(given, "open", None)):
            return cast(Operator, given)
        return UserProcessor(cast("Callable[[], Any]", given), at=self._where())

    def _known(self, kind: str, known: Iterable[str]) -> str:
        listed = ", ".join(f'"{name}"' for name in known)
        return f"{kind} so far: {listed or 'none'}"

    def _error(self, message: str, hint: str) -> TopologyError:
        return TopologyError(message, at=self._where(), hint=hint)
