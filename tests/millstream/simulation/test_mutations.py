"""Mutations: the simulator finds each of them, in a seed that passes without it."""

import json
import subprocess
import sys

import pytest

from tests.support.peer import REPOSITORY

pytestmark = pytest.mark.slow

PARTS = 4
SECONDS_MAX = 280


@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_mutations_are_found_in_seeds_that_pass_without_them(part: int) -> None:
    command = [sys.executable, "-m", "tests.millstream.simulation.finding", "--known"]
    done = subprocess.run(
        [*command, f"{part}/{PARTS}"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=SECONDS_MAX,
        check=True,
    )
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert results
    assert not [each for each in results if each["invariant"] in (None, "the simulation itself")]
