"""VirtualClock: the time of one simulated machine."""

from broker import concurrency
from millstream.simulation.scheduler import MICROSECONDS, Scheduler

START_MS = 1_700_000_000_000
READ_US = 1  # the cost of reading the clock, so that time passes in polling loops


class VirtualClock:
    """A clock whose wall-clock time can jump; its monotonic time never goes back."""

    def __init__(self, scheduler: Scheduler, *, ahead_ms: int = 0) -> None:
        """`ahead_ms`: how far wall-clock time is ahead of the simulation's time."""
        self._scheduler = scheduler
        self.ahead_ms = self.ahead_max_ms = ahead_ms

    def jump(self, by_ms: int) -> None:
        """Change the wall-clock time permanently."""
        self.ahead_ms += by_ms
        self.ahead_max_ms = max(self.ahead_max_ms, self.ahead_ms)

    def now_ms(self) -> int:
        """The time of day, in milliseconds since the epoch."""
        scheduler = self._scheduler
        scheduler.now_us = now_us = scheduler.now_us + READ_US
        return START_MS + self.ahead_ms + now_us // MICROSECONDS

    def monotonic_ms(self) -> int:
        """Milliseconds since the simulation began."""
        scheduler = self._scheduler
        scheduler.now_us = now_us = scheduler.now_us + READ_US
        return now_us // MICROSECONDS

    def wait(self, condition: concurrency.Condition, timeout_ms: int | None) -> bool:
        """Wait on a held condition; False on timeout."""
        return condition.wait(None if timeout_ms is None else timeout_ms / 1000)
