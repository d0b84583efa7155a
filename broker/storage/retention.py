"""Retention: the segments of a log that may be removed: by age, size, or start offset.

Segments are removed as a whole, oldest first, never beyond the high watermark. If all of them may
be removed, the last one is rolled first, so that the end offset is kept.
"""

from collections.abc import Callable, Iterator
from enum import Enum
from itertools import islice

from broker.model import NO_TIMESTAMP
from broker.storage.partition_log import DELETED_AT_ONCE_MAX, PartitionLog
from broker.storage.segment import Segment


class RetentionStep(Enum):
    """The next action after a step of retention."""

    DONE = "done"
    MORE = "more"
    FLUSH = "flush"  # of the log, without the lock; then continue
    CHECKPOINT = "checkpoint"  # of all logs, without the lock; then continue


def apply_retention(log: PartitionLog, now_ms: int) -> RetentionStep:
    """Remove segments of a log that are due, only some of them if they are many.

    Called under the broker's lock, repeatedly until it is done.
    """
    gone = expired_segments(log, now_ms)
    if not gone:
        return RetentionStep.DONE
    if len(gone) == len(log.segments):
        log.roll()
    # A power loss may undo part of the removal. Before the recovery point that is on disk this does
    # no harm; after it the log would end where the first segment is missing.
    safe = _ending_before(log, gone, log.checkpointed_offset)
    if safe:
        return RetentionStep.MORE if log.delete_segments(safe) else RetentionStep.FLUSH
    return (
        RetentionStep.CHECKPOINT
        if _ending_before(log, gone, log.recovery_point)
        else RetentionStep.FLUSH
    )


def _ending_before(log: PartitionLog, gone: list[Segment], offset: int) -> list[Segment]:
    """The first segments of a log that end at an offset or before it."""
    following = log.segments[1 : len(gone) + 1]
    count = sum(segment.base_offset <= offset for segment in following)
    return gone[:count]


def expired_segments(log: PartitionLog, now_ms: int) -> list[Segment]:
    """The segments that may be removed, oldest first; only some of them if they are many."""
    if not log.segments:
        return []
    rules = [_before_start(log)]
    if log.config.deletes:
        rules += (_too_old(log, now_ms), _too_much(log))
    return log.segments[: max(_count_due(log, rule) for rule in rules)]


Rule = Callable[[Segment, int], bool]


def _count_due(log: PartitionLog, rule: Rule) -> int:
    count = 0
    # Not of all segments at once: reading the largest timestamp of each is expensive.
    for segment, end in islice(_removable(log), DELETED_AT_ONCE_MAX):
        if not rule(segment, end):
            break
        count += 1
    return count


def _removable(log: PartitionLog) -> Iterator[tuple[Segment, int]]:
    """Segments below the high watermark, with their end offsets."""
    segments = log.segments
    ends = [segment.base_offset for segment in segments[1:]] + [log.end_offset]
    for segment, end in zip(segments, ends, strict=True):
        last_and_empty = segment is segments[-1] and not segment.size_bytes
        if end > log.high_watermark or last_and_empty:
            return
        yield segment, end


def _before_start(log: PartitionLog) -> Rule:
    last = log.segments[-1]
    return lambda segment, end: end <= log.start_offset and segment is not last


def _too_old(log: PartitionLog, now_ms: int) -> Rule:
    retention_ms = log.config.retention_ms
    if retention_ms < 0:
        return lambda segment, end: False
    return lambda segment, end: now_ms - largest_timestamp(segment) > retention_ms


def _too_much(log: PartitionLog) -> Rule:
    spare_bytes = log.size_bytes - log.config.retention_bytes
    if log.config.retention_bytes < 0:
        return lambda segment, end: False

    def rule(segment: Segment, end: int) -> bool:
        nonlocal spare_bytes
        spare_bytes -= segment.size_bytes
        return spare_bytes >= 0

    return rule


def largest_timestamp(segment: Segment) -> int:
    """The largest timestamp of a segment, or its creation time if its records have none."""
    timestamp = segment.max_timestamp[0]
    return segment.created_ms if timestamp == NO_TIMESTAMP else timestamp
