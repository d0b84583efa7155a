"""StoreSpec: the description of a store; and the Protocols of open stores.

Keys and values are those of the user; an open store converts them to bytes with its serdes. Reads
see all writes since the last commit; only the commit writes them to disk.

`put` of a timestamped, window or session store returns the size of the entry in bytes, or REFUSED
if it is older than the store's retention: the caller counts it as dropped.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, Protocol, TypeVar

from broker.serde import Serde
from streams.record import Windowed

K = TypeVar("K")
V = TypeVar("V")
VCo = TypeVar("VCo", covariant=True)
VContra = TypeVar("VContra", contravariant=True)

REFUSED = -1
NO_LIMIT = -1
LATEST = -1  # `valid_to_ms` of the latest version of a key


class StoreKind(Enum):
    """The kinds of stores."""

    KEY_VALUE = "key_value"
    TIMESTAMPED_KEY_VALUE = "timestamped_key_value"
    VERSIONED = "versioned"
    WINDOW = "window"
    TIMESTAMPED_WINDOW = "timestamped_window"
    SESSION = "session"
    LRU = "lru"


@dataclass(frozen=True, slots=True)
class StoreSpec:
    """A store in a topology. Without serdes, it has the application's defaults."""

    name: str
    kind: StoreKind
    key_serde: Serde[Any] | None = None  # of the plain key, also in window and session stores
    value_serde: Serde[Any] | None = None
    persistent: bool = True  # in RocksDB, otherwise in memory
    caching: bool = False  # whether results of the DSL can be cached until the commit
    logging: bool = True
    topic_config: Mapping[str, str] = field(default_factory=dict)  # of the changelog topic
    retention_ms: int = NO_LIMIT  # window and session stores: how long rows are kept
    window_size_ms: int = NO_LIMIT  # window stores
    retain_duplicates: bool = False  # window stores of stream-stream joins
    history_ms: int = NO_LIMIT  # versioned stores: how long old versions are kept
    ttl_ms: int = NO_LIMIT  # key-value stores: entries expire after this stream time
    entries_max: int = NO_LIMIT  # LRU stores


class VersionedRecord(NamedTuple):
    """One version of a key: valid from `timestamp_ms` until `valid_to_ms` (or LATEST)."""

    value: Any
    timestamp_ms: int
    valid_to_ms: int = LATEST


class ReadOnlyKeyValueStore(Protocol[K, VCo]):
    """Reads by key. Iteration is in the order of the serialised keys."""

    def get(self, key: K) -> VCo | None:
        """The value of a key."""
        ...

    def range(self, first: K | None = None, last: K | None = None) -> Iterator[tuple[K, VCo]]:
        """Entries from `first` to `last`, both inclusive; None means unbounded."""
        ...

    def reverse_range(
        self, first: K | None = None, last: K | None = None
    ) -> Iterator[tuple[K, VCo]]:
        """Like `range`, in descending order."""
        ...

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[K, VCo]]:
        """Entries whose serialised key has a prefix."""
        ...

    def all(self) -> Iterator[tuple[K, VCo]]:
        """All entries."""
        ...

    def reverse_all(self) -> Iterator[tuple[K, VCo]]:
        """All entries, in descending order."""
        ...

    def approximate_num_entries(self) -> int:
        """The approximate number of entries."""
        ...


class KeyValueStore(ReadOnlyKeyValueStore[K, V], Protocol[K, V]):
    """A map. A put of None deletes."""

    def put(self, key: K, value: V | None) -> None:
        """Set the value of a key."""
        ...

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        """Set the value if there is none; returns the existing one."""
        ...

    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        """Set many entries."""
        ...

    def delete(self, key: K) -> V | None:
        """Delete a key; returns its value."""
        ...


class TimestampedKeyValueStore(ReadOnlyKeyValueStore[K, tuple[V, int]], Protocol[K, V]):
    """A map of values with timestamps: reads return (value, timestamp_ms)."""

    def put(self, key: K, value: V | None, timestamp_ms: int) -> int:
        """Set a value and its time; None deletes. Returns the size of the entry in bytes."""
        ...

    def put_if_absent(self, key: K, value: V, timestamp_ms: int) -> tuple[V, int] | None:
        """Set value and time if there is none; returns the existing ones."""
        ...

    def delete(self, key: K) -> tuple[V, int] | None:
        """Delete a key; returns its value and time."""
        ...


