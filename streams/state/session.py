"""Session stores: values by key and session. Starts and ends are inclusive.

Reads show sessions with end > observed - retention, where observed is the largest end put. Puts are
refused when the whole segment of the end has expired, as in Kafka's persistent stores.
"""

from collections.abc import Callable, Iterable, Iterator
from heapq import merge
from typing import Generic, TypeVar

from streams.record import NO_HEADERS, Windowed
from streams.state.key_layout import (
    AFTER_SUFFIX,
    PAIR_SUFFIX_BYTES,
    SEGMENT_BYTES,
    TIME_MAX,
    after_prefix,
    pack_long,
    pack_pair_suffix,
    segment_prefix,
    session_key_parts,
    unpack_long,
    unpack_pair_suffix,
)
from streams.state.key_value import decode_plain
from streams.state.open_store import ChangelogRow, RestoredRow, StoreParts
from streams.state.row_groups import GroupReads, ScannedGroups
from streams.state.store import REFUSED
from streams.state.write_buffer import Reads, Row

K = TypeVar("K")
V = TypeVar("V")


class SessionReads(Generic[K, V]):
    """Reads of a session store."""

    def __init__(
        self, parts: StoreParts, rows: Reads, groups: GroupReads, decode: Callable[[bytes], V]
    ) -> None:
        """`decode` returns the value of a row."""
        self._codec = parts.codec
        self._raw_key = parts.codec.raw_key
        self._expiry = parts.expiry
        self._rows = rows
        self._group_rows = groups.rows
        self._decode = decode

    def get(self, key: K, start_ms: int, end_ms: int) -> V | None:
        """The value of one session."""
        raw = self.raw(key)
        if end_ms < self._expiry.earliest_ms:
            return None
        group = pack_long(end_ms // self._expiry.interval_ms) + raw
        data = self._rows.get(group + pack_pair_suffix(end_ms, start_ms))
        return None if data is None else self._decode(data)

    def find_sessions(
        self, key: K, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed[K], V]]:
        """Sessions of a key that end and start within these limits, by end and then by start."""
        raw = self.raw(key)
        expiry, decode = self._expiry, self._decode
        from_ms, to_ms = max(earliest_end_ms, expiry.earliest_ms), expiry.observed_ms
        if from_ms > to_ms:
            return
        first, before = pack_long(from_ms), pack_long(to_ms) + AFTER_SUFFIX
        for segment in expiry.segments(from_ms, to_ms):
            for suffix, data in self._group_rows(pack_long(segment) + raw, first, before):
                end_ms, start_ms = unpack_pair_suffix(suffix)
                if start_ms <= latest_start_ms:
                    yield Windowed(key, start_ms, end_ms), decode(data)

    def fetch(self, key: K) -> Iterator[tuple[Windowed[K], V]]:
        """All sessions of a key."""
        return self.find_sessions(key, 0, TIME_MAX)

    def sessions_ended(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed[K], V]]:
        """Sessions of all keys that end in [from, to], by end."""
        from_ms = max(from_ms, self._expiry.earliest_ms)
        for segment in self._expiry.segments(from_ms, to_ms):
            rows = sorted(
                self._segment_rows(segment, from_ms, to_ms),
                key=lambda row: (row[0][-PAIR_SUFFIX_BYTES:-8], row[0]),
            )
            for row_key, data in rows:
                yield self._windowed(row_key), self._decode(data)

    def all(self) -> Iterator[tuple[Windowed[K], V]]:
        """All sessions, by key, end and start."""
        from_ms = self._expiry.earliest_ms
        rows_of_segments = [
            self._segment_rows(segment, from_ms, TIME_MAX)
            for segment in self._expiry.segments(from_ms, TIME_MAX)
        ]
        for row_key, data in merge(*rows_of_segments, key=lambda row: row[0]):
            yield self._windowed(row_key), self._decode(data)

    def raw(self, key: K) -> bytes:
        """Serialize a key."""
        return self._raw_key(key)

    def _segment_rows(self, segment: int, from_ms: int, to_ms: int) -> Iterator[Row]:
        """Rows of one segment; their keys are without its number."""
        prefix = segment_prefix(segment)
        for row_key, data in self._rows.scan(prefix, after_prefix(prefix)):
            if from_ms <= unpack_long(row_key, len(row_key) - PAIR_SUFFIX_BYTES)[0] <= to_ms:
                yield row_key[SEGMENT_BYTES:], data

    def _windowed(self, row_key: bytes) -> Windowed[K]:
        raw, start_ms, end_ms = session_key_parts(row_key)
        return Windowed(self._codec.key_of(raw), start_ms, end_ms)


class SessionStoreOfTask(SessionReads[K, V]):
    """Values by key and session."""

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts, parts.buffer, parts.row_groups, decode_plain(parts.codec))
        self.parts = parts
        self._put = parts.row_groups.put

    def put(self, key: K, start_ms: int, end_ms: int, value: V | None) -> int:
        """Set the value of a session; None removes. Returns the size in bytes, or REFUSED."""
        raw = self.raw(key)
        data = self._codec.value_bytes(value)
        if not self._expiry.is_live(end_ms):
            return REFUSED
        group = pack_long(end_ms // self._expiry.interval_ms) + raw
        self._put(group, pack_pair_suffix(end_ms, start_ms), data)
        return len(group) + PAIR_SUFFIX_BYTES + (0 if data is None else len(data))

    def remove(self, key: K, start_ms: int, end_ms: int) -> None:
        """Remove a session."""
        self.put(key, start_ms, end_ms, None)

    def changes(self) -> list[ChangelogRow]:
        """Records for the changelog since the last commit."""
        return [
            (
                row_key[SEGMENT_BYTES:],
                data,
                NO_HEADERS,
                unpack_long(row_key, len(row_key) - PAIR_SUFFIX_BYTES)[0],
            )
            for row_key, data in self.parts.buffer.dirty.items()
        ]

    def before_commit(self) -> None:
        """Nothing to do: whole segments expire."""

    def restore(self, rows: Iterable[RestoredRow]) -> None:
        """Write records of the changelog into the buffer."""
        expiry, put = self._expiry, self._put
        for row_key, data, _ in rows:
            if row_key is not None:
                end_ms = unpack_long(row_key, len(row_key) - PAIR_SUFFIX_BYTES)[0]
                if expiry.is_live(end_ms):
                    group = pack_long(end_ms // expiry.interval_ms) + row_key[:-PAIR_SUFFIX_BYTES]
                    put(group, row_key[-PAIR_SUFFIX_BYTES:], data)

    def committed(self) -> None:
        """The buffer was written and emptied."""

    def discarded(self) -> None:
        """The buffer was emptied without being written."""

    def view(self) -> SessionReads[K, V]:
        """A read-only view, for other threads."""
        reads = self.parts.buffer.shared()
        groups = ScannedGroups(reads, PAIR_SUFFIX_BYTES)
        return SessionReads(self.parts, reads, groups, self._decode)
