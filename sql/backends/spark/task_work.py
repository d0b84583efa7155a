"""TaskWork: the native operators of a query, run on a batch of records with state in pages.

    records of a batch -> Chunks -> Task (as in streams) -> records for topics
                                      |
                          TaskState over PagedDatabase -> pages

A batch is done when the pages are flushed; until then nothing has happened. The positions and times
of a task's inputs lie among the facts of its pages, where an application has committed offsets.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from broker.client.api import OffsetAndMetadata
from broker.client.partitioner import partition_for_key
from broker.client.registry.http_registry import HttpSchemaRegistry
from broker.clock import SystemClock
from broker.model import TopicPartition
from sql.backends.native.steps import QueryContext
from sql.backends.native.topology import add_query
from sql.backends.spark.job import Job
from sql.functions.builtin import builtin_functions
from sql.plan import Sink
from sql.planner import plan_from_json
from streams.config import StreamsConfig
from streams.dsl.builder import StreamsBuilder
from streams.operators.closing import EMIT_INTERVAL_SETTING as WINDOWS_INTERVAL
from streams.operators.outer_join_pending import EMIT_INTERVAL_SETTING as JOINS_INTERVAL
from streams.record import Chunk, Headers
from streams.runtime.partitions import Layout, TaskId, lay_out
from streams.runtime.task import Task
from streams.state.backing import Write
from streams.state.paged import PagedDatabase, Pages
from streams.state.task_state import TaskState
from streams.topology import Topology

COMMITTED = b"committed"  # the fact with positions and times of the inputs
ROUND_RECORDS = 10_000


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
        """Lower the plan as the native backend does."""
        self._job = job
        builder = StreamsBuilder()
        registry = None if job.registry_url is None else HttpSchemaRegistry(job.registry_url)
        plan = plan_from_json(job.plan, builtin_functions())
        assert isinstance(plan, Sink)
        add_query(plan, QueryContext(builder, registry, settings=dict(job.settings)))
        self.topology: Topology = builder.build()
        self.layout: Layout = lay_out(self.topology, job.application_id, job.partition_counts)
        self._counts = {**job.partition_counts, **self.layout.partition_counts}
        self._config = StreamsConfig.of(
            application_id=job.application_id,
            statestore_cache_max_bytes=0,
            # Windows that have closed are told in the batch that closed them, not a second later.
            extra={WINDOWS_INTERVAL: 0, JOINS_INTERVAL: 0},
        )

    def run(self, task_id: TaskId, chunks: Iterable[Chunk], pages: Pages) -> list[OutputRecord]:
        """Process the records of a batch that belong to a task."""
        sub = self.layout.sub_topology(task_id.sub_topology)
        specs = [replace(self.topology.stores[name], logging=False) for name in sub.stores]
        database = PagedDatabase(list(sub.stores), pages)
        state = TaskState(
            specs,
            directory=database,
            default_key_serde=self._config.default_key_serde,
            default_value_serde=self._config.default_value_serde,
            application_id=self._job.application_id,
        )
        output = Collected(self._counts)
        task = Task(
            self.topology,
            sub,
            partition=task_id.partition,
            application_id=self._job.application_id,
            state=state,
            output=output,
            clock=SystemClock(),
            config=self._config,
            global_stores={},
            topics=[tp.topic for tp in self.layout.inputs(task_id)],
        )
        task.resume_from(_committed(database))
        for chunk in chunks:
            task.add(chunk)
        while task.process(ROUND_RECORDS):
            task.punctuate_stream_time()
        task.flush()
        state.changes()
        state.commit({})
        database.write(Write(facts={COMMITTED: _as_fact(task.offsets())}))
        database.flush()
        task.close()
        state.close()
        return output.records


@lru_cache(maxsize=64)
def work_of(job: str) -> TaskWork:
    """The tasks of a query, made once for a process."""
    return TaskWork(Job.of_text(job))


def _committed(database: PagedDatabase) -> dict[TopicPartition, OffsetAndMetadata]:
    data = database.facts().get(COMMITTED)
    if data is None:
        return {}
    return {
        TopicPartition(topic, partition): OffsetAndMetadata(offset, metadata=metadata)
        for topic, partition, offset, metadata in json.loads(data)
    }


def _as_fact(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> bytes:
    rows = [(tp.topic, tp.partition, at.offset, at.metadata) for tp, at in offsets.items()]
    return json.dumps(rows).encode()
