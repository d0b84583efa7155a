"""Consumers while the broker stops and starts: nothing lost, the group goes on."""

import threading
import time
from pathlib import Path

import pytest

from broker.client import admin, consumer, producer
from broker.client.api import NewTopic
from broker.client.record_consumer import Consumer
from broker.model import TopicPartition
from tests.support.apache_kafka import ApacheKafkaCluster
from tests.support.kafka_for_all import SETTINGS
from tests.support.millstream_broker import MillstreamBroker

pytestmark = pytest.mark.slow

DEADLINE_S = 60
TOPIC = "numbers"


def send(bootstrap: str, first: int, count: int) -> None:
    with producer(bootstrap) as out:
        for number in range(first, first + count):
            out.send(TOPIC, b"%d" % number, partition=number % 2)


def read_until(readers: list[Consumer], seen: list[int], count: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while len(set(seen)) < count:
        assert time.monotonic() < deadline, f"{len(set(seen))} of {count}"
        for reader in readers:
            seen += [int(record.value or b"-1") for record in reader.poll(timeout_ms=50)]


@pytest.mark.parametrize("crash", [False, True])
def test_a_group_goes_on_when_its_coordinator_comes_back(tmp_path: Path, crash: bool) -> None:
    settings: dict[str, object] = {
        "group_id": "readers",
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 200,
        "session_timeout_ms": 6_000,
        "auto_commit_interval_ms": 100,
    }
    with MillstreamBroker(tmp_path, settings={**SETTINGS, "durability": "fsync"}) as broker:
        with admin(broker.bootstrap) as administration:
            administration.create_topics([NewTopic(TOPIC, 2)]).all()
        send(broker.bootstrap, 0, 200)
        readers = [consumer(broker.bootstrap, **settings) for _ in range(2)]
        for reader in readers:
            reader.subscribe([TOPIC])
        seen: list[int] = []
        read_until(readers, seen, 200)
        if crash:
            broker.kill()
        else:
            broker.stop()
        for reader in readers:
            assert reader.poll(timeout_ms=200) == [], "polls end in time without a broker"
        broker.start()
        send(broker.bootstrap, 200, 200)
        read_until(readers, seen, 400)
        for reader in readers:
            reader.close()
        assert set(seen) == set(range(400))
        with admin(broker.bootstrap) as administration:
            committed = administration.list_group_offsets("readers").all()
        assert {tp: offset.offset for tp, offset in committed.items()} == {
            TopicPartition(TOPIC, 0): 200,
            TopicPartition(TOPIC, 1): 200,
        }


@pytest.mark.peer
@pytest.mark.xdist_group("kafka-cluster")
@pytest.mark.parametrize("protocol", ["classic", pytest.param("consumer", marks=pytest.mark.long)])
def test_a_group_goes_on_when_leaders_and_its_coordinator_move(
    kafka_cluster: ApacheKafkaCluster, protocol: str
) -> None:
    topic = group_id = f"moving-{protocol}"
    bootstrap = kafka_cluster.bootstrap
    total = 3_000
    settings: dict[str, object] = {
        "group_id": group_id,
        "group_protocol": protocol,
        "auto_offset_reset": "earliest",
        "heartbeat_interval_ms": 200,
        "session_timeout_ms": 6_000,
        "metadata_max_age_ms": 1_000,
        "request_timeout_ms": 3_000,
        "isolation_level": "read_committed",
    }
    with admin(bootstrap) as administration, consumer(bootstrap, **settings) as reader:
        administration.create_topics([NewTopic(topic, 3, 3)]).all()
        reader.subscribe([topic])

        def send() -> None:
            with producer(bootstrap) as out:
                for number in range(total):
                    out.send(topic, b"%d" % number, partition=number % 3)
                    if number % 20 == 0:
                        out.flush()

        sender = threading.Thread(target=send)
        sender.start()
        seen: list[int] = []
        read_until([reader], seen, 300)
        coordinator = administration.describe_groups([group_id])[group_id].coordinator
        victim = kafka_cluster.node(coordinator)
        victim.kill()
        try:
            read_until([reader], seen, total)
            sender.join()
            reader.commit()
        finally:
            victim.start()
        assert sorted(set(seen)) == list(range(total))
        assert len(reader.assignment()) == 3
        offsets = administration.list_group_offsets(group_id).all()
        assert {offset.offset for offset in offsets.values()} == {total // 3}
