"""The seed of a run, for random tests that benefit from different seeds.

It is derived from the commit: each change has its own seed, and passes or fails reproducibly. It is
printed by `python -m tests.check` and at the top of every pytest run.
To use another seed: TESTS_FUZZ_SEED=123 make test, or set it for a pytest command.
"""

import os
import subprocess
from hashlib import sha256
from pathlib import Path

VARIABLE = "TESTS_FUZZ_SEED"


def _seed_of_commit() -> int:
    """The first digits of the commit; 0 outside a repository."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return int(done.stdout.strip()[:8] or "0", 16)


# pytest workers and the processes of tests inherit it.
SEED = int(os.environ.setdefault(VARIABLE, str(_seed_of_commit())))
# Tests that take minutes run in quarters; the commit also selects the quarter of `make test`.
QUARTERS = 4
QUARTER = SEED % QUARTERS + 1


def seed_of(name: str) -> int:
    """The seed of one test in this run."""
    return int.from_bytes(sha256(f"{SEED} {name}".encode()).digest()[:4])


def pytest_report_header() -> str:
    """Print the seed."""
    return f"{VARIABLE}={SEED}, mutations: quarter {QUARTER} of {QUARTERS}"
