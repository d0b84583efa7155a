"""A worker process is killed again and again: generated orders end in files, once each."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from connect.client import ConnectClient, ConnectRefused
from tests.connect.connectors.files_sink_driver import finished_files
from tests.support.kafka_connect_worker import worker_settings
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import REPOSITORY, wait_until
from tests.support.ports import held_ports

TASKS = 2
SOURCE = {
    "connector.class": "Datagen",
    "tasks.max": str(TASKS),
    "kafka.topic": "orders",
    "quickstart": "orders",
    "rate": "3000",
    "exactly.once.support": "required",
    "topic.creation.default.partitions": "2",
    "topic.creation.default.replication.factor": "1",
}
SINK = {
    "connector.class": "FilesSink",
    "tasks.max": str(TASKS),
    "topics": "orders",
    "flush.size": "200",
    "rotate.schedule.interval.ms": "1000",
    "consumer.override.isolation.level": "read_committed",
    "consumer.override.session.timeout.ms": "6000",
}


class WorkerProcess:
    """`python -m connect`, distributed, on the same port after every kill."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        self._folder = folder
        self._bootstrap = bootstrap
        (self._port,) = held_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        self.client = ConnectClient(f"http://127.0.0.1:{self._port}")

    def start(self) -> None:
        properties = self._folder / "worker.properties"
        settings = worker_settings(self._bootstrap, self._port)
        settings["exactly.once.source.support"] = "enabled"
        properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        with open(self._folder / "worker.log", "ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "connect", str(properties)],
                cwd=REPOSITORY,
                stdout=log,
                stderr=log,
            )
        wait_until(self._answers, "the start of the worker")

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            self.client.names()  # refused until the worker has read its topics
        except ConnectRefused:
            return False
        return True


@contextmanager
def worker_on_a_broker(folder: Path) -> Iterator[WorkerProcess]:
    settings = {"group.initial.rebalance.delay.ms": "0", "group.min.session.timeout.ms": "1000"}
    with MillstreamBroker(folder / "broker", settings=settings) as broker:
        worker = WorkerProcess(folder, broker.bootstrap)
        try:
            worker.start()
            yield worker
        finally:
            worker.kill()


def order_ids(directory: Path) -> list[int]:
    return [
        json.loads(line)["orderid"]
        for path in finished_files(directory)
        for line in path.read_text().splitlines()
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kills", "orders"),
    [(3, 4_000), pytest.param(20, 40_000, marks=[pytest.mark.long, pytest.mark.timeout(1_800)])],
)
def test_orders_of_a_killed_worker_are_in_the_files_exactly_once(
    tmp_path: Path, kills: int, orders: int
) -> None:
    directory = tmp_path / "files"
    random = Random(kills)
    with worker_on_a_broker(tmp_path) as worker:
        worker.client.create("orders", {**SOURCE, "iterations": str(orders)})
        worker.client.create("files", {**SINK, "directory": str(directory)})
        for number in range(kills):
            seen = len(order_ids(directory))
            wanted = min(seen + random.randrange(1, 2 * orders // kills), orders * TASKS - 500)
            wait_until(reached(directory, wanted), f"{wanted} orders before kill {number}")
            worker.kill()
            worker.start()
        wait_until(reached(directory, orders * TASKS), "all orders in files", timeout_s=120.0)
    assert sorted(order_ids(directory)) == list(range(orders * TASKS))


def reached(directory: Path, count: int) -> Callable[[], bool]:
    return lambda: len(order_ids(directory)) >= count
