"""Producers as recorded in the log: a snapshot, and the batches after it."""

import contextlib
import os
from collections.abc import Sequence

from broker.batch.codec import decode_records, read_control
from broker.batch.layout import BatchHeader
from broker.errors import CorruptBatch, StorageError
from broker.storage.context import LogContext
from broker.storage.index import AbortedRange
from broker.storage.producer_state import Marker, ProducerStates
from broker.storage.segment import LONG_SCAN_BYTES, SNAPSHOT, Segment, file_name


def read_marker(batch: bytes | memoryview) -> Marker:
    """The content of a control batch."""
    records = decode_records(batch)
    if len(records) != 1:
        raise CorruptBatch(f"a control batch has {len(records)} records, not one")
    return Marker(*read_control(records[0]))


def apply_batch(
    producers: ProducerStates, header: BatchHeader, marker: Marker | None
) -> AbortedRange | None:
    """Apply a batch to the producers; returns the transaction if it was aborted."""
    if marker is not None:
        return producers.ended(header, marker)
    if not header.is_control:
        producers.wrote(header)
    return None


def replay(
    producers: ProducerStates, segment: Segment, first: int, last: int
) -> list[AbortedRange]:
    """Apply the batches of a segment between two offsets again."""
    aborted = []
    found = segment.find(first)
    start = segment.size_bytes if found is None else found[0]
    for position, header in segment.headers(start, chunk_bytes=LONG_SCAN_BYTES):
        if header.base_offset >= last:
            break
        if header.producer_id < 0:
            continue
        marker = None
        if header.is_control and header.record_count:
            with contextlib.suppress(CorruptBatch):  # damaged since: treated as missing
                marker = read_marker(segment.read_batch(position, header))
        done = apply_batch(producers, header, marker)
        if done is not None:
            aborted.append(done)
    return aborted


def load_producers(
    context: LogContext, folder: str, segments: Sequence[Segment], offset: int
) -> ProducerStates:
    """The producers as of an offset: the nearest snapshot, and later batches."""
    producers, snapshot_offset = _nearest_snapshot(context, folder, offset)
    for segment in segments:
        if segment.next_offset > snapshot_offset and segment.base_offset < offset:
            replay(producers, segment, snapshot_offset, offset)
    return producers


def _nearest_snapshot(context: LogContext, folder: str, offset: int) -> tuple[ProducerStates, int]:
    for found in sorted(snapshot_offsets(context, folder), reverse=True):
        if found > offset:
            continue
        data = context.files.read_file(os.path.join(folder, file_name(found, SNAPSHOT)))
        try:
            return ProducerStates.from_snapshot(data or b""), found
        except StorageError:  # damaged: an earlier one, or the log itself, has the same
            continue
    return ProducerStates(), 0


def snapshot_offsets(context: LogContext, folder: str) -> list[int]:
    """The offsets of the snapshots in a folder."""
    return [
        int(name.removesuffix(SNAPSHOT))
        for name in context.files.list_folder(folder)
        if name.endswith(SNAPSHOT) and name.removesuffix(SNAPSHOT).isdigit()
    ]


def remove_snapshots(
    context: LogContext, folder: str, segments: Sequence[Segment], end_offset: int
) -> int:
    """Remove snapshots beyond the end, and those without a segment except the last.

    Returns the offset of the last remaining one; -1: none.
    """
    if not segments:
        return -1
    bases = {segment.base_offset for segment in segments}
    offsets = snapshot_offsets(context, folder)
    last = max((offset for offset in offsets if offset <= end_offset), default=-1)
    for offset in offsets:
        if offset > end_offset or (offset != last and offset not in bases):
            context.files.unlink(os.path.join(folder, file_name(offset, SNAPSHOT)))
    return last
