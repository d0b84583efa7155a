"""RocksDatabase: the persistent stores of one task in one RocksDB; only this module uses rocksdict.

Each store is a column family with its name ("default" is in "store/default"); the metadata
(changelog positions and observed times) is in the default one. A commit is one WriteBatch over all
of them, so after a kill all stores and the metadata are those of one commit.

The write-ahead log is written but not synced: a commit survives the end of the process. After a
failure of the machine, stores are restored from their changelogs. DatabaseFolder handles damage.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import cast

from rocksdict import (
    BlockBasedOptions,
    Cache,
    ColumnFamily,
    DBCompressionType,
    Options,
    Rdict,
    WriteBatch,
    WriteBufferManager,
)

from broker import concurrency
from broker.files import FileSystem
from streams.errors import StoreError, StoreNotReady
from streams.state.backing import Backing, Write, is_metadata_of, scan_in_blocks
from streams.state.database_folder import DatabaseFolder, closed

CACHE_BYTES = 64 << 20
WRITE_BUFFER_BYTES = 32 << 20
DEFAULT_FAMILY = "default"
STORE_PREFIX = "store/"  # of the column family of a store called "default"
BLOOM_BITS = 10


class RocksMemory:
    """Memory that all databases of a process share: cached blocks and rows not yet in files."""

    def __init__(
        self, cache_bytes: int = CACHE_BYTES, write_buffer_bytes: int = WRITE_BUFFER_BYTES
    ) -> None:
        """Set the limits; write buffers count against the cache."""
        self.budgets = (cache_bytes, write_buffer_bytes)
        self._cache = Cache(cache_bytes)
        self._write_buffers = WriteBufferManager.new_write_buffer_manager_with_cache(
            write_buffer_bytes, False, self._cache
        )
        self._write_buffer_bytes = write_buffer_bytes

    @property
    def used_bytes(self) -> int:
        """The memory in use."""
        return self._cache.get_usage()

    def options(self) -> Options:
        """Options of a database or column family that uses this memory."""
        table = BlockBasedOptions()
        table.set_block_cache(self._cache)
        table.set_bloom_filter(BLOOM_BITS, False)
        table.set_cache_index_and_filter_blocks(True)
        table.set_pin_l0_filter_and_index_blocks_in_cache(True)
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        options.create_missing_column_families(True)
        options.set_block_based_table_factory(table)
        options.set_write_buffer_manager(self._write_buffers)
        options.set_write_buffer_size(max(1 << 20, self._write_buffer_bytes // 4))
        options.set_compression_type(DBCompressionType.lz4())
        options.set_max_total_wal_size(2 * self._write_buffer_bytes)
        # Rows and metadata of all stores are flushed to files atomically.
        options.set_atomic_flush(True)
        options.set_keep_log_file_num(2)
        options.set_max_log_file_size(1 << 20)
        options.set_stats_dump_period_sec(0)
        return options


class _Shared:
    """The memory of this process."""

    lock = concurrency.Lock()
    memory: RocksMemory | None = None


def share_memory(memory: RocksMemory) -> None:
    """Use this memory for databases that are opened from now on."""
    with _Shared.lock:
        _Shared.memory = memory


def limit_memory(cache_bytes: int, write_buffer_bytes: int) -> None:
    """Limit the memory that databases opened from now on use together."""
    with _Shared.lock:
        if _Shared.memory is None or _Shared.memory.budgets != (cache_bytes, write_buffer_bytes):
            _Shared.memory = RocksMemory(cache_bytes, write_buffer_bytes)


def shared_memory() -> RocksMemory:
    """The memory of this process, created on first use."""
    with _Shared.lock:
        if _Shared.memory is None:
            _Shared.memory = RocksMemory()
        return _Shared.memory


class RocksBacking:
    """The rows of one store."""

    is_memory = False
    memory_bytes = 0  # it is part of the shared memory

    __slots__ = ("_database", "_family", "_name")

    def __init__(self, database: "RocksDatabase", name: str, family: Rdict) -> None:
        self._database = database
        self._name = name
        self._family: Rdict | None = family

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        try:
            return self._family.get(key)  # type: ignore[union-attr]
        except Exception as error:  # rocksdict has no error class; a closed family is None
            self._open()
            raise self._database.failed(str(error), self._name) from error

    def scan(
        self, first: bytes | None, before: bytes | None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows from `first` (inclusive) to `before` (exclusive).

        Rows are read in blocks: as long as an iterator of RocksDB is referenced, the database stays
        open and locked, even if it was closed.
        """
        read = partial(self._block, backwards=backwards)
        return scan_in_blocks(read, first, before, backwards=backwards)

    def _block(
        self, first: bytes | None, before: bytes | None, size: int, *, backwards: bool
    ) -> list[tuple[bytes, bytes]]:
        """At most `size` rows."""
        family = self._open()
        try:
            items = family.items(backwards, before if backwards else first)
            rows = cast("list[tuple[bytes, bytes]]", list(islice(items, size + backwards)))
            if len(rows) < size + backwards:
                start = before if backwards else first
                _check_end(family, start, rows, backwards=backwards)
        except StoreNotReady:
            raise
        except Exception as error:  # rocksdict has no error class
            problem = str(error)
        else:
            if backwards and rows and rows[0][0] == before:
                del rows[0]
            return rows[:size]
        # Outside of the except: an error references frames, which reference RocksDB's iterators.
        raise self._database.failed(problem, self._name)

    def count(self) -> int:
        """The approximate number of rows."""
        return self._open().property_int_value("rocksdb.estimate-num-keys") or 0

    @property
    def size_bytes(self) -> int:
        """The approximate size of the rows, in files and in write buffers."""
        family = self._open()
        names = ("rocksdb.estimate-live-data-size", "rocksdb.cur-size-all-mem-tables")
        return sum(family.property_int_value(name) or 0 for name in names)

    def close(self) -> None:
        """Close the column family."""
        family, self._family = self._family, None
        if family is not None:
            family.close()

    def _open(self) -> Rdict:
        if self._family is None:
            raise closed(self._name)
        return self._family


