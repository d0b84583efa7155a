"""Views: how a join or a filter looks up the present value of another table's key.

A table that is kept in a store is looked up there. One that is not (a filter or map_values of a
table, say) is computed from the table above it, so that nothing is stored twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

from streams.operators.emitting import Getter, open_emitted
from streams.processor import NodeContext
from streams.state.store import TimestampedKeyValueStore, VersionedStore

# The same as of a time: (key, timestamp_ms).
GetterAsOf = Callable[[object, int], tuple[object, int] | None]


class TableView(Protocol):
    """A table that can be asked for the value of a key."""

    @property
    def stores(self) -> tuple[str, ...]:
        """Stores that a node must be connected to, to open the view."""
        ...

    def open(self, context: NodeContext, *, emitted: bool = False) -> Getter:
        """The look-up, inside one task.

        `emitted`: the value that was emitted last, not one that is held back.
        """
        ...

    def open_as_of(self, context: NodeContext) -> GetterAsOf:
        """The look-up by time; a table without history answers with its present value."""
        ...


@dataclass(frozen=True, slots=True)
class StoreView:
    """A timestamped key-value store, or a versioned one."""

    store: str
    versioned: bool = False

    @property
    def stores(self) -> tuple[str, ...]:
        """The store."""
        return (self.store,)

    def open(self, context: NodeContext, *, emitted: bool = False) -> Getter:
        """The newest value, or the one that was emitted last."""
        if not self.versioned:
            store = cast("TimestampedKeyValueStore[object, object]", context.store(self.store))
            return open_emitted(context, self.store, store.get) if emitted else store.get
        newest = cast("VersionedStore[object, object]", context.store(self.store)).get

        def get(key: object) -> tuple[object, int] | None:
            found = newest(key)
            return None if found is None else (found.value, found.timestamp_ms)

        return get

    def open_as_of(self, context: NodeContext) -> GetterAsOf:
        """The version valid at a time."""
        if not self.versioned:
            present = self.open(context)
            return lambda key, timestamp_ms: present(key)
        at = cast("VersionedStore[object, object]", context.store(self.store)).get_as_of

        def get(key: object, timestamp_ms: int) -> tuple[object, int] | None:
            found = at(key, timestamp_ms)
            return None if found is None else (found.value, found.timestamp_ms)

        return get


Derive = Callable[[object, object], object]  # key and value to the value seen; None: no value


@dataclass(frozen=True, slots=True)
class DerivedView:
    """A table that is not kept, computed from the one above: filter, map_values.

    `derive` is not called for keys that have no value.
    """

    parent: TableView
    derive: Derive

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores of the table above."""
        return self.parent.stores

    def open(self, context: NodeContext, *, emitted: bool = False) -> Getter:
        """The derived value of the newest."""
        above, derive = self.parent.open(context, emitted=emitted), self.derive

        def get(key: object) -> tuple[object, int] | None:
            found = above(key)
            if found is None:
                return None
            value = derive(key, found[0])
            return None if value is None else (value, found[1])

        return get

    def open_as_of(self, context: NodeContext) -> GetterAsOf:
        """The derived value of the version valid at a time."""
        above, derive = self.parent.open_as_of(context), self.derive

        def get(key: object, timestamp_ms: int) -> tuple[object, int] | None:
            found = above(key, timestamp_ms)
            if found is None:
                return None
            value = derive(key, found[0])
            return None if value is None else (value, found[1])

        return get
