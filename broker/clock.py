"""Clock: the source of time. No other module reads the system's time."""

import time
from typing import Protocol

from broker import concurrency


class Clock(Protocol):
    """Wall time for records and retention, monotonic time for waits."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...

    def monotonic_ms(self) -> int:
        """Milliseconds on a clock that never goes back; only differences are meaningful."""
        ...

    def wait(self, condition: concurrency.Condition, timeout_ms: int | None) -> bool:
        """Wait on a held condition; False after the timeout."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Milliseconds since an arbitrary start."""
        return time.monotonic_ns() // 1_000_000

    def wait(self, condition: concurrency.Condition, timeout_ms: int | None) -> bool:
        """Wait on a held condition; False after the timeout."""
        return condition.wait(None if timeout_ms is None else timeout_ms / 1000)


class _Looks(concurrency.local):
    """The time that one thread has seen."""

    first_ms: int | None = None  # the time of its first read after its last wait


class ManualClock:
    """A clock that a test advances; waiting threads wake when it advances.

    A thread reads the time, computes how long to wait, then waits. If the test advances the clock
    in between, the wait counts from the time that the thread read, so it does not wait for a time
    that has already passed.
    """

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._wall_ahead_ms = 0
        self._lock = concurrency.Lock()
        self._waiting: list[tuple[int, concurrency.Condition]] = []  # with their deadlines
        self._looks = _Looks()

    def now_ms(self) -> int:
        """The time that the test has set."""
        return self._now_ms + self._wall_ahead_ms

    def set_wall_clock(self, now_ms: int) -> None:
        """Set the wall clock, forward or back; monotonic time is not affected."""
        self._wall_ahead_ms = now_ms - self._now_ms

    def monotonic_ms(self) -> int:
        """Manual time without the changes of `set_wall_clock`: it only goes forward."""
        now_ms = self._now_ms
        if self._looks.first_ms is None:
            self._looks.first_ms = now_ms
        return now_ms

    def advance(self, milliseconds: int) -> None:
        """Advance the clock and wake the waiting threads."""
        assert milliseconds >= 0, "time does not go back"
        with self._lock:
            self._now_ms += milliseconds
            due = [condition for deadline, condition in self._waiting if deadline <= self._now_ms]
        for condition in due:
            with condition:
                condition.notify_all()

    def wait(self, condition: concurrency.Condition, timeout_ms: int | None) -> bool:
        """Wait on a held condition until it is notified or manual time reaches the deadline."""
        looked_ms, self._looks.first_ms = self._looks.first_ms, None
        if timeout_ms is None:
            return condition.wait()
        with self._lock:
            entry = ((self._now_ms if looked_ms is None else looked_ms) + timeout_ms, condition)
            is_over = entry[0] <= self._now_ms
            self._waiting.append(entry)
        try:
            # Never with a real timeout: a notification at the same moment would be lost.
            if not is_over:
                condition.wait()
        finally:
            with self._lock:
                self._waiting.remove(entry)
        return self._now_ms < entry[0]
