"""Metrics of a worker in Prometheus' text format.

"source-record-poll-total" of Kafka Connect is here
`millstream_connect_source_record_poll_total{connector="orders",task="0"}`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from broker.exposition import Exposition
from connect.runtime.metrics import TaskMetrics
from connect.state.task_state import TaskId

K = TypeVar("K")

PREFIX = "millstream_connect_"
STATUSES = ("unassigned", "running", "paused", "stopped", "failed", "restarting", "destroyed")


@dataclass(frozen=True, slots=True)
class ConnectorMetrics:
    """The metrics of a connector."""

    name: str
    status: str
    connector_type: str
    connector_class: str
    version: str


def task_counts(statuses: Iterable[str]) -> dict[str, float]:
    """The number of a connector's tasks in each state."""
    found = list(statuses)
    counts: dict[str, float] = {"connector-total-task-count": len(found)}
    for status in STATUSES:
        if status != "stopped":
            counts[f"connector-{status}-task-count"] = found.count(status)
    return counts


def metrics_text(
    worker: Mapping[str, float],
    connectors: Iterable[ConnectorMetrics],
    tasks: Mapping[TaskId, TaskMetrics],
) -> str:
    """All metrics in Prometheus' text format."""
    out = Exposition()
    for name, value in worker.items():
        out.single(_plain(name), _kind(name), HELP[name], value)
    shown = list(connectors)
    out.family(f"{PREFIX}connector_info", "gauge", "Type, class and version of a connector.")
    for connector in shown:
        out.sample(
            f"{PREFIX}connector_info",
            1,
            connector=connector.name,
            connector_type=connector.connector_type,
            connector_class=connector.connector_class,
            connector_version=connector.version,
        )
    _write_statuses(out, "connector", [({"connector": c.name}, c.status) for c in shown])
    _write_statuses(
        out, "task", [(_labels(task_id), task.states.status) for task_id, task in tasks.items()]
    )
    by_connector = {
        connector.name: task_counts(
            task.states.status
            for task_id, task in tasks.items()
            if task_id.connector == connector.name
        )
        for connector in shown
    }
    _write_samples(out, by_connector, lambda name: {"connector": name})
    _write_samples(out, {task_id: task.values() for task_id, task in tasks.items()}, _labels)
    return out.text()


def _write_statuses(
    out: Exposition, what: str, found: Iterable[tuple[dict[str, str], str]]
) -> None:
    name = f"{PREFIX}{what}_status"
    out.family(name, "gauge", f"1 for the current state of the {what}.")
    for labels, current in found:
        for status in STATUSES:
            out.sample(name, int(status == current), **labels, status=status)


def _write_samples(
    out: Exposition, values: Mapping[K, Mapping[str, float]], labels: Callable[[K], dict[str, str]]
) -> None:
    """A family for each name, with the samples of all that have it."""
    for name in sorted({name for found in values.values() for name in found}):
        out.family(_plain(name), _kind(name), HELP[name])
        for key, found in values.items():
            if name in found:
                out.sample(_plain(name), found[name], **labels(key))


def _labels(task_id: TaskId) -> dict[str, str]:
    return {"connector": task_id.connector, "task": str(task_id.task)}


def _plain(name: str) -> str:
    return PREFIX + name.replace("-", "_")


def _kind(name: str) -> str:
    return "counter" if name.endswith("-total") or name in _COUNTERS else "gauge"


HELP = {
    "connector-count": "Connectors that this worker runs.",
    "task-count": "Tasks that this worker runs.",
    "connector-startup-attempts-total": "Connectors that this worker tried to start.",
    "connector-startup-success-total": "Connectors that started.",
    "connector-startup-success-percentage": "Fraction of the connectors that started.",
    "connector-startup-failure-total": "Connectors that failed to start.",
    "connector-startup-failure-percentage": "Fraction of the connectors that failed to start.",
    "task-startup-attempts-total": "Tasks that this worker tried to start.",
    "task-startup-success-total": "Tasks that started.",
    "task-startup-success-percentage": "Fraction of the tasks that started.",
    "task-startup-failure-total": "Tasks that failed to start.",
    "task-startup-failure-percentage": "Fraction of the tasks that failed to start.",
    "connector-total-task-count": "Tasks of the connector.",
    **{
        f"connector-{status}-task-count": f"Tasks of the connector that are {status}."
        for status in STATUSES
    },
    "running-ratio": "Fraction of time that the task was running.",
    "pause-ratio": "Fraction of time that the task was paused.",
    "batch-size-avg": "Average number of records per batch.",
    "batch-size-max": "Number of records of the largest batch.",
    "offset-commit-avg-time-ms": "Average time of an offset commit.",
    "offset-commit-max-time-ms": "Maximum time of an offset commit.",
    "offset-commit-success-percentage": "Fraction of the offset commits that succeeded.",
    "offset-commit-failure-percentage": "Fraction of the offset commits that failed.",
    "source-record-poll-total": "Records that the task polled, before transforms.",
    "source-record-poll-rate": "Records per second that the task polled, before transforms.",
    "source-record-write-total": "Records written to topics, after transforms.",
    "source-record-write-rate": "Records per second written to topics, after transforms.",
    "source-record-active-count": "Records polled and not yet written.",
    "source-record-active-count-avg": "Average number of records polled and not yet written.",
    "source-record-active-count-max": "Maximum number of records polled and not yet written.",
    "poll-batch-avg-time-ms": "Average time of a poll.",
    "poll-batch-max-time-ms": "Maximum time of a poll.",
    "transaction-size-avg": "Average number of records per transaction.",
    "transaction-size-min": "Number of records of the smallest transaction.",
    "transaction-size-max": "Number of records of the largest transaction.",
    "sink-record-read-total": "Records read from topics, before transforms.",
    "sink-record-read-rate": "Records per second read from topics, before transforms.",
    "sink-record-send-total": "Records put to the task, after transforms.",
    "sink-record-send-rate": "Records per second put to the task, after transforms.",
    "sink-record-active-count": "Records read and not yet put.",
    "sink-record-active-count-avg": "Average number of records read and not yet put.",
    "sink-record-active-count-max": "Maximum number of records read and not yet put.",
    "sink-record-lag-max": "Maximum lag of the task in any partition, in records.",
    "partition-count": "Partitions assigned to the task.",
    "put-batch-avg-time-ms": "Average time the task takes to put a batch.",
    "put-batch-max-time-ms": "Maximum time the task takes to put a batch.",
    "offset-commit-seq-no": "Sequence number of the last offset commit.",
    "offset-commit-completion-total": "Completed offset commits.",
    "offset-commit-completion-rate": "Completed offset commits per second.",
    "offset-commit-skip-total": "Offset commits that completed too late.",
    "offset-commit-skip-rate": "Offset commits per second that completed too late.",
    "total-record-failures": "Failed operations on records, including those that were retried.",
    "total-record-errors": "Operations on records that failed permanently.",
    "total-records-skipped": "Records skipped because of an error.",
    "total-retries": "Operations that were retried.",
    "total-errors-logged": "Errors written to the log.",
    "deadletterqueue-produce-requests": "Records sent to the dead letter queue.",
    "deadletterqueue-produce-failures": "Records that the dead letter queue refused.",
    "last-error-timestamp": "Time of the last error, in milliseconds since the epoch.",
}
_COUNTERS = frozenset(
    {
        "total-record-failures",
        "total-record-errors",
        "total-records-skipped",
        "total-retries",
        "total-errors-logged",
        "deadletterqueue-produce-requests",
        "deadletterqueue-produce-failures",
    }
)
