"""LruStore: a key-value store in memory that retains the most recently used entries.

Evicted entries are deleted like any other, so the changelog gets tombstones and a restored store
does not have more entries than this one.
"""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Generic, TypeVar

from streams.state.key_value import KeyValueReads, PlainKeyValueStore
from streams.state.open_store import ChangelogRow, RestoredRow, StoreParts
from streams.state.store import NO_LIMIT

K = TypeVar("K")
V = TypeVar("V")


class LruStore(Generic[K, V]):
    """A map of limited size. `get` and `put` count as use, iterating does not."""

    def __init__(self, parts: StoreParts) -> None:
        """Open a store of at most `entries_max` entries."""
        self.parts = parts
        inner: PlainKeyValueStore[K, V] = PlainKeyValueStore(parts)
        self._inner = inner
        limit = parts.spec.entries_max
        self._entries_max = (1 << 62) if limit == NO_LIMIT else limit
        self._used: OrderedDict[bytes, None] = (
            OrderedDict()
        )  # keys, the most recently used at the end
        self.range = inner.range
        self.reverse_range = inner.reverse_range
        self.prefix_scan = inner.prefix_scan
        self.all = inner.all
        self.reverse_all = inner.reverse_all

    def get(self, key: K) -> V | None:
        """The value of a key."""
        raw = self._raw(key)
        if raw in self._used:
            self._used.move_to_end(raw)
        return self._inner.get(key)

    def approximate_num_entries(self) -> int:
        """The number of entries."""
        return len(self._used)

    def put(self, key: K, value: V | None) -> None:
        """Set the value of a key; None deletes. May evict the least recently used entry."""
        raw = self._raw(key)
        self._inner.put(key, value)
        if value is None:
            self._used.pop(raw, None)
        else:
            self._use(raw)

    def put_if_absent(self, key: K, value: V | None) -> V | None:
        """Set the value if there is none; returns the existing one."""
        old = self.get(key)
        if old is None:
            self.put(key, value)
        return old

    def put_all(self, entries: Iterable[tuple[K, V | None]]) -> None:
        """Set many entries."""
        for key, value in entries:
            self.put(key, value)

    def delete(self, key: K) -> V | None:
        """Delete a key; returns its value."""
        old = self._inner.get(key)
        self.put(key, None)
        return old

    def changes(self) -> list[ChangelogRow]:
        """Records for the changelog since the last commit."""
        return self._inner.changes()

    def before_commit(self) -> None:
        """Nothing to do."""

    def restore(self, rows: Iterable[RestoredRow]) -> None:
        """Write records of the changelog into the buffer."""
        for row in rows:
            raw, data, _ = row
            self._inner.restore((row,))
            if raw is not None:
                if data is None:
                    self._used.pop(raw, None)
                else:
                    self._use(raw)

    def committed(self) -> None:
        """The buffer was written and emptied."""
        self._inner.committed()

    def discarded(self) -> None:
        """The buffer was emptied without being written; the order of use is lost."""
        self._inner.discarded()
        self._used = OrderedDict.fromkeys(raw for raw, _ in self.parts.buffer.scan(None, None))

    def view(self) -> KeyValueReads[K, V]:
        """A read-only view, for other threads."""
        return self._inner.view()

    def _raw(self, key: K) -> bytes:
        return self.parts.codec.key_bytes(key)

    def _use(self, raw: bytes) -> None:
        self._used[raw] = None
        self._used.move_to_end(raw)
        while len(self._used) > self._entries_max:
            oldest, _ = self._used.popitem(last=False)
            self.parts.buffer.put(oldest, None)
