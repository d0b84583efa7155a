"""Rolling: the conditions for starting a new segment."""

from broker.batch.layout import BatchHeader
from broker.config import TopicConfig
from broker.storage.segment import POSITION_MAX, Segment


def must_roll(
    active: Segment, config: TopicConfig, headers: list[BatchHeader], size_bytes: int, now_ms: int
) -> bool:
    """Whether batches must go into a new segment: the last one is full or old."""
    if active.size_bytes + size_bytes > min(config.segment_bytes, POSITION_MAX):
        return True
    if not active.takes(headers[-1].last_offset):
        return True
    first_ms = active.first_timestamp
    latest_ms = headers[0].max_timestamp
    if len(headers) > 1:
        latest_ms = max(header.max_timestamp for header in headers)
    age_ms = latest_ms - first_ms if first_ms >= 0 else now_ms - active.created_ms
    if age_ms > _age_ms_max(config) - active.jitter_ms:
        return True
    return active.index_full(config.segment_index_bytes)


def _age_ms_max(config: TopicConfig) -> int:
    """The maximum age of the active segment; it is never compacted, so this limits it, too."""
    if config.compacts:
        return min(config.segment_ms, config.max_compaction_lag_ms)
    return config.segment_ms
