"""Files that connectors may open: those in the allowed directories, however they are written."""

import json
import sqlite3
from collections.abc import Mapping
from datetime import UTC
from pathlib import Path

import pytest

from broker import Broker
from connect.client import ConnectClient, ConnectRefused
from connect.config.allowed_paths import AllowedPaths
from connect.config.connector_file import ConnectorFile
from connect.config.providers import ConfigProviders
from connect.config.worker_config import WorkerConfig
from connect.connectors.datagen.connector import DatagenConnector
from connect.connectors.file_stream_sink import FileStreamSinkConnector
from connect.connectors.jdbc.addresses import parse_address
from connect.connectors.jdbc.dialects.dialect import SessionSettings
from connect.connectors.jdbc.dialects.sqlite import SqliteDialect
from connect.connectors.jdbc.source_connector import JdbcSourceConnector
from connect.errors import ConfigError
from connect.server import ConnectServer
from connect.state.task_state import TaskId
from tests.connect.running_worker import SETTINGS, Statuses, running_worker
from tests.support.peer import wait_until

FILE_SOURCE = {"connector.class": "FileStreamSource", "topic": "t"}
FILE_SINK = {"connector.class": "FileStreamSink", "topics": "t"}
FILES_SINK = {"connector.class": "FilesSink", "topics": "t"}
DATAGEN = {"connector.class": "Datagen", "kafka.topic": "t"}
JDBC = {"connector.class": "JdbcSource", "mode": "bulk", "topic.prefix": "p", "query": "SELECT 1"}


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """The allowed directory, in which a link leads out of it."""
    folder = tmp_path / "allowed"
    folder.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret.txt")
    (folder / "folder-link").symlink_to(tmp_path)
    return folder


def test_links_and_dots_are_followed_before_a_path_is_allowed(inside: Path) -> None:
    allowed = AllowedPaths([inside])
    for path in ("a.txt", "new/folder/a.txt", "folder-link/allowed/a.txt", "../allowed/a.txt"):
        assert allowed.allow(inside / path), path
    assert allowed.allow(inside)
    for path in ("../a.txt", "link", "folder-link/a.txt", "/etc/passwd", "../allowed-too/a.txt"):
        assert not allowed.allow(inside / path), path
    assert not allowed.allow("a\0b")


def test_relative_paths_are_below_the_working_directory(
    inside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(inside)
    allowed = WorkerConfig.parse(SETTINGS | {"connector.allowed.paths": ""}).allowed_paths
    assert allowed.directories == (inside.resolve(),)
    assert allowed.allow("a.txt")
    assert not allowed.allow("../a.txt")


def schema_with_options(file: Path) -> str:
    options = {"options": {"file": str(file), "encoding": "json"}}
    field = {"name": "f", "type": {"type": "string", "arg.properties": options}}
    return json.dumps({"type": "record", "name": "r", "fields": [field]})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "setting"),
    [
        (FILE_SOURCE | {"file": "{out}"}, "file"),
        (FILE_SOURCE | {"file": "{in}/../secret.txt"}, "file"),
        (FILE_SOURCE | {"file": "{in}/link"}, "file"),
        (FILE_SINK | {"file": " {out} "}, "file"),
        (FILE_SINK | {"file": "{in}/code.py"}, "file"),
        (FILES_SINK | {"directory": "{in}/folder-link"}, "directory"),
        (DATAGEN | {"schema.filename": "{out}"}, "schema.filename"),
        (DATAGEN | {"schema.string": schema_with_options(Path("/etc/hosts"))}, "schema.string"),
        (DATAGEN | {"schema.filename": "{in}/schema"}, "schema.filename"),
        (JDBC | {"connection.url": "jdbc:sqlite:{out}"}, "connection.url"),
        (JDBC | {"connection.url": "sqlite:///{out}"}, "connection.url"),
        (
            JDBC
            | {
                "connection.url": "jdbc:postgresql://x/etc/hosts",
                "dialect.name": "SqliteDatabaseDialect",
            },
            "connection.url",
        ),
    ],
)
def test_a_connector_for_another_directory_is_refused(
    broker: Broker, inside: Path, config: Mapping[str, str], setting: str
) -> None:
    (inside / "schema").write_text(schema_with_options(Path("/etc/hosts")))
    places = {"{out}": str(inside.parent / "secret.txt"), "{in}": str(inside)}
    for mark, place in places.items():
        config = {name: text.replace(mark, place) for name, text in config.items()}
    settings = SETTINGS | {
        "connector.allowed.paths": str(inside),
        "listeners": "http://127.0.0.1:0",
    }
    with ConnectServer(broker, WorkerConfig.parse(settings)) as server:
        client = ConnectClient(server.url)
        with pytest.raises(ConnectRefused) as refused:
            client.create("c", config)
        assert refused.value.status == 400
        assert "sinks may not write Python files" in refused.value.message or (
            "is not in a directory that connectors may use" in refused.value.message
            and str(inside) in refused.value.message
        )
        assert "secret.txt" in refused.value.message or "secret" not in refused.value.message
        validated = client.validate(config["connector.class"], {"name": "c", **config})
        wrong = [each["value"]["name"] for each in validated["configs"] if each["value"]["errors"]]
        assert wrong == [setting]
        assert client.names() == []
    assert not (inside / "code.py").exists()


