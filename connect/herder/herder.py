"""Herder: the operations on connectors that the REST API offers.

    REST ──► Herder ──► ConfigStore: target state ──► ConnectorSupervisor ──► Worker
                ▲                                            │
                └──────── StatusStore: current state ◄───────┘

A request changes the target state, and the connector's supervisor applies it. A standalone worker
keeps the target state in memory, a distributed one in the config topic, which it reads after a
restart.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, replace
from typing import TypeVar

from broker import concurrency
from broker.clock import Clock
from connect.clients import Clients
from connect.config.hidden_settings import HiddenSettings
from connect.config.providers import ConfigProviders
from connect.config.worker_config import WorkerConfig
from connect.errors import (
    AlreadyExists,
    BadRequest,
    ConfigError,
    Conflict,
    ConnectError,
    Forbidden,
    NotFound,
)
from connect.herder.assignment import Assignment
from connect.herder.catalog import PluginCatalog
from connect.herder.connector_supervisor import (
    ConnectorSupervisor,
    SupervisorParts,
    restart_plan,
)
from connect.herder.descriptions import ConnectorInfo, ConnectorStatus, TaskInfo
from connect.herder.loggers import Loggers, checked_level
from connect.herder.offset_changes import OffsetChanges, WrittenOffset
from connect.herder.validation import NullableConfig, Validation, check_valid
from connect.plugins import Plugins
from connect.runtime.worker import Worker
from connect.state.config_store import Config, ConfigStore, RestartRequest, WantedConnector
from connect.state.offsets import OffsetStore
from connect.state.state_topic import StateTopic
from connect.state.status_store import State, Status, StatusStore
from connect.state.task_state import TargetState, TaskId

T = TypeVar("T")

logger = logging.getLogger(__name__)

REQUEST_TIMEOUT_S = 90.0
# Below the default message.max.bytes of brokers; task configurations contain copies.
CONFIG_BYTES_MAX = 500_000
# In addition to the time for tasks to stop: to close clients and write the last states.
STOP_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class HerderParts:
    """The dependencies of a herder."""

    config: WorkerConfig
    worker: Worker
    plugins: Plugins
    clients: Clients
    # The store of the offsets of a source connector.
    offset_store: Callable[[Config], OffsetStore]
    assignment: Assignment
    clock: Clock
    # The topics of a distributed worker; without them everything is kept in memory.
    config_topic: StateTopic | None = None
    status_topic: StateTopic | None = None


class Herder:
    """Thread-safe; methods that change something may block."""

    def __init__(self, parts: HerderParts) -> None:
        self._parts = parts
        self._configs = ConfigStore(self, parts.config_topic)
        self._statuses = StatusStore(parts.clock, parts.status_topic)
        allowed = parts.config.allowed_paths
        self._providers = ConfigProviders(parts.config.originals, allowed)
        validation = Validation(parts.plugins, parts.config, self._providers)
        self.catalog = PluginCatalog(parts.plugins, validation)
        self._hidden = HiddenSettings(parts.plugins)
        self._changes = OffsetChanges(parts.plugins, parts.clients, parts.offset_store, allowed)
        self.loggers = Loggers(parts.clock)
        self._supervisors: dict[str, ConnectorSupervisor] = {}
        self._lock = concurrency.Lock()  # guards the supervisors
        self._writing = concurrency.RLock()  # for read-modify-write changes
        self._stopping = False
        self.ready = concurrency.Event()

    # --- start and stop ---------------------------------------------------------------------

    def start(self) -> None:
        """Read the target states, and start the connectors."""
        self._configs.open()
        self._statuses.open()
        for name in self._configs.connectors():
            self.on_change(name)
        self.ready.set()

    def stop(self) -> None:
        """Stop all connectors; their target states remain."""
        with self._lock:
            self._stopping = True
            supervisors = list(self._supervisors.values())
        ends = [supervisor.stop() for supervisor in supervisors]
        timeout_s = self._parts.config.task_shutdown_graceful_timeout_ms / 1000 + STOP_GRACE_S
        for end, supervisor in zip(ends, supervisors, strict=True):
            try:
                end.result(timeout_s)
            except (FutureTimeout, CancelledError):
                logger.warning('connector "%s" did not stop in time', supervisor.name)
        self._statuses.close()
        self._configs.close()

    def give_up(self) -> None:
        """Stop all connectors without writing statuses: another worker writes them now."""
        self._statuses.close()
        self.stop()

    # --- notifications of the config store --------------------------------------------------

    def on_change(self, connector: str) -> None:
        """Notify the supervisor of a changed connector."""
        self._submit(connector, ConnectorSupervisor.wake)

    def on_restart(self, connector: str, request: RestartRequest) -> None:
        """Pass a restart request to the supervisor."""
        if self._configs.connector(connector) is not None:
            self._submit(connector, lambda supervisor: supervisor.restart(request))

    def on_logger(self, logger_name: str, level: str) -> None:
        """Set the level of a logger."""
        try:
            self.loggers.set_level(logger_name, level)
        except ConnectError as error:
            logger.warning("cannot set the level of a logger: %s", error)

    def _submit(self, name: str, work: Callable[[ConnectorSupervisor], "Future[T]"]) -> "Future[T]":
        """Submit work to a connector's supervisor, which is created if needed."""
        with self._lock:
            if self._stopping:
                raise Conflict("the worker is stopping")
            supervisor = self._supervisors.get(name)
            if supervisor is None:
                supervisor = self._supervisors[name] = ConnectorSupervisor(
                    name, self._supervisor_parts(), self._retire
                )
            return work(supervisor)

    def _retire(self, supervisor: ConnectorSupervisor) -> bool:
        """Remove the supervisor of a deleted connector, unless it is needed again."""
        with self._lock:
            if self._configs.connector(supervisor.name) is not None or not supervisor.is_idle():
                return False
            self._supervisors.pop(supervisor.name, None)
            return True

    def _supervisor_parts(self) -> SupervisorParts:
        return SupervisorParts(
            self._parts.worker,
            self._configs,
            self._statuses,
            self._parts.plugins,
            self._providers,
            self._parts.assignment,
            self._parts.clock,
        )

    # --- information ------------------------------------------------------------------------

    def connectors(self) -> list[str]:
        """The names of all connectors."""
        return self._configs.connectors()

    def info(self, name: str) -> ConnectorInfo:
        """The configuration of a connector."""
        return self._info(name, self._wanted(name))

    def status(self, name: str) -> ConnectorStatus:
        """The states of a connector and its tasks."""
        own = self._statuses.get(name)
        if own is None:
            raise NotFound(f"No status found for connector {name}")
        wanted = self._configs.connector(name)
        type_ = "unknown" if wanted is None else self._type(wanted.config)
        return ConnectorStatus(name, own, self._statuses.tasks(name), type_)

    def task_status(self, task: TaskId) -> Status:
        """The state of a task."""
        result = self._statuses.get(task)
        if result is None:
            raise NotFound(f"No status found for task {task}")
        return result

    def tasks(self, name: str) -> list[TaskInfo]:
        """The task configurations of a connector."""
        wanted = self._wanted(name)
        return [
            TaskInfo(TaskId(name, number), self._hidden.shown(task, wanted.config))
            for number, task in enumerate(wanted.tasks)
        ]

    def topics(self, name: str) -> list[str]:
        """The topics that a connector has used."""
        if not self._parts.config.topic_tracking_enable:
            raise Forbidden("Topic tracking is disabled.")
        return self._statuses.topics(name)

    def reset_topics(self, name: str) -> None:
        """Reset the topics that a connector has used."""
        if not self._parts.config.topic_tracking_enable:
            raise Forbidden("Topic tracking is disabled.")
        if not self._parts.config.topic_tracking_allow_reset:
            raise Forbidden("Topic tracking reset is disabled.")
        self._statuses.forget_topics(name)

    def used_topic(self, task: TaskId, topic: str) -> None:
        """Track a topic that a task uses."""
        if self._parts.config.topic_tracking_enable:
            self._statuses.add_topic(task, topic)

    def _wanted(self, name: str) -> WantedConnector:
        wanted = self._configs.connector(name)
        if wanted is None:
            raise NotFound(f"Connector {name} not found")
        return wanted

    def _info(self, name: str, wanted: WantedConnector) -> ConnectorInfo:
        tasks = tuple(TaskId(name, number) for number in range(len(wanted.tasks)))
        shown = self._hidden.shown(wanted.config)
        return ConnectorInfo(name, shown, tasks, self._type(wanted.config))

    def _type(self, config: Config) -> str:
        try:
            kind = self._parts.plugins.kind_of(config.get("connector.class", ""))
        except ConfigError:
            kind = None
        return "unknown" if kind is None else kind.value

    # --- configurations ---------------------------------------------------------------------

    def create(
        self, name: str, config: NullableConfig, initial_state: TargetState | None = None
    ) -> ConnectorInfo:
        """Create a connector."""
        return self._put(name, config, initial_state, replace_old=False)[0]

    def put_config(self, name: str, config: NullableConfig) -> tuple[ConnectorInfo, bool]:
        """Create or change a connector; also returns whether it was created."""
        return self._put(name, config, None, replace_old=True)

    def patch_config(self, name: str, changes: NullableConfig) -> ConnectorInfo:
        """Change single settings of a connector; None removes one."""
        with self._writing:
            merged: dict[str, str | None] = {**self._wanted(name).config, **changes}
            kept = {key: text for key, text in merged.items() if text is not None}
            return self._put(name, kept, None, replace_old=True)[0]

    def delete(self, name: str) -> None:
        """Delete a connector; its topics and offsets remain."""
        with self._writing:
            self._wanted(name)
            self._configs.remove_connector(name)

    def _put(
        self, name: str, config: NullableConfig, state: TargetState | None, *, replace_old: bool
    ) -> tuple[ConnectorInfo, bool]:
        stored = self._configs.connector(name) if replace_old else None
        config = self._hidden.restored(config, None if stored is None else stored.config)
        check_valid(self.catalog.validate(config))
        given = {key: text for key, text in config.items() if text is not None}
        size = sum(len(key.encode()) + len(text.encode()) for key, text in given.items())
        if size > CONFIG_BYTES_MAX:
            raise BadRequest(f"the configuration is too large: more than {CONFIG_BYTES_MAX} bytes")
        with self._writing:
            old = self._configs.connector(name)
            if old is not None and not replace_old:
                raise AlreadyExists(f"Connector {name} already exists")
            if self._configs.has_leftovers(name):
                self._configs.put_tasks(name, [])
            self._configs.put_connector(name, given, state)
            tasks = () if old is None else old.tasks
        return self._info(name, WantedConnector(given, tasks=tasks)), old is None

    # --- states -----------------------------------------------------------------------------

    def pause(self, name: str) -> None:
        """Pause a connector and its tasks."""
        self._set_target_state(name, TargetState.PAUSED)

    def resume(self, name: str) -> None:
        """Resume a connector and its tasks."""
        self._set_target_state(name, TargetState.STARTED)

    def stop_connector(self, name: str) -> None:
        """Stop a connector and its tasks until it is resumed."""
        with self._writing:
            self._known(name)
            self._configs.put_tasks(name, [])
            self._configs.put_target_state(name, TargetState.STOPPED)

    def _set_target_state(self, name: str, state: TargetState) -> None:
        with self._writing:
            self._known(name)
            self._configs.put_target_state(name, state)

    def _known(self, name: str) -> None:
        if self._configs.connector(name) is None:
            raise NotFound(f"Unknown connector {name}")

    # --- restarts ---------------------------------------------------------------------------

    def restart_connector(self, name: str) -> None:
        """Restart a connector without its tasks; returns when it is running."""
        self._known_to_restart(name)
        self._result(self._submit(name, ConnectorSupervisor.restart_connector))

    def restart(self, name: str, request: RestartRequest) -> ConnectorStatus:
        """Restart parts of a connector; returns their next states."""
        self._known_to_restart(name)
        before = self._statuses.get(name)
        if before is None:
            raise NotFound(f"Status for connector {name} not found")
        plan = restart_plan(name, self._statuses, request)
        self._configs.put_restart(name, request)
        tasks = {
            number: _restarting(each) if TaskId(name, number) in plan else each
            for number, each in self._statuses.tasks(name).items()
        }
        own = _restarting(before) if name in plan else before
        return ConnectorStatus(name, own, tasks, self._type(self._wanted(name).config))

    def restart_task(self, task: TaskId) -> None:
        """Restart a task; returns when it has started."""
        self._known_to_restart(task.connector)
        if not 0 <= task.task < len(self._wanted(task.connector).tasks):
            raise NotFound(f"Unknown task: {task}")
        self._result(
            self._submit(task.connector, lambda supervisor: supervisor.restart_task(task.task))
        )

    def _known_to_restart(self, name: str) -> None:
        if self._configs.connector(name) is None:
            raise NotFound(f"Unknown connector: {name}")

    def _result(self, future: "Future[T]") -> T:
        try:
            return future.result(REQUEST_TIMEOUT_S)
        except FutureTimeout:
            raise ConnectError(
                "Request timed out. The worker is still busy with this connector.",
                hint="the connector's code takes long to start or to stop; see its status",
            ) from None
        except CancelledError:
            raise Conflict("the worker is stopping") from None

    def set_logger_level_everywhere(self, name: str, level: str | None) -> None:
        """Set the level of a logger of all workers."""
        self._configs.put_logger(name, checked_level(level))

    # --- offsets ----------------------------------------------------------------------------

    def offsets(self, name: str) -> list[WrittenOffset]:
        """The offsets of a connector."""
        wanted = self._wanted(name)
        return self._changes.listing(name, self._providers.resolve(wanted.config))

    def alter_offsets(self, name: str, offsets: Sequence[WrittenOffset]) -> str:
        """Change the offsets of a stopped connector; returns a message."""
        if not offsets:
            raise BadRequest(
                "Partitions / offsets need to be provided for an alter offsets request"
            )
        return self._change_offsets(name, lambda config: self._changes.alter(name, config, offsets))

    def reset_offsets(self, name: str) -> str:
        """Reset the offsets of a stopped connector; returns a message."""
        return self._change_offsets(name, lambda config: self._changes.reset(name, config))

    def _change_offsets(self, name: str, change: "OffsetChange") -> str:
        self._check_stopped(name)

        def run() -> str:
            # The supervisor has run all earlier requests: the tasks have stopped.
            wanted = self._check_stopped(name)
            return change(self._providers.resolve(wanted.config))

        return self._result(self._submit(name, lambda supervisor: supervisor.call(run)))

    def _check_stopped(self, name: str) -> WantedConnector:
        wanted = self._wanted(name)
        if wanted.target_state is not TargetState.STOPPED:
            raise BadRequest(
                "Connectors must be in the STOPPED state before their offsets can be modified. "
                "This can be done for the specified connector by issuing a 'PUT' request to the "
                f"'/connectors/{name}/stop' endpoint"
            )
        return wanted


OffsetChange = Callable[[Config], str]


def _restarting(status: Status) -> Status:
    return replace(status, state=State.RESTARTING)
