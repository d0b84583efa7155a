"""Writers of the "millstream" data source: rows of a stream or of a bounded query to topics.

Columns: value (binary or string), and optionally key, topic, partition, timestamp (bigint in ms, or
timestamp) and headers. delivery=exactly_once writes each micro-batch once, whatever fails.
"""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)

from broker.client.config import ProducerConfig
from broker.client.opening import producer
from broker.client.record_producer import Producer
from broker.clock import SystemClock
from broker.errors import ConfigError, SchemaError
from sql.backends.spark.marks import Mark, RowDigest, TaskBatch
from sql.backends.spark.options import AT_LEAST_ONCE, SinkOptions
from sql.backends.spark.transactions import abandon, begin, check_time, commit
from sql.backends.spark.writing import (
    RecordOutput,
    digest_of,
    first_topic,
    not_empty,
    partition_count,
)

CLOCK = SystemClock()
BATCH_ID = "streaming.sql.batchId"
QUERY_ID = "sql.streaming.queryId"
COLUMNS = {
    "topic": ("string",),
    "partition": ("int",),
    "timestamp": ("bigint", "timestamp", "timestamp_ntz"),
    "key": ("binary", "string"),
    "value": ("binary", "string"),
    "headers": ("array<struct<name:string,value:binary>>",),
}


@dataclass
class TaskCommit(WriterCommitMessage):  # type: ignore[misc]
    """The commit message of a task to the driver."""

    records: int


class RecordStreamWriter(DataSourceStreamArrowWriter):  # type: ignore[misc]
    """Writes micro-batches."""

    def __init__(self, options: SinkOptions, schema: Any) -> None:
        """Check the options before the first batch."""
        check_columns(schema, options)
        check_topic(options)
        self._options = options

    def write(self, iterator: Iterator[Any]) -> TaskCommit:
        """Write one task's part of a micro-batch."""
        context = TaskContext.get()
        assert context is not None, "a sink writes inside a task"
        query_id = context.getLocalProperty(QUERY_ID)
        batch_id = context.getLocalProperty(BATCH_ID)
        if self._options.delivery == AT_LEAST_ONCE:
            return _write_plain(iterator, self._options)
        if query_id is None or batch_id is None:
            raise ConfigError(
                "the micro-batch is unknown", hint='write with "delivery" at_least_once'
            )
        sink_id = self._options.sink_id or f"millstream-{query_id}"
        packing = self._options.packing
        part = TaskBatch(sink_id, context.partitionId(), query_id, int(batch_id), packing)
        digest = RowDigest() if packing is None else None
        return _write_once(iterator, self._options, part, digest)


class RecordWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Writes the result of a bounded query: with exactly_once, in one transaction per task.

    With "batch_id", "query_id" and "sink_id" the result is a micro-batch, which is written once
    even if it is repeated. Then each task must get the same rows again.
    """

    def __init__(self, options: SinkOptions, schema: Any, *, overwrite: bool) -> None:
        """Each run has a unique name, so that only attempts of one task fence each other."""
        if overwrite:
            raise ConfigError("topics cannot be overwritten", hint='write with mode "append"')
        check_columns(schema, options)
        check_topic(options)
        self._options = options
        self._run = uuid.uuid4().hex

    def write(self, iterator: Iterator[Any]) -> TaskCommit:
        """Write one task's part."""
        context = TaskContext.get()
        assert context is not None, "a sink writes inside a task"
        if self._options.delivery == AT_LEAST_ONCE:
            return _write_plain(iterator, self._options)
        part = self._part(context.partitionId())
        is_batch = self._options.batch_id is not None
        digest = RowDigest() if is_batch and part.packing is None else None
        return _write_once(iterator, self._options, part, digest)

    def _part(self, task: int) -> TaskBatch:
        given = self._options
        if given.batch_id is not None and given.query_id is not None:
            assert given.sink_id is not None
            return TaskBatch(given.sink_id, task, given.query_id, given.batch_id, given.packing)
        return TaskBatch(f"{given.sink_id or 'millstream'}-{self._run}", task, self._run, 0)


def _write_plain(batches: Iterator[Any], options: SinkOptions) -> TaskCommit:
    filled = not_empty(batches)
    first = next(filled, None)
    if first is None:
        return TaskCommit(0)
    with producer(options.servers, **options.client) as opened:
        return _write_all(opened, chain([first], filled), options)


def _write_once(
    batches: Iterator[Any], options: SinkOptions, part: TaskBatch, digest: RowDigest | None
) -> TaskCommit:
    """Write rows that are not written yet; the digest is of all rows, if rows identify the task."""
    filled = not_empty(batches)
    first = next(filled, None)
    if first is None:
        return TaskCommit(0)  # a repeated attempt has nothing to write either
    topic = first_topic(first, options.topic)
    opened = begin(part, options, topic)
    if isinstance(opened, Mark):
        found = digest_of(chain([first], filled))
        part.check_rows(opened, found)
        return TaskCommit(found.rows)
    began_ms = CLOCK.monotonic_ms()
    try:
        written = _write_all(opened, chain([first], filled), options, digest)
        commit(opened, part, options, topic=topic, rows=digest)
    except BaseException as error:
        abandon(opened)
        check_time(part, options, error, CLOCK.monotonic_ms() - began_ms)
        raise
    return written


def _write_all(
    opened: Producer,
    batches: Iterator[Any],
    options: SinkOptions,
    digest: RowDigest | None = None,
) -> TaskCommit:
    config = ProducerConfig()
    output = RecordOutput(
        opened,
        options.topic,
        bytes_max=int(str(options.client.get("max_request_size", config.max_request_size))),
        compression=str(options.client.get("compression_type", config.compression_type)),
        digest=digest,
    )
    for batch in batches:
        output.write(batch)
    output.finish()
    return TaskCommit(output.written)


def check_topic(options: SinkOptions) -> None:
    """Let the broker create the topic, or refuse it before the first row."""
    if options.topic is not None:
        with producer(options.servers, **options.client) as opened:
            partition_count(opened, options.topic)


def check_columns(schema: Any, options: SinkOptions) -> None:
    """Refuse columns that are not parts of a record."""
    types = {field.name: field.dataType.simpleString() for field in schema.fields}
    for name, found in types.items():
        if name not in COLUMNS:
            raise SchemaError(
                f'a record has no column "{name}"',
                hint=f"select only {', '.join(COLUMNS)}",
            )
        if found not in COLUMNS[name]:
            raise SchemaError(
                f'column "{name}" has type {found}', hint=f"it must be {' or '.join(COLUMNS[name])}"
            )
    if "value" not in types:
        raise SchemaError('there is no column "value"', hint='name one "value"')
    if options.topic is None and "topic" not in types:
        raise ConfigError(
            "the rows have no topic", hint='set the option "topic" or add a column "topic"'
        )
