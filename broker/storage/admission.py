"""Checks and changes of a batch before it is appended: timestamps, keys, compression."""

from broker.batch.codec import RecordFacts, decode_records, encode_retained, set_max_timestamp
from broker.batch.compression import CODEC_IDS
from broker.batch.layout import CODEC_MASK, BatchHeader, read_header
from broker.config import TopicConfig
from broker.errors import BrokerError, CorruptBatch, ErrorCode
from broker.model import NO_TIMESTAMP


def correct_max_timestamp(records: memoryview, header: BatchHeader, facts: RecordFacts) -> None:
    """Correct the header's maximum timestamp, as Kafka does: indexes and retention use it."""
    header.max_timestamp = facts.last_timestamp_ms
    set_max_timestamp(records, 0, facts.last_timestamp_ms)


def check_timestamps(
    records: memoryview, facts: RecordFacts, config: TopicConfig, now_ms: int
) -> None:
    """Refuse records too far from the broker's time: INVALID_TIMESTAMP."""
    latest_ms = facts.last_timestamp_ms
    if latest_ms - now_ms > config.message_timestamp_after_max_ms:
        raise BrokerError(
            ErrorCode.INVALID_TIMESTAMP,
            f"timestamp {latest_ms} is {latest_ms - now_ms} ms ahead",
            hint="see message.timestamp.after.max.ms",
        )
    oldest_ms = now_ms - config.message_timestamp_before_max_ms
    if facts.first_timestamp_ms >= oldest_ms:
        return
    for record in decode_records(records):
        if NO_TIMESTAMP != record.timestamp_ms < oldest_ms:
            raise BrokerError(
                ErrorCode.INVALID_TIMESTAMP,
                f"timestamp {record.timestamp_ms} is {now_ms - record.timestamp_ms} ms ago",
                hint="see message.timestamp.before.max.ms",
            )


def check_keys(facts: RecordFacts) -> None:
    """Refuse records without a key, which compaction could never remove: INVALID_RECORD."""
    if facts.has_null_keys:
        raise BrokerError(ErrorCode.INVALID_RECORD, "a record for a compacted topic has no key")


def recompress(records: memoryview, header: BatchHeader, config: TopicConfig) -> memoryview | None:
    """The batch with the topic's compression; None if it already has that."""
    wanted = config.compression_type
    if wanted == "producer":
        return None
    codec = CODEC_IDS["none" if wanted == "uncompressed" else wanted]
    if header.codec == codec:
        return None
    try:
        kept = decode_records(records)
    except CorruptBatch as error:
        raise BrokerError(error.code, error.message) from error
    target = read_header(records)
    target.attributes = target.attributes & ~CODEC_MASK | codec
    return memoryview(bytearray(encode_retained(target, kept, level=_level(wanted, config))))


def _level(codec: str, config: TopicConfig) -> int | None:
    if codec == "gzip":
        level = config.compression_gzip_level
        return None if level < 0 else level
    if codec == "lz4":
        return config.compression_lz4_level
    return config.compression_zstd_level if codec == "zstd" else None
