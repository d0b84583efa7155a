"""Consumer groups, case by case, and any sequence of heartbeats."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.assignors import Partition
from broker.coordinator.consumer_group import ConsumerGroup, Heartbeat, UnsavedChanges
from broker.coordinator.group_records import (
    consumer_group_records,
    decode_record,
    replay_consumer_record,
)
from broker.errors import BrokerError, ErrorCode
from tests.broker.coordinator.scripts import (
    ConsumerScript,
    case_files,
    check_case,
)


@pytest.mark.parametrize("path", case_files("consumer"), ids=lambda path: path.stem)
def test_a_consumer_group_answers_as_the_case_says(path: Path) -> None:
    check_case(path, ConsumerScript())


class Client:
    """A consumer that may be slow, silent or deaf, but never works on what it was not given."""

    def __init__(self, name: str, script: ConsumerScript) -> None:
        self.name = name
        self.epoch = 0
        self.owned: frozenset[Partition] = frozenset()
        self._given: frozenset[Partition] = frozenset()
        self._script = script

    @property
    def lives(self) -> bool:
        return self.name in self._script.group.members

    def beat(self, topics: list[str], *, deaf: bool = False) -> None:
        """Heartbeat with everything in it; a deaf client misses the answer."""
        if not self.lives:
            self.epoch, self.owned, self._given = 0, frozenset(), frozenset()
        asked = Heartbeat(
            member_id=self.name,
            epoch=self.epoch,
            rebalance_timeout_ms=20_000,
            subscribed_names=topics,
            owned=self.owned,
        )
        try:
            answer = self._script.group.heartbeat(asked)
        except BrokerError as error:
            if error.code is not ErrorCode.FENCED_MEMBER_EPOCH:
                raise
            self.epoch, self.owned, self._given = 0, frozenset(), frozenset()
            return
        if deaf:
            # It has told what it owns, and the group believes it, as Kafka's does: what it was
            # given before and has not taken by now, it must not take any more.
            self._given = self.owned
            return
        self.epoch = answer.epoch
        if answer.assigned is not None:
            self._given = answer.assigned

    def follow(self) -> None:
        """Give up and take what the last answer said."""
        self.owned = self._given

    def leave(self) -> None:
        if self.lives:
            self._script.group.leave(Heartbeat(self.name, epoch=-1))
        self.epoch, self.owned, self._given = 0, frozenset(), frozenset()


TOPIC_LISTS = st.sampled_from([["t"], ["u"], ["t", "u"], []])
STEPS = st.one_of(
    st.tuples(st.just("beat"), st.integers(0, 2), TOPIC_LISTS),
    st.tuples(st.just("deaf"), st.integers(0, 2), TOPIC_LISTS),
    st.tuples(st.just("follow"), st.integers(0, 2), st.just([])),
    st.tuples(st.just("leave"), st.integers(0, 2), st.just([])),
    st.tuples(st.just("advance 15000"), st.just(0), st.just([])),
    st.tuples(st.sampled_from(["topic t partitions=5", "topic u partitions=2"]), st.just(0),
              st.just([])),
)  # fmt: skip


@pytest.mark.slow
@given(st.lists(STEPS, max_size=60))
def test_no_partition_ever_has_two_owners(steps: list[tuple[str, int, list[str]]]) -> None:
    script = ConsumerScript()
    script.run(["topic t partitions=3"])
    clients = [Client(name, script) for name in "ABC"]
    for step, number, topics in steps:
        client = clients[number]
        if step in ("beat", "deaf"):
            client.beat(topics, deaf=step == "deaf")
        elif step == "follow":
            client.follow()
        elif step == "leave":
            client.leave()
        else:
            script.run([step])
        _check_owners(clients)
    _check_settling(script, clients)


def _check_owners(clients: list[Client]) -> None:
    owned = [partition for client in clients if client.lives for partition in client.owned]
    assert len(owned) == len(set(owned))


def _check_settling(script: ConsumerScript, clients: list[Client]) -> None:
    """Clients that do as they are told end up with everything, evenly."""
    for _ in range(12):
        for client in clients:
            client.beat(["t", "u"])
            client.follow()
            _check_owners(clients)
    assert script.group.state == "Stable"
    sizes = sorted(len(client.owned) for client in clients)
    count = sum(topic.partition_count for topic in script.topics.values())
    assert sum(sizes) == count
    assert sizes[-1] - sizes[0] <= 1


@pytest.mark.slow
@given(st.lists(STEPS, max_size=40))
def test_records_of_changes_are_the_whole_state(steps: list[tuple[str, int, list[str]]]) -> None:
    script = ConsumerScript()
    script.run(["topic t partitions=3"])
    clients = [Client(name, script) for name in "ABC"]
    copy = script.new_group()
    for step, number, topics in steps:
        client = clients[number]
        if step in ("beat", "deaf"):
            client.beat(topics, deaf=step == "deaf")
        elif step == "follow":
            client.follow()
        elif step == "leave":
            client.leave()
        else:
            script.run([step])
        for key, value in consumer_group_records(script.group):
            decoded = decode_record(key, value)
            assert decoded is not None
            replay_consumer_record(copy, *decoded)
        script.group.changes = UnsavedChanges()
    copy.restored()
    assert _state(copy) == _state(script.group)


def _state(group: ConsumerGroup) -> object:
    members = {
        key: (member.subscription, member.holding, member.topics, member.instance_id)
        for key, member in group.members.items()
    }
    return group.epoch, group.target_epoch, group.state, group.targets, members
