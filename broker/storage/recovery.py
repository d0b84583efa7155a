"""Opening a log: removes leftovers of a crash, truncates torn batches, rebuilds lost state.

After a clean stop only the few batches after the last index entry are scanned. After a crash every
batch from the recovery point's segment on is checked, and the log is truncated at the first that is
torn or fails its checksum. Indexes and producers are rebuilt meanwhile.
"""

import contextlib
import os
import sys
from dataclasses import dataclass, field
from itertools import pairwise

from broker.batch.codec import check_batch_at
from broker.batch.layout import LENGTH_END, BatchHeader, read_header
from broker.errors import CorruptBatch
from broker.storage.context import LogContext
from broker.storage.leader_epochs import LeaderEpochs, read_log_epochs
from broker.storage.partition_log import PartitionLog
from broker.storage.producer_state import ProducerStates
from broker.storage.replay import (
    apply_batch,
    load_producers,
    read_marker,
    remove_snapshots,
    replay,
)
from broker.storage.segment import (
    CLEANED,
    DELETED,
    LOG,
    LONG_SCAN_BYTES,
    SEGMENT_FILES,
    SWAP,
    TRANSACTION_INDEX,
    Segment,
)

TEMPORARY = ".tmp"
LEFTOVERS = (DELETED, CLEANED, TEMPORARY)


@dataclass(slots=True)
class Recovered:
    """The results of opening the logs."""

    logs: int = 0
    clean: bool = True
    segments_scanned: int = 0
    bytes_scanned: int = 0
    bytes_truncated: int = 0  # in the segments at the ends of the logs
    logs_truncated: list[str] = field(default_factory=list)
    leftovers_removed: int = 0
    stray_folders: list[str] = field(default_factory=list)
    latest_epoch: int = 0  # of the leader, in any log


def open_log(
    log: PartitionLog,
    *,
    start_offset: int,
    recovery_point: int | None,
    summary: Recovered,
    has_id: bool = True,
) -> None:
    """Load a log from its folder; a recovery point is given after a crash.

    `has_id` is whether the checkpoint belongs to this topic, and not to an older one with the same
    name. A checkpoint is never a reason to remove readable batches, except those after a hole (see
    `_is_hole`).
    """
    context = log.context
    log.segments = _load_segments(log, summary)
    log.epochs = read_log_epochs(context.files, log.folder)
    summary.logs += 1
    if not log.segments:
        log.durable_offset = start_offset
        log.opened(start_offset=start_offset, end_offset=start_offset, snapshot_offset=-1)
        return
    scan = recovery_point is not None or not _open_clean(log)
    if scan:
        is_known = recovery_point is not None and has_id
        holes_from = max(recovery_point or 0, start_offset) if is_known else None
        _recover(log, recovery_point, summary, holes_from)
    end_offset = log.segments[-1].next_offset
    if end_offset < start_offset:
        if has_id:
            # All remaining records had been deleted by users; offsets must not be assigned twice.
            _continue_at(log, start_offset)
            end_offset = start_offset
        else:
            start_offset = 0
    if recovery_point is None:
        log.durable_offset = end_offset
    start_offset = max(start_offset, log.segments[0].base_offset)
    snapshot_offset = remove_snapshots(context, log.folder, log.segments, end_offset)
    if not scan:
        log.producers = load_producers(context, log.folder, log.segments, end_offset)
    summary.latest_epoch = max(summary.latest_epoch, log.epochs.latest)
    log.epochs.cut_end(end_offset)
    log.epochs.cut_start(start_offset)
    log.opened(start_offset=start_offset, end_offset=end_offset, snapshot_offset=snapshot_offset)
    for segment in log.segments:
        segment.close_file()  # an unused log needs no descriptors


def _load_segments(log: PartitionLog, summary: Recovered) -> list[Segment]:
    context, folder = log.context, log.folder
    try:
        sizes = context.files.list_folder(folder)
    except FileNotFoundError:
        return []
    leftovers = [name for name in sizes if name.endswith(LEFTOVERS)]
    for name in leftovers:
        context.files.unlink(os.path.join(folder, name))
        del sizes[name]
    summary.leftovers_removed += len(leftovers)
    if any(name.endswith(SWAP) for name in sizes):
        _complete_swap(context, folder, sizes)
        sizes = context.files.list_folder(folder)
    lone_indexes = [name for name in sizes if name.endswith(SWAP)]
    bases = sorted(
        int(name.removesuffix(LOG))
        for name in sizes
        if name.endswith(LOG) and name.removesuffix(LOG).isdigit()
    )
    _remove_orphans(context, folder, sizes, set(bases))
    segments = [
        Segment(context, folder, base, size_bytes=sizes[f"{base:020d}{LOG}"]) for base in bases
    ]
    for segment in segments:
        segment.index_interval_bytes = log.config.index_interval_bytes
    for segment, following in pairwise(segments):
        segment.next_offset = following.base_offset
        segment.flushed = True
        segment.mend(sizes)
    _replace_lone_indexes(log, segments, lone_indexes)
    return segments


