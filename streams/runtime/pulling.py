"""Pulling: the loop over a run of records whose nodes are generators; see streams/processor.py.

All records of the run are decoded before the first one is processed. If that fails, or if something
has to happen between two records, such as a punctuation, the records are processed one by one
instead. The state of the loop follows from the number of remaining rows, so that it does nothing
per record.
"""

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any, cast

from broker.serde import ChunkSerde, Serde
from streams.record import NO_HEADERS
from streams.runtime.input_buffer import PartitionQueue, Run
from streams.runtime.sink import ConsumeRows
from streams.runtime.source import OpenSource, end_of_run

ROWS_MIN = 8  # fewer are processed one by one

DecodeChunk = Callable[[Sequence[bytes | None]], list[object]]


def open_pulling(source: OpenSource, consume_rows: ConsumeRows, one_by_one: Run) -> Run:
    """The loop of a source that uses the timestamps of the records."""
    decode_keys = _chunk_decoder(source, source.key_serde)
    decode_values = _chunk_decoder(source, source.value_serde)
    current, punctuations = source.current, source.stream_punctuations
    record_time, processed = source.record_time, source.processed

    def run(queue: PartitionQueue, limit: int, until_ms: int) -> int:
        chunk, start = queue.chunks[0], queue.index
        end = end_of_run(chunk, start, limit, until_ms)
        timestamps = chunk.timestamps[start:end]
        due = punctuations.due_ms <= max(current.time_ms, max(timestamps))
        if end - start < ROWS_MIN or due or min(timestamps) < 0:
            return one_by_one(queue, limit, until_ms)
        try:
            keys = decode_keys(chunk.keys[start:end])
            values = decode_values(chunk.values[start:end])
        except Exception:
            return one_by_one(queue, limit, until_ms)
        headers = repeat(NO_HEADERS) if chunk.headers is None else chunk.headers[start:end]
        remaining = iter(timestamps)
        current.chunk, current.index, current.remaining = chunk, end - 1, remaining
        try:
            consume_rows(
                zip(keys, values, remaining, headers, strict=False)
            )  # headers may continue forever
        finally:
            following = max(current.row, start) + 1
            current.index, current.remaining = following - 1, None
            newest_ms = max(timestamps[: following - start])
            queue.time_ms = max(queue.time_ms, newest_ms)
            current.time_ms = max(current.time_ms, newest_ms)
            record_time.ms = chunk.timestamps[following - 1]
            queue.advance_to(following)
            processed.value += following - start
        return following - start

    return run


# Any: only the user knows the types of a source.
def _chunk_decoder(source: OpenSource, serde: Serde[Any]) -> DecodeChunk:
    """A function that decodes many values, including nulls."""
    decode = source.decode(serde)
    decode_all = serde.chunk_decoder(source.topic) if isinstance(serde, ChunkSerde) else None

    def decode_chunk(data: Sequence[bytes | None]) -> list[object]:
        if not all(data):  # faster than a test for None
            return [None if each is None else decode(each) for each in data]
        present = cast("Sequence[bytes]", data)
        return list(map(decode, present)) if decode_all is None else decode_all(present)

    return decode_chunk
