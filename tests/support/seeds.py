"""The seed of a run: random tests take it where a new one in every run finds more.

It is printed by `python -m tests.check` and at the top of every run of pytest. To run with the seed
of an earlier run: TESTS_FUZZ_SEED=123 make test, or the same before a command of pytest.
"""

import os
import random
from hashlib import sha256

VARIABLE = "TESTS_FUZZ_SEED"
# Workers of pytest inherit it, and so do the processes of tests.
SEED = int(os.environ.setdefault(VARIABLE, str(random.randrange(2**32))))


def seed_of(name: str) -> int:
    """The seed of one test in this run."""
    return int.from_bytes(sha256(f"{SEED} {name}".encode()).digest()[:4])


def pytest_report_header() -> str:
    """Print the seed."""
    return f"{VARIABLE}={SEED}"
