"""Aggregates by tumbling, hopping and unlimited windows.

Only null keys are dropped; null values are passed to the adder. A window that ended before the
operator's stream time minus the grace is closed; each closed window of a record counts as one
dropped record.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import cast

from streams.operators.aggregate import NULL_KEY, Adder, Initializer, shared_emit
from streams.operators.closing import EmitClosed, open_emit_closed
from streams.operators.emitting import Getter, open_emitted
from streams.operators.views import GetterAsOf
from streams.processor import NodeContext, Process
from streams.record import Headers, Windowed
from streams.state.store import REFUSED, TimestampedWindowStore
from streams.windows import UNLIMITED_END_MS, TimeWindows, UnlimitedWindows

# Creates a Windowed from a tuple, in half the time of its constructor.
windowed: Callable[[tuple[object, int, int]], Windowed[object]] = partial(tuple.__new__, Windowed)

# Adds a record to one window: key, value, timestamp_ms, headers, start_ms, end_ms.
_Update = Callable[[object, object, int, Headers, int, int], None]


@dataclass(frozen=True, slots=True)
class WindowAggregate:
    """Aggregates the records of each key and window."""

    store: str
    windows: TimeWindows | UnlimitedWindows
    initializer: Initializer
    adder: Adder
    caching: bool = False
    send_old: bool = False
    on_close: bool = False
    retention_ms: int = 0  # of the store; needed by on_close

    def open(self, context: NodeContext) -> Process:
        """Open a function for the kind of window, so that it is not checked per record."""
        windows = self.windows
        if isinstance(windows, UnlimitedWindows):
            return _open_unlimited(context, windows, self._open_update(context))
        if self.on_close:
            emit_closed = self._open_emit_closed(context, windows)
            return _open_hopping(context, windows, self._open_update(context), emit_closed)
        if windows.size_ms == windows.advance_ms:
            return self._open_tumbling(context, windows)
        return _open_hopping(context, windows, self._open_update(context), None)

    def _open_tumbling(self, context: NodeContext, windows: TimeWindows) -> Process:
        """The most frequent case: `_open_update` inlined, without a call per window."""
        table = cast("TimestampedWindowStore[object, object]", context.store(self.store))
        get, put, drop, time = table.get, table.put, context.drop, context.time()
        initializer, adder, send_old = self.initializer, self.adder, self.send_old
        size, grace = windows.size_ms, windows.grace_ms
        emit = shared_emit(context, self.store, caching=self.caching, send_old=send_old)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if key is None:
                drop(NULL_KEY)
                return
            start = timestamp_ms - timestamp_ms % size
            end = start + size
            if timestamp_ms > time.ms:
                time.ms = timestamp_ms
            elif end <= time.ms - grace:
                drop(late(start, end, time.ms))
                return
            found = get(key, start)
            if found is None:
                old, newest_ms = None, timestamp_ms
                aggregate = adder(key, value, initializer())
            else:
                old, newest_ms = found
                if timestamp_ms > newest_ms:
                    newest_ms = timestamp_ms
                aggregate = adder(key, value, old)
                if send_old and aggregate is old:  # the adder may have changed it in place
                    old = cast("tuple[object, int]", get(key, start))[0]
            written = put(key, aggregate, newest_ms, start)
            if written == REFUSED:
                drop(f"the store no longer retains the window that starts at {start}")
                return
            emit(windowed((key, start, end)), aggregate, old, newest_ms, headers, written)

        return process

    def _open_update(self, context: NodeContext) -> _Update:
        table = cast("TimestampedWindowStore[object, object]", context.store(self.store))
        get, put, drop = table.get, table.put, context.drop
        initializer, adder, send_old = self.initializer, self.adder, self.send_old
        emit = (
            emit_nothing
            if self.on_close
            else shared_emit(context, self.store, caching=self.caching, send_old=send_old)
        )

        def update(
            key: object, value: object, timestamp_ms: int, headers: Headers, start: int, end: int
        ) -> None:
            found = get(key, start)
            if found is None:
                old, newest_ms = None, timestamp_ms
                aggregate = adder(key, value, initializer())
            else:
                old, newest_ms = found
                if timestamp_ms > newest_ms:
                    newest_ms = timestamp_ms
                aggregate = adder(key, value, old)
                if send_old and aggregate is old:  # the adder may have changed it in place
                    old = cast("tuple[object, int]", get(key, start))[0]
            size = put(key, aggregate, newest_ms, start)
            if size == REFUSED:
                drop(f"the store no longer retains the window that starts at {start}")
                return
            emit(windowed((key, start, end)), aggregate, old, newest_ms, headers, size)

        return update

    def _open_emit_closed(self, context: NodeContext, windows: TimeWindows) -> EmitClosed:
        table = cast("TimestampedWindowStore[object, object]", context.store(self.store))
        size, advance = windows.size_ms, windows.advance_ms

        def closed(first: int, last: int) -> Iterator[tuple[Windowed[object], object, int]]:
            for window, (value, timestamp_ms) in table.fetch_all(first, last):
                start = window.start_ms
                yield Windowed(window.key, start, start + size), value, timestamp_ms

        # Windows up to start = close - size are closed; starts are multiples of the advance.
        return open_emit_closed(
            context,
            self.store,
            closed=closed,
            first_after=lambda close_ms: ((close_ms - size) // advance + 1) * advance,
            last_before=lambda close_ms: close_ms - size,
            retention_ms=self.retention_ms,
        )


def emit_nothing(
    key: object, new: object, old: object, timestamp_ms: int, headers: Headers, size: int
) -> None:
    """The `emit` function for windows that are emitted when they close."""


def _open_hopping(
    context: NodeContext, windows: TimeWindows, update: _Update, emit_closed: EmitClosed | None
) -> Process:
    time, drop = context.time(), context.drop
    size, advance, grace = windows.size_ms, windows.advance_ms, windows.grace_ms

    def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            drop(NULL_KEY)
            return
        close_ms = time.advance(timestamp_ms) - grace
        if emit_closed is not None:
            emit_closed(close_ms, timestamp_ms - timestamp_ms % advance, headers)
        first = max(0, timestamp_ms - size + advance) // advance * advance
        for start in range(first, timestamp_ms + 1, advance):
            end = start + size
            if end <= close_ms:
                drop(late(start, end, time.ms))
            else:
                update(key, value, timestamp_ms, headers, start, end)

    return process


def _open_unlimited(context: NodeContext, windows: UnlimitedWindows, update: _Update) -> Process:
    drop, start = context.drop, windows.start_ms

    def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            drop(NULL_KEY)
        elif timestamp_ms >= start:
            update(key, value, timestamp_ms, headers, start, UNLIMITED_END_MS)

    return process


def late(start_ms: int, end_ms: int, stream_time_ms: int) -> str:
    """The reason why a late record is dropped."""
    return f"its window [{start_ms}, {end_ms}] has closed; stream time is {stream_time_ms}"


@dataclass(frozen=True, slots=True)
class WindowView:
    """The view of a windowed table."""

    store: str

    @property
    def stores(self) -> tuple[str, ...]:
        """The store."""
        return (self.store,)

    def open(self, context: NodeContext, *, emitted: bool = False) -> Getter:
        """Look up a window of a key."""
        table = cast("TimestampedWindowStore[object, object]", context.store(self.store))

        def get(key: object) -> tuple[object, int] | None:
            plain, start_ms, _ = cast("Windowed[object]", key)
            return table.get(plain, start_ms)

        return open_emitted(context, self.store, get) if emitted else get

    def open_as_of(self, context: NodeContext) -> GetterAsOf:
        """Look up the current value: windows have no history."""
        present = self.open(context)
        return lambda key, timestamp_ms: present(key)
