"""With durability fsync no answer about groups comes before what it says is on the disk."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.broker import Broker
from broker.config import BrokerConfig
from broker.errors import ErrorCode
from broker.pending import Pending
from broker.protocol.messages import consumer_groups as consumer_wire
from broker.protocol.messages import groups as wire
from broker.protocol.messages import offsets as offsets_wire
from tests.broker.coordinator.requests import ask

WAIT_SECONDS = 60


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    config = BrokerConfig(
        log_dir=str(tmp_path), durability="fsync", group_initial_rebalance_delay_ms=0
    )
    with Broker(config) as made:
        with made.lock:
            made.state.topics.create("t", partition_count=1)
        yield made


def later(broker: Broker, answer: object) -> object:
    """An answer that must not be there yet, and then comes."""
    assert isinstance(answer, Pending)
    assert not answer.done
    came = threading.Event()
    found: list[object] = []

    def take(value: object) -> None:
        found.append(value)
        came.set()

    answer.then(take)
    broker.lock.release()
    try:
        assert came.wait(WAIT_SECONDS)
    finally:
        broker.lock.acquire()
    return found[0]


def test_a_commit_waits_for_the_disk(broker: Broker) -> None:
    partition = offsets_wire.OffsetCommitRequestPartition(0, 5, -1, None)
    topic = offsets_wire.OffsetCommitRequestTopic("t", partitions=[partition])
    with broker.lock:
        request = offsets_wire.OffsetCommitRequest("g", topics=[topic])
        answer = later(broker, ask(broker, request, 9))
    assert isinstance(answer, offsets_wire.OffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


def test_an_assignment_waits_for_the_disk(broker: Broker) -> None:
    request = wire.JoinGroupRequest(
        "g",
        10_000,
        20_000,
        protocol_type="consumer",
        protocols=[wire.JoinGroupRequestProtocol("range", b"")],
    )
    joined: list[wire.JoinGroupResponse] = []
    with broker.lock:
        answer = ask(broker, request, 3)
        assert isinstance(answer, Pending)
        answer.then(joined.append)
        member_id = joined[0].member_id
        assignments = [wire.SyncGroupRequestAssignment(member_id, b"work")]
        sync = wire.SyncGroupRequest("g", 1, member_id, assignments=assignments)
        synced = later(broker, ask(broker, sync, 5))
    assert isinstance(synced, wire.SyncGroupResponse)
    assert synced.assignment == b"work"


def test_a_heartbeat_that_changes_nothing_is_answered_at_once(broker: Broker) -> None:
    join = consumer_wire.ConsumerGroupHeartbeatRequest(
        "g", "a", 0, rebalance_timeout_ms=1000, subscribed_topic_names=["t"], topic_partitions=[]
    )
    with broker.lock:
        joined = later(broker, ask(broker, join, 1))
        assert isinstance(joined, consumer_wire.ConsumerGroupHeartbeatResponse)
        beat = consumer_wire.ConsumerGroupHeartbeatRequest("g", "a", joined.member_epoch)
        answer = ask(broker, beat, 1)
    assert isinstance(answer, consumer_wire.ConsumerGroupHeartbeatResponse)
    assert answer.error_code == ErrorCode.NONE
