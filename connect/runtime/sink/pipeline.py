"""SinkPipeline: converts and transforms consumed records for a sink task.

    key converter -> value converter -> header converter -> transforms

Operations are numbered in this order. A record without errors goes through them in one function;
when one of them raises, the record continues from there with retries. Records of one partition
without headers and transforms are converted by columns, if their converters support it; on any
error they are converted one by one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import cast

from broker.client.api import ConsumerRecord
from connect.data import ConnectSchema
from connect.records import Header, Record, SinkRecord, TimestampType
from connect.runtime.conversion import (
    Converters,
    Operation,
    Transform,
    bulk_converters,
    recover_record,
    transform_operations,
)
from connect.runtime.error_handling import ErrorHandler, Stage

NO_TIMESTAMP = -1

SchemaAndValue = tuple[ConnectSchema | None, object]


class ReportableRecord(SinkRecord):
    """A record with its original bytes, for the dead letter topic."""

    __slots__ = ()

    @property
    def consumed(self) -> ConsumerRecord:
        """The original record, the last element of the tuple."""
        return cast("tuple[ConsumerRecord, ...]", self)[-1]

    def __repr__(self) -> str:
        """The record without its original bytes."""
        return repr(self.changed())


@dataclass(slots=True)
class _Progress:
    """The results of the operations so far."""

    key: SchemaAndValue = (None, None)
    value: SchemaAndValue = (None, None)
    headers: Sequence[Header] = ()
    record: SinkRecord | None = None


class SinkPipeline:
    """Only the task's thread calls it."""

    def __init__(
        self,
        transforms: Sequence[Transform],
        converters: Converters,
        handler: ErrorHandler,
        *,
        reportable: bool,
    ) -> None:
        """With `reportable`, records keep their original bytes."""
        self._transforms = transforms
        self._applied = [transform.apply for transform in transforms]
        self._converters = converters
        self._key = converters.key.to_connect_data
        self._value = converters.value.to_connect_data
        self._header = converters.header.to_connect_header
        self._handler = handler
        self._reportable = reportable
        self._by_columns = None if transforms else bulk_converters(converters)

    def add_records(
        self,
        consumed: Sequence[ConsumerRecord],
        timestamp_type: TimestampType,
        batch: list[SinkRecord],
    ) -> None:
        """Add the converted records of one partition to the batch; raises errors not tolerated."""
        made = self._records_by_columns(consumed, timestamp_type)
        if made is not None:
            batch += made
            return
        for each in consumed:
            record = self.record(each, timestamp_type)
            if record is not None:
                batch.append(record)

    def _records_by_columns(
        self, consumed: Sequence[ConsumerRecord], timestamp_type: TimestampType
    ) -> Sequence[SinkRecord] | None:
        """All records, converted by columns; None if they must be converted one by one."""
        if self._by_columns is None:
            return None
        key, value = self._by_columns
        topics, partitions, offsets, stamps_ms, keys, values, headers = zip(*consumed, strict=True)
        if any(headers) or NO_TIMESTAMP in stamps_ms:
            return None
        count = len(consumed)
        kinds = repeat(timestamp_type, count)
        read = (stamps_ms, kinds, repeat((), count), topics, partitions, offsets)
        try:
            key_schemas, keys_found = key.to_connect_many(topics[0], keys)
            value_schemas, values_found = value.to_connect_many(topics[0], values)
            converted = (key_schemas, keys_found, value_schemas, values_found, offsets)
            if self._reportable:
                return ReportableRecord.of_columns(topics, partitions, *converted, *read, consumed)
            return SinkRecord.of_columns(topics, partitions, *converted, *read)
        except Exception:
            # Converting one by one finds the failed record, and handles its error; also after a
            # converter that returned too few values or too many.
            return None

    def record(self, consumed: ConsumerRecord, timestamp_type: TimestampType) -> SinkRecord | None:
        """A converted record; None if it is dropped. Raises errors that are not tolerated."""
        at = 0
        topic, _, _, _, key_bytes, value_bytes, raw = consumed
        given = [Header(name, None, data) for name, data in raw] if raw else ()
        key: SchemaAndValue = (None, None)
        value: SchemaAndValue = (None, None)
        headers: Sequence[Header] = ()
        record: SinkRecord | None = None
        try:
            key = self._key(topic, given, key_bytes)
            at = 1
            value = self._value(topic, given, value_bytes)
            at = 2
            if raw:
                headers = self._convert_headers(consumed)
            at = 3
            record = _sink_record(consumed, timestamp_type, key, value, headers)
            for apply in self._applied:
                changed = apply(record)
                if changed is None:
                    return None
                record = cast(SinkRecord, changed)
                at += 1
        except Exception as error:
            progress = _Progress(key, value, headers, record)
            operations = self._operations(consumed, timestamp_type, progress)[at:]
            if not recover_record(self._handler, consumed, operations, error):
                return None
            record = progress.record or self._made(consumed, timestamp_type, progress)
        return _reportable(record, consumed) if self._reportable else record

    def _convert_headers(self, consumed: ConsumerRecord) -> list[Header]:
        convert, topic = self._header, consumed.topic
        return [Header(name, *convert(topic, name, data)) for name, data in consumed.headers]

    def _made(
        self, consumed: ConsumerRecord, timestamp_type: TimestampType, progress: _Progress
    ) -> SinkRecord:
        return _sink_record(
            consumed, timestamp_type, progress.key, progress.value, progress.headers
        )

    def _operations(
        self, consumed: ConsumerRecord, timestamp_type: TimestampType, progress: _Progress
    ) -> list[Operation]:
        """All operations on a record, which store their results in its progress."""
        topic = consumed.topic
        given = [Header(name, None, data) for name, data in consumed.headers]

        def convert_key() -> bool:
            progress.key = self._key(topic, given, consumed.key)
            return True

        def convert_value() -> bool:
            progress.value = self._value(topic, given, consumed.value)
            return True

        def convert_headers() -> bool:
            progress.headers = self._convert_headers(consumed)
            return True

        def change(apply: Callable[[Record], Record | None]) -> bool:
            record = progress.record or self._made(consumed, timestamp_type, progress)
            changed = apply(record)
            if changed is None:
                return False
            progress.record = cast(SinkRecord, changed)
            return True

        converters = self._converters
        return [
            (Stage.KEY_CONVERTER, converters.key_name, convert_key),
            (Stage.VALUE_CONVERTER, converters.value_name, convert_value),
            (Stage.HEADER_CONVERTER, converters.header_name, convert_headers),
            *transform_operations(self._transforms, change),
        ]


def _sink_record(
    consumed: ConsumerRecord,
    timestamp_type: TimestampType,
    key: SchemaAndValue,
    value: SchemaAndValue,
    headers: Sequence[Header],
) -> SinkRecord:
    topic, partition, offset, timestamp_ms, _, _, _ = consumed
    if timestamp_ms == NO_TIMESTAMP:
        timestamp_type = "NoTimestampType"
    return SinkRecord(
        topic,
        partition,
        *key,
        *value,
        offset,
        None if timestamp_ms == NO_TIMESTAMP else timestamp_ms,
        timestamp_type,
        headers,
    )


def _reportable(record: SinkRecord, consumed: ConsumerRecord) -> ReportableRecord:
    return tuple.__new__(ReportableRecord, (*record, consumed))
