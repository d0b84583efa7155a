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
        """Milliseconds that never go back; only differences mean anything."""
        ...

    def wait(self, condition: concurrency.Condition, timeout_ms: int | None) -> bool:
        """Wait on a held condition; False when the time ran out first."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_ms(self) -> int:
        """Milliseconds since some start."""
        return time.monotonic_ns() // 1_000_000

    def wait(self, condition: concurrency.Condition, timeout_ms: int | None) -> bool:
        """Wait on a held condition; False when the time ran out first."""
        return condition.wait(None if timeout_ms is None else timeout_ms / 1000)


class _Looks(concurrency.local):
    """What one thread knows of the time."""

    first_ms: int | None = None  # what it saw when it first looked after its last wait


class ManualClock:
    """A clock that a test moves by hand; waiting threads wake when it moves.

    A thread looks at the time, computes how long to wait, then waits: when the test moves the clock
    in between, the wait counts from the look, or it would be for a time that has passed already.
    """

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._wall_ahead_ms = 0
        self._lock = concurrency.Lock()
        self._waiting: list[tuple[int, concurrency.Condition]] = []  # with their deadlines
        self._looks = _Looks()

    def now_ms(self) -> int:
        """The instant set by the test."""
        return self._now_ms + self._wall_ahead_ms

    def set_wall_clock(self, now_ms: int) -> None:
        """Set the time of day, also back; monotonic time continues as if nothing had happened."""
        self._wall_ahead_ms = now_ms - self._now_ms

    def monotonic_ms(self) -> int:
        """Manual time without what was set by `set_wall_clock`: it only goes forward."""
        now_ms = self._now_ms
        if self._looks.first_ms is None:
            self._looks.first_ms = now_ms
        return now_ms

    def advance(self, milliseconds: int) -> None:
        """Move time forward and wake the waiting threads."""
        assert milliseconds >= 0, "time does not go back"
        with self._lock:
            self._now_ms += milliseconds
            due = [condition for deadline, condition in self._waiting if deadline <= self._now_ms]
        for condition in due:
            with condition:
                condition.notify_all()

    def wait(self, condition: concurrency.Condition, timeout_ms: int | None) -> bool:
        """Wait on a held condition until notified or manual time has passed the deadline."""
        looked_ms, self._looks.first_ms = self._looks.first_ms, None
        if timeout_ms is None:
            return condition.wait()
        with self._lock:
            entry = ((self._now_ms if looked_ms is None else looked_ms) + timeout_ms, condition)
            is_over = entry[0] <= self._now_ms
            self._waiting.append(entry)
        try:
            # Never with a real timeout: a notification that comes as it ends would be lost.
            if not is_over:
                condition.wait()
        finally:
            with self._lock:
                self._waiting.remove(entry)
        return self._now_ms < entry[0]
