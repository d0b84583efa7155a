"""Runs the pipeline to the end of the existing data, on either engine."""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from broker import Broker, BrokerConfig, Server, TopicPartition
from broker.client import Admin, admin
from broker.model import LATEST_TIMESTAMP
from sql import Engine, SqlConfig
from sql.plan import topics_read

PIPELINE = Path(__file__).with_name("pipeline.sql")
POLL_INTERVAL_S = 0.2
BROKER = {"listeners": "PLAINTEXT://127.0.0.1:0", "log.retention.ms": "-1"}


class Unfinished(Exception):
    """The pipeline did not process all of its input."""


@dataclass(frozen=True, slots=True)
class QueryInput:
    """A query, and the topics whose ends it must reach."""

    group: str
    topics: tuple[str, ...]


@contextmanager
def own_broker() -> Iterator[str]:
    """An embedded broker for one run; Spark's workers reach it through its port."""
    config = BrokerConfig.from_properties(BROKER)
    with (
        tempfile.TemporaryDirectory(prefix="spark-pipeline-") as folder,
        Broker(config, data_directory=folder) as broker,
        Server(broker) as server,
    ):
        yield server.bootstrap


def run_pipeline(bootstrap: str, settings: dict[str, object], *, limit_s: float) -> float:
    """Run all queries to the end of their input; returns the seconds it took."""
    with (
        tempfile.TemporaryDirectory(prefix="spark-pipeline-") as folder,
        Engine(bootstrap, data_directory=folder, config=SqlConfig(settings)) as engine,
        admin(bootstrap) as administration,
    ):
        started = time.monotonic()
        engine.execute(PIPELINE.read_text())
        wait_for_end(engine, administration, limit_s=limit_s)
        return time.monotonic() - started


def wait_for_end(engine: Engine, administration: Admin, *, limit_s: float) -> None:
    """Wait until all queries have reached the end of their input."""
    deadline = time.monotonic() + limit_s
    while not _is_done(administration, _inputs(engine, administration)):
        if time.monotonic() > deadline:
            raise Unfinished(
                f"not all records were processed in {limit_s:.0f} s", *_failures(engine)
            )
        time.sleep(POLL_INTERVAL_S)


def _failures(engine: Engine) -> list[str]:
    """The last failure of each query that the engine has restarted."""
    found = [(each.info.id, each.runtime.failures) for each in engine.commands.running.values()]
    return [f"{name}: {failures[-1].message}" for name, failures in found if failures]


def _inputs(engine: Engine, administration: Admin) -> list[QueryInput]:
    """The input of each query: its sources and its repartition topics."""
    existing = administration.list_topics()
    inputs = []
    for running in engine.commands.running.values():
        group = running.runtime.application_id
        own = [name for name in existing if name.startswith(f"{group}-")]
        repartition = [name for name in own if name.endswith("-repartition")]
        inputs.append(QueryInput(group, (*topics_read(running.info.planned.plan), *repartition)))
    return inputs


def _is_done(administration: Admin, inputs: list[QueryInput]) -> bool:
    """Whether all groups have reached the ends of their topics.

    Committed offsets are read before the end offsets: if they are equal, no record was on its way
    between two queries in the meantime.
    """
    committed = {each.group: administration.list_group_offsets(each.group) for each in inputs}
    for each in inputs:
        described = administration.describe_topics(each.topics)
        partitions = [
            TopicPartition(topic, number)
            for topic in each.topics
            for number in described[topic].partitions
        ]
        ends = administration.list_offsets(
            dict.fromkeys(partitions, LATEST_TIMESTAMP), committed=True
        )
        for tp, end in ends.all().items():
            position = committed[each.group].values.get(tp)
            if end.offset > (0 if position is None else position.offset):
                return False
    return True
