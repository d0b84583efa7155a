"""Deadline: the time limit of a query."""

from broker.clock import Clock

TURN_MS = 100


class Deadline:
    """The remaining time; unlimited without a timeout."""

    def __init__(self, clock: Clock, timeout_ms: int | None) -> None:
        self._clock = clock
        self._end_ms = None if timeout_ms is None else clock.monotonic_ms() + timeout_ms

    def wait_ms(self) -> int:
        """How long to wait for the next row: a short time, 0 after the timeout."""
        if self._end_ms is None:
            return TURN_MS
        return int(max(0, min(TURN_MS, self._end_ms - self._clock.monotonic_ms())))

    @property
    def is_over(self) -> bool:
        """Whether the timeout has expired."""
        return self.wait_ms() == 0
