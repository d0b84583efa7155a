"""The sides to compare: each is one process with one processing thread."""

import itertools
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from benchmarks.streams.watching import AppFailed, Expected, Measurement, watch
from benchmarks.streams.workload import Input, create
from broker.client import admin
from tests.support.apache_kafka import KafkaRelease
from tests.support.maven import Artifact, copy_jars, find_newest_version
from tests.support.peer import (
    PeerMissing,
    cache_folder,
    fill_folder_once,
    find_command,
    run_installer,
)

HERE = Path(__file__).parent
OURS = (sys.executable, "-m", "benchmarks.streams.millstream_app")
NUMBERS = itertools.count(1)
STOP_LIMIT_S = 30.0
JAVA_OPTIONS = ("-Xmx512m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error")
JACKSON = Artifact("com.fasterxml.jackson.core", "jackson-databind", "2.17.2")


@dataclass(frozen=True, slots=True)
class Job:
    """A workload, and its filled topics."""

    workload: str
    bootstrap: str
    input: Input
    table: str

    @property
    def outputs(self) -> int:
        """The number of results."""
        return self.input.filtered if self.workload == "filter" else self.input.records


class Side(Protocol):
    """One of the systems to compare."""

    @property
    def name(self) -> str:
        """The name in the report."""
        ...

    def records(self, workload: str, count: int) -> int | None:
        """How many of `count` records it processes; None if it does not support the workload."""
        ...

    def measure(self, job: Job) -> Measurement:
        """Run the job once."""
        ...


