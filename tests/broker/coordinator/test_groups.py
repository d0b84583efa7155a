"""The coordinator of groups over a real log: what it answers, and what a restart keeps."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.broker import Broker
from broker.clock import ManualClock
from broker.config import MINUTE_MS, BrokerConfig
from broker.coordinator.groups import GroupCoordinator
from broker.coordinator.internal_topics import partition_for
from broker.coordinator.parts import finish
from broker.errors import ErrorCode
from broker.model import GROUP_TOPIC, TopicPartition
from broker.protocol.messages import consumer_groups as consumer_wire
from broker.protocol.messages import groups as wire
from broker.protocol.messages import offsets as offsets_wire
from tests.broker.coordinator.requests import ask, now

RETENTION_MS = 10 * MINUTE_MS
SUBSCRIPTION = b"\0\0\0\0\0\1\0\1t\xff\xff\xff\xff"  # version 0, one topic "t", no user data


class House:
    """A broker on a manual clock that can be restarted."""

    def __init__(self, path: Path, **chosen: object) -> None:
        self.config = BrokerConfig(
            log_dir=str(path),
            group_initial_rebalance_delay_ms=0,
            offsets_retention_minutes=10,
            offsets_topic_num_partitions=3,
            **chosen,  # type: ignore[arg-type]
        )
        self.clock = ManualClock()
        self.broker = Broker(self.config, clock=self.clock).start()

    @property
    def groups(self) -> GroupCoordinator:
        return self.broker.state.groups

    def restart(self, **chosen: object) -> None:
        self.broker.close()
        self.config = replace(self.config, **chosen)  # type: ignore[arg-type]
        self.broker = Broker(self.config, clock=self.clock).start()

    def topic(self, name: str, partition_count: int = 4) -> bytes:
        return self.broker.state.topics.create(name, partition_count=partition_count).id

    def ask(self, request: object, version: int) -> object:
        """The answer to a request, which must be there."""
        return now(ask(self.broker, request, version))

    def advance(self, milliseconds: int) -> None:
        self.clock.advance(milliseconds)
        self.broker.run_due()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.broker.close()


def join(house: House, group_id: str, **fields: object) -> wire.JoinGroupResponse:
    request = wire.JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=20_000,
        protocol_type="consumer",
        protocols=[wire.JoinGroupRequestProtocol("range", SUBSCRIPTION)],
    )
    for name, value in fields.items():
        setattr(request, name, value)
    answer = house.ask(request, 3 if not request.group_instance_id else 9)
    assert isinstance(answer, wire.JoinGroupResponse)
    return answer


def stable_member(house: House, group_id: str, **fields: object) -> wire.JoinGroupResponse:
    """A group of one member that works."""
    joined = join(house, group_id, **fields)
    assignment = wire.SyncGroupRequestAssignment(joined.member_id, b"work")
    request = wire.SyncGroupRequest(
        group_id, joined.generation_id, joined.member_id, assignments=[assignment]
    )
    answer = house.ask(request, 5)
    assert isinstance(answer, wire.SyncGroupResponse)
    assert answer.assignment == b"work"
    return joined


def commit(house: House, group_id: str, offset: int, **fields: object) -> int:
    """Commit an offset of t-0; the error code."""
    version = fields.pop("version", 9)
    assert isinstance(version, int)
    partition = offsets_wire.OffsetCommitRequestPartition(0, offset, 5, "note")
    topic = offsets_wire.OffsetCommitRequestTopic("t", partitions=[partition])
    request = offsets_wire.OffsetCommitRequest(group_id, topics=[topic])
    for name, value in fields.items():
        setattr(request, name, value)
    answer = house.ask(request, version)
    assert isinstance(answer, offsets_wire.OffsetCommitResponse)
    return answer.topics[0].partitions[0].error_code


def fetch(
    house: House, request: offsets_wire.OffsetFetchRequest, version: int
) -> offsets_wire.OffsetFetchResponse:
    answer = house.ask(request, version)
    assert isinstance(answer, offsets_wire.OffsetFetchResponse)
    return answer


def committed(house: House, group_id: str, topic: str = "t", *, stable: bool = False) -> object:
    """Offset of partition 0, or its error."""
    asked = offsets_wire.OffsetFetchRequestGroup(
        group_id, topics=[offsets_wire.OffsetFetchRequestTopics(topic, partition_indexes=[0])]
    )
    request = offsets_wire.OffsetFetchRequest(groups=[asked], require_stable=stable)
    found = fetch(house, request, 9).groups[0].topics[0].partitions[0]
    return ErrorCode(found.error_code) if found.error_code else found.committed_offset


def beat(house: House, group_id: str, member_id: str, epoch: int, **fields: object) -> object:
    request = consumer_wire.ConsumerGroupHeartbeatRequest(group_id, member_id, epoch)
    if epoch == 0:
        request.rebalance_timeout_ms = 20_000
        request.subscribed_topic_names = ["t"]
        request.topic_partitions = []
    for name, value in fields.items():
        setattr(request, name, value)
    answer = house.ask(request, 1)
    assert isinstance(answer, consumer_wire.ConsumerGroupHeartbeatResponse)
    if answer.error_code:
        return ErrorCode(answer.error_code)
    return answer


def described(house: House) -> object:
    """Everything an administrator sees."""
    names = [group.group_id for group in house.groups.list_groups()]
    asked = [offsets_wire.OffsetFetchRequestGroup(name, topics=None) for name in names]
    return (
        house.ask(wire.ListGroupsRequest(), 5),
        house.ask(wire.DescribeGroupsRequest(names), 6),
        house.ask(consumer_wire.ConsumerGroupDescribeRequest(names), 1),
        fetch(house, offsets_wire.OffsetFetchRequest(groups=asked), 9),
    )


# --- restarts ---------------------------------------------------------------------------------


def test_a_restart_keeps_everything(house: House) -> None:
    house.topic("t")
    stable_member(house, "static", group_instance_id="i")
    stable_member(house, "dynamic")
    assert commit(house, "simple", 7) == ErrorCode.NONE
    assert commit(house, "deleted", 8) == ErrorCode.NONE
    house.ask(wire.DeleteGroupsRequest(["deleted"]), 2)
    beat(house, "modern", "a", 0)
    beat(house, "modern", "b", 0, instance_id="i")
    before = described(house)
    house.restart()
    assert described(house) == before
    assert committed(house, "simple") == 7


def test_a_static_member_keeps_its_place_over_a_restart(house: House) -> None:
    first = stable_member(house, "g", group_instance_id="i")
    house.restart()
    again = join(house, "g", group_instance_id="i")
    assert again.generation_id == first.generation_id
    assert again.skip_assignment
    answer = house.ask(wire.SyncGroupRequest("g", 1, again.member_id), 5)
    assert isinstance(answer, wire.SyncGroupResponse)
    assert answer.assignment == b"work"


def test_members_that_do_not_come_back_after_a_restart_time_out(house: House) -> None:
    house.topic("t")
    stable_member(house, "g")
    beat(house, "modern", "a", 0)
    house.restart()
    house.advance(10_000)
    house.advance(35_000)
    states = {group.group_id: group.state for group in house.groups.snapshot()}
    assert states == {"g": "Empty", "modern": "Empty"}
    house.restart()
    assert {group.group_id: group.state for group in house.groups.snapshot()} == states


def test_a_member_goes_on_after_a_restart_as_if_nothing_was(house: House) -> None:
    house.topic("t")
    joined = beat(house, "g", "a", 0)
    assert isinstance(joined, consumer_wire.ConsumerGroupHeartbeatResponse)
    house.restart()
    answer = beat(house, "g", "a", joined.member_epoch)
    assert isinstance(answer, consumer_wire.ConsumerGroupHeartbeatResponse)
    assert answer.member_epoch == joined.member_epoch
    assert answer.assignment is None
    assert beat(house, "g", "b", 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_another_partition_count_in_the_settings_does_not_lose_groups(house: House) -> None:
    house.topic("t")
    for number in range(10):
        commit(house, f"g{number}", number)
    house.restart(offsets_topic_num_partitions=7)
    assert [committed(house, f"g{number}") for number in range(10)] == list(range(10))


STEPS = st.one_of(
    st.tuples(st.just("commit"), st.sampled_from("gh"), st.integers(0, 9)),
    st.tuples(st.just("static"), st.sampled_from("gh"), st.just(0)),
    st.tuples(st.just("beat"), st.sampled_from("gh"), st.integers(0, 2)),
    st.tuples(st.just("leave"), st.sampled_from("gh"), st.integers(0, 2)),
    st.tuples(st.just("delete"), st.sampled_from("gh"), st.just(0)),
    st.tuples(st.just("advance"), st.just(""), st.sampled_from([1000, 50_000, RETENTION_MS])),
)


@pytest.mark.slow
@settings(max_examples=settings().max_examples // 3)  # each starts brokers
@given(steps=st.lists(STEPS, max_size=15))
def test_any_state_is_the_same_after_a_restart(
    steps: list[tuple[str, str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    house = House(tmp_path_factory.mktemp("house"), offsets_retention_check_interval_ms=1000)
    house.topic("t")
    actions: dict[str, Callable[[str, int], object]] = {
        "commit": lambda group_id, number: commit(house, group_id, number),
        "static": lambda group_id, _: house.ask(
            wire.JoinGroupRequest(
                group_id,
                10_000,
                20_000,
                group_instance_id="i",
                protocol_type="consumer",
                protocols=[wire.JoinGroupRequestProtocol("range", SUBSCRIPTION)],
            ),
            9,
        ),
        "beat": lambda group_id, number: beat(house, group_id, f"m{number}", 0),
        "leave": lambda group_id, number: beat(house, group_id, f"m{number}", -1),
        "delete": lambda group_id, _: house.ask(wire.DeleteGroupsRequest([group_id]), 2),
        "advance": lambda _, milliseconds: house.advance(milliseconds),
    }
    for name, group_id, number in steps:
        actions[name](group_id, number)
    # A group that waits for its leader is not on disk: only what was answered for is.
    unfinished = {
        group.group_id
        for group in house.groups.snapshot()
        if group.type == "classic" and group.state not in ("Empty", "Stable")
    }
    kept = [group for group in house.groups.snapshot() if group.group_id not in unfinished]
    house.restart()
    found = {group.group_id: group for group in house.groups.snapshot()}
    for group in kept:
        if group.offsets or group.type == "consumer":
            assert found[group.group_id] == group
    house.broker.close()


def test_bad_records_are_skipped(house: House, caplog: pytest.LogCaptureFixture) -> None:
    house.topic("t")
    commit(house, "g", 7)
    log = house.groups._log
    number = log.partition_for("g")
    log.append(
        number,
        [
            (b"", b"x"),
            (b"\0\1", None),
            (b"\0\1\0\1g\0\1t\0\0\0\1", b"\0\x63"),
            (b"\0\2\0\1g", b"\0\3junk"),
            (b"\x7f\xff\0", b"newer"),
            (b"\0\4\0\1g", b"\0\0\0"),
        ],
    )
    commit(house, "h", 8)
    house.restart()
    assert committed(house, "g") == 7
    assert committed(house, "h") == 8
    assert caplog.text.count("skipped a bad record") == 5


# --- offsets ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"generation_id_or_member_epoch": 1, "member_id": "x"}, ErrorCode.GROUP_ID_NOT_FOUND),
        (
            {"generation_id_or_member_epoch": 1, "member_id": "x", "version": 8},
            ErrorCode.ILLEGAL_GENERATION,
        ),
        ({}, ErrorCode.NONE),
    ],
)
def test_commits_to_a_group_that_does_not_exist(
    house: House, fields: dict[str, object], expected: ErrorCode
) -> None:
    house.topic("t")
    assert commit(house, "g", 1, **fields) == expected


def test_commits_of_members_are_checked(house: House) -> None:
    house.topic("t")
    joined = stable_member(house, "g")
    member = {"member_id": joined.member_id}
    assert commit(house, "g", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    wrong = commit(house, "g", 1, generation_id_or_member_epoch=2, **member)
    assert wrong == ErrorCode.ILLEGAL_GENERATION
    assert commit(house, "g", 3, generation_id_or_member_epoch=1, **member) == ErrorCode.NONE
    assert committed(house, "g") == 3


def test_commits_by_epoch_are_checked(house: House) -> None:
    house.topic("t")
    beat(house, "g", "a", 0)
    member = {"member_id": "a"}
    stale = commit(house, "g", 1, generation_id_or_member_epoch=0, **member)
    assert stale == ErrorCode.STALE_MEMBER_EPOCH
    old = commit(house, "g", 1, generation_id_or_member_epoch=1, version=8, **member)
    assert old == ErrorCode.UNSUPPORTED_VERSION
    assert commit(house, "g", 2, generation_id_or_member_epoch=1, **member) == ErrorCode.NONE


def test_partitions_are_refused_one_by_one(house: House) -> None:
    house.topic("t", 1)
    partitions = [
        offsets_wire.OffsetCommitRequestPartition(0, 5, -1, None),
        offsets_wire.OffsetCommitRequestPartition(1, 5, -1, None),
        offsets_wire.OffsetCommitRequestPartition(0, 6, -1, "x" * 4097),
    ]
    request = offsets_wire.OffsetCommitRequest(
        "g",
        topics=[
            offsets_wire.OffsetCommitRequestTopic("t", partitions=partitions),
            offsets_wire.OffsetCommitRequestTopic("none", partitions=partitions[:1]),
        ],
    )
    answer = house.ask(request, 9)
    assert isinstance(answer, offsets_wire.OffsetCommitResponse)
    codes = [[item.error_code for item in topic.partitions] for topic in answer.topics]
    assert codes == [
        [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ],
        [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION],
    ]
    assert committed(house, "g") == 5


def test_topics_by_id(house: House) -> None:
    topic_id, unknown = house.topic("t"), b"u" * 16
    partition = offsets_wire.OffsetCommitRequestPartition(0, 5, -1, None)
    request = offsets_wire.OffsetCommitRequest(
        "g",
        topics=[
            offsets_wire.OffsetCommitRequestTopic(topic_id=topic_id, partitions=[partition]),
            offsets_wire.OffsetCommitRequestTopic(topic_id=unknown, partitions=[partition]),
        ],
    )
    answer = house.ask(request, 10)
    assert isinstance(answer, offsets_wire.OffsetCommitResponse)
    assert [topic.partitions[0].error_code for topic in answer.topics] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ]
    asked = offsets_wire.OffsetFetchRequestGroup(
        "g",
        topics=[
            offsets_wire.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0]),
            offsets_wire.OffsetFetchRequestTopics(topic_id=unknown, partition_indexes=[0]),
        ],
    )
    fetched = fetch(house, offsets_wire.OffsetFetchRequest(groups=[asked]), 10)
    found = [
        (topic.topic_id, topic.partitions[0].committed_offset, topic.partitions[0].error_code)
        for topic in fetched.groups[0].topics
    ]
    assert found == [(topic_id, 5, 0), (unknown, -1, ErrorCode.UNKNOWN_TOPIC_ID)]


@pytest.mark.parametrize("version", [1, 2, 5, 7])
def test_offsets_of_one_group_for_old_clients(house: House, version: int) -> None:
    house.topic("t")
    commit(house, "g", 5)
    asked = [offsets_wire.OffsetFetchRequestTopic("t", [0, 1])]
    found = fetch(house, offsets_wire.OffsetFetchRequest("g", asked), version)
    partitions = found.topics[0].partitions
    assert [(item.committed_offset, item.metadata) for item in partitions] == [
        (5, "note"),
        (-1, ""),
    ]
    everything = fetch(house, offsets_wire.OffsetFetchRequest("g", None), version)
    assert [(topic.name, len(topic.partitions)) for topic in everything.topics] == [("t", 1)]


def test_a_member_of_a_consumer_group_fetches_by_epoch(house: House) -> None:
    house.topic("t")
    beat(house, "g", "a", 0)

    def fetch_as(member_id: str | None, epoch: int) -> int:
        asked = offsets_wire.OffsetFetchRequestGroup("g", member_id, epoch, topics=None)
        request = offsets_wire.OffsetFetchRequest(groups=[asked])
        return fetch(house, request, 9).groups[0].error_code

    assert fetch_as(None, -1) == ErrorCode.NONE
    assert fetch_as("a", 1) == ErrorCode.NONE
    assert fetch_as("a", 0) == ErrorCode.STALE_MEMBER_EPOCH
    assert fetch_as("x", 1) == ErrorCode.UNKNOWN_MEMBER_ID


def delete_offset(house: House, group_id: str, topic: str = "t") -> tuple[int, list[int]]:
    partition = offsets_wire.OffsetDeleteRequestPartition(0)
    asked = [offsets_wire.OffsetDeleteRequestTopic(topic, [partition])]
    answer = house.ask(offsets_wire.OffsetDeleteRequest(group_id, asked), 0)
    assert isinstance(answer, offsets_wire.OffsetDeleteResponse)
    return answer.error_code, [item.partitions[0].error_code for item in answer.topics]


def test_offsets_are_deleted_unless_somebody_reads_the_topic(house: House) -> None:
    house.topic("t")
    house.topic("u")
    assert delete_offset(house, "g") == (ErrorCode.GROUP_ID_NOT_FOUND, [])
    commit(house, "g", 5)
    stable_member(house, "g")
    assert delete_offset(house, "g") == (0, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC])
    assert delete_offset(house, "g", "u") == (0, [ErrorCode.NONE])
    assert delete_offset(house, "g", "none") == (0, [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION])
    beat(house, "modern", "a", 0)
    assert delete_offset(house, "modern") == (0, [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC])
    stable_member(house, "connect", protocol_type="connect")
    assert delete_offset(house, "connect") == (ErrorCode.NON_EMPTY_GROUP, [])
    commit(house, "free", 6)
    assert delete_offset(house, "free") == (0, [ErrorCode.NONE])
    house.restart()
    assert committed(house, "free") == -1
    assert committed(house, "g") == 5


def test_offsets_of_a_deleted_topic_are_forgotten(house: House) -> None:
    house.topic("t")
    commit(house, "g", 5)
    house.broker.state.topics.delete("t")
    assert committed(house, "g") == -1
    house.topic("t")
    house.restart()
    assert committed(house, "g") == -1


def test_offsets_expire_when_nobody_needs_them(house: House) -> None:
    house.topic("t")
    commit(house, "simple", 5)
    member = stable_member(house, "busy")
    busy = {"member_id": member.member_id, "generation_id_or_member_epoch": 1}
    assert commit(house, "busy", 6, **busy) == ErrorCode.NONE
    for _ in range(2 * RETENTION_MS // 5000):
        house.advance(5000)
        beat_once = wire.HeartbeatRequest("busy", 1, member.member_id)
        assert house.ask(beat_once, 4) == wire.HeartbeatResponse()
    assert committed(house, "simple") == -1
    assert committed(house, "busy") == 6
    house.ask(wire.LeaveGroupRequest("busy", member.member_id), 2)
    house.advance(RETENTION_MS - 1)
    assert committed(house, "busy") == 6
    house.advance(RETENTION_MS + house.config.offsets_retention_check_interval_ms)
    assert committed(house, "busy") == -1
    assert house.groups.snapshot() == []
    house.restart()
    assert house.groups.snapshot() == []


def test_an_old_client_says_how_long_its_offset_lives(house: House) -> None:
    house.topic("t")
    commit(house, "g", 5, version=4, retention_time_ms=60_000)
    house.restart()
    finish(house.groups.expire_offsets())
    assert committed(house, "g") == 5
    house.clock.advance(60_000)
    finish(house.groups.expire_offsets())
    assert committed(house, "g") == -1


# --- administration ---------------------------------------------------------------------------


def test_groups_are_listed_by_state_and_type(house: House) -> None:
    house.topic("t")
    commit(house, "simple", 1)
    stable_member(house, "classic")
    beat(house, "modern", "a", 0)

    def listed(states: list[str], types: list[str]) -> list[str]:
        answer = house.ask(wire.ListGroupsRequest(states, types), 5)
        assert isinstance(answer, wire.ListGroupsResponse)
        return [group.group_id for group in answer.groups]

    assert listed([], []) == ["classic", "modern", "simple"]
    assert listed(["stable"], []) == ["classic", "modern"]
    assert listed(["Stable"], ["Consumer"]) == ["modern"]
    assert listed([], ["classic"]) == ["classic", "simple"]
    assert listed(["Dead"], []) == []


def described_by(house: House, names: list[str], version: int) -> list[wire.DescribedGroup]:
    answer = house.ask(wire.DescribeGroupsRequest(names), version)
    assert isinstance(answer, wire.DescribeGroupsResponse)
    return answer.groups


def test_a_group_is_described_by_the_api_of_its_type(house: House) -> None:
    house.topic("t", 2)
    member = stable_member(house, "classic")
    beat(house, "modern", "a", 0)
    names = ["classic", "modern", "none"]
    classic = described_by(house, names, 6)
    assert [(group.error_code, group.group_state) for group in classic] == [
        (ErrorCode.NONE, "Stable"),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Dead"),
        (ErrorCode.GROUP_ID_NOT_FOUND, "Dead"),
    ]
    (only,) = classic[0].members
    assert (only.member_id, only.member_assignment) == (member.member_id, b"work")
    old = described_by(house, names, 5)
    assert [group.error_code for group in old] == [0, 0, 0]
    request = consumer_wire.ConsumerGroupDescribeRequest(names)
    answer = house.ask(request, 1)
    assert isinstance(answer, consumer_wire.ConsumerGroupDescribeResponse)
    modern = answer.groups
    assert [group.error_code for group in modern] == [
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.NONE,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ]
    (assigned,) = modern[1].members[0].assignment.topic_partitions
    assert (assigned.topic_name, assigned.partitions) == ("t", [0, 1])


def test_only_empty_groups_are_deleted(house: House) -> None:
    house.topic("t")
    commit(house, "simple", 1)
    stable_member(house, "classic")
    beat(house, "modern", "a", 0)
    names = ["simple", "classic", "modern", "none"]
    answer = house.ask(wire.DeleteGroupsRequest(names), 2)
    assert isinstance(answer, wire.DeleteGroupsResponse)
    assert [item.error_code for item in answer.results] == [
        ErrorCode.NONE,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ]
    house.restart()
    assert sorted(group.group_id for group in house.groups.snapshot()) == ["classic", "modern"]


def test_many_members_leave_at_once(house: House) -> None:
    joined = stable_member(house, "g", group_instance_id="i")
    leaving = [
        wire.MemberIdentity("", "i"),
        wire.MemberIdentity(joined.member_id, None),
        wire.MemberIdentity("", "none"),
    ]
    answer = house.ask(wire.LeaveGroupRequest("g", members=leaving), 5)
    assert isinstance(answer, wire.LeaveGroupResponse)
    assert [member.error_code for member in answer.members] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    again = house.ask(wire.LeaveGroupRequest("g", joined.member_id), 2)
    assert isinstance(again, wire.LeaveGroupResponse)
    assert again.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_an_empty_group_changes_its_type(house: House) -> None:
    house.topic("t")
    joined = stable_member(house, "g")
    assert beat(house, "g", "a", 0) == ErrorCode.GROUP_ID_NOT_FOUND
    house.ask(wire.LeaveGroupRequest("g", joined.member_id), 2)
    commit(house, "g", 5)
    assert isinstance(beat(house, "g", "a", 0), consumer_wire.ConsumerGroupHeartbeatResponse)
    assert join(house, "g").error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    house.restart()
    assert [group.type for group in house.groups.snapshot()] == ["consumer"]
    beat(house, "g", "a", -1)
    stable_member(house, "g")
    house.restart()
    assert [group.type for group in house.groups.snapshot()] == ["classic"]
    assert committed(house, "g") == 5


def test_requests_without_a_group_are_refused(house: House) -> None:
    assert join(house, "").error_code == ErrorCode.INVALID_GROUP_ID
    answers = [
        house.ask(wire.SyncGroupRequest(""), 5),
        house.ask(wire.HeartbeatRequest(""), 4),
        house.ask(wire.LeaveGroupRequest(""), 5),
    ]
    codes = [answer.error_code for answer in answers]  # type: ignore[attr-defined]
    assert codes == [ErrorCode.INVALID_GROUP_ID] * 3
    assert beat(house, "", "a", 0) == ErrorCode.INVALID_REQUEST
    assert beat(house, "g", "", 0) == ErrorCode.INVALID_REQUEST
    assert join(house, "g", member_id="unknown").error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_nobody_got_into_leaves_no_trace(house: House) -> None:
    assert join(house, "g", protocols=[]).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert house.groups.snapshot() == []
    request = wire.JoinGroupRequest(
        "g",
        10_000,
        20_000,
        protocol_type="consumer",
        protocols=[wire.JoinGroupRequestProtocol("range", SUBSCRIPTION)],
    )
    answer = house.ask(request, 4)
    assert isinstance(answer, wire.JoinGroupResponse)
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert len(house.groups.snapshot()) == 1
    house.advance(10_000)
    assert house.groups.snapshot() == []


@pytest.mark.parametrize(
    ("epoch", "fields"),
    [
        (0, {"rebalance_timeout_ms": -1}),
        (0, {"topic_partitions": None}),
        (0, {"topic_partitions": [consumer_wire.TopicPartitions(bytes(16), [0])]}),
        (0, {"subscribed_topic_names": None}),
        (0, {"instance_id": ""}),
        (0, {"rack_id": ""}),
        (-2, {}),
        (-3, {}),
    ],
)
def test_heartbeats_that_make_no_sense_are_refused(
    house: House, epoch: int, fields: dict[str, object]
) -> None:
    assert beat(house, "g", "a", epoch, **fields) == ErrorCode.INVALID_REQUEST
    assert house.groups.snapshot() == []


def test_a_group_is_where_kafka_looks_for_it(house: House) -> None:
    house.topic("t")
    commit(house, "my-group", 5)
    number = partition_for("my-group", 3)
    logs = house.broker.state.storage
    sizes = [logs.log(TopicPartition(GROUP_TOPIC, item)).end_offset for item in range(3)]
    assert [size > 0 for size in sizes] == [item == number for item in range(3)]
