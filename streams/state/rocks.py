"""RocksDatabase: the persistent stores of one task in one RocksDB; the only door to rocksdict.

Each store is a column family named after it; facts (changelog positions, observed times) are in
the default one. A commit is one WriteBatch over all of them, so after a kill all stores, and what
is known about them, are those of one commit.

The write-ahead log is written but not synced: a commit survives the end of the process, and the
changelog, which is the truth, survives the machine. A database that cannot be opened, or that was
found damaged while reading, is deleted and logged; its stores come back from their changelogs.
"""

import logging
import shutil
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from threading import Lock
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

from streams.errors import StateDirectoryLocked, StoreError, StoreNotReady
from streams.state.backing import Backing, Write, is_fact_of

logger = logging.getLogger(__name__)

DAMAGED = "damaged"  # a file of this name beside the database: delete it before opening
CACHE_BYTES = 64 << 20
WRITE_BUFFER_BYTES = 32 << 20
DEFAULT_FAMILY = "default"
BLOOM_BITS = 10
FIRST_BLOCK_ROWS = 8  # a scan asks for more and more
LAST_BLOCK_ROWS = 4096

# Errors that a new database would have too, or that say nothing about the files.
_NOT_DAMAGE = (
    "No space left",
    "Permission denied",
    "Too many open files",
    "Read-only file system",
    "Cannot allocate memory",
)
_LOCKED = ("lock hold by current process", "LOCK: Resource temporarily unavailable")


class RocksMemory:
    """Memory that all databases of a process share: cached blocks and rows not yet in files."""

    def __init__(
        self, cache_bytes: int = CACHE_BYTES, write_buffer_bytes: int = WRITE_BUFFER_BYTES
    ) -> None:
        """Set the budgets; write buffers are charged to the cache."""
        self.budgets = (cache_bytes, write_buffer_bytes)
        self._cache = Cache(cache_bytes)
        self._write_buffers = WriteBufferManager.new_write_buffer_manager_with_cache(
            write_buffer_bytes, False, self._cache
        )
        self._write_buffer_bytes = write_buffer_bytes

    @property
    def used_bytes(self) -> int:
        """How much is in use now."""
        return self._cache.get_usage()

    def options(self) -> Options:
        """Options of a database or a column family in this memory."""
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
        # Rows of all stores, and facts about them, reach the files together or not at all.
        options.set_atomic_flush(True)
        options.set_keep_log_file_num(2)
        options.set_max_log_file_size(1 << 20)
        options.set_stats_dump_period_sec(0)
        return options


class _Shared:
    """The memory of this process."""

    lock = Lock()
    memory: RocksMemory | None = None


def share_memory(memory: RocksMemory) -> None:
    """Let databases that are opened from now on use this memory."""
    with _Shared.lock:
        _Shared.memory = memory


def limit_memory(cache_bytes: int, write_buffer_bytes: int) -> None:
    """Let databases that are opened from now on use so much, together with those that do so."""
    with _Shared.lock:
        if _Shared.memory is None or _Shared.memory.budgets != (cache_bytes, write_buffer_bytes):
            _Shared.memory = RocksMemory(cache_bytes, write_buffer_bytes)


def shared_memory() -> RocksMemory:
    """The memory of this process, made by the first who asks."""
    with _Shared.lock:
        if _Shared.memory is None:
            _Shared.memory = RocksMemory()
        return _Shared.memory


