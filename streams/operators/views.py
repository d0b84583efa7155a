"""Views: how joins and filters look up the current value of a key in another table.

A table with a store is looked up there. The value of another table (a filter or map_values, for
example) is computed from the table above it, so that nothing is stored twice.
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
    """A table in which a node can look up values."""

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores to which a node must be connected to open the view."""
        ...

    def open(self, context: NodeContext, *, emitted: bool = False) -> Getter:
        """Open the lookup in a task.

        `emitted`: look up the last emitted value, not a cached change.
        """
        ...

    def open_as_of(self, context: NodeContext) -> GetterAsOf:
        """Open the lookup by time; a table without history returns its current value."""
        ...


@dataclass(frozen=True, slots=True)
class StoreView:
    """The view of a timestamped key-value store, or of a versioned one."""

    store: str
    versioned: bool = False

    @property
    def stores(self) -> tuple[str, ...]:
        """The store."""
        return (self.store,)

    def open(self, context: NodeContext, *, emitted: bool = False) -> Getter:
        """Look up the latest value, or the last emitted one."""
        if not self.versioned:
            store = cast("TimestampedKeyValueStore[object, object]", context.store(self.store))
            return open_emitted(context, self.store, store.get) if emitted else store.get
        newest = cast("VersionedStore[object, object]", context.store(self.store)).get

        def get(key: object) -> tuple[object, int] | None:
            found = newest(key)
            return None if found is None else (found.value, found.timestamp_ms)

        return get

    def open_as_of(self, context: NodeContext) -> GetterAsOf:
        """Look up the version that is valid at a time."""
        if not self.versioned:
            present = self.open(context)
            return lambda key, timestamp_ms: present(key)
        at = cast("VersionedStore[object, object]", context.store(self.store)).get_as_of

        def get(key: object, timestamp_ms: int) -> tuple[object, int] | None:
            found = at(key, timestamp_ms)
            return None if found is None else (found.value, found.timestamp_ms)

        return get


Derive = Callable[
    [object, object], object
]  # from key and value to the derived value; None: no value


@dataclass(frozen=True, slots=True)
class DerivedView:
    """The view of a table without a store, derived from the one above: filter, map_values.

    `derive` is not called for keys that have no value.
    """

    parent: TableView
    derive: Derive

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores of the table above."""
        return self.parent.stores

    def open(self, context: NodeContext, *, emitted: bool = False) -> Getter:
        """Look up the latest value and derive from it."""
        above, derive = self.parent.open(context, emitted=emitted), self.derive

        def get(key: object) -> tuple[object, int] | None:
            found = above(key)
            if found is None:
                return None
            value = derive(key, found[0])
            return None if value is None else (value, found[1])

        return get

    def open_as_of(self, context: NodeContext) -> GetterAsOf:
        """Look up the version at a time and derive from it."""
        above, derive = self.parent.open_as_of(context), self.derive

        def get(key: object, timestamp_ms: int) -> tuple[object, int] | None:
            found = above(key, timestamp_ms)
            if found is None:
                return None
            value = derive(key, found[0])
            return None if value is None else (value, found[1])

        return get
