"""Dead letters: the records as they were, and headers that say what happened."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from broker import Broker
from broker.client import admin, consumer, producer
from broker.client.api import ConsumerRecord, NewTopic
from broker.client.record_producer import Producer
from broker.clock import ManualClock
from broker.errors import BrokerError, ErrorCode, MillstreamError, RequestTimeout
from broker.model import TopicPartition
from connect.config.connector import ErrorSettings
from connect.errors import ConnectError, DataError
from connect.runtime.dead_letters import (
    DeadLetterClients,
    DeadLetterRefused,
    DeadLetters,
    create_topic,
)
from connect.runtime.error_handling import RecordFailure, Stage
from connect.runtime.metrics import ErrorCounts
from connect.state.task_state import TaskId
from connect.stop_signal import StopSignal

TASK = TaskId("orders-sink", 3)
RECORD = ConsumerRecord(
    "orders", 2, 1842, 1_700_000_000_123, b"\x00key", b"\xff\xfe", (("trace", b"1"), ("none", None))
)


@contextmanager
def dead_letters(
    broker: Broker, settings: ErrorSettings
) -> Iterator[tuple[DeadLetters, ErrorCounts]]:
    counts = ErrorCounts()
    with admin(broker) as administration:
        create_topic(administration, settings)
    with producer(broker, linger_ms=0) as out, admin(broker) as administration:
        clients = DeadLetterClients(out, administration)
        yield DeadLetters(TASK, settings, clients, counts, StopSignal(ManualClock())), counts


def written(broker: Broker, topic: str) -> list[ConsumerRecord]:
    with consumer(broker, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(topic, 0)])
        return reader.poll(timeout_ms=5_000)


def raised(error: Exception) -> Exception:
    """The error with a trace, as it has after it was raised."""
    try:
        raise error
    except Exception as caught:
        return caught


def test_a_dead_letter_is_the_record_byte_by_byte(broker: Broker) -> None:
    with dead_letters(broker, ErrorSettings(dead_letter_topic="dead")) as (letters, counts):
        letters.report(RecordFailure(Stage.VALUE_CONVERTER, "a.B", DataError("no"), RECORD))
        assert letters.settle(5_000)
        (letter,) = written(broker, "dead")
        assert letter[3:] == RECORD[3:]
        assert (counts.dead_letters, counts.dead_letter_failures) == (1, 0)


def test_context_headers_are_those_of_kafka_in_its_order(broker: Broker) -> None:
    settings = ErrorSettings(dead_letter_topic="dead", dead_letter_headers=True)
    with dead_letters(broker, settings) as (letters, _):
        error = raised(DataError("no number: é"))
        json_converter = "org.apache.kafka.connect.json.JsonConverter"
        letters.report(RecordFailure(Stage.VALUE_CONVERTER, json_converter, error, RECORD))
        letters.settle(5_000)
        (letter,) = written(broker, "dead")
        assert letter.headers == (
            ("trace", b"1"),
            ("none", None),
            ("__connect.errors.topic", b"orders"),
            ("__connect.errors.partition", b"2"),
            ("__connect.errors.offset", b"1842"),
            ("__connect.errors.connector.name", b"orders-sink"),
            ("__connect.errors.task.id", b"3"),
            ("__connect.errors.stage", b"VALUE_CONVERTER"),
            ("__connect.errors.class.name", b"org.apache.kafka.connect.json.JsonConverter"),
            (
                "__connect.errors.exception.class.name",
                b"org.apache.kafka.connect.errors.DataException",
            ),
            ("__connect.errors.exception.message", b"no number: \xc3\xa9"),
            (
                "__connect.errors.exception.stacktrace",
                "".join(traceback.format_exception(error)).encode(),
            ),
        )


def test_an_error_without_a_message_has_a_null_header(broker: Broker) -> None:
    settings = ErrorSettings(dead_letter_topic="dead", dead_letter_headers=True)
    with dead_letters(broker, settings) as (letters, _):
        letters.report(RecordFailure(Stage.TRANSFORMATION, "a.B", ValueError(), RECORD))
        letters.settle(5_000)
        headers = dict(written(broker, "dead")[0].headers)
        assert headers["__connect.errors.exception.message"] is None
        assert headers["__connect.errors.exception.class.name"] == b"builtins:ValueError"


def test_a_letter_that_is_too_large_is_counted_and_never_settles(broker: Broker) -> None:
    with dead_letters(broker, ErrorSettings(dead_letter_topic="dead")) as (letters, counts):
        huge = RECORD._replace(value=bytes(2_000_000))
        report = letters.report(RecordFailure(Stage.VALUE_CONVERTER, "a.B", DataError("no"), huge))
        for _ in range(2):
            with pytest.raises(DeadLetterRefused, match="larger than max_request_size") as refused:
                letters.settle(5_000)
        assert refused.value.at == (
            'topic "orders" partition 2 offset 1842, stage VALUE_CONVERTER, a.B'
        )
        assert report.exception() is refused.value.__cause__
        assert (counts.dead_letters, counts.dead_letter_failures) == (1, 1)


def test_a_letter_that_the_broker_refuses_never_settles(broker: Broker) -> None:
    settings = ErrorSettings(dead_letter_topic="dead")
    with admin(broker) as administration:
        small = NewTopic("dead", 1, 1, {"max.message.bytes": "200"})
        administration.create_topics([small]).all()
    with dead_letters(broker, settings) as (letters, counts):
        letters.report(RecordFailure(Stage.VALUE_CONVERTER, "a.B", DataError("no"), RECORD))
        huge = RECORD._replace(value=bytes(1_000))
        letters.report(RecordFailure(Stage.VALUE_CONVERTER, "a.B", DataError("no"), huge))
        with pytest.raises(DeadLetterRefused):
            letters.settle(5_000)
        with pytest.raises(DeadLetterRefused):
            letters.raise_refused()
        assert counts.dead_letter_failures == 1
        assert [letter.value for letter in written(broker, "dead")] == [RECORD.value]


def test_a_task_cannot_cancel_a_letter(broker: Broker) -> None:
    with dead_letters(broker, ErrorSettings(dead_letter_topic="dead")) as (letters, _):
        report = letters.report(RecordFailure(Stage.TASK_PUT, "a.B", DataError("no"), RECORD))
        assert not report.cancel()
        assert letters.settle(5_000)
        assert report.result() is None


class Refusing:
    """A producer without permission, or without a topic."""

    def __init__(self, error: MillstreamError) -> None:
        self.error = error

    def send(self, *args: object, **kwargs: object) -> None:
        raise self.error

    def flush(self, timeout_ms: int) -> None:
        raise RequestTimeout("not all records were delivered")


def refused_by(broker: Broker, error: MillstreamError) -> str:
    with admin(broker) as administration:
        clients = DeadLetterClients(cast(Producer, Refusing(error)), administration)
        stop = StopSignal(ManualClock())
        settings = ErrorSettings(dead_letter_topic="dead")
        letters = DeadLetters(TASK, settings, clients, ErrorCounts(), stop)
        letters.report(RecordFailure(Stage.VALUE_CONVERTER, "a.B", DataError("no"), RECORD))
        with pytest.raises(DeadLetterRefused) as refused:
            letters.raise_refused()
        return str(refused.value)


def test_a_producer_that_may_not_write_refuses_the_letter(broker: Broker) -> None:
    denied = BrokerError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    assert "topic authorization failed" in refused_by(broker, denied)


def test_a_topic_that_was_deleted_is_not_waited_for(broker: Broker) -> None:
    assert "the topic does not exist" in refused_by(broker, RequestTimeout("no metadata of dead"))


def test_letters_under_way_to_a_deleted_topic_are_not_waited_for(broker: Broker) -> None:
    class Deleted(Refusing):
        def send(self, *args: object, **kwargs: object) -> None:
            return

    with admin(broker) as administration:
        clients = DeadLetterClients(cast(Producer, Deleted(ConnectError(""))), administration)
        settings = ErrorSettings(dead_letter_topic="dead")
        letters = DeadLetters(TASK, settings, clients, ErrorCounts(), StopSignal(ManualClock()))
        letters.report(RecordFailure(Stage.VALUE_CONVERTER, "a.B", DataError("no"), RECORD))
        with pytest.raises(DeadLetterRefused, match="the topic does not exist"):
            letters.settle(10)


def test_the_topic_is_made_with_no_more_replicas_than_brokers(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    settings = ErrorSettings(dead_letter_topic="dead")
    with admin(broker) as administration:
        create_topic(administration, settings)
        create_topic(administration, settings)
        assert administration.list_topics()["dead"].partitions == 1
    assert 'topic "dead" is created with 1 replicas instead of 3' in caplog.text