def _replace_lone_indexes(
    log: PartitionLog, segments: list[Segment], lone_indexes: list[str]
) -> None:
    """Rebuild transaction indexes of segments that have a lone index with suffix .swap.

    A power loss may keep any of several renames. Either the log was renamed and its indexes were
    not, or the log never got its suffix. This is unknown, but the batches show which transactions
    were aborted.
    """
    files, bases = log.context.files, {int(name[:20]) for name in lone_indexes}
    for segment in segments:
        if segment.base_offset in bases:
            rebuilt = replay(
                load_producers(log.context, log.folder, segments, segment.base_offset),
                segment,
                segment.base_offset,
                sys.maxsize,
            )
            segment.replace_aborted(rebuilt)
            if rebuilt:
                files.fsync(files.open(segment.path(TRANSACTION_INDEX)))
            files.fsync_directory(log.folder)
    for name in lone_indexes:
        files.unlink(os.path.join(log.folder, name))


def _remove_orphans(
    context: LogContext, folder: str, sizes: dict[str, int], bases: set[int]
) -> None:
    for name in sizes:
        stem, kind = os.path.splitext(name)
        if kind in SEGMENT_FILES and stem.isdigit() and int(stem) not in bases:
            context.files.unlink(os.path.join(folder, name))


def _complete_swap(context: LogContext, folder: str, sizes: dict[str, int]) -> None:
    """Complete a compaction whose result was ready: the result replaces the segments it covers.

    Indexes with suffix .swap are leftovers if their log does not have the suffix.
    """
    swaps = []
    for name, size in sizes.items():
        if name.endswith(LOG + SWAP):
            segment = Segment(context, folder, int(name[:20]), size_bytes=size)
            segment.suffix = SWAP
            for _, header in segment.headers(chunk_bytes=LONG_SCAN_BYTES):
                segment.next_offset = header.next_offset
            swaps.append(segment)
    for swap in swaps:
        for name, size in sizes.items():
            stem, kind = os.path.splitext(name)
            if kind != LOG or not stem.isdigit():
                continue
            # One with the same name is replaced by the renames: its indexes may already be new.
            if swap.base_offset < int(stem) < swap.next_offset:
                Segment(context, folder, int(stem), size_bytes=size).remove()
        swap.rename("")
        swap.close()


def _open_clean(log: PartitionLog) -> bool:
    """Find the end of the last segment; False if it does not consist of whole batches."""
    last = log.segments[-1]
    index = last.offset_index()
    position = index.positions[-1] if index.positions else 0
    first = True
    for at, header in last.headers(position):
        if first and position and header.last_offset != last.base_offset + index.offsets[-1]:
            return False
        first = False
        position = at + header.size
        last.next_offset = header.next_offset
    last.flushed = last.sealed
    return position == last.size_bytes


def _recover(
    log: PartitionLog,
    recovery_point: int | None,
    summary: Recovered,
    holes_from: int | None = None,
) -> None:
    """Check every batch from the recovery point's segment on, at least the last segment.

    A segment that ends at the recovery point is also checked: it may have been sealed after the
    checkpoint was written, and only its index, which may not be on disk, contains its aborted
    transactions.

    `holes_from`: from this offset on, offsets without batches mean that batches were lost.
    """
    segments = log.segments
    number = len(segments) - 1
    while number and recovery_point is not None and segments[number].base_offset >= recovery_point:
        number -= 1
    first = segments[number]
    producers = load_producers(log.context, log.folder, segments[:number], first.base_offset)
    log.producers = producers
    while number < len(segments):
        segment = segments[number]
        file_bytes = segment.size_bytes
        if len(producers):
            # The snapshot written with the segment may not be on disk.
            log.end_offset = segment.base_offset
            with contextlib.suppress(OSError):
                log.write_snapshot()
        summary.segments_scanned += 1
        summary.bytes_scanned += file_bytes
        _check_segment(segment, producers, log.epochs, file_bytes)
        if segment.size_bytes < file_bytes or _is_hole(log, number, holes_from):
            summary.bytes_truncated += file_bytes - segment.size_bytes
            summary.logs_truncated.append(str(log.topic_partition))
            _cut_after(log, number)
        elif number + 1 < len(segments):
            segment.next_offset = segments[number + 1].base_offset
            with contextlib.suppress(OSError):  # a full disk: its indexes stay in memory
                segment.seal()
        if log.context.acknowledge_durable:
            segment.write_again()
        number += 1
    end_offset = segments[-1].next_offset
    if recovery_point is not None and recovery_point > end_offset and first is not segments[0]:
        # It contains batches that are not in the log, so its other entries are useless, too.
        _recover(log, 0, summary)
        return
    log.durable_offset = min(recovery_point or 0, end_offset)


