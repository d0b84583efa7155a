"""TaskWork: the native operators of a query, run on a batch of records with state in pages.

    records of a batch -> Chunks -> Task (as in streams) -> records for topics
                                      |
                          TaskState over PagedDatabase -> pages

A batch is done when the pages are flushed; until then nothing has happened. The positions and times
of a task's inputs are in the metadata of its pages, where an application has committed offsets.
"""

import json
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from broker.client.api import OffsetAndMetadata
from broker.client.partitioner import partition_for_key
from broker.clock import SystemClock
from broker.errors import MillstreamError
from broker.model import TopicPartition
from broker.serde.registry.http_registry import HttpSchemaRegistry
from sql.backends.native.steps import StepContext
from sql.backends.native.topology import add_query, is_internal
from sql.backends.spark.job import Job
from sql.functions.user import registry_with
from sql.plan import Sink
from sql.planner import plan_from_json
from streams.config import StreamsConfig
from streams.dsl.builder import StreamsBuilder
from streams.handlers import Answer, Failure
from streams.operators.closing import EMIT_INTERVAL_SETTING as WINDOWS_INTERVAL
from streams.operators.outer_join_pending import EMIT_INTERVAL_SETTING as JOINS_INTERVAL
from streams.record import Chunk, Headers
from streams.runtime.partitions import Layout, TaskId, lay_out
from streams.runtime.task import Task
from streams.state.backing import Write
from streams.state.paged import PagedDatabase, Pages
from streams.state.task_state import TaskState
from streams.topology import Topology

COMMITTED = b"committed"  # the key of positions and times of the inputs in the metadata
ROUND_RECORDS = 10_000
WORKS_KEPT_MAX = 1_024
FAIL_ON_DESERIALIZATION = "ksql.fail.on.deserialization.error"
FAIL_ON_PRODUCTION = "ksql.fail.on.production.error"
# Streams' own settings have this prefix unless it was already removed.
STREAMS_PREFIX = "ksql.streams."
TIMESTAMP_EXTRACTOR = "default.timestamp.extractor"


class TaskFailed(MillstreamError):
    """A task of a query cannot go on; the message says which, and why."""


class OutputRecord(NamedTuple):
    """A record on its way to a topic."""

    topic: str
    partition: int | None  # None: any
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers


class Collected:
    """Takes what sinks write; see streams.runtime.output.Output."""

    def __init__(self, partition_counts: Mapping[str, int]) -> None:
        self._counts = partition_counts
        self.records: list[OutputRecord] = []

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers,
        partition: int | None,
    ) -> None:
        """Keep a record, for the partition that its key belongs to."""
        if partition is None and key is not None:
            partition = partition_for_key(key, self._counts[topic])
        self.records.append(OutputRecord(topic, partition, timestamp_ms, key, value, headers))

    def partition_count(self, topic: str) -> int:
        """How many partitions a topic has."""
        return self._counts[topic]


