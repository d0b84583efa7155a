"""Small topologies written by hand, and what tests do around them."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from broker.client import admin, consumer, producer
from broker.client.administration.values import NewTopic
from broker.client.opening import Target
from broker.model import TopicPartition
from broker.serde import StringSerde
from streams.processor import NodeContext, Process, PunctuationType
from streams.record import Headers
from streams.state.store import StoreKind, StoreSpec
from streams.topology import (
    GlobalStore,
    ProcessorNode,
    RepartitionTopic,
    SinkNode,
    SourceNode,
    SubTopology,
    Topology,
)

TEXT = StringSerde()
DEADLINE_MS = 120_000


@dataclass(frozen=True, slots=True)
class Upper:
    """Writes values in capitals."""

    def open(self, context: NodeContext) -> Process:
        forward = context.forward

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            forward(key, str(value).upper(), timestamp_ms, headers)

        return process


@dataclass(frozen=True, slots=True)
class Count:
    """Counts records by key in a store, and forwards each count."""

    store: str

    def open(self, context: NodeContext) -> Process:
        forward = context.forward
        store = context.store(self.store)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            count = int(store.get(key) or 0) + 1  # type: ignore[attr-defined]
            store.put(key, str(count))  # type: ignore[attr-defined]
            forward(key, str(count), timestamp_ms, headers)

        return process


def upper_topology(source: str = "in", sink: str = "out") -> Topology:
    """in -> capitals -> out."""
    nodes = (
        SourceNode("source", (source,), key_serde=TEXT, value_serde=TEXT),
        ProcessorNode("upper", Upper(), ("source",)),
        SinkNode("sink", sink, ("upper",), key_serde=TEXT, value_serde=TEXT),
    )
    return Topology((SubTopology(0, nodes, ()),), {})


def count_topology(source: str = "in", sink: str = "out", *, persistent: bool = True) -> Topology:
    """in -> count by key -> out."""
    nodes = (
        SourceNode("source", (source,), key_serde=TEXT, value_serde=TEXT),
        ProcessorNode("count", Count("counts"), ("source",), ("counts",)),
        SinkNode("sink", sink, ("count",), key_serde=TEXT, value_serde=TEXT),
    )
    spec = StoreSpec(
        "counts", StoreKind.KEY_VALUE, key_serde=TEXT, value_serde=TEXT, persistent=persistent
    )
    return Topology(
        (SubTopology(0, nodes, ("counts",)),),
        {"counts": spec},
        changelogs={"counts": "counts-changelog"},
    )


def repartitioned_count_topology() -> Topology:
    """in -> repartition topic -> count by key -> out."""
    first = (
        SourceNode("source", ("in",), key_serde=TEXT, value_serde=TEXT),
        SinkNode("to-again", "again-repartition", ("source",), key_serde=TEXT, value_serde=TEXT),
    )
    second = (
        SourceNode("again", ("again-repartition",), key_serde=TEXT, value_serde=TEXT),
        ProcessorNode("count", Count("counts"), ("again",), ("counts",)),
        SinkNode("sink", "out", ("count",), key_serde=TEXT, value_serde=TEXT),
    )
    spec = StoreSpec("counts", StoreKind.KEY_VALUE, key_serde=TEXT, value_serde=TEXT)
    return Topology(
        (SubTopology(0, first, ()), SubTopology(1, second, ("counts",))),
        {"counts": spec},
        repartition_topics={"again-repartition": RepartitionTopic("again-repartition")},
        changelogs={"counts": "counts-changelog"},
    )


@dataclass(frozen=True, slots=True)
class Keep:
    """Keeps the newest value of each key in a store."""

    store: str

    def open(self, context: NodeContext) -> Process:
        store = context.store(self.store)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            store.put(key, value)  # type: ignore[attr-defined]

        return process


@dataclass(frozen=True, slots=True)
class LookUp:
    """Replaces values by what a store has for them."""

    store: str

    def open(self, context: NodeContext) -> Process:
        forward, store = context.forward, context.store(self.store)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            forward(key, str(store.get(value)), timestamp_ms, headers)  # type: ignore[attr-defined]

        return process


@dataclass(frozen=True, slots=True)
class Tick:
    """Forwards a record at each wall-clock punctuation."""

    interval_ms: int

    def open(self, context: NodeContext) -> Process:
        forward = context.forward

        def tick(time_ms: int) -> None:
            forward("tick", "tock", time_ms, ())

        context.schedule(self.interval_ms, PunctuationType.WALL_CLOCK_TIME, tick)
        return lambda key, value, timestamp_ms, headers: None


def source_of(topic: str, name: str = "source") -> SourceNode:
    """A source of text."""
    return SourceNode(name, (topic,), key_serde=TEXT, value_serde=TEXT)


def sink_to(topic: str, parent: str) -> SinkNode:
    """A sink of text."""
    return SinkNode("sink", topic, (parent,), key_serde=TEXT, value_serde=TEXT)


def look_up_topology() -> Topology:
    """in -> look up in the global store "names" -> out."""
    nodes = (
        source_of("in"),
        ProcessorNode("look-up", LookUp("names"), ("source",)),
        sink_to("out", "look-up"),
    )
    spec = StoreSpec("names", StoreKind.KEY_VALUE, key_serde=TEXT, value_serde=TEXT, logging=False)
    names = GlobalStore(
        spec,
        "names",
        source_of("names", "names-source"),
        ProcessorNode("names-keep", Keep("names"), ("names-source",), ("names",)),
    )
    return Topology((SubTopology(0, nodes, ()),), {}, global_stores={"names": names})


def tick_topology(interval_ms: int) -> Topology:
    """in -> a tick by the wall clock -> out."""
    nodes = (
        source_of("in"),
        ProcessorNode("tick", Tick(interval_ms), ("source",)),
        sink_to("out", "tick"),
    )
    return Topology((SubTopology(0, nodes, ()),), {})


def source_table_topology() -> Topology:
    """The topic "in" kept in a store that has no changelog but the topic itself."""
    nodes = (source_of("in"), ProcessorNode("keep", Keep("table"), ("source",), ("table",)))
    spec = StoreSpec("table", StoreKind.KEY_VALUE, key_serde=TEXT, value_serde=TEXT)
    return Topology(
        (SubTopology(0, nodes, ("table",)),),
        {"table": spec},
        changelogs={"table": "in"},
        source_changelogs=frozenset({"table"}),
    )


def make_topics(target: Target, **partitions: int) -> None:
    """Create topics."""
    with admin(target) as administration:
        administration.create_topics(
            [NewTopic(name, count) for name, count in partitions.items()]
        ).all()


def write(
    target: Target, topic: str, rows: Iterable[tuple[str, str]], *, partition: int | None = None
) -> None:
    """Send records and wait until the broker has them."""
    with producer(target) as out:
        for number, (key, value) in enumerate(rows):
            out.send(
                topic, value.encode(), key.encode(), partition=partition, timestamp_ms=1000 + number
            )
        out.flush()


class Reader:
    """Reads a topic from its beginning on, committed records only."""

    def __init__(self, target: Target, topic: str) -> None:
        self._consumer = consumer(
            target, auto_offset_reset="earliest", isolation_level="read_committed"
        )
        partitions = self._consumer.partitions_for(topic)
        self._consumer.assign([TopicPartition(topic, number) for number in partitions])
        self.rows: list[tuple[str, str]] = []

    def until(self, count: int) -> list[tuple[str, str]]:
        """All records so far, as soon as there are so many."""
        deadline = time.monotonic() + DEADLINE_MS / 1000
        while len(self.rows) < count and time.monotonic() < deadline:
            self.poll()
        assert len(self.rows) >= count, f"{len(self.rows)} of {count} records: {self.rows[-5:]}"
        return self.rows

    def poll(self) -> list[tuple[str, str]]:
        """All records so far."""
        for record in self._consumer.poll(100):
            assert record.key is not None
            assert record.value is not None
            self.rows.append((record.key.decode(), record.value.decode()))
        return self.rows

    def last(self, count: int) -> dict[str, str]:
        """The last value of each key, when there are so many records."""
        return dict(self.until(count))

    def close(self) -> None:
        self._consumer.close()


def expected_counts(rows: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The counts that an exact application gives out, in order, by key."""
    found: dict[str, list[str]] = {}
    for key, _ in rows:
        counts = found.setdefault(key, [])
        counts.append(str(len(counts) + 1))
    return found


def by_key(rows: Iterable[tuple[str, str]]) -> Mapping[str, list[str]]:
    """Values in order, by key."""
    found: dict[str, list[str]] = {}
    for key, value in rows:
        found.setdefault(key, []).append(value)
    return found
