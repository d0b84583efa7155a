"""Sources: the loops that deserialize the records of a chunk and pass them to the first nodes.

This is the code that runs most often. The plain loop is for sources that use the timestamps of the
records: the timestamp of the head is known without decoding. The other loop is for sources with a
timestamp extractor: the head must be decoded to know which partition is next, and is kept until its
partition is next. A third loop, in pulling.py, is for plain sources with a single path to a sink.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import orjson

from broker.serde import BindableSerde, BytesSerde, JsonSerde, Serde, StringSerde
from streams.errors import InvalidTimestamp, ProcessingFailed
from streams.processor import Process
from streams.record import NO_HEADERS, Chunk, Headers
from streams.runtime.current import Current
from streams.runtime.dead_letters import Failures
from streams.runtime.input_buffer import NEVER_MS, FindHead, PartitionQueue, Run
from streams.runtime.punctuation import PunctuationQueue
from streams.runtime.task_metrics import Counter
from streams.state.open_store import RecordTime
from streams.stream_time import TimestampExtractor, fail_on_invalid_timestamp

Decode = Callable[[bytes], object]


def _identity(data: bytes) -> object:
    return data


# Faster functions for serdes, for bytes that are not null. After an error the serde itself is
# called, for its message.
_DIRECT: dict[type[Any], Decode] = {  # Any: serdes of any type of value
    JsonSerde: orjson.loads,
    StringSerde: bytes.decode,
    BytesSerde: _identity,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSource:
    """The parts of a source that the loops use."""

    node: str
    topic: str
    key_serde: Serde[Any]  # Any: only the user knows the types
    value_serde: Serde[Any]
    extractor: TimestampExtractor
    forward: Process
    current: Current
    failures: Failures
    stream_punctuations: PunctuationQueue
    punctuate: Callable[[], object]  # runs punctuators that are due by stream time
    record_time: RecordTime  # the timestamp of changelog records of plain stores
    processed: Counter
    dropped: Counter

    def loops(self) -> tuple[Run, FindHead | None]:
        """The loop, and the function that finds the head, if one is needed."""
        if self.extractor is fail_on_invalid_timestamp:
            return _open_plain(self), None
        reader = _Reader(self)
        return _open_extracting(self, reader), reader.find_head

    def decode(self, serde: Serde[Any]) -> Decode:
        """A function that deserializes bytes that are not null."""
        direct = _DIRECT.get(type(serde))
        if direct is not None:
            return direct
        if isinstance(serde, BindableSerde):
            return serde.decoder(self.topic)
        topic, deserialize = self.topic, serde.deserialize
        return lambda data: deserialize(topic, data)

    def skip_corrupt(self, chunk: Chunk, index: int, cause: Exception) -> None:
        """Pass a record that cannot be decoded to the handler; if that returns, skip the record."""
        error = cause
        try:
            self.key_serde.deserialize(self.topic, chunk.keys[index])
            self.value_serde.deserialize(self.topic, chunk.values[index])
        except Exception as serde_error:  # it has a better message
            error = serde_error
        self.failures.deserialization(self.node, error, chunk.timestamps[index])


def _open_plain(source: OpenSource) -> Run:
    decode_key = source.decode(source.key_serde)
    decode_value = source.decode(source.value_serde)
    current, forward, skip_corrupt = source.current, source.forward, source.skip_corrupt
    record_time, processed = source.record_time, source.processed
    punctuations, punctuate = source.stream_punctuations, source.punctuate

    def run(queue: PartitionQueue, limit: int, until_ms: int) -> int:
        chunk = current.chunk = queue.chunks[0]
        start = index = queue.index
        following = end_of_run(chunk, start, limit, until_ms)
        time_ms, partition_ms = current.time_ms, queue.time_ms
        try:
            for index, timestamp_ms, key, value, headers in _rows(chunk, start, following):
                current.index = index
                try:
                    decoded_key = key if key is None else decode_key(key)
                    decoded_value = value if value is None else decode_value(value)
                except Exception as error:
                    skip_corrupt(chunk, index, error)
                    continue
                if timestamp_ms > partition_ms:
                    partition_ms = timestamp_ms
                    if timestamp_ms > time_ms:
                        time_ms = current.time_ms = timestamp_ms
                elif timestamp_ms < 0:
                    raise _negative(source, timestamp_ms)
                record_time.ms = timestamp_ms
                forward(decoded_key, decoded_value, timestamp_ms, headers)
                if punctuations.due_ms <= time_ms:
                    punctuate()
        except BaseException:
            following = index + 1
            raise
        finally:
            queue.time_ms = partition_ms
            queue.advance_to(following)
            processed.value += following - start
        return following - start

    return run


def end_of_run(chunk: Chunk, start: int, limit: int, until_ms: int) -> int:
    """The end of a run: the first row after the start with a timestamp of `until_ms` or more."""
    end = min(len(chunk), start + limit)
    if until_ms == NEVER_MS:
        return end
    timestamps = chunk.timestamps
    return next((row for row in range(start + 1, end) if timestamps[row] >= until_ms), end)


Rows = Iterator[tuple[int, int, bytes | None, bytes | None, Headers]]


def _rows(chunk: Chunk, start: int, end: int) -> Rows:
    """Index, timestamp, key, value and headers of some rows."""
    headers = repeat(NO_HEADERS) if chunk.headers is None else chunk.headers[start:end]
    return zip(
        range(start, end),
        chunk.timestamps[start:end],
        chunk.keys[start:end],
        chunk.values[start:end],
        headers,
        strict=False,  # headers may continue forever
    )


def _negative(source: OpenSource, timestamp_ms: int) -> InvalidTimestamp:
    position = source.current.position
    assert position is not None, "a record of a source has a position"
    return InvalidTimestamp(
        f"the record has timestamp {timestamp_ms}",
        at=f'topic "{position.topic}" partition {position.partition} offset {position.offset}, '
        f'source node "{source.node}"',
        hint="give the source a timestamp_extractor that skips such records or returns "
        "another timestamp",
    )


class _Reader:
    """Deserializes records and extracts their timestamps."""

    __slots__ = ("_decode_key", "_decode_value", "_source")

    def __init__(self, source: OpenSource) -> None:
        self._source = source
        self._decode_key = source.decode(source.key_serde)
        self._decode_value = source.decode(source.value_serde)

    def read(
        self, chunk: Chunk, index: int, partition_ms: int
    ) -> tuple[object, object, int] | None:
        """Key, value and timestamp of a record; None if it is skipped."""
        source = self._source
        raw_key, raw_value = chunk.keys[index], chunk.values[index]
        try:
            key = None if raw_key is None else self._decode_key(raw_key)
            value = None if raw_value is None else self._decode_value(raw_value)
        except Exception as error:
            source.skip_corrupt(chunk, index, error)
            return None
        try:
            timestamp_ms = source.extractor(key, value, chunk.timestamps[index], partition_ms)
        except InvalidTimestamp:
            raise
        except Exception as error:
            raise ProcessingFailed(
                f"the timestamp extractor failed: {type(error).__name__}: {error}",
                at=f'topic "{chunk.topic}" partition {chunk.partition} '
                f'offset {chunk.offsets[index]}, source node "{source.node}"',
                hint="it must return a timestamp for every record; a negative one drops the record",
            ) from error
        if timestamp_ms < 0:
            source.dropped.add()
            return None
        return key, value, timestamp_ms

    def find_head(self, queue: PartitionQueue) -> None:
        """Skip to the next record that has a timestamp, and store it decoded."""
        current = self._source.current
        outer, row = current.chunk, current.index
        try:
            while queue.count and queue.head is None:
                current.chunk, current.index = queue.chunks[0], queue.index
                try:
                    queue.head = self.read(queue.chunks[0], queue.index, queue.time_ms)
                except BaseException:
                    queue.advance_to(queue.index + 1)
                    raise
                if queue.head is None:
                    queue.advance_to(queue.index + 1)
        finally:
            current.chunk, current.index = outer, row


def _open_extracting(source: OpenSource, reader: _Reader) -> Run:
    current, forward, record_time = source.current, source.forward, source.record_time
    punctuations, punctuate, processed = (
        source.stream_punctuations,
        source.punctuate,
        source.processed,
    )
    read = reader.read

    def run(queue: PartitionQueue, limit: int, until_ms: int) -> int:
        chunk = queue.chunks[0]
        start = index = queue.index
        end = min(len(chunk), start + limit)
        headers = chunk.headers
        head, queue.head = queue.head, None
        next_head = None
        current.chunk = chunk
        try:
            while index < end:
                current.index = index
                record = read(chunk, index, queue.time_ms) if head is None else head
                head = None
                if record is not None:
                    key, value, timestamp_ms = record
                    if timestamp_ms >= until_ms and index > start:
                        next_head = record
                        break
                    queue.time_ms = max(queue.time_ms, timestamp_ms)
                    current.time_ms = max(current.time_ms, timestamp_ms)
                    record_time.ms = timestamp_ms
                    forward(
                        key,
                        value,
                        timestamp_ms,
                        NO_HEADERS if headers is None else headers[index],
                    )
                    if punctuations.due_ms <= current.time_ms:
                        punctuate()
                index += 1
        except BaseException:
            index += 1
            raise
        finally:
            queue.advance_to(index)
            queue.head = next_head
            processed.value += index - start
        return index - start

    return run
