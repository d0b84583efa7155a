"""Descriptions of topologies against golden files: names of nodes, stores and topics are state.

REWRITE=1 writes the files anew; a change of one is a breaking change for running applications.
"""

import os
from pathlib import Path

import pytest

from tests.streams.topology.topologies import ALL

CASES = Path(__file__).parents[2] / "cases" / "topologies"


@pytest.mark.parametrize("name", ALL)
def test_a_topology_is_described_as_in_its_golden_file(name: str) -> None:
    described = ALL[name]().describe()
    file = CASES / f"{name}.txt"
    if os.environ.get("REWRITE"):
        file.write_text(described)
    assert described == file.read_text()


def test_every_golden_file_has_its_topology() -> None:
    assert {file.stem for file in CASES.glob("*.txt")} == set(ALL)
