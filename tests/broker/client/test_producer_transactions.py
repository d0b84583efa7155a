"""Transactions on every kind of broker: commit, abort, offsets, fencing, timeouts."""

import uuid
from collections.abc import Callable

import pytest

from broker.client import admin, producer
from broker.client.administration.values import NewTopic
from broker.client.api import GroupMetadata, OffsetAndMetadata
from broker.client.opening import Target
from broker.errors import BrokerError, ClientError, ErrorCode, RequestTimeout
from broker.model import TopicPartition
from tests.broker.client.conftest import read_all
from tests.support.peer import wait_until

MakeTopic = Callable[..., str]

TIMEOUT_MS = 60_000


def unique_id() -> str:
    return f"tx-{uuid.uuid4().hex[:10]}"


def committed_values(target: Target, topic: str, count: int) -> list[bytes | None]:
    records = read_all(target, topic, count, isolation_level="read_committed")
    return [record.value for record in records]


def test_committed_records_are_seen_and_aborted_ones_are_not(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    with producer(target, transactional_id=unique_id(), linger_ms=0) as out:
        out.init_transactions()
        for number in range(6):
            out.begin_transaction()
            for partition in (0, 1):
                out.send(topic, b"%d" % number, partition=partition)
            if number % 3 == 2:
                out.flush(TIMEOUT_MS)
                out.abort_transaction()
            else:
                out.commit_transaction()
    seen = committed_values(target, topic, 8)
    assert sorted(value for value in seen if value) == sorted([b"0", b"1", b"3", b"4"] * 2)


def test_an_empty_transaction_commits_and_aborts(target: Target) -> None:
    with producer(target, transactional_id=unique_id()) as out:
        out.init_transactions()
        out.begin_transaction()
        out.commit_transaction()
        out.begin_transaction()
        out.abort_transaction()


def test_records_that_were_not_sent_yet_fail_when_the_transaction_is_aborted(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with producer(target, transactional_id=unique_id(), linger_ms=60_000) as out:
        out.init_transactions()
        out.begin_transaction()
        dropped = out.send(topic, b"dropped")
        out.abort_transaction()
        assert "aborted" in str(dropped.exception(TIMEOUT_MS))
        out.begin_transaction()
        kept = out.send(topic, b"kept")
        out.commit_transaction()
        assert kept.result(0).offset >= 0
    assert committed_values(target, topic, 1) == [b"kept"]


def test_offsets_are_committed_with_the_transaction_only(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    group = GroupMetadata(f"group-{uuid.uuid4().hex[:10]}")
    tp = TopicPartition(topic, 0)
    with producer(target, transactional_id=unique_id()) as out, admin(target) as administration:

        def committed() -> int | None:
            found = administration.list_group_offsets(group.group_id).all()
            return found[tp].offset if tp in found else None

        out.init_transactions()
        out.begin_transaction()
        out.send_offsets_to_transaction({tp: OffsetAndMetadata(5, metadata="note")}, group)
        out.abort_transaction()
        assert committed() is None
        out.begin_transaction()
        out.send(topic, b"v")
        out.send_offsets_to_transaction({tp: OffsetAndMetadata(7)}, group)
        out.commit_transaction()
        # The coordinator has decided; its marker reaches the group a moment later.
        wait_until(lambda: committed() == 7, "the commit of the offsets")


def test_offsets_of_a_member_of_the_past_are_refused_and_the_transaction_can_be_aborted(
    target: Target, make_topic: MakeTopic
) -> None:
    tp = TopicPartition(make_topic(), 0)
    stranger = GroupMetadata(f"group-{uuid.uuid4().hex[:10]}", 3, "nobody")
    with producer(target, transactional_id=unique_id()) as out:
        out.init_transactions()
        out.begin_transaction()
        with pytest.raises(BrokerError) as refused:
            out.send_offsets_to_transaction({tp: OffsetAndMetadata(1)}, stranger)
        assert refused.value.code in (
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.ILLEGAL_GENERATION,
        )
        with pytest.raises(ClientError, match="abort_transaction"):
            out.commit_transaction()
        out.abort_transaction()
        out.begin_transaction()
        out.send(tp.topic, b"v")
        out.commit_transaction()


def test_a_second_producer_fences_the_first(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    name = unique_id()
    with producer(target, transactional_id=name) as first:
        first.init_transactions()
        first.begin_transaction()
        first.send(topic, b"lost").result(TIMEOUT_MS)
        with producer(target, transactional_id=name) as second:
            second.init_transactions()
            with pytest.raises(BrokerError, match="took over") as fenced:
                first.commit_transaction()
            assert fenced.value.code is ErrorCode.PRODUCER_FENCED
            with pytest.raises(BrokerError, match="took over"):
                first.begin_transaction()
            second.begin_transaction()
            second.send(topic, b"kept")
            second.commit_transaction()
    assert committed_values(target, topic, 1) == [b"kept"]


def test_a_record_that_is_refused_fails_the_transaction_but_not_the_producer(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic(max_message_bytes="1000")
    with producer(target, transactional_id=unique_id()) as out:
        out.init_transactions()
        out.begin_transaction()
        out.send(topic, b"fine").result(TIMEOUT_MS)
        refused = out.send(topic, b"x" * 2_000)
        with pytest.raises(ClientError, match="abort_transaction"):
            out.commit_transaction()
        assert isinstance(refused.exception(0), BrokerError)
        with pytest.raises(ClientError, match="transaction failed"):
            out.send(topic, b"too late")
        out.abort_transaction()
        for number in range(3):
            out.begin_transaction()
            out.send(topic, b"%d" % number)
            out.commit_transaction()
    assert committed_values(target, topic, 3) == [b"0", b"1", b"2"]


@pytest.mark.slow
def test_a_transaction_that_takes_too_long_is_ended_by_the_coordinator(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with producer(target, transactional_id=unique_id(), transaction_timeout_ms=1_000) as out:
        out.init_transactions()
        out.begin_transaction()
        out.send(topic, b"late").result(TIMEOUT_MS)
        with admin(target) as administration:
            name = out.transactional_id or ""

            def ended() -> bool:
                found = administration.describe_transactions([name])[name]
                return found.state in ("CompleteAbort", "Empty")

            wait_until(ended, "the end of the transaction by the coordinator")
        with pytest.raises(BrokerError, match="timed out"):
            out.commit_transaction()
    with producer(target) as plain:
        plain.send(topic, b"after").result(TIMEOUT_MS)
    assert committed_values(target, topic, 1) == [b"after"]


def test_closing_aborts_an_open_transaction(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with producer(target, transactional_id=unique_id()) as out:
        out.init_transactions()
        out.begin_transaction()
        out.send(topic, b"open").result(TIMEOUT_MS)
    with producer(target) as plain:
        plain.send(topic, b"after").result(TIMEOUT_MS)
    assert committed_values(target, topic, 1) == [b"after"]


def test_calls_out_of_order_say_what_can_be_called(embedded_target: Target) -> None:
    with producer(embedded_target, transactional_id=unique_id()) as out:
        for call in (out.begin_transaction, out.commit_transaction, out.abort_transaction):
            with pytest.raises(ClientError, match="not initialised"):
                call()
        with pytest.raises(ClientError, match="init_transactions"):
            out.send("topic", b"v")
        out.init_transactions()
        with pytest.raises(ClientError, match="begin_transaction"):
            out.send("topic", b"v")
        with pytest.raises(ClientError, match="the producer is ready"):
            out.commit_transaction()
        out.begin_transaction()
        with pytest.raises(ClientError, match="in a transaction"):
            out.begin_transaction()
    with producer(embedded_target) as plain, pytest.raises(ClientError, match="transactional_id"):
        plain.begin_transaction()


def test_an_abandoned_producer_does_not_wait_for_a_topic_that_was_deleted(
    tcp_target: Target,
) -> None:
    topic = f"deleted-{uuid.uuid4().hex[:10]}"
    with (
        producer(tcp_target, transactional_id=unique_id(), linger_ms=0) as out,
        admin(tcp_target) as administration,
    ):
        administration.create_topics([NewTopic(topic, 1)]).all()
        out.init_transactions()
        out.begin_transaction()
        out.partitions_for(topic)
        administration.delete_topics([topic]).all()
        refused = out.send(topic, b"to nowhere", partition=0)
        with pytest.raises(RequestTimeout):
            out.flush(100)
        out.abandon()
        out.flush(TIMEOUT_MS)
        assert refused.exception(0) is not None
        out.abort_transaction()


def test_records_of_an_abandoned_producer_fail(target: Target, make_topic: MakeTopic) -> None:
    topic = make_topic()
    with producer(target, linger_ms=60_000) as out:
        waiting = out.send(topic, b"not sent yet")
        out.abandon()
        assert "abandoned" in str(waiting.exception(TIMEOUT_MS))
