"""Queries: one read-only store over the partitions of several tasks; for any thread.

A key is in only one partition, so partitions are searched until one has it; ranges are merged in
the order of the serialised keys. A query sees what its task has written so far; if the task is
closed during the query, it raises StoreNotReady.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import Any, Generic, TypeVar

from streams.errors import StoreNotFound, StoreNotReady
from streams.record import Windowed
from streams.state.key_value import KeyValueReads
from streams.state.session import SessionReads
from streams.state.store import VersionedRecord
from streams.state.versioned import VersionedReads
from streams.state.window import WindowReads

K = TypeVar("K")
R = TypeVar("R")
T = TypeVar("T")

# Any, because only the user knows the types of the store.
View = KeyValueReads[Any, Any] | WindowReads[Any, Any] | SessionReads[Any, Any]
AnyView = View | VersionedReads[Any, Any]


class KeyValueQuery(Generic[K, R]):
    """A key-value store over partitions."""

    def __init__(self, views: Sequence[KeyValueReads[K, R]]) -> None:
        self._views = views

    def get(self, key: K) -> R | None:
        """The value of a key."""
        return _first(view.get(key) for view in self._views)

    def range(self, first: K | None = None, last: K | None = None) -> Iterator[tuple[K, R]]:
        """Entries from `first` to `last`, both inclusive; None means unbounded."""
        return self._merged(lambda view: view.range(first, last))

    def reverse_range(self, first: K | None = None, last: K | None = None) -> Iterator[tuple[K, R]]:
        """Like `range`, in descending order."""
        return self._merged(lambda view: view.reverse_range(first, last), backwards=True)

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[K, R]]:
        """Entries whose serialised key has a prefix."""
        return self._merged(lambda view: view.prefix_scan(prefix))

    def all(self) -> Iterator[tuple[K, R]]:
        """All entries."""
        return self._merged(lambda view: view.all())

    def reverse_all(self) -> Iterator[tuple[K, R]]:
        """All entries, in descending order."""
        return self._merged(lambda view: view.reverse_all(), backwards=True)

    def approximate_num_entries(self) -> int:
        """The approximate number of entries."""
        return sum(view.approximate_num_entries() for view in self._views)

    def _merged(
        self,
        read: Callable[[KeyValueReads[K, R]], Iterator[tuple[K, R]]],
        *,
        backwards: bool = False,
    ) -> Iterator[tuple[K, R]]:
        raw = self._views[0].raw
        entries = [read(view) for view in self._views]
        return merge(*entries, key=lambda entry: raw(entry[0]), reverse=backwards)


class WindowQuery(Generic[K, R]):
    """A window store over partitions."""

    def __init__(self, views: Sequence[WindowReads[K, R]]) -> None:
        self._views = views

    def get(self, key: K, start_ms: int) -> R | None:
        """The value of one window."""
        return _first(view.get(key, start_ms) for view in self._views)

    def fetch(self, key: K, from_ms: int, to_ms: int) -> Iterator[tuple[int, R]]:
        """(start, value) of a key's windows that start in [from, to], oldest first."""
        found = [view.fetch(key, from_ms, to_ms) for view in self._views]
        return merge(*found, key=lambda entry: entry[0])

    def backward_fetch(self, key: K, from_ms: int, to_ms: int) -> Iterator[tuple[int, R]]:
        """Like `fetch`, newest first."""
        found = [view.backward_fetch(key, from_ms, to_ms) for view in self._views]
        return merge(*found, key=lambda entry: entry[0], reverse=True)

    def fetch_keys(
        self, first: K | None, last: K | None, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[K], R]]:
        """Windows of a range of keys that start in [from, to]."""
        found = [view.fetch_keys(first, last, from_ms, to_ms) for view in self._views]
        return merge(*found, key=self._by_key)

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[K], R]]:
        """Windows of all keys that start in [from, to], by start and then by key."""
        found = [view.fetch_all(from_ms, to_ms) for view in self._views]
        return merge(*found, key=lambda entry: (entry[0].start_ms, self._by_key(entry)))

    def all(self) -> Iterator[tuple[Windowed[K], R]]:
        """All windows, by key and then by start."""
        return merge(*[view.all() for view in self._views], key=self._by_key)

    def _by_key(self, entry: tuple[Windowed[K], R]) -> tuple[bytes, int]:
        return self._views[0].raw(entry[0].key), entry[0].start_ms


