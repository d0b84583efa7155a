"""A crash costs the end of a log, and other records get its offsets: readers must notice."""

from pathlib import Path

import confluent_kafka
import pytest

from broker.client import admin, consumer
from broker.client.api import NewTopic
from broker.model import TopicPartition
from tests.support.kafka_for_all import SETTINGS
from tests.support.lost_tail import TOPIC, check
from tests.support.millstream_broker import MillstreamBroker

pytestmark = pytest.mark.slow


def test_our_consumer_reads_what_took_the_place_of_a_lost_tail(tmp_path: Path) -> None:
    with MillstreamBroker(tmp_path, settings=SETTINGS) as broker:
        with admin(broker.bootstrap) as cluster:
            cluster.create_topics([NewTopic(TOPIC, 1)]).all()
        with consumer(broker.bootstrap, auto_offset_reset="earliest") as reader:
            reader.assign([TopicPartition(TOPIC, 0)])

            def poll() -> list[bytes]:
                return [record.value or b"" for record in reader.poll(timeout_ms=100)]

            check(broker, broker.data_dir, poll)


def test_librdkafka_reads_what_took_the_place_of_a_lost_tail(tmp_path: Path) -> None:
    with MillstreamBroker(tmp_path, settings=SETTINGS) as broker:
        with admin(broker.bootstrap) as cluster:
            cluster.create_topics([NewTopic(TOPIC, 1)]).all()
        reader = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "readers",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "topic.metadata.refresh.interval.ms": 500,
                "reconnect.backoff.max.ms": 500,
            }
        )
        reader.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])

        def poll() -> list[bytes]:
            found = reader.consume(100, timeout=0.1)
            return [message.value() for message in found if message.error() is None]

        check(broker, broker.data_dir, poll)
        reader.close()
