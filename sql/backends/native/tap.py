"""Tap: lets readers watch the results of a running query."""

from collections.abc import Callable
from typing import cast

from broker import concurrency
from sql.rows.row_format import Row
from streams.processor import NodeContext, Process
from streams.record import Headers

# Called with the key (with its window, if any), the row or None, and the timestamp of a result.
Watch = Callable[[object, Row | None, int], None]


class Tap:
    """The watchers of one query; results are always written to the topic, too. Thread-safe."""

    def __init__(self) -> None:
        self.watchers: tuple[Watch, ...] = ()
        self._lock = concurrency.Lock()

    def add(self, watch: Watch) -> None:
        """Call a function with each result from now on, in the query's threads."""
        with self._lock:
            self.watchers = (*self.watchers, watch)

    def remove(self, watch: Watch) -> None:
        """Remove a function."""
        with self._lock:
            self.watchers = tuple(each for each in self.watchers if each is not watch)

    def open(self, context: NodeContext) -> Process:
        """The node's code."""
        forward = context.forward

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            for watch in self.watchers:
                watch(key, cast("Row | None", value), timestamp_ms)
            forward(key, value, timestamp_ms, headers)

        return process
