"""JDBC and files: connectors on a worker, and the same by hand, on one broker in the same run."""

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.connect import by_hand
from benchmarks.connect.orders import Database, databases
from benchmarks.report import Report
from benchmarks.sides import millstream
from broker.client import admin
from broker.client.administration.values import NewTopic
from broker.client.api import Admin
from broker.model import TopicPartition
from connect.client import ConnectClient
from connect.server import ConnectServer
from connect.worker_config import WorkerConfig

PEER = "by hand"
# The option is for larger things than connectors.
SHARE_OF_RECORDS = 10
LATEST = -1
LOOK_S = 0.05
PATIENCE_S = 300.0
JSON = "org.apache.kafka.connect.json.JsonConverter"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True)
class Bench:
    """A broker, a worker on it, and what is measured."""

    report: Report
    bootstrap: str
    admin: Admin
    connectors: ConnectClient
    count: int
    rounds: int

    def new_topic(self) -> str:
        """A topic of one partition."""
        name = f"bench-{next(NUMBERS)}"
        self.admin.create_topics([NewTopic(name, 1, 1)])
        return name

    def records(self, topic: str) -> int:
        """How many records a topic has."""
        partition = TopicPartition(topic, 0)
        return self.admin.list_offsets({partition: LATEST})[partition].offset

    def seconds(self, config: dict[str, str], done: Callable[[], int]) -> float:
        """Runs a connector until all is done; the time from the first records on, for all."""
        name = f"connector-{next(NUMBERS)}"
        self.connectors.create(name, config)
        try:
            return self._watch(name, done)
        finally:
            self.connectors.delete(name)

    def _watch(self, name: str, done: Callable[[], int]) -> float:
        deadline = time.monotonic() + PATIENCE_S
        first, started = 0, 0.0
        while (seen := done()) < self.count:
            if seen and not first:
                first, started = seen, time.perf_counter()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{seen} of {self.count}: {self.connectors.status(name)}")
            time.sleep(LOOK_S)
        if not first:
            raise TimeoutError("all was done before the first look: give more --records")
        return (time.perf_counter() - started) / (self.count - first) * self.count

    def compare(self, name: str, ours: Callable[[], float], theirs: Callable[[], float]) -> None:
        """Both sides in turn, so that a noisy machine troubles both."""
        times = [(ours(), theirs()) for _ in range(self.rounds)]
        mine, other = (median(each) for each in zip(*times, strict=True))
        self.report.add(name, "rows/s", self.count / mine, self.count / other, peer=PEER)


@contextmanager
def bench(report: Report, options: argparse.Namespace) -> Iterator[Bench]:
    """Everything that runs while connectors are measured."""
    with millstream() as side, TemporaryDirectory() as folder:
        config = WorkerConfig.parse(
            {
                "bootstrap.servers": side.bootstrap,
                "key.converter": JSON,
                "value.converter": JSON,
                "offset.storage.file.filename": str(Path(folder) / "offsets"),
                "listeners": "http://127.0.0.1:0",
            }
        )
        with (
            admin(side.bootstrap) as administration,
            ConnectServer(side.bootstrap, config) as server,
        ):
            yield Bench(
                report,
                side.bootstrap,
                administration,
                ConnectClient(server.url),
                options.records // SHARE_OF_RECORDS,
                options.rounds,
            )


def measure_jdbc(report: Report, options: argparse.Namespace) -> None:
    """Tables to topics and topics to tables, in every database."""
    with bench(report, options) as running:
        for database in databases(report):
            database.make_table("orders")
            database.fill("orders", running.count)
            _measure_source(running, database)
            _measure_sink(running, database)


def _source(database: Database, topic: str, *, schemas: bool) -> dict[str, str]:
    return {
        "connector.class": "JdbcSource",
        **database.settings,
        "query": "SELECT * FROM orders",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": topic,
        "batch.max.rows": "2000",
        "value.converter": JSON,
        "value.converter.schemas.enable": "true" if schemas else "false",
    }


def _measure_source(running: Bench, database: Database) -> None:
    def ours() -> float:
        topic = running.new_topic()
        config = _source(database, topic, schemas=False)
        return running.seconds(config, lambda: running.records(topic))

    def theirs() -> float:
        return by_hand.table_to_topic(running.bootstrap, database, running.new_topic())

    running.compare(f"{database.name}: JDBC source", ours, theirs)


def _measure_sink(running: Bench, database: Database) -> None:
    topic = running.new_topic()
    running.seconds(_source(database, topic, schemas=True), lambda: running.records(topic))
    config = {
        "connector.class": "JdbcSink",
        **database.settings,
        "topics": topic,
        "table.name.format": "copied",
        "insert.mode": "upsert",
        "pk.mode": "record_value",
        "pk.fields": "id",
        "consumer.override.max.poll.records": "3000",
        "value.converter": JSON,
        "value.converter.schemas.enable": "true",
    }

    def ours() -> float:
        database.make_table("copied")
        return running.seconds(config, lambda: database.count("copied"))

    def theirs() -> float:
        database.make_table("copied")
        return by_hand.topic_to_table(running.bootstrap, topic, database, running.count)

    running.compare(f"{database.name}: JDBC sink", ours, theirs)


def measure_files(report: Report, options: argparse.Namespace) -> None:
    """Lines of a file to a topic, and back."""
    with bench(report, options) as running, TemporaryDirectory() as folder:
        file, copy = Path(folder) / "lines", Path(folder) / "copy"
        text = "".join(
            f"line {number} of a file of many lines\n" for number in range(running.count)
        )
        file.write_text(text)
        topic = running.new_topic()
        by_hand.file_to_topic(running.bootstrap, file, topic)
        running.compare(
            "FileStream source",
            lambda: _file_source(running, file),
            lambda: by_hand.file_to_topic(running.bootstrap, file, running.new_topic()),
        )
        running.compare(
            "FileStream sink",
            lambda: _file_sink(running, topic, copy),
            lambda: by_hand.topic_to_file(running.bootstrap, topic, copy, running.count),
        )
        assert copy.read_bytes() == file.read_bytes(), "the copy is not the file"


def _file_source(running: Bench, file: Path) -> float:
    topic = running.new_topic()
    config = {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": topic,
        "value.converter": STRINGS,
    }
    return running.seconds(config, lambda: running.records(topic))


def _file_sink(running: Bench, topic: str, copy: Path) -> float:
    copy.unlink(missing_ok=True)
    config = {
        "connector.class": "FileStreamSink",
        "file": str(copy),
        "topics": topic,
        "value.converter": STRINGS,
    }
    return running.seconds(config, lambda: _lines(copy))


def _lines(file: Path) -> int:
    return file.read_bytes().count(b"\n") if file.exists() else 0
