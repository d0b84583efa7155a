"""Offsets of sink connectors, seen and changed while they are stopped."""

import pytest

from broker import Broker
from broker.client import admin
from broker.model import TopicPartition
from connect.errors import BadRequest, ConnectError
from connect.state.group_offsets import (
    alter_offsets,
    group_of,
    list_offsets,
    parse_offsets,
    reset_offsets,
)
from tests.connect.running_worker import make_topic, running_worker, write
from tests.support.peer import wait_until

IN = TopicPartition("in", 0)


def shown(partition: int, offset: int) -> tuple[dict[str, object], dict[str, object]]:
    return {"kafka_topic": "in", "kafka_partition": partition}, {"kafka_offset": offset}


def test_a_connector_has_a_group_by_its_name_unless_it_says_otherwise() -> None:
    assert group_of("files", {}) == "connect-files"
    assert group_of("files", {"consumer.override.group.id": "mine"}) == "mine"


@pytest.mark.parametrize("offset", [42, "42"])
@pytest.mark.parametrize("partition", [3, "3"])
def test_numbers_may_be_strings(partition: object, offset: object) -> None:
    where = {"kafka_topic": "in", "kafka_partition": partition}
    given = [(where, {"kafka_offset": offset}), ({**where, "kafka_topic": "b"}, None)]
    assert parse_offsets(given) == {TopicPartition("in", 3): 42, TopicPartition("b", 3): None}


@pytest.mark.parametrize(
    ("partition", "offset", "said"),
    [
        (None, {"kafka_offset": 1}, "cannot be null or missing"),
        ({}, {"kafka_offset": 1}, "must contain the keys"),
        ({"kafka_topic": None, "kafka_partition": 1}, None, "may not be null"),
        ({"kafka_topic": "in", "kafka_partition": -1}, None, "cannot be negative"),
        ({"kafka_topic": "in"}, {"kafka_offset": 1}, "must contain the keys"),
        ({"kafka_topic": "in", "kafka_partition": "x"}, None, "Kafka partition value"),
        ({"kafka_topic": "in", "kafka_partition": 1}, {"position": 1}, "'kafka_offset'"),
        ({"kafka_topic": "in", "kafka_partition": 1}, {"kafka_offset": None}, "Kafka offset value"),
    ],
)
def test_wrong_offsets_are_bad_requests(
    partition: dict[str, object] | None, offset: dict[str, object] | None, said: str
) -> None:
    with pytest.raises(BadRequest, match=said):
        parse_offsets([(partition, offset)])


@pytest.mark.slow
def test_offsets_of_a_stopped_sink_are_shown_altered_and_reset(broker: Broker) -> None:
    make_topic(broker, "in", partitions=2)
    for partition in range(2):
        write(broker, "in", "a", "b", "c", partition=partition)
    with running_worker(broker) as worker, admin(broker) as administration:
        assert list_offsets(administration, "connect-snk") == []
        script, _ = worker.sink(topics="in")
        wait_until(lambda: len(script.values()) == 6, "all records")
        worker.stop("snk")
        assert list_offsets(administration, "connect-snk") == [shown(0, 3), shown(1, 3)]
        alter_offsets(administration, "connect-snk", {IN: 1, TopicPartition("in", 1): None})
        assert list_offsets(administration, "connect-snk") == [shown(0, 1)]
        script, _ = worker.sink(topics="in")
        wait_until(lambda: len(script.values()) == 5, "two and three records")
        worker.stop("snk")
        reset_offsets(administration, "connect-snk")
        assert list_offsets(administration, "connect-snk") == []
        reset_offsets(administration, "connect-snk")


@pytest.mark.slow
def test_offsets_of_a_running_sink_cannot_be_changed(broker: Broker) -> None:
    make_topic(broker, "in")
    with running_worker(broker) as worker, admin(broker) as administration:
        script, _ = worker.sink(topics="in")
        wait_until(lambda: "open in-0" in script.log, "assigned")
        with pytest.raises(ConnectError, match="it has members"):
            alter_offsets(administration, "connect-snk", {IN: 0})
        with pytest.raises(ConnectError, match="it has members"):
            reset_offsets(administration, "connect-snk")
