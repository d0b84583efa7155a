"""ModelDatabases: databases of a simulated machine that behave like `streams.state.rocks`.

RocksDB accesses the disk itself, so simulations use this database on the simulated disk instead. It
has exactly the guarantees of RocksDB with the options of RocksMemory:

    a write          goes to the log of the database, which is not synced: it survives the end of
                     the process; a power loss keeps the writes up to some point, none in part
    a flush          writes the rows of all stores to a new file, syncs it, and begins a new log.
                     It comes when the log is long, when the database is closed, and when a log
                     was replayed: what was written before survives a power loss
    damage           of the manifest is found when it is opened, of rows when they are read first
    a failed write   changes nothing, and all later ones fail until the database is opened again

    MANIFEST     JSON after its length and checksum: the number of the last flush, and place and
                 checksum of each store's rows
    <n>.rows     the rows of all stores at the flush
    <n>.log      the writes since then: each a length, a checksum and the changes
    LOCK         locked while the database is open
"""

import marshal
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path

import orjson
from sortedcontainers import SortedDict

from broker.files import FileSystem
from broker.model import OpenFile
from streams.state.backing import Backing, Row, Write, is_metadata_of, scan_in_blocks
from streams.state.database_folder import DatabaseFolder, closed

MANIFEST = "MANIFEST"
LOCK = "LOCK"
METADATA = ""  # the metadata, which are written with the rows
FRAME = struct.Struct(">II")  # length and checksum of the data that follows
LOG_BYTES_MAX = 64 * 1024
MARSHAL_VERSION = 2  # later ones depend on how often objects are referenced

Changes = list[tuple[bytes, bytes | None]]
# Changed rows by store, expired before a key by store, changed metadata: in the order of RocksDB's.
Entry = tuple[list[tuple[str, Changes]], list[tuple[str, bytes]], Changes]


class ModelDatabases:
    """Opens databases on the disk of one simulated process."""

    memory_bytes = 0

    def __init__(self, files: FileSystem, *, log_bytes_max: int = LOG_BYTES_MAX) -> None:
        """A longer log is flushed; a simulation does not reach RocksDB's limit of 64 MB."""
        self._files = files
        self._log_bytes_max = log_bytes_max

    def open(self, path: Path, stores: Sequence[str]) -> "ModelDatabase":
        """Open the database in a directory; see Databases."""
        return ModelDatabase(self._files, path, stores, log_bytes_max=self._log_bytes_max)

    def limit_memory(self, cache_bytes: int, write_buffer_bytes: int) -> None:
        """The model needs no limits."""


class _Family:
    """The rows of one store, which are loaded when first needed."""

    __slots__ = ("checksum", "data", "rows")

    def __init__(self, data: bytes | None = None, checksum: int = 0) -> None:
        self.data = data
        self.checksum = checksum
        self.rows: SortedDict[bytes, bytes] = SortedDict()

    def load(self) -> "SortedDict[bytes, bytes]":
        if self.data is not None:
            if zlib.crc32(self.data) != self.checksum:
                raise OSError("Corruption: block checksum mismatch")
            self.rows.update(marshal.loads(self.data))
            self.data = None
        return self.rows

    def apply(self, changes: Changes) -> None:
        rows = self.load()
        for key, value in changes:
            if value is None:
                rows.pop(key, None)
            else:
                rows[key] = value

    def expire(self, before: bytes) -> None:
        rows = self.load()
        for key in list(rows.irange(None, before, inclusive=(True, False))):
            del rows[key]


class ModelBacking:
    """The rows of one store, like RocksBacking."""

    is_memory = False
    memory_bytes = 0

    def __init__(self, database: "ModelDatabase", name: str) -> None:
        self._database = database
        self._name = name

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        value: bytes | None = self._database.rows(self._name).get(key)
        return value

    def scan(
        self, first: bytes | None, before: bytes | None, *, backwards: bool = False
    ) -> Iterator[Row]:
        """Rows from `first` (inclusive) to `before` (exclusive)."""
        read = partial(self._block, backwards=backwards)
        return scan_in_blocks(read, first, before, backwards=backwards)

    def _block(
        self, first: bytes | None, before: bytes | None, size: int, *, backwards: bool
    ) -> list[Row]:
        rows = self._database.rows(self._name)
        if backwards:
            keys = rows.irange(None, before, inclusive=(True, False), reverse=True)
        else:
            keys = rows.irange(first, None)
        return [(key, rows[key]) for key in islice(keys, size)]

    def count(self) -> int:
        """The number of rows."""
        return len(self._database.rows(self._name))

    @property
    def size_bytes(self) -> int:
        """Bytes of keys and values."""
        rows = self._database.rows(self._name)
        return sum(len(key) + len(value) for key, value in rows.items())


