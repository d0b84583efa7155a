"""Offsets inside transactions: they count when the transaction commits, also over a restart."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.coordinator.parts import finish
from broker.errors import ErrorCode
from broker.model import ConnectionInfo
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages import groups as groups_wire
from broker.protocol.messages import transactions as wire
from tests.broker.coordinator.requests import now
from tests.broker.coordinator.test_groups import (
    House,
    beat,
    commit,
    committed,
    delete_offset,
    stable_member,
)

CLIENT = ConnectionInfo()


class Transactions:
    """A transactional producer that commits offsets of t-0."""

    def __init__(self, house: House, name: str = "producer") -> None:
        self._house = house
        self._name = name
        request = wire.InitProducerIdRequest(name, 60_000)
        answer = self._handle(ApiKey.INIT_PRODUCER_ID, 4, request)
        assert isinstance(answer, wire.InitProducerIdResponse)
        assert answer.error_code == ErrorCode.NONE
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def _handle(self, api_key: ApiKey, version: int, request: object) -> object:
        return now(self._house.broker.handle(api_key, version, request, CLIENT))

    def send(self, group_id: str, offset: int, **fields: object) -> int:
        """Add a group's offset to the transaction; the error code."""
        added = wire.AddOffsetsToTxnRequest(self._name, self.producer_id, self.epoch, group_id)
        answer = self._handle(ApiKey.ADD_OFFSETS_TO_TXN, 3, added)
        assert isinstance(answer, wire.AddOffsetsToTxnResponse)
        assert answer.error_code == ErrorCode.NONE
        partition = wire.TxnOffsetCommitRequestPartition(0, offset, -1, "")
        request = wire.TxnOffsetCommitRequest(
            self._name,
            group_id,
            self.producer_id,
            self.epoch,
            topics=[wire.TxnOffsetCommitRequestTopic("t", [partition])],
        )
        for name, value in fields.items():
            setattr(request, name, value)
        response = self._handle(ApiKey.TXN_OFFSET_COMMIT, 3, request)
        assert isinstance(response, wire.TxnOffsetCommitResponse)
        return response.topics[0].partitions[0].error_code

    def end(self, *, commits: bool) -> None:
        request = wire.EndTxnRequest(self._name, self.producer_id, self.epoch, commits)
        answer = self._handle(ApiKey.END_TXN, 3, request)
        assert isinstance(answer, wire.EndTxnResponse)
        assert answer.error_code == ErrorCode.NONE


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    made.topic("t")
    yield made
    made.broker.close()


@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("restarts", ["never", "before the end", "after the end"])
def test_offsets_count_only_when_the_transaction_commits(
    house: House, commits: bool, restarts: str
) -> None:
    commit(house, "g", 1)
    transaction = Transactions(house)
    assert transaction.send("g", 5) == ErrorCode.NONE
    assert transaction.send("h", 6) == ErrorCode.NONE
    if restarts == "before the end":
        house.restart()
    assert committed(house, "g") == 1
    assert committed(house, "g", stable=True) == ErrorCode.UNSTABLE_OFFSET_COMMIT
    transaction.end(commits=commits)
    if restarts == "after the end":
        house.restart()
    found = [committed(house, group_id, stable=True) for group_id in "gh"]
    assert found == ([5, 6] if commits else [1, -1])


def test_a_plain_commit_after_the_transactional_one_stands(house: House) -> None:
    transaction = Transactions(house)
    transaction.send("g", 5)
    commit(house, "g", 9)
    transaction.end(commits=True)
    assert committed(house, "g") == 9
    house.restart()
    assert committed(house, "g") == 9


def test_two_transactions_hold_the_same_partition(house: House) -> None:
    first, second = Transactions(house, "first"), Transactions(house, "second")
    first.send("g", 5)
    second.send("g", 6)
    first.end(commits=True)
    assert committed(house, "g", stable=True) == ErrorCode.UNSTABLE_OFFSET_COMMIT
    second.end(commits=False)
    assert committed(house, "g", stable=True) == 5


