"""Aggregates by sliding windows: each set of records at most `difference` apart is one window.

A record at t has a left window [t - d, t] and, if it contains later records, a right window
[t + 1, t + 1 + d]. Both ends are inclusive. For a new record at t:

    windows that contain t                     get the record
    [t - d, t], if it does not exist           starts with the records of the window before it
    [p + 1, p + 1 + d], p the record before    starts with this record, if it does not exist
    [t + 1, t + 1 + d], if it does not exist   starts with the later records, without this one

Windows do not start before 0: records with t < d share the window [0, d].
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from streams.operators.aggregate import NULL_KEY_OR_VALUE, Adder, Initializer, shared_emit
from streams.operators.closing import open_emit_closed
from streams.operators.emitting import Emit
from streams.operators.window_aggregate import emit_nothing, late
from streams.processor import NO_TIME, NodeContext, Process
from streams.record import Headers, Windowed
from streams.state.store import REFUSED, TimestampedWindowStore
from streams.windows import SlidingWindows

# The aggregate of a window, and the timestamp of its last record.
_Stored = tuple[object, int]


@dataclass(frozen=True, slots=True)
class SlidingAggregate:
    """Aggregates the records of each key and sliding window."""

    store: str
    windows: SlidingWindows
    initializer: Initializer
    adder: Adder
    caching: bool = False
    send_old: bool = False
    on_close: bool = False
    retention_ms: int = 0  # of the store; needed by on_close

    def open(self, context: NodeContext) -> Process:
        """Open the node; null keys, null values and records late for all windows are dropped."""
        table = cast("TimestampedWindowStore[object, object]", context.store(self.store))
        time, drop = context.time(), context.drop
        difference, grace = self.windows.difference_ms, self.windows.grace_ms
        emit: Emit = (
            emit_nothing
            if self.on_close
            else shared_emit(context, self.store, caching=self.caching, send_old=self.send_old)
        )
        emit_closed = self._open_emit_closed(context, table) if self.on_close else None

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if key is None or value is None:
                drop(NULL_KEY_OR_VALUE)
                return
            close_ms = time.advance(timestamp_ms) - grace
            if timestamp_ms + difference < close_ms:
                drop(late(timestamp_ms - difference, timestamp_ms, time.ms))
                return
            if emit_closed is not None:
                emit_closed(close_ms, timestamp_ms, headers)
            update = _RecordUpdate(self, table, emit, drop)
            update.key, update.value, update.timestamp_ms, update.headers = (
                key,
                value,
                timestamp_ms,
                headers,
            )
            update.close_ms = close_ms
            if timestamp_ms < difference:
                update.add_early()
            else:
                update.add()

        return process

    def _open_emit_closed(
        self, context: NodeContext, table: TimestampedWindowStore[object, object]
    ) -> Callable[[int, int, Headers], None]:
        difference = self.windows.difference_ms

        def closed(first: int, last: int) -> Iterator[tuple[Windowed[object], object, int]]:
            for window, (value, timestamp_ms) in table.fetch_all(first, last):
                start = window.start_ms
                yield Windowed(window.key, start, start + difference), value, timestamp_ms

        # The end is inclusive, so a window is closed when it ends before the close time.
        return open_emit_closed(
            context,
            self.store,
            closed=closed,
            first_after=lambda close_ms: close_ms - difference,
            last_before=lambda close_ms: close_ms - difference - 1,
            retention_ms=self.retention_ms,
        )


class _RecordUpdate:
    """Adds one record to its windows."""

    __slots__ = (
        "adder",
        "close_ms",
        "difference",
        "drop",
        "emit",
        "headers",
        "initializer",
        "key",
        "table",
        "timestamp_ms",
        "value",
    )

    def __init__(
        self,
        operator: SlidingAggregate,
        table: TimestampedWindowStore[object, object],
        emit: Emit,
        drop: Callable[[str], None],
    ) -> None:
        self.table, self.emit, self.drop = table, emit, drop
        self.initializer, self.adder = operator.initializer, operator.adder
        self.difference = operator.windows.difference_ms
        self.key: object = None
        self.value: object = None
        self.timestamp_ms = self.close_ms = NO_TIME
        self.headers: Headers = ()

    def add(self) -> None:
        """Add the record to its windows, the latest first, as Kafka Streams does."""
        t, difference = self.timestamp_ms, self.difference
        later: _Stored | None = None  # of the latest window that ends after t
        earlier: _Stored | None = None  # of the latest window that ends before t
        previous_ms: int | None = None
        starts = set()
        windows = self.table.backward_fetch(self.key, max(0, t - 2 * difference), t + 1)
        for start, stored in list(windows):
            starts.add(start)
            end = start + difference
            if start > t:
                continue
            if end < t:
                earlier, previous_ms = stored, stored[1]
                break
            before = self._update(start, stored)
            if end > t:
                later = later or (before, stored[1])
            elif stored[1] < t:
                previous_ms = stored[1]
            else:
                return  # a record with the same timestamp has created all windows
        if previous_ms is not None and previous_ms + 1 + difference >= t:
            self._create(previous_ms + 1, starts)
        if earlier is not None and earlier[1] >= t - difference:
            self._create(t - difference, starts, earlier)
        else:
            self._create(t - difference, starts)
        self._create_right(later, starts)

    def add_early(self) -> None:
        """Add a record whose left window would start before 0."""
        t = self.timestamp_ms
        later: _Stored | None = None
        first: _Stored | None = None  # the window [0, d]
        starts = set()
        for start, stored in list(self.table.fetch(self.key, 0, t + 1)):
            starts.add(start)
            if start == 0:
                first = stored
            elif start <= t:
                later = (self._update(start, stored), stored[1])
        if first is not None and later is None:
            # No window starts in between: all records in [0, d] are later than t, or all earlier.
            later = first
        self._create_right(later, starts)
        if first is None:
            self._create(0, starts)
            return
        if first[1] < t:
            self._create(first[1] + 1, starts)
        # Read again: this window must not share the aggregate with the right window.
        self._update(0, cast("_Stored", self.table.get(self.key, 0)))

    def _update(self, start: int, stored: _Stored) -> object:
        """Add the record to a window; returns the previous aggregate."""
        old, newest_ms = stored
        end = start + self.difference
        if end < self.close_ms:
            self.drop(f"its window [{start}, {end}] has closed")
            return old
        aggregate = self.adder(self.key, self.value, old)
        if aggregate is old:  # the adder may have changed it in place
            again = self.table.get(self.key, start)
            old = None if again is None else again[0]
        self._put(start, aggregate, old, max(newest_ms, self.timestamp_ms))
        return old

    def _create(self, start: int, starts: set[int], stored: _Stored | None = None) -> None:
        """Create a window with the record, and possibly earlier ones."""
        end = start + self.difference
        if start in starts:
            return
        starts.add(start)
        if end < self.close_ms:
            self.drop(f"its window [{start}, {end}] has closed")
            return
        aggregate = self.initializer() if stored is None else stored[0]
        self._put(start, self.adder(self.key, self.value, aggregate), None, self.timestamp_ms)

    def _create_right(self, later: _Stored | None, starts: set[int]) -> None:
        """Create the window after the record, if there are later records for it."""
        start = self.timestamp_ms + 1
        if later is not None and later[1] > self.timestamp_ms and start not in starts:
            starts.add(start)
            self._put(start, later[0], None, later[1])

    def _put(self, start: int, aggregate: object, old: object, timestamp_ms: int) -> None:
        size = self.table.put(self.key, aggregate, timestamp_ms, start)
        if size == REFUSED:
            self.drop(f"the store no longer retains the window that starts at {start}")
            return
        window = Windowed(self.key, start, start + self.difference)
        self.emit(window, aggregate, old, timestamp_ms, self.headers, size)
