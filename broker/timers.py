"""Timers: calls at given times, on the injected clock.

A failure is logged and does not affect other timers; a repeated timer is called again at its next
time.
"""

import heapq
import itertools
import logging
from collections.abc import Callable, Iterator
from functools import partial

from broker import concurrency
from broker.clock import Clock

PART_MS = 10

logger = logging.getLogger(__name__)


class Timer:
    """One scheduled call; cancelling it is cheap."""

    __slots__ = ("callback", "due_ms")

    def __init__(self, due_ms: int, callback: Callable[[], None]) -> None:
        self.due_ms = due_ms
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        """Cancel the call; the heap removes it at its time."""
        self.callback = None


class Timers:
    """A heap of timers. Scheduling an earlier timer wakes the thread that runs them."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[int, int, Timer]] = []
        self._order = itertools.count()
        self._changed = concurrency.Condition()
        self._woken = False  # since the last wait

    def schedule(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """Call back after a delay, under the lock that the runner of timers holds."""
        timer = Timer(self._clock.monotonic_ms() + delay_ms, callback)
        with self._changed:
            first = not self._heap or timer.due_ms < self._heap[0][0]
            heapq.heappush(self._heap, (timer.due_ms, next(self._order), timer))
            if first:
                self._changed.notify()
        return timer

    def repeat(self, interval_ms: int, callback: Callable[[], None]) -> None:
        """Call back periodically, even if a call fails."""

        def run() -> None:
            try:
                callback()
            finally:
                self.schedule(interval_ms, run)

        self.schedule(interval_ms, run)

    def run_in_parts(self, parts: Iterator[object]) -> None:
        """Work for a while, and continue later: the lock for timers is released in between."""
        ends_ms = self._clock.monotonic_ms() + PART_MS
        for _ in parts:
            if self._clock.monotonic_ms() >= ends_ms:
                self.schedule(0, partial(self.run_in_parts, parts))
                return

    def run_due(self) -> int:
        """Call all timers that are due, in order; returns their number."""
        called = 0
        while self.run_next():
            called += 1
        return called

    def run_next(self) -> bool:
        """Call the first timer that is due; False if none is."""
        callback = self._pop_due()
        if callback is None:
            return False
        try:
            callback()
        except Exception:
            logger.exception("a timer failed")
        return True

    def _pop_due(self) -> Callable[[], None] | None:
        with self._changed:
            while self._heap:
                due_ms, _, timer = self._heap[0]
                if timer.callback is not None and due_ms > self._clock.monotonic_ms():
                    return None
                heapq.heappop(self._heap)
                if timer.callback is not None:
                    return timer.callback
            return None

    def wait_until_due(self, timeout_ms: int) -> None:
        """Wait until a timer is due, an earlier one is scheduled, `wake`, or the timeout."""
        with self._changed:
            wait_ms = 0 if self._woken else timeout_ms
            if self._heap:
                wait_ms = min(wait_ms, self._heap[0][0] - self._clock.monotonic_ms())
            if wait_ms > 0:
                self._clock.wait(self._changed, wait_ms)
            self._woken = False

    def wake(self) -> None:
        """Wake the waiting threads, or make the next wait return immediately, e.g. to stop."""
        with self._changed:
            self._woken = True
            self._changed.notify_all()
