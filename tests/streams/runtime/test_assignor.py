"""TaskAssignor: what members tell the leader and what the leader tells them."""

from collections.abc import Mapping
from uuid import uuid4

from broker.client.assignors.api import MemberAssignment, MemberSubscription
from broker.model import TopicPartition
from streams.runtime.assignment import AssignmentSettings
from streams.runtime.assignor import (
    RUNNING,
    ProcessReport,
    TaskAssignment,
    TaskAssignor,
    decode_assignment,
)
from streams.runtime.partitions import TaskId, lay_out
from tests.streams.runtime.apps import count_topology

FIRST, SECOND = TaskId(0, 0), TaskId(0, 1)


class Group:
    """Members with their assignors; a rebalance as the group's leader does it."""

    def __init__(self, *names: str) -> None:
        self.reports = {name: ProcessReport(f"process-{name}", f"{name}:80") for name in names}
        self.assignors = {name: self._assignor(report) for name, report in self.reports.items()}
        self.owned: dict[str, tuple[TopicPartition, ...]] = dict.fromkeys(names, ())
        self.generation = 0

    def _assignor(self, report: ProcessReport) -> TaskAssignor:
        return TaskAssignor(
            report,
            AssignmentSettings(acceptable_lag=10),
            lay_out=lambda counts: lay_out(count_topology(), "app", counts),
            end_positions=lambda layout, tasks: dict.fromkeys(tasks, 100),
            incarnation=uuid4().hex,
        )

    def rebalance(self, counts: Mapping[str, int] | None = None) -> dict[str, TaskAssignment]:
        members = [
            MemberSubscription(
                name,
                ("in",),
                owned=self.owned[name],
                generation=self.generation,
                user_data=assignor.user_data(["in"]),
            )
            for name, assignor in self.assignors.items()
        ]
        leader = next(iter(self.assignors.values()))
        answers = leader.assign(members, {"in": 2} if counts is None else counts)
        self.generation += 1
        return {name: self._take(name, answer) for name, answer in answers.items()}

    def _take(self, name: str, answer: MemberAssignment) -> TaskAssignment:
        self.assignors[name].on_assignment(answer, self.generation)
        self.owned[name] = answer.partitions
        received = decode_assignment(answer.user_data)
        self.assignors[name].standbys = received.standby
        for task in received.active:
            self.reports[name].set_position(task, RUNNING)
        return received

    def join(self, name: str) -> None:
        self.reports[name] = ProcessReport(f"process-{name}", f"{name}:80")
        self.assignors[name] = self._assignor(self.reports[name])
        self.owned[name] = ()


def test_partitions_follow_tasks_and_everybody_knows_who_has_what() -> None:
    received = Group("a", "b").rebalance()
    assert {task for each in received.values() for task in each.active} == {FIRST, SECOND}
    for each in received.values():
        assert len(each.active) == 1
        assert [host.host for host in each.hosts] == ["a:80", "b:80"]
        assert {task for host in each.hosts for task in host.active} == {FIRST, SECOND}


def test_a_newcomer_warms_up_is_handed_the_task_and_keeps_it() -> None:
    group = Group("a")
    assert group.rebalance()["a"].active == {FIRST, SECOND}
    group.join("b")
    warming = group.rebalance()
    assert warming["a"].active == {FIRST, SECOND}
    (moving,) = warming["b"].warming
    assert warming["b"].standby == {moving}
    group.reports["b"].set_position(moving, 95)
    handing_over = group.rebalance()
    assert handing_over["a"].active == {FIRST, SECOND} - {moving}
    assert handing_over["b"].active == frozenset()
    assert handing_over["b"].standby == {moving}, "the warm copy is kept while it waits"
    assert handing_over["b"].handing_over
    group.reports["a"].set_position(moving, 100)
    over = group.rebalance()
    assert over["b"].active == {moving}
    assert not over["b"].handing_over
    assert group.rebalance()["b"].active == {moving}


def test_an_error_of_the_leader_reaches_all_members() -> None:
    received = Group("a", "b").rebalance({})
    assert all("source topics do not exist" in each.error for each in received.values())


def test_a_request_to_stop_reaches_all_members() -> None:
    group = Group("a", "b")
    group.reports["b"].shutdown = True
    assert all(each.shutdown for each in group.rebalance().values())
