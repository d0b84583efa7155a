"""Consumers in a group, on every kind of broker: rebalances, static members, patterns."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from broker.client import admin, consumer, group_member, producer
from broker.client.api import GroupMetadata, JoinedMember, OffsetAndMetadata, RebalanceListener
from broker.client.opening import Target
from broker.client.record_consumer import Consumer
from broker.errors import BrokerError, ErrorCode
from broker.model import TopicPartition

MakeTopic = Callable[..., str]

DEADLINE_S = 60
PROTOCOLS = ("classic", "consumer")
# Short, so that members hear of a rebalance soon.
QUICK: dict[str, object] = {
    "heartbeat_interval_ms": 100,
    "session_timeout_ms": 6_000,
    "metadata_max_age_ms": 300,
    "auto_offset_reset": "earliest",
}

pytestmark = pytest.mark.slow


@dataclass
class Member:
    """A consumer of a group and what its listener heard."""

    reader: Consumer
    heard: list[tuple[str, frozenset[int]]] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)

    def listener(self) -> RebalanceListener:
        def note(what: str) -> Callable[[frozenset[TopicPartition]], None]:
            return lambda tps: self.heard.append((what, frozenset(tp.partition for tp in tps)))

        return RebalanceListener(note("assigned"), note("revoked"), note("lost"))

    def poll(self) -> None:
        self.values += [record.value or b"" for record in self.reader.poll(timeout_ms=20)]

    @property
    def partitions(self) -> set[int]:
        return {tp.partition for tp in self.reader.assignment()}


def open_member(
    target: Target, topics: Sequence[str] | re.Pattern[str], **settings: object
) -> Member:
    member = Member(consumer(target, **{**QUICK, **settings}))
    member.reader.subscribe(topics, member.listener())
    return member


def poll_until(condition: Callable[[], bool], *members: Member) -> None:
    """Poll members in turn until it holds."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, [member.heard for member in members]
        for member in members:
            member.poll()


def fill(target: Target, topic: str, partitions: int, each: int) -> set[bytes]:
    with producer(target) as out:
        sent = {b"%d/%d" % (p, n) for p in range(partitions) for n in range(each)}
        for value in sorted(sent):
            out.send(topic, value, partition=int(value.split(b"/")[0]))
    return sent


def close_all(*members: Member) -> None:
    for member in members:
        member.reader.close()


STRATEGIES = ["range", "roundrobin", "sticky", "cooperative-sticky", "by the broker"]


def strategy_settings(strategy: str) -> dict[str, object]:
    if strategy == "by the broker":
        return {"group_protocol": "consumer"}
    return {"partition_assignment_strategy": (strategy,)}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_members_share_partitions_and_take_over_from_who_leaves(
    target: Target, make_topic: MakeTopic, strategy: str
) -> None:
    topic = make_topic(6)
    sent = fill(target, topic, 6, 20)
    settings = {"group_id": f"g-{topic}", **strategy_settings(strategy)}
    first = open_member(target, [topic], **settings)
    poll_until(lambda: len(first.values) == 120, first)
    assert set(first.values) == sent
    second, third = (open_member(target, [topic], **settings) for _ in range(2))
    trio = (first, second, third)
    poll_until(lambda: all(len(member.partitions) == 2 for member in trio), *trio)
    assert first.partitions | second.partitions | third.partitions == set(range(6))
    third.reader.close()
    poll_until(lambda: len(first.partitions) == len(second.partitions) == 3, first, second)
    fill(target, topic, 6, 1)
    poll_until(lambda: len(first.values) + len(second.values) == 126, first, second)
    assert third.values == [], "commits of the first were taken over"
    close_all(first, second)


