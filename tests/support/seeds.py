"""The seed of a run: random tests take it where another one finds more.

It follows from the commit: each change is tested with a seed of its own, and passes or fails by
itself, not by luck. It is printed by `python -m tests.check` and at the top of every run of pytest.
To run with another one: TESTS_FUZZ_SEED=123 make test, or the same before a command of pytest.
"""

import os
import subprocess
from hashlib import sha256
from pathlib import Path

VARIABLE = "TESTS_FUZZ_SEED"


def _seed_of_commit() -> int:
    """The first digits of the commit; 0 outside of a repository."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return int(done.stdout.strip()[:8] or "0", 16)


# Workers of pytest inherit it, and so do the processes of tests.
SEED = int(os.environ.setdefault(VARIABLE, str(_seed_of_commit())))
# What takes minutes is tested in quarters; that of `make test` follows from the commit, too.
QUARTERS = 4
QUARTER = SEED % QUARTERS + 1


def seed_of(name: str) -> int:
    """The seed of one test in this run."""
    return int.from_bytes(sha256(f"{SEED} {name}".encode()).digest()[:4])


def pytest_report_header() -> str:
    """Print the seed."""
    return f"{VARIABLE}={SEED}, mutations: quarter {QUARTER} of {QUARTERS}"
