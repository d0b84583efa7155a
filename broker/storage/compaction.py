"""Compaction: only the last record of each key is retained.

    0 .. clean .. first dirty offset .. dirty .. end .. first uncleanable offset .. end of the log

A round reads the dirty part into an OffsetMap, then rewrites everything before the map's end, in
groups of adjacent segments, without

    - records that have a later one in the map, and records without a key
    - records of aborted transactions, and markers whose transactions have no batch left
    - tombstones and such markers, once their batch's delete horizon has passed; the first round
      that reads them sets the horizon, delete.retention.ms ahead

Offsets, producers and sequences are unchanged. A batch whose records are all retained is copied
unchanged. A producer's last batch is retained, empty if necessary, because of its sequence; so is
the last batch of a group, so that a segment contains its own end offset.

The work is done without the broker's lock, on segments that are no longer written to; the lock is
acquired to begin a round and to replace the old segments with each new one.
"""

import errno
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from broker.batch.codec import (
    BatchColumns,
    check_batch_at,
    decode_columns,
    decode_records,
    encode_retained,
)
from broker.batch.layout import HEADER_BYTES, LENGTH_END, BatchHeader, read_header
from broker.config import TopicConfig
from broker.errors import CorruptBatch
from broker.files import NotOpened, OpenFiles
from broker.model import OpenFile
from broker.storage.cleaned_transactions import CleanedTransactions
from broker.storage.context import LogContext
from broker.storage.index import RELATIVE_OFFSET_MAX, AbortedRange
from broker.storage.offset_map import OffsetMap
from broker.storage.partition_log import PartitionLog
from broker.storage.replay import read_marker
from broker.storage.segment import CLEANED, LOG, POSITION_MAX, SWAP, Segment

logger = logging.getLogger(__name__)

READ_BYTES = 1 << 20
WRITE_BYTES = 1 << 20
FILES_OPEN_MAX = 16
GROUP_SEGMENTS_MAX = 200  # their files are renamed under the lock

Throttle = Callable[[int], None]


class Overtaken(Exception):
    """Retention or deletion removed the segments of this round: try again later."""


@dataclass(frozen=True, slots=True)
class LastWrite:
    """The last batch of a producer: its last offset, or None if it was a marker."""

    last_offset: int | None
    epoch: int


@dataclass(frozen=True, slots=True)
class Round:
    """The input of a round of compaction; collected under the lock."""

    log: PartitionLog
    context: LogContext
    config: TopicConfig
    segments: list[Segment]
    first_dirty_offset: int
    first_uncleanable_offset: int
    aborted: list[AbortedRange]
    last_writes: dict[int, LastWrite]
    now_ms: int
    is_current: Callable[[], bool]


def begin_round(
    log: PartitionLog,
    *,
    first_dirty_offset: int,
    first_uncleanable_offset: int,
    now_ms: int,
    is_current: Callable[[], bool] = lambda: True,
) -> Round:
    """Collect the input of a round; called under the lock.

    `is_current` returns, under the lock, whether the partition still has this log.
    """
    log.aborted_transactions(log.segments[0].base_offset, log.end_offset)  # rebuilds stale indexes
    return Round(
        log=log,
        # Separate descriptors: those of the log are managed under the lock.
        context=replace(
            log.context, open_files=OpenFiles(FILES_OPEN_MAX), loaded_indexes=OpenFiles(1)
        ),
        config=log.config,
        segments=[
            segment
            for segment in log.segments[:-1]
            if segment.base_offset < first_uncleanable_offset
        ],
        first_dirty_offset=first_dirty_offset,
        first_uncleanable_offset=first_uncleanable_offset,
        aborted=[item for segment in log.segments for item in segment.aborted()],
        last_writes={
            entry.producer_id: LastWrite(entry.last_offset if entry.batches else None, entry.epoch)
            for entry in log.producers.entries()
        },
        now_ms=now_ms,
        is_current=is_current,
    )


def compact(
    task: Round,
    lock: AbstractContextManager[object],
    *,
    map_bytes_max: int,
    throttle: Throttle = lambda size: None,
) -> int:
    """Run a round; returns the offset up to which the log is clean. Called without the lock.

    Raises Overtaken if the log changed meanwhile, CorruptBatch if it is damaged, StorageError or
    OSError if a disk operation fails.
    """
    _make_durable(task, lock)
    offset_map = build_map(task, map_bytes_max, throttle)
    end_offset = offset_map.latest_offset + 1
    transactions = CleanedTransactions(task.aborted, task.segments[0].base_offset)
    for group in _groups(task, end_offset):
        cleaning = _GroupCleaning(task, group, offset_map, transactions)
        try:
            if cleaning.run(throttle):
                _replace(task, lock, group, cleaning.cleaned)
        finally:
            if cleaning.cleaned.suffix:
                cleaning.cleaned.remove()
    return end_offset


def _make_durable(task: Round, lock: AbstractContextManager[object]) -> None:
    """Flush the old segments: an older record is removed because of a newer one in them."""
    for segment in task.segments:
        if not segment.flushed:
            file = _open(task, segment)
            try:
                task.context.files.fsync(file)
            except OSError as error:
                # The error is reported once: a later fsync that succeeds would prove nothing.
                with lock:
                    raise task.log.fail(error) from error