def _check_end(
    family: Rdict, start: bytes | None, rows: Sequence[tuple[bytes, bytes]], *, backwards: bool
) -> None:
    """Raise if rows ended because of a read error: rocksdict's iterator does not raise."""
    at = family.iter()
    last = rows[-1][0] if rows else start
    if last is None:
        (at.seek_to_last if backwards else at.seek_to_first)()
    else:
        (at.seek_for_prev if backwards else at.seek)(last)
    if rows and at.valid():
        (at.prev if backwards else at.next)()
    at.status()


_opened_in: int | None = None  # the process that has opened a database


def has_threads() -> bool:
    """Whether RocksDB has threads in this process.

    They do not exist after a fork: in the child a flush or close would wait forever.
    """
    return _opened_in == os.getpid()


class RocksDatabase:
    """The persistent stores of one task."""

    def __init__(
        self,
        path: Path,
        stores: Sequence[str],
        memory: RocksMemory | None = None,
        *,
        files: FileSystem | None = None,
    ) -> None:
        """Open the database; create one if there is none or it is damaged.

        Stores that are not in `stores` are deleted. RocksDB accesses its files itself; `files` is
        for other operations on them.
        """
        self._path = path
        self._files = files or FileSystem()
        self._folder = DatabaseFolder(self._files, path)
        self._memory = memory or shared_memory()
        self._rows: Rdict | None = None
        self._handles: dict[str, ColumnFamily] = {}
        self._backings: dict[str, RocksBacking] = {}
        self._folder.delete_damaged()
        try:
            self._open(stores)
            self._read_metadata()  # without them no store can be opened
        except Exception as error:  # rocksdict has no error class
            problem = str(error)
            self._folder.raise_unless_damage(error)
        else:
            return
        # Outside of the except: an error references frames, which reference RocksDB's files.
        with suppress(Exception):  # the database is deleted anyway
            self.close()
        self._folder.rebuild(problem)
        self._open(stores)

    def _open(self, stores: Sequence[str]) -> None:
        global _opened_in
        _opened_in = os.getpid()
        path = str(self._path)
        self._files.make_folder(path)
        exists = self._files.modified_ns(str(self._path / "CURRENT")) is not None
        present = Rdict.list_cf(path) if exists else []
        requested = {_family_of(name): name for name in stores}
        others = {*requested, *present} - {DEFAULT_FAMILY}
        families = {name: self._memory.options() for name in others}
        rows = self._rows = Rdict(path, self._memory.options(), families)
        self._handles = {
            name: rows.get_column_family_handle(family) for family, name in requested.items()
        }
        self._backings = {
            name: RocksBacking(self, name, rows.get_column_family(family))
            for family, name in requested.items()
        }
        for family in sorted(set(present) - {*requested, DEFAULT_FAMILY}):
            self._delete_metadata(_store_of(family))
            rows.drop_column_family(family)
        if DEFAULT_FAMILY in stores and present and _family_of(DEFAULT_FAMILY) not in present:
            self._delete_metadata(DEFAULT_FAMILY)  # earlier versions stored its rows there, too

    def _delete_metadata(self, store: str) -> None:
        """Delete the metadata of a store before its rows: rows without metadata are never used.

        This must be durable before the rows are deleted: a store with metadata but without rows
        would appear to be empty.
        """
        assert self._rows is not None
        deleted = {key: None for key in self.metadata() if is_metadata_of(key, store)}
        self.write(Write(metadata=dict(deleted)))
        self._rows.flush()

    def backing(self, store: str) -> Backing:
        """The rows of a store."""
        return self._backings[store]

    def metadata(self) -> dict[bytes, bytes]:
        """The metadata that was written with the rows."""
        try:
            return self._read_metadata()
        except Exception as error:  # rocksdict has no error class
            raise self.failed(str(error), "metadata") from error

    def _read_metadata(self) -> dict[bytes, bytes]:
        assert self._rows is not None
        metadata = dict(cast("Iterator[tuple[bytes, bytes]]", self._rows.items()))
        _check_end(self._rows, None, list(metadata.items())[-1:], backwards=False)
        return metadata

    def write(self, write: Write) -> None:
        """Apply all changes, or none."""
        assert self._rows is not None
        batch = WriteBatch(raw_mode=True)
        put = batch.put
        for name, rows in write.rows.items():
            family = self._handles[name]
            # Sorted, because RocksDB inserts a row fastest next to the previous one.
            for key in sorted(rows):
                value = rows[key]
                if value is None:
                    batch.delete(key, family)
                else:
                    put(key, value, family)
        for name, before in write.expired.items():
            batch.delete_range(b"", before, self._handles[name])
        for key, value in write.metadata.items():
            if value is None:
                batch.delete(key)
            else:
                put(key, value)
        if batch.is_empty():
            return
        try:
            self._rows.write(batch)
        except Exception as error:  # rocksdict has no error class
            raise self.failed(str(error), "") from error

    def close(self) -> None:
        """Close the files."""
        rows, self._rows = self._rows, None
        if rows is None:
            return
        for backing in self._backings.values():
            backing.close()
        self._handles.clear()
        rows.close()

    def failed(self, problem: str, store: str) -> StoreError:
        """Create the error to raise; mark damage, so that the next start creates a new database."""
        return closed(store) if self._rows is None else self._folder.failed(problem, store)


def _family_of(store: str) -> str:
    """The column family of a store; the one with the metadata is not used for stores."""
    return f"{STORE_PREFIX}{store}" if store == DEFAULT_FAMILY else store


def _store_of(family: str) -> str:
    return family.removeprefix(STORE_PREFIX)


class RocksDatabases:
    """Opens RocksDB databases, which share the memory of the process."""

    def __init__(self, files: FileSystem | None = None) -> None:
        """`files` is for operations that RocksDB does not do itself."""
        self._files = files

    def open(self, path: Path, stores: Sequence[str]) -> RocksDatabase:
        """Open the database in a directory; see Databases."""
        return RocksDatabase(path, stores, files=self._files)

    def limit_memory(self, cache_bytes: int, write_buffer_bytes: int) -> None:
        """Limit the memory that all databases opened from now on use together."""
        limit_memory(cache_bytes, write_buffer_bytes)

    @property
    def memory_bytes(self) -> int:
        """Cached blocks and write buffers of the process."""
        return shared_memory().used_bytes
