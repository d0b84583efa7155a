"""RowGroups: the rows of one key in one segment, found without a scan.

Joins, sessions and sliding windows read a few rows of one key for every record. A group is the
common prefix of those rows (segment and key); they differ in the suffix (the times). A group that
was read is cached as a sorted list of (suffix, value), which each put updates, until the limit of
bytes is reached; so neither RocksDB nor the order of all keys is needed per record.

The first time of a suffix is in the segment. This bounds a scan: it must not read all keys that
have this key as a prefix.

A group that would use the whole limit is not cached; its rows are scanned.
"""

from bisect import bisect_left
from collections import OrderedDict
from typing import Protocol

from streams.state.key_layout import TIME_MAX, pack_long, unpack_long
from streams.state.write_buffer import Reads, WriteBuffer

ROW_BYTES = 150  # of the objects of a row, in addition to their contents
GROUP_BYTES = 300

Rows = list[tuple[bytes, bytes]]


class GroupReads(Protocol):
    """Rows by group."""

    def rows(self, group: bytes, first: bytes, before: bytes) -> Rows:
        """(suffix, value) of a group's rows whose suffixes are in [first, before), in order."""
        ...


class ScannedGroups:
    """Reads groups by scans; for other threads."""

    def __init__(self, reads: Reads, suffix_bytes: int) -> None:
        self._reads = reads
        self._suffix_bytes = suffix_bytes

    def rows(self, group: bytes, first: bytes, before: bytes) -> Rows:
        """(suffix, value) of a group's rows whose suffixes are in [first, before), in order."""
        start = len(group)
        length = start + self._suffix_bytes
        # There can be rows of longer keys in between.
        return [
            (key[start:], value)
            for key, value in self._reads.scan(group + first, group + before)
            if len(key) == length
        ]


class RowGroups:
    """Groups of a task's store: puts, and cached rows. Only the task's thread uses it."""

    def __init__(
        self, buffer: WriteBuffer, *, suffix_bytes: int, interval_ms: int, cache_bytes: int
    ) -> None:
        """Cache groups of up to `cache_bytes`; a segment has an interval of `interval_ms`."""
        self._buffer = buffer
        self._dirty = buffer.dirty
        self._scanned = ScannedGroups(buffer, suffix_bytes)
        self._committed = ScannedGroups(buffer.committed_reads, suffix_bytes)
        self._suffix_bytes = suffix_bytes
        self._interval_ms = interval_ms
        self._groups: OrderedDict[bytes, Rows | None] = OrderedDict()  # None: too large
        self._sizes: dict[bytes, int] = {}
        self._bytes = 0
        self._bytes_max = cache_bytes
        # Suffixes of the rows in `dirty` by group; created when it is first needed.
        self._written: dict[bytes, list[bytes]] | None = None
        # Whether rows were read by group: only then must `put` update groups.
        self.are_asked_for = False

    @property
    def memory_bytes(self) -> int:
        """The approximate memory that the groups use."""
        return self._bytes

    def put(self, group: bytes, suffix: bytes, value: bytes | None) -> None:
        """Set a row; None deletes it."""
        dirty = self._dirty
        count = len(dirty)
        self._buffer.put(group + suffix, value)
        if self._written is not None and len(dirty) != count:
            self._written.setdefault(group, []).append(suffix)
        rows = self._groups.get(group)
        if rows is not None:
            self._update(group, rows, suffix, value)

    def rows(self, group: bytes, first: bytes, before: bytes) -> Rows:
        """(suffix, value) of a group's rows whose suffixes are in [first, before), in order."""
        rows = self._groups.get(group)
        if rows is None:
            if group in self._groups:
                self._groups.move_to_end(group)
                return self._scanned.rows(group, first, before)
            rows = self._load(group)
        else:
            self._groups.move_to_end(group)
        if not rows or (rows[0][0] >= first and rows[-1][0] < before):
            return rows[:]
        return rows[bisect_left(rows, (first,)) : bisect_left(rows, (before,))]

    def committed(self) -> None:
        """Called after a commit: rows are no longer dirty."""
        self._written = None

    def clear(self) -> None:
        """Clear the cache."""
        self.are_asked_for = False
        self._written = None
        self._groups.clear()
        self._sizes.clear()
        self._bytes = 0

    def _load(self, group: bytes) -> Rows:
        if not self.are_asked_for:
            self.are_asked_for = True
            self._buffer.limit_cache(self._bytes_max)
        start_ms = unpack_long(group)[0] * self._interval_ms
        before = pack_long(min(start_ms + self._interval_ms, TIME_MAX))
        by_suffix = dict(self._committed.rows(group, pack_long(start_ms), before))
        for suffix in self._written_suffixes().get(group, ()):
            value = self._dirty[group + suffix]
            if value is None:
                by_suffix.pop(suffix, None)
            else:
                by_suffix[suffix] = value
        rows = sorted(by_suffix.items())
        size = GROUP_BYTES + len(group) + sum(_row_bytes(*row) for row in rows)
        if size > self._bytes_max // 2:
            self._groups[group] = None
            self._resize(group, GROUP_BYTES + len(group))
        else:
            self._groups[group] = rows
            self._resize(group, size)
        return rows

    def _written_suffixes(self) -> dict[bytes, list[bytes]]:
        if self._written is None:
            self._written = {}
            length = self._suffix_bytes
            for key in self._dirty:
                self._written.setdefault(key[:-length], []).append(key[-length:])
        return self._written

    def _update(self, group: bytes, rows: Rows, suffix: bytes, value: bytes | None) -> None:
        if value is not None and (not rows or rows[-1][0] < suffix):
            rows.append((suffix, value))
            self._resize(group, _row_bytes(suffix, value))
            return
        index = bisect_left(rows, (suffix,))
        exists = index < len(rows) and rows[index][0] == suffix
        if exists:
            self._resize(group, -_row_bytes(*rows[index]))
        if value is None:
            if exists:
                del rows[index]
            return
        rows[index : index + exists] = [(suffix, value)]
        self._resize(group, _row_bytes(suffix, value))

    def _resize(self, group: bytes, change: int) -> None:
        self._sizes[group] = self._sizes.get(group, 0) + change
        self._bytes += change
        while self._bytes > self._bytes_max and self._groups:
            oldest, _ = self._groups.popitem(last=False)
            self._bytes -= self._sizes.pop(oldest)


def _row_bytes(suffix: bytes, value: bytes) -> int:
    return ROW_BYTES + len(suffix) + len(value)
