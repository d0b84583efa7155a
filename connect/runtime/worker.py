"""Worker: runs connectors and tasks, each in a thread of its own.

    herder ──► Worker ──► ConnectorThread   start, stop, task_configs of a connector
                  │
                  ├─────► TaskThread        one per task: SourceRunner or SinkRunner; a source has
                  │                         another thread that stores offsets while its poll waits
                  │
                  └─────► idle thread       collects garbage while all tasks wait

Starts and stops are reported to a listener. Methods wait for a connector only to get its task
configurations and, for task.shutdown.graceful.timeout.ms, to stop it.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Self

from broker import concurrency, garbage
from broker.client.opening import Target
from broker.clock import Clock, SystemClock
from connect.api import Connector
from connect.clients import Clients
from connect.config.connector import ConnectorConfig, SourceConfig
from connect.config.hidden_settings import HiddenSettings
from connect.config.worker_config import WorkerConfig
from connect.errors import AlreadyExists, ConnectError, NotFound
from connect.plugin_finder import PluginKind
from connect.plugins import Plugins
from connect.runtime.connector_thread import ConnectorThread
from connect.runtime.metrics_text import ConnectorMetrics, metrics_text
from connect.runtime.source.offset_stores import OffsetStores
from connect.runtime.source.setup import StoredOffsets
from connect.runtime.startup_counts import CountedStart, StartupCounts
from connect.runtime.task_building import TaskBuilder, TaskRequest
from connect.runtime.task_thread import TaskThread
from connect.state.offsets import OffsetStore
from connect.state.task_state import StatusListener, TargetState, TaskId
from connect.stop_signal import StopSignal

logger = logging.getLogger(__name__)

IDLE_TICK_MS = 500


def ignore_topic(task: TaskId, topic: str) -> None:
    """An `on_topic` that does nothing."""


class Worker:
    """Runs connectors and tasks; any thread may call any method."""

    def __init__(
        self,
        target: Target,
        config: WorkerConfig,
        plugins: Plugins,
        offsets: OffsetStore,
        clock: Clock | None = None,
        on_topic: Callable[[TaskId, str], None] = ignore_topic,
    ) -> None:
        """`offsets` is the worker's store; `on_topic` is called with tasks and their topics."""
        self._config = config
        self._plugins = plugins
        self._hidden = HiddenSettings(plugins)
        self._clock = clock or SystemClock()
        self._on_topic = on_topic
        self._stores = OffsetStores(target, config, offsets)
        self._builder = TaskBuilder(
            Clients(target, config.originals), config, plugins, self._stores, self._clock
        )
        self._lock = concurrency.Lock()  # guards the fields below
        self._connectors: dict[str, ConnectorThread] = {}
        self._tasks: dict[TaskId, TaskThread] = {}
        self._connector_starts = StartupCounts()
        self._task_starts = StartupCounts()
        self._stop = StopSignal(self._clock)
        self._idle_thread = concurrency.Thread(
            target=self._collect_garbage, name="connect-idle", daemon=True
        )
        self._idle_thread.start()

    @property
    def clients(self) -> Clients:
        """The clients, with the settings of the worker and of connectors."""
        return self._builder.clients

    def offset_store(self, config: Mapping[str, str]) -> OffsetStore:
        """The store of the offsets of a source connector."""
        return self._stores.of(SourceConfig.parse(config).offsets_topic)

    # --- connectors ----------------------------------------------------------------------------

    def start_connector(
        self,
        name: str,
        config: Mapping[str, str],
        listener: StatusListener,
        on_reconfigure: Callable[[], None],
        target: TargetState = TargetState.STARTED,
    ) -> None:
        """Start a connector asynchronously; `on_reconfigure` requests new task configurations."""
        parsed = ConnectorConfig.parse(config)
        thread = ConnectorThread(
            name,
            parsed,
            lambda: self._allowed_connector(parsed),
            CountedStart(listener, self._connector_starts),
            self._hidden.secrets(config),
        )
        with self._lock:
            if name in self._connectors:
                raise AlreadyExists(f"Connector {name} already exists")
            self._connectors[name] = thread
            self._connector_starts.attempts += 1
        offsets = StoredOffsets(name, lambda: self.offset_store(config), self._stop)
        thread.start(offsets, on_reconfigure)
        thread.set_target(target)

    def _allowed_connector(self, config: ConnectorConfig) -> Connector:
        found = self._plugins.connector(config.class_name)
        self._config.allowed_paths.check(found, config.given)
        return found()

    def stop_connector(self, name: str) -> bool:
        """Stop a connector, with a timeout; whether it was running."""
        with self._lock:
            thread = self._connectors.pop(name, None)
        if thread is None:
            return False
        thread.stop_soon()
        if not thread.wait_ended(self._config.task_shutdown_graceful_timeout_ms):
            thread.abandon()
        return True

    def connector_task_configs(self, name: str) -> list[dict[str, str]]:
        """The task configurations that the connector generates; waits for it."""
        thread = self._connector(name)
        config, limit = thread.config, thread.config.tasks_max
        found = thread.ask(lambda connector: connector.task_configs(limit))
        if len(found) > limit:
            said = f"The connector {name} has generated {len(found)} tasks, which is greater than "
            said += f"{limit}, the maximum number of tasks it is configured to create."
            if config.enforces_tasks_max:
                raise ConnectError(said, hint="raise tasks.max, or set tasks.max.enforce=false")
            logger.warning(said)
        shared = {
            "task.class": self._plugins.task_name(config.class_name),
            **{
                name: config.given[name]
                for name in ("topics", "topics.regex")
                if name in config.given
            },
        }
        return [{**task, **shared} for task in found]

    def ask_connector(self, name: str, what: Callable[[Connector], object]) -> object:
        """Call a running connector, in its thread."""
        return self._connector(name).ask(what)

    def set_target_state(self, name: str, target: TargetState) -> None:
        """Start, pause or stop a connector, and pause or resume its tasks, asynchronously."""
        with self._lock:
            connector = self._connectors.get(name)
            tasks = [task for task_id, task in self._tasks.items() if task_id.connector == name]
        if connector is not None:
            connector.set_target(target)
        for task in tasks:
            task.set_target(target)

    def _connector(self, name: str) -> ConnectorThread:
        with self._lock:
            found = self._connectors.get(name)
        if found is None:
            raise NotFound(f"Connector {name} not found")
        return found

    # --- tasks ---------------------------------------------------------------------------------

    def start_task(
        self,
        task_id: TaskId,
        connector_config: Mapping[str, str],
        task_config: Mapping[str, str],
        listener: StatusListener,
        target: TargetState = TargetState.STARTED,
        confirm: Callable[[], None] = lambda: None,
    ) -> None:
        """Start a task asynchronously; see TaskRequest for `confirm`."""
        request = TaskRequest(
            task_id,
            connector_config,
            task_config,
            lambda topic: self._on_topic(task_id, topic),
            confirm,
        )
        thread = TaskThread(
            task_id,
            lambda stop: self._builder.build(request, stop),
            CountedStart(listener, self._task_starts),
            self._clock,
            self._hidden.secrets({**connector_config, **task_config}),
        )
        with self._lock:
            if task_id in self._tasks:
                raise ConnectError(f"Task already exists in this worker: {task_id}")
            self._tasks[task_id] = thread
            self._task_starts.attempts += 1
        thread.start(target)

    def fences_tasks(self, config: Mapping[str, str]) -> bool:
        """Whether the tasks of a connector must be fenced before they are replaced."""
        kind = self._plugins.kind_of(config["connector.class"])
        return self._config.exactly_once and kind is PluginKind.SOURCE

    def fence_tasks(self, name: str, config: Mapping[str, str], count: int) -> None:
        """Fence source tasks that another worker may still run: they can no longer write."""
        for number in range(count):
            self._builder.fence(TaskId(name, number), config)

    def stop_tasks(self, task_ids: Iterable[TaskId]) -> None:
        """Stop tasks, all at the same time, with a timeout."""
        with self._lock:
            threads = [self._tasks.pop(each) for each in list(task_ids) if each in self._tasks]
        for thread in threads:
            thread.stop_soon()
        deadline_ms = self._clock.monotonic_ms() + self._config.task_shutdown_graceful_timeout_ms
        for thread in threads:
            if not thread.wait_ended(max(0, deadline_ms - self._clock.monotonic_ms())):
                thread.abandon()

    def tasks_of(self, name: str) -> list[TaskId]:
        """The tasks of a connector on this worker, including failed ones."""
        with self._lock:
            return sorted(task_id for task_id in self._tasks if task_id.connector == name)

    def _collect_garbage(self) -> None:
        """Collect garbage: tasks do it between turns, but may wait in a poll for long."""
        while not self._stop.wait(IDLE_TICK_MS):
            garbage.collect_when_due()

    # --- metrics -------------------------------------------------------------------------------

    def task_metrics(self, task_id: TaskId) -> dict[str, float]:
        """The metrics of a task, by Kafka Connect's names; NotFound if there is no such task."""
        with self._lock:
            found = self._tasks.get(task_id)
        if found is None:
            raise NotFound(f"Task {task_id} not found")
        return found.metrics.values()

    def metrics(self) -> str:
        """All metrics in Prometheus' text format."""
        with self._lock:
            connectors, tasks = list(self._connectors.values()), dict(self._tasks)
        counts = {
            "connector-count": float(len(connectors)),
            "task-count": float(len(tasks)),
            **self._connector_starts.values("connector"),
            **self._task_starts.values("task"),
        }
        shown = [self._connector_metrics(connector) for connector in connectors]
        return metrics_text(
            counts, shown, {task_id: task.metrics for task_id, task in tasks.items()}
        )

    def _connector_metrics(self, connector: ConnectorThread) -> ConnectorMetrics:
        name = connector.config.class_name
        kind = self._plugins.kind_of(name)
        return ConnectorMetrics(
            connector.name,
            connector.status,
            "unknown" if kind is None else kind.value,
            self._plugins.class_name(name) or name,
            self._plugins.version(kind or PluginKind.SOURCE, name) or "",
        )

    # --- the end -------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop all connectors and tasks."""
        with self._lock:
            names, tasks = list(self._connectors), list(self._tasks)
        self.stop_tasks(tasks)
        for name in names:
            self.stop_connector(name)
        self._stop.set()
        self._idle_thread.join()
        self._stores.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
