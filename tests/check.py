"""`python -m tests.check [fast|full|long]`: format, lint, types, import directions, tests."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

BYTECODE = Path(__file__).parent.parent / ".cache" / "bytecode"
STATIC = (
    ("format", ["ruff", "format", "--check", "--quiet", "."]),
    ("lint", ["ruff", "check", "--quiet", "."]),
    ("types", ["mypy"]),
    ("imports", ["tests.support.import_directions"]),
    ("tidy", ["tests.support.tidy"]),
    ("outside", ["tests.support.outside"]),
    ("words", ["tests.support.plain_words"]),
)
PYTEST = {
    "fast": ["pytest", "-m", "not slow and not peer and not long", "-n", "2"],
    "full": ["pytest", "-m", "not long", "-n", "2", "--dist", "loadgroup"],
    "long": ["pytest", "-n", "2", "--dist", "loadgroup"],
}


def run(name: str, command: list[str], environment: dict[str, str]) -> bool:
    """Run one check as a module of this interpreter; say how long it took."""
    started = time.monotonic()
    result = subprocess.run([sys.executable, "-m", *command], env=environment, check=False)
    seconds = time.monotonic() - started
    verdict = "ok" if result.returncode == 0 else f"FAILED (exit code {result.returncode})"
    sys.stdout.write(f"== {name}: {verdict} in {seconds:.1f} s\n")
    sys.stdout.flush()
    return result.returncode == 0


def main(level: str) -> int:
    """Run the checks of a level; every one runs, even after a failure."""
    if level not in PYTEST:
        sys.stderr.write(f'level "{level}" is not known; one of {", ".join(PYTEST)}\n')
        return 2
    profile = "long" if level == "long" else "ci"
    # The workers must collect the same tests in the same order, whatever a set's order is.
    hash_seed = str(random.randrange(2**32)) if level == "long" else "0"
    environment = {
        **os.environ,
        "HYPOTHESIS_PROFILE": profile,
        "PYTHONHASHSEED": hash_seed,
        # Tests start hundreds of processes: without a cache each one compiles every module.
        "PYTHONPYCACHEPREFIX": str(BYTECODE),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.stdout.write(f"== PYTHONHASHSEED={hash_seed}\n")
    checks = [*STATIC, ("tests", PYTEST[level])]
    results = [run(name, command, environment) for name, command in checks]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "fast"))
