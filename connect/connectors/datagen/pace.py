"""Paces: how many records are due by now, and how long until there are more."""

from random import Random
from typing import Protocol

# Records are sent in groups rather than one by one when there are many in a second.
GROUP_MS = 20
# After a pause only this much is made up for: a connector that was paused for an hour goes on at
# its pace instead of sending an hour's records at once.
CATCH_UP_MS = 1_000
UNBOUNDED_RECORDS = 5_000


class Pace(Protocol):
    """Says when records are due."""

    def due(self, now_ms: int) -> int:
        """How many records are due and not yet sent."""
        ...

    def sent(self, count: int) -> None:
        """Takes note of records that were sent."""
        ...

    def wait_ms(self, now_ms: int) -> int:
        """How long to wait for the next ones when none are due."""
        ...


class Unbounded:
    """As fast as they are taken."""

    def due(self, now_ms: int) -> int:
        """Always some."""
        return UNBOUNDED_RECORDS

    def sent(self, count: int) -> None:
        """It does not matter."""

    def wait_ms(self, now_ms: int) -> int:
        """Never."""
        return 0


class FixedRate:
    """So many records in a second."""

    def __init__(self, per_second: float, now_ms: int) -> None:
        """The first record is due at once."""
        self._per_ms = per_second / 1_000
        self._started_ms = float(now_ms)
        self._sent = 0

    def due(self, now_ms: int) -> int:
        """What the rate has brought since the start, less what was sent."""
        behind = (now_ms - self._started_ms) * self._per_ms + 1 - self._sent
        most = max(1.0, CATCH_UP_MS * self._per_ms)
        if behind > most:
            self._started_ms += (behind - most) / self._per_ms
            behind = most
        return max(0, int(behind))

    def sent(self, count: int) -> None:
        """Takes note of records that were sent."""
        self._sent += count

    def wait_ms(self, now_ms: int) -> int:
        """Until the next record, or the next group of them."""
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
        """The intervals that are over."""
        self._next_ms = max(self._next_ms, now_ms - CATCH_UP_MS)
        while self._next_ms <= now_ms:
            self._next_ms += self._interval()
            self._due += 1
        return self._due

    def sent(self, count: int) -> None:
        """Takes note of records that were sent."""
        self._due -= count

    def wait_ms(self, now_ms: int) -> int:
        """Until the running interval is over."""
        return max(1, int(self._next_ms - now_ms) + 1)

    def _interval(self) -> float:
        return self._random.random() * self._max_interval_ms
