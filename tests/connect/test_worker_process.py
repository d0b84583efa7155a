"""A worker as a process: what was asked of it survives its end, however it comes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from connect.client import ConnectClient, ConnectRefused
from tests.support.millstream_broker import MillstreamBroker
from tests.support.millstream_worker import MillstreamWorker
from tests.support.peer import wait_until
from tests.support.server_process import ServerFailed

pytestmark = pytest.mark.slow

STRINGS = "org.apache.kafka.connect.storage.StringConverter"


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[MillstreamBroker]:
    settings = {"group.initial.rebalance.delay.ms": "0"}
    with MillstreamBroker(tmp_path / "broker", settings=settings) as started:
        yield started


def file_source(file: Path, topic: str) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSource",
        "file": str(file),
        "topic": topic,
        "value.converter": STRINGS,
    }


def file_sink(file: Path, topic: str) -> dict[str, str]:
    return {
        "connector.class": "FileStreamSink",
        "file": str(file),
        "topics": topic,
        "value.converter": STRINGS,
        # So that the group does not wait long for a member that was killed.
        "consumer.override.session.timeout.ms": "6000",
        "consumer.override.heartbeat.interval.ms": "1000",
    }


def states(client: ConnectClient, name: str) -> list[str]:
    try:
        status = client.status(name)
    except ConnectRefused:
        return []
    return [status["connector"]["state"], *(each["state"] for each in status["tasks"])]


def wait_for(client: ConnectClient, name: str, *wanted: str) -> None:
    wait_until(lambda: states(client, name) == [*wanted], f"{name} {wanted}")


@pytest.mark.parametrize("killed", [False, True])
def test_connectors_states_and_offsets_survive_the_worker(
    tmp_path: Path, broker: MillstreamBroker, killed: bool
) -> None:
    lines, copy = tmp_path / "in.txt", tmp_path / "out.txt"
    lines.write_text("".join(f"line {n}\n" for n in range(100)))
    worker = MillstreamWorker(tmp_path / "worker", bootstrap=broker.bootstrap).start()
    try:
        client = worker.client
        client.create("source", file_source(lines, "lines"))
        client.create("sink", file_sink(copy, "lines"))
        client.create("paused", file_source(lines, "other"), initial_state="PAUSED")
        client.create("stopped", file_source(lines, "other"))
        wait_for(client, "stopped", "RUNNING", "RUNNING")
        client.stop("stopped")
        client.create("gone", file_source(lines, "other"))
        client.delete("gone")
        wait_until(lambda: copy.exists() and copy.read_text() == lines.read_text(), "the copy")
        wait_until(lambda: client.offsets("source") != [], "offsets of the source")
        wait_until(lambda: client.offsets("sink") != [], "offsets of the sink")
        before = {name: client.describe(name) for name in client.names()}
        worker.kill() if killed else worker.stop()
        with lines.open("a") as more:
            more.write("".join(f"line {n}\n" for n in range(100, 150)))
        worker.start()
        assert {name: client.describe(name) for name in client.names()} == before
        assert sorted(before) == ["paused", "sink", "source", "stopped"]
        wait_for(client, "source", "RUNNING", "RUNNING")
        wait_for(client, "paused", "PAUSED")
        wait_for(client, "stopped", "STOPPED")
        wait_until(lambda: copy.read_text() == lines.read_text(), "the rest of the copy")
        assert client.topics("source") == ["lines"]
        assert client.topics("sink") == ["lines"]
    finally:
        worker.kill()


def test_a_worker_killed_while_it_is_asked_keeps_what_it_acknowledged(
    tmp_path: Path, broker: MillstreamBroker
) -> None:
    worker = MillstreamWorker(tmp_path / "worker", bootstrap=broker.bootstrap).start()
    lines = tmp_path / "in.txt"
    lines.write_text("one\n")
    try:
        acknowledged: dict[str, str] = {}
        for round_ in range(3):
            for number in range(5):
                name = f"connector-{number}"
                topic = f"topic-{round_}-{number}"
                worker.client.put_config(name, file_source(lines, topic))
                acknowledged[name] = topic
            worker.kill()
            worker.start()
            client = worker.client
            found = {name: client.describe(name)["config"]["topic"] for name in client.names()}
            assert found == acknowledged
        for name in acknowledged:
            wait_for(worker.client, name, "RUNNING", "RUNNING")
    finally:
        worker.kill()


def test_a_standalone_worker_runs_the_connectors_of_its_files(
    tmp_path: Path, broker: MillstreamBroker
) -> None:
    lines, copy = tmp_path / "in.txt", tmp_path / "out.txt"
    lines.write_text("one\ntwo\n")
    source, sink = tmp_path / "source.properties", tmp_path / "sink.json"
    settings = file_source(lines, "lines") | {"name": "source"}
    source.write_text("".join(f"{name}={text}\n" for name, text in settings.items()))
    config = ", ".join(f'"{name}": "{text}"' for name, text in file_sink(copy, "lines").items())
    sink.write_text(f'{{"name": "sink", "config": {{{config}}}}}')
    standalone: dict[str, str | None] = {
        "group.id": None,
        "config.storage.topic": None,
        "offset.storage.topic": None,
        "status.storage.topic": None,
        "offset.storage.file.filename": str(tmp_path / "offsets.json"),
        "offset.flush.interval.ms": "100",
    }
    worker = MillstreamWorker(
        tmp_path / "worker",
        bootstrap=broker.bootstrap,
        settings=standalone,
        connectors=[source, sink],
    ).start()
    try:
        wait_until(lambda: copy.exists() and copy.read_text() == "one\ntwo\n", "the copy")
        position = [{"partition": {"filename": str(lines)}, "offset": {"position": 8}}]
        wait_until(lambda: worker.client.offsets("source") == position, "the offset")
        worker.client.create("more", file_source(lines, "more"))
        worker.stop()
        with lines.open("a") as more:
            more.write("three\n")
        worker.start()
        assert worker.client.names() == ["sink", "source"]
        wait_until(lambda: copy.read_text() == "one\ntwo\nthree\n", "the rest of the copy")
    finally:
        worker.kill()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("connector.class=FileStreamSource\n", "the connector has no name"),
        ("name=x\nconnector.class=NoSuch\n", "which name matches NoSuch"),
        ("name=x\nconnector.class=FileStreamSource\n", 'Missing required configuration "topic"'),
    ],
)
def test_a_worker_with_a_wrong_connector_does_not_start(
    tmp_path: Path, broker: MillstreamBroker, content: str, said: str
) -> None:
    file = tmp_path / "connector.properties"
    file.write_text(content)
    worker = MillstreamWorker(
        tmp_path / "worker",
        bootstrap=broker.bootstrap,
        settings={"group.id": None, "offset.storage.file.filename": str(tmp_path / "offsets")},
        connectors=[file],
    )
    with pytest.raises(ServerFailed, match=said):
        worker.start()


def test_a_worker_goes_on_when_its_broker_comes_back(
    tmp_path: Path, broker: MillstreamBroker
) -> None:
    lines = tmp_path / "in.txt"
    lines.write_text("one\n")
    with MillstreamWorker(tmp_path / "worker", bootstrap=broker.bootstrap) as worker:
        worker.client.create("source", file_source(lines, "lines"))
        wait_for(worker.client, "source", "RUNNING", "RUNNING")
        broker.kill()
        assert worker.client.names() == ["source"]
        broker.start()
        worker.client.create("second", file_source(lines, "second"))
        wait_for(worker.client, "second", "RUNNING", "RUNNING")
        worker.client.delete("source")
        assert worker.client.names() == ["second"]
