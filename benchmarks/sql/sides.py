"""The sides to compare: our engine, our DSL and peers, each in its own process."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.sql.engine_app import QUERY
from benchmarks.streams import sides as streams
from benchmarks.streams.sides import AppProcess, Job, Notes, Side, measure_app, new_names, running
from benchmarks.streams.watching import Measurement
from tests.support.maven import Artifact, copy_jars, find_newest_version
from tests.support.peer import cache_folder, fill_folder_once, find_command, wait_until

OURS = (sys.executable, "-m", "benchmarks.sql.engine_app")
READY_LIMIT_S = 120.0
CONNECTOR = ("org.apache.flink", "flink-sql-connector-kafka")


@dataclass(frozen=True, slots=True)
class SqlSide:
    """Our engine, in its own process with one query."""

    name: str = "Millstream"

    def records(self, workload: str, count: int) -> int | None:
        """All of them."""
        del workload
        return count

    def measure(self, job: Job) -> Measurement:
        """Run the statement until all records are processed."""
        service_id, output = new_names(job, "sql")
        names = (job.workload, job.bootstrap, service_id, job.input.topic, output)
        with engine_running(*names) as app:
            group = wait_for_line(app, QUERY).removeprefix(QUERY)
            return measure_app(app, job, group, output)


@contextmanager
def engine_running(
    workload: str, bootstrap: str, service_id: str, topic: str, output: str, queries: int = 1
) -> Iterator[AppProcess]:
    """An engine with `queries` queries, in its own process."""
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
        state = str(Path(folder) / "state")
        names = [workload, bootstrap, service_id, topic, output, state, str(queries)]
        with running([*OURS, *names], Path(folder)) as app:
            yield app


def wait_for_line(app: AppProcess, start: str) -> str:
    """Wait until the engine has printed a line with this prefix; return the last such line."""

    def printed() -> list[str]:
        app.check()
        return [line for line in app.printed().splitlines() if line.startswith(start)]

    wait_until(lambda: bool(printed()), f'the line "{start}"', timeout_s=READY_LIMIT_S)
    return printed()[-1]


class JvmProcess(AppProcess):
    """A Python program that starts a JVM, which does the work."""

    @property
    def process_id(self) -> int:
        """The JVM's process id, once it has started."""
        own = super().process_id
        children = Path(f"/proc/{own}/task/{own}/children").read_text().split()
        return int(children[0]) if children else own


@dataclass(frozen=True, slots=True)
class FlinkSide:
    """Flink SQL in a JVM: the first job warms it up, the second is measured."""

    name: str
    python: str
    jar: str

    def records(self, workload: str, count: int) -> int | None:
        """All of them."""
        del workload
        return count

    def measure(self, job: Job) -> Measurement:
        """Run two jobs in one JVM."""
        passes = [new_names(job, "flink") for _ in range(2)]
        with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
            command = [self.python, "-m", "benchmarks.sql.flink_app", job.workload, job.bootstrap]
            command += [job.input.topic, str(Path(folder) / "state"), self.jar]
            command += [name for names in passes for name in names]
            app = JvmProcess(command, Path(folder))
            try:
                measure_app(app, job, *passes[0])
                app.send_line()
                return measure_app(app, job, *passes[1])
            finally:
                app.stop()


def dsl() -> Side:
    """The same workload in our DSL, to see the overhead of SQL."""
    return streams.PythonSide("Millstream DSL", streams.OURS)


def flink() -> Side:
    """PyFlink in its own environment, in the release that the newest Kafka connector supports."""
    find_command("java")
    with cache_folder("pyflink") as cache:
        newest = cache / "newest-connector"
        if not newest.exists():
            newest.write_text(find_newest_version(*CONNECTOR, versions="[3,)"))
        connector = newest.read_text()
        jars = fill_folder_once(
            cache / connector, lambda folder: copy_jars([Artifact(*CONNECTOR, connector)], folder)
        )
        release = connector.rpartition("-")[2]
        requirement = f"apache-flink~={release}.0"
        python = streams.environment_with(requirement, cache / f"environment-{release}")
    [jar] = jars.glob(f"{CONNECTOR[1]}-*.jar")
    return FlinkSide(f"Flink SQL {release}", python, str(jar))


PEERS = {"Millstream DSL": dsl, "quixstreams": streams.quix, "Flink SQL": flink}


def sides(note: Notes) -> list[Side]:
    """Ours, and all available peers."""
    return [SqlSide(), *streams.peers(note, PEERS)]
