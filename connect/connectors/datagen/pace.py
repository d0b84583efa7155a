"""Pace: the number of records that are due, and the time until the next one."""

from random import Random
from typing import Protocol

# At a high rate, records are sent in groups rather than one by one.
GROUP_MS = 20
# The maximum to catch up after a pause: a connector that was paused for an hour does not send the
# records of that hour at once.
CATCH_UP_MS = 1_000
UNBOUNDED_RECORDS = 5_000


class Pace(Protocol):
    """Decides when records are due."""

    def due(self, now_ms: int) -> int:
        """The number of records that are due and not yet sent."""
        ...

    def sent(self, count: int) -> None:
        """Count sent records."""
        ...

    def wait_ms(self, now_ms: int) -> int:
        """The time until the next record is due, when none is."""
        ...


class Unbounded:
    """No limit."""

    def due(self, now_ms: int) -> int:
        """Always some."""
        return UNBOUNDED_RECORDS

    def sent(self, count: int) -> None:
        """Do nothing."""

    def wait_ms(self, now_ms: int) -> int:
        """Never wait."""
        return 0


class FixedRate:
    """A number of records per second."""

    def __init__(self, per_second: float, now_ms: int) -> None:
        """The first record is due immediately."""
        self._per_ms = per_second / 1_000
        self._started_ms = float(now_ms)
        self._sent = 0

    def due(self, now_ms: int) -> int:
        """The records that are due since the start, minus the sent ones."""
        behind = (now_ms - self._started_ms) * self._per_ms + 1 - self._sent
        most = max(1.0, CATCH_UP_MS * self._per_ms)
        if behind > most:
            self._started_ms += (behind - most) / self._per_ms
            behind = most
        return max(0, int(behind))

    def sent(self, count: int) -> None:
        self._sent += count

    def wait_ms(self, now_ms: int) -> int:
        """The time until the next record or group of records."""
        next_ms = self._started_ms + self._sent / self._per_ms
        return max(GROUP_MS, int(next_ms - now_ms) + 1)


class RandomIntervals:
    """A random time between records, up to a maximum."""

    def __init__(self, max_interval_ms: int, random: Random, now_ms: int) -> None:
        """The first record is due after the first interval."""
        self._max_interval_ms = max_interval_ms
        self._random = random
        self._due = 0
        self._next_ms = now_ms + self._interval()

    def due(self, now_ms: int) -> int:
        """The number of intervals that are over."""
        self._next_ms = max(self._next_ms, now_ms - CATCH_UP_MS)
        while self._next_ms <= now_ms:
            self._next_ms += self._interval()
            self._due += 1
        return self._due

    def sent(self, count: int) -> None:
        self._due -= count

    def wait_ms(self, now_ms: int) -> int:
        """The rest of the current interval."""
        return max(1, int(self._next_ms - now_ms) + 1)

    def _interval(self) -> float:
        return self._random.random() * self._max_interval_ms
