"""Queries without timestamps: reads of timestamped stores that return plain values."""

from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from streams.record import Windowed
from streams.state.query import KeyValueQuery, WindowQuery
from streams.state.store import StoreKind

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")


class PlainKeyValueQuery(Generic[K, V]):
    """A timestamped key-value store over partitions, without times."""

    def __init__(self, query: KeyValueQuery[K, tuple[V, int]]) -> None:
        self._query = query

    def get(self, key: K) -> V | None:
        """The value of a key."""
        return _value(self._query.get(key))

    def range(self, first: K | None = None, last: K | None = None) -> Iterator[tuple[K, V]]:
        """Entries from `first` to `last`, both inclusive; None means unbounded."""
        return _values(self._query.range(first, last))

    def reverse_range(self, first: K | None = None, last: K | None = None) -> Iterator[tuple[K, V]]:
        """Like `range`, in descending order."""
        return _values(self._query.reverse_range(first, last))

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[K, V]]:
        """Entries whose serialised key has a prefix."""
        return _values(self._query.prefix_scan(prefix))

    def all(self) -> Iterator[tuple[K, V]]:
        """All entries."""
        return _values(self._query.all())

    def reverse_all(self) -> Iterator[tuple[K, V]]:
        """All entries, in descending order."""
        return _values(self._query.reverse_all())

    def approximate_num_entries(self) -> int:
        """The approximate number of entries."""
        return self._query.approximate_num_entries()


class PlainWindowQuery(Generic[K, V]):
    """A timestamped window store over partitions, without times."""

    def __init__(self, query: WindowQuery[K, tuple[V, int]]) -> None:
        self._query = query

    def get(self, key: K, start_ms: int) -> V | None:
        """The value of one window."""
        return _value(self._query.get(key, start_ms))

    def fetch(self, key: K, from_ms: int, to_ms: int) -> Iterator[tuple[int, V]]:
        """(start, value) of a key's windows that start in [from, to], oldest first."""
        return _values(self._query.fetch(key, from_ms, to_ms))

    def backward_fetch(self, key: K, from_ms: int, to_ms: int) -> Iterator[tuple[int, V]]:
        """Like `fetch`, newest first."""
        return _values(self._query.backward_fetch(key, from_ms, to_ms))

    def fetch_keys(
        self, first: K | None, last: K | None, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Windows of a range of keys that start in [from, to]."""
        return _values(self._query.fetch_keys(first, last, from_ms, to_ms))

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[K], V]]:
        """Windows of all keys that start in [from, to], by start and then by key."""
        return _values(self._query.fetch_all(from_ms, to_ms))

    def all(self) -> Iterator[tuple[Windowed[K], V]]:
        """All windows, by key and then by start."""
        return _values(self._query.all())


# Any, because only the user knows the kind of the store.
def without_times(kind: StoreKind, query: Any) -> Any:
    """Convert a query so that it returns plain values; others are returned unchanged."""
    if kind is StoreKind.TIMESTAMPED_KEY_VALUE:
        return PlainKeyValueQuery(query)
    return PlainWindowQuery(query) if kind is StoreKind.TIMESTAMPED_WINDOW else query


def _value(entry: tuple[V, int] | None) -> V | None:
    return None if entry is None else entry[0]


def _values(entries: Iterable[tuple[T, tuple[V, int]]]) -> Iterator[tuple[T, V]]:
    return ((key, value) for key, (value, _) in entries)
