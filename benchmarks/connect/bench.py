"""Bench: connectors on a worker and hand-written loops, on one broker in the same run."""

import argparse
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory, gettempdir

from benchmarks.report import Report
from benchmarks.sides import millstream
from broker.client import admin
from broker.client.administration.values import NewTopic
from broker.client.cluster_admin import Admin
from broker.model import TopicPartition
from connect.client import ConnectClient
from connect.config.worker_config import WorkerConfig
from connect.server import ConnectServer

PEER = "by hand"
LATEST = -1
POLL_INTERVAL_S = 0.02
LIMIT_S = 300.0
JSON = "org.apache.kafka.connect.json.JsonConverter"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True)
class Bench:
    """A broker, a worker connected to it, and the report."""

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
        """The number of records in a topic."""
        partition = TopicPartition(topic, 0)
        return self.admin.list_offsets({partition: LATEST})[partition].offset

    def seconds(self, config: dict[str, str], done: Callable[[], int]) -> float:
        """Run a connector; return the seconds for all records, without the time to start."""
        name = f"connector-{next(NUMBERS)}"
        self.connectors.create(name, config)
        try:
            return self._watch(name, done)
        finally:
            self.connectors.delete(name)

    def _watch(self, name: str, done: Callable[[], int]) -> float:
        deadline = time.monotonic() + LIMIT_S
        first, started = 0, 0.0
        while (seen := done()) < self.count:
            if seen and not first:
                first, started = seen, time.perf_counter()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{seen} of {self.count}: {self.connectors.status(name)}")
            time.sleep(POLL_INTERVAL_S)
        if not first:
            raise TimeoutError(
                "the connector finished before the first measurement: use more --records"
            )
        return (time.perf_counter() - started) / (self.count - first) * self.count

    def compare(self, name: str, ours: Callable[[], float], theirs: Callable[[], float]) -> None:
        """Measure both sides alternately, so that other load affects both equally."""
        times = [(ours(), theirs()) for _ in range(self.rounds)]
        mine, other = (median(each) for each in zip(*times, strict=True))
        self.report.add(name, "rows/s", self.count / mine, self.count / other, peer=PEER)


@contextmanager
def bench(report: Report, options: argparse.Namespace, *, share: int) -> Iterator[Bench]:
    """Start a broker and a worker; measure with 1/`share` of the requested records."""
    with millstream() as side, TemporaryDirectory() as folder:
        config = WorkerConfig.parse(
            {
                "bootstrap.servers": side.bootstrap,
                "key.converter": JSON,
                "value.converter": JSON,
                "offset.storage.file.filename": str(Path(folder) / "offsets"),
                "listeners": "http://127.0.0.1:0",
                "connector.allowed.paths": gettempdir(),
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
                options.records // share,
                options.rounds,
            )
