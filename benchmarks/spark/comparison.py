"""The queries of examples/spark_pipeline on Spark, in PySpark, and on the native engine.

All sides read the same topics and write to their own, one after the other in one process. Rates
include the time to start the query; Spark itself is started before.
"""

import argparse
import itertools
import statistics as stats
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path

# Sessions are Any: PySpark has no types here.
from typing import Any

from benchmarks.report import Report
from benchmarks.spark.statements import WORKLOADS, statements
from benchmarks.streams.comparison import broker_for_streams
from broker.client import admin
from broker.client.api import NewTopic
from broker.model import LATEST_TIMESTAMP, TopicPartition
from examples.spark_pipeline.events import PARTITIONS, EventGenerator, write_events
from examples.spark_pipeline.running import wait_for_end
from sql.backends.spark.connectors import KAFKA, OURS
from sql.backends.spark.session import open_session
from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig
from tests.support.peer import PeerMissing
from tests.support.spark_connector import fetch_spark_connector

MASTER = "local[2]"
LIMIT_S = 3_600.0
SEED = 7
UPDATES = "spark.updates"  # emit once per batch, as the hand-written queries do
READING = {"auto.offset.reset": "earliest"}
PER_BATCH = ("tumbling",)
WARM_UP = "filter"

Side = Callable[[str], float]  # measures a workload: rows per second


def measure(report: Report, options: argparse.Namespace) -> None:
    """Measure all workloads on all sides."""
    jars = _jars(report)
    with broker_for_streams() as servers, _session(jars) as spark:
        report.say(f"   writing {options.records:,} events")
        day = datetime.now(UTC).date() - timedelta(days=1)
        write_events(servers, EventGenerator(options.records, SEED, day))
        bench = Bench(spark, servers)
        ours = bench.engine("spark", {"spark.connector": OURS})
        peers: dict[str, Side] = {"PySpark by hand": bench.by_hand}
        if jars:
            peers["the JVM connector"] = bench.engine("spark", {"spark.connector": KAFKA})
        peers["the native engine"] = bench.engine("native", {})
        for side in (ours, *peers.values()):
            side(WARM_UP)
        for workload in WORKLOADS:
            _compare(report, options.rounds, workload, ours, peers)
        per_batch = bench.engine("spark", {"spark.connector": OURS, UPDATES: "per-batch"})
        by_hand = {"PySpark by hand": bench.by_hand}
        for workload in PER_BATCH:
            title = f"{workload}, once per batch"
            _compare(report, options.rounds, workload, per_batch, by_hand, title)


def _compare(
    report: Report,
    rounds: int,
    workload: str,
    ours: Side,
    peers: Mapping[str, Side],
    title: str | None = None,
) -> None:
    rate = stats.median(ours(workload) for _ in range(rounds))
    for name, peer in peers.items():
        theirs = stats.median(peer(workload) for _ in range(rounds))
        report.add(title or workload, "rows/s", rate, theirs, peer=name)


def _jars(report: Report) -> list[Path]:
    try:
        return fetch_spark_connector(version("pyspark"))
    except PeerMissing as reason:
        report.note(f"without the JVM connector: {reason}")
        return []


@contextmanager
def _session(jars: list[Path]) -> Iterator[Any]:
    named = {"spark.jars": ",".join(map(str, jars))} if jars else {}
    spark = open_session(MASTER, {"spark.sql.shuffle.partitions": "2", **named})
    try:
        yield spark
    finally:
        spark.stop()


@dataclass(slots=True)
class Bench:
    """A cluster with the events, and a Spark session."""

    spark: Any
    servers: str
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def engine(self, name: str, settings: dict[str, object]) -> Side:
        """A side that runs our engine, with native queries or with queries on Spark."""

        def run(workload: str) -> float:
            suffix = f"{name}-{next(self._numbers)}"
            sources, queries = statements(workload, suffix)
            given = {**settings, "engine": name, "spark.master": MASTER, **READING}
            config = SqlConfig({**given, "ksql.service.id": f"{suffix}_"})
            with (
                tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder,
                Engine(self.servers, data_directory=folder, config=config) as engine,
                admin(self.servers) as administration,
            ):
                engine.execute(sources)
                started = time.perf_counter()
                engine.execute(queries)
                wait_for_end(engine, administration, limit_s=LIMIT_S)
                return self._rows(workload) / (time.perf_counter() - started)

        return run

    def by_hand(self, workload: str) -> float:
        """Run the hand-written query."""
        from benchmarks.spark.by_hand import BY_HAND, SparkTopics

        topic = f"by-hand-{next(self._numbers)}"
        with admin(self.servers) as administration:
            administration.create_topics([NewTopic(topic, partitions=PARTITIONS)]).all()
        topics = SparkTopics(self.spark, self.servers)
        build, mode = BY_HAND[workload]
        with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
            started = time.perf_counter()
            topics.write(build(topics), topic, folder, mode=mode).awaitTermination()
            return self._rows(workload) / (time.perf_counter() - started)

    def _rows(self, workload: str) -> int:
        """The number of records that a workload reads."""
        _, names = WORKLOADS[workload]
        places = [TopicPartition(name, number) for name in names for number in range(PARTITIONS)]
        with admin(self.servers) as administration:
            ends = administration.list_offsets(dict.fromkeys(places, LATEST_TIMESTAMP)).all()
        return sum(end.offset for end in ends.values())
