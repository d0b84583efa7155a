"""ConnectorSupervisor: keeps one connector and its tasks in their target state, in its own thread.

    config store ──changed──► reconcile:
        deleted                         stop everything, delete its states
        its configuration has changed   restart the connector
        its target state has changed    start, pause or stop it
        its task configs have changed   write them to the store
        the store's tasks have changed  restart the changed tasks

Connectors are user code: one that hangs or fails blocks only its own supervisor. Callers wait for
the result with a future.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TypeVar

from broker import stack_traces
from broker.clock import Clock
from broker.errors import MillstreamError
from connect.config.hidden_values import hide_in_text
from connect.config.providers import ConfigProviders
from connect.errors import ConnectError, RetriableError
from connect.herder.assignment import Assignment
from connect.herder.serial_thread import SerialThread
from connect.plugins import Plugins
from connect.runtime.worker import Worker
from connect.state.config_store import Config, ConfigStore, RestartRequest, WantedConnector
from connect.state.status_store import State, Status, StatusStore, Subject
from connect.state.task_state import TargetState, TaskId
from connect.stop_signal import TaskStopped

T = TypeVar("T")

logger = logging.getLogger(__name__)

RETRY_MS_MIN = 250
RETRY_MS_MAX = 60_000


@dataclass(frozen=True, slots=True)
class SupervisorParts:
    """The parts that all supervisors share."""

    worker: Worker
    configs: ConfigStore
    statuses: StatusStore
    plugins: Plugins
    providers: ConfigProviders
    assignment: Assignment
    clock: Clock


@dataclass(frozen=True, slots=True)
class _Running:
    """A started connector or task, with its configuration."""

    wanted: WantedConnector
    started: bool  # whether the connector itself is started


class ConnectorSupervisor:
    """Public methods are thread-safe; the supervisor's thread does all work."""

    def __init__(
        self, name: str, parts: SupervisorParts, retire: Callable[["ConnectorSupervisor"], bool]
    ) -> None:
        """`retire` is called once the connector is deleted: may the supervisor end?"""
        self.name = name
        self._parts = parts
        self._retire = retire
        self._thread = SerialThread(f"connector-{name}", parts.clock)
        self._running: _Running | None = None
        self._tasks: dict[int, tuple[Config, Config]] = {}  # connector's and task's, as written
        self._listeners: dict[Subject, _Reporter] = {}
        self._retry_ms = RETRY_MS_MIN

    def wake(self) -> "Future[None]":
        """Reconcile: the connector has changed."""
        return self._thread.submit(lambda: self._try(self._reconcile))

    def restart_connector(self) -> "Future[None]":
        """Restart the connector; the future fails if the connector fails."""
        return self._thread.submit(self._restart_connector)

    def restart_task(self, number: int) -> "Future[None]":
        return self._thread.submit(lambda: self._restart_tasks([number]))

    def restart(self, request: RestartRequest) -> "Future[None]":
        """Restart the parts that the request names."""
        return self._thread.submit(lambda: self._try(lambda: self._restart(request)))

    def call(self, function: Callable[[], T]) -> "Future[T]":
        """Run a function after all earlier requests."""
        return self._thread.submit(function)

    def stop(self) -> "Future[None]":
        """Stop everything, as the worker stops; the states become UNASSIGNED."""
        future = self._thread.submit(self._stop_all)
        future.add_done_callback(lambda _: self._thread.close())
        return future

    def is_idle(self) -> bool:
        """Whether no work is queued; called by `retire`."""
        return self._thread.is_idle()

    def _try(self, work: Callable[[], None]) -> None:
        """Run work without a caller: an error becomes the connector's status."""
        try:
            work()
        except RetriableError as error:
            logger.warning(
                'connector "%s": retrying in %d ms: %s', self.name, self._retry_ms, error
            )
            self._retry_later(self._reconcile)
        except Exception as error:
            logger.exception('connector "%s" failed', self.name)
            self._fail(error)

    def _retry_later(self, work: Callable[[], None]) -> None:
        self._thread.submit(lambda: self._try(work), delay_ms=self._retry_ms)
        self._retry_ms = min(2 * self._retry_ms, RETRY_MS_MAX)

    # --- reconciliation -----------------------------------------------------------------------

    def _reconcile(self) -> None:
        wanted = self._parts.configs.connector(self.name)
        if wanted is None:
            self._remove()
            return
        if self._parts.assignment.runs_connector(self.name):
            self._reconcile_connector(wanted)
        # Task configurations were written to the store: the target state has changed.
        wanted = self._parts.configs.connector(self.name)
        if wanted is not None:
            self._reconcile_tasks(wanted)

    def _reconcile_connector(self, wanted: WantedConnector) -> None:
        running = self._running
        if running is None or running.wanted.revision != wanted.revision:
            self._stop_connector()
            self._start_connector(wanted)
        elif running.wanted.target_state is not wanted.target_state:
            self._change_state(wanted, running)
        self._running = replace(self._running, wanted=wanted) if self._running else None

    def _start_connector(self, wanted: WantedConnector) -> None:
        reporter = self._new_reporter(self.name)
        self._running = _Running(wanted, started=wanted.target_state is not TargetState.STOPPED)
        if wanted.target_state is TargetState.STOPPED:
            reporter.on_stopped()
            return
        try:
            resolved = self._parts.providers.resolve(wanted.config)
            self._parts.worker.start_connector(
                self.name, resolved, reporter, self._reconfigure_soon, wanted.target_state
            )
        except Exception as error:
            reporter.on_failure(_trace(error))
            return
        if wanted.target_state is TargetState.STARTED:
            self._generate_tasks(wanted)

    def _change_state(self, wanted: WantedConnector, running: _Running) -> None:
        """Change the target state, with the same configuration."""
        if wanted.target_state is TargetState.STOPPED or not running.started:
            self._stop_connector()
            self._start_connector(wanted)
            return
        self._parts.worker.set_target_state(self.name, wanted.target_state)
        if wanted.target_state is TargetState.STARTED:
            self._generate_tasks(wanted)

    def _stop_connector(self) -> None:
        running, self._running = self._running, None
        if running is not None and running.started:
            try:
                self._parts.worker.stop_connector(self.name)
            except MillstreamError as error:
                logger.warning('connector "%s" did not stop: %s', self.name, error)

    def _remove(self) -> None:
        self._stop_tasks(list(self._tasks))
        self._stop_connector()
        self._detach(list(self._listeners))
        self._parts.statuses.remove_connector(self.name)
        if self._retire(self):
            self._thread.close()

    def _stop_all(self) -> None:
        self._stop_tasks(list(self._tasks))
        self._stop_connector()

    # --- tasks --------------------------------------------------------------------------------

    def _reconfigure_soon(self) -> None:
        """Request new task configurations; any thread may call it."""
        self._thread.submit(lambda: self._try(self._reconfigure))

    def _reconfigure(self) -> None:
        running, wanted = self._running, self._parts.configs.connector(self.name)
        if running is None or wanted is None or running.wanted.revision != wanted.revision:
            return  # it is about to be restarted
        if wanted.target_state is TargetState.STARTED:
            self._generate_tasks(wanted)
            self._reconcile()

    def _generate_tasks(self, wanted: WantedConnector) -> None:
        """Get task configurations from the connector, and write them if they have changed."""
        try:
            tasks = self._task_configs(wanted)
            if not wanted.consistent or tuple(tasks) != wanted.tasks:
                self._parts.configs.put_tasks(self.name, tasks)
            self._retry_ms = RETRY_MS_MIN
        except RetriableError as error:
            logger.warning(
                'connector "%s" failed to generate task configurations, retrying in %d ms: %s',
                self.name,
                self._retry_ms,
                error,
            )
            self._retry_later(self._reconfigure)
        except Exception as error:
            self._fail(error)

    def _task_configs(self, wanted: WantedConnector) -> list[Config]:
        """The task configurations, with references in place of secrets."""
        values = self._parts.providers.resolve(wanted.config)
        return [
            self._parts.providers.restore(task, wanted.config, values=values)
            for task in self._parts.worker.connector_task_configs(self.name)
        ]

    def _fail(self, error: BaseException) -> None:
        """Mark the connector as failed, unless it has reported a failure itself."""
        reporter = self._listeners.get(self.name)
        if reporter is not None and not reporter.failed:
            reporter.on_failure(_trace(error))

    def _reconcile_tasks(self, wanted: WantedConnector) -> None:
        tasks = {} if wanted.target_state is TargetState.STOPPED else dict(enumerate(wanted.tasks))
        mine = {
            number: (wanted.config, task)
            for number, task in tasks.items()
            if self._parts.assignment.runs_task(TaskId(self.name, number))
        }
        fences = bool(mine) and wanted.unfenced is not None and self._fences(wanted)
        ended = [
            number
            for number in self._tasks
            if fences or self._tasks[number] != mine.get(number)  # fenced, too
        ]
        self._stop_tasks(ended)
        for number in self._parts.statuses.tasks(self.name):
            if number not in tasks:
                self._detach([TaskId(self.name, number)])
                self._parts.statuses.remove(TaskId(self.name, number))
        if fences:
            self._fence_tasks(wanted)
        for number in mine:
            if number not in self._tasks:
                self._start_task(number, wanted)

    def _fences(self, wanted: WantedConnector) -> bool:
        try:
            return self._parts.worker.fences_tasks(wanted.config)
        except ConnectError:
            return False  # the class is missing: its tasks fail when they start

    def _fence_tasks(self, wanted: WantedConnector) -> None:
        """Fence the tasks of earlier generations, which may have read the same data."""
        resolved = self._parts.providers.resolve(wanted.config)
        self._parts.worker.fence_tasks(self.name, resolved, wanted.unfenced or 0)
        self._parts.configs.put_fencing(self.name, len(wanted.tasks))

    def _confirm(self, generation: int) -> None:
        """Raise TaskStopped if another worker has replaced the tasks since they were started."""
        configs = self._parts.configs
        configs.refresh()
        current = configs.connector(self.name)
        if current is None or current.generation != generation:
            raise TaskStopped(f'the tasks of connector "{self.name}" have changed')

    def _start_task(self, number: int, wanted: WantedConnector) -> None:
        task = TaskId(self.name, number)
        reporter = self._new_reporter(task)
        self._tasks[number] = (wanted.config, wanted.tasks[number])
        try:
            resolve = self._parts.providers.resolve
            self._parts.worker.start_task(
                task,
                resolve(wanted.config),
                resolve(wanted.tasks[number]),
                reporter,
                wanted.target_state,
                lambda: self._confirm(wanted.generation),
            )
        except Exception as error:
            reporter.on_failure(_trace(error))

    def _stop_tasks(self, numbers: Sequence[int]) -> None:
        ended = [number for number in numbers if self._tasks.pop(number, None) is not None]
        if not ended:
            return
        try:
            self._parts.worker.stop_tasks([TaskId(self.name, number) for number in ended])
        except MillstreamError as error:
            logger.warning('tasks of connector "%s" did not stop: %s', self.name, error)

    # --- restarts -----------------------------------------------------------------------------

    def _restart_connector(self) -> None:
        wanted = self._parts.configs.connector(self.name)
        if wanted is None:
            return
        self._stop_connector()
        self._start_connector(wanted)
        self._reconcile()
        status = self._parts.statuses.get(self.name)
        if status is not None and status.state is State.FAILED:
            raise ConnectError(f"Failed to start connector: {self.name}")

    def _restart_tasks(self, numbers: Sequence[int]) -> None:
        self._stop_tasks(numbers)
        self._reconcile()

    def _restart(self, request: RestartRequest) -> None:
        plan = restart_plan(self.name, self._parts.statuses, request)
        tasks = [subject.task for subject in plan if isinstance(subject, TaskId)]
        if self.name in plan:
            self._stop_connector()
        self._stop_tasks(tasks)
        for subject in plan:
            status = self._parts.statuses.get(subject)
            if status is not None:
                restarting = replace(status, state=State.RESTARTING, trace=None, version=None)
                self._parts.statuses.put(subject, restarting)
        self._reconcile()

    # --- states -------------------------------------------------------------------------------

    def _new_reporter(self, subject: Subject) -> "_Reporter":
        self._detach([subject])
        reporter = _Reporter(subject, self._parts, self._version())
        self._listeners[subject] = reporter
        return reporter

    def _detach(self, subjects: Iterable[Subject]) -> None:
        """Ignore reports of earlier instances, which may still be stopping."""
        for subject in subjects:
            reporter = self._listeners.pop(subject, None)
            if reporter is not None:
                reporter.detach()

    def _version(self) -> str | None:
        wanted = self._parts.configs.connector(self.name)
        name = "" if wanted is None else wanted.config.get("connector.class", "")
        try:
            kind = self._parts.plugins.kind_of(name)
            return None if kind is None else self._parts.plugins.version(kind, name)
        except ConnectError:
            return None


