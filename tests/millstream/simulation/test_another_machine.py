"""A seed is one history on another processor architecture, with another build of Python, too."""

import json
import platform
from collections.abc import Iterator

import pytest

from millstream.simulation.history import DETAIL
from millstream.simulation.scenario import scenario_of
from tests.millstream.simulation.test_seeds import HOURS, simulate
from tests.support.another_machine import AnotherMachine, make_another_machine
from tests.support.peer import PeerMissing, skip_without_peer

SECONDS_MAX = 1_200  # of a seed; an idle machine needs 20 to 90
pytestmark = [
    pytest.mark.long,
    pytest.mark.peer,
    pytest.mark.timeout(SECONDS_MAX + 600),  # with the libraries, which are downloaded once
]

SEEDS = {
    4: {"producer", "transactions", "consumer"},
    12: {"sql", "balances", "topics"},
    18: {"connect", "rival", "registry"},
    29: {"application"},
    45: {"sql", "second"},
    76: {"sql", "application", "registry"},
}


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AnotherMachine]:
    try:
        yield make_another_machine(tmp_path_factory.mktemp("machine"))
    except PeerMissing as reason:
        skip_without_peer(reason)


def test_it_is_another_machine(machine: AnotherMachine) -> None:
    modules = "broker.batch._speed, broker.client._murmur2, streams.state._windows"
    done = machine.run("-c", f"import platform, {modules}; print(platform.machine())")
    assert (done.stdout, done.stderr) == ("aarch64\n", "")
    assert platform.machine() != "aarch64"


@pytest.mark.parametrize("seed", SEEDS)
def test_a_seed_is_one_history_on_another_processor(seed: int, machine: AnotherMachine) -> None:
    actors = {name.split()[0] for name in scenario_of(seed, minutes=float(HOURS) * 60).actors}
    assert actors >= SEEDS[seed]
    arguments = ("--seed", str(seed), "--hours", HOURS, "--lines", "100000")
    code, [here] = simulate(*arguments)
    done = machine.run(
        *("-m", "millstream", "simulate", "--json", *arguments), seconds_max=SECONDS_MAX
    )
    assert (done.returncode, done.stderr) == (code, "")
    assert _promised(json.loads(done.stdout)) == _promised(here)


def _promised(facts: dict[str, object]) -> dict[str, object]:
    """What a seed decides: not the time that it takes, nor paths in the details of an event."""
    history = facts["history"]
    assert isinstance(history, list)
    events = [line for line in history if not line.startswith(DETAIL)]
    return {**facts, "history": events, "real_seconds": None}
