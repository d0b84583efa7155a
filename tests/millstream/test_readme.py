"""The Python that READMEs show runs as it stands."""

import re
from pathlib import Path
from typing import Any

import pytest

from streams.testing import TopologyTestDriver
from tests.support.tidy import ROOT

READMES = (
    "README.md",
    "broker/README.md",
    "connect/README.md",
    "broker/registry/README.md",
    "streams/README.md",
    "sql/README.md",
)
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
BLOCKS = [
    pytest.param(block, id=f"{file.relative_to(ROOT)}-{number}")
    for file in map(ROOT.joinpath, READMES)
    for number, block in enumerate(PYTHON.findall(file.read_text()))
    if "readStream" not in block  # needs Spark: tests/sql/backends/spark/test_readme.py runs it
]


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_python_runs(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README", "exec"), {"__name__": "readme"})


@pytest.mark.slow
def test_the_start_prints_the_order_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    start, _ = PYTHON.findall((ROOT / "README.md").read_text())
    exec(compile(start, "README", "exec"), {"__name__": "readme"})
    assert "b'alice'" in capsys.readouterr().out


def test_the_topology_of_the_start_counts_words() -> None:
    _, words = PYTHON.findall((ROOT / "README.md").read_text())
    made: dict[str, Any] = {}  # Any: whatever the block defines
    exec(compile(words, "README", "exec"), made)
    with TopologyTestDriver(made["topology"]) as driver:
        lines = driver.create_input_topic("lines", key=str, value=str)
        counts = driver.create_output_topic("counts", key=str, value=int)
        lines.pipe_input("", "to be or not to be")
        assert counts.read_key_values_to_map() == {"to": 2, "be": 2, "or": 1, "not": 1}
