"""TaskAssignor: assigns tasks to runners, the consumers of one group.

Each member reports to the leader the id and address of its process, and the positions of the stores
on its disk. The leader derives the tasks from the partitions of the topics, assigns them, and sends
each member its tasks, its standbys and the hosts of all tasks. Rebalancing is cooperative: a task
that moves is first revoked from its owner; the next rebalance assigns it to the new one.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker import concurrency
from broker.client.assignors.api import MemberAssignment, MemberSubscription
from broker.errors import MillstreamError
from streams.runtime.assignment import UNKNOWN_LAG, Rules, Runner, Share, assign
from streams.runtime.partitions import Layout, TaskId

NAME = "millstream-streams"
RUNNING = -1  # position of a running task: the end of its changelogs


@dataclass(frozen=True, slots=True)
class HostTasks:
    """The tasks of one instance of the application."""

    host: str  # its application_server, empty when it has none
    process_id: str
    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """The assignment that the leader has sent to one member."""

    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    hosts: tuple[HostTasks, ...] = ()
    warming: frozenset[TaskId] = frozenset()  # warm-up standbys: active when they have caught up
    handing_over: bool = False  # a task was revoked and is not yet assigned: a rebalance follows
    probing: bool = False  # a standby warms up: a probing rebalance follows
    error: str = ""  # why the application cannot run
    shutdown: bool = False  # an instance requested that all stop
    incarnation: str = ""  # from the member's report; empty if the leader is older

    def is_complete(self, layout: Layout) -> bool:
        """Whether an instance can continue with it after a crash, without a rebalance."""
        assigned = {task for host in self.hosts for task in host.active}
        unsettled = self.handing_over or self.probing or self.error or self.shutdown
        return not unsettled and assigned == set(layout.tasks())


@dataclass(slots=True)
class ProcessReport:
    """The report of one process to the leader; its runners update it under the lock."""

    process_id: str
    host: str = ""
    positions: dict[TaskId, int] = field(default_factory=dict)
    shutdown: bool = False
    lock: concurrency.Lock = field(default_factory=lambda: concurrency.Lock())

    def set_position(self, task: TaskId, position: int) -> None:
        """Set the sum of the positions of a task's stores."""
        with self.lock:
            self.positions[task] = position

    def remove(self, task: TaskId) -> None:
        """Remove a task whose stores are no longer on this disk."""
        with self.lock:
            self.positions.pop(task, None)

    def snapshot(self) -> dict[TaskId, int]:
        """A copy of the positions."""
        with self.lock:
            return dict(self.positions)


class TaskAssignor:
    """An Assignor for one runner's consumer; used by the runner's thread only."""

    name = NAME
    cooperative = True

    def __init__(
        self,
        report: ProcessReport,
        rules: Rules,
        *,
        lay_out: Callable[[Mapping[str, int]], Layout],
        end_positions: Callable[[Layout, Iterable[TaskId]], Mapping[TaskId, int]],
        incarnation: str,
    ) -> None:
        """`lay_out` computes the layout for partition counts; `end_positions` sums the ends of the
        changelogs of each task.

        `incarnation` distinguishes this run of the process from earlier ones.
        """
        self._report = report
        self._rules = rules
        self._lay_out = lay_out
        self._end_positions = end_positions
        self.standbys: frozenset[TaskId] = frozenset()  # set by the runner
        self.rebalancing = True  # from the join to the new assignment: nothing can be committed
        self.received = TaskAssignment()
        self._incarnation = incarnation

    @property
    def is_of_previous_process(self) -> bool:
        """Whether the assignment was computed for an earlier process of this member."""
        return self.received.incarnation not in ("", self._incarnation)

    # --- each member --------------------------------------------------------------------------

    def user_data(self, topics: Iterable[str]) -> bytes:
        """This member's report to the leader."""
        self.rebalancing = True
        data = {
            "process": self._report.process_id,
            "host": self._report.host,
            "positions": {str(task): at for task, at in self._report.snapshot().items()},
            "standbys": [str(task) for task in sorted(self.standbys)],
            "shutdown": self._report.shutdown,
            "incarnation": self._incarnation,
        }
        return json.dumps(data, separators=(",", ":")).encode()

    def on_assignment(self, assignment: MemberAssignment, generation: int) -> None:
        """Store the assignment; the runner applies it in its rebalance callbacks."""
        self.received = decode_assignment(assignment.user_data)
        self.rebalancing = False

    # --- the leader ---------------------------------------------------------------------------

    def assign(
        self, members: Sequence[MemberSubscription], partition_counts: Mapping[str, int]
    ) -> dict[str, MemberAssignment]:
        """Assign the tasks to all members."""
        reports = {member.member_id: _read_member(member) for member in members}
        if any(data["shutdown"] for data in reports.values()):
            return _send_to_all(reports, {"shutdown": True})
        try:
            layout = self._lay_out(partition_counts)
            return self._assign_tasks(layout, members, reports)
        except MillstreamError as error:
            return _send_to_all(reports, {"error": str(error)})

    def _assign_tasks(
        self,
        layout: Layout,
        members: Sequence[MemberSubscription],
        reports: Mapping[str, dict[str, Any]],
    ) -> dict[str, MemberAssignment]:
        owners = _owners(layout, members)
        runners = [
            Runner(
                member.member_id,
                reports[member.member_id]["process"],
                frozenset(task for task, owner in owners.items() if owner == member.member_id),
                frozenset(map(TaskId.parse, reports[member.member_id]["standbys"])),
            )
            for member in members
        ]
        stateful = layout.stateful_tasks()
        lags = self._lags(layout, stateful, reports.values())
        assignment = assign(layout.tasks(), stateful, runners, lags, self._rules)
        hosts = [_host(reports, assignment.shares, process) for process in _processes(reports)]
        assignments = {}
        # Tasks that other members still own; they are assigned after they have been revoked.
        still_owned = {
            task
            for member_id, share in assignment.shares.items()
            for task in share.active
            if owners.get(task, member_id) != member_id
        }
        for member in members:
            share = assignment.shares[member.member_id]
            active = share.active - still_owned
            # Until then the member keeps its standby; if closed, it would have to catch up again.
            standby = share.standby | (share.active & still_owned & stateful)
            data = {
                "active": sorted(map(str, active)),
                "standby": sorted(map(str, standby)),
                "hosts": hosts,
                "warming": sorted(map(str, share.standby & assignment.warming)),
                "handing_over": bool(still_owned),
                "probing": bool(assignment.warming),
                "incarnation": reports[member.member_id]["incarnation"],
            }
            partitions = sorted({tp for task in active for tp in layout.inputs(task)})
            assignments[member.member_id] = MemberAssignment(tuple(partitions), _encode(data))
        return assignments

    def _lags(
        self, layout: Layout, stateful: frozenset[TaskId], reports: Iterable[dict[str, Any]]
    ) -> dict[tuple[str, TaskId], int]:
        positions = {
            (data["process"], TaskId.parse(task)): position
            for data in reports
            for task, position in data["positions"].items()
        }
        tasks = {task for _, task in positions if task in stateful}
        ends = self._end_positions(layout, tasks) if tasks else {}
        return {
            (process, task): 0
            if position == RUNNING
            else max(0, ends.get(task, UNKNOWN_LAG) - position)
            for (process, task), position in positions.items()
            if task in stateful
        }


