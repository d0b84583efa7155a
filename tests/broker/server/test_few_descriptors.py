"""A broker whose process may open few files: idle clients must not stop the logs."""

import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from broker import descriptors
from broker.client import admin, producer
from broker.client.api import NewTopic
from broker.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.broker.server.conftest import StartServer
from tests.support.raw_client import RawClient

LIMIT = 256
PARTITIONS = 8


@pytest.mark.slow
@pytest.mark.parametrize("durability", ["kafka", "fsync"])
def test_a_flood_of_idle_connections_stops_no_partition(tmp_path: Path, durability: str) -> None:
    command = [sys.executable, "-m", "broker", "--data-dir", str(tmp_path), "--port", "0"]
    with subprocess.Popen(
        [*command, "--config", f"durability={durability}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT)),
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        try:
            produced = _produce_during_flood(address)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)
    assert produced == 40 * PARTITIONS
    assert (tmp_path / ".kafka_cleanshutdown").exists()


@pytest.mark.slow
def test_a_broker_may_open_as_many_files_as_the_hard_limit_allows(tmp_path: Path) -> None:
    hard = 2 * LIMIT
    with subprocess.Popen(
        [sys.executable, "-m", "broker", "--data-dir", str(tmp_path), "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, hard)),
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # it listens
        limits = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    assert limits == (hard, hard)


def _produce_during_flood(address: str) -> int:
    host, port = address.split(":")
    with admin(address) as cluster, producer(address, linger_ms=0) as out:
        cluster.create_topics([NewTopic("t", PARTITIONS, configs={"segment.bytes": "2000"})])
        acknowledged = 0
        for partition in range(PARTITIONS):
            out.send("t", b"first", partition=partition).result(60_000)
        flood = []
        for _ in range(2 * LIMIT):
            flood.append(socket.create_connection((host, int(port))))
        for number in range(40):
            sent = [
                out.send("t", b"%d" % number * 200, partition=partition)
                for partition in range(PARTITIONS)
            ]
            acknowledged += sum(1 for future in sent if future.result(60_000) is not None)
        for connection in flood:
            connection.close()
    return acknowledged


def test_connections_leave_descriptors_for_the_logs(
    start_server: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descriptors, "connections_max", lambda: 2)
    server = start_server()
    with RawClient(server.bootstrap) as one, RawClient(server.bootstrap) as two:
        one.ask(MetadataRequest(None), MetadataResponse)
        two.ask(MetadataRequest(None), MetadataResponse)
        with RawClient(server.bootstrap) as three:
            assert three.is_closed()
    assert server._broker.metrics.connections_refused == 1
