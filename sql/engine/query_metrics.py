"""Metrics of a running query: records by topic, failures, and positions of its stores."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol

PREFIX = "millstream_streams_"
SAMPLE = re.compile(PREFIX + r"(\w+)\{(.*)\} (\S+)")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
SOURCE = re.compile(r"Source: (\S+) \(topics: \[(.*)\]\)")
SINK = re.compile(r"Sink: (\S+) \(topic: (\S+)\)")
STANDBY = "standby"


class MeasuredQuery(Protocol):
    """The part of a running query that is used here."""

    def metrics(self) -> str:
        """All metrics in Prometheus' text format; empty while it is not running."""
        ...

    def describe(self) -> str:
        """The topology, as text."""
        ...


class StorePosition(NamedTuple):
    """The position of a store's partition."""

    store: str
    partition: int
    position: int
    behind: int


@dataclass(frozen=True, slots=True)
class QueryMetrics:
    """The counts of one query since its start."""

    read: Mapping[str, int] = field(default_factory=dict)
    written: Mapping[str, int] = field(default_factory=dict)
    failed: int = 0
    last_ms: int = 0  # the newest timestamp of a record
    stores: tuple[StorePosition, ...] = ()
    # The topics' partitions and stores of active tasks, and of standbys.
    inputs: frozenset[tuple[str, int]] = frozenset()
    standbys: frozenset[tuple[str, int]] = frozenset()


class Sample(NamedTuple):
    """One value of a page of metrics."""

    name: str
    labels: Mapping[str, str]
    value: float


def query_metrics(query: MeasuredQuery) -> QueryMetrics:
    """The counts of a query; all zero while it is not running."""
    found = list(samples(query.metrics()))
    if not found:
        return QueryMetrics()
    sources, sinks = topics_of(query.describe())
    read: Counter[str] = Counter()
    written: Counter[str] = Counter()
    for each in found:
        if each.name == "node_process_total":
            node = each.labels["node"]
            for topic in sources.get(node, ()):
                read[topic] += int(each.value)
            if node in sinks:
                written[sinks[node]] += int(each.value)
    following = {
        each.labels["task"]
        for each in found
        if each.name == "task_phase" and each.labels["phase"] == STANDBY and each.value
    }
    return QueryMetrics(
        dict(read),
        dict(written),
        int(_total(found, "task_dropped_records_total")),
        max((int(each.value) for each in found if each.name == "task_stream_time_ms"), default=0),
        tuple(_positions(found)),
        frozenset(
            (each.labels["topic"], int(each.labels["partition"]))
            for each in found
            if each.name == "task_committed_offset" and each.labels["task"] not in following
        ),
        frozenset(
            (each.labels["store"], _partition(each))
            for each in found
            if each.name == "store_changelog_position" and each.labels["task"] in following
        ),
    )


def samples(page: str) -> Iterator[Sample]:
    """The values of a page; other metrics are skipped."""
    for line in page.splitlines():
        match = SAMPLE.fullmatch(line)
        if match is not None:
            name, labels, value = match.groups()
            yield Sample(name, dict(LABEL.findall(labels)), float(value))


@lru_cache(maxsize=1_000)
def topics_of(description: str) -> tuple[Mapping[str, tuple[str, ...]], Mapping[str, str]]:
    """The topics of a topology's sources and sinks, by the names of their nodes.

    A source of several topics counts them together: each topic gets the whole count.
    """
    sources = {name: tuple(topics.split(", ")) for name, topics in SOURCE.findall(description)}
    return sources, dict(SINK.findall(description))


def _total(found: list[Sample], name: str) -> float:
    return sum(each.value for each in found if each.name == name)


def _positions(found: list[Sample]) -> Iterator[StorePosition]:
    behind = {
        (each.labels["task"], each.labels["store"]): int(each.value)
        for each in found
        if each.name == "store_restore_remaining"
    }
    for each in found:
        if each.name == "store_changelog_position":
            task, store = each.labels["task"], each.labels["store"]
            left = behind.get((task, store), 0)
            yield StorePosition(store, _partition(each), int(each.value), left)


def _partition(sample: Sample) -> int:
    """The partition of a sample's task, which is named "<sub-topology>_<partition>"."""
    return int(sample.labels["task"].rpartition("_")[2])
