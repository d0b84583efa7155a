"""Samples: averages, rates, minima and maxima of recent measurements.

Kafka's metrics cover two windows of 30 seconds: the current one and the one before it. A
measurement costs two additions and two comparisons; everything else is computed on request.
"""

from broker.clock import Clock

WINDOW_MS = 30_000


class _Window:
    """The measurements of one time span."""

    __slots__ = ("count", "largest", "smallest", "start_ms", "total")

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self.count = 0
        self.total = 0.0
        self.largest = 0.0
        self.smallest = 0.0


class Samples:
    """One thread adds measurements, any thread may read."""

    __slots__ = ("_before", "_clock", "_now")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._now = _Window(clock.monotonic_ms())
        self._before = _Window(self._now.start_ms)

    def add(self, value: float) -> None:
        """Add a measurement."""
        window = self._current()
        if not window.count or value > window.largest:
            window.largest = value
        if not window.count or value < window.smallest:
            window.smallest = value
        window.total += value
        window.count += 1

    @property
    def average(self) -> float:
        """The mean of the measurements; 0 if there are none."""
        windows = self._windows()
        count = sum(window.count for window in windows)
        return sum(window.total for window in windows) / count if count else 0.0

    @property
    def largest(self) -> float:
        """The largest measurement; 0 if there are none."""
        return max((window.largest for window in self._windows() if window.count), default=0.0)

    @property
    def smallest(self) -> float:
        """The smallest measurement; 0 if there are none."""
        return min((window.smallest for window in self._windows() if window.count), default=0.0)

    @property
    def per_second(self) -> float:
        """The sum of the measurements divided by their time span, which is at least a window."""
        windows = self._windows()
        span_ms = max(self._clock.monotonic_ms() - windows[-1].start_ms, WINDOW_MS)
        return sum(window.total for window in windows) * 1000 / span_ms

    def _windows(self) -> tuple[_Window, _Window]:
        return self._current(), self._before

    def _current(self) -> _Window:
        now_ms = self._clock.monotonic_ms()
        window = self._now
        if now_ms - window.start_ms >= WINDOW_MS:
            is_next = now_ms - window.start_ms < 2 * WINDOW_MS
            self._before = window if is_next else _Window(now_ms - WINDOW_MS)
            window = self._now = _Window(now_ms)
        return window
