"""Versioned stores: keys with their versions, kept for `history_ms`.

The latest version of a key is at `latest_key`, as `int64 time | value`. Each older one is at its
version row, in the segment of the time until which it was valid, as `1 | value`, or as `0` if the
key was deleted. If the latest version is a deletion there is no latest row, but a version row that
is valid from and to the same time: it marks the deletion, and expires like others.

    put a@10, b@20, delete@30     latest: none
                                  rows:   [10, 20) a   [20, 30) b   [30, 30) deleted

Versions of a key have no gaps between them, so the version at a time is the one with the smallest
valid_to after it.
"""

from collections.abc import Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

from streams.record import NO_HEADERS
from streams.state.key_layout import (
    AFTER_SUFFIX,
    LATEST_PREFIX,
    PAIR_SUFFIX_BYTES,
    TIME_MAX,
    after_prefix,
    latest_key,
    pack_long,
    pack_pair_suffix,
    segment_prefix,
    unpack_long,
    unpack_pair_suffix,
)
from streams.state.key_value import TIME_BYTES
from streams.state.open_store import ChangelogRow, RestoredRow, StoreParts
from streams.state.row_groups import GroupReads, ScannedGroups
from streams.state.store import LATEST, VersionedRecord
from streams.state.write_buffer import Reads

K = TypeVar("K")
V = TypeVar("V")

_VALUE = b"\1"
_DELETED = b"\0"


class _Version(NamedTuple):
    """A version in bytes; `data` None is a deletion."""

    valid_from_ms: int
    valid_to_ms: int
    data: bytes | None


class _VersionRows:
    """The versions of a store's keys, as bytes."""

    def __init__(self, parts: StoreParts, rows: Reads, groups: GroupReads) -> None:
        self.expiry = parts.expiry
        self.rows = rows
        self._group_rows = groups.rows

    def latest(self, raw: bytes) -> _Version | None:
        """The latest version, unless it is a deletion."""
        row = self.rows.get(latest_key(raw))
        return None if row is None else _Version(unpack_long(row)[0], LATEST, row[TIME_BYTES:])

    def older(self, raw: bytes, from_ms: int) -> Iterator[_Version]:
        """Versions with valid_to at or after `from_ms`, oldest first."""
        expiry = self.expiry
        from_ms = max(from_ms, expiry.earliest_ms)
        if from_ms > TIME_MAX:
            return
        first, before = pack_long(from_ms), pack_long(TIME_MAX) + AFTER_SUFFIX
        for segment in expiry.segments(from_ms, TIME_MAX):
            for suffix, data in self._group_rows(segment_prefix(segment) + raw, first, before):
                valid_to_ms, valid_from_ms = unpack_pair_suffix(suffix)
                value = data[1:] if data[:1] == _VALUE else None
                yield _Version(valid_from_ms, valid_to_ms, value)

    def as_of(self, raw: bytes, timestamp_ms: int) -> _Version | None:
        """The version that is valid at a time; None if there is none or it is a deletion."""
        latest = self.latest(raw)
        if latest is not None and latest.valid_from_ms <= timestamp_ms:
            return latest
        if timestamp_ms < self.expiry.observed_ms - self.expiry.retention_ms:
            return None
        version = next(self.older(raw, timestamp_ms + 1), None)
        if version is None or version.valid_from_ms > timestamp_ms or version.data is None:
            return None
        return version


class VersionedReads(Generic[K, V]):
    """Reads of a versioned store."""

    def __init__(self, parts: StoreParts, rows: Reads, groups: GroupReads) -> None:
        self._codec = parts.codec
        self._versions = _VersionRows(parts, rows, groups)

    def get(self, key: K) -> VersionedRecord | None:
        """The latest version."""
        return self._record(self._versions.latest(self.raw(key)))

    def get_as_of(self, key: K, timestamp_ms: int) -> VersionedRecord | None:
        """The version that is valid at a time; None if it is older than the history."""
        return self._record(self._versions.as_of(self.raw(key), timestamp_ms))

    def versions(
        self,
        key: K,
        from_ms: int | None = None,
        to_ms: int | None = None,
        *,
        newest_first: bool = True,
    ) -> Iterator[VersionedRecord]:
        """The versions valid at some time in a range, both ends inclusive; without deletions."""
        raw = self.raw(key)
        first_ms = 0 if from_ms is None else max(0, from_ms)
        last_ms = TIME_MAX if to_ms is None else to_ms
        expiry = self._versions.expiry
        versions: list[_Version] = []
        if last_ms >= expiry.observed_ms - expiry.retention_ms:
            versions.extend(self._versions.older(raw, first_ms + 1))
        latest = self._versions.latest(raw)
        if latest is not None:
            versions.append(latest)
        for version in reversed(versions) if newest_first else versions:
            record = self._record(version)
            if record is not None and version.valid_from_ms <= last_ms:
                yield record

    def all(self) -> Iterator[tuple[K, VersionedRecord]]:
        """The latest version of every key that has one."""
        key_of, value_of = self._codec.key_of, self._codec.value_of
        rows = self._versions.rows
        for row_key, data in rows.scan(LATEST_PREFIX, after_prefix(LATEST_PREFIX)):
            value = value_of(data[TIME_BYTES:])
            record = VersionedRecord(value, unpack_long(data)[0])
            yield key_of(row_key[len(LATEST_PREFIX) :]), record

    def raw(self, key: K) -> bytes:
        """Serialize a key."""
        return self._codec.key_bytes(key)

    def _record(self, version: _Version | None) -> VersionedRecord | None:
        if version is None or version.data is None:
            return None
        value = self._codec.value_of(version.data)
        return VersionedRecord(value, version.valid_from_ms, version.valid_to_ms)