@pytest.mark.slow
def test_a_task_of_an_earlier_configuration_is_checked_when_it_starts(
    broker: Broker, inside: Path
) -> None:
    with running_worker(broker, {"connector.allowed.paths": str(inside)}) as worker:
        config = {"name": "c", **FILE_SOURCE, "file": "/etc/hosts"}
        statuses = Statuses()
        worker.worker.start_task(TaskId("c", 0), config, config, statuses)
        statuses.wait_for("failure")
        assert "/etc/hosts is not in a directory that connectors may use" in statuses.trace


@pytest.mark.slow
def test_connectors_given_by_the_owner_may_open_their_files(broker: Broker, inside: Path) -> None:
    lines = inside.parent / "lines.txt"
    lines.write_text("one\n")
    settings = {
        "key.converter": SETTINGS["key.converter"],
        "value.converter": SETTINGS["value.converter"],
        "offset.storage.file.filename": str(inside / "offsets"),
        "listeners": "http://127.0.0.1:0",
        "connector.allowed.paths": str(inside),
    }
    with ConnectServer(broker, WorkerConfig.parse(settings)) as server:
        server.create([ConnectorFile("c", FILE_SOURCE | {"file": str(lines)}, None)])
        client = ConnectClient(server.url)
        wait_until(lambda: client.topics("c") == ["t"], "the first line")
        with pytest.raises(ConnectRefused):
            client.create("d", FILE_SOURCE | {"file": str(inside.parent / "secret.txt")})


def test_connectors_name_the_files_they_open(tmp_path: Path) -> None:
    assert FileStreamSinkConnector().local_paths({"topics": "t"}) == {}
    assert DatagenConnector().local_paths({"quickstart": "users"}) == {}
    in_memory = {**JDBC, "connection.url": "jdbc:sqlite::memory:"}
    assert JdbcSourceConnector().local_paths(in_memory) == {}
    server = {**JDBC, "connection.url": "jdbc:postgresql://localhost/db"}
    assert JdbcSourceConnector().local_paths(server) == {}


def test_references_lead_to_allowed_files_only(inside: Path) -> None:
    (inside / "a.properties").write_text("k=v")
    (inside.parent / "b.properties").write_text("k=secret")
    settings = {
        "config.providers": "file,dir",
        "config.providers.file.class": "FileConfigProvider",
        "config.providers.dir.class": "DirectoryConfigProvider",
    }
    limited = ConfigProviders(settings, AllowedPaths([inside]))
    assert limited.resolve({"a": f"${{file:{inside}/a.properties:k}}"}) == {"a": "v"}
    for reference in (
        f"${{file:{inside.parent}/b.properties:k}}",
        f"${{file:{inside}/folder-link/b.properties:k}}",
        f"${{dir:{inside.parent}:secret.txt}}",
        f"${{dir:{inside}:link}}",
    ):
        with pytest.raises(ConfigError, match="is not in a directory that connectors may use"):
            limited.resolve({"a": reference})


@pytest.mark.parametrize("statement", ["ATTACH DATABASE '{}' AS other", "VACUUM INTO '{}'"])
def test_a_query_on_sqlite_opens_no_other_file(tmp_path: Path, statement: str) -> None:
    other = tmp_path / "other.db"
    address = parse_address(f"jdbc:sqlite:{tmp_path}/a.db")
    connection = SqliteDialect().connect(SessionSettings(address, UTC))
    with pytest.raises(sqlite3.OperationalError, match="too many attached databases"):
        connection.cursor().execute(statement.format(other))
    connection.close()
    assert not other.exists()
