"""The pytest fixture `simulated`; pytest finds this module if Millstream is installed.

    def test_totals_survive_crashes(simulated):
        simulated.run(build_topology, inputs={...}, outputs={...})

pytest --simulation-seed 7       run only this seed of each test
pytest --simulation-seeds 1000   run this many seeds of each test
"""

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from millstream.testing.simulated import Simulated

SEED, SEEDS = "--simulation-seed", "--simulation-seeds"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("millstream", "tests with the fixture simulated")
    group.addoption(SEED, type=int, metavar="SEED", help="run only this seed of each test")
    group.addoption(SEEDS, type=int, metavar="COUNT", help="run this many seeds of each test")


@pytest.fixture
def simulated(request: pytest.FixtureRequest) -> "Simulated":
    """Runs pipelines on a simulated platform with crashes and other faults."""
    # Imported here, because pytest loads this module for all tests.
    from millstream.testing.simulated import Simulated

    return Simulated(
        only_seed=request.config.getoption(SEED),
        seed_count=request.config.getoption(SEEDS),
        rerun=f'pytest "{request.node.nodeid}" {SEED} {{seed}}',
    )
