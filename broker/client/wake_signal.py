"""Signal: wakes the polling thread from the network thread."""

from collections.abc import Callable

from broker import concurrency
from broker.clock import Clock


class Signal:
    """Any thread sets it; one thread waits for it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = concurrency.Condition()
        self._is_set = False
        self.listener: Callable[[], None] | None = None  # called as well when it is set

    def set(self) -> None:
        """Wake the waiting thread; if none waits, the next wait returns immediately."""
        with self._changed:
            self._is_set = True
            self._changed.notify_all()
        if self.listener is not None:
            self.listener()

    def wait(self, timeout_ms: int | None) -> bool:
        """Wait until it is set, and clear it; False on a timeout."""
        with self._changed:
            if not self._is_set and (timeout_ms is None or timeout_ms > 0):
                self._clock.wait(self._changed, timeout_ms)
            was_set, self._is_set = self._is_set, False
            return was_set
