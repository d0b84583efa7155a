"""Topologies by hand, for tests of the engine: nodes given as functions of a context."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from streams.processor import NodeContext, Process
from streams.record import Headers
from streams.state.store import StoreSpec
from streams.topology import (
    Node,
    ProcessorNode,
    RepartitionTopic,
    SinkNode,
    SourceNode,
    SubTopology,
    Topology,
)


@dataclass(frozen=True, slots=True)
class Opened:
    """An operator whose `open` is a function."""

    how: Callable[[NodeContext], Process]

    def open(self, context: NodeContext) -> Process:
        """The node's code."""
        return self.how(context)


@dataclass(frozen=True, slots=True)
class Mapped:
    """An operator that changes values."""

    change: Callable[[object], object]

    def open(self, context: NodeContext) -> Process:
        """The node's code."""
        forward, change = context.forward, self.change

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            forward(key, change(value), timestamp_ms, headers)

        return process


@dataclass(frozen=True, slots=True)
class Keyed:
    """An operator that makes the key of the value."""

    make: Callable[[object], object]

    def open(self, context: NodeContext) -> Process:
        """The node's code."""
        forward, make = context.forward, self.make

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            forward(make(value), value, timestamp_ms, headers)

        return process


@dataclass(frozen=True, slots=True)
class Summed:
    """An operator that adds values up by key, in a timestamped store."""

    store: str

    def open(self, context: NodeContext) -> Process:
        """The node's code."""
        forward = context.forward
        store = context.store(self.store)
        time = context.time()

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            time.advance(timestamp_ms)
            found = store.get(key)  # type: ignore[attr-defined]
            total = value if found is None else found[0] + value
            store.put(key, total, timestamp_ms)  # type: ignore[attr-defined]
            forward(key, total, timestamp_ms, headers)

        return process


def source(name: str, *topics: str, **more: object) -> SourceNode:
    """A source node."""
    return SourceNode(name, topics or (name,), **more)  # type: ignore[arg-type]


def node(
    name: str,
    operator: Callable[[NodeContext], Process] | Mapped | Keyed | Summed | Opened,
    *parents: str,
    stores: tuple[str, ...] = (),
) -> ProcessorNode:
    """A processor node."""
    kinds = (Mapped, Keyed, Summed, Opened)
    opened = operator if isinstance(operator, kinds) else Opened(operator)
    return ProcessorNode(name, opened, parents, stores)


def sink(name: str, topic: str, *parents: str, **more: object) -> SinkNode:
    """A sink node."""
    return SinkNode(name, topic, parents, **more)  # type: ignore[arg-type]


def topology(
    *subs: Iterable[Node],
    stores: Iterable[StoreSpec] = (),
    repartition: Iterable[RepartitionTopic] = (),
) -> Topology:
    """A topology of sub-topologies given by their nodes; every store is logged."""
    specs = {spec.name: spec for spec in stores}
    parts = []
    for number, nodes in enumerate(subs):
        nodes = tuple(nodes)
        used = {store for n in nodes if isinstance(n, ProcessorNode) for store in n.stores}
        parts.append(SubTopology(number, nodes, tuple(sorted(used))))
    return Topology(
        tuple(parts),
        specs,
        repartition_topics={topic.name: topic for topic in repartition},
        changelogs={name: f"{name}-changelog" for name, spec in specs.items() if spec.logging},
    )
