"""Window stores: values by key and window start; plain (with duplicates or without), timestamped.

Reads return windows with start > observed - retention, where observed is the largest start put. A
put is refused when the whole segment of its start has expired, as in Kafka's persistent stores:
between the two bounds, puts are accepted but not visible.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from heapq import merge
from typing import Any, Generic, TypeVar

from streams.record import NO_HEADERS, Windowed
from streams.state.clean_rows import ABSENT, ENTRY_BYTES
from streams.state.codec import StoreCodec
from streams.state.expiry import Expiry
from streams.state.key_layout import (
    AFTER_SUFFIX,
    SEGMENT_BYTES,
    SEQUENCE_MAX,
    TIME_MAX,
    WINDOW_SUFFIX_BYTES,
    keys_bounds,
    pack_long,
    pack_window_suffix,
    segment_prefix,
    unpack_long,
    window_key_parts,
)
from streams.state.key_value import TIME_BYTES, decode_plain, decode_timestamped
from streams.state.open_store import ChangelogRow, RestoredRow, StoreParts
from streams.state.row_groups import GroupReads, ScannedGroups
from streams.state.store import NO_LIMIT, REFUSED
from streams.state.write_buffer import Reads, Row

try:
    from streams.state import _windows as _native
except ImportError:
    _native = None  # type: ignore[assignment]  # installed without a compiler

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")  # the result of reads: V, or (V, timestamp_ms)

# Any, because only the user knows the types of a store's keys and values.
_Get = Callable[[Any, int], tuple[Any, int] | None]
_Put = Callable[[Any, Any, int, int], int]
_IMMUTABLE = frozenset({str, bytes, int})  # types of keys that cannot change in place


class WindowReads(Generic[K, R]):
    """Reads of a window store."""

    def __init__(
        self, parts: StoreParts, rows: Reads, groups: GroupReads, decode: Callable[[bytes], R]
    ) -> None:
        """`decode` returns the value of a row."""
        self._codec: StoreCodec = parts.codec
        self._expiry: Expiry = parts.expiry
        self._size_ms = 0 if parts.spec.window_size_ms == NO_LIMIT else parts.spec.window_size_ms
        self._duplicates = parts.spec.retain_duplicates
        self._rows = rows
        self._get = rows.get
        self._group_rows = groups.rows
        self._decode = decode

    def get(self, key: K, start_ms: int) -> R | None:
        """The value of one window; with duplicates, the first one."""
        raw = self.raw(key)
        expiry = self._expiry
        if start_ms <= expiry.observed_ms - expiry.retention_ms or start_ms < 0:
            return None
        if self._duplicates:
            return next((value for _, value in self.fetch(key, start_ms, start_ms)), None)
        prefix = pack_long(start_ms // expiry.interval_ms)
        data = self._get(prefix + raw + pack_window_suffix(start_ms, 0))
        return None if data is None else self._decode(data)

    def fetch(self, key: K, from_ms: int, to_ms: int) -> Iterator[tuple[int, R]]:
        """(start, value) of a key's windows that start in [from, to], oldest first."""
        return self._fetch(self.raw(key), from_ms, to_ms, backwards=False)

    def backward_fetch(self, key: K, from_ms: int, to_ms: int) -> Iterator[tuple[int, R]]:
        """Like `fetch`, newest first."""
        return self._fetch(self.raw(key), from_ms, to_ms, backwards=True)

    def fetch_keys(
        self, first: K | None, last: K | None, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed[K], R]]:
        """Windows of a range of keys that start in [from, to], by key and then by start."""
        from_ms, to_ms = self._visible(from_ms, to_ms)
        first_raw = None if first is None else self.raw(first)
        last_raw = None if last is None else self.raw(last)
        rows_of_segments = [
            self._segment_rows(segment, first_raw, last_raw, from_ms, to_ms)
            for segment in self._expiry.segments(from_ms, to_ms)
        ]
        for key_raw, data in merge(*rows_of_segments, key=lambda row: row[0]):
            yield self._windowed(key_raw), self._decode(data)

    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[K], R]]:
        """Windows of all keys that start in [from, to], by start and then by key."""
        from_ms, to_ms = self._visible(from_ms, to_ms)
        for segment in self._expiry.segments(from_ms, to_ms):
            rows = sorted(
                self._segment_rows(segment, None, None, from_ms, to_ms),
                key=lambda row: (row[0][-WINDOW_SUFFIX_BYTES:-4], row[0]),
            )
            for key_raw, data in rows:
                yield self._windowed(key_raw), self._decode(data)

    def all(self) -> Iterator[tuple[Windowed[K], R]]:
        """All windows, by key and then by start."""
        return self.fetch_keys(None, None, 0, TIME_MAX)

    def raw(self, key: K) -> bytes:
        """Serialize a key."""
        return self._codec.raw_key(key)

    def _visible(self, from_ms: int, to_ms: int) -> tuple[int, int]:
        return max(from_ms, self._expiry.earliest_ms), min(to_ms, self._expiry.observed_ms)

    def _fetch(
        self, raw: bytes, from_ms: int, to_ms: int, *, backwards: bool
    ) -> Iterator[tuple[int, R]]:
        from_ms, to_ms = self._visible(from_ms, to_ms)
        if from_ms > to_ms:
            return
        decode = self._decode
        first, before = pack_long(from_ms), pack_long(to_ms) + AFTER_SUFFIX
        segments = self._expiry.segments(from_ms, to_ms)
        for segment in reversed(segments) if backwards else segments:
            rows = self._group_rows(pack_long(segment) + raw, first, before)
            for suffix, data in reversed(rows) if backwards else rows:
                yield unpack_long(suffix)[0], decode(data)

    def _segment_rows(
        self, segment: int, first: bytes | None, last: bytes | None, from_ms: int, to_ms: int
    ) -> Iterator[Row]:
        """Rows of one segment; their keys are without its number."""
        lower, before = keys_bounds(segment_prefix(segment), first, last, to_ms)
        for full, data in self._rows.scan(lower, before):
            row_key = full[SEGMENT_BYTES:]
            key, start_ms, _ = window_key_parts(row_key)
            if (
                from_ms <= start_ms <= to_ms
                and (first is None or key >= first)
                and (last is None or key <= last)
            ):
                yield row_key, data

    def _windowed(self, row_key: bytes) -> Windowed[K]:
        raw, start_ms, _ = window_key_parts(row_key)
        end_ms = min(start_ms + self._size_ms, TIME_MAX)
        return Windowed(self._codec.key_of(raw), start_ms, end_ms)


