"""SparkQuery: a persistent query (or several) as one streaming query of Spark.

    source (all topics that the topologies read) -> job and task of each record
        tasks with stores      groupBy(task).transformWithState(TaskProcessor)
        tasks without          where the records are read, see stages.py
    -> sink (all topics that they write, in one transaction per Spark task and batch)

Records that one sub-topology writes for another go through its repartition topic, as in an
application: they are read with the next batch. Several jobs only share the batches.
"""

import json
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from broker.client import admin
from broker.client.cluster_admin import Admin
from broker.clock import SystemClock
from broker.errors import MillstreamError
from broker.model import TopicPartition
from sql.backends.spark.connectors import (
    AUTO,
    KAFKA,
    Subscription,
    connector,
    packing,
    records,
)
from sql.backends.spark.frames import FrameContext
from sql.backends.spark.job import Job, packed
from sql.backends.spark.options import EARLIEST, LATEST
from sql.backends.spark.per_batch import PerBatchQuery, runs_per_batch, topics_of
from sql.backends.spark.processor import OUTPUT, SEPARATOR, TASK, TaskProcessor
from sql.backends.spark.purging import purge_committed
from sql.backends.spark.session import activate
from sql.backends.spark.stages import Staged
from sql.backends.spark.stateless import plan_of_columns, written_records
from sql.backends.spark.task_rows import StatelessTasks
from sql.backends.spark.task_work import work_of
from sql.errors import SqlError
from streams.runtime.internal_topics import TopicSettings, existing_topics, prepare_topics
from streams.runtime.partitions import Layout

logger = logging.getLogger(__name__)

SOURCE = "millstream"
PLACES = {EARLIEST: -2, LATEST: -1}
Read = Callable[..., Any]  # the records of topics as a streaming frame, possibly after a stage
Offsets = dict[str, dict[str, int]]  # by topic and partition, as in JSON
INITIALIZING = "Initializing sources"  # Spark's status of a query until its source is ready
WAITING = "Waiting for data to arrive"  # and if there are no new records
SOURCE_LIMIT_S = 60.0
FIRST_BATCH_LIMIT_S = 15.0
LOOK_S = 0.05

_starting_one = threading.Lock()  # many starts at once would make their processes time out


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """The environment of a query: session, brokers and checkpoints."""

    session: Any  # a SparkSession
    servers: str
    checkpoints: Path | str
    client: Mapping[str, str] = field(default_factory=dict)  # "kafka." settings
    trigger: Mapping[str, object] = field(default_factory=lambda: {"processingTime": "0 seconds"})
    max_offsets_per_trigger: int | None = None
    connector: str = AUTO  # the connector that reads topics; see connectors.py
    tasks: int | None = None  # the maximum number of reading tasks; None: one per partition


@dataclass(frozen=True, slots=True)
class PreparedJob:
    """A job whose topics exist, with the layout of its tasks."""

    job: Job
    layout: Layout


