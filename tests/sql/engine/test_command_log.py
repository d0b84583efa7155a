"""CommandLog on an embedded broker."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.broker import Broker
from broker.client import producer
from broker.errors import BrokerError
from sql.command_log import (
    Command,
    CommandLog,
    DamagedCommand,
    TakenOver,
    command_topic,
    decode,
    encode,
)
from tests.sql.engine.engines import ORDERS, engine_of

TOPIC = command_topic("test_")
CREATE = Command("stream/`A`/create", "CREATE STREAM A (X INT) WITH (...);", {"a": "b"})
DROP = Command("stream/`A`/drop", "DROP STREAM A;")


def opened(broker: Broker) -> CommandLog:
    log = CommandLog(broker, TOPIC)
    log.open()
    log.take_over()
    return log


def test_commands_are_read_in_the_order_they_were_written(broker: Broker) -> None:
    log = opened(broker)
    offsets = [log.append(CREATE), log.append(DROP)]
    log.close()
    again = CommandLog(broker, TOPIC)
    again.open()
    read = list(again.unread())
    assert [(each.offset, each.command) for each in read] == [
        (offsets[0], CREATE),
        (offsets[1], DROP),
    ]
    assert list(again.unread()) == []
    again.close()


def test_a_server_that_was_taken_over_reads_what_it_missed_before_it_writes(
    broker: Broker,
) -> None:
    first = opened(broker)
    first.append(CREATE)
    second = opened(broker)
    assert [each.command for each in second.unread()] == [CREATE]
    second.append(DROP)
    with pytest.raises(TakenOver):
        first.append(CREATE)
    first.take_over()
    assert [each.command for each in first.unread()] == [DROP]
    assert first.append(CREATE) > 0
    first.close()
    second.close()


def test_what_a_server_wrote_itself_is_not_read_again(broker: Broker) -> None:
    log = opened(broker)
    for command in (CREATE, DROP, CREATE):
        following = log.next_offset
        assert log.append(command) == following
        assert list(log.unread()) == []
    second = opened(broker)
    assert [each.command for each in second.unread()] == [CREATE, DROP, CREATE]
    assert second.append(DROP) == log.next_offset
    assert [each.command for each in log.unread()] == [DROP]
    assert log.next_offset == second.next_offset
    log.close()
    second.close()


@pytest.mark.slow
def test_a_start_ends_what_a_dead_server_was_writing(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS)
        topic = engine.command_topic
    with producer(broker, transactional_id=topic, linger_ms=0) as dead:
        dead.init_transactions()
        dead.begin_transaction()
        key, value = encode(DROP)
        dead.send(topic, value, key).result()
        log = CommandLog(broker, topic)
        assert len(list(log.unread())) == 1
        assert log.has_unfinished()
        with engine_of(broker, tmp_path) as engine:
            assert "ORDERS" in engine.state.catalog.sources
            assert list(log.unread()) == []
            assert not log.has_unfinished()
        log.close()
        with pytest.raises(BrokerError):
            dead.commit_transaction()


def test_a_record_that_is_no_command_is_damage_and_stays_unread(broker: Broker) -> None:
    log = opened(broker)
    log.append(CREATE)
    with producer(broker) as out:
        out.send(TOPIC, b"\xff", b"x").result()
    read: list[Command] = []

    def read_on() -> None:
        for each in log.unread():
            read.append(each.command)

    for _ in range(2):
        with pytest.raises(DamagedCommand):
            read_on()
    assert read == []
    log.close()


@given(st.binary(max_size=60), st.binary(max_size=200))
def test_bytes_of_any_kind_are_a_command_or_damage(key: bytes, value: bytes) -> None:
    try:
        found = decode(key, value, "topic", 0)
    except DamagedCommand:
        return
    assert isinstance(found, Command)


@given(st.text(max_size=50), st.text(max_size=50), st.dictionaries(st.text(), st.text()))
def test_a_command_is_the_same_after_encoding(
    name: str, statement: str, properties: dict[str, str]
) -> None:
    command = Command(name, statement, properties)
    assert decode(*encode(command), "topic", 0) == command
