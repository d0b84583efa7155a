"""MemoryDatabase: rows that are lost with the task; a restart restores them from the changelog.

A dict serves lookups; sorted keys are created by the first scan. The lock protects
scans by threads of queries from writes by the task's thread.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from sortedcontainers import SortedList

from broker import concurrency
from streams.errors import StoreNotReady
from streams.state.backing import Backing, Write

ROW_BYTES = 120  # of two bytes objects and their dict and list entries, in addition to the contents


class MemoryBacking:
    """The rows of one store."""

    is_memory = True

    def __init__(self) -> None:
        self._rows: dict[bytes, bytes] = {}
        self._sorted: SortedList | None = None
        self._lock = concurrency.Lock()
        self._bytes = 0
        self._is_open = True
        self.get: Callable[[bytes], bytes | None] = self._rows.get

    def scan(
        self, first: bytes | None, before: bytes | None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """A snapshot of the rows from `first` (inclusive) to `before` (exclusive)."""
        with self._lock:
            if not self._is_open:
                raise _closed()
            if self._sorted is None:
                self._sorted = SortedList(self._rows)
            keys = list(
                self._sorted.irange(first, before, inclusive=(True, False), reverse=backwards)
            )
        get = self._rows.get
        for key in keys:
            value = get(key)
            if value is not None:
                yield key, value

    def count(self) -> int:
        """The number of rows."""
        return len(self._rows)

    @property
    def size_bytes(self) -> int:
        """Bytes of keys and values."""
        return self._bytes

    @property
    def memory_bytes(self) -> int:
        """The approximate memory that the rows use."""
        return self._bytes + ROW_BYTES * len(self._rows)

    def write(self, rows: Mapping[bytes, bytes | None]) -> None:
        """Set rows, or delete those with None."""
        with self._lock:
            for key, value in rows.items():
                if value is None:
                    self._delete(key)
                else:
                    self._set(key, value)

    def expire(self, before: bytes) -> None:
        """Delete all rows before a key."""
        with self._lock:
            if self._sorted is None:
                self._sorted = SortedList(self._rows)
            for key in list(self._sorted.irange(None, before, inclusive=(True, False))):
                self._delete(key)

    def close(self) -> None:
        """Drop the rows; later reads are refused."""
        self.get = _refuse
        with self._lock:
            self._is_open = False
            self._rows.clear()
            self._sorted = None
            self._bytes = 0

    def _set(self, key: bytes, value: bytes) -> None:
        old = self._rows.get(key)
        self._rows[key] = value
        if old is not None:
            self._bytes += len(value) - len(old)
            return
        self._bytes += len(key) + len(value)
        if self._sorted is not None:
            self._sorted.add(key)

    def _delete(self, key: bytes) -> None:
        old = self._rows.pop(key, None)
        if old is None:
            return
        self._bytes -= len(key) + len(old)
        if self._sorted is not None:
            self._sorted.remove(key)


class MemoryDatabase:
    """The stores of a task that are in memory."""

    def __init__(self, stores: Sequence[str]) -> None:
        self._backings = {name: MemoryBacking() for name in stores}
        self._metadata: dict[bytes, bytes] = {}

    def backing(self, store: str) -> Backing:
        """The rows of a store."""
        return self._backings[store]

    def metadata(self) -> dict[bytes, bytes]:
        """The metadata that was written with the rows."""
        return dict(self._metadata)

    def write(self, write: Write) -> None:
        """Change rows and metadata; this cannot fail halfway."""
        for name, rows in write.rows.items():
            self._backings[name].write(rows)
        for name, before in write.expired.items():
            self._backings[name].expire(before)
        for key, value in write.metadata.items():
            if value is None:
                self._metadata.pop(key, None)
            else:
                self._metadata[key] = value

    def close(self) -> None:
        """Drop the rows."""
        for backing in self._backings.values():
            backing.close()


def _refuse(key: bytes) -> bytes | None:
    raise _closed()


def _closed() -> StoreNotReady:
    return StoreNotReady(
        "the store is closed",
        hint="its task has stopped or moved; retry, perhaps on another instance",
    )