class TaskWork:
    """The tasks of one query; made once for a process."""

    def __init__(self, job: Job) -> None:
        self._job = job
        builder = StreamsBuilder()
        registry = None if job.registry_url is None else HttpSchemaRegistry(job.registry_url)
        plan = plan_from_json(job.plan, registry_with(job.function_modules))
        assert isinstance(plan, Sink)
        add_query(plan, StepContext(builder, registry, self._row_failed, dict(job.settings)))
        self.topology: Topology = builder.build()
        self.layout: Layout = lay_out(self.topology, job.application_id, job.partition_counts)
        self._counts = {**job.partition_counts, **self.layout.partition_counts}
        self._config = StreamsConfig.of(
            application_id=job.application_id,
            statestore_cache_max_bytes=0,
            deserialization_exception_handler=self._handler(FAIL_ON_DESERIALIZATION, "false"),
            production_exception_handler=self._handler(FAIL_ON_PRODUCTION, "true"),
            **_extractor(job.settings),
            # Closed windows are emitted in the batch that closed them, not a second later.
            extra={WINDOWS_INTERVAL: 0, JOINS_INTERVAL: 0},
        )

    def run(self, task_id: TaskId, chunks: Iterable[Chunk], pages: Pages) -> list[OutputRecord]:
        """Process the records of a batch that belong to a task."""
        try:
            return self._run(task_id, chunks, pages)
        except Exception as error:  # whatever it is, Spark shows no more than the text
            raise TaskFailed(
                f'task {task_id} of "{self._job.application_id}" failed: '
                f"{type(error).__name__}: {error}"
            ) from error

    def _run(self, task_id: TaskId, chunks: Iterable[Chunk], pages: Pages) -> list[OutputRecord]:
        database = PagedDatabase(list(self.layout.sub_topology(task_id.sub_topology).stores), pages)
        output = Collected(self._counts)
        task = self._task(task_id, database, output)
        task.resume_from(_committed(database))
        for chunk in chunks:
            task.add(chunk)
        while task.process(ROUND_RECORDS):
            task.punctuate_stream_time()
        task.flush()
        task.state.changes()
        task.state.commit({})
        database.write(Write(metadata={COMMITTED: _encoded_offsets(task.offsets())}))
        database.flush()
        task.close()
        task.state.close()
        return output.records

    def _task(self, task_id: TaskId, database: PagedDatabase, output: Collected) -> Task:
        sub = self.layout.sub_topology(task_id.sub_topology)
        specs = [replace(self.topology.stores[name], logging=False) for name in sub.stores]
        state = TaskState(
            specs,
            directory=database,
            default_key_serde=self._config.default_key_serde,
            default_value_serde=self._config.default_value_serde,
            application_id=self._job.application_id,
        )
        return Task(
            self.topology,
            sub,
            partition=task_id.partition,
            application_id=self._job.application_id,
            state=state,
            output=output,
            clock=SystemClock(),
            config=self._config,
            global_stores={},  # no plan has any
            topics=[tp.topic for tp in self.layout.inputs(task_id)],
        )

    def _row_failed(self, step: str, error: Exception, row: object) -> None:
        """An expression raised, or a row has no time; rows are not shown."""
        self._log(step).warning("%s", error)

    def _handler(self, setting: str, otherwise: str) -> Callable[[Failure], Answer]:
        """A handler that logs a failure, and fails the query if a setting says so."""
        fails = str(self._job.settings.get(setting, otherwise)).lower() == "true"

        def handle(failure: Failure) -> Answer:
            self._log(failure.node).warning("%s: %s", failure.at, failure.error)
            internal = is_internal(failure, self._job.application_id)
            return Answer.FAIL if fails or internal else Answer.CONTINUE

        return handle

    def _log(self, step: str) -> logging.Logger:
        return logging.getLogger(f"processing.{self._job.application_id}.{step}")


@lru_cache(maxsize=WORKS_KEPT_MAX)
def work_of(job: str) -> TaskWork:
    """The tasks of a query, made once for a process."""
    return TaskWork(Job.of_text(job))


def _extractor(settings: Mapping[str, object]) -> dict[str, object]:
    """What records without a valid time become; a name of Java's class is understood, too."""
    given = settings.get(TIMESTAMP_EXTRACTOR, settings.get(STREAMS_PREFIX + TIMESTAMP_EXTRACTOR))
    if given is None:
        return {}
    name = str(given)
    return {"default_timestamp_extractor": "log_and_skip" if "LogAndSkip" in name else name}


def _committed(database: PagedDatabase) -> dict[TopicPartition, OffsetAndMetadata]:
    data = database.metadata().get(COMMITTED)
    if data is None:
        return {}
    return {
        TopicPartition(topic, partition): OffsetAndMetadata(offset, metadata=metadata)
        for topic, partition, offset, metadata in json.loads(data)
    }


def _encoded_offsets(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> bytes:
    rows = [(tp.topic, tp.partition, at.offset, at.metadata) for tp, at in offsets.items()]
    return json.dumps(rows).encode()