class VersionedStoreOfTask(VersionedReads[K, V]):
    """A map that retains older versions."""

    def __init__(self, parts: StoreParts) -> None:
        super().__init__(parts, parts.buffer, parts.row_groups)
        self.parts = parts
        # The changelog gets every version, not only the latest of a key.
        self._changes: dict[tuple[bytes, int], bytes | None] = {}

    def put(self, key: K, value: V | None, timestamp_ms: int) -> int | None:
        """Add a version; returns the end of its validity, LATEST, or None if it is too late."""
        raw = self.raw(key)
        data = self._codec.value_bytes(value)
        valid_to_ms = self._put(raw, data, timestamp_ms)
        if valid_to_ms is not None:
            self._changes[raw, timestamp_ms] = data
        return valid_to_ms

    def delete(self, key: K, timestamp_ms: int) -> VersionedRecord | None:
        """Delete the key from a time on; returns the version that was valid then."""
        expiry = self.parts.expiry
        if timestamp_ms < expiry.observed_ms - expiry.retention_ms:
            return None
        old = self.get_as_of(key, timestamp_ms)
        self.put(key, None, timestamp_ms)
        return old

    def _put(self, raw: bytes, data: bytes | None, timestamp_ms: int) -> int | None:
        expiry = self.parts.expiry
        if timestamp_ms < expiry.observed_ms - expiry.retention_ms:
            return None
        expiry.observed_ms = max(expiry.observed_ms, timestamp_ms)
        latest = self._versions.latest(raw)
        if latest is not None and latest.valid_from_ms <= timestamp_ms:
            self._add_after(raw, latest, data, timestamp_ms)
            return LATEST
        after = next(self._versions.older(raw, timestamp_ms + 1), None)
        if after is not None:
            return self._insert(raw, after, data, timestamp_ms)
        if latest is not None:
            valid_to_ms = latest.valid_from_ms
            self._write(raw, _Version(timestamp_ms, valid_to_ms, data))
            return valid_to_ms
        deletion = _Version(timestamp_ms, timestamp_ms, None)
        if self.parts.buffer.get(self._group(raw, deletion) + _suffix(deletion)) is not None:
            self._remove(raw, deletion)
        self._write_latest(raw, data, timestamp_ms)
        return LATEST

    def _add_after(
        self, raw: bytes, latest: _Version, data: bytes | None, timestamp_ms: int
    ) -> None:
        if latest.valid_from_ms < timestamp_ms:
            self._write(raw, latest._replace(valid_to_ms=timestamp_ms))
        if data is None:
            self.parts.buffer.put(latest_key(raw), None)
        self._write_latest(raw, data, timestamp_ms)

    def _insert(self, raw: bytes, after: _Version, data: bytes | None, timestamp_ms: int) -> int:
        """Add a version before or inside another one."""
        if after.valid_from_ms > timestamp_ms:
            self._write(raw, _Version(timestamp_ms, after.valid_from_ms, data))
            return after.valid_from_ms
        if after.valid_from_ms < timestamp_ms:
            self._remove(raw, after)
            self._write(raw, after._replace(valid_to_ms=timestamp_ms))
        self._write(raw, _Version(timestamp_ms, after.valid_to_ms, data))
        return after.valid_to_ms

    def _write_latest(self, raw: bytes, data: bytes | None, timestamp_ms: int) -> None:
        if data is None:
            self._write(raw, _Version(timestamp_ms, timestamp_ms, None))
        else:
            self.parts.buffer.put(latest_key(raw), pack_long(timestamp_ms) + data)

    def _write(self, raw: bytes, version: _Version) -> None:
        row = _DELETED if version.data is None else _VALUE + version.data
        self.parts.row_groups.put(self._group(raw, version), _suffix(version), row)

    def _remove(self, raw: bytes, version: _Version) -> None:
        self.parts.row_groups.put(self._group(raw, version), _suffix(version), None)

    def _group(self, raw: bytes, version: _Version) -> bytes:
        return segment_prefix(version.valid_to_ms // self.parts.expiry.interval_ms) + raw

    def changes(self) -> list[ChangelogRow]:
        """Records for the changelog since the last commit."""
        return [
            (raw, data, NO_HEADERS, timestamp_ms)
            for (raw, timestamp_ms), data in self._changes.items()
        ]

    def before_commit(self) -> None:
        """Nothing to do: whole segments expire."""

    def restore(self, rows: Iterable[RestoredRow]) -> None:
        """Write records of the changelog into the buffer."""
        for raw, data, timestamp_ms in rows:
            if raw is not None:
                self._put(raw, data, timestamp_ms)

    def committed(self) -> None:
        """The buffer was written and emptied."""
        self._changes.clear()

    def discarded(self) -> None:
        """The buffer was emptied without being written."""
        self._changes.clear()

    def view(self) -> VersionedReads[K, V]:
        """A read-only view, for other threads."""
        reads = self.parts.buffer.shared()
        return VersionedReads(self.parts, reads, ScannedGroups(reads, PAIR_SUFFIX_BYTES))


def _suffix(version: _Version) -> bytes:
    return pack_pair_suffix(version.valid_to_ms, version.valid_from_ms)
