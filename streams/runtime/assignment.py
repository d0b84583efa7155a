"""Assigns tasks to runners; pure.

1. Target: loads are balanced (first over stateful tasks, then over all); a task stays with its
   owner if that is balanced, otherwise it moves to the runner with the lowest lag.
2. Warm-up: a stateful task moves to its target only if that process has almost all of its changelog
   (`acceptable_lag`), or if no process has; otherwise a process that has it runs the task while the
   target warms up as a standby. The number of warm-ups is limited.
3. Standbys: copies of stateful tasks, each in a different process.

Loads are balanced over runners, so a process gets tasks by its number of threads.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from streams.runtime.partitions import TaskId

UNKNOWN_LAG = 1 << 62


@dataclass(frozen=True, slots=True)
class Runner:
    """A member of the group."""

    member_id: str
    process_id: str
    owned: frozenset[TaskId] = frozenset()  # its current active tasks
    standbys: frozenset[TaskId] = frozenset()


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings of the application for assignment."""

    standby_replicas: int = 0
    acceptable_lag: int = 10_000
    warmups_max: int = 2


@dataclass(slots=True)
class Share:
    """The tasks of one runner."""

    active: set[TaskId] = field(default_factory=set)
    standby: set[TaskId] = field(default_factory=set)  # warm-ups included


@dataclass(slots=True)
class Assignment:
    """The tasks of all runners; `warming` tasks move when their new owner has caught up."""

    shares: dict[str, Share]
    warming: set[TaskId] = field(default_factory=set)


Lags = Mapping[tuple[str, TaskId], int]  # by process and task: the lag of its copy


def assign(
    tasks: Collection[TaskId],
    stateful: Collection[TaskId],
    runners: Iterable[Runner],
    lags: Lags,
    rules: Rules,
) -> Assignment:
    """Assign the tasks; there must be a runner."""
    members = sorted(runners, key=lambda runner: (runner.process_id, runner.member_id))
    assert members, "a group that assigns has a member"
    target = _Target(members, lags)
    with_state = sorted(task for task in tasks if task in stateful)
    target.spread(with_state)
    target.spread(sorted(task for task in tasks if task not in stateful))
    result = Assignment({runner.member_id: Share() for runner in members})
    _place_active(target, set(with_state), rules, result)
    _place_standbys(target, with_state, rules, result)
    return result


class _Target:
    """The target assignment, without regard to warm-up."""

    def __init__(self, members: list[Runner], lags: Lags) -> None:
        self.members = members
        self.lags = lags
        self.process_of = {runner.member_id: runner.process_id for runner in members}
        self.owner = {task: runner.member_id for runner in members for task in runner.owned}
        self.tasks: dict[TaskId, str] = {}
        self._load = dict.fromkeys(self.process_of, 0)

    def spread(self, tasks: list[TaskId]) -> None:
        """Place tasks so that the loads are balanced, including tasks placed before."""
        count = len(self.members)
        least, extra = divmod(sum(self._load.values()) + len(tasks), count)

        def has_room(member: str) -> bool:
            load = self._load[member]
            if load < least:
                return True
            full = sum(1 for other in self._load.values() if other > least)
            return load == least and full < extra

        waiting = []
        for task in tasks:
            owner = self.owner.get(task)
            if owner is not None and has_room(owner):
                self._place(task, owner)
            else:
                waiting.append(task)
        for task in waiting:
            open_members = [member for member in self._load if has_room(member)]
            self._place(task, min(open_members, key=lambda member: self.rank(task, member)))

    def rank(self, task: TaskId, member: str) -> tuple[int, int, int, str]:
        process = self.process_of[member]
        of_process = sum(
            load for other, load in self._load.items() if self.process_of[other] == process
        )
        return self.lag(process, task), self._load[member], of_process, member

    def _place(self, task: TaskId, member: str) -> None:
        self.tasks[task] = member
        self._load[member] += 1

    def lag(self, process: str, task: TaskId) -> int:
        return self.lags.get((process, task), UNKNOWN_LAG)


def _place_active(target: _Target, stateful: set[TaskId], rules: Rules, result: Assignment) -> None:
    """Assign tasks to their targets, or to a runner that has caught up, until the target has."""
    warmups = 0
    for task, member in sorted(target.tasks.items()):
        interim = _interim_owner(target, task, member, rules) if task in stateful else None
        if interim is None:
            result.shares[member].active.add(task)
            continue
        result.shares[interim].active.add(task)
        result.warming.add(task)
        if warmups < rules.warmups_max:
            result.shares[member].standby.add(task)
            warmups += 1


def _interim_owner(target: _Target, task: TaskId, member: str, rules: Rules) -> str | None:
    """The runner of a task while its target catches up; None if the target can run it now."""
    if target.lag(target.process_of[member], task) <= rules.acceptable_lag:
        return None
    owner = target.owner.get(task)
    if owner is not None and target.lag(target.process_of[owner], task) <= rules.acceptable_lag:
        return owner if owner != member else None
    warm = [
        runner.member_id
        for runner in target.members
        if target.lag(runner.process_id, task) <= rules.acceptable_lag
    ]
    return min(warm, key=lambda each: target.rank(task, each)) if warm else None


def _place_standbys(
    target: _Target, stateful: list[TaskId], rules: Rules, result: Assignment
) -> None:
    by_process: dict[str, list[Runner]] = {}
    for runner in target.members:
        by_process.setdefault(runner.process_id, []).append(runner)
    holders = {
        task: {
            target.process_of[member]
            for member, share in result.shares.items()
            if task in share.active or task in share.standby
        }
        for task in stateful
    }
    for _ in range(min(rules.standby_replicas, len(by_process) - 1)):
        for task in stateful:
            free = [process for process in by_process if process not in holders[task]]
            if not free:
                continue
            process = min(
                free, key=lambda each: _standby_rank(task, by_process[each], target, result)
            )
            member = min(
                by_process[process],
                key=lambda runner: (task not in runner.standbys, _size(result, runner)),
            )
            result.shares[member.member_id].standby.add(task)
            holders[task].add(process)


def _standby_rank(
    task: TaskId, runners: list[Runner], target: _Target, result: Assignment
) -> tuple[bool, float, int]:
    """Rank of a process, the lowest is best: whether it has no copy, load per thread, lag."""
    has_copy = any(task in runner.standbys for runner in runners)
    load = sum(_size(result, runner) for runner in runners) / len(runners)
    return not has_copy, load, target.lag(runners[0].process_id, task)


def _size(result: Assignment, runner: Runner) -> int:
    share = result.shares[runner.member_id]
    return len(share.active) + len(share.standby)
