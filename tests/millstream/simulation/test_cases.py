"""Cases: scenarios that have failed, or that show one thing, are run again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.simulation.scenario import Scenario, scenario_of
from tests.support.peer import REPOSITORY

CASES = sorted((Path(REPOSITORY) / "tests" / "cases" / "simulation").glob("*.json"))
SECONDS_MAX = 280


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_invariants_hold_in_a_case(case: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.millstream.simulation.run_case", str(case)],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("seed", range(20))
def test_a_scenario_can_be_kept_as_a_case(seed: int) -> None:
    scenario = scenario_of(seed)
    assert Scenario.from_json(scenario.to_json()) == scenario
