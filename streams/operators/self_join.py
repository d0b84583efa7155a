"""Joins a stream with itself, with one store instead of two; the results are the same.

A record is first processed as one of the left side, then as one of the right side; there it is also
joined with itself, in the order of timestamps. It is joined with itself only if its own timestamp
is in the window and the store would still have retained it, which is the result with two stores
(the rule of Kafka Streams for one store is a millisecond narrower, and ignores the window).
"""

from dataclasses import dataclass
from typing import cast

from streams.operators.joiner import Joiner
from streams.operators.stream_join import NO_KEY, NO_VALUE
from streams.processor import NodeContext, Process
from streams.record import Headers
from streams.state.store import WindowStore
from streams.windows import JoinWindows


@dataclass(frozen=True, slots=True)
class SelfJoin:
    """Processes both sides of an inner join of a stream with itself."""

    store: str
    windows: JoinWindows
    joiner: Joiner

    def open(self, context: NodeContext) -> Process:
        forward, drop, join = context.forward, context.drop, self.joiner
        fetch = cast("WindowStore[object, object]", context.store(self.store)).fetch
        time = context.time()
        before_ms, after_ms = self.windows.before_ms, self.windows.after_ms
        retention_ms = self.windows.size_ms + self.windows.grace_ms
        includes_itself = before_ms >= 0 and after_ms >= 0

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if key is None or value is None:
                drop(NO_KEY if value is not None else NO_VALUE)
                return
            joins_itself = (
                includes_itself and timestamp_ms > time.advance(timestamp_ms) - retention_ms
            )
            first_ms, last_ms = timestamp_ms - before_ms, timestamp_ms + after_ms
            for other_ms, other in fetch(key, max(0, first_ms), last_ms):
                forward(key, join(key, value, other), max(timestamp_ms, other_ms), headers)
            first_ms, last_ms = timestamp_ms - after_ms, timestamp_ms + before_ms
            for other_ms, other in fetch(key, max(0, first_ms), last_ms):
                if joins_itself and other_ms > timestamp_ms:
                    joins_itself = False
                    forward(key, join(key, value, value), timestamp_ms, headers)
                forward(key, join(key, other, value), max(timestamp_ms, other_ms), headers)
            if joins_itself:
                forward(key, join(key, value, value), timestamp_ms, headers)

        return process
