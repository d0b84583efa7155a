"""The producer while connections are cut, the broker restarts, and leaders move."""

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from broker.client import admin, producer
from broker.client.administration.values import NewTopic
from broker.client.cluster import Cluster
from broker.client.cluster_admin import Admin
from broker.client.config import NetworkConfig, ProducerConfig, parse_servers
from broker.client.metadata import TopicInfo
from broker.client.network import NetworkTransport
from broker.client.opening import Target
from broker.client.produced_batch import Delivery
from broker.client.record_producer import Producer
from broker.client.transport import Node
from broker.errors import BrokerError, ClientError
from tests.broker.client.conftest import read_all
from tests.broker.client.cutting_proxy import CuttingProxy, random_lifetimes
from tests.support.apache_kafka import ApacheKafkaCluster
from tests.support.kafka_for_all import SETTINGS
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import wait_until

MakeTopic = Callable[..., str]

TIMEOUT_MS = 60_000


class ThroughProxy(NetworkTransport):
    """A transport that reaches every broker through the proxy, whatever address it advertises."""

    def __init__(self, proxy: CuttingProxy) -> None:
        self._proxy = proxy
        host, port = proxy.address
        super().__init__(
            NetworkConfig(f"{host}:{port}", reconnect_backoff_ms=5, reconnect_backoff_max_ms=20)
        )

    def update_nodes(self, nodes: object) -> None:
        host, port = self._proxy.address
        super().update_nodes(Node(node.id, host, port) for node in nodes)  # type: ignore[attr-defined]


@pytest.fixture(params=["tcp", pytest.param("kafka", marks=[pytest.mark.slow, pytest.mark.peer])])
def target(request: pytest.FixtureRequest) -> Target:
    """Only brokers that are reached over a network."""
    found: Target = request.getfixturevalue(f"{request.param}_target")
    return found


