"""The process of a query on Spark, as counting.py runs it: started, watched and killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.sql.backends.spark.cluster import committed_records
from tests.sql.backends.spark.counting import COUNTS
from tests.support.peer import REPOSITORY, wait_until
from tests.support.spark import MASTER

PATIENCE_S = 600.0


class Driver:
    """The process of the query."""

    def __init__(self, servers: str, folder: Path, jars: Sequence[Path], master: str) -> None:
        self._log = folder / "driver.log"
        command = [sys.executable, "-m", "tests.sql.backends.spark.counting", servers]
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [*command, str(folder / "checkpoints"), master, *map(str, jars)],
                cwd=REPOSITORY,
                env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def check(self) -> None:
        """Fail when it has ended by itself."""
        assert self._process.poll() is None, self._log.read_text(errors="replace")[-8_000:]

    def kill(self) -> None:
        """Kill Python and the JVM at once."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


@contextmanager
def driving(
    servers: str, folder: Path, jars: Sequence[Path] = (), *, master: str = MASTER
) -> Iterator[Driver]:
    """A driver that is killed in the end; `jars` are those of the connector it reads with."""
    driver = Driver(servers, folder, jars, master)
    try:
        yield driver
    finally:
        driver.kill()


def wait_for_counts(driver: Driver, servers: str, orders: int) -> None:
    """Wait until as many rows are committed as there are orders."""

    def are_there() -> bool:
        driver.check()
        return len(committed_records(servers, COUNTS)) >= orders

    wait_until(are_there, "the end of the data", timeout_s=PATIENCE_S)
