"""Joins two tables by key: a change of either side is a change of the result.

Each side is a node that looks up the other table; both forward to a merge node, which writes the
result to a store if it has one. A result exists with:

    join    left change                     right change
    inner   both values                     both values
    left    the left value                  the left value
    outer   either of them                  either of them
"""

from dataclasses import dataclass
from typing import cast

from streams.operators.emitting import Getter, open_emit
from streams.operators.joiner import Joiner, reversed_joiner
from streams.operators.views import GetterAsOf, TableView
from streams.processor import NodeContext, Process
from streams.record import Change, Headers
from streams.state.store import (
    LATEST,
    StoreKind,
    StoreSpec,
    TimestampedKeyValueStore,
    VersionedStore,
)

NO_KEY = "a record without a key cannot be joined"
OUT_OF_ORDER = "an out-of-order change of a versioned table does not change the join"


@dataclass(frozen=True, slots=True)
class TableJoinSide:
    """Joins the changes of one side with the last emitted values of the other table."""

    left: bool  # which side this is
    other: TableView
    joiner: Joiner
    own_optional: bool  # whether there is a result without a value of this side
    other_optional: bool  # whether there is a result without a value of the other side
    send_old: bool = False
    latest_only: bool = False  # the table of this side is versioned

    def open(self, context: NodeContext) -> Process:
        forward, drop, get = context.forward, context.drop, self.other.open(context, emitted=True)
        join = self.joiner if self.left else reversed_joiner(self.joiner)
        own_optional, other_optional = self.own_optional, self.other_optional
        send_old, latest_only = self.send_old, self.latest_only

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            new, old, latest = cast("Change", value)
            if key is None:
                drop(NO_KEY)
                return
            if latest_only and not latest:
                drop(OUT_OF_ORDER)
                return
            found = get(key)
            if found is None:
                if not other_optional or (new is None and old is None):
                    return
                other = None
                has_result = False
            else:
                other = found[0]
                timestamp_ms = max(timestamp_ms, found[1])
                has_result = own_optional
            result = join(key, new, other) if has_result or new is not None else None
            old_result = None
            if send_old and (has_result or old is not None):
                old_result = join(key, old, other)
            forward(key, (result, old_result, latest), timestamp_ms, headers)

        return process


@dataclass(frozen=True, slots=True)
class TableJoinMerge:
    """Merges both sides, and writes the result to its store, if it has one."""

    store: StoreSpec | None = None
    send_old: bool = False

    def open(self, context: NodeContext) -> Process:
        if self.store is None:
            return self._open_without_store(context)
        if self.store.kind is StoreKind.VERSIONED:
            return self._open_versioned(context, self.store)
        return self._open_with_store(context, self.store)

    def _open_without_store(self, context: NodeContext) -> Process:
        forward = context.forward
        if self.send_old:
            return forward

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            forward(key, (cast("Change", value)[0], None, True), timestamp_ms, headers)

        return process

    def _open_with_store(self, context: NodeContext, spec: StoreSpec) -> Process:
        store = cast("TimestampedKeyValueStore[object, object]", context.store(spec.name))
        get, put = store.get, store.put
        needs_old = self.send_old or (spec.caching and context.cache_bytes > 0)
        emit = open_emit(context, spec.name, caching=spec.caching, send_old=self.send_old)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            new = cast("Change", value)[0]
            stored = get(key) if needs_old else None
            old = None if stored is None else stored[0]
            emit(key, new, old, timestamp_ms, headers, put(key, new, timestamp_ms))

        return process

    def _open_versioned(self, context: NodeContext, spec: StoreSpec) -> Process:
        store = cast("VersionedStore[object, object]", context.store(spec.name))
        get, put = store.get, store.put
        forward, drop, send_old = context.forward, context.drop, self.send_old

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            new = cast("Change", value)[0]
            stored = get(key) if send_old else None
            valid_to_ms = put(key, new, timestamp_ms)
            if valid_to_ms is None:
                drop("a result older than the history of its store is not stored")
                return
            old = None if stored is None else stored.value
            forward(key, (new, old, valid_to_ms == LATEST), timestamp_ms, headers)

        return process


@dataclass(frozen=True, slots=True)
class JoinedView:
    """The view of a join without a store: joins the current values of its tables."""

    left: TableView
    right: TableView
    joiner: Joiner
    left_optional: bool
    right_optional: bool

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores of both tables."""
        return tuple(dict.fromkeys(self.left.stores + self.right.stores))

    def open(self, context: NodeContext, *, emitted: bool = False) -> Getter:
        """Look up the current values and join them."""
        get_left, get_right = (
            side.open(context, emitted=emitted) for side in (self.left, self.right)
        )
        join = self.joiner
        left_optional, right_optional = self.left_optional, self.right_optional

        def get(key: object) -> tuple[object, int] | None:
            left = get_left(key)
            if left is None and not left_optional:
                return None
            right = get_right(key)
            if right is None and (left is None or not right_optional):
                return None
            left_value, left_ms = left or (None, -1)
            right_value, right_ms = right or (None, -1)
            value = join(key, left_value, right_value)
            return None if value is None else (value, max(left_ms, right_ms))

        return get

    def open_as_of(self, context: NodeContext) -> GetterAsOf:
        """Look up the current value: a join has no history."""
        get = self.open(context)
        return lambda key, timestamp_ms: get(key)
