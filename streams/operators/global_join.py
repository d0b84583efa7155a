"""Stream joined with a global table: each record with the value of the key it is mapped to."""

from collections.abc import Callable
from dataclasses import dataclass

from streams.operators.joiner import Joiner
from streams.operators.views import TableView
from streams.processor import NodeContext, Process
from streams.record import Headers

KeyMapper = Callable[[object, object], object]


@dataclass(frozen=True, slots=True)
class GlobalJoin:
    """The global table is looked up as it is now; it has no time of its own."""

    table: TableView
    key_mapper: KeyMapper
    joiner: Joiner
    left: bool = False  # whether a record without a partner gives a result, too

    def open(self, context: NodeContext) -> Process:
        """The node's code, inside one task."""
        forward, drop, left = context.forward, context.drop, self.left
        get, key_mapper, join = self.table.open(context), self.key_mapper, self.joiner

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if value is None:
                drop("a record without a value cannot be joined")
                return
            mapped = key_mapper(key, value)
            if mapped is None:
                # Kafka Streams keeps only what has no key of its own, and so could not be mapped.
                if not left or key is not None:
                    drop("a record that is mapped to no key cannot be joined")
                    return
                found = None
            else:
                found = get(mapped)
            if found is not None:
                forward(key, join(key, value, found[0]), timestamp_ms, headers)
            elif left:
                forward(key, join(key, value, None), timestamp_ms, headers)

        return process