@pytest.fixture
def cut(target: Target) -> Iterator[Callable[..., CuttingProxy]]:
    """Makes proxies before the broker: cut(seed, most=bytes of a connection)."""
    made: list[CuttingProxy] = []

    def make(seed: int, *, most: int) -> CuttingProxy:
        (server,) = parse_servers(str(target))
        lifetimes = random_lifetimes(seed, least=500, most=most)
        proxy = CuttingProxy(server, lifetimes).__enter__()
        made.append(proxy)
        return proxy

    yield make
    for proxy in made:
        proxy.__exit__(None, None, None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))]
)
def test_no_record_is_lost_doubled_or_moved_while_connections_are_cut(
    target: Target, make_topic: MakeTopic, cut: Callable[..., CuttingProxy], seed: int
) -> None:
    topic = make_topic(2)
    proxy = cut(seed, most=30_000)
    config = ProducerConfig(batch_size=1_000, linger_ms=0)
    with Producer(Cluster(ThroughProxy(proxy)), config) as out:
        sent = [
            out.send(topic, b"%06d" % number * 10, partition=number % 2) for number in range(4_000)
        ]
        wait_until(lambda: proxy.cuts >= 20 or all(map(Delivery.done, sent)), "20 cuts")
        proxy.heal()
        out.flush(TIMEOUT_MS)
        offsets = [(each.result(0).partition, each.result(0).offset) for each in sent]
    assert proxy.cuts > 5
    assert offsets == [(number % 2, number // 2) for number in range(4_000)]
    records = read_all(target, topic, 4_001)
    for partition in (0, 1):
        values = [record.value for record in records if record.partition == partition]
        assert values == [b"%06d" % number * 10 for number in range(partition, 4_000, 2)]


@pytest.mark.slow
def test_transactions_stay_whole_while_connections_are_cut(
    target: Target, make_topic: MakeTopic, cut: Callable[..., CuttingProxy]
) -> None:
    topic = make_topic(2)
    proxy = cut(4, most=6_000)
    config = ProducerConfig(linger_ms=0, transactional_id=f"cut-{topic}", batch_size=500)
    with Producer(Cluster(ThroughProxy(proxy)), config) as out:
        out.init_transactions()
        for number in range(12):
            out.begin_transaction()
            for step in range(20):
                out.send(topic, b"%d" % number + b"x" * 100, partition=step % 2)
            if number % 4 == 3:
                out.abort_transaction()
            else:
                out.commit_transaction()
        proxy.heal()
    records = read_all(target, topic, 181, isolation_level="read_committed")
    for partition in (0, 1):
        values = [record.value for record in records if record.partition == partition]
        assert values == [
            b"%d" % number + b"x" * 100
            for number in range(12)
            if number % 4 != 3
            for _ in range(10)
        ]
    assert proxy.cuts > 2


@pytest.mark.slow
def test_a_restart_of_the_broker_loses_and_doubles_nothing(tmp_path: Path) -> None:
    with MillstreamBroker(tmp_path, settings=SETTINGS) as broker:
        with producer(broker.bootstrap, linger_ms=1, batch_size=500) as out:
            sent = [out.send("restarted", b"%d" % number) for number in range(500)]
            broker.stop()
            sent += [out.send("restarted", b"%d" % number) for number in range(500, 1_000)]
            broker.start()
            out.flush(TIMEOUT_MS)
            assert [each.result(0).offset for each in sent] == list(range(1_000))
        values = [record.value for record in read_all(broker.bootstrap, "restarted", 1_001)]
        assert values == [b"%d" % number for number in range(1_000)]


@pytest.mark.slow
@pytest.mark.peer
@pytest.mark.xdist_group("kafka-cluster")
def test_leaders_that_move_lose_and_double_nothing(kafka_cluster: ApacheKafkaCluster) -> None:
    topic = "moving"
    with admin(kafka_cluster.bootstrap) as administration:
        administration.create_topics([NewTopic(topic, 3, 3)]).all()
        leader = _first_leader(administration, topic)
    stop = threading.Event()
    sent: list[Delivery] = []
    with producer(kafka_cluster.bootstrap, linger_ms=1, batch_size=1_000) as out:

        def send() -> None:
            while not stop.is_set():
                sent.append(out.send(topic, b"%d" % len(sent), partition=len(sent) % 3))
                stop.wait(0.001)

        thread = threading.Thread(target=send)
        thread.start()
        try:
            kafka_cluster.node(leader).kill()
            through = len(sent) + 300
            wait_until(partial(_delivered, sent, through), "delivery without the leader")
            kafka_cluster.node(leader).start()
        finally:
            stop.set()
            thread.join()
        out.flush(TIMEOUT_MS)
        errors = [each.exception(0) for each in sent if each.exception(0)]
        assert errors == []
    count = len(sent)
    records = read_all(kafka_cluster.bootstrap, topic, count + 1)
    for partition in range(3):
        values = [record.value for record in records if record.partition == partition]
        assert values == [b"%d" % number for number in range(partition, count, 3)]


def _first_leader(administration: Admin, topic: str) -> int:
    """The leader of partition 0, once a broker knows the topic with all its replicas.

    Kafka's controller answers before its brokers know, and each call may reach another broker.
    """
    found: dict[str, TopicInfo] = {}

    def is_replicated() -> bool:
        found.update(administration.describe_topics([topic]).values)
        partitions = found[topic].partitions.values() if found else []
        return len(partitions) == 3 and all(
            each.leader >= 0 and len(each.in_sync) == 3 for each in partitions
        )

    wait_until(is_replicated, "a topic with all its replicas")
    return found[topic].partitions[0].leader


def _delivered(sent: list[Delivery], count: int) -> bool:
    return len(sent) > count and sent[count].done()


def test_a_producer_without_a_broker_says_whom_it_asked() -> None:
    with (
        producer("127.0.0.1:1", max_block_ms=200) as out,
        pytest.raises((ClientError, BrokerError), match=r"127\.0\.0\.1:1"),
    ):
        out.send("orders", b"v")


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"acks": 1}])
def test_closing_without_a_broker_ends_in_time_and_fails_what_is_left(
    tmp_path: Path, settings: dict[str, object]
) -> None:
    broker = MillstreamBroker(tmp_path, settings=SETTINGS).start()
    out = producer(broker.bootstrap, linger_ms=0, **settings)
    out.send("orders", b"stored").result(TIMEOUT_MS)
    broker.kill()
    lost = [out.send("orders", b"lost") for _ in range(100)]
    out.close(timeout_ms=200)
    assert all("closed" in str(each.exception(0)) for each in lost)