class ModelDatabase:
    """The persistent stores of one task, like RocksDatabase."""

    def __init__(
        self, files: FileSystem, path: Path, stores: Sequence[str], *, log_bytes_max: int
    ) -> None:
        """Open the database; create one if there is none or it is damaged."""
        self._files = files
        self._path = path
        self._folder = DatabaseFolder(files, path)
        self._log_bytes_max = log_bytes_max
        self._is_open = False
        self._broken: str | None = None  # why writes fail
        self._folder.delete_damaged()
        try:
            self._open(stores)
            self._families[METADATA].load()  # without them no store can be opened
        except OSError as error:
            self._lock: OpenFile | None = None
            self._folder.raise_unless_damage(error)
            self._folder.rebuild(str(error))
            self._open(stores)

    # --- opening and closing --------------------------------------------------------------------

    def _open(self, stores: Sequence[str]) -> None:
        files = self._files
        files.make_folder(str(self._path))
        try:
            self._lock = files.lock(self._name(LOCK))
        except BlockingIOError as error:
            raise OSError(f"lock hold by current process: {self._name(LOCK)}") from error
        self._families: dict[str, _Family] = {METADATA: _Family()}
        self._number = 0
        manifest = files.read_file(self._name(MANIFEST))
        replayed = manifest is None or self._load(manifest)
        for name in sorted(set(self._families) - {METADATA, *stores}):
            # Metadata first: rows without metadata are never used.
            metadata = self._families[METADATA]
            metadata.apply([(key, None) for key in metadata.load() if is_metadata_of(key, name)])
            del self._families[name]
            replayed = True
        for name in stores:
            self._families.setdefault(name, _Family())
        self._is_open = True
        self._broken = None
        if replayed:
            self._flush()
        else:
            self._begin_log()
        self._backings = {name: ModelBacking(self, name) for name in stores}

    def _load(self, manifest: bytes) -> bool:
        """Load the rows of the last flush and the log; returns whether the log had entries."""
        known = next(_frames(manifest), None)
        if known is None:
            raise OSError("Corruption: checksum mismatch in the manifest")
        described = orjson.loads(known)
        self._number = described["number"]
        data = self._files.read_file(self._name(f"{self._number}.rows"))
        if data is None:
            raise OSError(f"Corruption: {self._number}.rows is missing")
        for name, (start, size, checksum) in described["places"].items():
            self._families[name] = _Family(data[start : start + size], checksum)
        log = self._files.read_file(self._name(f"{self._number}.log")) or b""
        for entry in _frames(log):
            self._apply(marshal.loads(entry))
        return bool(log)

    def _name(self, file: str) -> str:
        return str(self._path / file)

    def _begin_log(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC
        self._log: OpenFile | None = self._files.open(self._name(f"{self._number}.log"), flags)
        self._log_bytes = 0

    def _flush(self) -> None:
        """Write the rows of all stores to a new file, durably, and start a new log."""
        files = self._files
        places: dict[str, tuple[int, int, int]] = {}
        parts: list[bytes] = []
        start = 0
        for name, family in sorted(self._families.items()):
            data = marshal.dumps(list(family.load().items()), MARSHAL_VERSION)
            places[name] = (start, len(data), zlib.crc32(data))
            parts.append(data)
            start += len(data)
        before, self._number = self._number, self._number + 1
        rows = files.open(self._name(f"{self._number}.rows"), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        files.write_all(rows, b"".join(parts), 0)
        files.fsync(rows)
        self._begin_log()
        files.fsync_directory(str(self._path))
        manifest = orjson.dumps({"number": self._number, "places": places})
        files.write_file(self._name(MANIFEST), _framed(manifest))
        files.unlink(self._name(f"{before}.rows"))
        files.unlink(self._name(f"{before}.log"))

    def close(self) -> None:
        """Flush, and close the files."""
        if not self._is_open:
            return
        try:
            if self._log_bytes and self._broken is None:
                self._flush()
        finally:
            self._is_open = False
            self._log = None
            self._lock = None

    # --- reading and writing --------------------------------------------------------------------

    def backing(self, store: str) -> Backing:
        """The rows of a store."""
        return self._backings[store]

    def rows(self, store: str) -> "SortedDict[bytes, bytes]":
        """The rows of a store in memory; detects damage."""
        if not self._is_open:
            raise closed(store)
        try:
            return self._families[store].load()
        except OSError as error:
            raise self._folder.failed(str(error), store) from error

    def metadata(self) -> dict[bytes, bytes]:
        """The metadata that was written with the rows."""
        assert self._is_open
        return dict(self.rows(METADATA))

    def write(self, write: Write) -> None:
        """Apply all changes, or none."""
        assert self._is_open
        entry: Entry = (
            [(name, list(rows.items())) for name, rows in write.rows.items() if rows],
            list(write.expired.items()),
            list(write.metadata.items()),
        )
        if not any(entry):
            return
        try:
            self._append(entry)
            self._apply(entry)
        except OSError as error:
            self._broken = str(error)
            raise self._folder.failed(str(error), "") from error
        if self._log_bytes > self._log_bytes_max:
            try:
                self._flush()
            except OSError as error:
                self._broken = str(error)  # RocksDB flushes later: only the next write fails

    def _append(self, entry: Entry) -> None:
        if self._broken is not None:
            raise OSError(self._broken)
        assert self._log is not None
        frame = _framed(marshal.dumps(entry, MARSHAL_VERSION))
        self._files.write_all(self._log, frame, self._log_bytes)
        self._log_bytes += len(frame)

    def _apply(self, entry: Entry) -> None:
        rows, expired, metadata = entry
        for name, changes in rows:
            self._families.setdefault(name, _Family()).apply(changes)
        for name, before in expired:
            self._families.setdefault(name, _Family()).expire(before)
        self._families[METADATA].apply(metadata)


def _framed(data: bytes) -> bytes:
    return FRAME.pack(len(data), zlib.crc32(data)) + data


def _frames(data: bytes) -> Iterator[bytes]:
    """The framed entries, up to the first torn one."""
    at = 0
    while len(data) - at >= FRAME.size:
        size, checksum = FRAME.unpack_from(data, at)
        entry = data[at + FRAME.size : at + FRAME.size + size]
        if size == 0 or len(entry) < size or zlib.crc32(entry) != checksum:
            return
        yield entry
        at += FRAME.size + size
