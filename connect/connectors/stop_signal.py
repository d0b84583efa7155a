"""StopSignal: how a source task waits by its clock and is woken to stop."""

import threading

from broker.clock import Clock


class StopSignal:
    """Set once, from any thread; until then a task waits on it instead of sleeping."""

    def __init__(self, clock: Clock) -> None:
        """Not set yet."""
        self._clock = clock
        self._condition = threading.Condition()
        self._is_set = False

    def set(self) -> None:
        """Wakes the task that waits, and everyone who would wait later."""
        with self._condition:
            self._is_set = True
            self._condition.notify_all()

    @property
    def is_set(self) -> bool:
        """Whether the task shall stop."""
        return self._is_set

    def wait(self, timeout_ms: int) -> bool:
        """Waits until it is set or the time is over; True when it is set."""
        deadline_ms = self._clock.monotonic_ms() + timeout_ms
        with self._condition:
            while not self._is_set:
                left_ms = deadline_ms - self._clock.monotonic_ms()
                if left_ms <= 0:
                    break
                self._clock.wait(self._condition, left_ms)
            return self._is_set
