"""count, reduce and aggregate of a grouped stream.

A record without key or value is dropped. A null aggregate removes the entry; the next record starts
again. The timestamp of a result is the largest timestamp of its records.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from streams.operators.emitting import Emit, open_emit
from streams.processor import NodeContext, Process
from streams.record import Headers
from streams.state.store import TimestampedKeyValueStore, VersionedStore

Initializer = Callable[[], object]
Adder = Callable[[object, object, object], object]  # key, value, aggregate
Merger = Callable[[object, object, object], object]  # key, left aggregate, right aggregate
Reducer = Callable[[object, object], object]  # old, new

NULL_KEY_OR_VALUE = "its key or its value is null"
NULL_KEY = "its key is null"


Get = Callable[[object], tuple[object, int] | None]
Put = Callable[[object, object, int], int]


def open_table(context: NodeContext, store: str, *, versioned: bool) -> tuple[Get, Put]:
    """Functions that get and put the latest value of a key, in a versioned store or not."""
    if not versioned:
        table = cast("TimestampedKeyValueStore[object, object]", context.store(store))
        return table.get, table.put
    history = cast("VersionedStore[object, object]", context.store(store))

    def get(key: object) -> tuple[object, int] | None:
        version = history.get(key)
        return None if version is None else (version.value, version.timestamp_ms)

    def put(key: object, value: object, timestamp_ms: int) -> int:
        history.put(key, value, timestamp_ms)
        return 0  # results of such a store are not cached, so the size is unused

    return get, put


def shared_emit(context: NodeContext, store: str, *, caching: bool, send_old: bool) -> Emit:
    """Emit changes to the children; all nodes that write a store share one function.

    Cogrouped streams have one store, but a node each; the cache must have one change per key of the
    store. Their children are the same, so any of the nodes may forward. The node that is opened
    first is the last in order, so at a commit all nodes above have already forwarded their results.
    """
    return context.shared(
        f"{store}-emit", lambda: open_emit(context, store, caching=caching, send_old=send_old)
    )


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Aggregates the records of each key."""

    store: str
    initializer: Initializer
    adder: Adder
    caching: bool = False
    send_old: bool = False
    versioned: bool = False

    def open(self, context: NodeContext) -> Process:
        """For each record: one lookup, one call of the adder, one write and one result."""
        get, put = open_table(context, self.store, versioned=self.versioned)
        drop = context.drop
        initializer, adder, send_old = self.initializer, self.adder, self.send_old
        emit = shared_emit(context, self.store, caching=self.caching, send_old=send_old)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if key is None or value is None:
                drop(NULL_KEY_OR_VALUE)
                return
            row = get(key)
            if row is None:
                old, newest_ms = None, timestamp_ms
                aggregate = adder(key, value, initializer())
            else:
                old, newest_ms = row
                if timestamp_ms > newest_ms:
                    newest_ms = timestamp_ms
                aggregate = adder(key, value, old)
                if send_old and aggregate is old:  # the adder may have changed it in place
                    old = cast("tuple[object, int]", get(key))[0]
            size = put(key, aggregate, newest_ms)
            emit(key, aggregate, old, newest_ms, headers, size)

        return process


@dataclass(frozen=True, slots=True)
class Reduce:
    """Combines all values of a key into one of the same type."""

    store: str
    reducer: Reducer
    caching: bool = False
    send_old: bool = False
    versioned: bool = False

    def open(self, context: NodeContext) -> Process:
        """Open the node; the first value of a key is the initial aggregate."""
        get, put = open_table(context, self.store, versioned=self.versioned)
        drop = context.drop
        reducer, send_old = self.reducer, self.send_old
        emit = shared_emit(context, self.store, caching=self.caching, send_old=send_old)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            if key is None or value is None:
                drop(NULL_KEY_OR_VALUE)
                return
            row = get(key)
            if row is None:
                old, newest_ms, reduced = None, timestamp_ms, value
            else:
                old, newest_ms = row
                if timestamp_ms > newest_ms:
                    newest_ms = timestamp_ms
                reduced = reducer(old, value)
                if send_old and reduced is old:  # the reducer may have changed it in place
                    old = cast("tuple[object, int]", get(key))[0]
            size = put(key, reduced, newest_ms)
            emit(key, reduced, old, newest_ms, headers, size)

        return process


def reducing(reducer: Reducer) -> Adder:
    """Convert a reducer to an adder whose initial value is None."""

    def add(key: object, value: object, aggregate: object) -> object:
        return value if aggregate is None else reducer(aggregate, value)

    return add


def merging(reducer: Reducer) -> Merger:
    """Convert a reducer to a merger of sessions."""

    def merge(key: object, left: object, right: object) -> object:
        return right if left is None else reducer(left, right)

    return merge


def count_initializer() -> object:
    return 0


def count_adder(key: object, value: object, aggregate: object) -> object:
    return cast("int", aggregate) + 1


def count_subtractor(key: object, value: object, aggregate: object) -> object:
    return cast("int", aggregate) - 1


def count_merger(key: object, left: object, right: object) -> object:
    return cast("int", left) + cast("int", right)


def no_initial_value() -> object:
    return None
