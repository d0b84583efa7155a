"""One worker per group.id: a second one is refused, and takes over when the first is gone."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest

from broker import Broker
from broker.client import group_member
from broker.client.api import JoinedMember
from broker.machine import Machine
from connect.client import ConnectClient
from connect.config.worker_config import WorkerConfig
from connect.errors import ConfigError, ConnectError
from connect.runtime.worker_group import PROTOCOL, GroupTimeouts, SingleOwnerProtocol, WorkerGroup
from connect.server import ConnectServer
from connect.state.offsets import FileOffsets
from tests.connect.running_worker import SETTINGS, string_values
from tests.support.peer import wait_until

FAST = GroupTimeouts(session_ms=2_000, heartbeat_ms=50, rebalance_ms=20_000)
LIMIT_S = 60.0


def claim(worker: str, *, owner: bool) -> JoinedMember:
    return JoinedMember(worker, worker, orjson.dumps({"worker": worker, "owner": owner}))


@pytest.mark.parametrize(
    ("leader_owns", "others", "owner"),
    [
        (False, [], "leader"),
        (True, [claim("b", owner=False)], "leader"),
        (False, [claim("b", owner=False)], "leader"),
        (False, [claim("b", owner=True)], "b"),
        (True, [claim("b", owner=True)], "leader"),
    ],
)
def test_the_owner_of_a_group_stays_and_without_one_its_leader_is_it(
    leader_owns: bool, others: list[JoinedMember], owner: str
) -> None:
    leader = SingleOwnerProtocol("leader", owns=leader_owns)
    members = [claim("leader", owner=leader_owns), *others]
    assigned = leader.assign(PROTOCOL, members)
    assert {orjson.loads(each)["owner"] for each in assigned.values()} == {owner}
    assert len(assigned) == len(members)


def test_a_worker_that_was_no_member_for_a_while_does_not_claim_the_group() -> None:
    worker = SingleOwnerProtocol("a", owns=True)
    worker.prepare_join(lost=False)
    assert orjson.loads(worker.protocols()[0][1])["owner"] is True
    worker.prepare_join(lost=True)
    assert orjson.loads(worker.protocols()[0][1])["owner"] is False


class Losses:
    """Hears of a group that is lost."""

    def __init__(self) -> None:
        self.errors: list[ConnectError] = []
        self.lost = threading.Event()

    def __call__(self, error: ConnectError) -> None:
        self.errors.append(error)
        self.lost.set()


@contextmanager
def joined(broker: Broker, worker: str) -> Iterator[tuple[WorkerGroup, Losses]]:
    losses = Losses()
    group = WorkerGroup(broker, "workers", {}, losses, FAST)
    group.join(worker)
    try:
        yield group, losses
    finally:
        group.close()


@pytest.mark.slow
def test_a_second_worker_is_refused_while_the_first_one_runs(broker: Broker) -> None:
    with joined(broker, "a:1") as (_, losses):
        for _ in range(2):
            with (
                pytest.raises(ConnectError, match=r'connectors of group "workers": a:1') as refused,
                joined(broker, "b:2"),
            ):
                raise AssertionError("both run")
            assert "group.id" in refused.value.hint
        assert not losses.errors
    with joined(broker, "b:2") as (_, losses):
        assert not losses.errors


@pytest.mark.slow
def test_a_worker_that_died_is_followed_when_its_session_is_over(broker: Broker) -> None:
    # A member that is not polled and never leaves is what kill -9 leaves behind.
    dead = group_member(
        broker,
        SingleOwnerProtocol("a:1"),
        group_id="workers",
        group_instance_id="a_1",
        session_timeout_ms=500,
        heartbeat_interval_ms=400,
        max_poll_interval_ms=20_000,
    )
    assert dead.poll(20_000)
    dead._heartbeats.stop()
    with joined(broker, "b:2") as (_, losses):
        assert not losses.errors
    dead.close()


@pytest.mark.slow
def test_a_worker_that_starts_again_at_its_address_takes_its_own_place(broker: Broker) -> None:
    with joined(broker, "a:1") as (_, before), joined(broker, "a:1") as (_, now):
        assert before.lost.wait(LIMIT_S)
        assert 'another worker with the id "a:1"' in str(before.errors[0])
        assert not now.errors


@pytest.mark.slow
def test_workers_of_kafka_in_the_group_are_named_as_the_reason(broker: Broker) -> None:
    class KafkaWorker(SingleOwnerProtocol):
        def protocols(self) -> list[tuple[str, bytes]]:
            return [("sessioned", b"")]

        def assign(self, protocol: str, members: object) -> dict[str, bytes]:
            return {}

        def on_assignment(self, *args: object) -> None:
            return

    other = group_member(broker, KafkaWorker("k"), group_id="workers")
    assert other.poll(20_000)
    with pytest.raises(ConnectError, match="not Millstream workers"), joined(broker, "a:1"):
        raise AssertionError("both run")
    other.close()


@pytest.mark.slow
def test_a_worker_whose_group_is_lost_stops_all_connectors(broker: Broker, tmp_path: Path) -> None:
    lines = tmp_path / "in.txt"
    lines.write_text("1\n")
    config = WorkerConfig.parse(
        {**SETTINGS, "listeners": "http://127.0.0.1:0", "heartbeat.interval.ms": "100"}
    )
    with ConnectServer(broker, config) as first:
        source = {"connector.class": "FileStreamSource", "file": str(lines), "topic": "lines"}
        ConnectClient(first.url).create("lines", source)
        wait_until(lambda: string_values(broker, "lines") == ["1"], "the first line")
        name = config.member_name(int(first.url.rpartition(":")[2]), Machine())
        with joined(broker, name):
            wait_until(lambda: first.failure is not None, "the failure")
            wait_until(
                lambda: not any(each.name.startswith("connect-lines") for each in _threads()),
                "the end of its tasks",
            )


def _threads() -> list[threading.Thread]:
    return threading.enumerate()


def test_a_second_standalone_worker_cannot_use_the_same_file(tmp_path: Path) -> None:
    file = tmp_path / "offsets"
    first, second = FileOffsets(file), FileOffsets(file)
    first.open()
    with pytest.raises(ConfigError, match="another worker uses this offsets file"):
        second.open()
    first.close()
    second.open()
    second.close()
