"""Finding things in the segments of a log: by timestamp, and aborted transactions by offset."""

from collections.abc import Iterable

from broker.batch.codec import decode_records
from broker.batch.layout import BatchHeader
from broker.errors import CorruptBatch
from broker.model import NO_TIMESTAMP, AbortedTransaction
from broker.storage.index import AbortedRange
from broker.storage.segment import Segment

Found = tuple[int, int]  # offset and timestamp of a record


def offset_for_timestamp(
    segments: Iterable[Segment], timestamp_ms: int, *, start_offset: int
) -> Found | None:
    """The first record at or after a time, from the start offset on."""
    for segment in segments:
        if segment.max_timestamp[0] < timestamp_ms:
            continue
        found = segment.find(max(segment.offset_before_time(timestamp_ms), start_offset))
        if found is None:
            continue
        for position, header in segment.headers(found[0]):
            if header.max_timestamp < timestamp_ms:
                continue
            record = _first_record(segment, position, header, timestamp_ms, start_offset)
            if record is not None:
                return record
    return None


def max_timestamp(segments: Iterable[Segment], *, start_offset: int) -> Found | None:
    """The first record with the largest timestamp."""
    latest: tuple[int, int, Segment] | None = None
    for segment in segments:
        timestamp, offset = segment.max_timestamp
        if timestamp != NO_TIMESTAMP and (latest is None or timestamp > latest[0]):
            latest = (timestamp, offset, segment)
    if latest is None:
        return None
    timestamp, offset, segment = latest
    found = segment.find(offset)
    if found is None:
        return None
    return _first_record(segment, *found, timestamp, start_offset)


def _first_record(
    segment: Segment, position: int, header: BatchHeader, timestamp_ms: int, start_offset: int
) -> Found | None:
    if header.record_count == 0 or header.last_offset < start_offset:
        return None
    try:
        records = decode_records(segment.read_batch(position, header))
    except CorruptBatch:
        # From its header: a reader that begins there gets an error, and can skip the batch.
        return max(header.base_offset, start_offset), header.max_timestamp
    for record in records:
        if record.timestamp_ms >= timestamp_ms and record.offset >= start_offset:
            return record.offset, record.timestamp_ms
    return None


def aborted_transactions(
    ranges: Iterable[list[AbortedRange]], first: int, last: int
) -> list[AbortedTransaction]:
    """Aborted transactions that overlap the offsets from first up to last, exclusive.

    Reads the transaction indexes from the segment with the first offset on; stops where the last
    stable offset shows that no later transaction reaches back.
    """
    found: list[AbortedTransaction] = []
    for segment_ranges in ranges:
        for item in segment_ranges:
            if item.last_offset >= first and item.first_offset < last:
                found.append(AbortedTransaction(item.producer_id, item.first_offset))
            if item.last_stable_offset >= last:
                return found
    return found