def test_members_are_checked_when_they_are_named(house: House) -> None:
    joined = stable_member(house, "g")
    beat(house, "modern", "a", 0)
    transaction = Transactions(house)
    assert transaction.send("g", 1) == ErrorCode.NONE
    member = {"member_id": joined.member_id}
    assert transaction.send("g", 1, generation_id=1, **member) == ErrorCode.NONE
    assert transaction.send("g", 1, generation_id=7, **member) == ErrorCode.ILLEGAL_GENERATION
    unknown = transaction.send("g", 1, generation_id=1, member_id="x")
    assert unknown == ErrorCode.UNKNOWN_MEMBER_ID
    assert transaction.send("modern", 1) == ErrorCode.NONE
    stale = transaction.send("modern", 1, generation_id=7, member_id="a")
    assert stale == ErrorCode.STALE_MEMBER_EPOCH
    assert transaction.send("none", 1, generation_id=7) == ErrorCode.ILLEGAL_GENERATION


def test_a_fenced_producer_commits_nothing(house: House) -> None:
    old = Transactions(house)
    old.send("g", 5)
    old.end(commits=True)
    Transactions(house)
    partition = wire.TxnOffsetCommitRequestPartition(0, 9, -1, "")
    request = wire.TxnOffsetCommitRequest(
        "producer",
        "g",
        old.producer_id,
        old.epoch,
        topics=[wire.TxnOffsetCommitRequestTopic("t", [partition])],
    )
    answer = now(house.broker.handle(ApiKey.TXN_OFFSET_COMMIT, 3, request, CLIENT))
    assert isinstance(answer, wire.TxnOffsetCommitResponse)
    assert answer.topics[0].partitions[0].error_code != ErrorCode.NONE
    assert committed(house, "g") == 5


def test_pending_offsets_do_not_expire(house: House) -> None:
    commit(house, "g", 1)
    transaction = Transactions(house)
    transaction.send("g", 5)
    house.clock.advance(11 * 60_000)
    finish(house.groups.expire_offsets())
    assert committed(house, "g") == 1


@pytest.mark.parametrize("restarts", [True, False])
def test_a_deleted_group_does_not_come_back_with_a_transaction(
    house: House, restarts: bool
) -> None:
    commit(house, "g", 1)
    transaction = Transactions(house)
    transaction.send("g", 5)
    transaction.send("h", 6)
    house.ask(groups_wire.DeleteGroupsRequest(["g"]), 2)
    if restarts:
        house.restart()
    transaction.end(commits=True)
    house.restart()
    assert [group.group_id for group in house.groups.snapshot()] == ["h"]
    assert committed(house, "h", stable=True) == 6


STEPS = st.one_of(
    st.tuples(st.just("commit"), st.sampled_from("gh"), st.integers(0, 9)),
    st.tuples(st.just("send"), st.sampled_from("gh"), st.integers(0, 9)),
    st.tuples(st.just("end"), st.just(""), st.integers(0, 3)),
    st.tuples(st.just("delete offset"), st.sampled_from("gh"), st.just(0)),
    st.tuples(st.just("delete group"), st.sampled_from("gh"), st.just(0)),
)


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 3)  # each starts brokers
@given(steps=st.lists(STEPS, max_size=12))
def test_a_restart_finds_the_same_offsets(
    steps: list[tuple[str, str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    house = House(tmp_path_factory.mktemp("house"))
    house.topic("t")
    producers = [Transactions(house, name) for name in ("first", "second")]
    is_open = [False, False]
    for step, group_id, number in steps:
        which = number % 2
        if step == "commit":
            commit(house, group_id, number)
        elif step == "send":
            producers[which].send(group_id, number)
            is_open[which] = True
        elif step == "end" and is_open[which]:
            producers[which].end(commits=number > 1)
            is_open[which] = False
        elif step == "delete offset":
            delete_offset(house, group_id)
        elif step == "delete group":
            house.ask(groups_wire.DeleteGroupsRequest([group_id]), 2)
    before = [committed(house, group_id) for group_id in "gh"]
    house.restart()
    assert [committed(house, group_id) for group_id in "gh"] == before
    for which, producer in enumerate(producers):
        if is_open[which]:
            producer.end(commits=True)
    ended = [committed(house, group_id, stable=True) for group_id in "gh"]
    house.restart()
    assert [committed(house, group_id, stable=True) for group_id in "gh"] == ended
    house.broker.close()