class AppProcess:
    """A running application; its output is written to a file."""

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._printed = folder / "printed"
        with open(self._printed, "wb") as printed:
            self._process = subprocess.Popen(
                command,
                cwd=HERE.parent.parent,
                stdin=subprocess.PIPE,
                stdout=printed,
                stderr=subprocess.STDOUT,
            )

    @property
    def process_id(self) -> int:
        """The id of the process to measure."""
        return self._process.pid

    def check(self) -> None:
        """Raise AppFailed if the process has ended."""
        if self._process.poll() is not None:
            raise AppFailed(f"ended with {self._process.returncode}: {self.printed()}")

    def printed(self) -> str:
        """The end of its output."""
        return self._printed.read_text(errors="replace")[-3000:]

    def send_line(self) -> None:
        """Send a line to its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        """Terminate the process; kill it if it does not end in time."""
        self._process.terminate()
        try:
            self._process.communicate(timeout=STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.communicate()


@contextmanager
def running(command: Sequence[str], folder: Path) -> Iterator[AppProcess]:
    """Run an application during the block."""
    app = AppProcess(command, folder)
    try:
        yield app
    finally:
        app.stop()


def measure_app(app: AppProcess, job: Job, application_id: str, output: str) -> Measurement:
    """Wait until the application has finished the job."""
    expected = Expected(application_id, job.input.topic, job.input.records, output, job.outputs)
    with admin(job.bootstrap) as cluster:
        try:
            return watch(cluster, app.process_id, expected, app.check)
        except AppFailed as failed:
            failed.add_note(app.printed())
            raise


def new_names(job: Job, side: str) -> tuple[str, str]:
    """Create an application id and an output topic."""
    application_id = f"{job.workload}-{side}-{next(NUMBERS)}"
    output = f"{application_id}-output"
    create(job.bootstrap, output)
    return application_id, output


@dataclass(frozen=True, slots=True)
class PythonSide:
    """A Python program, which gets the names of topics as arguments."""

    name: str
    command: tuple[str, ...]
    records_max: Mapping[str, int | None] = field(default_factory=dict)  # records by workload

    def records(self, workload: str, count: int) -> int | None:
        """All of them, or as many as it can process in reasonable time."""
        limit = self.records_max.get(workload, count)
        return None if limit is None else min(limit, count)

    def measure(self, job: Job) -> Measurement:
        """Run the program until all records are processed."""
        application_id, output = new_names(job, self.name.partition(" ")[0].lower())
        names = [job.workload, job.bootstrap, application_id, job.input.topic, job.table, output]
        with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
            state = str(Path(folder) / "state")
            with running([*self.command, *names, state], Path(folder)) as app:
                return measure_app(app, job, application_id, output)


@dataclass(frozen=True, slots=True)
class JavaSide:
    """Kafka Streams: the first pass warms up the JVM, the second is measured."""

    name: str
    class_path: str

    def records(self, workload: str, count: int) -> int | None:
        """All of them."""
        del workload
        return count

    def measure(self, job: Job) -> Measurement:
        """Run the job twice in one JVM."""
        passes = [new_names(job, "java") for _ in range(2)]
        with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
            state = str(Path(folder) / "state")
            command = ["java", *JAVA_OPTIONS, "-cp", self.class_path, "StreamsSide"]
            command += [job.workload, job.bootstrap, job.input.topic, job.table, state]
            command += [name for names in passes for name in names]
            with running(command, Path(folder)) as app:
                measure_app(app, job, *passes[0])
                app.send_line()
                return measure_app(app, job, *passes[1])


def millstream() -> Side:
    """Our streams."""
    return PythonSide("Millstream", OURS)


def quix() -> Side:
    """quixstreams, in an environment of its own because of its dependencies."""
    with cache_folder("quixstreams") as cache:
        python = environment_with("quixstreams", cache / "environment")
    version = _version(python, "quixstreams")
    command = (python, "-m", "benchmarks.streams.quix_app")
    return PythonSide(f"quixstreams {version}", command, {"tumbling": 200_000, "join": 200_000})


def environment_with(requirement: str, folder: Path) -> str:
    """Create an environment with a package in a cache folder; return its Python."""

    def install(unfinished: Path) -> None:
        run_installer([sys.executable, "-m", "venv", unfinished])
        pip = (str(unfinished / "bin" / "python"), "-m", "pip", "--disable-pip-version-check")
        run_installer([*pip, "install", "--quiet", requirement])

    return str(fill_folder_once(folder, install) / "bin" / "python")


def faust() -> Side:
    """faust, from the development extras."""
    version = _version(sys.executable, "faust-streaming")
    limits = {"filter": 50_000, "tumbling": 30_000, "join": None}
    command = (sys.executable, "-m", "benchmarks.streams.faust_app")
    return PythonSide(f"faust {version}", command, limits)


def _version(python: str, package: str) -> str:
    program = f"from importlib.metadata import version; print(version({package!r}))"
    return run_installer([python, "-c", program]).strip()


def java() -> Side:
    """Kafka Streams, through Maven."""
    find_command("java")
    with cache_folder("kafka-streams") as cache:
        newest = cache / "newest-version"
        if not newest.exists():
            version = find_newest_version("org.apache.kafka", "kafka-streams", versions="[4,)")
            newest.write_text(version)
        version = newest.read_text()

        def copy(folder: Path) -> None:
            copy_jars([Artifact("org.apache.kafka", "kafka-streams", version), JACKSON], folder)
            (interface,) = folder.glob("slf4j-api-*.jar")
            logging_version = interface.stem.removeprefix("slf4j-api-")
            copy_jars([Artifact("org.slf4j", "slf4j-simple", logging_version)], folder)

        jars = fill_folder_once(cache / version, copy)
    class_path = KafkaRelease(version, jars).compile(HERE / "java" / "StreamsSide.java")
    return JavaSide(f"Kafka Streams {version}", class_path)


PEERS = {"quixstreams": quix, "faust": faust, "Kafka Streams": java}


def peers(note: "Notes", openers: Mapping[str, Callable[[], Side]] = PEERS) -> list[Side]:
    """All available peers; the report notes why others are missing."""
    sides: list[Side] = []
    for name, open_side in openers.items():
        try:
            sides.append(open_side())
        except PeerMissing as missing:
            note.note(f"{name} skipped: {missing}")
    return sides


class Notes(Protocol):
    """Collects notes for the report."""

    def note(self, text: str) -> None:
        """Add one note."""
        ...
