"""Results on close: each window is emitted once, when no record can change it.

The store is scanned for windows that closed since the last scan. The time of that scan is
committed, so nothing is emitted twice after a restart. Scans are throttled by the wall clock, but a
window is always scanned before the store drops it. For the same reason windows are
emitted before the record that closed them is stored: a record far in the future makes the store
drop them (Kafka Streams then loses them).
"""

from collections.abc import Callable, Iterable
from typing import cast

from streams.processor import NodeContext
from streams.record import Headers, Windowed

EMIT_INTERVAL_SETTING = "__emit.interval.ms.kstreams.windowed.aggregation__"
EMIT_INTERVAL_MS = 1000

# Closed windows of all keys in a range of store times: (window, value, timestamp_ms).
Closed = Callable[[int, int], Iterable[tuple[Windowed[object], object, int]]]
# Emits closed windows: close time, latest store time of the current record, its headers.
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
    """A function that emits closed windows to the children.

    `first_after` returns the first store time that is open at a close time, `last_before` the last
    one that is closed.
    """
    forward, now_ms = context.forward, context.now_ms
    setting = context.setting(EMIT_INTERVAL_SETTING)
    interval_ms = EMIT_INTERVAL_MS if setting is None else int(cast("int", setting))
    emitted = context.time(f"{store}-emitted")
    next_scan_ms = 0

    def emit_closed(close_ms: int, put_ms: int, headers: Headers) -> None:
        nonlocal next_scan_ms
        if close_ms <= emitted.ms:
            return
        first = max(0, first_after(emitted.ms))
        now = now_ms()
        if now < next_scan_ms and put_ms - retention_ms < first:
            return
        next_scan_ms = now + interval_ms
        last = last_before(close_ms)
        if last >= first:
            # A list, because children may write to the store while results are emitted.
            for window, value, timestamp_ms in list(closed(first, last)):
                forward(window, (value, None, True), timestamp_ms, headers)
        emitted.advance(close_ms)

    return emit_closed
