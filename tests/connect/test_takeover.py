"""Kafka Connect goes on where our worker ended, and our worker where Kafka Connect ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from connect.client import ConnectClient, ConnectRefused
from tests.connect.test_worker_process import file_sink, file_source, wait_for
from tests.support.kafka_connect_worker import KafkaConnect, skip_without_kafka_connect
from tests.support.millstream_broker import MillstreamBroker
from tests.support.millstream_worker import MillstreamWorker
from tests.support.peer import wait_until

pytestmark = [pytest.mark.peer, pytest.mark.long]

CONFLICT = 409


def append(file: Path, first: int) -> None:
    with file.open("a") as out:
        out.write("".join(f"line {n}\n" for n in range(first, first + 50)))


@contextmanager
def ours(folder: Path, broker: MillstreamBroker) -> Iterator[ConnectClient]:
    with MillstreamWorker(folder, bootstrap=broker.bootstrap) as worker:
        yield worker.client


@contextmanager
def kafkas(folder: Path, broker: MillstreamBroker) -> Iterator[ConnectClient]:
    with KafkaConnect(folder, bootstrap=broker.bootstrap) as worker:
        yield ConnectClient(worker.url)


def asked(client: ConnectClient, name: str, what: str) -> None:
    """Ask for a state; workers of Kafka refuse while they share out their work."""

    def taken() -> bool:
        try:
            getattr(client, what)(name)
        except ConnectRefused as error:
            if error.status != CONFLICT:
                raise
            return False
        return True

    wait_until(taken, f"{what} of {name}")


def test_workers_take_over_from_each_other(tmp_path: Path) -> None:
    skip_without_kafka_connect()
    lines, copy = tmp_path / "in.txt", tmp_path / "out.txt"
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with MillstreamBroker(tmp_path / "broker", settings=settings) as broker:
        append(lines, 0)
        with ours(tmp_path / "first", broker) as client:
            client.create("source", file_source(lines, "lines"))
            client.create("sink", file_sink(copy, "lines"))
            client.create("paused", file_source(lines, "other"))
            wait_for(client, "paused", "RUNNING", "RUNNING")
            client.pause("paused")
            client.create("stopped", file_source(lines, "other"), initial_state="STOPPED")
            client.create("gone", file_source(lines, "other"))
            client.delete("gone")
            wait_copied(lines, copy)
            wanted = {name: client.describe(name) for name in client.names()}

        append(lines, 50)
        with kafkas(tmp_path / "second", broker) as client:
            check(client, wanted)
            wait_copied(lines, copy)
            assert client.topics("source") == ["lines"]
            asked(client, "paused", "resume")
            wait_for(client, "paused", "RUNNING", "RUNNING")
            asked(client, "paused", "pause")
            wait_for(client, "paused", "PAUSED", "PAUSED")
            wanted = {name: client.describe(name) for name in client.names()}

        append(lines, 100)
        with ours(tmp_path / "third", broker) as client:
            check(client, wanted)
            wait_copied(lines, copy)
            assert client.topics("sink") == ["lines"]


def wait_copied(lines: Path, copy: Path) -> None:
    """Everything arrives, once and in its order: all workers knew where to go on."""
    wait_until(lambda: copy.exists() and copy.read_text() == lines.read_text(), "the copy")


def check(client: ConnectClient, wanted: dict[str, object]) -> None:
    """All connectors are there, and do what they did."""
    assert {name: client.describe(name) for name in client.names()} == wanted
    wait_for(client, "source", "RUNNING", "RUNNING")
    wait_for(client, "sink", "RUNNING", "RUNNING")
    wait_for(client, "paused", "PAUSED", "PAUSED")
    wait_for(client, "stopped", "STOPPED")