def restart_plan(name: str, statuses: StatusStore, request: RestartRequest) -> list[Subject]:
    """The parts of a connector to restart: itself, its tasks, or the failed ones."""
    candidates: dict[Subject, Status] = {}
    own = statuses.get(name)
    if own is not None:
        candidates[name] = own
    if request.include_tasks:
        candidates |= {TaskId(name, number): each for number, each in statuses.tasks(name).items()}
    return [
        subject
        for subject, status in candidates.items()
        if status.state is State.FAILED or not request.only_failed
    ]


class _Reporter:
    """A StatusListener that stores the states of one connector or task."""

    def __init__(self, subject: Subject, parts: SupervisorParts, version: str | None) -> None:
        self._subject = subject
        self._parts = parts
        self._version = version
        self._attached = True
        self.failed = False

    def detach(self) -> None:
        """Store no more states."""
        self._attached = False

    def on_startup(self) -> None:
        self._put(State.RUNNING)

    def on_running(self) -> None:
        self._put(State.RUNNING)

    def on_paused(self) -> None:
        self._put(State.PAUSED)

    def on_stopped(self) -> None:
        self._put(State.STOPPED)

    def on_failure(self, trace: str) -> None:
        self.failed = True
        self._put(State.FAILED, trace)

    def on_shutdown(self) -> None:
        self._put(State.UNASSIGNED)

    def _put(self, state: State, trace: str | None = None) -> None:
        if not self._attached:
            return
        assignment = self._parts.assignment
        version = None if state is State.UNASSIGNED else self._version
        self._parts.statuses.put(
            self._subject,
            Status(state, assignment.worker_id, trace, assignment.generation, version),
        )


def _trace(error: BaseException) -> str:
    return hide_in_text(stack_traces.format_error(error))
