"""Reads spans of offsets exactly from start to end, as Arrow batches; runs in Spark's workers.

Consumers are reused by later tasks of the same process: connecting and fetching metadata is
expensive. A span ends when the position is beyond it, not at a record: it may end with markers and
aborted transactions.
"""

import atexit
import os
from collections.abc import Iterable, Iterator
from typing import Any

from broker.client.api import FetchedBatch
from broker.client.opening import consumer
from broker.client.record_consumer import Consumer
from broker.errors import BrokerError, ErrorCode, RequestTimeout
from broker.model import TopicPartition
from sql.backends.spark.log_ends import lost
from sql.backends.spark.offsets import Span
from sql.backends.spark.options import SourceOptions
from sql.backends.spark.records import arrow_batch

POLL_MS = 1_000
STILL_POLLS_MAX = 120  # give up after this many polls without records
IDLE_MAX = 4
ROWS_JOINED = 10_000
READING = {
    "fetch_max_wait_ms": 10,  # the records exist already: there is nothing to wait for
    "max_partition_fetch_bytes": 4 * 1024 * 1024,
}

_Consumers = dict[tuple[int, str], list[Consumer]]
_idle_consumers: _Consumers = {}


def read_spans(spans: Iterable[Span], options: SourceOptions) -> Iterator[Any]:
    """RecordBatches of all records of the spans, in the order of offsets in each partition."""
    rounds: list[dict[TopicPartition, Span]] = []
    for span in sorted(spans):
        # One consumer cannot read several spans of a partition at once.
        free = next((each for each in rounds if span.topic_partition not in each), None)
        if free is None:
            rounds.append(free := {})
        free[span.topic_partition] = span
    reader = _borrow(options)
    for each in rounds:
        yield from _read(reader, each, options)
    _give_back(reader, options)  # not after an error: its state is unknown


def _read(
    reader: Consumer, spans: dict[TopicPartition, Span], options: SourceOptions
) -> Iterator[Any]:
    open_spans = dict(spans)
    reader.assign(open_spans)
    for tp, span in open_spans.items():
        reader.seek(tp, span.start)
    waiting: list[Any] = []
    rows = still = 0
    while open_spans:
        before = sum(reader.position(tp) for tp in open_spans)
        for batch in _poll(reader, open_spans, options):
            end = open_spans[batch.topic_partition].end
            if batch.first_offset < end:
                made = arrow_batch(batch, end, include_headers=options.include_headers)
                if made is not None:
                    waiting.append(made)
                    rows += made.num_rows
            if rows >= ROWS_JOINED:
                yield _joined(waiting)
                waiting, rows = [], 0
        moved = sum(reader.position(tp) for tp in open_spans) != before
        _close_ended(reader, open_spans)
        still = 0 if moved else still + 1
        if not moved and open_spans:
            _check_still(reader, open_spans, options, still)
    if waiting:
        yield _joined(waiting)


def _joined(batches: list[Any]) -> Any:
    """The batches as one: Spark's overhead per batch is larger than that of a copy."""
    import pyarrow as pa

    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _poll(
    reader: Consumer, open_spans: dict[TopicPartition, Span], options: SourceOptions
) -> list[FetchedBatch]:
    try:
        return reader.poll_batches(POLL_MS)
    except BrokerError as error:
        if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
            raise
        _skip_lost(reader, open_spans, options)
        return []


def _close_ended(reader: Consumer, open_spans: dict[TopicPartition, Span]) -> None:
    ended = [tp for tp, span in open_spans.items() if reader.position(tp) >= span.end]
    for tp in ended:
        del open_spans[tp]
    if ended:
        # Open spans keep their positions; completed ones are fetched no more.
        reader.assign(open_spans)


def _skip_lost(
    reader: Consumer, open_spans: dict[TopicPartition, Span], options: SourceOptions
) -> None:
    """Continue after deleted records, if the options allow it."""
    first = reader.beginning_offsets(open_spans)
    last = reader.end_offsets(open_spans)
    gone = {}
    for tp, span in open_spans.items():
        at = reader.position(tp)
        if at < first[tp]:
            gone[tp] = f"offsets {at} to {min(first[tp], span.end) - 1}"
            reader.seek(tp, first[tp])
        elif last[tp] < span.end:
            gone[tp] = f"offsets {max(at, last[tp])} to {span.end - 1}: the log ends before them"
            reader.seek(tp, span.end)
    lost(options, gone)
    _close_ended(reader, open_spans)


def _check_still(
    reader: Consumer,
    open_spans: dict[TopicPartition, Span],
    options: SourceOptions,
    still: int,
) -> None:
    """No records arrived: the log may have become shorter, or the cluster is unavailable."""
    _skip_lost(reader, open_spans, options)
    if still >= STILL_POLLS_MAX:
        places = ", ".join(f"{tp} at {reader.position(tp)}" for tp in sorted(open_spans))
        raise RequestTimeout(
            f"no records were read for {still * POLL_MS // 1000} s: {places}",
            hint="check that the leaders of these partitions are available",
        )


# --- consumers that are kept ----------------------------------------------------------------------


def _name(options: SourceOptions) -> tuple[int, str]:
    settings = sorted((name, str(value)) for name, value in options.client.items())
    return os.getpid(), repr((options.servers, options.isolation_level, settings))


def _borrow(options: SourceOptions) -> Consumer:
    idle = _idle_consumers.get(_name(options))
    if idle:
        return idle.pop()
    settings = READING | dict(options.client)
    return consumer(
        options.servers,
        isolation_level=options.isolation_level,
        enable_auto_commit=False,
        allow_auto_create_topics=False,
        auto_offset_reset="none",
        **settings,
    )


def _give_back(reader: Consumer, options: SourceOptions) -> None:
    reader.unsubscribe()
    idle = _idle_consumers.setdefault(_name(options), [])
    if len(idle) < IDLE_MAX:
        idle.append(reader)
    else:
        reader.close()


@atexit.register
def close_idle() -> None:
    """Close the idle consumers."""
    for (process, _), idle in _idle_consumers.items():
        if process == os.getpid():
            for reader in idle:
                reader.close()
    _idle_consumers.clear()
