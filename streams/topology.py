"""Topology: an immutable description of the nodes, built by a TopologyBuilder or by the DSL.

Names of internal topics (repartition topics and changelogs) do not have the prefix of the
application id here; a task adds it: "<application id>-<name>".
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from broker.serde import Serde
from streams.describe import DescribedNode, describe_nodes, listed
from streams.errors import StoreNotFound
from streams.processor import Operator
from streams.record import Headers, Position
from streams.state.store import StoreSpec
from streams.stream_time import TimestampExtractor

# Chooses the topic of a record: key, value, timestamp_ms, headers, position of its input.
TopicChooser = Callable[[object, object, int, Headers, Position | None], str]
# Chooses the partitions of a record: topic, key, value, partition count. None: by its key; several:
# the record is sent to each; an empty set: it is not sent.
Partitioner = Callable[[str, object, object, int], int | frozenset[int] | None]


@dataclass(frozen=True, slots=True)
class SourceNode:
    """Reads topics. Without serdes, it has the application's defaults."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None  # instead of topics; the whole name must match
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    timestamp_extractor: TimestampExtractor | None = None
    offset_reset: str | None = None  # "earliest" or "latest"; None: the application's


@dataclass(frozen=True, slots=True)
class ProcessorNode:
    """Processes the records of its parents."""

    name: str
    operator: Operator
    parents: tuple[str, ...]
    stores: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SinkNode:
    """Writes the records of its parents to a topic."""

    name: str
    topic: str | TopicChooser
    parents: tuple[str, ...]
    key_serde: Serde[Any] | None = None
    value_serde: Serde[Any] | None = None
    partitioner: Partitioner | None = None


Node = SourceNode | ProcessorNode | SinkNode


@dataclass(frozen=True, slots=True)
class RepartitionTopic:
    """An internal topic between two sub-topologies."""

    name: str
    partitions: int | None = None  # None: as many as the topics it must match


@dataclass(frozen=True, slots=True)
class GlobalStore:
    """A store that every instance fills with all partitions of a topic.

    `processor` names the node that writes it; restoring runs the same node.
    """

    spec: StoreSpec
    topic: str
    source: SourceNode
    processor: ProcessorNode
    number: int = 0  # global stores are numbered together with the sub-topologies


@dataclass(frozen=True, slots=True)
class SubTopology:
    """Nodes that run together in one task per partition; `nodes` has parents before children."""

    number: int
    nodes: tuple[Node, ...]
    stores: tuple[str, ...]

    @property
    def source_topics(self) -> tuple[str, ...]:
        """The topics of its sources, sorted."""
        names = {
            topic for node in self.nodes if isinstance(node, SourceNode) for topic in node.topics
        }
        return tuple(sorted(names))


@dataclass(frozen=True, slots=True)
class Topology:
    """All nodes, stores and topics of an application."""

    sub_topologies: tuple[SubTopology, ...]
    stores: Mapping[str, StoreSpec]
    global_stores: Mapping[str, GlobalStore] = field(default_factory=dict)
    repartition_topics: Mapping[str, RepartitionTopic] = field(default_factory=dict)
    # The changelogs of stores. For those in `source_changelogs` it is a source topic
    # (with the user's name); for others an internal topic.
    changelogs: Mapping[str, str] = field(default_factory=dict)
    source_changelogs: frozenset[str] = frozenset()  # stores
    # Topics that must have equal partition counts.
    copartitions: tuple[frozenset[str], ...] = ()

    def store_spec(self, name: str) -> StoreSpec:
        """A store by its name, global or not; raises StoreNotFound."""
        if name in self.global_stores:
            return self.global_stores[name].spec
        if name in self.stores:
            return self.stores[name]
        known = ", ".join(sorted({*self.stores, *self.global_stores})) or "none"
        raise StoreNotFound(f'there is no store "{name}"', hint=f"stores are {known}")

    def describe(self) -> str:
        """Describe the topology in the format of Kafka Streams' TopologyDescription."""
        parts: list[SubTopology | GlobalStore] = [
            *self.sub_topologies,
            *self.global_stores.values(),
        ]
        parts.sort(key=lambda part: part.number)
        return "Topologies:\n " + "".join("  " + _part_text(part) for part in parts)


def _part_text(part: SubTopology | GlobalStore) -> str:
    head = f"Sub-topology: {part.number}"
    if isinstance(part, SubTopology):
        return f"{head}\n{describe_nodes(map(_described, part.nodes))}\n"
    nodes = describe_nodes([_described(part.source), _described(part.processor)])
    return f"{head} for global store (will not generate tasks)\n{nodes}"


def _described(node: Node) -> DescribedNode:
    match node:
        case SourceNode():
            topics = listed(node.topics) if node.pattern is None else node.pattern.pattern
            return DescribedNode(node.name, "Source", f"topics: {topics}")
        case ProcessorNode():
            stores = f"stores: {listed(node.stores)}"
            return DescribedNode(node.name, "Processor", stores, node.parents)
        case SinkNode(topic=str()):
            return DescribedNode(node.name, "Sink", f"topic: {node.topic}", node.parents)
        case SinkNode():
            chooser = getattr(node.topic, "__qualname__", type(node.topic).__name__)
            return DescribedNode(node.name, "Sink", f"extractor class: {chooser}", node.parents)
