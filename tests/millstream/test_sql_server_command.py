"""`millstream sql server`: started, asked, stopped, started again."""

import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click import UsageError
from click.testing import CliRunner

from broker import Broker
from broker.client import admin
from broker.errors import MillstreamError
from millstream.__main__ import command_line
from tests.millstream.test_registry_command import Served
from tests.support.peer import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("sql-server-command")]

CREATE = "CREATE STREAM s (a INT) WITH (kafka_topic='s', value_format='JSON', partitions=1);"
SECONDS_MAX = 60.0


def started(*arguments: str) -> Served:
    return Served("sql", "server", *arguments, "--json")


def ask(url: str, text: str) -> list[dict[str, object]]:
    response = httpx.post(f"{url}/ksql", json={"ksql": text}, timeout=SECONDS_MAX)
    assert response.status_code == httpx.codes.OK, response.text
    found: list[dict[str, object]] = response.json()
    return found


def test_statements_are_there_after_a_restart(tmp_path: Path) -> None:
    options = (
        "--data-dir",
        str(tmp_path),
        "--listen",
        "127.0.0.1:0",
        "-s",
        "ksql.service.id=mine_",
    )
    for text, kind in ((CREATE, "currentStatus"), ("DESCRIBE s;", "sourceDescription")):
        serving = started(*options)
        try:
            url = serving.event()["url"]
            assert [each["@type"] for each in ask(url, text)] == [kind]
            info = httpx.get(f"{url}/info", timeout=SECONDS_MAX).json()["KsqlServerInfo"]
            assert info["ksqlServiceId"] == "mine_"
            assert info["kafkaClusterId"]
            assert serving.stop()[0] == 0
        finally:
            serving.kill()


def test_a_file_of_queries_runs_without_a_server(tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(CREATE + "CREATE STREAM t AS SELECT a + 1 AS b FROM s;")
    serving = started("--data-dir", str(tmp_path / "data"), "--queries-file", str(file))
    try:
        assert serving.event() == {"event": "sql", "queries_file": str(file)}
        assert serving.stop()[0] == 0
    finally:
        serving.kill()
    with Broker(data_directory=str(tmp_path / "data")) as broker, admin(broker) as administration:
        assert {"s", "T"} <= set(administration.list_topics())


@pytest.mark.parametrize(
    ("options", "kind", "why"),
    [
        (("-d", "x", "-b", "y:1"), UsageError, "cannot be combined"),
        (("-s", "nothing"), UsageError, "NAME=VALUE"),
        (("-s", "listeners=http://0.0.0.0:1"), UsageError, 'instead of the setting "listeners"'),
        (("-d", "data", "-s", "no.such=1"), MillstreamError, "Unknown property: no.such"),
        (("-d", "data", "-l", "nowhere"), MillstreamError, "host:port"),
        (
            ("-d", "data", "-s", "spark.bounded=true"),
            UsageError,
            "a server runs until it is stopped",
        ),
    ],
)
def test_wrong_options_are_refused(
    options: tuple[str, ...],
    kind: type[Exception],
    why: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind, match=why):
        CliRunner().invoke(
            command_line, ["sql", "server", *options], standalone_mode=False, catch_exceptions=False
        )


@pytest.mark.parametrize(
    "statement", ["SELECT * FROM s EMIT CHANGES;", "PRINT 's' FROM BEGINNING;"]
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_ends_during_a_query_is_an_error_of_the_shell(
    tmp_path: Path, number: signal.Signals, statement: str
) -> None:
    serving = started("--data-dir", str(tmp_path), "--listen", "127.0.0.1:0")
    try:
        url = serving.event()["url"]
        ask(url, CREATE + "INSERT INTO s VALUES (1);")
        command = [sys.executable, "-m", "millstream", "sql", str(url)]
        command += ["-s", "auto.offset.reset=earliest", "-e", statement]
        with subprocess.Popen(
            command, cwd=REPOSITORY, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as shell:
            assert shell.stdout is not None
            # The query runs as soon as the row, or the format of the topic, is shown.
            assert next(line for line in shell.stdout if "|1 " in line or "format" in line)
            serving.stop(number)
            _, errors = shell.communicate(timeout=SECONDS_MAX)
        assert shell.returncode == 1
        assert errors.startswith("error: ")
        assert "row" not in errors
    finally:
        serving.kill()
