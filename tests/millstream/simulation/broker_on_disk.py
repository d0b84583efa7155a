"""A broker on a simulated disk, its client, and what that client was promised."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from broker.broker import Broker
from broker.client.api import NewTopic, OffsetAndMetadata, RecordMetadata
from broker.client.cluster import Cluster
from broker.client.cluster_admin import Admin
from broker.client.config import ProducerConfig
from broker.client.consumer_config import ConsumerConfig
from broker.client.embedded import EmbeddedTransport
from broker.client.record_consumer import Consumer
from broker.client.record_producer import Producer
from broker.config import BrokerConfig
from broker.machine import Machine
from broker.model import TopicPartition
from millstream.simulation import Simulation
from millstream.simulation.disk import SimulatedDisk

FOLDER = "/var/lib/broker"
GROUP = "readers"
ROUND_MS = 4_000

End = Literal["kill", "power loss"]


@dataclass
class Promised:
    """What was acknowledged: records by their place, topics, committed offsets."""

    records: dict[tuple[str, int, int], bytes] = field(default_factory=dict)
    topics: dict[str, int] = field(default_factory=dict)
    committed: dict[TopicPartition, int] = field(default_factory=dict)


class BrokerOnDisk:
    """Starts brokers one after another on the same disk, and ends each as a fault would."""

    def __init__(self, simulation: Simulation, config: BrokerConfig) -> None:
        """Nothing runs yet."""
        self.simulation = simulation
        self.disk = SimulatedDisk(simulation, "broker")
        self.random = simulation.random("workload")
        self.config = config
        self.promised = Promised()
        self.sent = 0
        self.rounds = 0

    def round(self, end: End) -> None:
        """Let a broker and its client run for a while, and end it: at a time, or in a write."""
        simulation, random = self.simulation, self.random
        self.rounds += 1
        process = simulation.process("broker")
        machine = replace(simulation.machine(process), files=self.disk.files(process))
        kill = partial(simulation.kill, process)
        stop: Callable[[], None] = self.disk.power_loss if end == "power loss" else kill
        if random.random() < 0.5:
            self.disk.stop_after(process, random.randint(1, 400), stop)
        simulation.start(process, "main", lambda: self._serve(machine))
        simulation.run(for_ms=random.randint(1, ROUND_MS))
        if process.is_alive:
            stop()

    def check(self) -> None:
        """Start a broker that nothing happens to, and look at all that was promised."""
        process = self.simulation.process("broker")
        checked: list[int] = []

        def body() -> None:
            machine = replace(self.simulation.machine(process), files=self.disk.files(process))
            with Broker(self.config, machine=machine, data_directory=FOLDER) as broker:
                self._check(broker, machine)
            checked.append(1)

        self.simulation.start(process, "main", body)
        self.simulation.run(for_ms=120_000)
        crashed = [repr(error) for _, error in self.simulation.scheduler.crashed]
        assert checked, (crashed, self.simulation.history.last(40))
        assert not crashed, crashed

    # --- in the process -------------------------------------------------------------------------

    def _serve(self, machine: Machine) -> None:
        broker = Broker(self.config, machine=machine, data_directory=FOLDER).start()
        self._check(broker, machine)
        self._make_topics(broker, machine)
        producer = Producer(_cluster(broker, machine), ProducerConfig(linger_ms=2))
        while True:
            self._produce(producer)
            if self.random.random() < 0.2:
                producer.flush()
                self._commit(broker, machine)
            self.simulation.scheduler.sleep(self.random.randint(0, 100_000))

    def _make_topics(self, broker: Broker, machine: Machine) -> None:
        if self.promised.topics and self.random.random() < 0.5:
            return
        name = f"topic-{self.rounds}"
        count = self.random.randint(1, 3)
        with Admin(_cluster(broker, machine)) as admin:
            admin.create_topics([NewTopic(name, count)]).all()
        self.promised.topics[name] = count
        self.simulation.history.add("client", "created", name, count)

    def _produce(self, producer: Producer) -> None:
        for _ in range(self.random.randint(1, 8)):
            name = self.random.choice(list(self.promised.topics))
            partition = self.random.randrange(self.promised.topics[name])
            value = b"%d " % self.sent + b"x" * self.random.choice((0, 10, 600, 3000))
            self.sent += 1
            producer.send(
                name, value, partition=partition, callback=partial(self._acknowledged, value)
            )

    def _acknowledged(
        self, value: bytes, written: RecordMetadata | None, error: BaseException | None
    ) -> None:
        if written is not None:
            self.promised.records[written[:3]] = value
            self.simulation.history.add("client", "acknowledged", *written[:3])

    def _commit(self, broker: Broker, machine: Machine) -> None:
        name = self.random.choice(list(self.promised.topics))
        partition = TopicPartition(name, 0)
        offset = self.promised.committed.get(partition, 0) + self.random.randint(1, 5)
        with Admin(_cluster(broker, machine)) as admin:
            admin.alter_group_offsets(GROUP, {partition: OffsetAndMetadata(offset)}).all()
        self.promised.committed[partition] = offset
        self.simulation.history.add("client", "committed", partition, offset)

    def _check(self, broker: Broker, machine: Machine) -> None:
        """Compare what the broker has with what was promised."""
        promised = self.promised
        cluster = _cluster(broker, machine)
        with Admin(cluster) as admin:
            names = admin.list_topics()
            missing = [name for name in promised.topics if name not in names]
            assert not missing, f"topics {missing} are gone"
            if promised.committed:
                found = admin.list_group_offsets(GROUP)
                for partition, offset in promised.committed.items():
                    assert partition in found.values, f"no offset of {partition}"
                    assert found[partition].offset >= offset, f"offset of {partition} went back"
        there = dict(self._records(broker, machine))
        for place, value in promised.records.items():
            assert there.get(place) == value, f"{place} holds {there.get(place)!r}, not {value!r}"
        self.simulation.history.add("client", "checked", len(promised.records), len(there))

    def _records(
        self, broker: Broker, machine: Machine
    ) -> Iterator[tuple[tuple[str, int, int], bytes]]:
        reader = Consumer(
            _cluster(broker, machine), ConsumerConfig(auto_offset_reset="earliest"), None
        )
        partitions = [
            TopicPartition(name, number)
            for name, count in self.promised.topics.items()
            for number in range(count)
        ]
        ends = reader.end_offsets(partitions)
        reader.assign(partitions)
        while any(reader.position(each) < ends[each] for each in partitions):
            for record in reader.poll(timeout_ms=1_000):
                assert record.value is not None
                yield (record.topic, record.partition, record.offset), record.value
        reader.close()


def _cluster(broker: Broker, machine: Machine) -> Cluster:
    return Cluster(
        EmbeddedTransport(broker, clock=machine.clock), clock=machine.clock, random=machine.random
    )


@contextmanager
def broker_on_disk(seed: int, config: BrokerConfig) -> Iterator[BrokerOnDisk]:
    """A broker's machine in a simulation."""
    with Simulation(seed) as simulation:
        yield BrokerOnDisk(simulation, config)
