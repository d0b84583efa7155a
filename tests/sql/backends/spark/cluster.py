"""A broker for the tests of the Spark source and sink, and records to put into it."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from broker.client import admin, producer
from broker.client.administration.values import NewTopic
from broker.client.api import ConsumerRecord
from broker.model import TopicPartition
from sql.backends.spark.options import SourceOptions
from tests.support.topics import read_topic

SETTINGS = {
    # Records of these tests have times of long ago, which retention would remove after a while.
    "log.retention.ms": "-1",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}


def create(servers: str, topic: str, partitions: int = 2) -> str:
    """A new topic; returns its name."""
    with admin(servers) as administration:
        administration.create_topics([NewTopic(topic, partitions=partitions)]).all()
    return topic


def fill(servers: str, topic: str, numbers: Iterable[int], partition: int | None = None) -> None:
    """Records with numbers as keys and values, and as times."""
    with producer(servers) as out:
        for number in numbers:
            text = b"%d" % number
            out.send(topic, text, key=text, partition=partition, timestamp_ms=1_000 + number)


def fill_and_abort(servers: str, topic: str, numbers: Iterable[int], partition: int) -> None:
    """Records of a transaction that is aborted."""
    with producer(servers, transactional_id=f"aborting-{topic}") as out:
        out.init_transactions()
        out.begin_transaction()
        for number in numbers:
            out.send(topic, b"aborted %d" % number, partition=partition)
        out.flush()
        out.abort_transaction()


def committed_records(servers: str, topic: str) -> list[ConsumerRecord]:
    """All records of a topic that a reader of committed data gets."""
    return read_topic(servers, topic, committed=True)


def numbers_in(servers: str, topic: str) -> list[int]:
    """The values of a topic as numbers, in order."""
    return sorted(int(record.value or b"-1") for record in committed_records(servers, topic))


def drop_before(servers: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Delete the records below offsets, as retention does."""
    with admin(servers) as administration:
        administration.delete_records(offsets).all()


def reading(servers: str, *topics: str, **changes: object) -> SourceOptions:
    """Options of a source."""
    # The fields have many types; a wrong one shows in the test.
    return replace(SourceOptions(servers, topics), **changes)  # type: ignore[arg-type]
