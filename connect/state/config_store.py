"""ConfigStore: the target state of connectors, in the format of Kafka Connect's config topic.

    connector-NAME          {"properties":{...}}                       null: deleted
    target-state-NAME       {"state":"PAUSED","state.v2":"STOPPED"}    null: deleted
    task-NAME-0             {"properties":{...}}                       one for each task
    commit-NAME             {"tasks":2}                                commits the tasks before it
    restart-connector-NAME  {"include-tasks":true,"only-failed":false}
    tasks-fencing-NAME      {"task-count":2}                           earlier tasks are fenced
    logger-cluster-NAME     {"level":"INFO"}
    session-key                                                        only for Kafka's own workers

Workers that do not know STOPPED read "state", which is PAUSED then. Task configurations take effect
only with the following commit record, which has their number: if a worker dies in between, the
connector has no consistent set, and its task configurations are generated again.

Tasks of an exactly-once source run only when the tasks of earlier generations can no longer write.
A fencing record confirms that, and has the number of tasks to fence before the next generation. It
outlives its connector: tasks of a deleted connector may still run when one of the same name starts.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import orjson

from broker import concurrency
from broker.client.api import ConsumerRecord
from connect.state.state_topic import StateTopic
from connect.state.task_state import TargetState, TaskId

logger = logging.getLogger(__name__)

Config = Mapping[str, str]

CONNECTOR = "connector-"
TARGET_STATE = "target-state-"
TASK = "task-"
COMMIT = "commit-"
FENCING = "tasks-fencing-"
RESTART = "restart-connector-"
LOGGER = "logger-cluster-"
_TASK_KEY = re.compile(r"task-(.*)-(\d{1,9})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RestartRequest:
    """Which parts of a connector to restart."""

    include_tasks: bool = False
    only_failed: bool = False


@dataclass(frozen=True, slots=True)
class WantedConnector:
    """The target state of one connector."""

    config: Config
    target_state: TargetState = TargetState.STARTED
    tasks: tuple[Config, ...] = ()
    # Whether `tasks` is complete: no commit record is missing.
    consistent: bool = True
    # Changes with every record of the connector's own configuration.
    revision: int = 0
    # Changes with every commit record.
    generation: int = 0
    # The number of earlier tasks to fence before these tasks run; None: they are fenced.
    unfenced: int | None = None


@dataclass(slots=True)
class _Known:
    """The state of one connector according to the records so far."""

    config: Config | None = None
    target_state: TargetState = TargetState.STARTED
    tasks: tuple[Config, ...] = ()
    consistent: bool = True
    revision: int = 0
    generation: int = 0
    deferred: dict[int, Config] = field(default_factory=dict)


class ConfigListener(Protocol):
    """Is notified of changes, in the thread that makes them."""

    def on_change(self, connector: str) -> None:
        """A connector has changed; `ConfigStore.connector` returns its new target state."""
        ...

    def on_restart(self, connector: str, request: RestartRequest) -> None:
        """A restart was requested."""
        ...

    def on_logger(self, logger_name: str, level: str) -> None:
        """The level of a logger of all workers was set."""
        ...


class ConfigTable:
    """The state according to all records; not thread-safe."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._counts: dict[str, int] = {}  # of tasks, as the last fencing record says
        self._unfenced: set[str] = set()  # connectors whose tasks are newer than that record
        self._revision = 0

    def connectors(self) -> list[str]:
        """The names of all connectors, sorted."""
        return sorted(name for name, known in self._known.items() if known.config is not None)

    def connector(self, name: str) -> WantedConnector | None:
        """The target state of a connector; None if it does not exist."""
        known = self._known.get(name)
        if known is None or known.config is None:
            return None
        return WantedConnector(
            known.config,
            known.target_state,
            known.tasks,
            known.consistent,
            known.revision,
            known.generation,
            self._counts.get(name, 0) if name in self._unfenced else None,
        )

    def has_leftovers(self, name: str) -> bool:
        """Whether a deleted connector still has task records."""
        known = self._known.get(name)
        return known is not None and known.config is None and bool(known.tasks or known.deferred)

    def apply(self, key: str, value: object) -> str | None:
        """Apply a record; returns the connector that it changes, or None."""
        self._revision += 1
        if key.startswith(TARGET_STATE):
            return self._apply_target_state(key.removeprefix(TARGET_STATE), value)
        if key.startswith(CONNECTOR):
            return self._apply_connector(key.removeprefix(CONNECTOR), value)
        if key.startswith(COMMIT):
            return self._apply_commit(key.removeprefix(COMMIT), value)
        if key.startswith(FENCING):
            self._apply_fencing(key.removeprefix(FENCING), value)
            return None
        task = _TASK_KEY.fullmatch(key)
        if task is not None:
            properties = _properties(value)
            if properties is not None:
                self._of(task[1]).deferred[int(task[2])] = properties
        return None

    def _of(self, name: str) -> _Known:
        return self._known.setdefault(name, _Known())

    def _apply_connector(self, name: str, value: object) -> str | None:
        if value is None:
            self._known.pop(name, None)
            return name
        properties = _properties(value)
        if properties is None:
            return None
        known = self._of(name)
        known.config, known.revision = properties, self._revision
        return name

    def _apply_target_state(self, name: str, value: object) -> str | None:
        if value is None:
            if name in self._known:
                self._known[name].target_state = TargetState.STARTED
            return None
        text = value.get("state.v2") or value.get("state") if isinstance(value, dict) else None
        if not isinstance(text, str) or text not in TargetState.__members__:
            return None
        known = self._of(name)
        known.target_state = TargetState[text]
        return name if known.config is not None else None

    def _apply_commit(self, name: str, value: object) -> str | None:
        count = value.get("tasks") if isinstance(value, dict) else None
        if not isinstance(count, int):
            return None
        known = self._of(name)
        # The record of an unchanged task may have been compacted away: keep the committed one.
        found = {**dict(enumerate(known.tasks)), **known.deferred}
        known.deferred = {}
        known.generation = self._revision
        self._unfenced.add(name)
        known.consistent = all(number in found for number in range(count))
        if known.consistent:
            known.tasks = tuple(found[number] for number in range(count))
        return name if known.config is not None else None

    def _apply_fencing(self, name: str, value: object) -> None:
        count = value.get("task-count") if isinstance(value, dict) else None
        if isinstance(count, int):
            self._counts[name] = count
            self._unfenced.discard(name)


