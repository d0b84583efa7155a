"""GroupMember against a scripted coordinator on a manual clock."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from broker.client.api import GroupMetadata, JoinedMember
from broker.client.classic_group_member import GroupConfig, GroupMember, MembershipState
from broker.client.cluster import Cluster
from broker.clock import ManualClock
from broker.errors import BrokerError, ConfigError, ConnectionFailed, ErrorCode
from broker.protocol.messages.groups import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from broker.protocol.messages.metadata import FindCoordinatorRequest, FindCoordinatorResponse
from tests.broker.client.scripted import NODE, ScriptedTransport
from tests.support.peer import wait_until

CODES = ErrorCode


@dataclass
class Workers:
    """A kind of group of its own, that writes down what it is told."""

    protocol_type: str = "workers"
    told: list[object] = field(default_factory=list)
    reason: str = ""

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        return [("v2", b"two"), ("v1", b"one")]

    def prepare_join(self, *, lost: bool) -> None:
        self.reason = ""
        self.told.append("lost" if lost else "revoked")

    def assign(self, protocol: str, members: Sequence[JoinedMember]) -> Mapping[str, bytes]:
        self.told.append(("assign", protocol, [member.member_id for member in members]))
        return {member.member_id: member.metadata + b"!" for member in members}

    def on_assignment(self, protocol: str, assignment: bytes, metadata: GroupMetadata) -> None:
        self.told.append(("take", protocol, assignment, metadata.generation_id))

    def wants_rejoin(self) -> str:
        return self.reason


class Coordinator:
    """Answers joins, syncs and heartbeats; codes can be queued to come before the good answers."""

    def __init__(self, transport: ScriptedTransport, *, leads: bool = False) -> None:
        self.generation = 0
        self.leads = leads
        self.skip_assignment = False
        self.join_codes: list[ErrorCode | Exception] = []
        self.sync_codes: list[ErrorCode | Exception] = []
        self.beat_codes: list[ErrorCode | Exception] = []
        transport.answer(JoinGroupRequest, self.join)
        transport.answer(SyncGroupRequest, self.sync)
        transport.answer(HeartbeatRequest, self.heartbeat)
        transport.answer(LeaveGroupRequest, lambda _: LeaveGroupResponse())

    def join(self, request: JoinGroupRequest) -> object:
        if self.join_codes:
            code = self.join_codes.pop(0)
            if isinstance(code, Exception):
                return code
            return JoinGroupResponse(error_code=code, member_id=request.member_id)
        if not request.member_id and request.group_instance_id is None:
            return JoinGroupResponse(error_code=CODES.MEMBER_ID_REQUIRED, member_id="m-1")
        self.generation += 1
        member_id = request.member_id or "static-1"
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_name="v2",
            leader=member_id if self.leads else "other",
            member_id=member_id,
            skip_assignment=self.skip_assignment,
            members=[JoinGroupResponseMember(member_id, None, b"two")] if self.leads else [],
        )

    def sync(self, request: SyncGroupRequest) -> object:
        if self.sync_codes:
            code = self.sync_codes.pop(0)
            return code if isinstance(code, Exception) else SyncGroupResponse(error_code=code)
        return SyncGroupResponse(assignment=b"share")

    def heartbeat(self, request: HeartbeatRequest) -> object:
        if self.beat_codes:
            code = self.beat_codes.pop(0)
            return code if isinstance(code, Exception) else HeartbeatResponse(error_code=code)
        return HeartbeatResponse()


@dataclass
class Setting:
    """A member, everything around it, and time."""

    clock: ManualClock
    transport: ScriptedTransport
    coordinator: Coordinator
    workers: Workers
    member: GroupMember

    def join(self) -> None:
        """Step until stable; waits that the member asks for pass at once."""
        for _ in range(20):
            wait_ms = self.member.step()
            if wait_ms is None:
                return
            self.clock.advance(min(wait_ms, 2_000))
        raise AssertionError(f"still {self.member.state}")

    def beat(self) -> None:
        self.member.send_heartbeat()


def make_setting(
    *,
    leads: bool = False,
    instance_id: str | None = None,
    leave_group_on_close: bool | None = None,
) -> Setting:
    clock = ManualClock()
    transport = ScriptedTransport()
    workers = Workers()
    member = GroupMember(
        Cluster(transport, clock), GroupConfig("g", instance_id, leave_group_on_close), workers
    )
    return Setting(clock, transport, Coordinator(transport, leads=leads), workers, member)


@pytest.fixture
def setting() -> Iterator[Setting]:
    made = make_setting()
    yield made
    made.member.close()


@pytest.fixture
def leader() -> Iterator[Setting]:
    made = make_setting(leads=True)
    yield made
    made.member.close()


@pytest.fixture
def static() -> Iterator[Setting]:
    made = make_setting(instance_id="i")
    yield made
    made.member.close()


def test_a_member_finds_its_coordinator_joins_and_syncs(setting: Setting) -> None:
    setting.join()
    assert setting.member.state is MembershipState.STABLE
    assert setting.member.metadata == GroupMetadata("g", 1, "m-1", None)
    joins = setting.transport.requests(JoinGroupRequest)
    assert [join.member_id for join in joins] == ["", "m-1"]
    assert [(p.name, p.metadata) for p in joins[1].protocols] == [("v2", b"two"), ("v1", b"one")]
    assert joins[1].protocol_type == "workers"
    sync = setting.transport.requests(SyncGroupRequest)[0]
    assert (sync.generation_id, sync.member_id, sync.assignments) == (1, "m-1", [])
    assert setting.workers.told == ["revoked", ("take", "v2", b"share", 1)]
    assert {sent.node_id for sent in setting.transport.sent} == {None, NODE.id}


def test_the_leader_assigns_for_all(leader: Setting) -> None:
    leader.join()
    sync = leader.transport.requests(SyncGroupRequest)[0]
    assert [(a.member_id, a.assignment) for a in sync.assignments] == [("m-1", b"two!")]
    assert ("assign", "v2", ["m-1"]) in leader.workers.told


def test_a_leader_told_to_skip_the_assignment_sends_none(leader: Setting) -> None:
    leader.coordinator.skip_assignment = True
    leader.join()
    assert leader.transport.requests(SyncGroupRequest)[0].assignments == []


RETRIED = [
    CODES.COORDINATOR_LOAD_IN_PROGRESS,
    CODES.COORDINATOR_NOT_AVAILABLE,
    CODES.NOT_COORDINATOR,
    CODES.REBALANCE_IN_PROGRESS,
    ConnectionFailed("gone"),
]
FATAL = [
    CODES.FENCED_INSTANCE_ID,
    CODES.INCONSISTENT_GROUP_PROTOCOL,
    CODES.GROUP_AUTHORIZATION_FAILED,
    CODES.GROUP_MAX_SIZE_REACHED,
    CODES.INVALID_SESSION_TIMEOUT,
]


@pytest.mark.parametrize("code", RETRIED)
@pytest.mark.parametrize("phase", ["join", "sync"])
def test_errors_that_pass_are_tried_again_and_callbacks_run_once(
    setting: Setting, phase: str, code: ErrorCode | Exception
) -> None:
    getattr(setting.coordinator, f"{phase}_codes").append(code)
    setting.join()
    assert setting.workers.told.count("revoked") == 1
    assert setting.workers.told[-1][0] == "take"  # type: ignore[index]


@pytest.mark.parametrize("code", [CODES.NOT_COORDINATOR, ConnectionFailed("gone")])
def test_a_coordinator_that_moved_is_looked_for_again(
    setting: Setting, code: ErrorCode | Exception
) -> None:
    setting.coordinator.join_codes.append(code)
    setting.join()
    assert len(setting.transport.requests(FindCoordinatorRequest)) == 2


@pytest.mark.parametrize("code", FATAL)
@pytest.mark.parametrize("phase", ["join", "sync"])
def test_what_cannot_pass_is_raised_by_every_poll(
    setting: Setting, phase: str, code: ErrorCode
) -> None:
    getattr(setting.coordinator, f"{phase}_codes").append(code)
    for _ in range(2):
        with pytest.raises(BrokerError) as caught:
            setting.join()
        assert caught.value.code is code
    assert setting.member.state is MembershipState.FAILED


def test_an_unknown_member_joins_as_a_new_one(setting: Setting) -> None:
    setting.join()
    setting.member.request_rejoin("test")
    setting.coordinator.join_codes.append(CODES.UNKNOWN_MEMBER_ID)
    setting.join()
    joins = setting.transport.requests(JoinGroupRequest)
    assert [join.member_id for join in joins] == ["", "m-1", "m-1", "", "m-1"]
    assert setting.workers.told[2:] == ["revoked", "lost", ("take", "v2", b"share", 2)]


@pytest.mark.parametrize(
    ("code", "told", "member_ids"),
    [
        (CODES.REBALANCE_IN_PROGRESS, ["revoked"], ["m-1"]),
        (CODES.ILLEGAL_GENERATION, ["lost"], ["m-1"]),
        (CODES.UNKNOWN_MEMBER_ID, ["lost"], ["", "m-1"]),
        (CODES.NONE, [], []),
        (CODES.COORDINATOR_LOAD_IN_PROGRESS, [], []),
        (CODES.NOT_COORDINATOR, [], []),
        (ConnectionFailed("gone"), [], []),
    ],
)
def test_what_the_answer_to_a_heartbeat_leads_to(
    setting: Setting, code: ErrorCode | Exception, told: list[str], member_ids: list[str]
) -> None:
    setting.join()
    before = len(setting.workers.told)
    setting.coordinator.beat_codes.append(code)
    setting.beat()
    setting.join()
    assert [each for each in setting.workers.told[before:] if isinstance(each, str)] == told
    joins = setting.transport.requests(JoinGroupRequest)[2:]
    assert [join.member_id for join in joins] == member_ids


def test_a_fenced_static_member_fails_for_good(static: Setting) -> None:
    static.join()
    static.coordinator.beat_codes.append(CODES.FENCED_INSTANCE_ID)
    static.beat()
    with pytest.raises(BrokerError, match="fenced instance id"):
        static.member.poll(0)


def test_a_heartbeat_of_a_generation_that_is_over_means_nothing(setting: Setting) -> None:
    setting.join()
    setting.transport.answer(HeartbeatRequest, lambda _: None)
    setting.beat()
    late = setting.transport.waiting(HeartbeatRequest)[0]
    setting.member.request_rejoin("test")
    setting.join()
    late.future.set_result(HeartbeatResponse(error_code=CODES.UNKNOWN_MEMBER_ID))
    setting.join()
    assert setting.member.metadata.generation_id == 2


def test_a_member_that_is_not_polled_leaves_and_loses_what_it_held(setting: Setting) -> None:
    setting.join()
    setting.clock.advance(300_000)
    wait_until(lambda: setting.member.state is MembershipState.UNJOINED, "the member to give up")
    leave = setting.transport.requests(LeaveGroupRequest)[0]
    assert [member.member_id for member in leave.members] == ["m-1"]
    assert setting.workers.told[-1] == ("take", "v2", b"share", 1), "callbacks wait for poll"
    setting.join()
    assert setting.workers.told[-2:] == ["lost", ("take", "v2", b"share", 2)]


def test_heartbeats_go_out_in_the_background_while_the_caller_is_busy(setting: Setting) -> None:
    setting.join()
    for count in (1, 2):
        setting.clock.advance(3_000)
        wait_until(
            lambda count=count: len(setting.transport.requests(HeartbeatRequest)) == count,  # type: ignore[misc]
            "a heartbeat",
        )
    beat = setting.transport.requests(HeartbeatRequest)[0]
    assert (beat.generation_id, beat.member_id) == (1, "m-1")


def test_a_static_member_gives_its_instance_id_and_never_leaves(static: Setting) -> None:
    static.join()
    join = static.transport.requests(JoinGroupRequest)[0]
    sync = static.transport.requests(SyncGroupRequest)[0]
    assert (join.group_instance_id, sync.group_instance_id) == ("i", "i")
    static.member.close()
    assert static.transport.requests(LeaveGroupRequest) == []
    assert static.transport.closed


def test_a_static_member_leaves_if_it_is_told_to() -> None:
    made = make_setting(instance_id="i", leave_group_on_close=True)
    made.join()
    made.member.close()
    [leave] = made.transport.requests(LeaveGroupRequest)
    [member] = leave.members
    assert (member.member_id, member.group_instance_id) == ("static-1", "i")


def test_a_static_member_leaves_before_its_first_join_is_answered() -> None:
    """It stayed until its session ended: its group could not be deleted."""
    made = make_setting(instance_id="i", leave_group_on_close=True)
    made.transport.answer(JoinGroupRequest, lambda _: None)
    made.member.poll(0)
    made.member.close()
    [leave] = made.transport.requests(LeaveGroupRequest)
    [member] = leave.members
    assert (member.member_id, member.group_instance_id) == ("", "i")


def test_a_member_stays_if_it_is_told_to() -> None:
    made = make_setting(leave_group_on_close=False)
    made.join()
    made.member.close()
    assert made.transport.requests(LeaveGroupRequest) == []


def test_a_member_that_left_joins_anew_at_the_next_poll(setting: Setting) -> None:
    setting.join()
    setting.member.leave()
    assert setting.member.state is MembershipState.LEFT
    assert setting.member.metadata == GroupMetadata("g")
    setting.join()
    joins = setting.transport.requests(JoinGroupRequest)
    assert [join.member_id for join in joins] == ["", "m-1", "", "m-1"]


def test_the_protocol_can_ask_for_a_rebalance(setting: Setting) -> None:
    setting.join()
    setting.workers.reason = "new topics"
    setting.join()
    assert setting.transport.requests(JoinGroupRequest)[-1].reason == "new topics"
    assert setting.member.metadata.generation_id == 2


def test_poll_returns_in_time_when_the_group_does_not_complete(setting: Setting) -> None:
    setting.transport.answer(JoinGroupRequest, lambda _: None)
    assert setting.member.poll(0) is False
    assert setting.member.state is MembershipState.JOINING
    waiting = setting.transport.waiting(JoinGroupRequest)[0]
    assert waiting.timeout_ms == 305_000
    waiting.future.set_result(setting.coordinator.join(JoinGroupRequest(member_id="m-9")))
    assert setting.member.poll(0) is True


def test_a_group_nobody_may_read_is_an_error(setting: Setting) -> None:
    setting.transport.answer(
        FindCoordinatorRequest,
        lambda _: FindCoordinatorResponse(error_code=CODES.GROUP_AUTHORIZATION_FAILED),
    )
    with pytest.raises(BrokerError, match="group authorization failed"):
        setting.member.poll(0)


@pytest.mark.parametrize(
    "settings",
    [
        {"group_id": ""},
        {"group_id": "g", "heartbeat_interval_ms": 45_000},
        {"group_id": "g", "heartbeat_interval_ms": 0},
        {"group_id": "g", "max_poll_interval_ms": 0},
    ],
)
def test_settings_that_cannot_work_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        GroupConfig(**settings)  # type: ignore[arg-type]
