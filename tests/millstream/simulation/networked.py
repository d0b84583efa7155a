"""A broker and several clients over a simulated network: what the network's tests run."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from broker.broker import Broker
from broker.client import admin, consumer, producer
from broker.client.administration.values import NewTopic
from broker.client.api import RebalanceListener
from broker.client.opening import Target
from broker.client.remote import Remote
from broker.client.shared_clients import SharedClients
from broker.config import BrokerConfig
from broker.errors import MillstreamError
from broker.machine import Machine
from broker.model import TopicPartition
from millstream.simulation import Simulation
from millstream.simulation.clock import VirtualClock
from millstream.simulation.disk import SimulatedDisk
from millstream.simulation.network import SimulatedNetwork, SimulatedServer
from millstream.simulation.scheduler import Process

ADDRESS = "broker:9092"
FOLDER = "/var/lib/broker"
PLAIN, LEDGER = "plain", "ledger"
PARTITIONS = 3
SECOND_US = 1_000_000


@dataclass
class Seen:
    """What clients saw."""

    sent: dict[TopicPartition, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    acknowledged: dict[TopicPartition, dict[int, bytes]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    transactions: dict[str, tuple[list[bytes], str]] = field(default_factory=dict)
    read: dict[str, dict[TopicPartition, set[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    held: dict[str, set[TopicPartition]] = field(default_factory=lambda: defaultdict(set))
    problems: list[str] = field(default_factory=list)


class Networked:
    """One broker process, clients in processes of their own, and a network between them."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self.network = SimulatedNetwork(simulation)
        self.disk = SimulatedDisk(simulation, "broker")
        self.clock = VirtualClock(simulation.scheduler)
        self.random = simulation.random("workload")
        self.seen = Seen()
        self.assignor = self.random.choice(("range", "cooperative-sticky"))
        self.broker: Broker | None = None
        self.server: SimulatedServer | None = None
        self.working = True
        self.rebalance_delay_ms = 100
        self.programs: dict[str, Callable[[], object]] = {}
        self.processes: dict[str, Process] = {}
        self.start("broker", self._serve)

    def start(self, name: str, body: Callable[[], object]) -> None:
        self.programs[name] = body
        process = self.processes[name] = self.simulation.process(name)
        self.simulation.start(process, "main", body)

    def kill(self, name: str, *, rest_ms: int, power_loss: bool = False) -> None:
        """End a process, and start it again after a while."""
        process = self.processes[name]
        if power_loss:
            self.network.lose_power(process)
            self.disk.power_loss()
        else:
            self.simulation.kill(process)
        self.simulation.scheduler.sleep(rest_ms * 1_000)
        self.start(name, self.programs[name])

    def machine(self) -> Machine:
        """The machine of the process that runs now."""
        process = self.process
        machine = self.simulation.machine(process, self.clock)
        return replace(machine, sockets=self.network.sockets(process), host_name=process.name)

    def _serve(self) -> None:
        settings = BrokerConfig(
            offsets_topic_num_partitions=1,
            transaction_state_log_num_partitions=1,
            group_initial_rebalance_delay_ms=self.rebalance_delay_ms,
            durability="fsync",
        )
        process = self.process
        machine = replace(self.machine(), files=self.disk.files(process))
        self.broker = Broker(settings, machine=machine, data_directory=FOLDER).start()
        self.server = self.network.serve(process, self.broker, ADDRESS)

    @property
    def process(self) -> Process:
        """The process that runs now."""
        task = self.simulation.scheduler.current
        assert task is not None
        return task.process

    def target(self) -> Remote:
        return Remote(ADDRESS, self.machine())

    def note(self, what: str, *details: object) -> None:
        self.simulation.history.add(self.process, what, *details)

    def sleep(self, shortest_ms: int, longest_ms: int) -> None:
        self.simulation.scheduler.sleep(self.random.randint(shortest_ms, longest_ms) * 1_000)

    # --- clients --------------------------------------------------------------------------------

    def create_topics(self) -> None:
        with admin(self.target()) as administration:
            topics = [NewTopic(name, partitions=PARTITIONS) for name in (PLAIN, LEDGER)]
            administration.create_topics(topics).all()
        self.note("created topics")

    def send_plain(self) -> None:
        """An idempotent producer: everything it sends is acknowledged in the end."""
        target = self.target()
        number = 0
        with producer(target, linger_ms=self.random.choice((0, 20))) as out:
            while self.working:
                sent = []
                for _ in range(self.random.choice((1, 3, 20))):
                    tp = TopicPartition(PLAIN, self.random.randrange(PARTITIONS))
                    value = str(number).encode() + b" " * self.random.choice((0, 10, 2_000))
                    self.seen.sent[tp].append(value)
                    sent.append((tp, value, out.send(tp.topic, value, partition=tp.partition)))
                    number += 1
                for tp, value, delivery in sent:
                    try:
                        told = delivery.result(timeout_ms=300_000)
                    except MillstreamError as error:
                        self.seen.problems.append(f"{value[:20]!r} was not sent: {error}")
                        return
                    self.seen.acknowledged[tp][told.offset] = value
                self.note("was told of", len(sent), "records")
                self.sleep(10, 1_000)
        self.note("is done")

    def send_transactions(self) -> None:
        """A transactional producer; after an error the next one takes its place."""
        life = 0
        target = self.target()
        while self.working:
            life += 1
            try:
                with producer(
                    target, transactional_id="ledger", transaction_timeout_ms=20_000
                ) as out:
                    out.init_transactions()
                    number = 0
                    while self.working:
                        number += 1
                        name = f"{life}.{number}"
                        values = [f"{name} {each}".encode() for each in range(3)]
                        self.seen.transactions[name] = (values, "unknown")
                        out.begin_transaction()
                        for each, value in enumerate(values):
                            out.send(LEDGER, value, partition=each)
                        outcome = self.random.choice(("committed", "committed", "aborted"))
                        if outcome == "committed":
                            out.commit_transaction()
                        else:
                            out.abort_transaction()
                        self.seen.transactions[name] = (values, outcome)
                        self.note("has", outcome, name)
                        self.sleep(10, 2_000)
            except MillstreamError as error:
                self.note("opens another producer after", type(error).__name__, error.message)
                self.sleep(100, 1_000)
        self.note("is done")

    def read_plain(self, protocol: str) -> None:
        """A member of a group that reads and commits, for ever."""
        group, name = protocol, self.process.name
        held = self.seen.held[name]
        target: Target = self.target()
        if self.random.random() < 0.3:
            target = SharedClients(self.target())
        settings: dict[str, object] = {"group_protocol": protocol}
        if protocol == "classic":
            settings |= {
                "session_timeout_ms": 10_000,
                "heartbeat_interval_ms": 3_000,
                "partition_assignment_strategy": (self.assignor,),
            }
        while True:
            try:
                with consumer(
                    target,
                    group_id=group,
                    auto_offset_reset="earliest",
                    enable_auto_commit=False,
                    fetch_max_wait_ms=2_000,
                    **settings,
                ) as reader:

                    def assigned(partitions: Iterable[TopicPartition]) -> None:
                        held.update(partitions)
                        self.note("has", sorted(tp.partition for tp in held))

                    def revoked(partitions: Iterable[TopicPartition]) -> None:
                        held.difference_update(partitions)
                        self.note("is left with", sorted(tp.partition for tp in held))

                    held.clear()
                    listener = RebalanceListener(assigned=assigned, revoked=revoked, lost=revoked)
                    reader.subscribe([PLAIN], listener)
                    while True:
                        records = reader.poll(timeout_ms=2_000)
                        for record in records:
                            tp = TopicPartition(record.topic, record.partition)
                            self.seen.read[group][tp].add(record.offset)
                        if records:
                            reader.commit()
            except MillstreamError as error:
                self.note("opens another consumer after", type(error).__name__, error.message)
                self.sleep(100, 1_000)

    # --- what is there in the end ---------------------------------------------------------------

    def everything(self, topic: str, isolation: str) -> dict[TopicPartition, dict[int, bytes]]:
        """All records of a topic, by offset; asked by a client of its own."""
        found: dict[TopicPartition, dict[int, bytes]] = {}
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        with consumer(
            self.target(), auto_offset_reset="earliest", isolation_level=isolation
        ) as reader:
            reader.assign(partitions)
            ends = reader.end_offsets(partitions)
            found = {tp: {} for tp in partitions}
            while any(reader.position(tp) < ends[tp] for tp in partitions):
                for record in reader.poll(timeout_ms=1_000):
                    tp = TopicPartition(record.topic, record.partition)
                    assert record.value is not None
                    found[tp][record.offset] = bytes(record.value)
        return found


@contextmanager
def networked(seed: int) -> Iterator[Networked]:
    """A broker with topics, on a network without faults."""
    with Simulation(seed) as simulation:
        world = Networked(simulation)
        world.start("admin", world.create_topics)
        simulation.run(for_ms=2_000)
        yield world
        assert simulation.scheduler.crashed == []
