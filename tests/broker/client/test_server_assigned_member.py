"""ServerAssignedMember against a scripted coordinator on a manual clock."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from broker.client.api import GroupMetadata, RebalanceListener
from broker.client.classic_group_member import GroupConfig
from broker.client.cluster import Cluster
from broker.client.consumer_config import ConsumerConfig
from broker.client.positions import Positions
from broker.client.server_assigned_member import ServerAssignedMember
from broker.client.subscription import Subscription
from broker.client.wake_signal import Signal
from broker.clock import ManualClock
from broker.errors import BrokerError, ConnectionFailed, ErrorCode
from broker.model import TopicPartition
from broker.protocol.messages.consumer_groups import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tests.broker.client.scripted import ScriptedTransport, topic_id
from tests.support.peer import wait_until

CODES = ErrorCode


@dataclass
class Coordinator:
    """Gives the partitions it is told to give, once; codes can be queued to come first."""

    transport: ScriptedTransport
    epoch: int = 0
    give: list[int] | None = field(default_factory=lambda: [0, 1])
    codes: list[ErrorCode | Exception] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.transport.answer(ConsumerGroupHeartbeatRequest, self.heartbeat)

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest) -> object:
        if self.codes:
            code = self.codes.pop(0)
            if isinstance(code, Exception):
                return code
            return ConsumerGroupHeartbeatResponse(error_code=code)
        given, self.give = self.give, None
        self.epoch += given is not None
        assignment = None
        if given is not None:
            partitions = [TopicPartitions(topic_id("t"), given)] if given else []
            assignment = Assignment(topic_partitions=partitions)
        return ConsumerGroupHeartbeatResponse(
            member_id=request.member_id,
            member_epoch=max(self.epoch, request.member_epoch),
            heartbeat_interval_ms=1_000,
            assignment=assignment,
        )


class Setting:
    """A member of topic "t" and what its listener heard."""

    def __init__(self, *, instance_id: str | None = None) -> None:
        self.clock = ManualClock()
        self.transport = ScriptedTransport({"t": 4, "u": 1})
        self.coordinator = Coordinator(self.transport)
        self.heard: list[tuple[str, list[int]]] = []
        self.positions = Positions()
        cluster = Cluster(self.transport, self.clock)
        signal = Signal(self.clock)
        self.subscription = Subscription(
            cluster,
            self.positions,
            ConsumerConfig(),
            signal,
            before_rebalance=lambda: self.heard.append(("commit", [])),
        )
        listener = RebalanceListener(
            *(
                lambda tps, what=what: self.heard.append((what, sorted(tp.partition for tp in tps)))
                for what in ("assigned", "revoked", "lost")
            )
        )
        self.subscription.subscribe(["t"], listener)
        cluster.refresh()
        self.member = ServerAssignedMember(
            cluster,
            GroupConfig("g", group_instance_id=instance_id),
            self.subscription,
            self.positions,
            signal,
        )

    def run_until_held(self, *partitions: int) -> None:
        """Step, and let a little time pass, until the member holds these and has said so."""
        wanted = {TopicPartition("t", number) for number in partitions}

        def settled() -> bool:
            self.clock.advance(20)
            return (
                self.member.step() is None
                and self.positions.assigned() == wanted
                and not self.member._has_changes()
            )

        wait_until(settled, f"partitions {partitions}, heard {self.heard}")

    def requests(self) -> list[ConsumerGroupHeartbeatRequest]:
        return self.transport.requests(ConsumerGroupHeartbeatRequest)


@pytest.fixture
def setting() -> Iterator[Setting]:
    made = Setting()
    yield made
    made.member.stop()


def test_the_first_heartbeat_says_everything_and_later_ones_what_changed(setting: Setting) -> None:
    setting.run_until_held(0, 1)
    join, ack = setting.requests()[:2]
    assert (join.member_epoch, join.subscribed_topic_names, join.topic_partitions) == (0, ["t"], [])
    assert join.rebalance_timeout_ms == 300_000
    assert (ack.member_epoch, ack.subscribed_topic_names) == (1, None)
    assert ack.topic_partitions == [TopicPartitions(topic_id("t"), [0, 1])]
    assert setting.heard == [("assigned", [0, 1])]
    assert setting.member.metadata == GroupMetadata("g", 1, join.member_id)
    setting.clock.advance(1_000)
    wait_until(lambda: len(setting.requests()) == 3, "a heartbeat")
    quiet = setting.requests()[2]
    assert (quiet.subscribed_topic_names, quiet.topic_partitions) == (None, None)


def test_what_is_taken_away_is_committed_revoked_and_acknowledged(setting: Setting) -> None:
    setting.run_until_held(0, 1)
    setting.coordinator.give = [1, 2]
    setting.clock.advance(1_000)
    setting.run_until_held(1, 2)
    assert setting.heard[1:] == [("commit", []), ("revoked", [0]), ("assigned", [2])]
    assert setting.requests()[-1].topic_partitions == [TopicPartitions(topic_id("t"), [1, 2])]


@pytest.mark.parametrize("code", [CODES.FENCED_MEMBER_EPOCH, CODES.UNKNOWN_MEMBER_ID])
def test_a_fenced_member_loses_everything_and_joins_again(
    setting: Setting, code: ErrorCode
) -> None:
    setting.run_until_held(0, 1)
    setting.coordinator.codes.append(code)
    setting.coordinator.give = [3]
    setting.clock.advance(1_000)
    wait_until(lambda: setting.member.metadata.generation_id < 0, "the member to be fenced")
    setting.run_until_held(3)
    assert setting.heard[1:] == [("lost", [0, 1]), ("assigned", [3])]


@pytest.mark.parametrize(
    "fault",
    [CODES.NOT_COORDINATOR, CODES.COORDINATOR_LOAD_IN_PROGRESS, ConnectionFailed("gone")],
)
def test_a_coordinator_that_is_away_costs_nothing(
    setting: Setting, fault: ErrorCode | Exception
) -> None:
    setting.run_until_held(0, 1)
    before = len(setting.requests())
    setting.coordinator.codes.append(fault)
    setting.clock.advance(1_000)
    wait_until(lambda: len(setting.requests()) > before, "the heartbeat that fails")
    setting.run_until_held(0, 1)
    assert setting.heard == [("assigned", [0, 1])]
    assert setting.requests()[-1].subscribed_topic_names == ["t"], "everything is said again"


def test_what_cannot_pass_is_raised_by_every_step(setting: Setting) -> None:
    setting.coordinator.codes.append(CODES.UNRELEASED_INSTANCE_ID)
    with pytest.raises(BrokerError, match="unreleased instance id"):
        setting.run_until_held(0, 1)
    with pytest.raises(BrokerError):
        setting.member.step()


def test_another_subscription_goes_out_at_once(setting: Setting) -> None:
    setting.run_until_held(0, 1)
    setting.subscription.subscribe(["t", "u"], None)
    setting.run_until_held(0, 1)
    assert setting.requests()[-1].subscribed_topic_names == ["t", "u"]


@pytest.mark.parametrize(("instance_id", "epoch"), [(None, -1), ("i", -2)])
def test_leaving_is_a_last_heartbeat(instance_id: str | None, epoch: int) -> None:
    setting = Setting(instance_id=instance_id)
    setting.run_until_held(0, 1)
    setting.member.stop()
    last = setting.requests()[-1]
    assert (last.member_epoch, last.instance_id) == (epoch, instance_id)
    assert setting.member.metadata == GroupMetadata("g")


def test_a_member_that_is_not_polled_leaves_and_loses_what_it_held(setting: Setting) -> None:
    setting.run_until_held(0, 1)
    setting.clock.advance(300_000)
    wait_until(lambda: setting.member.metadata.generation_id < 0, "the member to give up")
    assert setting.requests()[-1].member_epoch == -1
    setting.coordinator.give = [0]
    setting.run_until_held(0)
    assert setting.heard[1:] == [("lost", [0, 1]), ("assigned", [0])]
