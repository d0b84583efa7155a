"""Dead letters of our worker and of a real Kafka Connect, on the same records."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from broker.client import admin, producer
from broker.client.api import ConsumerRecord
from connect.config.worker_config import WorkerConfig
from connect.server import ConnectServer
from tests.connect.running_worker import make_topic
from tests.support.kafka_connect_worker import KafkaConnect, worker_settings
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import PeerMissing, skip_without_peer, wait_until
from tests.support.topics import read_topic

pytestmark = [pytest.mark.peer, pytest.mark.slow]

# What Java and Python cannot have in common.
OWN_WORDS = ("__connect.errors.exception.message", "__connect.errors.exception.stacktrace")
POISON = [b"no JSON", b'{"schema": 1}', b'"a text that is no number"']
CONNECTOR = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "topics": "in",
    "errors.tolerance": "all",
    "errors.deadletterqueue.topic.replication.factor": "1",
    "errors.deadletterqueue.context.headers.enable": "true",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "transforms": "number",
    "transforms.number.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.number.spec": "int32",
}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[MillstreamBroker]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with MillstreamBroker(tmp_path / "broker", settings=settings) as running:
        yield running


def letters(url: str, broker: MillstreamBroker, name: str, folder: Path) -> list[ConsumerRecord]:
    """What a worker writes to the dead letter topic of a connector."""
    config = {
        **CONNECTOR,
        "name": "orders",
        "file": str(folder / f"{name}.txt"),
        "errors.deadletterqueue.topic.name": name,
    }
    created = httpx.put(f"{url}/connectors/orders/config", json=config, timeout=60.0)
    assert created.status_code == httpx.codes.CREATED, created.text
    wait_until(lambda: name in topics(broker), f"topic {name}", timeout_s=120.0)
    wait_until(
        lambda: len(read_topic(broker.bootstrap, name, committed=True)) == len(POISON),
        "all letters",
    )
    httpx.delete(f"{url}/connectors/orders", timeout=60.0).raise_for_status()
    return read_topic(broker.bootstrap, name, committed=True)


def topics(broker: MillstreamBroker) -> set[str]:
    with admin(broker.bootstrap) as administration:
        return set(administration.list_topics())


def test_kafka_connect_writes_the_same_dead_letters(
    broker: MillstreamBroker, tmp_path: Path
) -> None:
    make_topic(broker.bootstrap, "in")
    with producer(broker.bootstrap, linger_ms=0) as out:
        for number, value in enumerate(POISON):
            headers = [("trace", b"%d" % number)]
            out.send("in", value, b'"key"', timestamp_ms=1_000 + number, headers=headers)
    try:
        kafka_connect = KafkaConnect(tmp_path / "connect", bootstrap=broker.bootstrap)
    except PeerMissing as missing:
        skip_without_peer(f"no Kafka Connect: {missing}")
    with kafka_connect:
        theirs = letters(kafka_connect.url, broker, "dead-theirs", tmp_path)
    settings = worker_settings(broker.bootstrap, 0)
    own = {name: f"own-{value}" for name, value in settings.items() if name.endswith(".topic")}
    config = WorkerConfig.parse({**settings, **own, "consumer.group.id": "own"})
    with ConnectServer(broker.bootstrap, config) as server:
        ours = letters(server.url, broker, "dead-ours", tmp_path)
    for their, our in zip(theirs, ours, strict=True):
        assert our[3:6] == their[3:6]
        assert [name for name, _ in our.headers] == [name for name, _ in their.headers]
        for (name, our_data), (_, their_data) in zip(our.headers, their.headers, strict=True):
            if name not in OWN_WORDS:
                assert our_data == their_data, name
