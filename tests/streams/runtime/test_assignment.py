"""Which runner gets which tasks: properties that hold for every group."""

from hypothesis import given
from hypothesis import strategies as st

from streams.runtime.assignment import Assignment, AssignmentSettings, Runner, assign
from streams.runtime.partitions import TaskId

NO_LAGS: dict[tuple[str, TaskId], int] = {}


@st.composite
def groups(draw: st.DrawFn) -> tuple[list[TaskId], set[TaskId], list[Runner]]:
    """Tasks, which of them have state, and runners who hold some of them."""
    tasks = [
        TaskId(sub, partition)
        for sub in range(draw(st.integers(1, 3)))
        for partition in range(draw(st.integers(1, 6)))
    ]
    stateful = {task for task in tasks if task.sub_topology > 0}
    count = draw(st.integers(1, 6))
    processes = [f"p{draw(st.integers(0, 3))}" for _ in range(count)]
    holders = {task: draw(st.integers(-1, count - 1)) for task in tasks}
    runners = [
        Runner(
            f"m{number}",
            processes[number],
            frozenset(task for task, holder in holders.items() if holder == number),
        )
        for number in range(count)
    ]
    return tasks, stateful, runners


def loads(result: Assignment, only: set[TaskId] | None = None) -> list[int]:
    return [
        len(share.active if only is None else share.active & only)
        for share in result.by_runner.values()
    ]


def owned_lags(runners: list[Runner]) -> dict[tuple[str, TaskId], int]:
    return {(runner.process_id, task): 0 for runner in runners for task in runner.owned}


@given(groups())
def test_every_task_is_active_exactly_once(
    group: tuple[list[TaskId], set[TaskId], list[Runner]],
) -> None:
    tasks, stateful, runners = group
    result = assign(tasks, stateful, runners, owned_lags(runners), AssignmentSettings())
    given_out = sorted(task for share in result.by_runner.values() for task in share.active)
    assert given_out == sorted(tasks)


@given(groups())
def test_loads_are_even_when_nobody_must_warm_up(
    group: tuple[list[TaskId], set[TaskId], list[Runner]],
) -> None:
    tasks, stateful, runners = group
    result = assign(tasks, stateful, runners, NO_LAGS, AssignmentSettings())
    assert not result.warming
    assert max(loads(result)) - min(loads(result)) <= 1
    assert max(loads(result, stateful)) - min(loads(result, stateful)) <= 1


@given(groups())
def test_an_even_assignment_does_not_change(
    group: tuple[list[TaskId], set[TaskId], list[Runner]],
) -> None:
    tasks, stateful, runners = group
    first = assign(tasks, stateful, runners, NO_LAGS, AssignmentSettings())
    settled = [
        Runner(each.member_id, each.process_id, frozenset(first.by_runner[each.member_id].active))
        for each in runners
    ]
    again = assign(tasks, stateful, settled, owned_lags(settled), AssignmentSettings())
    assert {name: share.active for name, share in again.by_runner.items()} == {
        name: share.active for name, share in first.by_runner.items()
    }


@given(groups(), st.integers(1, 3))
def test_copies_of_a_task_are_in_processes_of_their_own(
    group: tuple[list[TaskId], set[TaskId], list[Runner]], replicas: int
) -> None:
    tasks, stateful, runners = group
    result = assign(
        tasks, stateful, runners, NO_LAGS, AssignmentSettings(standby_replicas=replicas)
    )
    process_of = {runner.member_id: runner.process_id for runner in runners}
    possible = min(replicas, len(set(process_of.values())) - 1)
    for task in tasks:
        places = [
            process_of[member]
            for member, share in result.by_runner.items()
            if task in share.active or task in share.standby
        ]
        assert len(places) == len(set(places)) == (1 + possible if task in stateful else 1)


@given(groups(), st.integers(0, 3))
def test_a_task_with_state_leaves_a_warm_owner_only_for_a_warm_process(
    group: tuple[list[TaskId], set[TaskId], list[Runner]], warmups: int
) -> None:
    tasks, stateful, runners = group
    lags = owned_lags(runners)
    settings = AssignmentSettings(acceptable_lag=10, warmups_max=warmups)
    result = assign(tasks, stateful, runners, lags, settings)
    process_of = {runner.member_id: runner.process_id for runner in runners}
    warm = {task: process for process, task in lags}
    for member, share in result.by_runner.items():
        for task in share.active & stateful & warm.keys():
            assert warm[task] == process_of[member]
    waiting = sum(len(share.standby) for share in result.by_runner.values())
    assert waiting == min(warmups, len(result.warming))


def test_a_task_moves_when_its_new_owner_has_warmed_up() -> None:
    tasks = [TaskId(0, 0), TaskId(0, 1)]
    owner = Runner("old", "p0", frozenset(tasks))
    lags = {("p0", task): 0 for task in tasks}
    cold = assign(
        tasks, tasks, [owner, Runner("new", "p1")], lags, AssignmentSettings(acceptable_lag=10)
    )
    (warming,) = cold.warming
    assert cold.by_runner["old"].active == set(tasks)
    assert cold.by_runner["new"].standby == {warming}
    follower = Runner("new", "p1", frozenset(), frozenset({warming}))
    warm = assign(
        tasks,
        tasks,
        [owner, follower],
        lags | {("p1", warming): 10},
        AssignmentSettings(acceptable_lag=10),
    )
    assert warm.by_runner["new"].active == {warming}
    assert not warm.warming


def test_a_standby_takes_over_from_an_owner_that_is_gone() -> None:
    task = TaskId(0, 0)
    runners = [Runner("a", "p0"), Runner("b", "p1", frozenset(), frozenset({task}))]
    result = assign([task], [task], runners, {("p1", task): 3}, AssignmentSettings())
    assert result.by_runner["b"].active == {task}