def test_eager_members_give_up_everything_cooperative_ones_only_what_moves(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic(4)
    for strategy in ("range", "cooperative-sticky"):
        settings = {
            "group_id": f"g-{strategy}-{topic}",
            "partition_assignment_strategy": (strategy,),
        }
        first = open_member(target, [topic], **settings)
        poll_until(lambda first=first: len(first.partitions) == 4, first)  # type: ignore[misc]
        second = open_member(target, [topic], **settings)
        poll_until(
            lambda pair=(first, second): all(len(m.partitions) == 2 for m in pair),  # type: ignore[misc]
            first,
            second,
        )
        everything = frozenset(range(4))
        kept = frozenset(first.partitions)
        assert first.heard[0] == ("assigned", everything)
        revoked = [partitions for what, partitions in first.heard if what == "revoked"]
        if strategy == "range":
            assert revoked == [everything]
            assert first.heard[-1] == ("assigned", kept)
        else:
            assert revoked == [everything - kept]
            assert all(p == frozenset() for w, p in first.heard[1:] if w == "assigned")
        assert second.heard[-1] == ("assigned", everything - kept)
        first.heard.clear()
        close_all(first, second)
        assert first.heard == [("revoked", kept)], "close gives up what is held"


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_static_member_that_comes_back_keeps_its_partitions_without_a_rebalance(
    target: Target, make_topic: MakeTopic, protocol: str
) -> None:
    topic = make_topic(4)
    settings = {"group_id": f"g-{topic}", "group_protocol": protocol}
    first = open_member(target, [topic], group_instance_id="one", **settings)
    second = open_member(target, [topic], group_instance_id="two", **settings)
    pair = (first, second)
    poll_until(lambda: all(len(member.partitions) == 2 for member in pair), *pair)
    held = second.partitions
    generation = first.reader.group_metadata().generation_id
    second.reader.close()
    again = open_member(target, [topic], group_instance_id="two", **settings)
    poll_until(lambda: again.partitions == held, first, again)
    assert first.reader.group_metadata().generation_id == generation
    assert len(first.partitions) == 2
    close_all(first, again)


def test_a_static_member_that_is_to_leave_makes_room_at_once(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic(4)
    settings = {"group_id": f"g-{topic}", "session_timeout_ms": 600_000}
    first = open_member(target, [topic], group_instance_id="one", **settings)
    second = open_member(
        target, [topic], group_instance_id="two", leave_group_on_close=True, **settings
    )
    pair = (first, second)
    poll_until(lambda: all(len(member.partitions) == 2 for member in pair), *pair)
    second.reader.close()
    poll_until(lambda: len(first.partitions) == 4, first)
    close_all(first)


def test_a_static_member_is_fenced_by_another_with_the_same_id(
    target: Target, make_topic: MakeTopic
) -> None:
    topic = make_topic(2)
    settings = {"group_id": f"g-{topic}", "group_instance_id": "same"}
    old = open_member(target, [topic], **settings)
    poll_until(lambda: len(old.partitions) == 2, old)
    new = open_member(target, [topic], **settings)
    poll_until(lambda: len(new.partitions) == 2, new)
    with pytest.raises(BrokerError) as caught:
        poll_until(lambda: False, old)
    assert caught.value.code is ErrorCode.FENCED_INSTANCE_ID
    close_all(new, old)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pattern_takes_in_topics_that_come_later(
    target: Target, make_topic: MakeTopic, protocol: str
) -> None:
    name = make_topic(1)
    pattern = re.compile(f"{name}.*")
    member = open_member(target, pattern, group_id=f"g-{name}", group_protocol=protocol)
    poll_until(lambda: member.reader.subscription() == {name}, member)
    with producer(target) as out:
        out.send(f"{name}-later", b"here").result(DEADLINE_S * 1000)
    poll_until(lambda: b"here" in member.values, member)
    assert member.reader.subscription() == {name, f"{name}-later"}
    close_all(member)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_new_partitions_are_given_out(target: Target, make_topic: MakeTopic, protocol: str) -> None:
    topic = make_topic(1)
    member = open_member(target, [topic], group_id=f"g-{topic}", group_protocol=protocol)
    poll_until(lambda: member.partitions == {0}, member)
    with admin(target) as administration:
        administration.create_partitions({topic: 3}).all()
    poll_until(lambda: member.partitions == {0, 1, 2}, member)
    close_all(member)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_another_subscription_changes_the_assignment(
    target: Target, make_topic: MakeTopic, protocol: str
) -> None:
    before, after = make_topic(1), make_topic(2)
    member = open_member(target, [before], group_id=f"g-{before}", group_protocol=protocol)
    poll_until(lambda: member.partitions == {0}, member)
    member.reader.subscribe([after], member.listener())
    poll_until(lambda: {tp.topic for tp in member.reader.assignment()} == {after}, member)
    member.reader.unsubscribe()
    assert member.reader.assignment() == set()
    with admin(target) as administration:
        assert administration.describe_groups([f"g-{before}"])[f"g-{before}"].members == ()
    close_all(member)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_positions_may_be_committed_while_partitions_are_taken_away(
    target: Target, make_topic: MakeTopic, protocol: str
) -> None:
    topic = make_topic(2)
    fill(target, topic, 2, 10)
    group_id = f"g-{topic}"
    settings = {
        "group_id": group_id,
        "group_protocol": protocol,
        "enable_auto_commit": False,
        **QUICK,
    }
    reader = consumer(target, **settings)

    def commit(partitions: frozenset[TopicPartition]) -> None:
        reader.commit({tp: OffsetAndMetadata(reader.position(tp)) for tp in partitions})

    reader.subscribe([topic], RebalanceListener(revoked=commit))
    first = Member(reader)
    poll_until(lambda: len(first.values) == 20, first)
    second = open_member(target, [topic], **settings)
    poll_until(lambda: len(second.partitions) == 1, first, second)
    assert second.values == []
    with admin(target) as administration:
        offsets = administration.list_group_offsets(group_id).all()
    # A broker that assigns takes away only what moves.
    taken = 2 if protocol == "classic" else 1
    assert [offset.offset for offset in offsets.values()] == [10] * taken
    close_all(first, second)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_commit_of_a_member_that_was_thrown_out_is_refused(
    target: Target, make_topic: MakeTopic, protocol: str
) -> None:
    topic = make_topic(1)
    settings = {"group_id": f"g-{topic}", "group_protocol": protocol}
    lazy = open_member(target, [topic], max_poll_interval_ms=300, **settings)
    poll_until(lambda: lazy.partitions == {0}, lazy)
    other = open_member(target, [topic], **settings)
    poll_until(lambda: other.partitions == {0}, other)
    with pytest.raises(BrokerError, match="not currently a member of the group"):
        lazy.reader.commit({TopicPartition(topic, 0): OffsetAndMetadata(0)})
    poll_until(lambda: ("lost", frozenset({0})) in lazy.heard, lazy, other)
    close_all(lazy, other)


@dataclass
class Workers:
    """A group that is not about topics: the leader gives each member a number."""

    protocol_type: str = "workers"
    given: list[bytes] = field(default_factory=list)

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        return [("numbered", b"me")]

    def prepare_join(self, *, lost: bool) -> None:
        pass

    def assign(self, protocol: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        ids = sorted(member.member_id for member in members)
        return {member_id: b"%d of %d" % (n + 1, len(ids)) for n, member_id in enumerate(ids)}

    def on_assignment(self, protocol: str, assignment: bytes, metadata: GroupMetadata) -> None:
        self.given.append(assignment)

    def wants_rejoin(self) -> str:
        return ""


def test_groups_of_any_protocol_type_work(target: Target, make_topic: MakeTopic) -> None:
    settings = {"group_id": f"w-{make_topic()}", "heartbeat_interval_ms": 100}
    kinds = [Workers(), Workers()]
    members = [group_member(target, kind, **settings) for kind in kinds]
    deadline = time.monotonic() + DEADLINE_S
    while {kind.given[-1] if kind.given else b"" for kind in kinds} != {b"1 of 2", b"2 of 2"}:
        assert time.monotonic() < deadline, [kind.given for kind in kinds]
        for member in members:
            member.poll(50)
    assert {member.metadata.generation_id for member in members} == {
        members[0].metadata.generation_id
    }
    for member in members:
        member.close()
