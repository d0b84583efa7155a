"""A standalone Spark cluster and a Spark Connect server, on this machine."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from sql.backends.spark.session import STATE_STORE
from tests.support.peer import REPOSITORY, wait_until
from tests.support.ports import held_ports

START_LIMIT_S = 120.0
RUN_LIMIT_S = 900.0
HOST = "127.0.0.1"
REGISTERED = "Successfully registered with master"


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """A master and a worker with two cores; yields the master's address."""
    port, first_page, second_page = map(str, held_ports(3))
    address = f"spark://{HOST}:{port}"
    master = ["org.apache.spark.deploy.master.Master", "--host", HOST, "--port", port]
    worker = ["org.apache.spark.deploy.worker.Worker", "--host", HOST, "--cores", "2"]
    worker += ["--memory", "1g", "--work-dir", str(folder / "work")]
    with _server("spark-class", [*master, "--webui-port", first_page], folder / "master.log"):
        _wait_for_port(int(port))
        log = folder / "worker.log"
        with _server("spark-class", [*worker, "--webui-port", second_page, address], log):
            wait_until(lambda: REGISTERED in log.read_text(), "a worker", timeout_s=START_LIMIT_S)
            yield address


@contextmanager
def connect_server(folder: Path) -> Iterator[str]:
    """A Spark Connect server that runs jobs in its own process; yields its address."""
    (port,) = held_ports(1)
    settings = {
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
        "spark.ui.enabled": "false",
    }
    given = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    service = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command = ["--master", "local[2]", *given, *service, "spark-internal"]
    with _server("spark-submit", command, folder / "connect.log"):
        _wait_for_port(port)
        yield f"sc://{HOST}:{port}"


def submit(master: str, arguments: list[str], folder: Path) -> str:
    """Run a Python program with spark-submit; return its output and Spark's."""
    command = [_program("spark-submit"), "--master", master, *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env=_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-8_000:]
    return done.stdout


@contextmanager
def _server(program: str, arguments: list[str], log: Path) -> Iterator[None]:
    """Run a program of the PySpark installation; kill it and its children at the end."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [_program(program), *arguments],
            env=_environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _home() -> Path:
    found = find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def _program(name: str) -> str:
    return str(_home() / "bin" / name)


def _environment() -> dict[str, str]:
    """Environment in which workers can import our packages, as if they were installed."""
    given = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(REPOSITORY)}
    return {**os.environ, "SPARK_HOME": str(_home()), **given}


def _wait_for_port(port: int) -> None:
    def answers() -> bool:
        try:
            socket.create_connection((HOST, port), timeout=5).close()
        except OSError:
            return False
        return True

    wait_until(answers, f"Spark on port {port}", timeout_s=START_LIMIT_S)
