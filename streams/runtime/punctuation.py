"""PunctuationQueue: which punctuators are due, by stream time or by the wall clock.

A schedule that is due runs once, however many of its intervals have passed; its next time is the
first multiple of the interval (counted from its start) that lies in the future.
"""

import heapq
from collections.abc import Callable

from streams.errors import StreamsError
from streams.processor import Punctuator

NEVER_MS = (1 << 63) - 1

Run = Callable[[str, Punctuator, int], None]  # node, punctuator, time of the punctuation


class Schedule:
    """One punctuator and the times at which it runs."""

    __slots__ = ("cancelled", "interval_ms", "node", "punctuator")

    def __init__(self, node: str, interval_ms: int, punctuator: Punctuator) -> None:
        if interval_ms < 1:
            raise StreamsError(
                f"the interval of a punctuator is {interval_ms} ms",
                at=f'node "{node}"',
                hint="it must be at least 1 ms",
            )
        self.node = node
        self.interval_ms = interval_ms
        self.punctuator = punctuator
        self.cancelled = False

    def cancel(self) -> None:
        """Cancel the punctuator; it may cancel itself while it runs."""
        self.cancelled = True


def next_time_ms(due_ms: int, interval_ms: int, now_ms: int) -> int:
    """The time after a punctuation that was due, and ran at `now_ms`."""
    following = due_ms + interval_ms
    if now_ms < following:
        return following
    return due_ms + ((now_ms - due_ms) // interval_ms + 1) * interval_ms


class PunctuationQueue:
    """Schedules of one kind of time, the next one first; equal times in order of scheduling."""

    __slots__ = ("_added", "_heap", "due_ms")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Schedule]] = []
        self._added = 0
        self.due_ms = NEVER_MS  # when the next one is due, which may be a cancelled one

    def add(self, due_ms: int, schedule: Schedule) -> None:
        """Add a schedule that is due at a time."""
        self._added += 1
        heapq.heappush(self._heap, (due_ms, self._added, schedule))
        self.due_ms = self._heap[0][0]

    def run(self, now_ms: int, run: Run) -> int:
        """Run all due punctuators; returns how many."""
        count = 0
        heap = self._heap
        while heap and heap[0][0] <= now_ms:
            due_ms, _, schedule = heapq.heappop(heap)
            if not schedule.cancelled:
                count += 1
                try:
                    run(schedule.node, schedule.punctuator, now_ms)
                finally:
                    if not schedule.cancelled:
                        self.add(next_time_ms(due_ms, schedule.interval_ms, now_ms), schedule)
        self.due_ms = heap[0][0] if heap else NEVER_MS
        return count
