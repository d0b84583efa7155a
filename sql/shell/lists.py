"""Lists: the columns of SHOW, by the tags of entities."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

# Any: JSON members have any type.
Json = Any
Cell = str | Callable[[Json], object]


@dataclass(frozen=True, slots=True)
class ListRule:
    """The member with the list, columns (heading, member or function), and the empty message."""

    member: str
    columns: Sequence[tuple[str, Cell]]
    empty: str


def _sources(member: str, what: str) -> ListRule:
    return ListRule(
        member,
        (
            (f"{what} name", "name"),
            ("Kafka topic", "topic"),
            ("Key format", "keyFormat"),
            ("Value format", "valueFormat"),
            ("Windowed", "isWindowed"),
        ),
        f"there are no {member}",
    )


def _replicas(topic: Json) -> str:
    return ", ".join(sorted({str(each) for each in topic.get("replicaInfo") or ()}))


def _partitions(topic: Json) -> int:
    return len(topic.get("replicaInfo") or ())


def query_status(query: Json) -> str:
    """The states of a query, with their counts."""
    counts = query.get("statusCount") or {query.get("state") or "RUNNING": 1}
    states = ", ".join(f"{state}:{count}" for state, count in counts.items())
    return "\n".join([states, *progress_lines(query)])


def progress_lines(query: Json) -> list[str]:
    """The progress of a query on Spark; empty for others."""
    found = query.get("progress")
    if not found:
        return []
    behind = found.get("offsetsBehind")
    return [
        f"batch {found.get('batchId')} in {found.get('batchDurationMs'):,} ms",
        f"{found.get('inputRowsPerSecond'):,.0f} rows/s in",
        f"{found.get('processedRowsPerSecond'):,.0f} rows/s processed",
        *([] if behind is None else [f"{behind:,} offsets behind"]),
    ]


TOPIC: Sequence[tuple[str, Cell]] = (
    ("Kafka topic", "name"),
    ("Partitions", _partitions),
    ("Replicas", _replicas),
)
LISTS: Mapping[str, ListRule] = {
    "streams": _sources("streams", "Stream"),
    "tables": _sources("tables", "Table"),
    "kafka_topics": ListRule("topics", TOPIC, "there are no topics"),
    "kafka_topics_extended": ListRule(
        "topics",
        (*TOPIC, ("Consumers", "consumerCount"), ("Consumer groups", "consumerGroupCount")),
        "there are no topics",
    ),
    "queries": ListRule(
        "queries",
        (
            ("Query ID", "id"),
            ("Type", "queryType"),
            ("Status", query_status),
            ("Writes", lambda query: ", ".join(query.get("sinks") or ())),
            ("Kafka topic", lambda query: ", ".join(query.get("sinkKafkaTopics") or ())),
            ("Query", "queryString"),
        ),
        "no queries are running",
    ),
    "properties": ListRule(
        "properties",
        (("Property", "name"), ("Scope", "scope"), ("Level", "level"), ("Value", "value")),
        "there are no settings",
    ),
    "function_names": ListRule(
        "functions",
        (("Function", "name"), ("Type", "type"), ("Category", "category")),
        "there are no functions",
    ),
    "variables": ListRule(
        "variables", (("Variable", "name"), ("Value", "value")), "no variables are defined"
    ),
    "connector_list": ListRule(
        "connectors",
        (("Connector", "name"), ("Type", "type"), ("Class", "className"), ("Status", "state")),
        "there are no connectors",
    ),
    "connector_plugins_list": ListRule(
        "connectorsPlugins",
        (("Class", "class"), ("Type", "type"), ("Version", "version")),
        "there are no connector plugins",
    ),
}