class VersionedStore(Protocol[K, VContra]):
    """A map that retains older versions for `history_ms`."""

    def put(self, key: K, value: VContra | None, timestamp_ms: int) -> int | None:
        """Add a version (None deletes the key from then on); returns the end of its validity.

        LATEST if it is the latest version; None if it is older than the history and was refused.
        """
        ...

    def delete(self, key: K, timestamp_ms: int) -> VersionedRecord | None:
        """Delete the key from a time on; returns the version that was valid then."""
        ...

    def get(self, key: K) -> VersionedRecord | None:
        """The latest version."""
        ...

    def get_as_of(self, key: K, timestamp_ms: int) -> VersionedRecord | None:
        """The version that is valid at a time; None if it is older than the history."""
        ...

    def versions(
        self,
        key: K,
        from_ms: int | None = None,
        to_ms: int | None = None,
        *,
        newest_first: bool = True,
    ) -> Iterator[VersionedRecord]:
        """The versions that are valid at some time in a range."""
        ...

    def all(self) -> Iterator[tuple[K, VersionedRecord]]:
        """The latest version of every key that has one."""
        ...


class WindowStore(Protocol[K, V]):
    """Values by key and window start. With `retain_duplicates` a put adds, and None is ignored."""

    def put(self, key: K, value: V | None, start_ms: int) -> int:
        """Set the value of a window; None deletes. Returns the size in bytes, or REFUSED."""
        ...

    def get(self, key: K, start_ms: int) -> V | None:
        """The value of one window."""
        ...

    def fetch(self, key: K, from_ms: int, to_ms: int) -> Iterator[tuple[int, V]]:
        """(start, value) of a key's windows that start in [from, to], oldest first."""
        ...

    def backward_fetch(self, key: K, from_ms: int, to_ms: int) -> Iterator[tuple[int, V]]:
        """Like `fetch`, newest first."""
        ...

    def fetch_keys(
        self, first: K | None, last: K | None, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Windows of a range of keys that start in [from, to]."""
        ...

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[K], V]]:
        """Windows of all keys that start in [from, to], by start and then by key."""
        ...

    def all(self) -> Iterator[tuple[Windowed[K], V]]:
        """All windows, by key and then by start."""
        ...


class TimestampedWindowStore(Protocol[K, V]):
    """A WindowStore whose values have timestamps: reads return (value, timestamp_ms)."""

    def put(self, key: K, value: V | None, timestamp_ms: int, start_ms: int) -> int:
        """Set value and time of a window; None deletes. Returns the size in bytes, or REFUSED."""
        ...

    def get(self, key: K, start_ms: int) -> tuple[V, int] | None:
        """Value and time of one window."""
        ...

    def fetch(self, key: K, from_ms: int, to_ms: int) -> Iterator[tuple[int, tuple[V, int]]]:
        """(start, (value, time)) of a key's windows that start in [from, to], oldest first."""
        ...

    def backward_fetch(
        self, key: K, from_ms: int, to_ms: int
    ) -> Iterator[tuple[int, tuple[V, int]]]:
        """Like `fetch`, newest first."""
        ...

    def fetch_keys(
        self, first: K | None, last: K | None, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[K], tuple[V, int]]]:
        """Windows of a range of keys that start in [from, to]."""
        ...

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[K], tuple[V, int]]]:
        """Windows of all keys that start in [from, to], by start and then by key."""
        ...

    def all(self) -> Iterator[tuple[Windowed[K], tuple[V, int]]]:
        """All windows, by key and then by start."""
        ...


class SessionStore(Protocol[K, V]):
    """Values by key and session. Ends and starts are inclusive."""

    def put(self, key: K, start_ms: int, end_ms: int, value: V | None) -> int:
        """Set the value of a session; None removes. Returns the size in bytes, or REFUSED."""
        ...

    def remove(self, key: K, start_ms: int, end_ms: int) -> None:
        """Remove a session."""
        ...

    def get(self, key: K, start_ms: int, end_ms: int) -> V | None:
        """The value of one session."""
        ...

    def find_sessions(
        self, key: K, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Sessions of a key that end and start within these limits, by end and then by start."""
        ...

    def fetch(self, key: K) -> Iterator[tuple[Windowed[K], V]]:
        """All sessions of a key."""
        ...

    def sessions_ended(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[K], V]]:
        """Sessions of all keys that end in [from, to], by end."""
        ...

    def all(self) -> Iterator[tuple[Windowed[K], V]]:
        """All sessions."""
        ...
