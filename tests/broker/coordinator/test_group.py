"""Classic groups, case by case, and any sequence of requests."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.coordinator.group import GroupState
from tests.broker.coordinator.scripts import ClassicScript, case_files, check_case


@pytest.mark.parametrize("path", case_files("classic"), ids=lambda path: path.stem)
def test_a_classic_group_answers_as_the_case_says(path: Path) -> None:
    check_case(path, ClassicScript())


CLIENTS = st.sampled_from("ABCDE")
COMMANDS = st.one_of(
    st.builds("join {}".format, CLIENTS),
    st.builds("join {0} instance={0}".format, st.sampled_from("DE")),
    st.builds("join {} version=3".format, CLIENTS),
    st.builds("sync {}".format, CLIENTS),
    st.builds("heartbeat {}".format, CLIENTS),
    st.builds("leave {}".format, CLIENTS),
    st.builds("forget {}".format, CLIENTS),
    st.builds("advance {}".format, st.sampled_from([1, 3000, 9000, 70_000])),
    st.sampled_from(["hold", "release", "release error=COORDINATOR_NOT_AVAILABLE"]),
)


@pytest.mark.slow
@given(st.lists(COMMANDS, max_size=40))
def test_every_generation_is_consistent(commands: list[str]) -> None:
    script = ClassicScript()
    highest = 0
    for command in commands:
        script.run([command])
        group = script.group
        assert group.generation >= highest
        highest = group.generation
        assert (group.state is GroupState.EMPTY) <= (len(group.members) == 0)
        if group.members:
            assert group.leader is not None
            assert group.leader in group.members
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            assert group.protocol in group.members.common_protocols()
            assert all(member.joining is None for member in group.members)
        if group.state is not GroupState.COMPLETING_REBALANCE:
            assert all(member.syncing is None for member in group.members)
    _check_generations(script.said)


def _check_generations(said: list[str]) -> None:
    """All who are told of a generation are told the same protocol."""
    told: dict[str, set[str]] = {}
    for line in said:
        if " joined generation " in line:
            generation = line.split(" joined generation ")[1].split()[0]
            told.setdefault(generation, set()).add(line.split(", ")[1])
    assert all(len(protocols) == 1 for protocols in told.values())


@pytest.mark.slow
@given(st.lists(COMMANDS, max_size=30))
def test_nobody_waits_for_ever(commands: list[str]) -> None:
    script = ClassicScript()
    script.run([*commands, "release", "advance 3000000"])
    assert script.group.state is GroupState.EMPTY
    assert script.group.next_deadline_ms() is None
