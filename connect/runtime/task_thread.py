"""TaskThread: runs one task from its start to its end, and reports its state.

                       ┌──────── paused ◄───────┐
                       ▼                        │ pause / resume
    build ──► start ──► running ────────────────┘
      │         │          │
      │ raises  │ raises   ├── stop ───► finish ──► close     on_shutdown
      ▼         ▼          └── raises ─► finish ──► close     on_failure(trace)
    on_failure(trace)

All code of the task runs in this thread, including constructors: if it hangs, it blocks nothing
else. A task that does not stop can be abandoned: its clients are closed, and its state is no longer
reported.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from broker import concurrency, garbage, stack_traces
from broker.clock import Clock
from connect.config.hidden_values import hide_in_text
from connect.runtime.metrics import TaskMetrics
from connect.state.task_state import StatusListener, TargetState, TaskId
from connect.stop_signal import StopSignal, TaskStopped

logger = logging.getLogger(__name__)

STEP_MS = 500


class TaskBody(Protocol):
    """A source or sink task in its thread; other threads may call only the methods that say so."""

    @property
    def polls_while_paused(self) -> bool:
        """Whether turns continue during a pause: a consumer must poll to stay in its group."""
        ...

    @property
    def has_steps(self) -> bool:
        """Whether `step` does anything."""
        ...

    @property
    def metrics(self) -> TaskMetrics: ...

    def start(self) -> None:
        """Start the task."""
        ...

    def turn(self) -> None:
        """Run one iteration of the loop."""
        ...

    def pause(self) -> None:
        """The connector was paused."""
        ...

    def resume(self) -> None:
        """The connector was resumed."""
        ...

    def finish(self, *, failed: bool) -> None:
        """The last turn has ended: commit what can be committed."""
        ...

    def close(self) -> None:
        """Stop the task and release its resources."""
        ...

    def wake(self) -> None:
        """End the wait of a turn early; any thread may call it."""
        ...

    def ask_to_stop(self) -> None:
        """The stop signal is set: stop the task; any thread may call it."""
        ...

    def step(self) -> None:
        """Do what is due while a turn waits; any thread may call it."""
        ...

    def abandon(self) -> None:
        """Close the clients without waiting; any thread may call it."""
        ...


# Creates a task and its parts; runs in the task's thread, and may wait for the broker.
BuildBody = Callable[[StopSignal], TaskBody]


class TaskThread:
    """One task and its thread."""

    def __init__(
        self,
        task_id: TaskId,
        build: BuildBody,
        listener: StatusListener,
        clock: Clock,
        secrets: Sequence[str] = (),
    ) -> None:
        """Secrets are removed from traces."""
        self._secrets = secrets
        self.task_id = task_id
        self.metrics = TaskMetrics(clock)
        self._build = build
        self._listener = listener
        self._clock = clock
        self._stop = StopSignal(clock)
        self._steps_over = StopSignal(clock)
        self._body: TaskBody | None = None
        self._target = TargetState.STARTED
        self._paused = False
        self._abandoned = False
        self._changed = concurrency.Condition()
        self._ended = False
        self._thread = concurrency.Thread(target=self._run, name=f"connect-{task_id}", daemon=True)

    # --- any thread ----------------------------------------------------------------------------

    def start(self, target: TargetState) -> None:
        """Start the thread, in this target state."""
        self._target = target
        self._thread.start()

    def set_target(self, target: TargetState) -> None:
        """Pause or resume, asynchronously."""
        with self._changed:
            self._target = target
            self._changed.notify_all()
        if self._body is not None:
            self._body.wake()

    def stop_soon(self) -> None:
        """Stop asynchronously."""
        self._stop.set()
        self._steps_over.set()
        with self._changed:
            self._changed.notify_all()
        body = self._body
        if body is not None:
            body.wake()
            # A task's `stop` may hang: it must not block other tasks.
            self._run_in_thread("stop", body.ask_to_stop)

    def wait_ended(self, timeout_ms: int) -> bool:
        """Wait until it has stopped; False on a timeout."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        with self._changed:
            while not self._ended:
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    return False
                self._clock.wait(self._changed, left_ms)
        return True

    def abandon(self) -> None:
        """Abandon the task: its state is no longer reported."""
        self._abandoned = True
        logger.error("task %s does not stop: its thread is abandoned", self.task_id)
        if self._body is not None:
            self._run_in_thread("abandon", self._body.abandon)

    def _run_in_thread(self, what: str, call: Callable[[], None]) -> None:
        name = f"connect-{what}-{self.task_id}"
        concurrency.Thread(target=call, name=name, daemon=True).start()

    # --- the task's thread ---------------------------------------------------------------------

    def _run(self) -> None:
        try:
            failure = self._run_task()
            if failure is None:
                self.metrics.states.enter("unassigned")
                self._notify(self._listener.on_shutdown)
            else:
                self.metrics.states.enter("failed")
                self._notify(lambda: self._listener.on_failure(failure))
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _run_task(self) -> str | None:
        """Run the task from start to end; returns the trace if it failed."""
        failure = None
        try:
            self._wait_for_start()
            if not self._stop.is_set():
                self._work()
        except TaskStopped:
            logger.debug("task %s was stopped while it waited", self.task_id)
        except BaseException as error:
            failure = self._trace(error)
        try:
            if self._body is not None:
                self._body.close()
        except Exception:
            logger.exception("task %s: closing failed", self.task_id)
        return failure

    def _work(self) -> None:
        body = self._body = self._build(self._stop)
        self.metrics = body.metrics
        body.start()
        self.metrics.states.enter("running")
        self._notify(self._listener.on_startup)
        if body.has_steps:
            # Each task has its own thread: a step may wait for a producer that is blocked.
            self._run_in_thread("offsets", lambda: self._step_regularly(body))
        rounds_ended = garbage.rounds_began()
        try:
            while not self._stop.is_set():
                if self._paused or self._target is TargetState.PAUSED:
                    self._pause_or_resume(body)
                if not self._paused or body.polls_while_paused:
                    body.turn()
                garbage.collect_when_due()
        except TaskStopped:
            logger.debug("task %s was stopped while it waited", self.task_id)
        except BaseException:
            self._finish_failed(body)
            raise
        finally:
            self._steps_over.set()
            rounds_ended()
        if not self._abandoned:
            body.finish(failed=False)

    def _step_regularly(self, body: TaskBody) -> None:
        """Call `step` regularly, in a separate thread."""
        while not self._steps_over.wait(STEP_MS):
            try:
                body.step()
            except Exception:
                logger.exception("task %s: storing offsets failed", self.task_id)

    def _finish_failed(self, body: TaskBody) -> None:
        try:
            if not self._abandoned:
                body.finish(failed=True)
        except Exception:
            logger.exception("task %s failed, and so did its last commit", self.task_id)

    def _wait_for_start(self) -> None:
        """Wait until a task that starts paused is resumed."""
        if self._target is TargetState.PAUSED:
            self.metrics.states.enter("paused")
            self._notify(self._listener.on_paused)
            self._wait_while_paused()

    def _pause_or_resume(self, body: TaskBody) -> None:
        """Apply the target state; a task that does not poll while paused waits here."""
        if not self._paused:
            self._paused = True
            body.pause()
            self.metrics.states.enter("paused")
            self._notify(self._listener.on_paused)
        if not body.polls_while_paused:
            self._wait_while_paused()
        if self._target is not TargetState.PAUSED:
            self._paused = False
            body.resume()
            self.metrics.states.enter("running")
            self._notify(self._listener.on_running)

    def _wait_while_paused(self) -> None:
        with self._changed:
            while self._target is TargetState.PAUSED and not self._stop.is_set():
                self._changed.wait()

    def _trace(self, error: BaseException) -> str:
        trace = hide_in_text(stack_traces.format_error(error), self._secrets)
        logger.error(
            "task %s failed and will not continue until it is restarted\n%s", self.task_id, trace
        )
        return trace

    def _notify(self, notify: Callable[[], None]) -> None:
        if self._abandoned:
            return
        try:
            notify()
        except Exception:
            logger.exception("task %s: its status could not be reported", self.task_id)
