"""OutputBuffer: rows in, batches out, and what happens to those that are refused."""

import pytest

from broker.broker import Broker
from broker.client import admin, producer
from broker.client.administration.values import NewTopic
from broker.client.partitioner import partition_for_key
from broker.model import TopicPartition
from streams.errors import ProductionFailed
from streams.handlers import Answer, Handler, dead_letter, log_and_continue, log_and_fail
from streams.record import NO_HEADERS
from streams.runtime.output_buffer import OutputBuffer
from tests.streams.runtime.apps import make_topics
from tests.support.topics import read_topic

TIMEOUT_MS = 60_000


def values_in(broker: Broker, topic: str, partition: int = 0) -> list[bytes | None]:
    return [each.value for each in read_topic(broker, topic) if each.partition == partition]


def test_rows_go_where_their_keys_say_and_ends_are_told(broker: Broker) -> None:
    make_topics(broker, out=3)
    with producer(broker) as out:
        buffer = OutputBuffer(out, handler=log_and_fail)
        for number in range(20):
            key = b"k%d" % number
            buffer.send("out", key, b"v%d" % number, 1000, NO_HEADERS, None)
        ends = buffer.flush(TIMEOUT_MS)
    for partition in range(3):
        wanted = [b"v%d" % n for n in range(20) if partition_for_key(b"k%d" % n, 3) == partition]
        assert values_in(broker, "out", partition) == wanted
        assert ends.get(TopicPartition("out", partition), 0) == len(wanted)


def test_full_batches_are_sent_before_the_commit(broker: Broker) -> None:
    make_topics(broker, out=1)
    with producer(broker) as out:
        buffer = OutputBuffer(out, handler=log_and_fail, batch_limit=lambda topic: 1000)
        for number in range(100):
            buffer.send("out", None, b"%3d" % number * 30, 1000, NO_HEADERS, None)
        out.flush()
        assert len(values_in(broker, "out")) > 80
        assert buffer.flush(TIMEOUT_MS) == {TopicPartition("out", 0): 100}


def test_rows_without_a_key_take_all_partitions_in_turn(broker: Broker) -> None:
    make_topics(broker, out=2)
    with producer(broker) as out:
        buffer = OutputBuffer(out, handler=log_and_fail, batch_limit=lambda topic: 100)
        for _ in range(10):
            buffer.send("out", None, b"x" * 60, 1000, NO_HEADERS, None)
        ends = buffer.flush(TIMEOUT_MS)
    assert ends == {TopicPartition("out", 0): 5, TopicPartition("out", 1): 5}


def test_what_was_discarded_is_not_sent(broker: Broker) -> None:
    make_topics(broker, out=1)
    with producer(broker) as out:
        buffer = OutputBuffer(out, handler=log_and_fail)
        buffer.send("out", b"k", b"gone", 1000, NO_HEADERS, None)
        buffer.discard()
        buffer.send("out", b"k", b"there", 1000, NO_HEADERS, None)
        buffer.flush(TIMEOUT_MS)
    assert values_in(broker, "out") == [b"there"]


def send_too_large(broker: Broker, handler: Handler) -> None:
    """Two records, the first of which the topic refuses."""
    with admin(broker) as administration:
        small = NewTopic("small", 1, configs={"max.message.bytes": "1000"})
        administration.create_topics([small, NewTopic("letters", 1)]).all()
    with producer(broker) as out:
        buffer = OutputBuffer(out, handler=handler, batch_limit=lambda topic: 900)
        buffer.send("small", b"k", b"x" * 2000, 1000, NO_HEADERS, None)
        buffer.send("small", b"k", b"y", 1001, NO_HEADERS, None)
        buffer.flush(TIMEOUT_MS)


def test_a_refused_result_fails_the_commit(broker: Broker) -> None:
    with pytest.raises(ProductionFailed, match="refused a result"):
        send_too_large(broker, log_and_fail)


def test_a_refused_result_can_be_left_out(broker: Broker) -> None:
    send_too_large(broker, log_and_continue)
    assert values_in(broker, "small") == [b"y"]


def test_a_refused_result_can_become_a_dead_letter(broker: Broker) -> None:
    send_too_large(broker, dead_letter("letters"))
    assert values_in(broker, "small") == [b"y"]
    assert values_in(broker, "letters") == [b"x" * 2000]


def test_retries_of_a_refused_result_end(broker: Broker) -> None:
    with pytest.raises(ProductionFailed, match="10 times"):
        send_too_large(broker, lambda failure: Answer.RETRY)


def test_a_partition_that_is_not_there_is_named(broker: Broker) -> None:
    make_topics(broker, out=2)
    with producer(broker) as out:
        buffer = OutputBuffer(out, handler=log_and_fail)
        with pytest.raises(ProductionFailed, match='"out" has 2 partitions'):
            buffer.send("out", b"k", b"v", 1000, NO_HEADERS, 2)


def test_the_way_to_a_topic_leads_where_send_does(broker: Broker) -> None:
    make_topics(broker, out=3)
    with producer(broker) as out:
        buffer = OutputBuffer(out, handler=log_and_fail, batch_limit=lambda topic: 150)
        send_to = buffer.sender_to("out")
        for number in range(20):
            inner = b"k%d" % number
            send_to(inner, inner + b"-window", b"v%d" % number, 1000, NO_HEADERS)
        send_to(b"k0", b"k0", None, 1000, (("name", b"data"),))
        buffer.flush(TIMEOUT_MS)
    for partition in range(3):
        wanted: list[bytes | None] = [
            b"v%d" % n for n in range(20) if partition_for_key(b"k%d" % n, 3) == partition
        ]
        if partition_for_key(b"k0", 3) == partition:
            wanted.append(None)
        assert values_in(broker, "out", partition) == wanted


def test_many_rows_go_out_in_order_and_in_batches_below_the_limit(broker: Broker) -> None:
    with admin(broker) as administration:
        small = NewTopic("small", 1, configs={"max.message.bytes": "1000"})
        administration.create_topics([small]).all()
    values = [b"v" * (3 if number < 70 else 300) + b"%d" % number for number in range(100)]
    with producer(broker) as out:
        buffer = OutputBuffer(out, handler=log_and_fail, batch_limit=lambda topic: 900)
        tp = TopicPartition("small", 0)
        buffer.send("small", b"k", b"first", 1000, NO_HEADERS, 0)
        buffer.send_all(tp, [(b"k", value, NO_HEADERS, 1000) for value in values])
        assert buffer.flush(TIMEOUT_MS) == {tp: 101}
        assert buffer.records_sent == 101
    assert values_in(broker, "small") == [b"first", *values]
