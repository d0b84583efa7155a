"""Segment: one .log file with its indexes; appends and reads whole batches."""

import contextlib
import os
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator

from broker.batch.layout import BATCH_LENGTH_MIN, HEADER_BYTES, MAGIC, BatchHeader, read_header
from broker.errors import StorageError
from broker.model import NO_TIMESTAMP, OpenFile
from broker.storage.context import LogContext
from broker.storage.index import (
    OFFSET_ENTRY,
    OFFSET_ENTRY_BYTES,
    RELATIVE_OFFSET_MAX,
    TIME_ENTRY,
    AbortedRange,
    OffsetIndex,
    StaleIndex,
    TimeIndex,
    aborted_from_bytes,
    aborted_to_bytes,
)

LOG = ".log"
OFFSET_INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
SNAPSHOT = ".snapshot"
SEGMENT_FILES = (LOG, OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX)

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"

SHORT_SCAN_BYTES = 8192
LONG_SCAN_BYTES = 1 << 20
POSITION_MAX = 2**31 - 1


def file_name(offset: int, kind: str) -> str:
    """The name of a file: a twenty-digit offset and the kind of file."""
    return f"{offset:020d}{kind}"


class LoadedIndexes:
    """The indexes of a segment that are in memory."""

    __slots__ = ("offsets", "recently_used", "times")

    def __init__(self) -> None:
        self.offsets: OffsetIndex | None = None
        self.times: TimeIndex | None = None
        self.recently_used = False

    def release(self) -> None:
        """Release them; they are loaded again when needed."""
        self.offsets = self.times = None


