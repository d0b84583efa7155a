"""The type checker finds mistakes in the use of the DSL, and no others."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import streams

# No .py: the checks of the repository would find its mistakes too.
SAMPLE = Path(__file__).with_name("typed_sample.txt")
REPOSITORY = Path(streams.__file__).parents[1]


@pytest.mark.slow
def test_the_type_checker_refuses_the_wrong_uses_and_only_those(tmp_path: Path) -> None:
    program = tmp_path / "sample.py"
    program.write_text(SAMPLE.read_text())
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
        env={**os.environ, "MYPYPATH": str(REPOSITORY)},
    )
    found = {int(line) for line in re.findall(r"sample\.py:(\d+): error", checked.stdout)}
    lines = SAMPLE.read_text().splitlines()
    expected = {number for number, line in enumerate(lines, 1) if line.endswith("# WRONG")}
    assert found == expected, checked.stdout + checked.stderr
