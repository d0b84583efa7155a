"""Expiry: how a store's own time moves, and which of its rows are too old.

The time of a store is the largest time put into it: not the wall clock, not the task's. It is
written with each commit and found again by a restore.
"""

from struct import Struct

from streams.state.key_layout import TIME_MAX, segment_interval_ms, segment_prefix
from streams.state.store import NO_LIMIT

NO_TIME = -1

_FACTS = Struct(">qi")


class Expiry:
    """The observed time of a store, its segments, and the sequence number of duplicates.

    The store's thread writes; threads of queries read single fields.
    """

    __slots__ = (
        "_committed",
        "_dropped_before",
        "interval_ms",
        "observed_ms",
        "retention_ms",
        "sequence",
    )

    def __init__(self, retention_ms: int) -> None:
        """Begin before all time."""
        self.retention_ms = (1 << 62) if retention_ms == NO_LIMIT else retention_ms
        self.interval_ms = segment_interval_ms(self.retention_ms)
        self.observed_ms = NO_TIME
        self.sequence = 0
        self._committed = (NO_TIME, 0)
        self._dropped_before = 0

    def is_live(self, time_ms: int) -> bool:
        """Whether the segment of a time is still there, after taking the time into account."""
        if time_ms > self.observed_ms:
            if time_ms > TIME_MAX:
                # Before it is taken into account: such a time could not be written at the commit.
                raise OverflowError(f"the time {time_ms} has more than 64 bits")
            self.observed_ms = time_ms
            return True
        interval = self.interval_ms
        return time_ms // interval >= (self.observed_ms - self.retention_ms) // interval

    @property
    def earliest_ms(self) -> int:
        """The earliest time whose rows are shown."""
        return max(0, self.observed_ms - self.retention_ms + 1)

    def segments(self, from_ms: int, to_ms: int) -> range:
        """Segments that may hold rows of [from, to]."""
        interval = self.interval_ms
        first = max(from_ms, self.earliest_ms, 0) // interval
        return range(first, min(to_ms, self.observed_ms) // interval + 1)

    def expired_before(self) -> bytes | None:
        """The first key that is not expired, if segments expired since this was asked last."""
        first = max(0, (self.observed_ms - self.retention_ms) // self.interval_ms)
        if first <= self._dropped_before:
            return None
        self._dropped_before = first
        return segment_prefix(first)

    def facts(self) -> bytes:
        """What to write with the commit."""
        return _FACTS.pack(self.observed_ms, self.sequence)

    def load(self, facts: bytes) -> None:
        """Go on from what the last commit wrote."""
        self.observed_ms, self.sequence = _FACTS.unpack(facts)
        self._committed = (self.observed_ms, self.sequence)

    def committed(self) -> None:
        """What is now is what a discard goes back to."""
        self._committed = (self.observed_ms, self.sequence)

    def discard(self) -> None:
        """Go back to the last commit."""
        self.observed_ms, self.sequence = self._committed
