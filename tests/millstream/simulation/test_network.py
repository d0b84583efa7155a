"""Clients and a broker over a simulated network that breaks, parts and delays, and heals again."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from broker.broker import Broker
from broker.client import admin, consumer, producer
from broker.client.opening import Target
from broker.client.remote import Remote
from broker.client.shared_clients import SharedClients
from broker.errors import BrokersUnreachable
from broker.model import TopicPartition
from millstream.commands.options import client_settings
from tests.millstream.simulation.networked import (
    LEDGER,
    PARTITIONS,
    PLAIN,
    Networked,
    networked,
)

MEMBERS = {"classic": 3, "consumer": 2}
FAULTS_MS = 60_000
HEAL_MS = 180_000
SEEDS_ALWAYS = 8
LONG = (pytest.mark.long,)


def disturb(world: Networked) -> None:
    """Faults of all kinds, one after the other, for a while; then none."""
    network, random = world.network, world.random
    names = ["broker", "plain", "ledger", *(f"{kind} 0" for kind in MEMBERS)]
    until_us = world.simulation.scheduler.now_us + FAULTS_MS * 1_000
    while world.simulation.scheduler.now_us < until_us:
        world.sleep(100, 5_000)
        match random.randrange(8):
            case 0:
                network.disconnect_some(random.choice((0.3, 1.0)))
            case 1:
                network.keep_disconnecting(random.choice((0.01, 0.1)))
            case 2:
                network.partition(random.choice(names))
            case 3:
                network.slow_down(random.choice((5.0, 100.0)), of=random.choice(("", *names)))
            case 4:
                name = f"{random.choice(list(MEMBERS))} 1"
                world.kill(name, rest_ms=random.choice((0, 100, 20_000)))
            case 5 | 6:
                rest_ms = random.choice((100, 5_000))
                world.kill("broker", rest_ms=rest_ms, power_loss=random.random() < 0.5)
            case _:
                network.heal()
    network.heal()


def run(seed: int) -> Networked:
    """Everybody at work while the network is disturbed, then for a while without faults."""
    with networked(seed) as world:
        world.start("plain", world.send_plain)
        world.start("ledger", world.send_transactions)
        for kind, count in MEMBERS.items():
            for number in range(count):
                world.start(f"{kind} {number}", partial(world.read_plain, kind))
        world.simulation.run(for_ms=3_000)
        world.start("operator", partial(disturb, world))
        world.simulation.run(for_ms=FAULTS_MS + 10_000)
        world.working = False
        world.simulation.run(for_ms=HEAL_MS)
        world.start("checks", partial(check, world))
        world.simulation.run(for_ms=60_000)
        assert world.seen.problems == ["checked"]
        return world


def check(world: Networked) -> None:
    """What must be so in the end; asked by a client."""
    seen = world.seen
    assert seen.problems == []
    plain = world.everything(PLAIN, "read_uncommitted")
    for tp, records in plain.items():
        assert list(records.values()) == seen.sent[tp], f"{tp}: all, once, in order"
        assert seen.acknowledged[tp].items() <= records.items()
        assert len(seen.acknowledged[tp]) == len(records)
    check_transactions(world)
    for kind, count in MEMBERS.items():
        read = seen.read[kind]
        for tp, records in plain.items():
            assert read[tp] == set(records), f"{kind} readers have read all of {tp}"
        holders = [seen.held[f"{kind} {number}"] for number in range(count)]
        assert sum(map(len, holders)) == PARTITIONS
        assert {tp.partition for held in holders for tp in held} == set(range(PARTITIONS))
    with admin(world.target()) as administration:
        groups = administration.describe_groups(list(MEMBERS)).all()
        for kind, count in MEMBERS.items():
            assert (groups[kind].state, len(groups[kind].members)) == ("Stable", count)
    seen.problems.append("checked")


def check_transactions(world: Networked) -> None:
    """All of a transaction is there or nothing, and what was said of it is true."""
    ledger = world.everything(LEDGER, "read_committed")
    committed = {value for records in ledger.values() for value in records.values()}
    assert len(committed) == sum(map(len, ledger.values())), "nothing twice"
    for name, (values, outcome) in world.seen.transactions.items():
        found = committed.intersection(values)
        assert len(found) in (0, len(values)), f"transaction {name}, all or nothing"
        assert outcome == "unknown" or bool(found) == (outcome == "committed"), name


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=LONG if seed >= SEEDS_ALWAYS else ()) for seed in range(40)]
)
def test_nothing_is_lost_doubled_or_stuck_after_faults(seed: int) -> None:
    world = run(seed)
    assert sum(map(len, world.seen.sent.values())) > 20
    assert len(world.seen.transactions) > 2


@pytest.mark.slow
def test_the_same_seed_is_the_same_history() -> None:
    worlds = [run(seed) for seed in (7, 7, 8)]
    digests = [(w.simulation.history.digest(), w.network.conditions.digest) for w in worlds]
    assert digests[0] == digests[1] != digests[2]
    assert worlds[0].simulation.scheduler.now_us > FAULTS_MS * 1_000


@pytest.mark.slow
@pytest.mark.parametrize("kind", MEMBERS)
def test_a_quiet_group_costs_few_turns(kind: str) -> None:
    with networked(1) as world:
        for number in range(3):
            world.start(f"{kind} {number}", partial(world.read_plain, kind))
        world.simulation.run(for_ms=10_000)
        before = world.simulation.scheduler.steps
        world.simulation.run(for_ms=600_000)
        # About eleven for each of 1,500 requests.
        assert world.simulation.scheduler.steps - before < 20_000


def exchange_records(world: Networked, target: Target) -> None:
    """Send some records and read them, as one client of a target."""
    with producer(target) as out, consumer(target, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(PLAIN, 0)])
        sent = [f"{number}".encode() for number in range(20)]
        for value in sent:
            out.send(PLAIN, value, partition=0)
        read: list[object] = []
        while len(read) < len(sent):
            read += [record.value for record in reader.poll(timeout_ms=1_000)]
    assert read == sent
    world.seen.problems.append("read all")


def test_clients_that_share_threads_and_reads_use_the_network() -> None:
    with networked(1) as world:

        def work() -> None:
            shared = SharedClients(world.target())
            exchange_records(world, shared)
            shared.close()

        world.start("client", work)
        world.simulation.run(for_ms=10_000)
        assert world.seen.problems == ["read all"]


def test_clients_of_an_embedded_broker_take_their_time_from_its_machine() -> None:
    with networked(1) as world:

        def work() -> None:
            machine = replace(world.machine(), files=world.disk.files(world.process))
            with Broker(machine=machine, data_directory="/embedded") as broker:
                exchange_records(world, broker)

        world.start("client", work)
        world.simulation.run(for_ms=10_000)
        assert world.seen.problems == ["read all"]


def test_a_server_that_is_closed_answers_what_is_in_flight_and_serves_again() -> None:
    with networked(1) as world:

        def restart() -> None:
            assert world.server is not None
            assert world.broker is not None
            world.server.close()
            world.broker.close()
            world.start("broker", world.programs["broker"])

        world.start("plain", world.send_plain)
        world.simulation.run(for_ms=5_000)
        world.simulation.start(world.processes["broker"], "stop", restart)
        world.simulation.run(for_ms=20_000)
        world.working = False
        world.simulation.run(for_ms=30_000)
        assert world.seen.problems == []
        assert sum(map(len, world.seen.acknowledged.values())) > 20


def test_a_member_that_waits_to_join_notices_a_broker_that_vanished() -> None:
    with networked(1) as world:
        world.rebalance_delay_ms = 600_000  # the broker answers the first member after that time
        world.start("operator", partial(world.kill, "broker", rest_ms=100))
        world.simulation.run(for_ms=1_000)
        world.start("classic 0", partial(world.read_plain, "classic"))
        world.simulation.run(for_ms=10_000)
        world.start("operator", partial(world.kill, "broker", rest_ms=100, power_loss=True))
        world.simulation.run(for_ms=90_000)
        assert world.broker is not None
        assert world.broker.metrics.requests["JOIN_GROUP"].count > 0


def list_topics(target: Target) -> None:
    with admin(target, **client_settings(())) as cluster:
        cluster.list_topics()


def send_a_record(target: Target) -> None:
    with producer(target, **client_settings(())) as out:
        out.send("t", b"value")


def read_a_topic(target: Target) -> None:
    with consumer(target, **client_settings(())) as reader:
        reader.partitions_for("t")


@pytest.mark.parametrize("host", ["broker", "nobody"], ids=["silent", "refused"])
@pytest.mark.parametrize("command", [list_topics, send_a_record, read_a_topic])
def test_commands_fail_within_three_seconds_when_no_broker_answers(
    command: Callable[[Target], None], host: str
) -> None:
    """With the settings of the commands; the time is virtual."""
    ended_ms: list[int] = []

    def run() -> None:
        with pytest.raises(BrokersUnreachable):
            command(Remote(f"{host}:9092", world.machine()))
        ended_ms.append(world.simulation.scheduler.now_us // 1_000)

    with networked(1) as world:
        world.simulation.run(for_ms=1_000)
        world.network.partition("broker")
        started_ms = world.simulation.scheduler.now_us // 1_000
        world.start("user", run)
        world.simulation.run(for_ms=60_000)
    assert not world.simulation.scheduler.crashed
    assert ended_ms
    assert ended_ms[0] - started_ms <= 3_000
