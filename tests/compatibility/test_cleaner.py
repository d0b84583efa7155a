"""Our cleaner and Kafka's on the same log: what they leave is equal to the last field.

Apache Kafka writes a log of transactions, tombstones and compressed batches and is stopped. A copy
is compacted by our cleaner, the original by Kafka's own.
"""

import random
import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from broker.batch.layout import BatchHeader
from broker.batch.records import Record
from broker.storage.index import AbortedRange, aborted_from_bytes
from tests.broker.storage.compaction_support import Cleaned
from tests.support.apache_kafka import ApacheKafka, KafkaRelease
from tests.support.peer import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.peer]

TOPIC = "history"
KEYS = ("a", "b", "c", "d", "a key that is longer than its digest")
SEGMENT_MS = 100
DAY_MS = 86_400_000
BROKER_SETTINGS = {"log.cleaner.backoff.ms": "100", "transaction.state.log.num.partitions": "1"}
WRITING = {"segment.ms": str(SEGMENT_MS), "cleanup.policy": "delete"}
COMPACTING = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0001",
    "delete.retention.ms": str(DAY_MS),
}
Contents = list[tuple[tuple[int, ...], list[Record]]]


class Writer:
    """Writes what compaction has rules for; one seed, one history."""

    def __init__(self, bootstrap: str, seed: int) -> None:
        self.chance = random.Random(seed)
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 5}
        self.plain = Producer({**settings, "compression.type": "zstd"})
        self.idempotent = Producer(
            {**settings, "compression.type": "lz4", "enable.idempotence": True}
        )
        self.transactional = [
            Producer({**settings, "transactional.id": f"writer-{number}"}) for number in range(2)
        ]
        for producer in self.transactional:
            producer.init_transactions(30)
        self.open: set[Producer] = set()

    def produce(self, producer: Producer) -> None:
        for _ in range(self.chance.randint(1, 3)):
            value = self.chance.choice([None, str(self.chance.random())])
            producer.produce(TOPIC, key=self.chance.choice(KEYS), value=value, partition=0)
        producer.flush(30)

    def step(self) -> None:
        what = self.chance.choices(("transaction", "end", "other", "age"), (5, 4, 6, 2))[0]
        producer = self.chance.choice(self.transactional)
        if what == "transaction":
            if producer not in self.open:
                producer.begin_transaction()
                self.open.add(producer)
            self.produce(producer)
        elif what == "end" and producer in self.open:
            self.end(producer)
        elif what == "other":
            self.produce(self.chance.choice((self.plain, self.idempotent)))
        elif what == "age":
            time.sleep(SEGMENT_MS / 1000)  # the next record begins a segment

    def end(self, producer: Producer) -> None:
        self.open.discard(producer)
        if self.chance.random() < 0.5:
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)

    def finish(self) -> None:
        """One transaction stays open; the last segment is none of the cleaner's business."""
        for producer in self.transactional[1:]:
            if producer in self.open:
                self.end(producer)
        for _ in range(2):
            time.sleep(2 * SEGMENT_MS / 1000)
            self.produce(self.plain)


def write_history(kafka: ApacheKafka, seed: int) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config=WRITING)])[TOPIC].result(60)
    writer = Writer(kafka.bootstrap, seed)
    for _ in range(120):
        writer.step()
    writer.finish()


def let_kafka_compact(kafka: ApacheKafka, checkpoint: Path) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    resource = ConfigResource(ResourceType.TOPIC, TOPIC)
    for name, value in COMPACTING.items():
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource.add_incremental_config(entry)
    admin.incremental_alter_configs([resource])[resource].result(60)
    wait_until(
        lambda: checkpoint.exists() and f"{TOPIC} 0 " in checkpoint.read_text(),
        "the compaction by Kafka",
    )


def contents(log: Cleaned) -> Contents:
    """Every field of every batch but its size and checksum, and its records.

    A delete horizon is when the cleaner ran, which is not equal.
    """
    return [(fields(header), records) for header, records in log.batches()]


def fields(header: BatchHeader) -> tuple[int, ...]:
    return (
        header.base_offset, header.last_offset_delta, header.attributes, header.leader_epoch,
        header.max_timestamp, header.producer_id, header.producer_epoch, header.base_sequence,
        header.record_count,
    )  # fmt: skip


def aborted(folder: Path) -> list[AbortedRange]:
    """What the transaction indexes say."""
    return [
        item
        for path in sorted(folder.glob("*.txnindex"))
        for item in aborted_from_bytes(path.read_bytes())
    ]


def test_our_cleaner_leaves_what_kafkas_leaves(tmp_path: Path, apache_kafka: KafkaRelease) -> None:
    with ApacheKafka(tmp_path / "kafka", settings=BROKER_SETTINGS) as kafka:
        write_history(kafka, seed=5)
        kafka.stop()
        (theirs,) = (tmp_path / "kafka").rglob(f"{TOPIC}-0")
        ours = tmp_path / "ours"
        shutil.copytree(theirs, ours)
        kafka.start()
        let_kafka_compact(kafka, theirs.parent / "cleaner-offset-checkpoint")
    log = Cleaned(ours, settings={"delete_retention_ms": DAY_MS})
    batches_before = len(log.batches())
    assert log.compact_sealed() == 1
    found = contents(log)
    assert len(found) < batches_before / 2
    assert aborted(ours) == aborted(theirs)
    assert found == contents(Cleaned(theirs))
