"""Timestamp extractors."""

import logging
from typing import Protocol

from streams.errors import InvalidTimestamp

logger = logging.getLogger(__name__)


class TimestampExtractor(Protocol):
    """Returns the timestamp of a record, for example its own or one inside its value.

    A negative timestamp drops the record.
    """

    def __call__(
        self, key: object, value: object, timestamp_ms: int, partition_time_ms: int
    ) -> int:
        """The timestamp; `partition_time_ms` is the largest one of the partition so far, or -1."""
        ...


def fail_on_invalid_timestamp(
    key: object, value: object, timestamp_ms: int, partition_time_ms: int
) -> int:
    """The record's own timestamp; a negative one stops the application."""
    if timestamp_ms < 0:
        raise InvalidTimestamp(
            f"the record has timestamp {timestamp_ms}",
            hint="give the source a timestamp_extractor that skips such records or returns "
            "another timestamp",
        )
    return timestamp_ms


def log_and_skip_on_invalid_timestamp(
    key: object, value: object, timestamp_ms: int, partition_time_ms: int
) -> int:
    """The record's own timestamp; records with a negative one are dropped."""
    if timestamp_ms < 0:
        logger.warning("a record with timestamp %d is skipped", timestamp_ms)
    return timestamp_ms


def use_partition_time_on_invalid_timestamp(
    key: object, value: object, timestamp_ms: int, partition_time_ms: int
) -> int:
    """The record's own timestamp, or the largest one of its partition so far."""
    if timestamp_ms >= 0:
        return timestamp_ms
    if partition_time_ms < 0:
        raise InvalidTimestamp(
            f"the first record of its partition has timestamp {timestamp_ms}",
            hint="there is no earlier record whose timestamp could be used",
        )
    return partition_time_ms
