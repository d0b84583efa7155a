"""`python -m tests.check [fast|full|long]`: format, lint, types, import directions, tests.

The tests run first in the output; the other checks run beside them, at a lower priority, and what
they print comes whole at the end.
"""

import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from typing import IO

from tests.support.seeds import QUARTER, QUARTERS, SEED, VARIABLE

CACHE = Path(__file__).parent.parent / ".cache"
STATIC = (
    ("format", ["ruff", "format", "--check", "--quiet", "."]),
    ("lint", ["ruff", "check", "--quiet", "."]),
    ("imports", ["tests.support.import_directions"]),
    ("tidy", ["tests.support.tidy"]),
    ("outside", ["tests.support.outside"]),
    ("words", ["tests.support.plain_words"]),
    ("types", ["mypy"]),
)
TESTS = ["pytest", "-rfEs"]
# Slow tests wait for processes that start and for times that pass: one more worker than cores, of
# which this is made for two, computes meanwhile.
PYTEST = {
    "fast": [*TESTS, "-n", "2", "-m", "not slow and not peer and not long"],
    "full": [*TESTS, "-n", "3", "-m", "not long"],
    "long": [*TESTS, "-n", "3"],
}
STATIC_NICENESS = 10  # tests measure, static checks do not
MEMORY_FILES = Path("/dev/shm")
MEMORY_FILES_LEAST = 4 << 30
MEMORY_LEAST = 8 << 30  # with that of databases, Kafka and Spark


@dataclass(frozen=True, slots=True)
class Result:
    """How a check ended."""

    name: str
    exit_code: int
    seconds: float

    def __str__(self) -> str:
        verdict = "ok" if self.exit_code == 0 else f"FAILED (exit code {self.exit_code})"
        return f"== {self.name}: {verdict} in {self.seconds:.1f} s\n"


def run(
    name: str,
    command: list[str],
    environment: dict[str, str],
    *,
    output: IO[str] | None = None,
    niceness: int = 0,
) -> Result:
    """Run one check as a module of this interpreter."""
    started = time.monotonic()
    full = [sys.executable, "-m", *command]
    stderr = None if output is None else subprocess.STDOUT
    with subprocess.Popen(full, env=environment, stdout=output, stderr=stderr) as process:
        if niceness:
            os.setpriority(os.PRIO_PROCESS, process.pid, niceness)
        exit_code = process.wait()
    return Result(name, exit_code, time.monotonic() - started)


class StaticChecks(Thread):
    """Runs all static checks, one after another; every one runs, even after a failure."""

    def __init__(self, environment: dict[str, str], output: IO[str]) -> None:
        super().__init__(name="static checks")
        self.results: list[Result] = []
        self._environment = environment
        self._output = output

    def run(self) -> None:
        for name, command in STATIC:
            result = run(
                name,
                command,
                self._environment,
                output=self._output,
                niceness=STATIC_NICENESS,
            )
            self._output.write(str(result))
            self._output.flush()
            self.results.append(result)


def main(level: str) -> int:
    """Run the checks of a level."""
    if level not in PYTEST:
        sys.stderr.write(f'level "{level}" is not known; one of {", ".join(PYTEST)}\n')
        return 2
    environment = environment_of(level)
    started = time.monotonic()
    with (
        temporary_folder(level) as folder,
        tempfile.TemporaryFile("w+", errors="replace") as output,
    ):
        environment["TMPDIR"] = str(folder)
        static = StaticChecks(environment, output)
        static.start()
        tests = run("tests", PYTEST[level], environment)
        static.join()
        output.seek(0)
        sys.stdout.write(output.read())
    sys.stdout.write(f"{tests}== all checks took {time.monotonic() - started:.0f} s\n")
    return 0 if all(each.exit_code == 0 for each in (tests, *static.results)) else 1


@contextmanager
def temporary_folder(level: str) -> Iterator[Path]:
    """Where tests write: in memory if there is enough, so that they do not wait for a disk.

    Nothing that a killed process has written is lost there, as in the page cache of a disk; what a
    power failure loses is simulated. The long run uses the disk.
    """
    place = None if level == "long" or not has_memory_for_files() else MEMORY_FILES
    with tempfile.TemporaryDirectory(
        prefix="millstream-tests-", dir=place, ignore_cleanup_errors=True
    ) as folder:
        os.chmod(folder, 0o711)  # databases run as another user
        yield Path(folder)


def has_memory_for_files() -> bool:
    """Whether this machine has a file system in memory, and enough of it for the files of tests."""
    if not os.access(MEMORY_FILES, os.W_OK):
        return False
    said = re.search(r"MemAvailable: *(\d+) kB", Path("/proc/meminfo").read_text())
    available = int(said[1]) << 10 if said else 0
    return shutil.disk_usage(MEMORY_FILES).free > MEMORY_FILES_LEAST and available > MEMORY_LEAST


def environment_of(level: str) -> dict[str, str]:
    """The environment of all checks; seeds that change with every run are printed."""
    # The workers must collect the same tests in the same order, whatever a set's order is.
    hash_seed = str(random.randrange(2**32)) if level == "long" else "0"
    environment = {
        **os.environ,
        VARIABLE: str(SEED),
        "HYPOTHESIS_PROFILE": "long" if level == "long" else "ci",
        "PYTHONHASHSEED": hash_seed,
        # Tests start hundreds of processes: without a cache each one compiles every module.
        "PYTHONPYCACHEPREFIX": str(CACHE / "bytecode"),
    }
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    for name in ("PYTHONHASHSEED", VARIABLE):
        sys.stdout.write(f"== {name}={environment[name]}\n")
    if level == "full":
        sys.stdout.write(f"== mutations: quarter {QUARTER} of {QUARTERS}\n")
    sys.stdout.flush()
    return environment


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "fast"))
