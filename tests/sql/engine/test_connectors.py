"""Statements about connectors, against an HTTP server that answers as Connect does."""

import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from broker import Broker
from connect.client import ConnectClient
from sql.connector_masks import hidden_values, masked
from sql.engine.connectors import Connectors
from sql.engine.engine import Engine
from sql.engine.entities import (
    ConnectorDescription,
    ConnectorsList,
    CreatedConnector,
    DroppedConnector,
    Entity,
    PluginsList,
    WarningEntity,
)
from sql.errors import SqlError, StatementFailed
from sql.parse import parse_statement
from sql.server.answers import error_json
from sql.syntax import statements as st


class FakeConnect(BaseHTTPRequestHandler):
    """Connect's REST API over one dict of connectors."""

    connectors: dict[str, dict[str, str]]

    def answer(self, status: int, body: object) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = body["name"]
        if name in self.connectors:
            self.answer(409, {"error_code": 409, "message": f"Connector {name} already exists"})
            return
        self.connectors[name] = body["config"]
        self.answer(201, self.described(name))

    def do_DELETE(self) -> None:
        if self.connectors.pop(self.path.split("/")[2], None) is None:
            self.answer(404, {"error_code": 404, "message": "Connector not found"})
            return
        self.send_response(204)
        self.end_headers()

    def do_GET(self) -> None:
        parts = self.path.strip("/").split("/")
        if parts[0].startswith("connector-plugins"):
            self.answer(200, [{"class": "a.B", "type": "sink", "version": "1"}])
        elif parts == ["connectors"]:
            self.answer(200, sorted(self.connectors))
        elif parts[1] not in self.connectors:
            self.answer(404, {"error_code": 404, "message": "Connector not found"})
        elif parts[2:] == ["status"]:
            tasks = [{"id": 0, "state": "RUNNING"}]
            self.answer(200, {"connector": {"state": "RUNNING"}, "tasks": tasks})
        elif parts[2:] == ["topics"]:
            self.answer(200, {parts[1]: {"topics": ["t"]}})
        else:
            self.answer(200, self.described(parts[1]))

    def described(self, name: str) -> dict[str, object]:
        tasks = [{"connector": name, "task": 0}]
        return {"name": name, "config": self.connectors[name], "tasks": tasks, "type": "sink"}

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def connectors() -> Iterator[Connectors]:
    handler = type("Handler", (FakeConnect,), {"connectors": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Connectors(ConnectClient(f"http://127.0.0.1:{server.server_port}"))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(connectors: Connectors, text: str) -> Entity:
    statement = parse_statement(text)
    match statement:
        case st.CreateConnector():
            return connectors.create(statement, text)
        case st.DropConnector():
            return connectors.drop(statement, text)
        case st.DescribeConnector():
            return connectors.describe(statement, text)
        case st.Show():
            return connectors.show(statement, text)
        case _:
            raise AssertionError(text)


pytestmark = pytest.mark.slow

CREATE = "CREATE SINK CONNECTOR {} out WITH ('connector.class' = 'a.B', 'tasks.max' = 1);"


def test_a_connector_is_made_listed_described_and_dropped(connectors: Connectors) -> None:
    created = run(connectors, CREATE.format(""))
    assert isinstance(created, CreatedConnector)
    assert created.info.config["tasks.max"] == "1"
    name = created.info.name
    listed = run(connectors, "SHOW SINK CONNECTORS;")
    assert isinstance(listed, ConnectorsList)
    assert [(each.name, each.class_name) for each in listed.connectors] == [(name, "a.B")]
    assert run(connectors, "SHOW SOURCE CONNECTORS;") == ConnectorsList(
        "SHOW SOURCE CONNECTORS;", ()
    )
    described = run(connectors, f"DESCRIBE CONNECTOR `{name}`;")
    assert isinstance(described, ConnectorDescription)
    assert described.topics == ("t",)
    assert isinstance(run(connectors, f"DROP CONNECTOR `{name}`;"), DroppedConnector)
    assert isinstance(run(connectors, f"DROP CONNECTOR IF EXISTS `{name}`;"), WarningEntity)


def test_a_connector_that_exists_is_refused_or_left_alone(connectors: Connectors) -> None:
    run(connectors, CREATE.format(""))
    with pytest.raises(StatementFailed, match="already exists"):
        run(connectors, CREATE.format(""))
    assert isinstance(run(connectors, CREATE.format("IF NOT EXISTS")), WarningEntity)


def test_plugins_are_listed(connectors: Connectors) -> None:
    found = run(connectors, "SHOW CONNECTOR PLUGINS;")
    assert isinstance(found, PluginsList)
    assert [each.class_name for each in found.connectors_plugins] == ["a.B"]


def test_without_a_connect_server_statements_are_refused() -> None:
    with pytest.raises(StatementFailed, match="no Connect server configured"):
        run(Connectors(None), "SHOW CONNECTORS;")


SECRET = "s3cret-enough"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "CREATE SINK CONNECTOR c WITH ('connector.class' = 'a.B', 'db.password'='it''s',"
            " \"tasks.max\" = 1, `x`='y');",
            "CREATE SINK CONNECTOR c WITH ('connector.class' = 'a.B', 'db.password'="
            "'[string]', \"tasks.max\" = '[string]', `x`='[string]');",
        ),
        (
            "create source connector if not exists c with (a.password=1); SELECT",
            "create source connector if not exists c with (a.password='[string]'); SELECT",
        ),
        (
            "CREATE SINK CONNECTOR c WITH ('password'='never ends",
            "CREATE SINK CONNECTOR c WITH ('password'='[string]'",
        ),
        ("SELECT 'password' = 'x' FROM connectors;", "SELECT 'password' = 'x' FROM connectors;"),
        ("CREATE STREAM s WITH (a='b');", "CREATE STREAM s WITH (a='b');"),
    ],
)
def test_values_of_connectors_are_masked_in_statements(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["a", "'", "''", "key.", "= ", "'a' ", "http://", " "])
def test_masking_takes_linear_time(piece: str) -> None:
    # Any client may send such a text, which is no statement; 20,000 characters took seconds.
    text = f"CREATE SINK CONNECTOR c WITH ({piece * 100_000}"
    started = time.thread_time()
    assert masked(text).startswith("CREATE SINK CONNECTOR c WITH (")
    assert not hidden_values(text)
    assert time.thread_time() - started < 5