class SparkQuery:
    """One streaming query; `start` after `stop` continues from the checkpoint."""

    def __init__(
        self,
        jobs: Job | Sequence[Job],
        place: SparkPlace,
        *,
        name: str | None = None,
        starting: str = LATEST,
    ) -> None:
        """Nothing runs yet.

        `name` is the name of the group, the sink and the checkpoint; the default is the id of the
        first job's application. `starting` is where topics are read from the first time, "earliest"
        or "latest", if the group has no committed offsets.
        """
        self._jobs = (jobs,) if isinstance(jobs, Job) else tuple(jobs)
        self._name = self._jobs[0].application_id if name is None else name
        self._place = place
        self._starting = starting
        self._streaming: Any = None  # Any: Spark's StreamingQuery
        self._listener: Any = None  # Any: a StreamingQueryListener
        self._purged_topics: tuple[str, ...] = ()

    def start(self) -> None:
        """Create the internal topics and start the query."""
        if len(self._jobs) == 1 and runs_per_batch(self._jobs[0]):
            self._start_per_batch(self._jobs[0])
            return
        with admin(self._place.servers) as administration:
            prepared = self._prepared(administration)
            starting = self._starting_offsets(administration, prepared)
        activate(self._place.session)
        reading = connector(self._place.session, self._place.connector)

        self._purged_topics = _repartition_topics(prepared)

        def read(topics: Iterable[str], staged: Staged | None = None) -> Any:
            found = self._subscription(topics, starting)
            return records(self._place.session, reading, found, staged)

        frame = self._results(prepared, read)
        writing = (
            frame.writeStream.format(SOURCE)
            .options(**self._sink(reading))
            .option("sink_id", self._name)
            .option("checkpointLocation", self._checkpoint())
            .queryName(self._name)
            .outputMode("append")
            .trigger(**self._place.trigger)
        )
        if reading == KAFKA:
            self._listen()
        with _starting_one:
            self._streaming = writing.start()
            self._wait_for_processes()

    def _start_per_batch(self, job: Job) -> None:
        """Start it on Spark's own operators; internal topics are not used."""
        with admin(self._place.servers) as administration:
            counts = self._counts(administration)
            policies = {
                TopicPartition(topic, number): self._starting
                for topic in topics_of(job)
                for number in range(counts[topic])
            }
            offsets = self._offsets(administration, policies)
        activate(self._place.session)
        reading = connector(self._place.session, self._place.connector)

        def read(topic: str, staged: Staged) -> Any:
            found = self._subscription([topic], offsets)
            return records(self._place.session, reading, found, staged)

        query = PerBatchQuery(_counted(job, counts), self._place, self._name, read)
        if reading == KAFKA:
            self._listen()
        with _starting_one:
            self._streaming = query.start(self._sink(reading), self._checkpoint())
            self._wait_for_processes()

    def _listen(self) -> None:
        """Commit the offsets that the connector reads, since it does not commit them itself."""
        from sql.backends.spark.group_offsets import OffsetCommitter

        self._listener = OffsetCommitter(self._place.servers, self._name, self._purged_topics)
        self._place.session.streams.addListener(self._listener)

    def _wait_for_processes(self) -> None:
        """Wait until Spark has the query's Python processes: each has 10 s to start.

        One is for the source; others start with the first batch, which may itself take long.
        """
        wait = time.monotonic() + SOURCE_LIMIT_S
        while self.is_active and self._has_status(INITIALIZING) and time.monotonic() < wait:
            time.sleep(LOOK_S)
        wait = time.monotonic() + FIRST_BATCH_LIMIT_S
        while self.is_active and not self._has_done_a_batch() and time.monotonic() < wait:
            time.sleep(LOOK_S)

    def _has_status(self, message: str) -> bool:
        return bool(self._streaming.status["message"] == message)

    def _has_done_a_batch(self) -> bool:
        return self._streaming.lastProgress is not None or self._has_status(WAITING)

    def stop(self) -> None:
        """Stop after the running batch; offsets and state stay in the checkpoint."""
        if self._streaming is not None:
            self._streaming.stop()
            self._streaming = None
        if self._listener is not None:
            self._place.session.streams.removeListener(self._listener)
            self._listener = None
        self._purge()

    def _purge(self) -> None:
        """Delete the records of repartition topics that were read; never fails."""
        if not self._purged_topics:
            return
        try:
            with admin(self._place.servers) as administration:
                purge_committed(administration, self._name, self._purged_topics)
        except MillstreamError as error:
            logger.warning("could not delete records of %s: %s", self._purged_topics, error)

    def discard_state(self) -> None:
        """Delete the checkpoint, after a stop. A checkpoint that is not local is kept."""
        folder = Path(self._checkpoint())
        if folder.is_dir():
            shutil.rmtree(folder)

    def _checkpoint(self) -> str:
        return f"{self._place.checkpoints}/{self._name}"

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the query has ended; False on a timeout."""
        if self._streaming is None:
            return True
        return bool(self._streaming.awaitTermination(timeout_s))

    def process_all(self) -> None:
        """Wait until all existing records are processed; raises Spark's failure."""
        self._streaming.processAllAvailable()

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        return self._streaming is not None and bool(self._streaming.isActive)

    @property
    def error(self) -> str | None:
        """The reason why it failed, or None."""
        found = None if self._streaming is None else self._streaming.exception()
        return None if found is None else str(found)

    @property
    def progress(self) -> Mapping[str, object]:
        """Spark's report of the last batch: rows, rates, durations."""
        found = None if self._streaming is None else self._streaming.lastProgress
        return {} if found is None else dict(found)

    # --- inside -------------------------------------------------------------------------------

    def _prepared(self, administration: Admin) -> list[PreparedJob]:
        """The jobs with the current topics, including internal ones."""
        counts = self._counts(administration)
        return [_prepared(administration, job, counts) for job in self._jobs]

    def _counts(self, administration: Admin) -> Mapping[str, int]:
        """The number of partitions of all topics; the topics of the jobs must exist."""
        counts = existing_topics(administration)
        needed = {topic for job in self._jobs for topic in job.partition_counts}
        missing = sorted(needed - set(counts))
        if missing:
            raise SqlError(f"topics do not exist: {', '.join(missing)}")
        return counts

    def _starting_offsets(self, administration: Admin, prepared: Sequence[PreparedJob]) -> Offsets:
        """The offsets to start from without a checkpoint."""
        policies = {
            tp: EARLIEST if tp.topic in layout.repartition_topics else self._starting
            for layout in (each.layout for each in prepared)
            for task in layout.tasks()
            for tp in layout.inputs(task)
        }
        return self._offsets(administration, policies)

    def _offsets(self, administration: Admin, policies: Mapping[TopicPartition, str]) -> Offsets:
        """The committed offsets of the group, or those of the reset policy."""
        committed = administration.list_group_offsets(self._name, list(policies)).values
        tree: Offsets = {}
        for tp, policy in policies.items():
            found = committed.get(tp)
            offset = PLACES[policy] if found is None else found.offset
            tree.setdefault(tp.topic, {})[str(tp.partition)] = offset
        return tree

    def _subscription(self, topics: Iterable[str], starting: Offsets) -> Subscription:
        names = tuple(sorted(topics))
        return Subscription(
            self._place.servers,
            names,
            self._name,
            json.dumps({name: starting[name] for name in names}),
            self._place.max_offsets_per_trigger,
            self._place.client,
            self._place.tasks,
            tuple(name for name in names if name in self._purged_topics),
        )

    def _results(self, prepared: Sequence[PreparedJob], read: Read) -> Any:
        """The results of all tasks; tasks with and without stores read their topics separately."""
        plan = plan_of_columns(prepared[0].job) if len(prepared) == 1 else None
        if plan is not None:
            job = prepared[0].job
            partitions = job.partition_counts[plan.topic]
            topics = prepared[0].layout.subscription()
            return written_records(plan, partial(read, topics), partitions, FrameContext.of(job))
        jobs = packed(each.job for each in prepared)
        frames = []
        readers = _readers(prepared, has_stores=False)
        if readers:
            frames.append(read(readers, Staged(StatelessTasks(jobs, readers), OUTPUT)))
        readers = _readers(prepared, has_stores=True)
        if readers:
            grouped = _with_tasks(read(readers), readers).groupBy(TASK)
            processor = TaskProcessor(jobs)
            frames.append(grouped.transformWithStateInPandas(processor, OUTPUT, "Append", "None"))
        first, *others = frames
        for other in others:
            first = first.unionByName(other)
        return first

    def _sink(self, reading: str) -> dict[str, str]:
        """The options of the sink; `reading` is the connector."""
        found = {"bootstrap_servers": self._place.servers, **self._place.client}
        tasks = None if reading == KAFKA else self._place.tasks
        return {**found, "packing": packing(reading, tasks)}