class RocksBacking:
    """The rows of one store."""

    is_memory = False
    memory_bytes = 0  # it is the shared memory's

    __slots__ = ("_database", "_family", "_name")

    def __init__(self, database: "RocksDatabase", name: str, family: Rdict) -> None:
        """Read one column family."""
        self._database = database
        self._name = name
        self._family: Rdict | None = family

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        try:
            return self._family.get(key)  # type: ignore[union-attr]
        except Exception as error:  # rocksdict has no error of its own; closed it is None
            self._open()
            raise self._database.failed(str(error), self._name) from error

    def scan(
        self, first: bytes | None, before: bytes | None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows from `first` up to, not including, `before`.

        Rows are read in blocks. An iterator of RocksDB that somebody still holds would keep the
        database open, and locked, after it was closed.
        """
        size = FIRST_BLOCK_ROWS
        while True:
            rows = self._block(first, before, size, backwards=backwards)
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
                self._check_end(family, start, rows, backwards=backwards)
        except StoreNotReady:
            raise
        except Exception as error:  # rocksdict has no error of its own
            problem = str(error)
        else:
            if backwards and rows and rows[0][0] == before:
                del rows[0]
            return rows[:size]
        # Outside of the except: an error holds on to frames, and those to RocksDB's iterators.
        raise self._database.failed(problem, self._name)

    @staticmethod
    def _check_end(
        family: Rdict, start: bytes | None, rows: Sequence[tuple[bytes, bytes]], *, backwards: bool
    ) -> None:
        """Raise if rows ended because they cannot be read: rocksdict's iterator does not say."""
        at = family.iter()
        place = rows[-1][0] if rows else start
        if place is None:
            (at.seek_to_last if backwards else at.seek_to_first)()
        else:
            (at.seek_for_prev if backwards else at.seek)(place)
        if rows and at.valid():
            (at.prev if backwards else at.next)()
        at.status()

    def count(self) -> int:
        """About how many rows there are."""
        return self._open().property_int_value("rocksdb.estimate-num-keys") or 0

    @property
    def size_bytes(self) -> int:
        """About how many bytes the rows are, in files and in write buffers."""
        family = self._open()
        names = ("rocksdb.estimate-live-data-size", "rocksdb.cur-size-all-mem-tables")
        return sum(family.property_int_value(name) or 0 for name in names)

    def close(self) -> None:
        """Let go of the column family."""
        family, self._family = self._family, None
        if family is not None:
            family.close()

    def _open(self) -> Rdict:
        if self._family is None:
            raise StoreNotReady(
                f'store "{self._name}" is closed',
                hint="its task has stopped or moved; ask again, maybe another instance",
            )
        return self._family


class RocksDatabase:
    """The persistent stores of one task."""

    def __init__(
        self, path: Path, stores: Sequence[str], memory: RocksMemory | None = None
    ) -> None:
        """Open the database, or make a new one when there is none or it is damaged.

        Stores that are no longer asked for are deleted.
        """
        self._path = path
        self._damaged = path.with_name(f"{path.name}.{DAMAGED}")
        self._memory = memory or shared_memory()
        if self._damaged.exists():
            self._rebuild("a read found damage")
        try:
            self._open(stores)
        except Exception as error:  # rocksdict has no error of its own
            self._raise_unless_damage(error)
            self._rebuild(str(error))
            self._open(stores)

    def _open(self, stores: Sequence[str]) -> None:
        path = str(self._path)
        self._path.mkdir(parents=True, exist_ok=True)
        present = Rdict.list_cf(path) if (self._path / "CURRENT").exists() else []
        families = {name: self._memory.options() for name in {*stores, *present} - {DEFAULT_FAMILY}}
        self._rows: Rdict | None = Rdict(path, self._memory.options(), families)
        self._handles: dict[str, ColumnFamily] = {
            name: self._rows.get_column_family_handle(name) for name in stores
        }
        self._backings = {
            name: RocksBacking(self, name, self._rows.get_column_family(name)) for name in stores
        }
        for name in sorted(set(present) - {*stores, DEFAULT_FAMILY}):
            # Facts first: rows without facts are never taken for good.
            gone = {key: None for key in self.facts() if is_fact_of(key, name)}
            self.write(Write(facts=dict(gone)))
            self._rows.drop_column_family(name)

    def backing(self, store: str) -> Backing:
        """The rows of a store."""
        return self._backings[store]

    def facts(self) -> dict[bytes, bytes]:
        """What was written beside the rows."""
        assert self._rows is not None
        try:
            return dict(cast("Iterator[tuple[bytes, bytes]]", self._rows.items()))
        except Exception as error:  # rocksdict has no error of its own
            raise self.failed(str(error), "facts") from error

    def write(self, write: Write) -> None:
        """Change everything or nothing."""
        assert self._rows is not None
        batch = WriteBatch(raw_mode=True)
        put = batch.put
        for name, rows in write.rows.items():
            family = self._handles[name]
            # In order, since RocksDB finds the place of a row fastest next to the one before it.
            for key in sorted(rows):
                value = rows[key]
                if value is None:
                    batch.delete(key, family)
                else:
                    put(key, value, family)
        for name, before in write.expired.items():
            batch.delete_range(b"", before, self._handles[name])
        for key, fact in write.facts.items():
            if fact is None:
                batch.delete(key)
            else:
                put(key, fact)
        if batch.is_empty():
            return
        try:
            self._rows.write(batch)
        except Exception as error:  # rocksdict has no error of its own
            raise self.failed(str(error), "") from error

    def close(self) -> None:
        """Let go of the files."""
        rows, self._rows = self._rows, None
        if rows is None:
            return
        for backing in self._backings.values():
            backing.close()
        self._handles.clear()
        rows.close()

    def failed(self, problem: str, store: str) -> StoreError:
        """The error to raise; damage is noted, so that the next start makes a new database."""
        if self._rows is None:
            return StoreNotReady(
                f'store "{store}" is closed',
                hint="its task has stopped or moved; ask again, maybe another instance",
            )
        hint = "free space, or look at the disk; nothing is lost, the changelog has it"
        if not any(text in problem for text in _NOT_DAMAGE):
            self._damaged.touch()
            logger.error("state in %s is damaged: %s", self._path, problem)
            hint = "start the task again: the store is rebuilt from its changelog"
        return StoreError(f'store "{store}" failed: {problem}', at=str(self._path), hint=hint)

    def _raise_unless_damage(self, error: Exception) -> None:
        text = str(error)
        if any(words in text for words in _LOCKED):
            raise StateDirectoryLocked(
                "the state of the task is in use",
                at=str(self._path),
                hint="another process or runner has it open; give each its own state_dir",
            ) from error
        if any(words in text for words in _NOT_DAMAGE):
            raise StoreError(
                f"cannot open the state of the task: {text}",
                at=str(self._path),
                hint="free space or mend the rights of the directory; nothing is lost",
            ) from error

    def _rebuild(self, reason: str) -> None:
        logger.warning(
            "state in %s cannot be used (%s): it is deleted and restored from the changelogs",
            self._path,
            reason,
        )
        shutil.rmtree(self._path, ignore_errors=True)
        self._damaged.unlink(missing_ok=True)
