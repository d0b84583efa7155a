"""WriteBuffer: the writes of a store since the last commit, over its committed rows.

    get:    dirty -> clean -> backing        a hit in dirty is one dict lookup
    put:    dirty
    scan:   dirty merged with the backing; dirty takes precedence
    commit: dirty -> (one write of the task) -> clean

`dirty` has the rows since the last commit, None for deleted ones. `clean` caches committed rows
that were read or written recently, up to a limit of bytes. Only the task's thread uses a
WriteBuffer; other threads read through ConcurrentReads, which see the same rows and change nothing.
"""

from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Protocol

from sortedcontainers import SortedList

from streams.state.backing import Backing
from streams.state.clean_rows import ABSENT, ENTRY_BYTES, CleanRows
from streams.state.key_layout import TIME_MAX

_FIRST = itemgetter(0)
Row = tuple[bytes, bytes]
_NOTHING: tuple[Row, ...] = ()


class Reads(Protocol):
    """The interface through which a store reads its rows, as bytes."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        ...

    def scan(
        self, first: bytes | None, before: bytes | None, *, backwards: bool = False
    ) -> Iterator[Row]:
        """Rows from `first` (inclusive) to `before` (exclusive); None means unbounded."""
        ...

    def count(self) -> int:
        """The approximate number of rows."""
        ...


class WriteBuffer:
    """The rows of one store, for its task."""

    __slots__ = (
        "_backing",
        "_dirty",
        "clean",
        "dirty_bytes",
        "sorted_keys",
    )

    def __init__(self, backing: Backing, *, cache_bytes: int) -> None:
        """`cache_bytes` is the limit of `clean`."""
        self._backing = backing
        self._dirty: dict[bytes, bytes | None] = {}
        self.sorted_keys: SortedList | None = None
        self.clean = CleanRows(0 if backing.is_memory else cache_bytes)
        self.dirty_bytes = 0

    @property
    def dirty(self) -> dict[bytes, bytes | None]:
        """Rows since the last commit; read-only."""
        return self._dirty

    @property
    def committed_reads(self) -> Reads:
        """Rows as of the last commit."""
        return self._backing

    @property
    def memory_bytes(self) -> int:
        """The approximate memory that all rows use."""
        return self.dirty_bytes + self.clean.memory_bytes + self._backing.memory_bytes

    @property
    def size_bytes(self) -> int:
        """The approximate size of all rows, on disk or in memory."""
        return self.dirty_bytes + self._backing.size_bytes

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        value = self._dirty.get(key, ABSENT)
        if value is ABSENT:
            return self.get_committed(key, 0)
        return value  # type: ignore[return-value]  # mypy does not narrow by identity

    def get_committed(self, key: bytes, time_ms: int) -> bytes | None:
        """The value of a key that is not in `dirty`, and whose row has this time."""
        clean = self.clean
        value = clean.get(key)
        if value is not ABSENT:
            return value  # type: ignore[return-value]  # mypy does not narrow by identity
        if time_ms > clean.missing_until_ms:
            return None
        row = self._backing.get(key)
        if row is not None:  # a missing row is usually written next
            clean.keep(key, row)
        return row

    def put(self, key: bytes, value: bytes | None) -> None:
        """Set the value of a key; None deletes it."""
        dirty = self._dirty
        old = dirty.get(key, ABSENT)
        dirty[key] = value
        if old is ABSENT:
            self.dirty_bytes += ENTRY_BYTES + len(key) + (len(value) if value else 0)
            if self.sorted_keys is not None:
                self.sorted_keys.add(key)
            return
        self.dirty_bytes += (len(value) if value else 0) - (
            len(old) if old else 0  # type: ignore[arg-type]
        )

    def scan(
        self, first: bytes | None, before: bytes | None, *, backwards: bool = False
    ) -> Iterator[Row]:
        """A snapshot of the rows from `first` (inclusive) to `before` (exclusive).

        Writes during the iteration do not change its results.
        """
        dirty = self._dirty
        if not dirty:
            return self._backing.scan(first, before, backwards=backwards)
        if self.sorted_keys is None:
            self.sorted_keys = SortedList(dirty)
        written = [
            (key, dirty[key])
            for key in self.sorted_keys.irange(first, before, (True, False), backwards)
        ]
        committed = self._backing.scan(first, before, backwards=backwards)
        return merged(written, committed, backwards=backwards) if written else committed

    def count(self) -> int:
        """The number of rows; an estimate if they are on disk."""
        backing, count = self._backing, self._backing.count()
        if not backing.is_memory:
            return count + len(self._dirty)
        for key, value in self._dirty.items():
            count += (value is not None) - (backing.get(key) is not None)
        return count

    def limit_cache(self, cache_bytes: int) -> None:
        """Limit `clean` to this many bytes from now on."""
        self.clean.limit(cache_bytes)

    def on_disk(self, until_ms: int) -> None:
        """Set the latest time of rows of the backing; below 0: there are none."""
        self.clean.on_disk(until_ms)

    def committed(self, latest_ms: int = TIME_MAX) -> None:
        """Called when dirty rows are in the backing; no row has a later time than `latest_ms`."""
        self.clean.committed(self._dirty.copy(), self.dirty_bytes, latest_ms)
        self._clear_dirty()

    def discard(self) -> None:
        """Discard the writes since the last commit."""
        self._clear_dirty()

    def shared(self) -> "ConcurrentReads":
        """The same rows, for other threads."""
        return ConcurrentReads(self._dirty, self._backing)

    def _clear_dirty(self) -> None:
        # Other threads reference this dict, so it is cleared and not replaced.
        self._dirty.clear()
        self.sorted_keys = None
        self.dirty_bytes = 0


class ConcurrentReads:
    """The rows of a store for other threads: the last commit and later writes.

    Reads `dirty` before the backing. A commit writes the backing before it clears `dirty`, so no
    row is missed.
    """

    __slots__ = ("_backing", "_dirty")

    def __init__(self, dirty: dict[bytes, bytes | None], backing: Backing) -> None:
        self._dirty = dirty
        self._backing = backing

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        value = self._dirty.get(key, ABSENT)
        if value is ABSENT:
            return self._backing.get(key)
        return value  # type: ignore[return-value]

    def scan(
        self, first: bytes | None, before: bytes | None, *, backwards: bool = False
    ) -> Iterator[Row]:
        """Rows from `first` (inclusive) to `before` (exclusive)."""
        # dict.copy is atomic.
        written = sorted(
            (
                (key, value)
                for key, value in self._dirty.copy().items()
                if (first is None or key >= first) and (before is None or key < before)
            ),
            key=_FIRST,
            reverse=backwards,
        )
        committed = self._backing.scan(first, before, backwards=backwards)
        return merged(written, committed, backwards=backwards)

    def count(self) -> int:
        """The approximate number of rows."""
        return self._backing.count() + len(self._dirty)


def merged(
    written: Iterable[tuple[bytes, bytes | None]], committed: Iterator[Row], *, backwards: bool
) -> Iterator[Row]:
    """Merge sorted rows; written rows replace committed ones, and deleted ones are omitted."""
    previous: bytes | None = None
    # merge is stable: of equal keys the written row comes first.
    for key, value in merge(written, committed, key=_FIRST, reverse=backwards):
        if key == previous:
            continue
        previous = key
        if value is not None:
            yield key, value