def _counted(job: Job, counts: Mapping[str, int]) -> Job:
    """A job with the numbers of partitions of its topics."""
    return replace(job, partition_counts={name: counts[name] for name in job.partition_counts})


def _prepared(administration: Admin, job: Job, counts: Mapping[str, int]) -> PreparedJob:
    """A job with the partitions of its topics; creates its internal topics."""
    found = _counted(job, counts)
    work = work_of(found.to_text())
    if not work.layout.repartition_topics:
        return PreparedJob(found, work.layout)
    layout = prepare_topics(
        administration,
        # Stores are in Spark's checkpoint: changelogs are not read.
        replace(work.topology, changelogs={}),
        job.application_id,
        TopicSettings(window_retention_extra_ms=0),
        SystemClock(),
    )
    return PreparedJob(found, layout)


def _repartition_topics(prepared: Sequence[PreparedJob]) -> tuple[str, ...]:
    return tuple(sorted({name for each in prepared for name in each.layout.repartition_topics}))


def _readers(prepared: Sequence[PreparedJob], *, has_stores: bool) -> dict[str, list[str]]:
    """The sub-topologies that read each topic, with or without stores."""
    result: dict[str, list[str]] = {}
    for each in prepared:
        for sub in each.layout.topology.sub_topologies:
            if bool(sub.stores) is has_stores:
                name = f"{each.job.application_id}{SEPARATOR}{sub.number}"
                for topic in each.layout.source_topics[sub.number]:
                    result.setdefault(topic, []).append(name)
    return result


def _with_tasks(records: Any, readers: Mapping[str, list[str]]) -> Any:
    """Each record once per task that reads it, with the task's name."""
    from pyspark.sql import functions

    # One literal, however many topics there are; an unused topic has no rows.
    names = functions.from_json(functions.lit(json.dumps(readers)), "map<string, array<string>>")
    name = functions.explode(names[functions.col("topic")])
    rows = records.withColumn("sub_topology", name)
    task = functions.concat_ws("_", "sub_topology", functions.col("partition").cast("string"))
    return rows.withColumn(TASK, task).drop("sub_topology")
