"""Instance: the runners of one process, its global stores, and the handling of failures."""

import itertools
import logging
from collections.abc import Callable, Mapping
from typing import Any

from broker import concurrency
from broker.client.cluster_admin import Admin
from broker.client.opening import Target
from broker.client.shared_threads import SharedThreads
from broker.errors import MillstreamError
from broker.machine import Machine
from streams.config import StreamsConfig
from streams.errors import StateDirectoryLocked, StoreNotReady, StreamsError
from streams.runtime.app_state import ALIVE, ENDED, AppState, StateMachine
from streams.runtime.assignor import ProcessReport
from streams.runtime.clients import Clients
from streams.runtime.environment import Environment
from streams.runtime.global_runner import GlobalRunner
from streams.runtime.internal_topics import TopicSettings, prepare_topics
from streams.runtime.owned_task import OwnedTask, Phase
from streams.runtime.partitions import Layout
from streams.runtime.runner import TaskRunner
from streams.runtime.runner_state import OnFailure, RunnerState, ShutdownRequested
from streams.runtime.runner_tasks import cache_share_bytes, open_state
from streams.runtime.state_directories import StateDirectories
from streams.runtime.task_metrics import TaskMetrics
from streams.state.databases import databases_of
from streams.state.plain_query import without_times
from streams.state.query import query
from streams.state.task_state import TaskState
from streams.topology import Topology

logger = logging.getLogger(__name__)

CLOSE_TIMEOUT_MS = 30_000


FailureHandler = Callable[[BaseException], OnFailure]
Fault = Callable[[str], None]


def stop_this_instance(error: BaseException) -> OnFailure:
    """The default handler of uncaught errors."""
    return OnFailure.SHUTDOWN_CLIENT