def _open(task: Round, segment: Segment) -> OpenFile:
    try:
        return task.context.files.open(segment.path(LOG), os.O_RDWR)
    except FileNotFoundError:
        raise Overtaken(segment.path(LOG)) from None


def build_map(task: Round, bytes_max: int, throttle: Throttle) -> OffsetMap:
    """Read the dirty part, as far as memory allows."""
    offset_map = OffsetMap(bytes_max)
    offset_map.latest_offset = task.first_dirty_offset - 1
    transactions = CleanedTransactions(task.aborted, task.first_dirty_offset)
    for segment in task.segments:
        if segment.next_offset <= task.first_dirty_offset:
            continue
        for header, batch in read_batches(task, segment):
            if header.last_offset < task.first_dirty_offset:
                continue
            if header.base_offset >= task.first_uncleanable_offset:
                return offset_map
            throttle(header.size)
            if not _enter_keys(offset_map, transactions, header, batch):
                return offset_map
            offset_map.latest_offset = header.last_offset
    return offset_map


def _enter_keys(
    offset_map: OffsetMap, transactions: CleanedTransactions, header: BatchHeader, batch: memoryview
) -> bool:
    """Add the keys of a batch; False if there is no room."""
    if header.is_control:
        marker = read_marker(batch) if header.record_count else None
        transactions.end(header, marker)
        return True
    if transactions.is_aborted(header) or not header.record_count:
        return True
    columns = _readable_columns(batch)
    if columns is None:
        return True
    if not offset_map.has_room(len(columns)):
        return False
    offset_map.put(_keys(columns), columns.offsets)
    return True


def _readable_columns(batch: memoryview) -> BatchColumns | None:
    """The records of a batch; None if they cannot be read although the header is valid.

    Earlier releases accepted such batches. They are retained unchanged, and the log is compacted
    around them: readers get an error with the offset to continue from.
    """
    try:
        return decode_columns(batch)
    except CorruptBatch:
        return None


def _keys(columns: BatchColumns) -> list[bytes | None]:
    data = columns.buffer
    spans = zip(columns.key_starts, columns.key_ends, strict=True)
    return [None if start < 0 else data[start:end] for start, end in spans]


def read_batches(task: Round, segment: Segment) -> Iterator[tuple[BatchHeader, memoryview]]:
    """Whole batches of a segment; CorruptBatch if one fails its checks."""
    files = task.context.files
    file = _open(task, segment)
    position = 0
    while position < segment.size_bytes:
        chunk = memoryview(files.pread(file, READ_BYTES, position))
        if len(chunk) >= HEADER_BYTES and _size(chunk) > len(chunk):
            chunk = memoryview(files.pread(file, _size(chunk), position))
        at = 0
        while at + HEADER_BYTES <= len(chunk) and at + _size(chunk[at:]) <= len(chunk):
            header = check_batch_at(chunk, at)
            if header is None:
                break
            yield header, chunk[at : at + header.size]
            at += header.size
        if not at:
            raise CorruptBatch(f"the batch at byte {position} of {segment.path(LOG)} is damaged")
        position += at


def _size(chunk: memoryview) -> int:
    return max(LENGTH_END + read_header(chunk).batch_length, HEADER_BYTES)


def _groups(task: Round, end_offset: int) -> Iterator[list[Segment]]:
    """Groups of adjacent segments that fit into one, of those that begin before an offset."""
    group: list[Segment] = []
    size_bytes = 0
    size_max = min(task.config.segment_bytes, POSITION_MAX)
    for segment in task.segments:
        if segment.base_offset >= end_offset:
            break
        fits = not group or (
            len(group) < GROUP_SEGMENTS_MAX
            and size_bytes + segment.size_bytes <= size_max
            and segment.next_offset - group[0].base_offset <= RELATIVE_OFFSET_MAX
        )
        if not fits:
            yield group
            group, size_bytes = [], 0
        group.append(segment)
        size_bytes += segment.size_bytes
    if group:
        yield group


def _replace(
    task: Round,
    lock: AbstractContextManager[object],
    group: list[Segment],
    cleaned: Segment,
) -> None:
    """Replace a group with a new segment."""
    _make_ready(task, cleaned)
    with lock:
        log = task.log
        still_there = set(map(id, log.segments[:-1]))
        if not task.is_current() or not all(id(segment) in still_there for segment in group):
            raise Overtaken(cleaned.path(LOG))
        cleaned.context = log.context
        log.replace_segments(group, [cleaned])


def _make_ready(task: Round, cleaned: Segment) -> None:
    """Flush a new segment, under the name with which a restart completes the step."""
    files = task.context.files
    for file in cleaned.files_to_flush():
        if not isinstance(file, str):
            files.fsync(file)
        elif files.modified_ns(file) is not None:
            files.fsync(files.open(file))
    cleaned.close()
    cleaned.rename(SWAP)
    try:
        files.fsync_directory(cleaned.folder)
    except NotOpened as error:
        if error.errno == errno.ENOENT:
            raise Overtaken(cleaned.folder) from None
        raise


