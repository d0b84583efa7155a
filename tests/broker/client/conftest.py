"""The brokers that client tests run on: in the process, over TCP, and a real Apache Kafka."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from broker.broker import Broker
from broker.client import admin, consumer
from broker.client.administration.values import NewTopic
from broker.client.api import ConsumerRecord
from broker.client.opening import Target
from broker.config import BrokerConfig
from broker.model import TopicPartition
from tests.support.apache_kafka import ApacheKafka, ApacheKafkaCluster
from tests.support.kafka_for_all import MARKS as KAFKA
from tests.support.kafka_for_all import SETTINGS
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import PeerMissing, skip_without_peer, wait_until


@pytest.fixture(scope="session")
def embedded_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Our broker in this process."""
    folder = tmp_path_factory.mktemp("embedded")
    with Broker(BrokerConfig.from_properties(SETTINGS), data_directory=str(folder)) as broker:
        yield broker


@pytest.fixture(scope="session")
def tcp_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Our broker in a process of its own."""
    folder = tmp_path_factory.mktemp("tcp")
    with MillstreamBroker(folder, settings=SETTINGS) as broker:
        yield broker.bootstrap


@pytest.fixture(scope="session")
def kafka_target(kafka_for_all: ApacheKafka) -> Target:
    """A real Apache Kafka."""
    return kafka_for_all.bootstrap


@pytest.fixture(scope="package")
def kafka_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafkaCluster]:
    """Three nodes of a real Kafka, so that leaders can move; they are busy even without clients."""
    settings = {
        **SETTINGS,
        # A killed node is found out in a second, not in nine.
        "broker.session.timeout.ms": "1000",
        "broker.heartbeat.interval.ms": "200",
    }
    try:
        cluster = ApacheKafkaCluster(
            tmp_path_factory.mktemp("cluster"), nodes=3, settings=settings, heap_mb=256
        )
    except PeerMissing as missing:
        skip_without_peer(f"no Apache Kafka: {missing}")
    with cluster:
        yield cluster


@pytest.fixture(
    params=[
        "embedded",
        "tcp",
        pytest.param("kafka", marks=KAFKA),
    ]
)
def target(request: pytest.FixtureRequest) -> Target:
    """What a client is opened on; the same test runs on each."""
    found: Target = request.getfixturevalue(f"{request.param}_target")
    return found


@pytest.fixture
def make_topic(target: Target) -> Iterator[Callable[..., str]]:
    """Makes topics that no other test uses: make_topic(partitions, config=...)."""
    with admin(target) as administration:

        def make(partitions: int = 1, **config: str) -> str:
            name = f"topic-{uuid.uuid4().hex[:10]}"
            settings = {key.replace("_", "."): value for key, value in config.items()}
            made = administration.create_topics([NewTopic(name, partitions, configs=settings)])
            made[name]
            # Kafka's controller answers before its brokers know.
            wait_until(lambda: name in administration.list_topics(), f'topic "{name}"')
            return name

        yield make


def read_all(
    target: Target, topic: str, count: int, *, isolation_level: str = "read_uncommitted"
) -> list[ConsumerRecord]:
    """The first `count` records of a topic, of all its partitions, from the beginning."""
    found: list[ConsumerRecord] = []
    with consumer(target, isolation_level=isolation_level) as reader:
        partitions = [TopicPartition(topic, number) for number in reader.partitions_for(topic)]
        reader.assign(partitions)
        reader.seek_to_beginning(partitions)
        ends = reader.end_offsets(partitions)
        while len(found) < count:
            polled = reader.poll(timeout_ms=1000)
            found += polled
            if not polled and all(reader.position(tp) >= ends[tp] for tp in partitions):
                break
    return found