class _WindowRows:
    """Rows of a window store in the task's buffer: puts, changelog, restore."""

    def __init__(self, parts: StoreParts, *, timestamped: bool) -> None:
        self._expiry = parts.expiry
        self._put = parts.row_groups.put
        self._dirty = parts.buffer.dirty
        self._timestamped = timestamped

    def put(self, raw: bytes, start_ms: int, sequence: int, data: bytes | None) -> int:
        expiry = self._expiry
        if not expiry.is_live(start_ms):
            return REFUSED
        group = pack_long(start_ms // expiry.interval_ms) + raw
        self._put(group, pack_window_suffix(start_ms, sequence), data)
        return len(group) + WINDOW_SUFFIX_BYTES + (0 if data is None else len(data))

    def changes(self) -> list[ChangelogRow]:
        # The time of a row is at the start of its value; without one, it is the window's start.
        skip, start_at = TIME_BYTES if self._timestamped else 0, -WINDOW_SUFFIX_BYTES
        return [
            (key[SEGMENT_BYTES:], data[skip:], NO_HEADERS, unpack_long(data)[0])
            if data is not None and skip
            else (key[SEGMENT_BYTES:], data, NO_HEADERS, unpack_long(key, start_at)[0])
            for key, data in self._dirty.items()
        ]

    def restore(self, rows: Iterable[RestoredRow]) -> None:
        expiry, put, timestamped = self._expiry, self._put, self._timestamped
        interval = expiry.interval_ms
        for key, data, timestamp_ms in rows:
            if key is None:
                continue
            _, start_ms, sequence = window_key_parts(key)
            expiry.sequence = max(expiry.sequence, sequence)
            if expiry.is_live(start_ms):
                if timestamped and data is not None:
                    data = pack_long(timestamp_ms) + data
                group = pack_long(start_ms // interval) + key[:-WINDOW_SUFFIX_BYTES]
                put(group, key[-WINDOW_SUFFIX_BYTES:], data)


class PlainWindowStore(WindowReads[K, V]):
    """Values by key and window start. With duplicates a put adds, and None is ignored."""

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts, parts.buffer, parts.row_groups, decode_plain(parts.codec))
        self.parts = parts
        self._window_rows = _WindowRows(parts, timestamped=False)
        self._raw_value = parts.codec.raw_value
        self.changes = self._window_rows.changes
        self.restore = self._window_rows.restore

    def put(self, key: K, value: V | None, start_ms: int) -> int:
        """Set the value of a window; None deletes. Returns the size in bytes, or REFUSED."""
        raw = self.raw(key)
        data = self._raw_value(value)
        sequence = 0
        if self._duplicates:
            if data is None:
                return 0
            sequence = (self._expiry.sequence + 1) & SEQUENCE_MAX
            self._expiry.sequence = sequence
        return self._window_rows.put(raw, start_ms, sequence, data)

    def before_commit(self) -> None:
        """Nothing to do: whole segments expire."""

    def committed(self) -> None:
        """The buffer was written and emptied."""

    def discarded(self) -> None:
        """The buffer was emptied without being written."""

    def view(self) -> WindowReads[K, V]:
        """A read-only view, for other threads."""
        reads = self.parts.buffer.shared()
        groups = ScannedGroups(reads, WINDOW_SUFFIX_BYTES)
        return WindowReads(self.parts, reads, groups, self._decode)


class _LastRow:
    """Caches the row that was read last: a put usually follows the get of its window.

    Prefix and suffix of a row are the same for all keys of a window, so they are cached, too.
    """

    __slots__ = ("_codec", "_interval_ms", "key", "prefix", "row", "start_ms", "suffix")

    def __init__(self, codec: StoreCodec, interval_ms: int) -> None:
        self._codec = codec
        self._interval_ms = interval_ms
        self.key: object = ABSENT
        self.row = b""
        self.begin(0)

    def begin(self, start_ms: int) -> None:
        """Start another window."""
        self.start_ms = start_ms
        self.key = ABSENT
        self.prefix = pack_long(start_ms // self._interval_ms)
        self.suffix = pack_window_suffix(start_ms, 0)

    def of(self, key: object, start_ms: int) -> bytes:
        """The row of any window, which is not cached."""
        segment = pack_long(start_ms // self._interval_ms)
        return segment + self._codec.raw_key(key) + pack_window_suffix(start_ms, 0)


class TimestampedWindowStoreOfTask(WindowReads[K, tuple[V, int]]):
    """Values with times, by key and window start."""

    get: Callable[[K, int], tuple[V, int] | None]  # type: ignore[assignment]  # without argument names
    put: Callable[[K, V | None, int, int], int]

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts, parts.buffer, parts.row_groups, decode_timestamped(parts.codec))
        self.parts = parts
        self._window_rows = _WindowRows(parts, timestamped=True)
        last = _LastRow(parts.codec, parts.expiry.interval_ms)
        self.get = _open_get(parts, last)
        self.put = _open_put(parts, last)
        self.changes: Callable[[], list[ChangelogRow]] = self._window_rows.changes
        if _native is not None:
            fast = _open_fast(parts, self.get, self.put)
            self.get, self.put = fast.get, fast.put
            self.changes = partial(fast.changes, NO_HEADERS)
        self.restore = self._window_rows.restore

    def before_commit(self) -> None:
        """Nothing to do: whole segments expire."""

    def committed(self) -> None:
        """The buffer was written and emptied."""

    def discarded(self) -> None:
        """The buffer was emptied without being written."""

    def view(self) -> WindowReads[K, tuple[V, int]]:
        """A read-only view, for other threads."""
        reads = self.parts.buffer.shared()
        groups = ScannedGroups(reads, WINDOW_SUFFIX_BYTES)
        return WindowReads(self.parts, reads, groups, self._decode)


def _open_get(parts: StoreParts, last: _LastRow) -> _Get:
    """The `get` of a task, with local variables for everything that a record needs."""
    expiry, codec, buffer = parts.expiry, parts.codec, parts.buffer
    retention_ms, encode_key = expiry.retention_ms, codec.encode_key
    decode_value, get_committed = codec.decode_value, buffer.get_committed
    find: Callable[[bytes, object], Any] = buffer.dirty.get  # Any: bytes, None or ABSENT

    def get(key: object, start_ms: int) -> tuple[object, int] | None:
        """Value and time of one window."""
        if start_ms <= expiry.observed_ms - retention_ms or start_ms < 0:
            return None
        if start_ms != last.start_ms:
            last.begin(start_ms)
        try:
            row = last.prefix + encode_key(key) + last.suffix  # type: ignore[operator]
        except Exception:  # the serde raises a better error
            row = last.of(key, start_ms)
        last.key = key if type(key) in _IMMUTABLE else ABSENT
        last.row = row
        data = find(row, ABSENT)
        if data is ABSENT:
            data = get_committed(row, start_ms)
        if data is None:
            return None
        try:
            return decode_value(data[TIME_BYTES:]), unpack_long(data)[0]
        except Exception:  # the serde raises a better error
            return codec.value_of(data[TIME_BYTES:]), unpack_long(data)[0]

    return get


def _open_put(parts: StoreParts, last: _LastRow) -> _Put:
    """The `put` of a task."""
    expiry, codec, groups = parts.expiry, parts.codec, parts.row_groups
    encode_value, put_row, is_live = codec.encode_value, parts.buffer.put, expiry.is_live

    def put(key: object, value: object, timestamp_ms: int, start_ms: int) -> int:
        """Set value and time of a window; None deletes. Returns the size in bytes, or REFUSED."""
        data = None
        if value is not None:
            try:
                data = encode_value(value)
            except Exception:  # the serde raises a better error
                data = codec.value_bytes(value)
            if data is not None:
                data = pack_long(timestamp_ms) + data
        if start_ms != expiry.observed_ms and not is_live(start_ms):
            codec.raw_key(key)
            return REFUSED
        is_last = key is last.key and start_ms == last.start_ms
        row = last.row if is_last else last.of(key, start_ms)
        if groups.are_asked_for:
            groups.put(row[:-WINDOW_SUFFIX_BYTES], row[-WINDOW_SUFFIX_BYTES:], data)
        else:
            put_row(row, data)
        return len(row) + (0 if data is None else len(data))

    return put


def _open_fast(parts: StoreParts, get: _Get, put: _Put) -> "_native.Windows":
    """The compiled `get` and `put`; for rare cases they call the Python ones."""
    expiry, codec, buffer = parts.expiry, parts.codec, parts.buffer
    return _native.Windows(
        expiry,
        buffer,
        buffer.clean,
        parts.row_groups,
        buffer.dirty,
        (
            None if codec.encode_key is str.encode else codec.encode_key,
            codec.encode_value,
            codec.decode_value,
        ),
        (get, put),
        (expiry.retention_ms, expiry.interval_ms, ENTRY_BYTES),
    )
