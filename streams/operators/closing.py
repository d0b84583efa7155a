"""Results on close: each window is emitted once, when no record can change it.

The store is asked for the windows that closed since the last time. That time is kept with commits,
so nothing is emitted twice after a restart. Looking is throttled by the wall clock; but never so
long that the store forgets a window before it was emitted. Windows are emitted before the record
that closed them is stored, for the same reason: a record that jumps far ahead in time makes the
store forget them (Kafka Streams loses them then).
"""

from collections.abc import Callable, Iterable
from typing import cast

from streams.processor import NodeContext
from streams.record import Headers, Windowed

EMIT_INTERVAL_SETTING = "__emit.interval.ms.kstreams.windowed.aggregation__"
EMIT_INTERVAL_MS = 1000

# Closed windows of all keys in a span of the store's time: (window, value, timestamp_ms).
Closed = Callable[[int, int], Iterable[tuple[Windowed[object], object, int]]]
# Emits what closed: close time, the latest time that the current record puts, its headers.
EmitClosed = Callable[[int, int, Headers], None]


def open_emit_closed(
    context: NodeContext,
    store: str,
    *,
    closed: Closed,
    first_after: Callable[[int], int],
    last_before: Callable[[int], int],
    retention_ms: int,
) -> EmitClosed:
    """The way to the children for windows that are complete.

    `first_after` gives the first store time that was open at a close time, `last_before` the last
    one that was closed.
    """
    forward, now_ms = context.forward, context.now_ms
    setting = context.setting(EMIT_INTERVAL_SETTING)
    interval_ms = EMIT_INTERVAL_MS if setting is None else int(cast("int", setting))
    emitted = context.time(f"{store}-emitted")
    next_look_ms = 0

    def emit_closed(close_ms: int, put_ms: int, headers: Headers) -> None:
        nonlocal next_look_ms
        if close_ms <= emitted.ms:
            return
        first = max(0, first_after(emitted.ms))
        now = now_ms()
        if now < next_look_ms and put_ms - retention_ms < first:
            return
        next_look_ms = now + interval_ms
        last = last_before(close_ms)
        if last >= first:
            # A list, because children may write to the store while results are emitted.
            for window, value, timestamp_ms in list(closed(first, last)):
                forward(window, (value, None, True), timestamp_ms, headers)
        emitted.advance(close_ms)

    return emit_closed
