"""The plugin: pytest finds the fixture, and runs a seed again."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from millstream import pytest_plugin as plugin
from tests.support.tidy import ROOT

TEST = """
from millstream.testing import crash, table
from tests.millstream.testing import pipelines

def test_totals(simulated):
    simulated.run(
        pipelines.processed(pipelines.SumInDict),
        inputs=pipelines.INPUTS,
        outputs=pipelines.OUTPUTS,
        faults=[crash(of=["application"])],
    )
"""


def test_pytest_finds_the_plugin_when_millstream_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    name = plugin.__name__
    assert project["entry-points"]["pytest11"] == {name: name}
    assert not any("pytest" in each for each in project["dependencies"])


def test_only_the_plugin_needs_pytest() -> None:
    code = "import sys; sys.modules['pytest'] = None; import millstream.testing"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_the_plugin_imports_no_platform() -> None:
    code = "import sys, millstream.pytest_plugin; assert 'sql.engine.engine' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


@pytest.mark.slow
def test_a_failing_test_says_how_to_run_its_seed_again(tmp_path: Path) -> None:
    (tmp_path / "test_totals.py").write_text(TEST)
    arguments = ("-p", plugin.__name__, "-p", "no:cacheprovider", "-n", "0", "test_totals.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments, "--simulation-seed", "2"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    again = 'to run this seed again: pytest "test_totals.py::test_totals" --simulation-seed 2'
    assert again in done.stdout
    assert "simulated.py" not in done.stdout  # the traceback ends in the test
