"""TaskRunner: a thread that owns some tasks, one consumer and one producer; see runner_loop."""

import threading
from collections.abc import Callable

from broker.client.api import Consumer
from streams.runtime import freed_memory, garbage
from streams.runtime.environment import Environment
from streams.runtime.runner_loop import RunnerLoop
from streams.runtime.runner_metrics import RunnerMetrics
from streams.runtime.runner_state import OnFailure, RunnerState
from streams.runtime.runner_tasks import RunnerTasks


class TaskRunner:
    """Runs tasks; `start` and `stop` may be called by any thread."""

    def __init__(
        self,
        name: str,
        around: Environment,
        *,
        on_state: Callable[["TaskRunner", RunnerState], None],
        on_error: Callable[["TaskRunner", BaseException], OnFailure],
        on_end: Callable[["TaskRunner", BaseException | None, OnFailure | None], None],
    ) -> None:
        """Nothing is opened before the thread runs; the callbacks are called by it.

        `on_error` is asked while the runner is still in its group, `on_end` told when it is gone.
        """
        self.name = name
        self.metrics = RunnerMetrics()
        self.state = RunnerState.STARTING
        self.tasks: RunnerTasks | None = None
        self._around = around
        self._config = around.config
        self._clock = around.clock
        self._on_state = on_state
        self._on_error = on_error
        self._on_end = on_end
        self.stopping = threading.Event()
        self.paused = threading.Event()
        self.consumer: Consumer | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"{around.config.application_id}-{name}", daemon=True
        )

    # --- any thread ---------------------------------------------------------------------------

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End soon: commit, leave the group."""
        self.stopping.set()
        consumer = self.consumer
        if consumer is not None:
            consumer.wakeup()

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait for the end; False when the time was up first."""
        if self._thread is threading.current_thread():
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def pause(self) -> None:
        """Process nothing until resumed; the runner stays in its group."""
        self.paused.set()

    def resume(self) -> None:
        """Process again."""
        self.paused.clear()
        consumer = self.consumer
        if consumer is not None:
            consumer.wakeup()

    # --- the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        freed_memory.keep_freed_memory()
        garbage.runner_started()
        error: BaseException | None = None
        answer: OnFailure | None = None
        try:
            loop = RunnerLoop(self._around, self)
            try:
                loop.run()
            except BaseException as failure:
                error = failure
                answer = self._on_error(self, failure)
                loop.tell_shutdown()
            finally:
                loop.close()
        except BaseException as failure:
            error = error or failure
        finally:
            garbage.runner_ended()
            self.enter(RunnerState.DEAD)
            self._on_end(self, error, answer)

    def enter(self, state: RunnerState) -> None:
        """Change the state and tell; the runner's thread only."""
        if state is not self.state:
            self.state = state
            self._on_state(self, state)
