"""StatusStore: the states of connectors and tasks, in the format of Kafka Connect's status topic.

    status-connector-NAME            {"state","trace","worker_id","generation","version"}
    status-task-NAME-0               the same                                  null: deleted
    status-topic-TOPIC:connector-NAME
        {"topic":{"name","connector","task","discoverTimestamp"}}              null: deleted

A worker has the states of its own tasks in memory; the topic stores them for its next start and for
other workers. Losing the last states does no harm, so writes are not awaited.
"""

import enum
import logging
import re
from dataclasses import dataclass

import orjson

from broker import concurrency
from broker.client.api import ConsumerRecord
from broker.clock import Clock
from connect.state.state_topic import StateTopic
from connect.state.task_state import TaskId

logger = logging.getLogger(__name__)

CONNECTOR = "status-connector-"
TASK = "status-task-"
TOPIC = "status-topic-"
_TASK_KEY = re.compile(r"status-task-(.*)-(\d{1,9})", re.DOTALL)
_TOPIC_KEY = re.compile(r"status-topic-([^:]*):connector-(.*)", re.DOTALL)


class State(enum.Enum):
    """The state of a connector or a task.

    UNASSIGNED -> RUNNING <-> PAUSED          UNASSIGNED: no worker runs it, as after a stop
    RUNNING, PAUSED -> FAILED                 until it is restarted or reconfigured
    any -> RESTARTING -> RUNNING, FAILED      a restart was requested
    any -> STOPPED                            connectors only
    """

    UNASSIGNED = "UNASSIGNED"
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    FAILED = "FAILED"
    RESTARTING = "RESTARTING"
    STOPPED = "STOPPED"


# A connector by its name, or one of its tasks.
Subject = str | TaskId


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a connector or a task, and its worker."""

    state: State
    worker_id: str
    trace: str | None = None
    generation: int = 0
    version: str | None = None


class StatusStore:
    """Stores states and the topics that connectors use. Any thread may call any method."""

    def __init__(self, clock: Clock, topic: StateTopic | None = None) -> None:
        self._clock = clock
        self._topic = topic
        self._lock = concurrency.Lock()
        self._statuses: dict[Subject, Status] = {}
        self._topics: dict[str, set[str]] = {}

    def open(self) -> None:
        if self._topic is not None:
            self._topic.open(self._apply)

    def close(self) -> None:
        """Write the remaining records and close the topic."""
        if self._topic is not None:
            self._topic.close()

    # --- states -----------------------------------------------------------------------------

    def get(self, subject: Subject) -> Status | None:
        """The status of a connector or task."""
        with self._lock:
            return self._statuses.get(subject)

    def tasks(self, connector: str) -> dict[int, Status]:
        """The statuses of a connector's tasks, by number."""
        with self._lock:
            found = {
                subject.task: status
                for subject, status in self._statuses.items()
                if isinstance(subject, TaskId) and subject.connector == connector
            }
        return dict(sorted(found.items()))

    def put(self, subject: Subject, status: Status) -> None:
        with self._lock:
            self._statuses[subject] = status
        value = {
            "state": status.state.value,
            "trace": status.trace,
            "worker_id": status.worker_id,
            "generation": status.generation,
            "version": status.version,
        }
        self._send(_key(subject), value)

    def remove(self, subject: Subject) -> None:
        """Delete the status of a deleted connector or task."""
        with self._lock:
            known = self._statuses.pop(subject, None)
        if known is not None:
            self._send(_key(subject), None)

    def remove_connector(self, name: str) -> None:
        """Delete all statuses and topics of a connector."""
        for number in self.tasks(name):
            self.remove(TaskId(name, number))
        self.remove(name)
        self.forget_topics(name)

    # --- topics -----------------------------------------------------------------------------

    def topics(self, connector: str) -> list[str]:
        """The topics that a connector has used since the last reset, sorted."""
        with self._lock:
            return sorted(self._topics.get(connector, ()))

    def add_topic(self, task: TaskId, topic: str) -> None:
        """Track a topic of a task; cheap for a known topic."""
        if topic in self._topics.get(task.connector, ()):
            return
        with self._lock:
            self._topics.setdefault(task.connector, set()).add(topic)
        found = {
            "name": topic,
            "connector": task.connector,
            "task": task.task,
            "discoverTimestamp": self._clock.now_ms(),
        }
        self._send(f"{TOPIC}{topic}:connector-{task.connector}", {"topic": found})

    def forget_topics(self, connector: str) -> None:
        """Reset the tracked topics of a connector."""
        with self._lock:
            topics = self._topics.pop(connector, set())
        for topic in sorted(topics):
            self._send(f"{TOPIC}{topic}:connector-{connector}", None)

    # --- records ----------------------------------------------------------------------------

    def _send(self, key: str, value: object) -> None:
        if self._topic is not None:
            self._topic.send(key.encode(), None if value is None else orjson.dumps(value))

    def _apply(self, record: ConsumerRecord) -> None:
        try:
            key = (record.key or b"").decode()
            value = None if record.value is None else orjson.loads(record.value)
            self._apply_value(key, value)
        except (ValueError, KeyError, TypeError):
            logger.warning(
                'invalid record in topic "%s" at offset %d is ignored', record.topic, record.offset
            )

    def _apply_value(self, key: str, value: dict[str, object] | None) -> None:
        if (topic := _TOPIC_KEY.fullmatch(key)) is not None:
            known = self._topics.setdefault(topic[2], set())
            known.discard(topic[1]) if value is None else known.add(topic[1])
            return
        subject = _subject(key)
        if subject is None:
            return
        if value is None:
            self._statuses.pop(subject, None)
        else:
            self._statuses[subject] = _status(value)


def _key(subject: Subject) -> str:
    return f"{TASK}{subject}" if isinstance(subject, TaskId) else f"{CONNECTOR}{subject}"


def _subject(key: str) -> Subject | None:
    task = _TASK_KEY.fullmatch(key)
    if task is not None:
        return TaskId(task[1], int(task[2]))
    return key.removeprefix(CONNECTOR) if key.startswith(CONNECTOR) else None


def _status(value: dict[str, object]) -> Status:
    trace, number, version = value.get("trace"), value.get("generation"), value.get("version")
    return Status(
        State(value["state"]),
        str(value["worker_id"]),
        None if trace is None else str(trace),
        number if isinstance(number, int) else 0,
        None if version is None else str(version),
    )
