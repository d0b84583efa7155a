"""Dead letters: the records as they were, and headers that say what happened."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from broker import Broker
from broker.client import admin, consumer, producer
from broker.client.api import ConsumerRecord
from broker.model import TopicPartition
from connect.dead_letters import DeadLetters, make_topic
from connect.error_handling import ErrorSettings, Failure, Stage
from connect.errors import DataError
from connect.metrics import ErrorCounts
from connect.task_state import TaskId

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
        make_topic(administration, settings)
    with producer(broker, linger_ms=0) as out:
        yield DeadLetters(TASK, settings, out, counts), counts


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
        letters.report(Failure(Stage.VALUE_CONVERTER, "a.B", DataError("no"), RECORD))
        assert letters.settle(5_000)
        (letter,) = written(broker, "dead")
        assert letter[3:] == RECORD[3:]
        assert (counts.dead_letters, counts.dead_letter_failures) == (1, 0)


def test_context_headers_are_those_of_kafka_in_its_order(broker: Broker) -> None:
    settings = ErrorSettings(dead_letter_topic="dead", dead_letter_headers=True)
    with dead_letters(broker, settings) as (letters, _):
        error = raised(DataError("no number: é"))
        json_converter = "org.apache.kafka.connect.json.JsonConverter"
        letters.report(Failure(Stage.VALUE_CONVERTER, json_converter, error, RECORD))
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
        letters.report(Failure(Stage.TRANSFORMATION, "a.B", ValueError(), RECORD))
        letters.settle(5_000)
        headers = dict(written(broker, "dead")[0].headers)
        assert headers["__connect.errors.exception.message"] is None
        assert headers["__connect.errors.exception.class.name"] == b"builtins:ValueError"


def test_a_letter_that_is_too_large_is_counted_and_does_not_raise(broker: Broker) -> None:
    with dead_letters(broker, ErrorSettings(dead_letter_topic="dead")) as (letters, counts):
        huge = RECORD._replace(value=bytes(2_000_000))
        letters.report(Failure(Stage.VALUE_CONVERTER, "a.B", DataError("no"), huge))
        assert letters.settle(5_000)
        assert (counts.dead_letters, counts.dead_letter_failures) == (1, 1)


def test_the_topic_is_made_with_no_more_replicas_than_brokers(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    settings = ErrorSettings(dead_letter_topic="dead")
    with admin(broker) as administration:
        make_topic(administration, settings)
        make_topic(administration, settings)
        assert administration.list_topics()["dead"].partitions == 1
    assert 'topic "dead" is made with 1 replicas, not 3' in caplog.text
