"""SourcePipeline: transforms and converts the records of a source task for the producer.

    transforms -> header converter -> key converter -> value converter

Operations are numbered in this order. A record without errors goes through them in one function;
when one of them raises, the record continues from there with retries. Records of one topic without
headers and transforms are converted by columns, if their converters support it; on any error they
are converted one by one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import cast

from broker.client.api import Headers
from broker.client.bulk import ManyRow
from connect.errors import DataError
from connect.records import Record, SourceRecord
from connect.runtime.conversion import (
    Converters,
    Operation,
    Transform,
    bulk_converters,
    recover_record,
    transform_operations,
)
from connect.runtime.error_handling import ErrorHandler, Stage

# The topic, and the arguments of the producer.
Row = tuple[str, ManyRow]
NO_TIMESTAMP = -1


@dataclass(slots=True)
class _Progress:
    """The results of the operations so far."""

    record: SourceRecord
    headers: Headers
    key: bytes | None
    value: bytes | None = None


class SourcePipeline:
    """Only the task's thread calls it."""

    def __init__(
        self, transforms: Sequence[Transform], converters: Converters, handler: ErrorHandler
    ) -> None:
        self._transforms = transforms
        self._applied = [transform.apply for transform in transforms]
        self._converters = converters
        self._key = converters.key.from_connect_data
        self._value = converters.value.from_connect_data
        self._header = converters.header.from_connect_header
        self._handler = handler
        self._by_columns = None if transforms else bulk_converters(converters)

    def add_rows(self, records: Sequence[SourceRecord], rows: list[Row | None]) -> None:
        """Add a row for each record; an exception is about the record after the added ones."""
        made = self._rows_by_columns(records)
        if made is not None:
            rows += made
            return
        row, add = self.row, rows.append
        for record in records:
            add(row(record))

    def _rows_by_columns(self, records: Sequence[SourceRecord]) -> Sequence[Row] | None:
        """All rows, converted by columns; None if they must be converted one by one."""
        if self._by_columns is None:
            return None
        key, value = self._by_columns
        columns = zip(*records, strict=True)
        _, _, topics, partitions, key_schemas, keys, schemas, values, stamps_ms, headers = columns
        topic, count = topics[0], len(topics)
        if any(headers) or topics.count(topic) != count or not _are_timestamps(stamps_ms):
            return None
        try:
            key_bytes = key.from_connect_many(topic, key_schemas, keys)
            value_bytes = value.from_connect_many(topic, schemas, values)
            no_headers = repeat((), count)
            parts = zip(key_bytes, value_bytes, no_headers, stamps_ms, partitions, strict=True)
            return list(zip(repeat(topic, count), parts, strict=True))
        except Exception:
            # Converting one by one finds the failed record, and handles its error; also after a
            # converter that returned too few values or too many.
            return None

    def row(self, polled: SourceRecord) -> Row | None:
        """The row of a record; None if it is dropped. Raises errors that are not tolerated."""
        record, at = polled, 0
        headers: Headers = ()
        key: bytes | None = None
        try:
            for apply in self._applied:
                changed = apply(record)
                if changed is None:
                    return None
                record = cast(SourceRecord, changed)
                at += 1
            topic, given = record.topic, record.headers
            if given:
                headers = self._convert_headers(record)
            at += 1
            key = self._key(topic, given, record.key_schema, record.key)
            at += 1
            value = self._value(topic, given, record.value_schema, record.value)
        except Exception as error:
            progress = _Progress(record, headers, key)
            if not recover_record(self._handler, polled, self._operations(progress)[at:], error):
                return None
            record = progress.record
            topic, headers = record.topic, progress.headers
            key, value = progress.key, progress.value
        timestamp_ms = record.timestamp_ms
        if timestamp_ms is not None and timestamp_ms < 0:
            _check_timestamp(record)
            timestamp_ms = None
        return topic, (key, value, headers, timestamp_ms, record.partition)

    def _convert_headers(self, record: SourceRecord) -> list[tuple[str, bytes | None]]:
        convert, topic = self._header, record.topic
        return [
            (name, convert(topic, name, schema, value)) for name, schema, value in record.headers
        ]

    def _operations(self, progress: _Progress) -> list[Operation]:
        """All operations on a record, which store their results in its progress."""

        def change(apply: Callable[[Record], Record | None]) -> bool:
            changed = apply(progress.record)
            if changed is None:
                return False
            progress.record = cast(SourceRecord, changed)
            return True

        def convert_headers() -> bool:
            progress.headers = self._convert_headers(progress.record)
            return True

        def convert_key() -> bool:
            record = progress.record
            progress.key = self._key(record.topic, record.headers, record.key_schema, record.key)
            return True

        def convert_value() -> bool:
            record = progress.record
            schema, value = record.value_schema, record.value
            progress.value = self._value(record.topic, record.headers, schema, value)
            return True

        converters = self._converters
        return [
            *transform_operations(self._transforms, change),
            (Stage.HEADER_CONVERTER, converters.header_name, convert_headers),
            (Stage.KEY_CONVERTER, converters.key_name, convert_key),
            (Stage.VALUE_CONVERTER, converters.value_name, convert_value),
        ]


def _are_timestamps(stamps_ms: Sequence[int | None]) -> bool:
    """Whether all records have a timestamp, or none has one."""
    if None in stamps_ms:
        return stamps_ms.count(None) == len(stamps_ms)
    return min(cast("Sequence[int]", stamps_ms)) >= 0


def _check_timestamp(record: SourceRecord) -> None:
    """-1 means no timestamp; lower values are invalid."""
    if record.timestamp_ms != NO_TIMESTAMP:
        raise DataError(
            f"Invalid record timestamp {record.timestamp_ms}", at=f'topic "{record.topic}"'
        )