def _owners(layout: Layout, members: Sequence[MemberSubscription]) -> dict[TaskId, str]:
    """The current owner of each task; if two members claim a task, the newer generation wins."""
    task_of = layout.task_of()
    owners: dict[TaskId, tuple[int, str]] = {}
    for member in members:
        for tp in member.owned:
            for task in task_of.get(tp, ()):
                claim = (member.generation, member.member_id)
                if task not in owners or claim[0] > owners[task][0]:
                    owners[task] = claim
    return {task: member_id for task, (_, member_id) in owners.items()}


def _processes(reports: Mapping[str, dict[str, Any]]) -> list[str]:
    return sorted({data["process"] for data in reports.values()})


def _host(
    reports: Mapping[str, dict[str, Any]], shares: Mapping[str, Share], process: str
) -> dict[str, Any]:
    members = [member for member, data in reports.items() if data["process"] == process]
    return {
        "host": next((reports[m]["host"] for m in members if reports[m]["host"]), ""),
        "process": process,
        "active": sorted(str(task) for m in members for task in shares[m].active),
        "standby": sorted(str(task) for m in members for task in shares[m].standby),
    }


def _send_to_all(
    reports: Mapping[str, dict[str, Any]], data: dict[str, Any]
) -> dict[str, MemberAssignment]:
    return {
        member_id: MemberAssignment(
            (), _encode({**data, "incarnation": reports[member_id]["incarnation"]})
        )
        for member_id in reports
    }


def _encode(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode()


# Any, because JSON has no types. Every field has a default, for members of older versions.
def _read_member(member: MemberSubscription) -> dict[str, Any]:
    data = json.loads(member.user_data or b"{}")
    return {
        "process": data.get("process", member.member_id),
        "host": data.get("host", ""),
        "positions": data.get("positions", {}),
        "standbys": data.get("standbys", []),
        "shutdown": data.get("shutdown", False),
        "incarnation": data.get("incarnation", ""),
    }


def decode_assignment(user_data: bytes | None) -> TaskAssignment:
    """Decode an assignment of the leader."""
    data = json.loads(user_data or b"{}")
    return TaskAssignment(
        _tasks(data.get("active", [])),
        _tasks(data.get("standby", [])),
        tuple(
            HostTasks(
                each["host"], each["process"], _tasks(each["active"]), _tasks(each["standby"])
            )
            for each in data.get("hosts", [])
        ),
        _tasks(data.get("warming", [])),
        data.get("handing_over", False),
        data.get("probing", False),
        data.get("error", ""),
        data.get("shutdown", False),
        data.get("incarnation", ""),
    )


def _tasks(names: Iterable[str]) -> frozenset[TaskId]:
    return frozenset(TaskId.parse(name) for name in names)
