"""The environment of cases on Spark: one session, a broker for its workers, all registries."""

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from broker.broker import Broker
from broker.client.administration.values import NewTopic
from broker.client.opening import admin, consumer, producer
from broker.config import BrokerConfig
from broker.model import TopicPartition
from broker.rest import HttpServer
from broker.server import Server
from sql.backends.spark.connectors import OURS
from sql.backends.spark.job import Job
from sql.backends.spark.session import open_session
from sql.testing.memory_registry import MemoryRegistry
from sql.testing.query_runs import TopicRecord
from sql.testing.served_registry import ServedRegistries

if TYPE_CHECKING:
    from sql.backends.spark.query import SparkQuery

POLL_MS = 1_000
BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "listeners": "PLAINTEXT://127.0.0.1:0",
    # Cases have timestamps in the distant past and future.
    "log.retention.ms": "-1",
    "log.message.timestamp.after.max.ms": "9223372036854775807",
}
SESSION_SETTINGS = {
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.pollingDelay": "50ms",
}


class SparkEnvironment:
    """A session and a broker for many cases; the topics of each have a prefix."""

    # Any: a SparkSession.
    def __init__(self, session: Any, broker: Broker, servers: str, folder: Path) -> None:
        self._session = session
        self._broker = broker
        self._servers = servers
        self._folder = folder
        self._numbers = count(1)
        self._registries = ServedRegistries()
        self._http = HttpServer(
            self._registries.application, listen="127.0.0.1:0", name="case-registries"
        )
        self._http.start()
        self._administration = admin(broker)
        self._producer = producer(broker)
        self._reader = consumer(
            broker, isolation_level="read_committed", auto_offset_reset="earliest"
        )

    def close(self) -> None:
        """Close the clients; the session stays open."""
        self._reader.close()
        self._producer.close()
        self._administration.close()
        self._http.close()

    def new_name(self, kind: str) -> str:
        """A unique name."""
        return f"{kind}{next(self._numbers)}"

    def serve(self, case: str, registry: MemoryRegistry) -> str:
        """The URL of a case's registry."""
        self._registries.add(case, registry)
        return f"http://{self._http.address}/{case}"

    def forget(self, case: str) -> None:
        """Stop serving its registry."""
        self._registries.remove(case)

    # --- topics -----------------------------------------------------------------------------

    def create(self, topics: Iterable[str]) -> None:
        """Create topics with one partition."""
        self._administration.create_topics([NewTopic(name, 1, 1) for name in topics]).all()

    def delete_all(self, beginnings: tuple[str, ...]) -> None:
        """Delete the topics whose names have one of these prefixes."""
        names = [each for each in self._administration.list_topics() if each.startswith(beginnings)]
        self._administration.delete_topics(names).all()

    def produce(self, records: Iterable[tuple[str, TopicRecord]]) -> None:
        """Write records, and wait until they are acknowledged."""
        sent = [
            self._producer.send(
                topic,
                record.value,
                record.key,
                partition=0,
                timestamp_ms=record.timestamp_ms,
                headers=record.headers,
            )
            for topic, record in records
        ]
        self._producer.flush()
        for each in sent:
            each.result()

    def records(self, topics: Iterable[str]) -> dict[str, list[TopicRecord]]:
        """All committed records of topics."""
        places = [TopicPartition(topic, 0) for topic in topics]
        result: dict[str, list[TopicRecord]] = {place.topic: [] for place in places}
        self._reader.assign(places)
        self._reader.seek_to_beginning(places)
        ends = self._reader.end_offsets(places)
        while any(self._reader.position(place) < ends[place] for place in places):
            for each in self._reader.poll(POLL_MS):
                record = TopicRecord(each.key, each.value, each.timestamp_ms, each.headers)
                result[each.topic].append(record)
        return result

    # --- queries ----------------------------------------------------------------------------

    def query(self, jobs: Sequence[Job]) -> "SparkQuery":
        """Queries as one Spark query; nothing runs yet."""
        from sql.backends.spark.query import SparkPlace, SparkQuery

        place = SparkPlace(
            self._session,
            self._servers,
            self._folder / "checkpoints",
            connector=OURS,
            tasks=self._session.sparkContext.defaultParallelism,
        )
        return SparkQuery(jobs, place, name=self.new_name("cases"), starting="earliest")

    def process_all(self, query: "SparkQuery", topics: Iterable[str]) -> None:
        """Wait until a query has read its topics to their ends, including those that it writes."""
        places = [TopicPartition(topic, 0) for topic in topics]
        while True:
            query.process_all()
            ends = self._reader.end_offsets(places)
            reached = _end_offsets(query.progress)
            if all(reached.get(place.topic, 0) >= end for place, end in ends.items()):
                return


def _end_offsets(progress: Mapping[str, Any]) -> dict[str, int]:
    """The end offsets of each topic in Spark's report of a batch."""
    result: dict[str, int] = {}
    for source in progress.get("sources", ()):
        for topic, partitions in json.loads(source["endOffset"]).items():
            result[topic] = partitions["0"]
    return result


@contextmanager
def spark_environment(jobs: int | None) -> Iterator[SparkEnvironment]:
    """A separate broker, and a Spark session with this number of tasks; default: all CPUs."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(
            BrokerConfig.from_properties(BROKER_SETTINGS), data_directory=f"{folder}/broker"
        ) as broker,
        Server(broker) as server,
    ):
        master = f"local[{jobs or '*'}]"
        session = open_session(master, SESSION_SETTINGS, log=Path(folder) / "spark.log")
        opened = SparkEnvironment(session, broker, server.bootstrap, Path(folder))
        try:
            yield opened
        finally:
            opened.close()
