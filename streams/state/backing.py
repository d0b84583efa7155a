"""Backing, Database: the committed rows of stores."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

FIRST_BLOCK_ROWS = 8  # blocks of a scan grow
LAST_BLOCK_ROWS = 4096


class Backing(Protocol):
    """The committed rows of one store. Other threads may read at any time."""

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        ...

    def scan(
        self, first: bytes | None, before: bytes | None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows from `first` (inclusive) to `before` (exclusive); None is an open end."""
        ...

    def count(self) -> int:
        """The approximate number of rows."""
        ...

    @property
    def size_bytes(self) -> int:
        """The approximate size of the rows, on disk or in memory."""
        ...

    @property
    def memory_bytes(self) -> int:
        """The approximate memory that the rows use."""
        ...

    @property
    def is_memory(self) -> bool:
        """Whether the rows are in memory, so that they need no cache."""
        ...


@dataclass(slots=True)
class Write:
    """The changes of a commit, applied atomically: rows, expired rows, and metadata of the task.

    None deletes a row or an entry of the metadata. `expired` deletes all rows of a store before the
    given key.
    """

    rows: dict[str, Mapping[bytes, bytes | None]] = field(default_factory=dict)
    expired: dict[str, bytes] = field(default_factory=dict)
    metadata: dict[bytes, bytes | None] = field(default_factory=dict)


class Database(Protocol):
    """The backings of a task's stores."""

    def backing(self, store: str) -> Backing:
        """The rows of a store."""
        ...

    def metadata(self) -> dict[bytes, bytes]:
        """The metadata that was written with the rows."""
        ...

    def write(self, write: Write) -> None:
        """Apply all changes, or none."""
        ...

    def close(self) -> None:
        """Close files; rows can no longer be read."""
        ...


@runtime_checkable
class Databases(Protocol):
    """Opens databases: RocksDB's, or those of a simulation; see `streams.state.databases`."""

    def open(self, path: Path, stores: Sequence[str]) -> Database:
        """Open the database in a directory; create one if there is none or it is damaged.

        Stores that are not in `stores` are deleted.
        """
        ...

    def limit_memory(self, cache_bytes: int, write_buffer_bytes: int) -> None:
        """Limit the memory that all databases opened from now on use together."""
        ...

    @property
    def memory_bytes(self) -> int:
        """The memory that all databases of the process use."""
        ...


Row = tuple[bytes, bytes]
ReadBlock = Callable[[bytes | None, bytes | None, int], Sequence[Row]]


def scan_in_blocks(
    read: ReadBlock, first: bytes | None, before: bytes | None, *, backwards: bool
) -> Iterator[Row]:
    """Rows from `first` (inclusive) to `before` (exclusive), read block by block.

    `read` returns at most the given number of rows from `first` on, or backwards from `before`;
    rows beyond the other end are ignored.
    """
    size = FIRST_BLOCK_ROWS
    while True:
        rows = read(first, before, size)
        if backwards:
            inside = [row for row in rows if first is None or row[0] >= first]
        else:
            inside = [row for row in rows if before is None or row[0] < before]
        yield from inside
        if len(inside) < size:
            return
        if backwards:
            before = inside[-1][0]
        else:
            first = inside[-1][0] + b"\0"
        size = min(size * 8, LAST_BLOCK_ROWS)


def metadata_key(kind: str, store: str) -> bytes:
    """The key of an entry of the metadata about a store."""
    return f"{kind}/{store}".encode()


def is_metadata_of(key: bytes, store: str) -> bool:
    """Whether an entry of the metadata is about a store."""
    return key.partition(b"/")[2] == store.encode()