class Segment:
    """Batches from a base offset on.

    Only the last segment of a log is written to. Its indexes stay in memory and are written to disk
    when it is sealed; after a crash they are rebuilt from the log. Those of sealed segments are
    loaded when needed. Index files are never trusted: entries are checked against the batch at
    their position, and an invalid entry causes the index to be rebuilt.
    """

    __slots__ = (
        "_aborted",
        "_bytes_since_entry",
        "_file",
        "_first_timestamp",
        "_indexes",
        "_max_timestamp",
        "base_offset",
        "context",
        "created_ms",
        "flushed",
        "folder",
        "index_interval_bytes",
        "jitter_ms",
        "next_offset",
        "recently_used",
        "sealed",
        "size_bytes",
        "suffix",
    )

    def __init__(
        self, context: LogContext, folder: str, base_offset: int, *, size_bytes: int = 0
    ) -> None:
        """A segment with existing files, sealed until `reopen`; nothing is read yet."""
        self.context = context
        self.folder = folder
        self._file: OpenFile | None = None
        self._indexes = LoadedIndexes()
        self._aborted: list[AbortedRange] | None = None
        self._bytes_since_entry = 0
        self._first_timestamp: int | None = None
        # The largest timestamp, and the last offset of its batch.
        self._max_timestamp: tuple[int, int] | None = None
        self.base_offset = base_offset
        self.next_offset = base_offset
        self.size_bytes = size_bytes
        self.index_interval_bytes = 4096
        self.created_ms = context.clock.now_ms()
        self.jitter_ms = 0
        self.recently_used = False
        self.sealed = True
        self.flushed = False  # sealed, and all its files are on disk
        self.suffix = ""

    @classmethod
    def create(
        cls, context: LogContext, folder: str, base_offset: int, *, suffix: str = ""
    ) -> "Segment":
        """Create an empty segment, open for writing."""
        segment = cls(context, folder, base_offset)
        segment.suffix = suffix
        segment._use(os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        segment._start_indexes()
        return segment

    def __repr__(self) -> str:
        return f"Segment({self.path(LOG)}, next_offset={self.next_offset}, {self.size_bytes} bytes)"

    def path(self, kind: str) -> str:
        """Path of one of its files."""
        return os.path.join(self.folder, file_name(self.base_offset, kind) + self.suffix)

    # --- the file ---

    def file(self) -> OpenFile:
        """The .log file, open."""
        self.recently_used = True
        return self._file or self._use(os.O_RDWR)

    def _use(self, flags: int) -> OpenFile:
        file = self.context.files.open(self.path(LOG), flags)
        self.context.open_files.opened(self)
        self._file = file
        return file

    def release(self) -> None:
        """Close the descriptor; readers still keep theirs."""
        self._file = None

    def close_file(self) -> None:
        """Close the descriptor without being asked to."""
        self.context.open_files.closed(self)
        self._file = None

    def close(self) -> None:
        """Close the descriptor and the indexes."""
        self.close_file()
        self.context.loaded_indexes.closed(self._indexes)
        self._indexes.release()

    # --- writing ---

    def append(self, data: memoryview | bytes, headers: list[BatchHeader]) -> None:
        """Write batches at the end with one call; a failure leaves the segment unchanged."""
        file = self.file()
        files = self.context.files
        position = self.size_bytes
        try:
            written = files.pwrite(file, data, position)
            if written != len(data):
                files.write_all(file, memoryview(data)[written:], position + written)
        except OSError as error:
            self._cut_off(position, error)
        self.size_bytes = position + len(data)
        for header in headers:
            self._enter(position, header)
            position += header.size

    def _cut_off(self, position: int, error: OSError) -> None:
        # Not flushed: the broker's lock is held. Bytes that come back after a power loss are not a
        # whole batch, or are overwritten; and the file is flushed before the segment is sealed
        # anyway.
        try:
            self.context.files.truncate(self.file(), position)
        except OSError as second:
            raise TornTail(self.path(LOG), second) from error
        raise StorageError(
            f"cannot append: {error.strerror}", at=self.path(LOG), hint="is the disk full?"
        ) from error

    def _enter(self, position: int, header: BatchHeader) -> None:
        """Register a batch at the end: offsets, timestamps, and an index entry if due."""
        last_offset = header.last_offset
        self.next_offset = last_offset + 1
        indexes = self._indexes
        assert indexes.offsets is not None
        assert indexes.times is not None
        assert self._max_timestamp is not None
        if header.max_timestamp > self._max_timestamp[0]:
            self._max_timestamp = (header.max_timestamp, last_offset)
        if self._first_timestamp is None:
            self._first_timestamp = header.max_timestamp
        if self._bytes_since_entry > self.index_interval_bytes:
            indexes.offsets.append(last_offset - self.base_offset, position)
            timestamp, offset = self._max_timestamp
            indexes.times.append(timestamp, offset - self.base_offset)
            self._bytes_since_entry = 0
        self._bytes_since_entry += header.size

    def _start_indexes(self) -> None:
        self.context.loaded_indexes.closed(self._indexes)
        self._indexes.offsets = OffsetIndex()
        self._indexes.times = TimeIndex()
        self._bytes_since_entry = 0
        self._first_timestamp = None
        self._max_timestamp = (NO_TIMESTAMP, self.base_offset)
        self.next_offset = self.base_offset
        self.sealed = self.flushed = False

    def add_aborted(self, aborted: AbortedRange) -> None:
        """Add an aborted transaction whose marker is in this segment, open for writing."""
        assert not self.sealed
        self.aborted().append(aborted)

    def seal(self) -> None:
        """Seal the segment: write the indexes to their files."""
        if not self.sealed:
            self._save_indexes()
            self._indexes.release()
            self.sealed = True

    def _save_indexes(self) -> None:
        indexes = self._indexes
        assert indexes.offsets is not None
        assert indexes.times is not None
        assert self._max_timestamp is not None
        timestamp, offset = self._max_timestamp
        if timestamp != NO_TIMESTAMP:
            indexes.times.append(timestamp, offset - self.base_offset)
        self._write(OFFSET_INDEX, indexes.offsets.to_bytes())
        self._write(TIME_INDEX, indexes.times.to_bytes())
        self.replace_aborted(self.aborted())

    def _write(self, kind: str, data: bytes) -> None:
        files = self.context.files
        file = files.open(self.path(kind), os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        files.write_all(file, data, 0)

    def reopen(self) -> None:
        """Open a sealed segment for writing again: its indexes are loaded and stay in memory."""
        if not self.sealed:
            return
        offsets, _ = self.offset_index(), self.time_index()
        if self.sealed:  # it was not rebuilt, which also reopens it
            _ = self.max_timestamp
            self.context.loaded_indexes.closed(self._indexes)
            start = offsets.positions[-1] if offsets.positions else 0
            self._bytes_since_entry = self.size_bytes - start
            self.sealed = self.flushed = False

    def cut(self, position: int) -> None:
        """Truncate the file at a position, permanently.

        A power loss must not undo this: once the segment is sealed, no reader would check for data
        at its end.
        """
        files = self.context.files
        files.truncate(self.file(), position)
        files.fsync(self.file())

    def write_again(self) -> None:
        """Write all bytes again, unchanged, so that the next fsync writes them to disk.

        After a failed fsync the system considers pages clean that are not on disk, and the next
        process reads them as if they were.
        """
        files, file = self.context.files, self.file()
        for position in range(0, self.size_bytes, LONG_SCAN_BYTES):
            size = min(LONG_SCAN_BYTES, self.size_bytes - position)
            files.write_all(file, files.pread(file, size, position), position)

    def truncate(self, position: int) -> None:
        """Truncate at a position and rebuild the indexes. Stays open for writing."""
        self.cut(position)
        self.size_bytes = position
        self.rebuild_indexes()
        self._aborted = [item for item in self.aborted() if item.last_offset < self.next_offset]

    def rebuild_indexes(self) -> None:
        """Rebuild the indexes from the batches in the log, and stay open for writing."""
        self._start_indexes()
        for position, header in self.headers(chunk_bytes=LONG_SCAN_BYTES):
            self._enter(position, header)

    def restart(self) -> None:
        """Clear all state about the contents; batches are registered again one by one."""
        self.size_bytes = 0
        self._start_indexes()
        self._aborted = []
        self.context.files.unlink(self.path(TRANSACTION_INDEX))

    def enter(self, header: BatchHeader) -> None:
        """Register the next batch, which is already in the file."""
        self._enter(self.size_bytes, header)
        self.size_bytes += header.size

    def files_to_flush(self) -> list[OpenFile | str]:
        """Files that must be flushed to lose nothing: open ones, and paths of others.

        Indexes only once it is sealed: those of the last segment are rebuilt after a crash.
        """
        log_file = self._file or self.path(LOG)
        if not self.sealed:
            return [log_file]
        return [log_file, *(self.path(kind) for kind in SEGMENT_FILES[1:])]

    def rename(self, suffix: str) -> list[str]:
        """Rename all files to another suffix; returns their paths."""
        renamed = []
        for kind in reversed(SEGMENT_FILES):  # the log last: it completes the step
            old = self.path(kind)
            new = os.path.join(self.folder, file_name(self.base_offset, kind) + suffix)
            try:
                self.context.files.rename(old, new)
            except FileNotFoundError:
                continue
            renamed.append(new)
        self.suffix = suffix
        return renamed

    def remove(self) -> None:
        """Remove all files; the log last, so that a crash leaves no lone index."""
        self.close()
        for kind in reversed(SEGMENT_FILES):
            self.context.files.unlink(self.path(kind))

    # --- indexes ---

    def offset_index(self) -> OffsetIndex:
        """The offset index, from memory, from its file, or rebuilt."""
        indexes = self._indexes
        indexes.recently_used = True
        if indexes.offsets is None:
            try:
                data = self.context.files.read_file(self.path(OFFSET_INDEX))
                if data is None:
                    raise StaleIndex("there is none")
                offsets = OffsetIndex.from_bytes(data, log_bytes=self.size_bytes)
                self._loaded()
                indexes.offsets = offsets
            except StaleIndex:
                self._repair_indexes()
        assert indexes.offsets is not None
        return indexes.offsets

    def time_index(self) -> TimeIndex:
        """The time index, from memory, from its file, or rebuilt."""
        indexes = self._indexes
        indexes.recently_used = True
        if indexes.times is None:
            try:
                data = self.context.files.read_file(self.path(TIME_INDEX))
                if data is None or (not data and self.size_bytes):
                    raise StaleIndex("there is none")
                times = TimeIndex.from_bytes(data)
                self._loaded()
                indexes.times = times
            except StaleIndex:
                self._repair_indexes()
        assert indexes.times is not None
        return indexes.times

    def _loaded(self) -> None:
        if self._indexes.offsets is None and self._indexes.times is None:
            self.context.loaded_indexes.opened(self._indexes)

    def _repair_indexes(self) -> None:
        """Rebuild missing or invalid indexes; on a full disk they stay in memory."""
        sealed, flushed, next_offset = self.sealed, self.flushed, self.next_offset
        self.rebuild_indexes()
        # Compaction may have left a gap at the end, which only the next segment shows.
        self.next_offset = max(self.next_offset, next_offset)
        if sealed:
            with contextlib.suppress(OSError):
                self._save_indexes()
            self.context.loaded_indexes.opened(self._indexes)
            self.sealed, self.flushed = sealed, flushed

    def index_full(self, index_bytes_max: int) -> bool:
        """Whether one of the indexes has no room for another entry."""
        indexes = self._indexes
        assert indexes.offsets is not None
        assert indexes.times is not None
        return (
            len(indexes.offsets) >= index_bytes_max // OFFSET_ENTRY_BYTES
            or len(indexes.times) >= index_bytes_max // TIME_ENTRY.size - 1
        )

    def mend(self, sizes: dict[str, int]) -> None:
        """Rebuild missing or truncated indexes, given the files of the folder.

        No client waits while a log is opened; later this would block all clients.
        """
        offsets = sizes.get(file_name(self.base_offset, OFFSET_INDEX), -1)
        times = sizes.get(file_name(self.base_offset, TIME_INDEX), -1)
        if times <= 0 or offsets < 0 or times % TIME_ENTRY.size or offsets % OFFSET_ENTRY_BYTES:
            self._repair_indexes()
            self.close()
        if file_name(self.base_offset, TRANSACTION_INDEX) not in sizes:
            self._aborted = []

    def aborted(self) -> list[AbortedRange]:
        """The aborted transactions whose markers are in this segment."""
        if self._aborted is None:
            data = self.context.files.read_file(self.path(TRANSACTION_INDEX))
            self._aborted = aborted_from_bytes(data) if data else []
        return self._aborted

    def replace_aborted(self, ranges: list[AbortedRange]) -> None:
        """Rewrite the transaction index."""
        self._aborted = ranges
        if ranges:
            self._write(TRANSACTION_INDEX, aborted_to_bytes(ranges))
        else:
            self.context.files.unlink(self.path(TRANSACTION_INDEX))

    @property
    def max_timestamp(self) -> tuple[int, int]:
        """The largest timestamp, and the last offset of its batch; -1 if there is none."""
        if self._max_timestamp is None:
            self._max_timestamp = self._peek_last_time() or self._last_time(self.time_index())
        return self._max_timestamp

    @property
    def knows_max_timestamp(self) -> bool:
        """Whether it is in memory."""
        return self._max_timestamp is not None

    def _peek_last_time(self) -> tuple[int, int] | None:
        """The last entry of the time index, without loading it; None if it is invalid.

        A lookup by time needs this for every segment, and indexes may have megabytes.
        """
        if self._indexes.times is not None:
            return None
        entry = self._peek(TIME_INDEX, TIME_ENTRY, lambda count, _: count - 1)
        if entry is None:
            return None
        timestamp, relative = entry
        near = self._peek(
            OFFSET_INDEX,
            OFFSET_ENTRY,
            lambda count, read: bisect_right(range(count), relative, key=lambda n: read(n)[0]) - 1,
        )
        offset = self.base_offset + relative
        for _, header in self.headers(near[1] if near else 0):
            if header.last_offset >= offset:
                holds = header.last_offset == offset and header.max_timestamp == timestamp
                return (timestamp, offset) if holds else None
        return None

    def _peek(
        self,
        kind: str,
        entry: struct.Struct,
        choose: Callable[[int, Callable[[int], tuple[int, int]]], int],
    ) -> tuple[int, int] | None:
        """One entry of an index file, chosen by number; None when there is none."""
        files = self.context.files
        try:
            file = files.open(self.path(kind), os.O_RDONLY)
        except FileNotFoundError:
            return None
        count, rest = divmod(files.size(file), entry.size)

        def read(number: int) -> tuple[int, int]:
            first, second = entry.unpack(files.pread(file, entry.size, number * entry.size))
            return first, second

        number = choose(count, read)
        return read(number) if number >= 0 and not rest else None

    def _last_time(self, times: TimeIndex) -> tuple[int, int]:
        if not times:
            return NO_TIMESTAMP, self.base_offset
        if self._time_holds(times, len(times) - 1):
            return times.timestamps[-1], self.base_offset + times.offsets[-1]
        self._repair_indexes()
        assert self._max_timestamp is not None
        return self._max_timestamp

    def _time_holds(self, times: TimeIndex, number: int) -> bool:
        """Whether the batch of a time index entry exists."""
        offset = self.base_offset + times.offsets[number]
        found = self.find(offset)
        return (
            found is not None
            and found[1].last_offset == offset
            and found[1].max_timestamp == times.timestamps[number]
        )

    def offset_before_time(self, timestamp_ms: int) -> int:
        """The first offset at which a record at or after a time may be."""
        times = self.time_index()
        number = times.entry_before(timestamp_ms)
        if number >= 0 and not self._time_holds(times, number):
            self._repair_indexes()
            times = self.time_index()
            number = times.entry_before(timestamp_ms)
        return self.base_offset + (times.offsets[number] if number >= 0 else 0)

    @property
    def first_timestamp(self) -> int:
        """The largest timestamp of the first batch: rolling by time is relative to it."""
        if self._first_timestamp is None:
            first = next(self.headers(), None)
            if first is None:
                return NO_TIMESTAMP
            self._first_timestamp = first[1].max_timestamp
        return self._first_timestamp

    def takes(self, last_offset: int) -> bool:
        """Whether an offset can be stored relative to the base offset."""
        return last_offset - self.base_offset <= RELATIVE_OFFSET_MAX

    # --- reading ---

    def headers(
        self, position: int = 0, *, chunk_bytes: int = SHORT_SCAN_BYTES
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers of the batches between two positions."""
        end = self.size_bytes
        files = self.context.files
        while position + HEADER_BYTES <= end:
            chunk = files.pread(self.file(), min(chunk_bytes, end - position), position)
            at = 0
            while at + HEADER_BYTES <= len(chunk):
                header = read_header(chunk, at)
                if not self._plausible(header) or position + at + header.size > end:
                    return
                yield position + at, header
                at += header.size
            if not at:
                return
            position += at

    def _plausible(self, header: BatchHeader) -> bool:
        return (
            header.magic == MAGIC
            and header.batch_length >= BATCH_LENGTH_MIN
            and header.base_offset >= self.base_offset
            and header.last_offset_delta >= 0
        )

    def find(self, offset: int) -> tuple[int, BatchHeader] | None:
        """The first batch that ends at an offset or after it."""
        start = self._entry_before_offset(offset)
        for position, header in self.headers(start):
            if header.last_offset >= offset:
                return position, header
        return None

    def _entry_before_offset(self, offset: int) -> int:
        index = self.offset_index()
        position = index.position_before(min(offset - self.base_offset, RELATIVE_OFFSET_MAX))
        if position and not self._holds(index, position):
            self._repair_indexes()
            position = self.offset_index().position_before(offset - self.base_offset)
        return position

    def _holds(self, index: OffsetIndex, position: int) -> bool:
        """Whether there is a batch at the position of an index entry."""
        first = next(self.headers(position, chunk_bytes=HEADER_BYTES), None)
        return first is not None and first[1].last_offset == self.base_offset + index.offset_at(
            position
        )

    def boundary_before(self, position: int) -> tuple[int, int]:
        """The last start of a batch up to a position, and that batch's base offset."""
        index = self.offset_index()
        start = index.batch_before(position)
        if start and not self._holds(index, start):
            self._repair_indexes()
            start = self.offset_index().batch_before(position)
        found = (0, self.base_offset)
        for at, header in self.headers(start):
            if at > position:
                break
            found = (at, header.base_offset)
            if at + header.size > position:
                break
        return found

    def read_batch(self, position: int, header: BatchHeader) -> bytes:
        """The bytes of a batch."""
        return self.context.files.pread(self.file(), header.size, position)


class TornTail(StorageError):
    """A failed append could not be truncated: the log accepts no more records until reopened."""

    def __init__(self, path: str, error: OSError) -> None:
        super().__init__(
            f"cannot remove a half-written batch: {error.strerror}",
            at=path,
            hint="restart the broker once the disk works again",
        )
