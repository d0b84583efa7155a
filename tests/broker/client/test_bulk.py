"""Many records in one call are delivered as if each had been sent alone."""

import random
import uuid
from collections.abc import Callable

import pytest

from broker.client import admin, producer
from broker.client.administration.values import NewTopic
from broker.client.bulk import ManyRow, arrived
from broker.client.opening import Target
from broker.client.partitioner import partition_for_key
from broker.client.produced_batch import Delivery
from broker.errors import BrokerError, ClientError
from tests.broker.client.conftest import read_all

MakeTopic = Callable[..., str]

TIMEOUT_MS = 60_000


def rows(count: int) -> list[ManyRow]:
    """Records with and without keys, headers, times and partitions."""
    source = random.Random(3)
    made: list[ManyRow] = []
    for number in range(count):
        key = b"%d" % number if number % 3 else None
        headers = [("h", b"%d" % number), ("none", None)] if number % 5 == 0 else ()
        partition = source.randrange(4) if number % 7 == 0 else None
        value = None if number % 11 == 0 else source.randbytes(source.randrange(200))
        made.append((key, value, headers, 1_000 + number, partition))
    return made


def test_many_records_arrive_as_they_were_sent(target: Target, make_topic: MakeTopic) -> None:
    topic, given = make_topic(4), rows(2_000)
    deliveries: list[Delivery | None] = []
    with producer(target, batch_size=2_000) as out:
        out.send_many(topic, given[:1_500], deliveries)
        out.send_many(topic, given[1_500:], deliveries)
        out.flush(TIMEOUT_MS)
        assert arrived(deliveries, 0) == 2_000
        places = [each.result(0) for each in deliveries if each is not None]
    found = {record[1:3]: record for record in read_all(target, topic, 2_000)}
    assert len(found) == 2_000
    for (key, value, headers, timestamp_ms, partition), place in zip(given, places, strict=True):
        record = found[place.partition, place.offset]
        assert (record.key, record.value, record.timestamp_ms) == (key, value, timestamp_ms)
        assert record.headers == tuple(headers)
        if partition is not None:
            assert place.partition == partition
        elif key is not None:
            assert place.partition == partition_for_key(key, 4)


def test_records_of_a_partition_keep_their_order(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with producer(target, batch_size=500, linger_ms=0) as out:
        for start in range(0, 3_000, 700):
            chunk: list[ManyRow] = [
                (None, b"%d" % number, (), None, None) for number in range(start, start + 700)
            ]
            out.send_many(topic, chunk, [])
        out.flush(TIMEOUT_MS)
    values = [record.value for record in read_all(target, topic, 3_500)]
    assert values == [b"%d" % number for number in range(3_500)]


def test_what_is_raised_is_about_the_record_after_the_deliveries(embedded_target: Target) -> None:
    good: ManyRow = (None, b"v", (), None, 0)
    huge: ManyRow = (None, bytes(2_000_000), (), None, None)
    text: ManyRow = (None, "no bytes", (), None, None)  # type: ignore[assignment]
    with producer(embedded_target) as out:
        for bad, error in ((huge, BrokerError), (text, ClientError)):
            deliveries: list[Delivery | None] = []
            with pytest.raises(error):
                out.send_many("bulk-refusals", [good, good, bad, good], deliveries)
            assert len(deliveries) == 2
        out.flush(TIMEOUT_MS)
        assert arrived(deliveries, 0) == 2


@pytest.fixture
def small_topic(embedded_target: Target) -> str:
    """A topic whose batches have at most 2000 bytes."""
    name = f"bulk-{uuid.uuid4().hex[:8]}"
    with admin(embedded_target) as administration:
        new = NewTopic(name, 1, 1, {"max.message.bytes": "2000"})
        administration.create_topics([new]).all()
    return name


def test_arrived_ends_before_what_waits_or_failed(
    embedded_target: Target, small_topic: str
) -> None:
    deliveries: list[Delivery | None] = [None]
    with producer(embedded_target, linger_ms=60_000) as out:
        out.send_many(small_topic, [(None, b"v", (), None, 0)] * 2, deliveries)
        assert arrived(deliveries, 0) == 1
        out.flush(TIMEOUT_MS)
        assert arrived(deliveries, 0) == 3
        assert arrived(deliveries, 2) == 1
        out.send_many(small_topic, [(None, bytes(5_000), (), None, 0)], deliveries)
        assert arrived(deliveries, 0) == 3
        out.flush(TIMEOUT_MS)
        assert deliveries[-1] is not None
        assert deliveries[-1].done()
        assert arrived(deliveries, 0) == 3


def test_a_batch_that_is_split_is_known_part_by_part(
    embedded_target: Target, small_topic: str
) -> None:
    deliveries: list[Delivery | None] = []
    with producer(embedded_target, batch_size=16_000) as out:
        out.send_many(small_topic, [(None, bytes(500), (), None, None)] * 20, deliveries)
        out.flush(TIMEOUT_MS)
        assert arrived(deliveries, 0) == 20
