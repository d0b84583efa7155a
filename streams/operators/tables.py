"""Operators of tables: source tables, filter, map_values, to_stream and transform_values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

from streams.operators.emitting import Getter, open_emit
from streams.operators.views import Derive, GetterAsOf, TableView
from streams.processor import NO_TIME, NodeContext, Process
from streams.record import Change, Headers, Position
from streams.state.store import (
    LATEST,
    StoreKind,
    StoreSpec,
    TimestampedKeyValueStore,
    VersionedStore,
)


@dataclass(frozen=True, slots=True)
class TableSource:
    """Converts a stream to a table: the last record of each key, regardless of its timestamp.

    Without a store only changes are emitted. A versioned store orders records by timestamp; those
    that are older than its history are dropped.
    """

    store: StoreSpec | None = None
    send_old: bool = False

    def open(self, context: NodeContext) -> Process:
        if self.store is None:
            return _open_without_store(context)
        if self.store.kind is StoreKind.VERSIONED:
            return _open_versioned(context, self.store, send_old=self.send_old)
        return _open_with_store(context, self.store, send_old=self.send_old)


def _open_without_store(context: NodeContext) -> Process:
    forward, drop = context.forward, context.drop

    def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            drop("null key")
            return
        forward(key, (value, None, True), timestamp_ms, headers)

    return process


def _open_with_store(context: NodeContext, spec: StoreSpec, *, send_old: bool) -> Process:
    store = cast("TimestampedKeyValueStore[object, object]", context.store(spec.name))
    get, put, drop = store.get, store.put, context.drop
    emit = open_emit(context, spec.name, caching=spec.caching, send_old=send_old)

    def without_old(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            drop("null key")
            return
        emit(key, value, None, timestamp_ms, headers, put(key, value, timestamp_ms))

    def with_old(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            drop("null key")
            return
        found = get(key)
        old = None if found is None else found[0]
        emit(key, value, old, timestamp_ms, headers, put(key, value, timestamp_ms))

    return with_old if needs_old_values(context, spec, send_old=send_old) else without_old


def _open_versioned(context: NodeContext, spec: StoreSpec, *, send_old: bool) -> Process:
    write = open_write(context, spec, send_old=send_old)
    old_of = open_old_values(context, spec, send_old=send_old)
    drop = context.drop

    def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        if key is None:
            drop("null key")
            return
        write(key, value, old_of(key), timestamp_ms, headers)

    return process


def needs_old_values(context: NodeContext, spec: StoreSpec, *, send_old: bool) -> bool:
    """Whether a table must read the old value before it writes.

    Caching needs it: a key that is added and deleted before the commit is not emitted at all.
    """
    return send_old or (spec.caching and context.cache_bytes > 0)


@dataclass(frozen=True, slots=True)
class DeriveTable:
    """Derives the values of a table from its parent; None is a deletion.

    `derive` is not called for deletions. With `drop_unseen`, a change from None to None is not
    emitted (if a filter keeps neither the old value nor the new one).
    """

    derive: Derive
    send_old: bool = False
    drop_unseen: bool = False
    store: StoreSpec | None = None

    def open(self, context: NodeContext) -> Process:
        derive, send_old, drop_unseen = self.derive, self.send_old, self.drop_unseen
        if self.store is not None:
            return _open_derived_with_store(context, self, self.store)
        forward = context.forward

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            new, old, is_latest = cast(Change, value)
            new_value = None if new is None else derive(key, new)
            old_value = None if old is None or not send_old else derive(key, old)
            if drop_unseen and new_value is None and old_value is None:
                return
            forward(key, (new_value, old_value, is_latest), timestamp_ms, headers)

        return process


def _open_derived_with_store(context: NodeContext, table: DeriveTable, spec: StoreSpec) -> Process:
    """Open a derived table with a store, which has the old values."""
    derive, drop_unseen, send_old = table.derive, table.drop_unseen, table.send_old
    write = open_write(context, spec, send_old=send_old)
    old_of = open_old_values(context, spec, send_old=send_old)

    def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        new = cast(Change, value)[0]
        new_value = None if new is None else derive(key, new)
        old_value = old_of(key)
        if drop_unseen and new_value is None and old_value is None:
            return
        write(key, new_value, old_value, timestamp_ms, headers)

    return process


# key, new value, old value, timestamp_ms, headers: put into a store, then forwarded.
Write = Callable[[object, object, object, int, Headers], None]


def open_old_values(
    context: NodeContext, spec: StoreSpec, *, send_old: bool
) -> Callable[[object], object]:
    """A function that returns the value in the table's own store, or None if that is not needed."""
    if not needs_old_values(context, spec, send_old=send_old):
        return lambda key: None
    if spec.kind is StoreKind.VERSIONED:
        newest = cast("VersionedStore[object, object]", context.store(spec.name)).get

        def old_version(key: object) -> object:
            found = newest(key)
            return None if found is None else found.value

        return old_version
    get = cast("TimestampedKeyValueStore[object, object]", context.store(spec.name)).get

    def old_value(key: object) -> object:
        found = get(key)
        return None if found is None else found[0]

    return old_value


