"""Joins a stream with a global table: each record with the value of its mapped key."""

from collections.abc import Callable
from dataclasses import dataclass

from streams.operators.joiner import Joiner
from streams.operators.views import TableView
from streams.processor import NodeContext, Process
from streams.record import Headers

KeyMapper = Callable[[object, object], object]


@dataclass(frozen=True, slots=True)
class GlobalJoin:
    """Looks up the current value; a global table has no stream time."""

    table: TableView
    key_mapper: KeyMapper
    joiner: Joiner
    left: bool = False  # whether records without a match are emitted, too

    def open(self, context: NodeContext) -> Process:
        forward, drop, left = context.forward, context.drop, self.left
        get, key_mapper, join = self.table.open(context), self.key_mapper, self.joiner

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if value is None:
                drop("a record without a value cannot be joined")
                return
            mapped = key_mapper(key, value)
            if mapped is None:
                # As Kafka Streams, which emits it only if the record itself has no key.
                if not left or key is not None:
                    drop("a record that is mapped to no key cannot be joined")
                    return
                row = None
            else:
                row = get(mapped)
            if row is not None:
                forward(key, join(key, value, row[0]), timestamp_ms, headers)
            elif left:
                forward(key, join(key, value, None), timestamp_ms, headers)

        return process