def _is_hole(log: PartitionLog, number: int, holes_from: int | None) -> bool:
    """Whether batches are missing between a segment and the next one.

    A power loss may keep a file but lose the end of the previous one, at the end of a batch or
    completely. Later batches must be removed together with the lost ones: they were not
    acknowledged, and a producer that sends the lost ones again would be considered a duplicate. Up
    to the recovery point everything was on disk, and a hole there is the result of a compaction
    (Kafka's; Millstream's keeps the last batch of a segment).
    """
    if holes_from is None or number + 1 == len(log.segments):
        return False
    end_offset = log.segments[number].next_offset
    return holes_from <= end_offset < log.segments[number + 1].base_offset


def _cut_after(log: PartitionLog, number: int) -> None:
    """Truncate the log after the valid batches of a segment."""
    last = log.segments[number]
    last.cut(last.size_bytes)
    later = log.segments[number + 1 :]
    for gone in later:
        gone.remove()
    if later:
        log.context.files.fsync_directory(log.folder)
    del log.segments[number + 1 :]


def _check_segment(
    segment: Segment, producers: ProducerStates, epochs: LeaderEpochs, file_bytes: int
) -> None:
    """Register the batches of a segment again, up to the first that is torn or invalid."""
    segment.restart()
    files = segment.context.files
    wanted = LONG_SCAN_BYTES
    while segment.size_bytes < file_bytes:
        start = segment.size_bytes
        chunk = memoryview(files.pread(segment.file(), wanted, start))
        position = _check_chunk(segment, producers, epochs, chunk)
        if position:
            wanted = LONG_SCAN_BYTES
            continue
        # No whole batch in the chunk: it is either longer than the chunk, or invalid.
        wanted = _size_at(chunk)
        if wanted <= len(chunk) or start + wanted > file_bytes:
            return


def _check_chunk(
    segment: Segment, producers: ProducerStates, epochs: LeaderEpochs, chunk: memoryview
) -> int:
    """Register the whole, valid batches at the beginning of a chunk; returns their size."""
    position = 0
    while (header := check_batch_at(chunk, position)) is not None:
        if not segment.next_offset <= header.base_offset or not segment.takes(header.last_offset):
            break
        batch = chunk[position : position + header.size]
        if header.producer_id >= 0 and not _apply(segment, producers, header, batch):
            break
        if header.leader_epoch > epochs.latest:  # the file may not be on disk
            epochs.assign(header.leader_epoch, header.base_offset)
        segment.enter(header)
        position += header.size
    return position


def _apply(
    segment: Segment, producers: ProducerStates, header: BatchHeader, batch: memoryview
) -> bool:
    marker = None
    if header.is_control and header.record_count:
        try:
            marker = read_marker(batch)
        except CorruptBatch:
            return False
    aborted = apply_batch(producers, header, marker)
    if aborted is not None:
        segment.add_aborted(aborted)
    return True


def _size_at(chunk: memoryview) -> int:
    """Size of the batch at the beginning of a chunk; 0 if unknown."""
    try:
        return LENGTH_END + read_header(chunk).batch_length
    except CorruptBatch:
        return 0


def _continue_at(log: PartitionLog, offset: int) -> None:
    """Continue the log at an offset beyond its end; retention removes the rest."""
    last = log.segments[-1]
    last.next_offset = offset
    with contextlib.suppress(OSError):  # a full disk: its indexes stay in memory
        last.seal()
    log.segments.append(Segment.create(log.context, log.folder, offset))