def test_a_connect_server_that_shows_passwords_is_not_quoted(connectors: Connectors) -> None:
    text = f"CREATE SINK CONNECTOR out WITH ('connector.class'='a.B', 'db.password'='{SECRET}');"
    created = run(connectors, text)
    assert isinstance(created, CreatedConnector)
    assert created.info.config["db.password"] == "[hidden]"


def test_no_answer_of_the_engine_shows_the_password_of_a_connector(
    broker: Broker, connectors: Connectors, tmp_path: Path
) -> None:
    password = f"'connector.class'='a.B', 'db.password'='{SECRET}'"
    create = f"CREATE SINK CONNECTOR out WITH ({password});"
    with Engine(broker, data_directory=tmp_path / "sql", connect=connectors._client) as engine:
        (created,) = engine.execute(create)
        again = engine.execute(create.replace("CONNECTOR out", "CONNECTOR IF NOT EXISTS out"))
        for entity in (created, *again):
            assert SECRET not in repr(entity)
        for wrong in (
            create,  # there is one of the name
            create.replace("WITH (", "WITH "),  # no statement
            f"SHOW STREAMS; {create}",
        ):
            with pytest.raises(SqlError) as failed:
                engine.execute(wrong)
            shown = error_json(failed.value, wrong)
            assert "CONNECTOR" in shown["statementText"]
            assert SECRET not in json.dumps(shown)
