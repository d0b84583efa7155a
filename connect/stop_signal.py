"""StopSignal: ends all waits of a task that must stop."""

from broker import concurrency
from broker.clock import Clock
from connect.errors import ConnectError


class TaskStopped(ConnectError):
    """The task was stopped while it waited; the operation was not completed."""


class StopSignal:
    """Set once, by any thread; ends waits early."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = concurrency.Condition()
        self.event = concurrency.Event()  # for tasks, which wait on the machine's clock

    def set(self) -> None:
        """End all waits, now and from now on."""
        with self._changed:
            self.event.set()
            self._changed.notify_all()

    def is_set(self) -> bool:
        """Whether the task must stop."""
        return self.event.is_set()

    def wake(self) -> None:
        """Make waiting threads check their conditions again."""
        with self._changed:
            self._changed.notify_all()

    def wait(self, timeout_ms: int) -> bool:
        """Wait for the signal or the timeout; whether it is set."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        with self._changed:
            while not self.event.is_set():
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    break
                self._clock.wait(self._changed, left_ms)
        return self.event.is_set()

    def pause(self, timeout_ms: int) -> None:
        """Wait for the timeout; raises TaskStopped if the signal comes first."""
        if self.wait(timeout_ms):
            raise TaskStopped("the task was stopped while it waited to retry")
