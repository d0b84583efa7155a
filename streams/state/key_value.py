"""Key-value stores: plain, timestamped, and LRU.

Rows are `key -> value`; in timestamped stores, and in plain ones with a ttl, `key -> int64 time |
value`. The changelog always has the plain value, with the time as the record's.

With a ttl an entry expires when the store's time is at least the ttl after it. Reads do not return
expired entries; before each commit a slice of the store is scanned for them, so that they are also
deleted from the store and the changelog.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from streams.record import NO_HEADERS
from streams.state.codec import StoreCodec
from streams.state.expiry import Expiry
from streams.state.key_layout import after_prefix, pack_long, unpack_long
from streams.state.open_store import ChangelogRow, RestoredRow, StoreParts
from streams.state.store import NO_LIMIT
from streams.state.write_buffer import Reads

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")  # the result of reads: V, or (V, timestamp_ms)

TIME_BYTES = 8
SWEEP_ROWS_MAX = 10_000  # rows scanned per commit


class KeyValueReads(Generic[K, R]):
    """Reads of a key-value store."""

    def __init__(self, codec: StoreCodec, rows: Reads, decode: Callable[[bytes], R | None]) -> None:
        """`decode` returns the value of a row, or None if it has expired."""
        self._codec = codec
        self._raw_key = codec.raw_key
        self._rows = rows
        self._get = rows.get
        self._decode = decode

    def get(self, key: K) -> R | None:
        """The value of a key."""
        raw = self._raw_key(key)
        data = self._get(raw)
        return None if data is None else self._decode(data)

    def range(self, first: K | None = None, last: K | None = None) -> Iterator[tuple[K, R]]:
        """Entries from `first` to `last`, both inclusive; None means unbounded."""
        return self._entries(self._raw(first), _after(self._raw(last)))

    def reverse_range(self, first: K | None = None, last: K | None = None) -> Iterator[tuple[K, R]]:
        """Like `range`, in descending order."""
        return self._entries(self._raw(first), _after(self._raw(last)), backwards=True)

    def prefix_scan(self, prefix: bytes) -> Iterator[tuple[K, R]]:
        """Entries whose serialised key has a prefix."""
        return self._entries(prefix, after_prefix(prefix))

    def all(self) -> Iterator[tuple[K, R]]:
        """All entries."""
        return self._entries(None, None)

    def reverse_all(self) -> Iterator[tuple[K, R]]:
        """All entries, in descending order."""
        return self._entries(None, None, backwards=True)

    def approximate_num_entries(self) -> int:
        """The approximate number of entries."""
        return self._rows.count()

    def raw(self, key: K) -> bytes:
        """Serialize a key."""
        return self._codec.key_bytes(key)

    def _raw(self, key: K | None) -> bytes | None:
        return None if key is None else self._codec.key_bytes(key)

    def _entries(
        self, first: bytes | None, before: bytes | None, *, backwards: bool = False
    ) -> Iterator[tuple[K, R]]:
        key_of, decode = self._codec.key_of, self._decode
        for raw, data in self._rows.scan(first, before, backwards=backwards):
            value = decode(data)
            if value is not None:
                yield key_of(raw), value


class PlainKeyValueStore(KeyValueReads[K, V]):
    """A map of keys to values."""

    def __init__(self, parts: StoreParts) -> None:
        """Open a plain store; its values have times only if it has a ttl."""
        self._timed = parts.spec.ttl_ms != NO_LIMIT
        decode = decode_live(parts) if self._timed else decode_plain(parts.codec)
        super().__init__(parts.codec, parts.buffer, decode)
        self.parts = parts
        self._sweep = Sweep(parts) if self._timed else None
        self._put = parts.buffer.put
        self._raw_value = parts.codec.raw_value
        self._record_time = parts.record_time
        self._times: dict[bytes, int] = {}  # of the rows written since the last commit

    def put(self, key: K, value: V | None) -> None:
        """Set the value of a key; None deletes."""
        raw = self._raw_key(key)
        data = self._raw_value(value)
        time_ms = self._record_time.ms
        self._times[raw] = time_ms
        if self._timed and data is not None:
            data = pack_long(time_ms) + data
            self.parts.expiry.is_live(time_ms)
        self._put(raw, data)

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
        old = self.get(key)
        self.put(key, None)
        return old

    def changes(self) -> list[ChangelogRow]:
        """Records for the changelog since the last commit."""
        now, times, skip = self._record_time.ms, self._times, TIME_BYTES if self._timed else 0
        return [
            (raw, data[skip:] if data else data, NO_HEADERS, times.get(raw, now))
            for raw, data in self.parts.buffer.dirty.items()
        ]

    def before_commit(self) -> None:
        """Delete some entries that have expired."""
        if self._sweep is not None:
            self._sweep.run()

    def restore(self, rows: Iterable[RestoredRow]) -> None:
        """Write records of the changelog into the buffer."""
        if self._timed:
            restore_timed(self.parts, rows)
            return
        put = self._put
        for raw, data, _ in rows:
            if raw is not None:
                put(raw, data)

    def committed(self) -> None:
        """The buffer was written and emptied."""
        self._times.clear()

    def discarded(self) -> None:
        """The buffer was emptied without being written."""
        self._times.clear()

    def view(self) -> KeyValueReads[K, V]:
        """A read-only view, for other threads."""
        return KeyValueReads(self._codec, self.parts.buffer.shared(), self._decode)


class TimestampedKeyValueStoreOfTask(KeyValueReads[K, tuple[V, int]]):
    """A map of keys to values with times."""

    def __init__(self, parts: StoreParts) -> None:
        self._has_ttl = parts.spec.ttl_ms != NO_LIMIT
        decode = (
            decode_live_timestamped(parts) if self._has_ttl else decode_timestamped(parts.codec)
        )
        super().__init__(parts.codec, parts.buffer, decode)
        self.parts = parts
        self._sweep = Sweep(parts) if self._has_ttl else None
        self._put = parts.buffer.put
        self._raw_value = parts.codec.raw_value
        self._deleted_ms: dict[bytes, int] = {}  # when rows were deleted, since the last commit

    def put(self, key: K, value: V | None, timestamp_ms: int) -> int:
        """Set a value and its time; None deletes. Returns the size of the entry in bytes."""
        raw = self._raw_key(key)
        data = self._raw_value(value)
        if self._has_ttl:
            self.parts.expiry.is_live(timestamp_ms)
        if data is None:
            self._deleted_ms[raw] = timestamp_ms
            self._put(raw, None)
            return len(raw)
        self._put(raw, pack_long(timestamp_ms) + data)
        return len(raw) + TIME_BYTES + len(data)

    def put_if_absent(self, key: K, value: V, timestamp_ms: int) -> tuple[V, int] | None:
        """Set value and time if there is none; returns the existing ones."""
        old = self.get(key)
        if old is None:
            self.put(key, value, timestamp_ms)
        return old

    def delete(self, key: K) -> tuple[V, int] | None:
        """Delete a key; returns its value and time."""
        old = self.get(key)
        self.put(key, None, self.parts.record_time.ms)
        return old

    def changes(self) -> list[ChangelogRow]:
        """Records for the changelog since the last commit."""
        now, deleted = self.parts.record_time.ms, self._deleted_ms
        return [
            (raw, None, NO_HEADERS, deleted.get(raw, now))
            if data is None
            else (raw, data[TIME_BYTES:], NO_HEADERS, unpack_long(data)[0])
            for raw, data in self.parts.buffer.dirty.items()
        ]

    def before_commit(self) -> None:
        """Delete some entries that have expired."""
        if self._sweep is not None:
            self._sweep.run()

    def restore(self, rows: Iterable[RestoredRow]) -> None:
        """Write records of the changelog into the buffer."""
        restore_timed(self.parts, rows)

    def committed(self) -> None:
        """The buffer was written and emptied."""
        self._deleted_ms.clear()

    def discarded(self) -> None:
        """The buffer was emptied without being written."""
        self._deleted_ms.clear()

    def view(self) -> KeyValueReads[K, tuple[V, int]]:
        """A read-only view, for other threads."""
        return KeyValueReads(self._codec, self.parts.buffer.shared(), self._decode)


class Sweep:
    """Scans a store with a ttl, one slice at a time, and deletes expired entries."""

    def __init__(self, parts: StoreParts) -> None:
        self._parts = parts
        self._next: bytes | None = None

    def run(self) -> None:
        """Scan the next slice."""
        buffer, expiry = self._parts.buffer, self._parts.expiry
        latest_expired_ms = expiry.observed_ms - expiry.retention_ms
        start, self._next = self._next, None
        for seen, (raw, data) in enumerate(buffer.scan(start, None)):
            if seen == SWEEP_ROWS_MAX:
                self._next = raw
                return
            if unpack_long(data)[0] <= latest_expired_ms:
                buffer.put(raw, None)


def restore_timed(parts: StoreParts, rows: Iterable[RestoredRow]) -> None:
    """Write changelog records as rows with times."""
    put, expiry = parts.buffer.put, parts.expiry
    for raw, data, timestamp_ms in rows:
        if raw is not None:
            put(raw, None if data is None else pack_long(timestamp_ms) + data)
            if timestamp_ms > expiry.observed_ms:
                expiry.observed_ms = timestamp_ms


# Any below, because only the user knows the types of a store's values.
def decode_plain(codec: StoreCodec) -> Callable[[bytes], Any]:
    """A function that decodes values."""
    value_of = codec.decode_value

    def decode(data: bytes) -> object:
        try:
            return value_of(data)
        except Exception:  # the serde raises a better error
            return codec.value_of(data)

    return decode


def decode_timestamped(codec: StoreCodec) -> Callable[[bytes], tuple[Any, int]]:
    """A function that decodes (value, time)."""
    value_of = codec.decode_value

    def decode(data: bytes) -> tuple[Any, int]:
        try:
            return value_of(data[TIME_BYTES:]), unpack_long(data)[0]
        except Exception:  # the serde raises a better error
            return codec.value_of(data[TIME_BYTES:]), unpack_long(data)[0]

    return decode


def decode_live(parts: StoreParts) -> Callable[[bytes], Any]:
    """A function that decodes values that have not expired."""
    value_of, expiry = parts.codec.value_of, parts.expiry
    return lambda data: value_of(data[TIME_BYTES:]) if _is_live(data, expiry) else None


def decode_live_timestamped(parts: StoreParts) -> Callable[[bytes], tuple[Any, int] | None]:
    """A function that decodes (value, time) of entries that have not expired."""
    decode, expiry = decode_timestamped(parts.codec), parts.expiry
    return lambda data: decode(data) if _is_live(data, expiry) else None


def _is_live(data: bytes, expiry: Expiry) -> bool:
    time_ms: int = unpack_long(data)[0]
    return time_ms > expiry.observed_ms - expiry.retention_ms


def _after(raw: bytes | None) -> bytes | None:
    return None if raw is None else raw + b"\0"
