"""Aggregates by sessions: records of a key that are at most a gap apart.

A record is merged with all sessions that it touches: their aggregates are merged in order, starting
with the initial one, and the record is added last. Each merged session is removed and emitted as a
tombstone with its old bounds, even if the bounds do not change; except that a record replaces a
session of one instant at the same instant without a tombstone. The timestamp of a result is the
session's end. Only null keys are dropped; null values are passed to the adder.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import cast

from streams.operators.aggregate import NULL_KEY, Adder, Initializer, Merger, shared_emit
from streams.operators.closing import EmitClosed, open_emit_closed
from streams.operators.emitting import Emit, Getter, open_emitted
from streams.operators.views import GetterAsOf
from streams.operators.window_aggregate import emit_nothing, late
from streams.processor import NodeContext, Process
from streams.record import Headers, Windowed
from streams.state.store import REFUSED, SessionStore
from streams.windows import SessionWindows

_Sessions = list[tuple[Windowed[object], object]]


@dataclass(frozen=True, slots=True)
class SessionAggregate:
    """Aggregates the records of each key and session."""

    store: str
    windows: SessionWindows
    initializer: Initializer
    adder: Adder
    merger: Merger
    caching: bool = False
    send_old: bool = False
    on_close: bool = False
    retention_ms: int = 0  # of the store; needed by on_close

    def open(self, context: NodeContext) -> Process:
        """Open the node. Whether a record is late is only known after merging."""
        table = cast("SessionStore[object, object]", context.store(self.store))
        time, drop, put = context.time(), context.drop, table.put
        initializer, adder, merger = self.initializer, self.adder, self.merger
        gap, grace, on_close = self.windows.gap_ms, self.windows.grace_ms, self.on_close
        emit: Emit = (
            emit_nothing
            if on_close
            else shared_emit(context, self.store, caching=self.caching, send_old=self.send_old)
        )
        emit_closed = self._open_emit_closed(context, table) if on_close else None
        merge_sessions = _open_merge(table, emit, send_old=self.send_old)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if key is None:
                drop(NULL_KEY)
                return
            close_ms = time.advance(timestamp_ms) - grace - gap
            if emit_closed is not None:
                emit_closed(close_ms, timestamp_ms, headers)
            sessions = list(
                table.find_sessions(key, max(0, timestamp_ms - gap), timestamp_ms + gap)
            )
            if on_close:  # a closed session has been emitted and must not grow
                sessions = [each for each in sessions if each[0].end_ms >= close_ms]
            aggregate = initializer()
            start = end = timestamp_ms
            for session, stored in sessions:
                start, end = min(start, session.start_ms), max(end, session.end_ms)
                aggregate = merger(key, aggregate, stored)
            if end < close_ms:
                drop(late(start, end, time.ms))
                return
            replaced = merge_sessions(sessions, start == end, headers) if sessions else None
            aggregate = adder(key, value, aggregate)
            size = put(key, start, end, aggregate)
            if size == REFUSED:
                drop(f"the store no longer retains the session that ends at {end}")
                return
            emit(Windowed(key, start, end), aggregate, replaced, end, headers, size)

        return process

    def _open_emit_closed(
        self, context: NodeContext, table: SessionStore[object, object]
    ) -> EmitClosed:
        def closed(first: int, last: int) -> Iterator[tuple[Windowed[object], object, int]]:
            for session, value in table.sessions_ended(first, last):
                yield session, value, session.end_ms

        # The end is inclusive, so a session is closed when it ends before the close time.
        return open_emit_closed(
            context,
            self.store,
            closed=closed,
            first_after=lambda close_ms: close_ms,
            last_before=lambda close_ms: close_ms - 1,
            retention_ms=self.retention_ms,
        )


def _open_merge(
    table: SessionStore[object, object], emit: Emit, *, send_old: bool
) -> Callable[[_Sessions, bool, Headers], object]:
    """A function that removes merged sessions; it returns the old value of a replaced one.

    Old values are read again, because the merger may have changed them in place.
    """

    def merge_sessions(sessions: _Sessions, one_instant: bool, headers: Headers) -> object:
        for session, stored in sessions:
            key, start, end = session
            old = table.get(key, start, end) if send_old else stored
            if one_instant:
                return old
            table.remove(key, start, end)
            emit(session, None, old, end, headers, 0)
        return None

    return merge_sessions


@dataclass(frozen=True, slots=True)
class SessionView:
    """The view of a session-windowed table."""

    store: str

    @property
    def stores(self) -> tuple[str, ...]:
        """The store."""
        return (self.store,)

    def open(self, context: NodeContext, *, emitted: bool = False) -> Getter:
        """Look up a session of a key; its timestamp is the session's end."""
        table = cast("SessionStore[object, object]", context.store(self.store))

        def get(key: object) -> tuple[object, int] | None:
            plain, start_ms, end_ms = cast("Windowed[object]", key)
            value = table.get(plain, start_ms, end_ms)
            return None if value is None else (value, end_ms)

        return open_emitted(context, self.store, get) if emitted else get

    def open_as_of(self, context: NodeContext) -> GetterAsOf:
        """Look up the current value: sessions have no history."""
        present = self.open(context)
        return lambda key, timestamp_ms: present(key)