class ConfigStore:
    """Stores target states in a topic or, without one, in memory.

    Any thread may call any method. With a topic, a record takes effect once it is read back: all
    workers see the same order. The reading thread calls the listener.
    """

    def __init__(self, listener: ConfigListener, topic: StateTopic | None = None) -> None:
        self._listener = listener
        self._topic = topic
        self._table = ConfigTable()
        self._lock = concurrency.Lock()
        self._opened = False

    def open(self) -> None:
        """Read the topic; the listener is notified of later changes only."""
        if self._topic is not None:
            self._topic.open(self._apply_record)
        self._opened = True

    def close(self) -> None:
        if self._topic is not None:
            self._topic.close()

    def connectors(self) -> list[str]:
        """The names of all connectors, sorted."""
        with self._lock:
            return self._table.connectors()

    def connector(self, name: str) -> WantedConnector | None:
        """The target state of a connector; None if it does not exist."""
        with self._lock:
            return self._table.connector(name)

    def has_leftovers(self, name: str) -> bool:
        """Whether a deleted connector still has task records."""
        with self._lock:
            return self._table.has_leftovers(name)

    def put_connector(
        self, name: str, config: Config, target_state: TargetState | None = None
    ) -> None:
        """Create or change a connector, optionally with a new target state."""
        # The state comes first: otherwise the new connector would start before it is paused.
        state = [] if target_state is None else [_target_state(name, target_state)]
        self._write([*state, (f"{CONNECTOR}{name}", {"properties": dict(config)})])

    def remove_connector(self, name: str) -> None:
        """Delete a connector."""
        self._write([(f"{CONNECTOR}{name}", None), (f"{TARGET_STATE}{name}", None)])

    def put_tasks(self, name: str, tasks: Sequence[Config]) -> None:
        """Replace the task configurations of a connector atomically."""
        records: list[tuple[str, object]] = [
            (f"{TASK}{TaskId(name, number)}", {"properties": dict(task)})
            for number, task in enumerate(tasks)
        ]
        self._write([*records, (f"{COMMIT}{name}", {"tasks": len(tasks)})])

    def put_fencing(self, name: str, count: int) -> None:
        """Record that all earlier tasks are fenced, and the number of tasks that may run now."""
        self._write([(f"{FENCING}{name}", {"task-count": count})])

    def refresh(self) -> None:
        """Read what other workers have written."""
        if self._topic is not None:
            self._topic.refresh()

    def put_target_state(self, name: str, state: TargetState) -> None:
        """Set the target state of a connector."""
        self._write([_target_state(name, state)])

    def put_restart(self, name: str, request: RestartRequest) -> None:
        value = {"include-tasks": request.include_tasks, "only-failed": request.only_failed}
        self._write([(f"{RESTART}{name}", value)])

    def put_logger(self, name: str, level: str) -> None:
        """Set the level of a logger of all workers."""
        self._write([(f"{LOGGER}{name}", {"level": level})])

    # --- records ------------------------------------------------------------------------------

    def _write(self, records: Sequence[tuple[str, object]]) -> None:
        if self._topic is None:
            for key, value in records:
                self._apply_value(key, value)
            return
        self._topic.append(
            [
                (key.encode(), None if value is None else orjson.dumps(value))
                for key, value in records
            ]
        )
        self._topic.refresh()

    def _apply_record(self, record: ConsumerRecord) -> None:
        try:
            key = (record.key or b"").decode()
            value = None if record.value is None else orjson.loads(record.value)
        except ValueError:
            logger.warning(
                'invalid record in topic "%s" at offset %d is ignored', record.topic, record.offset
            )
            return
        self._apply_value(key, value)

    def _apply_value(self, key: str, value: object) -> None:
        with self._lock:
            changed = self._table.apply(key, value)
        if not self._opened:
            return
        if changed is not None:
            self._listener.on_change(changed)
        elif key.startswith(RESTART) and isinstance(value, dict):
            include, only = value.get("include-tasks"), value.get("only-failed")
            request = RestartRequest(include is True, only is True)
            self._listener.on_restart(key.removeprefix(RESTART), request)
        elif key.startswith(LOGGER) and isinstance(value, dict):
            self._listener.on_logger(key.removeprefix(LOGGER), str(value.get("level")))


def _target_state(name: str, state: TargetState) -> tuple[str, object]:
    known_to_all = TargetState.PAUSED if state is TargetState.STOPPED else state
    return f"{TARGET_STATE}{name}", {"state": known_to_all.value, "state.v2": state.value}


def _properties(value: object) -> Config | None:
    properties = value.get("properties") if isinstance(value, dict) else None
    if not isinstance(properties, dict):
        return None
    return {name: text for name, text in properties.items() if isinstance(text, str)}