class Instance:
    """The part of an application that runs in one process; any thread may call it."""

    def __init__(  # noqa: PLR0913 - its dependencies
        self,
        topology: Topology,
        config: StreamsConfig,
        target: Target,
        *,
        machine: Machine,
        states: StateMachine,
        child: int | None = None,
        fault: Fault = lambda point: None,
        runner_threads: SharedThreads | None = None,
    ) -> None:
        """Without `runner_threads`, each runner has a thread of its own."""
        self._topology = topology
        self._config = config
        self._target = target
        self._machine = machine
        self._clock = machine.clock
        self.databases = databases_of(machine)
        self._states = states
        self._fault = fault
        self._runner_threads = runner_threads
        self.on_failure: FailureHandler = stop_this_instance
        self.directories = StateDirectories(config.state_dir, config.application_id, machine, child)
        self.runners: list[TaskRunner] = []
        self.failed_runners = 0
        self.error: BaseException | None = None
        self.environment: Environment | None = None
        self._global: GlobalRunner | None = None
        self._admin: Admin | None = None
        self._numbers = itertools.count(1)
        self._lock = concurrency.RLock()
        self._paused = False

    # --- start and end ------------------------------------------------------------------------

    def start(self) -> None:
        """Create the internal topics, load global stores, start the runners."""
        self._states.enter(AppState.REBALANCING)
        try:
            self._open()
            for _ in range(self._config.num_stream_threads):
                self.add_runner()
        except BaseException as error:
            self.error = error
            self._states.enter(AppState.PENDING_ERROR)
            self._stop_all(CLOSE_TIMEOUT_MS, commit=True)
            self._states.enter(AppState.ERROR)
            raise

    def _open(self) -> None:
        config, topology = self._config, self._topology
        process_id = self.directories.claim_process_id()
        self.databases.limit_memory(
            config.rocksdb_block_cache_bytes, config.rocksdb_write_buffer_bytes
        )
        persistent_id = self.directories.has_persistent_id
        clients = Clients(self._target, config, process_id, persistent_id=persistent_id)
        self._admin = clients.admin()
        layout = prepare_topics(
            self._admin,
            topology,
            config.application_id,
            TopicSettings.of(config),
            self._clock,
        )
        global_stores: Mapping[str, Any] = {}
        if topology.global_stores:
            self._global = GlobalRunner(
                topology,
                config,
                self._machine,
                directory=self.directories.of_global_stores(),
                cache_bytes=cache_share_bytes(topology, layout, config),
                open_consumer=clients.global_consumer,
                on_failure=self._global_failed,
            )
            self._global.start()
            global_stores = self._global.views()
        report = ProcessReport(process_id, config.application_server)
        self._report_disk(layout, report)
        self.environment = Environment(
            config,
            topology,
            clients,
            self._admin,
            self._machine,
            self.directories,
            report,
            layout,
            global_stores,
            self._fault,
        )

    def _report_disk(self, layout: Layout, report: ProcessReport) -> None:
        """Report the positions of the stores that an earlier run left on this disk."""
        stateful = layout.stateful_tasks()
        for task in self.directories.tasks_on_disk():
            if task not in stateful:
                continue
            try:
                directory = self.directories.lock(task)
            except StateDirectoryLocked:
                continue
            try:
                path = directory.path
                state = open_state(layout, self._config, task, path, self.databases)
                positions = [state.position(store) or 0 for store in layout.changelogs(task)]
                state.close()
                report.set_position(task, sum(positions))
            finally:
                directory.release()

    def close(self, timeout_ms: int = CLOSE_TIMEOUT_MS, *, commit: bool = True) -> bool:
        """Commit, leave the group and stop; returns False on timeout."""
        if self._states.enter(AppState.PENDING_SHUTDOWN):
            done = self._stop_all(timeout_ms, commit=commit)
            self._states.enter(AppState.NOT_RUNNING)
            return done
        return self._states.wait_for(ENDED, timeout_ms)

    def _stop_all(self, timeout_ms: int, *, commit: bool) -> bool:
        with self._lock:
            runners = list(self.runners)
        for runner in runners:
            if commit:
                runner.stop()
            else:
                runner.abandon()
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        done = True
        for runner in runners:
            left_ms = max(0, deadline_ms - self._clock.monotonic_ms())
            done &= runner.join(left_ms / 1000)
        if self._global is not None:
            self._global.stop()
        if done:
            if self._admin is not None:
                self._admin.close()
            self.directories.release_process_id()
        return done

    # --- runners ------------------------------------------------------------------------------

    def add_runner(self) -> str:
        """Start one more runner; returns its name."""
        assert self.environment is not None, "the instance was started"
        with self._lock:
            names = {runner.name for runner in self.runners}
            name = next(name for n in itertools.count(1) if (name := f"runner-{n}") not in names)
            runner = TaskRunner(
                name,
                self.environment,
                on_state=self._runner_changed,
                on_error=self._handle_error,
                on_end=self._runner_ended,
                shared=self._runner_threads,
            )
            if self._paused:
                runner.pause()
            self.runners.append(runner)
            runner.start()
        return name

    def remove_runner(self, timeout_ms: int = CLOSE_TIMEOUT_MS) -> str | None:
        """Stop the runner that was started last; returns its name, or None."""
        with self._lock:
            alive = [runner for runner in self.runners if runner.state is not RunnerState.DEAD]
            if not alive:
                return None
            runner = alive[-1]
        runner.stop()
        runner.join(timeout_ms / 1000)
        return runner.name

    def pause(self) -> None:
        """Pause processing until `resume`."""
        with self._lock:
            self._paused = True
            for runner in self.runners:
                runner.pause()

    def resume(self) -> None:
        """Resume processing."""
        with self._lock:
            self._paused = False
            for runner in self.runners:
                runner.resume()

    @property
    def paused(self) -> bool:
        """Whether processing is paused."""
        return self._paused

    # --- stores -------------------------------------------------------------------------------

    # Any: only the caller knows the kind of the store.
    def store(
        self,
        name: str,
        *,
        partition: int | None = None,
        stale: bool = False,
        timestamped: bool = False,
    ) -> Any:
        """A read-only view of a store, over the partitions of this instance."""
        view = query(name, self._views(name, partition, stale=stale))
        return view if timestamped else without_times(self._topology.store_spec(name).kind, view)

    def _views(self, name: str, partition: int | None, *, stale: bool) -> list[Any]:
        environment = self.check_running()
        if name in environment.global_stores:
            return [environment.global_stores[name]]
        self._topology.store_spec(name)
        if self._states.state is not AppState.RUNNING and not stale:
            raise StoreNotReady(
                f'store "{name}" cannot be read: the application is {self._states.state.value}',
                hint="wait until it is running, or query with stale=True",
            )
        return [
            owned.state.view(name)
            for owned in self.tasks()
            if name in owned.state.names
            and (stale or owned.phase is Phase.RUNNING)
            and partition in (None, owned.task_id.partition)
        ]

    def tasks(self) -> list[OwnedTask]:
        """All tasks and standbys of this process."""
        with self._lock:
            tasks = [runner.tasks for runner in self.runners if runner.tasks is not None]
        return sorted(
            (owned for each in tasks for owned in each.snapshot), key=lambda each: each.task_id
        )

    # --- callbacks of runners, in their threads -----------------------------------------------

    def _runner_changed(self, runner: TaskRunner, state: RunnerState) -> None:
        # Runners may call this at the same time: the state is computed under the lock.
        self._states.choose(self._state_of_runners)

    def _state_of_runners(self) -> AppState | None:
        alive = [each.state for each in tuple(self.runners) if each.state is not RunnerState.DEAD]
        if alive and all(each is RunnerState.RUNNING for each in alive):
            return AppState.RUNNING
        return AppState.REBALANCING if RunnerState.REBALANCING in alive else None

    def _handle_error(self, runner: TaskRunner, error: BaseException) -> OnFailure:
        if isinstance(error, ShutdownRequested):
            return OnFailure.SHUTDOWN_CLIENT
        self._log(runner.name, error)
        answer = self.on_failure(error)
        if answer is OnFailure.SHUTDOWN_APPLICATION and self.environment is not None:
            self.environment.report.shutdown = True
        return answer

    def _runner_ended(
        self, runner: TaskRunner, error: BaseException | None, answer: OnFailure | None
    ) -> None:
        with self._lock:
            self.runners.remove(runner)
            self.failed_runners += error is not None
        if error is None:
            return
        with self._lock:  # otherwise stopping all runners could miss the new one
            replaced = answer is OnFailure.REPLACE_RUNNER and self._states.state in ALIVE
            if replaced:
                self.add_runner()
        if not replaced:
            self._fail(error)

    def _global_failed(self, error: BaseException) -> None:
        self._log("the runner of global stores", error)
        self._fail(error)

    def _log(self, who: str, error: BaseException) -> None:
        """Log a failure; with a traceback, unless it is one of our own errors."""
        trace = None if isinstance(error, MillstreamError) else error
        logger.error("%s of %s failed: %s", who, self._config.application_id, error, exc_info=trace)

    def _fail(self, error: BaseException) -> None:
        """Stop everything because of an error, in a separate thread."""
        self.error = error
        if not self._states.enter(AppState.PENDING_ERROR):
            return

        def stop() -> None:
            try:
                self._stop_all(CLOSE_TIMEOUT_MS, commit=True)
            except MillstreamError as failure:
                logger.warning("the instance did not stop cleanly: %s", failure)
            finally:
                self._states.enter(AppState.ERROR)

        concurrency.Thread(target=stop, name=f"{self._config.application_id}-stop").start()

    @property
    def application_id(self) -> str:
        """The application id."""
        return self._config.application_id

    @property
    def topology(self) -> Topology:
        """The topology of the application."""
        return self._topology

    def now_ms(self) -> int:
        """The current time, as tasks see it."""
        return self._clock.now_ms()

    def global_state(self) -> tuple[TaskState, TaskMetrics] | None:
        """The global stores and their metrics."""
        return None if self._global is None else (self._global.state, self._global.metrics)

    def check_running(self) -> Environment:
        """The environment of the runners; raises before the start."""
        if self.environment is None:
            raise StreamsError("the application has not started", hint="call start() first")
        return self.environment
