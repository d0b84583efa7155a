"""A Connect worker in a simulation: no number is lost, and none comes twice with exactly-once."""

from collections.abc import Mapping

import pytest

from broker.client import consumer
from broker.model import TopicPartition
from connect.config.worker_config import WorkerConfig
from connect.errors import NotFound
from connect.plugins import Plugins
from connect.server import ConnectServer
from connect.state.config_store import Config
from millstream.simulation import Simulation
from tests.millstream.simulation.connectors import GATHERED, GATHERING, NUMBERS
from tests.millstream.simulation.restarting import Restarted, Server

COUNT = 60
TOPIC = "numbers"
STRINGS = "org.apache.kafka.connect.storage.StringConverter"
SETTINGS = {
    "key.converter": STRINGS,
    "value.converter": STRINGS,
    "listeners": "",
    "offset.flush.interval.ms": "5000",
    "task.shutdown.graceful.timeout.ms": "5000",
}
DISTRIBUTED = {
    **SETTINGS,
    "group.id": "workers",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "offset.storage.partitions": "2",
    "status.storage.topic": "connect-status",
    "status.storage.partitions": "1",
}
KINDS: Mapping[str, Mapping[str, str]] = {
    "standalone": {**SETTINGS, "offset.storage.file.filename": "/data/offsets.json"},
    "distributed": DISTRIBUTED,
    "exactly once": {
        **DISTRIBUTED,
        "exactly.once.source.support": "enabled",
        "consumer.isolation.level": "read_committed",
    },
}
SOURCE = {"connector.class": NUMBERS, "topic": TOPIC, "count": str(COUNT), "tasks.max": "2"}


class Worker:
    """A worker with a source and a sink, until all numbers have come."""

    def __init__(self, name: str, kind: str) -> None:
        """`name` is where the sink keeps what comes."""
        self.settings = KINDS[kind]
        self.gathered = GATHERED.setdefault(name, [])
        self.gathered.clear()
        self.connectors: dict[str, Config] = {
            "source": SOURCE,
            "sink": {"connector.class": GATHERING, "topics": TOPIC, "into": name},
        }
        self.written: list[int] = []

    def serve(self, server: Server) -> None:
        """Run a worker; a distributed one knows its connectors after a restart."""
        config = WorkerConfig.parse(self.settings)
        plugins = Plugins(modules=["tests"])
        with ConnectServer(
            server.broker, config, plugins=plugins, machine=server.machine
        ) as worker:
            known = worker.herder.connectors()
            server.note("knows", *sorted(known))
            for name, connector in self.connectors.items():
                if name not in known:
                    worker.herder.create(name, {**connector, "name": name})
                    server.note("creates", name)
            while len(set(self.gathered)) < COUNT:
                server.wait(1_000)
            for name in self.connectors:
                server.note("status of", name, state(worker, name))
        self.written = numbers(server)
        server.note("has written", self.written)


def state(worker: ConnectServer, name: str) -> str:
    """What a connector does, if that is known yet."""
    try:
        found = worker.herder.status(name)
    except NotFound:
        return "not known"
    return f"{found.connector.state} {[each.state for each in found.tasks.values()]}"


def numbers(server: Server) -> list[int]:
    """All that was written to the topic and committed."""
    with consumer(
        server.broker, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as reader:
        tp = TopicPartition(TOPIC, 0)
        reader.assign([tp])
        end, found = reader.end_offsets([tp])[tp], []
        while reader.position(tp) < end:
            found += [int(record.value or b"-1") for record in reader.poll(50)]
        return found


def run(seed: int, kind: str) -> str:
    """A worker that is killed; the digest of the history."""
    with Simulation(seed) as simulation:
        worker = Worker(f"{kind} {seed}", kind)
        digest = Restarted(simulation, worker.serve, operations_max=400).run(kills=3)
    assert set(worker.gathered) == set(worker.written) == set(range(COUNT))
    if kind == "exactly once":
        assert len(worker.written) == COUNT
    return digest


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_number_arrives(kind: str) -> None:
    for seed in range(10):
        run(seed, kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_one_seed_is_one_history(kind: str) -> None:
    assert run(1, kind) == run(1, kind)
    assert run(1, kind) != run(2, kind)
