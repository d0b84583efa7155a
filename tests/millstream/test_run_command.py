"""`millstream run` as a process: it starts, processes, is interrupted, and goes on later."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import click
import orjson
import pytest
from click.testing import CliRunner

from broker import Broker
from broker.client import admin, consumer, producer
from broker.client.api import NewTopic
from broker.model import TopicPartition
from millstream.__main__ import command_line
from millstream.commands.run import create_missing
from millstream.output import Output
from tests.millstream.applications import topology
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import REPOSITORY

APPLICATIONS = "tests.millstream.applications"
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}

Event = dict[str, Any]


class Running:
    """A `millstream run --json` in a folder of its own."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        command = [sys.executable, "-m", "millstream", "run", *arguments, "--json"]
        command += ["--data-dir", str(folder / "data"), "--set", "commit.interval.ms=100"]
        self.process = subprocess.Popen(
            command,
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, wanted: Callable[[Event], bool]) -> Event:
        """The first event that is wanted."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event: Event = orjson.loads(line)
            if wanted(event):
                return event
        raise AssertionError(self.process.communicate()[1])

    def event(self, name: str) -> Event:
        return self.until(lambda event: event.get("event") == name)

    def processed(self, count: int) -> Event:
        return self.until(lambda event: event.get("records_in", 0) >= count)

    def interrupt(self) -> Event:
        """Ctrl-C; what it said last."""
        self.process.send_signal(signal.SIGINT)
        last = self.event("stopped")
        assert self.process.wait(timeout=60) == 0
        return last


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    started: list[Running] = []

    def run(*arguments: str) -> Running:
        started.append(Running(tmp_path, *arguments))
        return started[-1]

    yield run
    for each in started:
        each.process.kill()
        each.process.communicate()


def send(bootstrap: str, *lines: str) -> None:
    with producer(bootstrap) as out:
        for line in lines:
            out.send("lines", line.encode(), key=b"k")


def read(bootstrap: str, count: int) -> list[str]:
    found: list[str] = []
    with consumer(bootstrap, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition("loud", 0)])
        while len(found) < count:
            found += [(record.value or b"").decode() for record in reader.poll(timeout_ms=1000)]
    return found


@pytest.mark.slow
def test_it_brings_a_broker_and_goes_on_where_it_was_interrupted(start: Start) -> None:
    running = start(f"{APPLICATIONS}:builder", "--port", "0")
    bootstrap = running.event("broker")["bootstrap"]
    assert "KSTREAM-MAPVALUES" in running.event("topology")["topology"]
    assert running.event("created")["topics"] == ["lines", "loud"]
    send(bootstrap, "one", "two")
    assert running.processed(2)["state"] == "running"
    assert read(bootstrap, 2) == ["ONE", "TWO"]
    assert running.interrupt()["records_in"] == 2
    again = start(f"{APPLICATIONS}:builder", "--port", "0")
    bootstrap = again.event("broker")["bootstrap"]
    send(bootstrap, "three")
    assert read(bootstrap, 3) == ["ONE", "TWO", "THREE"]
    assert again.interrupt()["records_in"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["topology", "make"])
def test_it_runs_on_a_cluster(start: Start, tmp_path: Path, name: str) -> None:
    with MillstreamBroker(tmp_path / "broker", settings=SETTINGS) as broker:
        send(broker.bootstrap, "one")
        running = start(f"{APPLICATIONS}:{name}", "-b", broker.bootstrap, "--threads", "2")
        assert read(broker.bootstrap, 1) == ["ONE"]
        assert running.interrupt()["records_in"] == 1


@pytest.mark.slow
def test_its_stores_are_served_over_http(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as found:
        address = f"127.0.0.1:{found.getsockname()[1]}"
    running = start(
        "examples.word_count:build", "--port", "0", "--set", f"application.server={address}"
    )
    send(running.event("broker")["bootstrap"], "mill and mill")
    assert running.event("queries")["application_server"] == address
    running.processed(4)
    with urlopen(f"http://{address}/stores/word-counts/get?key=mill") as answer:
        assert orjson.loads(answer.read())["value"] == 2
    running.interrupt()


def test_a_client_may_create_a_topic_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with Broker(data_directory=str(tmp_path)) as broker, admin(broker) as cluster:
        before = cluster.list_topics()
        cluster.create_topics([NewTopic("lines")]).all()
        with monkeypatch.context() as patched:
            patched.setattr(cluster, "list_topics", lambda: before)
            create_missing(cluster, topology, Output(as_json=True))
        assert set(cluster.list_topics()) >= {"lines", "loud"}
    assert orjson.loads(capsys.readouterr().out) == {"event": "created", "topics": ["loud"]}


@pytest.mark.slow
def test_an_application_that_fails_says_why(start: Start) -> None:
    running = start(f"{APPLICATIONS}:failing", "--port", "0")
    send(running.event("broker")["bootstrap"], "no number")
    output, errors = running.process.communicate(timeout=60)
    assert running.process.returncode == 1, output
    assert "invalid literal for int()" in errors


def test_a_topology_is_described() -> None:
    result = CliRunner().invoke(
        command_line, ["streams", "describe", f"{APPLICATIONS}:topology"], catch_exceptions=False
    )
    assert result.exit_code == 0
    assert "Sink: KSTREAM-SINK-0000000002 (topic: loud)" in result.stdout


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("tests.millstream.applications", "is not MODULE:NAME"),
        ("tests.millstream.nowhere:app", "no module named"),
        (f"{APPLICATIONS}:missing", "has no"),
        (f"{APPLICATIONS}:nothing", "must be a Topology"),
    ],
)
def test_a_wrong_name_is_explained(name: str, reason: str) -> None:
    result = CliRunner().invoke(command_line, ["streams", "describe", name])
    assert result.exit_code == 2
    assert reason in result.output


def refused(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`millstream run` in an empty folder, to its end."""
    command = [sys.executable, "-m", "millstream", "run", *arguments]
    return subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "code", "reasons"),
    [
        ((f"{APPLICATIONS}:misspelt",), 1, ("has no attribute 'fliter'", "applications.py:")),
        (("broken:app",), 1, ('module "broken" failed: SyntaxError', "broken.py:1")),
        (("needy:app",), 1, ("No module named 'nothing_like_this'", "needy.py:1")),
        ((f"{APPLICATIONS}:nothing",), 2, ("must be a Topology",)),
        ((f"{APPLICATIONS}:builder", "--threads", "0"), 1, ('"num_stream_threads" is 0',)),
        (
            (f"{APPLICATIONS}:builder", "--set", "commit.intervall.ms=1"),
            1,
            ('did you mean "commit_interval_ms"?',),
        ),
    ],
)
def test_an_error_is_reported_before_anything_is_created(
    tmp_path: Path, arguments: tuple[str, ...], code: int, reasons: tuple[str, ...]
) -> None:
    (tmp_path / "broken.py").write_text("def app(:\n")
    (tmp_path / "needy.py").write_text("import nothing_like_this\n")
    before = set(tmp_path.iterdir())
    result = refused(tmp_path, *arguments)
    assert result.returncode == code
    for reason in reasons:
        assert reason in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""
    assert {path for path in tmp_path.iterdir() if path.name != "__pycache__"} == before


