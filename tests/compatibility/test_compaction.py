"""A compacted topic as clients see it, and its files as Kafka's DumpLogSegments reads them."""

import os
import re
import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compatibility.conftest import KAFKA_SETTINGS, SETTINGS, Target
from tests.support.apache_kafka import ApacheKafka, KafkaRelease
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.peer]

TOPIC = "latest"
CLEANER = {"log.cleaner.backoff.ms": "100"}
TOPIC_SETTINGS = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "500",
}


@pytest.fixture(scope="module")
def cleaning_target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A broker whose cleaner does not wait long."""
    folder = tmp_path_factory.mktemp("broker")
    if os.environ.get("MILLSTREAM_COMPAT_TARGET") == "kafka":
        with ApacheKafka(folder, settings=KAFKA_SETTINGS | CLEANER) as kafka:
            yield kafka
    else:
        with MillstreamBroker(folder, settings=SETTINGS | CLEANER) as broker:
            yield broker


def read_all(bootstrap: str) -> list[Message]:
    """All records of the topic that a read_committed consumer gets, markers not counted."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[Message] = []
    try:
        while True:
            message = consumer.poll(10)
            assert message is not None, "the consumer got nothing, not even the end"
            if message.error() is not None:
                return found
            found.append(message)
    finally:
        consumer.close()


class Writer:
    """Writes to the topic; a filler of its own key makes the segment before it old enough."""

    def __init__(self, bootstrap: str) -> None:
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
        self.fillers = 0

    def write(self, key: str, value: str | None) -> None:
        self.producer.produce(TOPIC, key=key, value=value, partition=0)
        self.producer.flush(30)

    def fill(self) -> None:
        time.sleep(0.15)  # longer than segment.ms, which is measured by the records' timestamps
        self.fillers += 1
        self.write(f"filler-{self.fillers}", "x")


def write_history(bootstrap: str) -> Writer:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=TOPIC_SETTINGS)])[TOPIC].result(60)
    writer = Writer(bootstrap)
    for number in range(3):
        for key in "abcd":
            writer.write(key, f"{key}{number}")
        writer.fill()
    transactional = Producer({"bootstrap.servers": bootstrap, "transactional.id": "aborting"})
    transactional.init_transactions(30)
    for commit in (True, False):
        transactional.begin_transaction()
        transactional.produce(TOPIC, key="c", value=f"in a transaction {commit}", partition=0)
        transactional.flush(30)
        if commit:
            transactional.commit_transaction(30)
        else:
            transactional.abort_transaction(30)
    writer.write("a", None)
    writer.fill()
    return writer


@pytest.fixture(scope="module")
def compacted(cleaning_target: Target) -> Target:
    """The topic after its tombstones are gone."""
    bootstrap = cleaning_target.bootstrap
    writer = write_history(bootstrap)

    def keys() -> list[str]:
        writer.fill()
        found = [text(message.key()) for message in read_all(bootstrap)]
        return [key for key in found if not key.startswith("filler")]

    wait_until(lambda: sorted(keys()) == ["b", "c", "d"], "the compaction", timeout_s=60)
    return cleaning_target


def text(data: object) -> str:
    assert isinstance(data, bytes)
    return data.decode()


def test_consumers_get_the_last_committed_value_of_each_key(compacted: Target) -> None:
    found = {
        text(message.key()): text(message.value()) for message in read_all(compacted.bootstrap)
    }
    values = {key: value for key, value in found.items() if not key.startswith("filler")}
    assert values == {"b": "b2", "c": "in a transaction True", "d": "d2"}


def test_offsets_stay_as_they_were(compacted: Target) -> None:
    offsets = {text(message.key()): message.offset() for message in read_all(compacted.bootstrap)}
    assert (offsets["b"], offsets["d"], offsets["c"]) == (11, 13, 15)


def test_dump_log_segments_finds_every_batch_valid(
    compacted: Target, apache_kafka: KafkaRelease
) -> None:
    compacted.stop()
    logs = sorted((compacted.data_dir / f"{TOPIC}-0").glob("*.log"))
    files = ",".join(str(log) for log in logs)
    lines = apache_kafka.run_tool(
        "kafka-dump-log", "--deep-iteration", "--files", files
    ).splitlines()
    batches = [line for line in lines if line.startswith("baseOffset")]
    assert len(batches) > 3
    assert all("isvalid: true" in line for line in batches)
    assert not [line for line in lines if "invalid bytes" in line or "Mismatch" in line]
    assert re.search(r"endTxnMarker: COMMIT", "\n".join(lines))