def open_write(context: NodeContext, spec: StoreSpec, *, send_old: bool) -> Write:
    """A function that writes and emits a change, unless a versioned store refuses it."""
    if spec.kind is StoreKind.VERSIONED:
        put_version = cast("VersionedStore[object, object]", context.store(spec.name)).put
        forward = context.forward

        def write_version(
            key: object, new: object, old: object, timestamp_ms: int, headers: Headers
        ) -> None:
            valid_to_ms = put_version(key, new, timestamp_ms)
            if valid_to_ms is None:
                return
            change = (new, old if send_old else None, valid_to_ms == LATEST)
            forward(key, change, timestamp_ms, headers)

        return write_version
    put = cast("TimestampedKeyValueStore[object, object]", context.store(spec.name)).put
    emit = open_emit(context, spec.name, caching=spec.caching, send_old=send_old)

    def write(key: object, new: object, old: object, timestamp_ms: int, headers: Headers) -> None:
        emit(key, new, old, timestamp_ms, headers, put(key, new, timestamp_ms))

    return write


@dataclass(frozen=True, slots=True)
class ChangesToStream:
    """The new values of a table as a stream; deletions are None."""

    def open(self, context: NodeContext) -> Process:
        forward = context.forward

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            forward(key, cast(Change, value)[0], timestamp_ms, headers)

        return process


def filter_by(predicate: Callable[[Any, Any], object], *, negate: bool = False) -> Derive:
    """The Derive function of a filter."""
    if negate:
        return lambda key, value: None if predicate(key, value) else value
    return lambda key, value: value if predicate(key, value) else None


def map_by(mapper: Callable[..., object], *, with_key: bool = False) -> Derive:
    """The Derive function of map_values."""
    return mapper if with_key else lambda key, value: mapper(value)


class Transformer(Protocol):
    """The user's code of `transform_values`: one object per task and use."""

    def transform(self, key: Any, value: Any) -> object:
        """Return the new value for a key and value; also called for deletions, with None."""
        ...


@dataclass(frozen=True, slots=True)
class TransformTable:
    """Transforms the values of a table with a stateful transformer, also for deletions."""

    supplier: Callable[[], Transformer]
    send_old: bool = False
    store: StoreSpec | None = None

    def open(self, context: NodeContext) -> Process:
        transform, send_old = open_transformer(context, self.supplier), self.send_old
        if self.store is not None:
            write = open_write(context, self.store, send_old=send_old)
            old_of = open_old_values(context, self.store, send_old=send_old)

            def process_with_store(
                key: object, value: object, timestamp_ms: int, headers: Headers
            ) -> None:
                new = transform(key, cast(Change, value)[0])
                write(key, new, old_of(key), timestamp_ms, headers)

            return process_with_store
        forward = context.forward

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            new, old, is_latest = cast(Change, value)
            new_value = transform(key, new)
            old_value = transform(key, old) if send_old else None
            forward(key, (new_value, old_value, is_latest), timestamp_ms, headers)

        return process


def open_transformer(
    context: NodeContext, supplier: Callable[[], Transformer]
) -> Callable[[object, object], object]:
    """Create a transformer; `init(context)` and `close()` are called if it has them."""
    transformer = supplier()
    init = getattr(transformer, "init", None)
    if init is not None:
        init(ReadOnlyNode(context))
    close = getattr(transformer, "close", None)
    if close is not None:
        context.on_close(close)
    return transformer.transform


class ReadOnlyNode:
    """The context of a transformer, which cannot forward."""

    def __init__(self, node: NodeContext) -> None:
        self._node = node
        self.task_id = node.task_id
        self.application_id = node.application_id
        self.schedule = node.schedule
        self.commit = node.request_commit

    # Any, because the type of the store is not known here.
    def store(self, name: str) -> Any:
        """A store that is connected to the node."""
        return self._node.store(name)

    @property
    def record_metadata(self) -> Position | None:
        """Topic, partition and offset of the record."""
        return self._node.position

    @property
    def stream_time_ms(self) -> int:
        """The task's stream time."""
        return self._node.task_time_ms

    def now_ms(self) -> int:
        """The wall clock."""
        return self._node.now_ms()


@dataclass(frozen=True, slots=True)
class TransformedView:
    """The view of a transformed table without a store: each lookup transforms the value again."""

    parent: TableView
    supplier: Callable[[], Transformer]
    used: tuple[str, ...] = ()  # the transformer's own stores

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores of the table above, and those of the transformer."""
        return (*self.parent.stores, *self.used)

    def open(self, context: NodeContext, *, emitted: bool = False) -> Getter:
        """Look up the latest value and transform it."""
        above = self.parent.open(context, emitted=emitted)
        transform = open_transformer(context, self.supplier)

        def get(key: object) -> tuple[object, int] | None:
            found = above(key)
            value = transform(key, None if found is None else found[0])
            return None if value is None else (value, NO_TIME if found is None else found[1])

        return get

    def open_as_of(self, context: NodeContext) -> GetterAsOf:
        """Look up the version at a time and transform it."""
        above, transform = self.parent.open_as_of(context), open_transformer(context, self.supplier)

        def get(key: object, timestamp_ms: int) -> tuple[object, int] | None:
            found = above(key, timestamp_ms)
            value = transform(key, None if found is None else found[0])
            return None if value is None else (value, NO_TIME if found is None else found[1])

        return get
