"""Expiry: the time of a store, and which of its rows have expired.

The time of a store is the largest time put into it: not the wall clock, and not the task's stream
time. It is written with each commit, and recomputed by a restore.
"""

from struct import Struct

from streams.state.key_layout import TIME_MAX, segment_interval_ms, segment_prefix
from streams.state.store import NO_LIMIT

NO_TIME = -1

_METADATA = Struct(">qi")


class Expiry:
    """The observed time of a store, its segments, and the sequence number of duplicates.

    The store's thread writes it; threads of queries read single fields.
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
        self.retention_ms = (1 << 62) if retention_ms == NO_LIMIT else retention_ms
        self.interval_ms = segment_interval_ms(self.retention_ms)
        self.observed_ms = NO_TIME
        self.sequence = 0
        self._committed = (NO_TIME, 0)
        self._dropped_before = 0

    def is_live(self, time_ms: int) -> bool:
        """Advance to a time; returns whether its segment has not expired."""
        if time_ms > self.observed_ms:
            if time_ms > TIME_MAX:
                # Before advancing, because the commit could not write such a time.
                raise OverflowError(f"the time {time_ms} has more than 64 bits")
            self.observed_ms = time_ms
            return True
        interval = self.interval_ms
        return time_ms // interval >= (self.observed_ms - self.retention_ms) // interval

    @property
    def earliest_ms(self) -> int:
        """The earliest time whose rows are visible."""
        return max(0, self.observed_ms - self.retention_ms + 1)

    def segments(self, from_ms: int, to_ms: int) -> range:
        """The segments that can have rows of [from, to]."""
        interval = self.interval_ms
        first = max(from_ms, self.earliest_ms, 0) // interval
        return range(first, min(to_ms, self.observed_ms) // interval + 1)

    def expired_before(self) -> bytes | None:
        """The first key that has not expired, if segments have expired since the last call."""
        first = max(0, (self.observed_ms - self.retention_ms) // self.interval_ms)
        if first <= self._dropped_before:
            return None
        self._dropped_before = first
        return segment_prefix(first)

    def metadata(self) -> bytes:
        """Encode the metadata to write with the commit."""
        return _METADATA.pack(self.observed_ms, self.sequence)

    def load(self, metadata: bytes) -> None:
        """Load the metadata of the last commit."""
        self.observed_ms, self.sequence = _METADATA.unpack(metadata)
        self._committed = (self.observed_ms, self.sequence)

    def committed(self) -> None:
        """Store the state to which a discard returns."""
        self._committed = (self.observed_ms, self.sequence)

    def discard(self) -> None:
        """Return to the state of the last commit."""
        self.observed_ms, self.sequence = self._committed
