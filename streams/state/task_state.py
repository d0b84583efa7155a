"""TaskState: all stores of one task, which are committed atomically.

    put, get ...   stores, over their WriteBuffers
    changes()      the records for the changelogs
    commit()       one write: buffers, expired segments, positions, observed times
    discard()      returns to the last commit
    restore()      applies changelog records to a store

Metadata of a store, in the database of the task:

    position/<store>  int64   the next changelog offset to restore from
    observed/<store>  int64, int32   the store's time, and the last sequence number of duplicates
    shape/<store>     kind and segment interval; a store with another shape is emptied
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, assert_never

from broker.serde import Serde
from streams.errors import StoreNotFound
from streams.serdes import serde_or_default
from streams.state.backing import Database, Databases, Write, metadata_key
from streams.state.changelog import changelog_name
from streams.state.codec import StoreCodec
from streams.state.expiry import NO_TIME, Expiry
from streams.state.key_layout import PAIR_SUFFIX_BYTES, WINDOW_SUFFIX_BYTES, pack_long, unpack_long
from streams.state.key_value import PlainKeyValueStore, TimestampedKeyValueStoreOfTask
from streams.state.lru import LruStore
from streams.state.memory import MemoryDatabase
from streams.state.open_store import ChangelogRow, OpenStore, RecordTime, RestoredRow, StoreParts
from streams.state.rocks import RocksDatabases
from streams.state.row_groups import RowGroups
from streams.state.session import SessionStoreOfTask
from streams.state.store import StoreKind, StoreSpec
from streams.state.versioned import VersionedStoreOfTask
from streams.state.window import PlainWindowStore, TimestampedWindowStoreOfTask
from streams.state.write_buffer import WriteBuffer

BUFFER_BYTES = 64 << 20
DATABASE = "rocksdb"  # the directory inside a task's directory

_BY_TIME = frozenset({StoreKind.WINDOW, StoreKind.TIMESTAMPED_WINDOW, StoreKind.SESSION})


class TaskState:
    """The stores of one task. Only the task's thread uses it; other threads have views."""

    def __init__(  # noqa: PLR0913 - its dependencies
        self,
        specs: Sequence[StoreSpec],
        *,
        directory: Path | Database | None,
        databases: Databases | None = None,
        default_key_serde: Serde[Any],
        default_value_serde: Serde[Any],
        application_id: str = "",
        buffer_bytes: int = BUFFER_BYTES,
    ) -> None:
        """Open the stores: persistent ones in `directory`, or all in memory if it is None.

        `directory` can also be a database, which then has all stores. `databases` opens the
        database in the directory, by default RocksDB. `buffer_bytes` is the limit of cached
        committed rows, over all stores.
        """
        self.record_time = RecordTime()
        self._specs = {spec.name: spec for spec in specs}
        self._databases = list(_databases(specs, directory, databases or RocksDatabases()))
        self._positions: dict[str, int] = {}
        self._stores: dict[str, OpenStore] = {}
        cache_bytes = buffer_bytes // max(1, len(self._specs))
        prefix = f"{application_id}-" if application_id else ""

        def codec_of(spec: StoreSpec) -> StoreCodec:
            return StoreCodec.of(
                spec.name,
                prefix + changelog_name(spec.name),
                serde_or_default(spec.key_serde, default_key_serde),
                serde_or_default(spec.value_serde, default_value_serde),
            )

        try:
            for database, names in self._databases:
                metadata = database.metadata()
                for name in names:
                    spec = self._specs[name]
                    parts = self._parts(spec, database, codec_of(spec), cache_bytes)
                    self._load(parts, metadata, database)
                    self._stores[name] = _open(parts)
        except BaseException:
            self.close()  # otherwise they would stay locked
            raise

    def _parts(
        self, spec: StoreSpec, database: Database, codec: StoreCodec, cache_bytes: int
    ) -> StoreParts:
        buffer = WriteBuffer(database.backing(spec.name), cache_bytes=cache_bytes)
        expiry = Expiry(_lifetime_ms(spec))
        groups = _groups(spec, buffer, expiry, cache_bytes // 2)
        return StoreParts(spec, codec, buffer, groups, expiry, self.record_time)

    # Any, because only the caller knows the kind of the store.
    def store(self, name: str) -> Any:
        """An open store."""
        return self._open_store(name)

    def view(self, name: str) -> Any:
        """A read-only view of a store, for other threads."""
        return self._open_store(name).view()

    def spec(self, name: str) -> StoreSpec:
        """The specification of a store."""
        return self._open_store(name).parts.spec

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the stores."""
        return tuple(self._specs)

    def changes(self) -> list[tuple[str, list[ChangelogRow]]]:
        """Records for the changelogs since the last commit; unlogged stores have none."""
        changes: list[tuple[str, list[ChangelogRow]]] = []
        for name, store in self._stores.items():
            store.before_commit()
            if store.parts.spec.logging:
                rows = store.changes()
                if rows:
                    changes.append((name, rows))
        return changes

    def commit(self, positions: Mapping[str, int]) -> None:
        """Write everything since the last commit, and the next changelog offsets, atomically."""
        self._positions.update(positions)
        for database, names in self._databases:
            self._write(database, names, positions)

    def discard(self) -> None:
        """Discard everything since the last commit."""
        for store in self._stores.values():
            parts = store.parts
            parts.buffer.discard()
            parts.expiry.discard()
            if parts.groups is not None:
                parts.groups.clear()
            store.discarded()

    def position(self, store: str) -> int | None:
        """The next changelog offset to restore a store from; None: from the beginning."""
        self._open_store(store)
        return self._positions.get(store)

    def restore(self, store: str, rows: Iterable[RestoredRow], position: int) -> None:
        """Apply changelog records to a store; `position` is the offset after them."""
        opened = self._open_store(store)
        assert not opened.parts.buffer.dirty, "a store is restored before it is written"
        opened.restore(rows)
        self._positions[store] = position
        for database, names in self._databases:
            if store in names:
                self._write(database, [store], {store: position})

    @property
    def dirty_bytes(self) -> int:
        """The approximate size of the writes since the last commit."""
        return sum(store.parts.buffer.dirty_bytes for store in self._stores.values())

    @property
    def memory_bytes(self) -> int:
        """The approximate memory that the stores use, without RocksDB's."""
        every = [store.parts for store in self._stores.values()]
        groups = sum(parts.groups.memory_bytes for parts in every if parts.groups is not None)
        return groups + sum(parts.buffer.memory_bytes for parts in every)

    def sizes(self) -> dict[str, tuple[int, int]]:
        """The approximate number of rows and bytes of each store; any thread may call this."""
        every = {name: store.parts.buffer for name, store in self._stores.items()}
        return {
            name: (buffer.shared().count(), buffer.size_bytes) for name, buffer in every.items()
        }

    def close(self) -> None:
        """Close files; uncommitted changes are lost."""
        for store in self._stores.values():
            store.parts.buffer.discard()
        for database, _ in self._databases:
            database.close()

    def _open_store(self, name: str) -> OpenStore:
        store = self._stores.get(name)
        if store is None:
            raise StoreNotFound(
                f'there is no store "{name}"',
                hint=f"stores of this task: {', '.join(sorted(self._stores)) or 'none'}",
            )
        return store

    def _write(
        self, database: Database, names: Sequence[str], positions: Mapping[str, int]
    ) -> None:
        write = Write()
        for name in names:
            parts = self._stores[name].parts
            if parts.buffer.dirty:
                write.rows[name] = parts.buffer.dirty
                write.metadata[metadata_key("observed", name)] = parts.expiry.metadata()
            if name in positions:
                write.metadata[metadata_key("position", name)] = pack_long(positions[name])
            if parts.groups is not None:
                expired = parts.expiry.expired_before()
                if expired is not None:
                    write.expired[name] = expired
        database.write(write)
        for name in names:
            store = self._stores[name]
            parts = store.parts
            parts.buffer.committed(parts.latest_ms)
            parts.expiry.committed()
            if parts.groups is not None:
                parts.groups.committed()
            store.committed()

    def _load(self, parts: StoreParts, metadata: Mapping[bytes, bytes], database: Database) -> None:
        """Load the state of the last commit, unless the store had another shape."""
        name = parts.spec.name
        shape = f"{parts.spec.kind.value} {parts.expiry.interval_ms}".encode()
        if metadata.get(metadata_key("shape", name)) != shape:
            # A new store, or one without metadata, whose rows may be of any commit.
            empty = dict.fromkeys((key for key, _ in parts.buffer.scan(None, None)), None)
            new_metadata: dict[bytes, bytes | None] = {
                metadata_key("shape", name): shape,
                metadata_key("observed", name): None,
                metadata_key("position", name): None,
            }
            database.write(Write(rows={name: empty}, metadata=new_metadata))
            parts.buffer.on_disk(NO_TIME)
            return
        observed = metadata.get(metadata_key("observed", name))
        if observed is not None:
            parts.expiry.load(observed)
        parts.buffer.on_disk(NO_TIME if observed is None else parts.latest_ms)
        position = metadata.get(metadata_key("position", name))
        if position is not None:
            self._positions[name] = unpack_long(position)[0]


def _open(parts: StoreParts) -> OpenStore:
    kind = parts.spec.kind
    match kind:
        case StoreKind.KEY_VALUE:
            return PlainKeyValueStore(parts)
        case StoreKind.TIMESTAMPED_KEY_VALUE:
            return TimestampedKeyValueStoreOfTask(parts)
        case StoreKind.WINDOW:
            return PlainWindowStore(parts)
        case StoreKind.TIMESTAMPED_WINDOW:
            return TimestampedWindowStoreOfTask(parts)
        case StoreKind.SESSION:
            return SessionStoreOfTask(parts)
        case StoreKind.VERSIONED:
            return VersionedStoreOfTask(parts)
        case StoreKind.LRU:
            return LruStore(parts)
        case _:
            assert_never(kind)


def _databases(
    specs: Sequence[StoreSpec], directory: Path | Database | None, databases: Databases
) -> Iterator[tuple[Database, list[str]]]:
    """The databases, each with the names of its stores."""
    names = [spec.name for spec in specs]
    if directory is not None and not isinstance(directory, Path):
        yield directory, names
        return
    on_disk = [] if directory is None else [spec.name for spec in specs if _is_on_disk(spec)]
    if directory is not None and on_disk:
        yield databases.open(directory / DATABASE, on_disk), on_disk
    in_memory = [name for name in names if name not in set(on_disk)]
    if in_memory:
        yield MemoryDatabase(in_memory), in_memory


def _is_on_disk(spec: StoreSpec) -> bool:
    return spec.persistent and spec.kind is not StoreKind.LRU


def _groups(
    spec: StoreSpec, buffer: WriteBuffer, expiry: Expiry, cache_bytes: int
) -> RowGroups | None:
    """The groups of a store with segments; when they are used, the buffer's cache is reduced."""
    if spec.kind not in _BY_TIME and spec.kind is not StoreKind.VERSIONED:
        return None
    is_window = spec.kind in (StoreKind.WINDOW, StoreKind.TIMESTAMPED_WINDOW)
    return RowGroups(
        buffer,
        suffix_bytes=WINDOW_SUFFIX_BYTES if is_window else PAIR_SUFFIX_BYTES,
        interval_ms=expiry.interval_ms,
        cache_bytes=cache_bytes,
    )


def _lifetime_ms(spec: StoreSpec) -> int:
    if spec.kind in _BY_TIME:
        return spec.retention_ms
    return spec.history_ms if spec.kind is StoreKind.VERSIONED else spec.ttl_ms