class SessionQuery(Generic[K, R]):
    """A session store over partitions."""

    def __init__(self, views: Sequence[SessionReads[K, R]]) -> None:
        self._views = views

    def get(self, key: K, start_ms: int, end_ms: int) -> R | None:
        """The value of one session."""
        return _first(view.get(key, start_ms, end_ms) for view in self._views)

    def find_sessions(
        self, key: K, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed[K], R]]:
        """Sessions of a key that end and start within these limits, by end and then by start."""
        found = [view.find_sessions(key, earliest_end_ms, latest_start_ms) for view in self._views]
        return merge(*found, key=lambda entry: (entry[0].end_ms, entry[0].start_ms))

    def fetch(self, key: K) -> Iterator[tuple[Windowed[K], R]]:
        """All sessions of a key."""
        return self.find_sessions(key, 0, (1 << 63) - 1)

    def sessions_ended(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[K], R]]:
        """Sessions of all keys that end in [from, to], by end."""
        found = [view.sessions_ended(from_ms, to_ms) for view in self._views]
        return merge(*found, key=lambda entry: entry[0].end_ms)

    def all(self) -> Iterator[tuple[Windowed[K], R]]:
        """All sessions, by key, end and start."""
        raw = self._views[0].raw
        return merge(
            *[view.all() for view in self._views],
            key=lambda entry: (raw(entry[0].key), entry[0].end_ms, entry[0].start_ms),
        )


class VersionedQuery(Generic[K, R]):
    """A versioned store over partitions."""

    def __init__(self, views: Sequence[VersionedReads[K, R]]) -> None:
        self._views = views

    def get(self, key: K) -> VersionedRecord | None:
        """The latest version."""
        return _first(view.get(key) for view in self._views)

    def get_as_of(self, key: K, timestamp_ms: int) -> VersionedRecord | None:
        """The version that is valid at a time."""
        return _first(view.get_as_of(key, timestamp_ms) for view in self._views)

    def versions(
        self,
        key: K,
        from_ms: int | None = None,
        to_ms: int | None = None,
        *,
        newest_first: bool = True,
    ) -> Iterator[VersionedRecord]:
        """The versions that are valid at some time in a range."""
        found = [
            view.versions(key, from_ms, to_ms, newest_first=newest_first) for view in self._views
        ]
        return merge(*found, key=lambda record: record.timestamp_ms, reverse=newest_first)

    def all(self) -> Iterator[tuple[K, VersionedRecord]]:
        """The latest version of every key that has one."""
        raw = self._views[0].raw
        return merge(*[view.all() for view in self._views], key=lambda entry: raw(entry[0]))


# Any, because only the user knows the kind of the store.
def query(name: str, views: Sequence[AnyView]) -> Any:
    """One store over views of its partitions; raises StoreNotReady if there are none."""
    if not views:
        raise StoreNotReady(
            f'no partition of store "{name}" can be read here',
            hint="its tasks are starting, restoring or on other instances; retry soon",
        )
    makers: tuple[tuple[type, Callable[[Any], Any]], ...] = (
        (KeyValueReads, KeyValueQuery),
        (WindowReads, WindowQuery),
        (SessionReads, SessionQuery),
        (VersionedReads, VersionedQuery),
    )
    for kind, make in makers:
        if isinstance(views[0], kind):
            return make(tuple(views))
    raise StoreNotFound(f'store "{name}" cannot be queried', hint="it is not a store of a task")


def _first(results: Iterator[T | None]) -> T | None:
    return next((value for value in results if value is not None), None)