@pytest.mark.slow
def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for arguments in (
            ("--port", port),
            ("--port", "0", "--set", f"application.server=127.0.0.1:{port}"),
        ):
            result = refused(tmp_path, f"{APPLICATIONS}:builder", *arguments)
            assert result.returncode == 1
            assert "Address already in use" in result.stderr
            assert f"127.0.0.1:{port}" in result.stderr
            assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_topic_that_is_missing_in_a_cluster_is_named(tmp_path: Path) -> None:
    with MillstreamBroker(tmp_path / "cluster", settings=SETTINGS) as cluster:
        result = refused(tmp_path, f"{APPLICATIONS}:builder", "--bootstrap", cluster.bootstrap)
    assert result.returncode == 1
    assert 'source topics do not exist: "lines"' in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.slow
def test_a_reset_of_a_running_application_needs_force_and_can_be_tried(
    start: Start, tmp_path: Path
) -> None:
    running = start(f"{APPLICATIONS}:builder", "--port", "0", "--application-id", "loud")
    bootstrap = running.event("broker")["bootstrap"]
    send(bootstrap, "a", "b")
    running.processed(2)
    command = ["streams", "reset", "--application-id", "loud", "--input-topics", "lines"]
    command += ["--bootstrap", bootstrap, "--dry-run"]
    plain = CliRunner().invoke(command_line, command, standalone_mode=False)
    assert isinstance(plain.exception, click.ClickException)
    assert "still has members (1)" in plain.exception.message
    forced = CliRunner().invoke(command_line, [*command, "--force", "--json"])
    assert forced.exit_code == 0
    (offsets,) = orjson.loads(forced.stdout)["offsets"]
    assert offsets == {"topic": "lines", "partition": 0, "before": 2, "after": 0}
    assert running.interrupt()["records_in"] == 2
