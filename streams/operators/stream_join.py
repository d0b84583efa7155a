"""Joins two streams: pairs of records with the same key whose timestamps are near each other.

Each side has two nodes. The first forwards a record and then stores it in the side's window store,
so that a record is never joined with itself; the second looks up the other side's store:

    left  -> store (left store)  -> join with the right store -> merge
    right -> store (right store) -> join with the left store  -> merge

In left and outer joins, a record without a match waits in the join's pending store until none can
arrive: until the join's stream time is past its timestamp + after + grace for left records, and +
before + grace for right ones. Then it is joined with None, once, with its own timestamp. Kafka
Streams emits an out-of-order record when its window has passed, without regard to grace, and may
still join it later; here it also waits until the grace has ended.
"""

from dataclasses import dataclass
from typing import cast

from streams.operators.joiner import Joiner, reversed_joiner
from streams.operators.outer_join_pending import LEFT, RIGHT, PendingRecords, PendingSpec, Unmatched
from streams.processor import NodeContext, Process
from streams.record import Headers
from streams.state.store import REFUSED, WindowStore
from streams.windows import JoinWindows

NO_KEY = "a record without a key cannot be joined"
NO_VALUE = "a record without a value cannot be joined"
TOO_OLD = "a record older than the join's retention is not stored for later matches"


@dataclass(frozen=True, slots=True)
class StoreForJoin:
    """Forwards records, then stores them for lookups by the other side of the join."""

    store: str

    def open(self, context: NodeContext) -> Process:
        forward, drop = context.forward, context.drop
        put = cast("WindowStore[object, object]", context.store(self.store)).put

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            forward(key, value, timestamp_ms, headers)
            # A record without a key or value has no match: the next node has counted it.
            if key is not None and value is not None and put(key, value, timestamp_ms) == REFUSED:
                drop(TOO_OLD)

        return process


@dataclass(frozen=True, slots=True)
class StreamJoin:
    """One side of a join: looks for matches in the other side's store."""

    left: bool
    other_store: str
    windows: JoinWindows
    joiner: Joiner
    outer: bool = False  # whether this side also emits records without a match
    pending: PendingSpec | None = None  # None: records without a match are emitted immediately

    def open(self, context: NodeContext) -> Process:
        return self._open_plain(context) if self.pending is None else self._open_pending(context)

    def _span(self) -> tuple[int, int]:
        windows = self.windows
        if self.left:
            return windows.before_ms, windows.after_ms
        return windows.after_ms, windows.before_ms

    def _own_joiner(self) -> Joiner:
        return self.joiner if self.left else reversed_joiner(self.joiner)

    def _open_plain(self, context: NodeContext) -> Process:
        forward, drop, outer = context.forward, context.drop, self.outer
        fetch = cast("WindowStore[object, object]", context.store(self.other_store)).fetch
        join = self._own_joiner()
        before_ms, after_ms = self._span()

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if value is None:
                drop(NO_VALUE)
                return
            matched = False
            if key is not None:
                last_ms = timestamp_ms + after_ms
                for other_ms, other in fetch(key, max(0, timestamp_ms - before_ms), last_ms):
                    matched = True
                    joined = join(key, value, other)
                    forward(key, joined, max(timestamp_ms, other_ms), headers)
            elif not outer:
                drop(NO_KEY)
            if outer and not matched:
                forward(key, join(key, value, None), timestamp_ms, headers)

        return process

    def _open_pending(self, context: NodeContext) -> Process:
        spec = self.pending
        assert spec is not None
        forward, drop, outer, now_ms = context.forward, context.drop, self.outer, context.now_ms
        fetch = cast("WindowStore[object, object]", context.store(self.other_store)).fetch
        time = context.time(f"{spec.store}-time")
        join, joiner = self._own_joiner(), self.joiner
        before_ms, after_ms = self._span()
        side, other_side = (LEFT, RIGHT) if self.left else (RIGHT, LEFT)
        pending: PendingRecords | None = None

        def release(waiting: PendingRecords, headers: Headers) -> None:
            for record in waiting.release(time.ms, now_ms()):
                forward(record.key, _join_unmatched(joiner, record), record.timestamp_ms, headers)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            nonlocal pending
            newest_ms = time.advance(timestamp_ms)
            if key is None or value is None:
                if value is not None and outer:
                    forward(key, join(key, value, None), timestamp_ms, headers)
                else:
                    drop(NO_VALUE if value is None else NO_KEY)
                return
            # While nodes are opened, the store may not be restored yet.
            waiting = pending = pending or spec.open(context)
            if timestamp_ms == newest_ms:
                release(waiting, headers)
            matched = False
            for other_ms, other in fetch(
                key, max(0, timestamp_ms - before_ms), timestamp_ms + after_ms
            ):
                matched = True
                waiting.match(other_side, key, other_ms)
                forward(key, join(key, value, other), max(timestamp_ms, other_ms), headers)
            if matched or not outer:
                return
            if waiting.is_expired(side, timestamp_ms, newest_ms):
                forward(key, join(key, value, None), timestamp_ms, headers)
            else:
                waiting.add(side, key, value, timestamp_ms)

        return process


def _join_unmatched(joiner: Joiner, record: Unmatched) -> object:
    if record.left:
        return joiner(record.key, record.value, None)
    return joiner(record.key, None, record.value)
