"""The tests that the README shows pass."""

import re
from typing import Any

import pytest

from millstream.testing import Simulated
from tests.support.tidy import ROOT

README = (ROOT / "millstream/testing/README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.slow
@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_has_a_test_that_passes(block: str, simulated: Simulated) -> None:
    made: dict[str, Any] = {}  # Any: whatever the block defines
    exec(compile(block, "README", "exec"), made)
    (test,) = [each for name, each in made.items() if name.startswith("test_")]
    test(simulated)


def test_the_readme_names_all_faults() -> None:
    for name in ("crash", "network", "reorder", "duplicate", "late"):
        assert f"| `{name}(" in README
