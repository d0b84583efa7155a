"""Seeds: the platform keeps its promises under faults, and a seed is one history."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from millstream.simulation import primitives, simulated_platform
from millstream.simulation.history import DETAIL
from millstream.simulation.scenario import core_scenario_of
from millstream.simulation.simulated_platform import run_scenario
from tests.support.another_machine import copy_our_packages
from tests.support.peer import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.spread]

SEEDS = 300
GROUP = 30
HOURS = "0.02"  # virtual ones, of faults
SECONDS_MAX = 280
LONG_SECONDS_MAX = 12 * 3600


def simulate(
    *arguments: str,
    seconds_max: int = SECONDS_MAX,
    environment: Mapping[str, str] = {"PYTHONHASHSEED": "0"},
    folder: Path = REPOSITORY,
) -> tuple[int, list[dict[str, object]]]:
    """Run the command as users do; its exit code, and what it printed."""
    command = [sys.executable, "-m", "millstream", "simulate", "--json", *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
    )
    assert not done.stderr, done.stderr
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("first", range(1, SEEDS, GROUP))
def test_all_invariants_hold(first: int) -> None:
    options = ("--first", str(first), "--jobs", "1", "--hours", HOURS)
    code, printed = simulate("--campaign", str(GROUP), *options)
    *failures, summary = printed
    assert not failures
    assert (code, summary["seeds"], summary["failed"]) == (0, GROUP, 0)


@pytest.mark.parametrize(
    "seed", [4, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 10, 29))]
)
def test_a_seed_is_one_history_wherever_it_runs(seed: int, tmp_path: Path) -> None:
    arguments = ("--seed", str(seed), "--lines", "100000")
    elsewhere = {
        "HOME": str(tmp_path),
        "LC_ALL": "C",
        "PYTHONHASHSEED": "1",
        "PYTHONPATH": str(REPOSITORY),
        "TZ": "Asia/Kolkata",
    }
    _, [first] = simulate(*arguments)
    _, [second] = simulate(*arguments, environment=elsewhere, folder=tmp_path)
    assert first["history"] == second["history"]
    assert first["digest"] == second["digest"]


# In seed 18 a task of a connector fails, and its status contains the stack trace.
@pytest.mark.parametrize("seed", [18, pytest.param(29, marks=pytest.mark.long)])
def test_a_seed_is_one_history_wherever_it_is_installed(seed: int, tmp_path: Path) -> None:
    folder = tmp_path / "a folder with a long name, without C extensions"
    copy_our_packages(folder)
    arguments = ("--seed", str(seed), "--hours", HOURS)
    _, [first] = simulate(*arguments)
    _, [second] = simulate(*arguments, folder=folder)
    assert first["digest"] == second["digest"]


def test_a_slow_machine_changes_no_history(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = core_scenario_of(1, minutes=0.2)
    expected = run_scenario(scenario)
    monkeypatch.setattr(primitives, "SHORT_REAL_S", 0.0)
    monkeypatch.setattr(simulated_platform, "LONG_REAL_S", 0.0)
    slow = run_scenario(scenario)
    assert expected.violation is None
    assert slow.violation is not None
    assert slow.violation.invariant == "no lock is held for long"
    assert (slow.digest, slow.steps) == (expected.digest, expected.steps)
    *events, detail = slow.lines
    assert events == expected.lines
    assert detail.startswith(DETAIL)


@pytest.mark.long
@pytest.mark.timeout(LONG_SECONDS_MAX)
def test_all_invariants_hold_for_many_seeds() -> None:
    options = ("--first", "100000", "--hours", HOURS)
    code, printed = simulate("--campaign", "20000", *options, seconds_max=LONG_SECONDS_MAX)
    assert code == 0, printed