class _GroupCleaning:
    """Writes one new segment from a group of old ones."""

    def __init__(
        self,
        task: Round,
        group: list[Segment],
        offset_map: OffsetMap,
        transactions: CleanedTransactions,
    ) -> None:
        self._task = task
        self._group = group
        self._map = offset_map
        self._transactions = transactions
        self._out: list[memoryview | bytes] = []
        self._out_headers: list[BatchHeader] = []
        self._out_bytes = 0
        first = group[0]
        try:
            self.cleaned = Segment.create(
                task.context, first.folder, first.base_offset, suffix=CLEANED
            )
        except FileNotFoundError:
            raise Overtaken(first.folder) from None
        self.cleaned.index_interval_bytes = task.config.index_interval_bytes
        self.cleaned.created_ms = group[-1].created_ms

    def run(self, throttle: Throttle) -> bool:
        """Write the segment; whether it differs from the old ones."""
        changed = len(self._group) > 1
        last = self._group[-1]
        for segment in self._group:
            read_bytes = 0
            for header, batch in read_batches(self._task, segment):
                throttle(header.size)
                read_bytes += header.size
                is_last = segment is last and read_bytes == segment.size_bytes
                kept = self._kept(header, batch, keep_empty=is_last)
                changed = changed or kept is not batch
                if kept is not None:
                    self._write(kept)
        self._flush()
        self.cleaned.seal()
        return changed

    def _write(self, batch: memoryview | bytes) -> None:
        self._out.append(batch)
        self._out_headers.append(read_header(batch))
        self._out_bytes += len(batch)
        if self._out_bytes >= WRITE_BYTES:
            self._flush()

    def _flush(self) -> None:
        if self._out:
            self.cleaned.append(b"".join(self._out), self._out_headers)
        self._out, self._out_headers, self._out_bytes = [], [], 0

    def _kept(
        self, header: BatchHeader, batch: memoryview, *, keep_empty: bool
    ) -> memoryview | bytes | None:
        """The retained part of a batch: itself, a smaller one, or None."""
        keep_empty = keep_empty or self._is_last_of_producer(header)
        if header.is_control:
            kept = self._kept_marker(header, batch)
        elif self._transactions.is_aborted(header) or not header.record_count:
            kept = None
        else:
            kept = self._kept_records(header, batch)
        if kept is None and keep_empty:
            return batch if not header.record_count else encode_retained(header, [])
        return kept

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._task.last_writes.get(header.producer_id) if header.has_producer else None
        if last is None:
            return False
        if last.last_offset is None:
            return header.is_control and header.producer_epoch == last.epoch
        return header.last_offset == last.last_offset

    def _kept_marker(self, header: BatchHeader, batch: memoryview) -> memoryview | bytes | None:
        marker = read_marker(batch) if header.record_count else None
        may_go, aborted = self._transactions.end(header, marker)
        if aborted is not None:
            self.cleaned.add_aborted(aborted)
        if marker is None:
            return None
        if not may_go:
            return batch
        if header.delete_horizon_ms is None:
            return encode_retained(
                header, decode_records(batch), delete_horizon_ms=self._new_horizon_ms()
            )
        return None if header.delete_horizon_ms <= self._task.now_ms else batch

    def _kept_records(self, header: BatchHeader, batch: memoryview) -> memoryview | bytes | None:
        columns = _readable_columns(batch)
        if columns is None:
            logger.warning(
                "%s: the batch at offset %d cannot be read and is kept as it is",
                self._task.log.topic_partition,
                header.base_offset,
            )
            return batch
        rows, has_tombstones = self._kept_rows(header, columns)
        if not rows:
            return None
        needs_horizon = has_tombstones and header.delete_horizon_ms is None
        if len(rows) == header.record_count and not needs_horizon:
            return batch
        records = decode_records(batch)
        return encode_retained(
            header,
            [records[row] for row in rows],
            delete_horizon_ms=self._new_horizon_ms() if needs_horizon else None,
        )

    def _new_horizon_ms(self) -> int:
        return self._task.now_ms + self._task.config.delete_retention_ms

    def _kept_rows(self, header: BatchHeader, columns: BatchColumns) -> tuple[list[int], bool]:
        """The records of a batch to retain, by number, and whether they include a tombstone."""
        offsets, values, latest = columns.offsets, columns.value_starts, self._map.latest_offset
        lasts = self._map.last_offsets(_keys(columns))
        rows = [
            row
            for row, (offset, last) in enumerate(zip(offsets, lasts, strict=True))
            if offset >= last or offset > latest
        ]
        tombstones = {row for row in rows if values[row] < 0}
        horizon_ms = header.delete_horizon_ms
        if tombstones and horizon_ms is not None and horizon_ms <= self._task.now_ms:
            tombstones = {row for row in tombstones if offsets[row] > latest}
            rows = [row for row in rows if values[row] >= 0 or row in tombstones]
        return rows, bool(tombstones)
