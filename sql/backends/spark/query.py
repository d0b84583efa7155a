"""SparkQuery: a persistent query as one streaming query of Spark.

    source (all topics that the topology reads) -> task of each record
        tasks with stores      groupBy(task).transformWithState(TaskProcessor)
        tasks without          mapInPandas
    -> sink (all topics that it writes, in one transaction per Spark task and batch)

What one sub-topology writes for another goes through its repartition topic, as in an application:
it is read with the next batch.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from broker.client import admin
from broker.client.api import Admin
from sql.backends.spark.job import Job
from sql.backends.spark.options import EARLIEST, LATEST
from sql.backends.spark.processor import OUTPUT, TaskProcessor, stateless_batches
from sql.backends.spark.task_work import work_of
from sql.errors import SqlError
from streams.runtime.internal_topics import existing_topics, prepare_topics
from streams.runtime.partitions import Layout

SOURCE = "millstream"
PLACES = {EARLIEST: -2, LATEST: -1}
TASK = "task"


@dataclass(frozen=True, slots=True)
class SparkPlace:
    """Where a query runs, reads and keeps its state."""

    session: Any  # a SparkSession
    servers: str
    checkpoints: Path | str
    client: Mapping[str, str] = field(default_factory=dict)  # "kafka." settings
    trigger: Mapping[str, object] = field(default_factory=lambda: {"processingTime": "0 seconds"})
    max_offsets_per_trigger: int | None = None


class SparkQuery:
    """One query; `start` may be called again after `stop`, and goes on from the checkpoint."""

    def __init__(self, job: Job, place: SparkPlace, *, starting: str = LATEST) -> None:
        """Nothing runs yet.

        `starting` says where topics are read from the first time, "earliest" or "latest", if the
        query's group has committed nothing yet.
        """
        self._job = job
        self._place = place
        self._starting = starting
        self._streaming: Any = None  # Any: Spark's StreamingQuery

    def start(self) -> None:
        """Make the internal topics and begin."""
        with admin(self._place.servers) as administration:
            layout, job = self._prepared(administration)
            starting = self._starting_offsets(administration, layout)
        frame = self._results(self._records(layout, starting), layout, job)
        self._streaming = (
            frame.writeStream.format(SOURCE)
            .options(**self._client())
            .option("sink_id", job.application_id)
            .option("checkpointLocation", self._checkpoint())
            .queryName(job.application_id)
            .outputMode("append")
            .trigger(**self._place.trigger)
            .start()
        )

    def stop(self) -> None:
        """End after the batch that runs; offsets and state stay in the checkpoint."""
        if self._streaming is not None:
            self._streaming.stop()
            self._streaming = None

    def discard_state(self) -> None:
        """Delete the checkpoint; only when it has stopped. One that is not local stays."""
        folder = Path(self._checkpoint())
        if folder.is_dir():
            shutil.rmtree(folder)

    def _checkpoint(self) -> str:
        return f"{self._place.checkpoints}/{self._job.application_id}"

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the query has ended by itself; False when the time was up first."""
        if self._streaming is None:
            return True
        return bool(self._streaming.awaitTermination(timeout_s))

    @property
    def is_active(self) -> bool:
        """Whether it runs."""
        return self._streaming is not None and bool(self._streaming.isActive)

    @property
    def error(self) -> str | None:
        """Why it ended, if something went wrong."""
        found = None if self._streaming is None else self._streaming.exception()
        return None if found is None else str(found)

    @property
    def progress(self) -> Mapping[str, object]:
        """Spark's report of the last batch: rows, rates, durations."""
        found = None if self._streaming is None else self._streaming.lastProgress
        return {} if found is None else dict(found)

    # --- inside -------------------------------------------------------------------------------

    def _prepared(self, administration: Admin) -> tuple[Layout, Job]:
        """The layout over the topics as they are, with the internal ones."""
        counts = existing_topics(administration)
        missing = sorted(set(self._job.partition_counts) - set(counts))
        if missing:
            raise SqlError(f"topics do not exist: {', '.join(missing)}")
        named = {name: counts[name] for name in self._job.partition_counts}
        job = replace(self._job, partition_counts=named)
        topology = work_of(job.to_text()).topology
        # Stores are in Spark's checkpoint: nobody reads changelogs.
        layout = prepare_topics(
            administration,
            replace(topology, changelogs={}),
            job.application_id,
            window_retention_extra_ms=0,
        )
        return layout, job

    def _starting_offsets(self, administration: Admin, layout: Layout) -> str:
        """Where to read from without a checkpoint: what the group says, or the policy."""
        places = [tp for task in layout.tasks() for tp in layout.inputs(task)]
        committed = administration.list_group_offsets(self._job.application_id, places).values
        tree: dict[str, dict[str, int]] = {}
        for tp in places:
            policy = EARLIEST if tp.topic in layout.repartition_topics else self._starting
            found = committed.get(tp)
            offset = PLACES[policy] if found is None else found.offset
            tree.setdefault(tp.topic, {})[str(tp.partition)] = offset
        return json.dumps(tree)

    def _records(self, layout: Layout, starting: str) -> Any:
        reading = (
            self._place.session.readStream.format(SOURCE)
            .options(**self._client())
            .option("topics", ",".join(sorted(layout.subscription())))
            .option("group_id", self._job.application_id)
            .option("starting_offsets", starting)
        )
        if self._place.max_offsets_per_trigger is not None:
            limit = str(self._place.max_offsets_per_trigger)
            reading = reading.option("max_offsets_per_trigger", limit)
        return reading.load()

    def _results(self, records: Any, layout: Layout, job: Job) -> Any:
        """What all tasks write."""
        frames = []
        for has_stores in (False, True):
            readers = _readers(layout, has_stores=has_stores)
            if readers:
                rows = _with_tasks(records, readers)
                frames.append(_processed(rows, job.to_text(), has_stores=has_stores))
        first, *others = frames
        for other in others:
            first = first.unionByName(other)
        return first

    def _client(self) -> dict[str, str]:
        return {"bootstrap_servers": self._place.servers, **self._place.client}


def _readers(layout: Layout, *, has_stores: bool) -> dict[str, list[int]]:
    """The sub-topologies that read each topic: those with stores, or those without."""
    found: dict[str, list[int]] = {}
    for sub in layout.topology.sub_topologies:
        if bool(sub.stores) is has_stores:
            for topic in layout.source_topics[sub.number]:
                found.setdefault(topic, []).append(sub.number)
    return found


def _with_tasks(records: Any, readers: Mapping[str, list[int]]) -> Any:
    """Each record once for each task that reads it, with the task's name."""
    from pyspark.sql import functions

    pairs: list[Any] = []
    for topic, numbers in readers.items():
        values = functions.array(*(functions.lit(str(number)) for number in numbers))
        pairs += [functions.lit(topic), values]
    number = functions.explode(functions.create_map(*pairs)[functions.col("topic")])
    rows = records.where(functions.col("topic").isin(list(readers)))
    rows = rows.withColumn("sub_topology", number)
    task = functions.concat_ws("_", "sub_topology", functions.col("partition").cast("string"))
    return rows.withColumn(TASK, task).drop("sub_topology")


def _processed(rows: Any, job: str, *, has_stores: bool) -> Any:
    if has_stores:
        grouped = rows.groupBy(TASK)
        return grouped.transformWithStateInPandas(TaskProcessor(job), OUTPUT, "Append", "None")

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        return stateless_batches(job, batches)

    return rows.mapInPandas(run, OUTPUT)
