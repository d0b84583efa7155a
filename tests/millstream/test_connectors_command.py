"""`millstream connectors` and `connect`: commands against real workers."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from click import UsageError
from click.testing import CliRunner

from broker import Broker
from broker.client import consumer
from connect.client import ConnectClient, ConnectRefused
from connect.config.worker_config import WorkerConfig
from connect.errors import ConfigError
from connect.server import ConnectServer
from millstream.__main__ import command_line
from millstream.commands.connect import CONVERTERS, IN_TOPICS
from tests.millstream.test_registry_command import served
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("connectors-command")]

DATAGEN = {
    "connector.class": "io.confluent.kafka.connect.datagen.DatagenConnector",
    "quickstart": "users",
    "kafka.topic": "users",
    "rate": "100",
}


class Shell:
    """Runs `millstream connectors` against one worker."""

    def __init__(self, url: str) -> None:
        self.client = ConnectClient(url)
        self._environment = {"MILLSTREAM_CONNECT": url, "COLUMNS": "200"}

    def run(self, *arguments: str, text: str = "") -> str:
        result = CliRunner().invoke(
            command_line,
            ["connectors", *arguments],
            input=text,
            env=self._environment,
            catch_exceptions=False,
        )
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: str) -> object:
        return orjson.loads(self.run(*arguments, "--json"))

    def wait_for(self, name: str, state: str) -> None:
        wait_until(
            lambda: self.client.status(name)["connector"]["state"] == state, f"{name} {state}"
        )


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    settings = {
        **CONVERTERS,
        **IN_TOPICS,
        "listeners": "http://127.0.0.1:0",
        "connector.allowed.paths": tempfile.gettempdir(),
    }
    with (
        Broker(data_directory=str(tmp_path_factory.mktemp("broker"))) as broker,
        ConnectServer(broker, WorkerConfig.parse(settings)) as server,
    ):
        yield Shell(server.url)


@pytest.fixture
def users(shell: Shell, tmp_path: Path) -> Iterator[str]:
    """A connector that was made from a file."""
    file = tmp_path / "users.json"
    file.write_bytes(orjson.dumps({"name": "users", "config": DATAGEN}))
    assert shell.json("create", str(file)) == {"ok": True, "name": "users"}
    shell.wait_for("users", "RUNNING")
    yield "users"
    if "users" in shell.client.names():
        shell.client.delete("users")


def test_connectors_are_listed_with_their_states(shell: Shell, users: str) -> None:
    wait_until(
        lambda: [each["state"] for each in shell.client.status(users)["tasks"]] == ["RUNNING"],
        "a running task",
    )
    assert shell.json("list") == [
        {"name": users, "type": "source", "state": "RUNNING", "tasks": "1 RUNNING"}
    ]
    assert "users" in shell.run("list")


def test_the_states_of_a_connector_change_and_are_shown(shell: Shell, users: str) -> None:
    for command, state in (("pause", "PAUSED"), ("resume", "RUNNING"), ("stop", "STOPPED")):
        assert users in shell.run(command, users)
        shell.wait_for(users, state)
        assert state in shell.run("status", users)
    shell.run("resume", users)
    shell.wait_for(users, "RUNNING")
    found = shell.json("status", users)
    assert isinstance(found, dict)
    assert found["name"] == users


def test_settings_are_shown_and_changed(shell: Shell, users: str) -> None:
    assert "quickstart" in shell.run("config", users)
    changed = shell.json("config", users, "--set", "rate=7", "--unset", "keys")
    assert isinstance(changed, dict)
    assert changed["rate"] == "7"
    assert shell.json("config", users) == changed


def test_connectors_and_tasks_are_restarted(shell: Shell, users: str) -> None:
    wait_until(lambda: len(shell.client.status(users)["tasks"]) == 1, "a task")
    assert "is restarting" in shell.run("restart", users, "--tasks")
    shell.wait_for(users, "RUNNING")
    wait_until(lambda: len(shell.client.status(users)["tasks"]) == 1, "a task")
    assert shell.json("restart", users, "--task", "0") == {"ok": True, "name": users, "task": 0}
    with pytest.raises(UsageError, match="cannot be combined"):
        command_line(
            ["connectors", "restart", "x", "--task", "0", "--tasks"], standalone_mode=False
        )


def test_a_failed_task_shows_its_trace(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "sink.properties"
    target = tmp_path / "none" / "out.txt"
    file.write_text(f"name=broken\nconnector.class=FileStreamSink\ntopics=users\nfile={target}\n")
    shell.run("create", str(file))
    wait_until(
        lambda: [each["state"] for each in shell.client.status("broken")["tasks"]] == ["FAILED"],
        "a failed task",
    )
    assert "task 0: " in shell.run("status", "broken")
    assert shell.json("delete", "broken") == {"ok": True, "name": "broken"}


def test_a_connector_that_exists_is_replaced_only_if_asked(
    shell: Shell, users: str, tmp_path: Path
) -> None:
    file = tmp_path / "again.json"
    file.write_bytes(orjson.dumps({"name": users, "config": {**DATAGEN, "rate": "9"}}))
    with pytest.raises(ConnectRefused, match="already exists"):
        shell.run("create", str(file))
    shell.run("create", "--replace", str(file))
    assert shell.client.describe(users)["config"]["rate"] == "9"


def test_connectors_are_deleted_after_a_question(shell: Shell, users: str) -> None:
    shell.run("delete", users, text="y\n")
    assert shell.json("list") == []
    assert "no connectors" in shell.run("list")


def test_plugins_are_listed(shell: Shell) -> None:
    assert DATAGEN["connector.class"] in shell.run("plugins")
    assert "JsonConverter" in shell.run("plugins", "--all")


def test_a_worker_that_does_not_answer_is_named() -> None:
    with pytest.raises(ConnectRefused, match="does not respond"):
        Shell("http://127.0.0.1:9").run("list")


# --- millstream connect -------------------------------------------------------------------


def test_a_standalone_worker_copies_the_files_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    source, sink = tmp_path / "source.properties", tmp_path / "sink.json"
    source.write_text(
        f"name=in\nconnector.class=FileStreamSource\ntopic=lines\nfile={tmp_path / 'in.txt'}\n"
    )
    config = {"connector.class": "FileStreamSink", "topics": "lines"}
    sink.write_bytes(
        orjson.dumps({"name": "out", "config": {**config, "file": str(tmp_path / "out.txt")}})
    )
    options = ("--data-dir", str(tmp_path / "data"), "--port", "0", "--json")
    with served("connect", str(source), str(sink), *options) as running:
        started = running.event()
        assert (started["event"], started["kind"]) == ("connect", "standalone")
        copied = tmp_path / "out.txt"
        wait_until(
            lambda: copied.exists() and copied.read_text() == "one\ntwo\n", "both lines copied"
        )
        assert running.stop()[0] == 0


def test_a_worker_on_a_cluster_goes_on_with_its_connectors(tmp_path: Path) -> None:
    with MillstreamBroker(tmp_path) as broker:
        command = ("connect", "--broker", broker.bootstrap, "--port", "0", "--json")
        with served(*command) as first:
            ConnectClient(first.event()["url"]).create("users", DATAGEN)
            with consumer(broker.bootstrap, group_id="g", auto_offset_reset="earliest") as reader:
                reader.subscribe(["users"])
                wait_until(lambda: bool(reader.poll(timeout_ms=100)), "a record")
            assert first.stop()[0] == 0
        with served(*command) as second:
            worker = ConnectClient(second.event()["url"])
            assert worker.names() == ["users"]
            assert second.stop()[0] == 0


def test_a_file_of_the_worker_comes_first(tmp_path: Path) -> None:
    with MillstreamBroker(tmp_path) as broker:
        file = tmp_path / "worker.properties"
        settings = {**CONVERTERS, **IN_TOPICS, "bootstrap.servers": broker.bootstrap}
        file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        with served(
            "connect", str(file), "-c", "listeners=http://127.0.0.1:0", "--json"
        ) as running:
            assert running.event()["kind"] == "distributed"
            assert running.stop()[0] == 0
        source = tmp_path / "source.properties"
        source.write_text("name=in\nconnector.class=FileStreamSource\ntopic=lines\n")
        with pytest.raises(ConfigError, match="does not accept connector files"):
            CliRunner().invoke(
                command_line, ["connect", str(file), str(source)], catch_exceptions=False
            )
