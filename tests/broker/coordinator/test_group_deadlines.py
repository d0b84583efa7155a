"""Deadlines of groups and offsets are kept, whatever fails or comes in between."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.config import MINUTE_MS
from broker.coordinator import groups as groups_module
from broker.coordinator.group import ClassicGroup
from broker.coordinator.group_offsets import expired_offsets
from broker.coordinator.offsets import OffsetStore
from broker.errors import ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages import consumer_groups as consumer_wire
from broker.protocol.messages import groups as wire
from tests.broker.coordinator.test_groups import (
    RETENTION_MS,
    SUBSCRIPTION,
    House,
    commit,
    committed,
    stable_member,
)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.broker.close()


def test_a_consumer_group_keeps_its_deadlines_after_a_classic_join_that_never_came_back(
    house: House,
) -> None:
    house.topic("t")
    request = wire.JoinGroupRequest("g", 6_000, 6_000, "", None, "consumer")
    request.protocols = [wire.JoinGroupRequestProtocol("range", SUBSCRIPTION)]
    answer = house.ask(request, 9)
    assert isinstance(answer, wire.JoinGroupResponse)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    beat = consumer_wire.ConsumerGroupHeartbeatRequest("g", "m", 0, rebalance_timeout_ms=60_000)
    beat.subscribed_topic_names, beat.topic_partitions = ["t"], []
    joined = house.ask(beat, 1)
    assert isinstance(joined, consumer_wire.ConsumerGroupHeartbeatResponse)
    assert joined.error_code == ErrorCode.NONE, joined
    # The member is never heard of again.
    for _ in range(50):
        house.advance(2_000)
    (group,) = house.groups.snapshot()
    assert (group.type, group.member_count) == ("consumer", 0)


def test_offsets_go_on_to_expire_after_an_unexpected_exception(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.topic("t")
    commit(house, "a", 7)
    commit(house, "b", 7)
    find = expired_offsets

    def fails(store: OffsetStore, group: ClassicGroup, **options: int) -> list[TopicPartition]:
        if group.group_id == "a":
            raise RuntimeError("unexpected")
        return find(store, group, **options)

    with monkeypatch.context() as patch:
        patch.setattr(groups_module, "expired_offsets", fails)
        house.advance(RETENTION_MS + 10 * MINUTE_MS)
    assert (committed(house, "a"), committed(house, "b")) == (7, -1)
    house.advance(10 * MINUTE_MS)
    assert committed(house, "a") == -1


def test_a_group_that_fails_at_its_deadline_is_tried_again(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.topic("t")
    stable_member(house, "g")

    def fails(_: ClassicGroup) -> None:
        raise RuntimeError("unexpected")

    with monkeypatch.context() as patch:
        patch.setattr(ClassicGroup, "tick", fails)
        house.advance(30_000)
    assert house.groups.snapshot()[0].member_count == 1
    house.advance(30_000)
    assert house.groups.snapshot()[0].member_count == 0
