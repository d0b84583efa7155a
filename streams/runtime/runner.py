"""TaskRunner: runs tasks with one consumer and one producer; see runner_loop.

It has a thread of its own, or runs on threads that the runners of many applications share.
"""

import logging
from collections.abc import Callable, Iterator

from broker import concurrency, garbage
from broker.client.record_consumer import Consumer
from broker.client.shared_threads import SharedThreads, Work
from streams.runtime import freed_memory
from streams.runtime.environment import Environment
from streams.runtime.production import Production
from streams.runtime.runner_loop import RunnerLoop
from streams.runtime.runner_metrics import RunnerMetrics
from streams.runtime.runner_state import OnFailure, RunnerState
from streams.runtime.runner_tasks import RunnerTasks

logger = logging.getLogger(__name__)


class TaskRunner:
    """Runs tasks; `start` and `stop` may be called by any thread."""

    def __init__(
        self,
        name: str,
        environment: Environment,
        *,
        on_state: Callable[["TaskRunner", RunnerState], None],
        on_error: Callable[["TaskRunner", BaseException], OnFailure],
        on_end: Callable[["TaskRunner", BaseException | None, OnFailure | None], None],
        shared: SharedThreads | None = None,
    ) -> None:
        """The runner's thread calls the callbacks: `on_error` while still a member of its group,
        `on_end` after it has left.
        """
        self.name = name
        self.metrics = RunnerMetrics()
        self.state = RunnerState.STARTING
        self.tasks: RunnerTasks | None = None
        self._environment = environment
        self._config = environment.config
        self._clock = environment.clock
        self._on_state = on_state
        self._on_error = on_error
        self._on_end = on_end
        self.stopping = concurrency.Event()
        self.abandoned = concurrency.Event()
        self.paused = concurrency.Event()
        self.production: Production | None = None
        self.consumer: Consumer | None = None
        self._shared = shared
        self._thread: concurrency.Thread | None = None
        self._work: Work | None = None
        self._iterations = self._run_iterations()

    # --- any thread ---------------------------------------------------------------------------

    def start(self) -> None:
        """Start the thread, or run on the shared threads."""
        if self._shared is not None:
            self._work = self._shared.run(self._run_once)
            return
        name = f"{self._config.application_id}-{self.name}"
        self._thread = concurrency.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Signal the runner to stop: it commits and leaves the group."""
        self.stopping.set()
        self._wake_consumer()

    def abandon(self) -> None:
        """Signal the runner to stop without a commit, because the application is being deleted."""
        self.abandoned.set()
        self.stopping.set()
        production = self.production
        if production is not None:
            production.abandon()
        self._wake_consumer()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait until the runner has stopped; False on timeout."""
        if self._work is not None:
            return self._work.join(timeout_s)
        if self._thread is None or self._thread is concurrency.current_thread():
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def pause(self) -> None:
        """Commit, then stop fetching and processing; the runner stays in its group."""
        self.paused.set()
        self._wake_consumer()

    def resume(self) -> None:
        """Resume fetching and processing."""
        self.paused.clear()
        self._wake_consumer()

    def _wake_consumer(self) -> None:
        consumer = self.consumer
        if consumer is not None:
            consumer.wakeup()

    # --- the thread ---------------------------------------------------------------------------

    @property
    def shares_thread(self) -> bool:
        """Whether the runner shares its thread, so that it must not wait."""
        return self._shared is not None

    def wake_up(self) -> None:
        """Run the next iteration now; any thread may call this."""
        if self._work is not None:
            self._work.wake()

    def _run(self) -> None:
        for _ in self._iterations:
            pass

    def _run_once(self) -> int | None:
        return next(self._iterations, None)

    def _run_iterations(self) -> Iterator[int]:
        """Run the loop; after each iteration, yields the delay in ms until the next one is due."""
        freed_memory.keep_freed_memory()
        rounds_ended = garbage.rounds_began()
        try:
            yield from self._run_loop()
        finally:
            rounds_ended()

    def _run_loop(self) -> Iterator[int]:
        loop: RunnerLoop | None = None
        error: BaseException | None = None
        answer: OnFailure | None = None
        try:
            loop = RunnerLoop(self._environment, self)
            yield from loop.run()
        except GeneratorExit:
            return  # the shared threads have been closed, so there are no listeners
        except BaseException as failure:
            error = failure
        try:
            if loop is not None:
                answer = self._close(loop, error)
        finally:
            self.enter(RunnerState.DEAD)
            self._on_end(self, error, answer)

    def _close(self, loop: RunnerLoop, error: BaseException | None) -> OnFailure | None:
        """Release everything; returns what to do about the error, if there was one."""
        answer: OnFailure | None = None
        try:
            if error is not None:
                answer = self._on_error(self, error)
                loop.report_shutdown()
        except Exception as later:
            logger.warning("%s could not report its failure: %s", self.name, later)
        finally:
            loop.close()
        return answer

    def enter(self, state: RunnerState) -> None:
        """Change the state and report it; only the runner's thread calls this."""
        if state is not self.state:
            self.state = state
            self._on_state(self, state)
