"""Deadline: when an endless query is stopped."""

from broker.clock import Clock

TURN_MS = 100


class Deadline:
    """The time that is left; unlimited without a timeout."""

    def __init__(self, clock: Clock, timeout_ms: int | None) -> None:
        self._clock = clock
        self._end_ms = None if timeout_ms is None else clock.monotonic_ms() + timeout_ms

    def wait_ms(self) -> int:
        """How long to wait for the next row: a short turn, and 0 when the time is up."""
        if self._end_ms is None:
            return TURN_MS
        return int(max(0, min(TURN_MS, self._end_ms - self._clock.monotonic_ms())))

    @property
    def is_over(self) -> bool:
        """Whether the time is up."""
        return self.wait_ms() == 0
