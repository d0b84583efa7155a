"""`millstream registry` and `schemas`: started, asked, stopped, started again."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import orjson
import pytest
from click import UsageError
from click.testing import CliRunner

from broker.client import admin
from broker.errors import ConfigError, RegistryError
from millstream.__main__ import command_line
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import REPOSITORY

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("registry-command")]

STOP_SECONDS_MAX = 60
ORDER = '{"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}'
WRONG = '{"type": "record", "name": "Order", "fields": [{"name": "no", "type": "long"}]}'


class Served:
    """A command that runs until it is stopped."""

    def __init__(self, *arguments: str, folder: Path = REPOSITORY) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "millstream", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def said(self) -> str:
        """The next line, waited for."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self._process.stderr and self._process.stderr.read()
        return line.strip()

    def event(self) -> dict[str, str]:
        """The next line as JSON."""
        found: dict[str, str] = orjson.loads(self.said())
        return found

    def stop(self, number: int = signal.SIGINT) -> tuple[int, str, str]:
        """Tell it to stop: how it ended, what it said last, what it complained about."""
        self._process.send_signal(number)
        out, complaints = self._process.communicate(timeout=STOP_SECONDS_MAX)
        return self._process.returncode, out, complaints

    def kill(self) -> None:
        """End it if it still runs."""
        self._process.kill()
        self._process.communicate()


@contextmanager
def served(*arguments: str, folder: Path = REPOSITORY) -> Iterator[Served]:
    """A command while it runs in a folder."""
    running = Served(*arguments, folder=folder)
    try:
        yield running
    finally:
        running.kill()


class Shell:
    """Runs `millstream schemas` against one registry."""

    def __init__(self, url: str) -> None:
        self._environment = {"MILLSTREAM_REGISTRY": url, "COLUMNS": "200"}

    def run(self, *arguments: str, text: str = "", code: int = 0) -> str:
        result = CliRunner().invoke(
            command_line,
            ["schemas", *arguments],
            input=text,
            env=self._environment,
            catch_exceptions=False,
        )
        assert result.exit_code == code, result.output
        return result.stdout

    def json(self, *arguments: str, text: str = "", code: int = 0) -> object:
        return orjson.loads(self.run(*arguments, "--json", text=text, code=code))


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """A registry with a broker of its own, in a process."""
    folder = str(tmp_path_factory.mktemp("registry"))
    with served("registry", "--data-dir", folder, "--listen", "127.0.0.1:0", "--json") as running:
        yield Shell(running.event()["url"])
        code, _, complaints = running.stop(signal.SIGTERM)
        assert (code, complaints) == (0, "")


def test_a_registry_keeps_its_schemas_in_a_cluster(tmp_path: Path) -> None:
    with MillstreamBroker(tmp_path) as broker:
        command = ("registry", "-b", broker.bootstrap, "-l", "127.0.0.1:0", "-t", "kept")
        for expected in ([], ["orders"]):
            with served(*command, "--level", "full", "--json") as running:
                url = running.event()["url"]
                assert httpx.get(f"{url}/subjects", timeout=60).json() == expected
                assert httpx.get(f"{url}/config", timeout=60).json() == {
                    "compatibilityLevel": "FULL"
                }
                Shell(url).run("register", "orders", text=ORDER)
                assert running.stop()[0] == 0
        with admin(broker.bootstrap) as cluster:
            assert "kept" in cluster.list_topics(include_internal=True)


def test_a_port_that_is_taken_ends_the_command(tmp_path: Path, shell: Shell) -> None:
    address = shell._environment["MILLSTREAM_REGISTRY"].removeprefix("http://")
    with pytest.raises(ConfigError, match="cannot listen"):
        CliRunner().invoke(
            command_line,
            ["registry", "--data-dir", str(tmp_path), "--listen", address],
            catch_exceptions=False,
        )


def test_a_registry_that_still_waits_for_its_cluster_can_be_stopped() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(STOP_SECONDS_MAX)
        bootstrap = f"127.0.0.1:{silent.getsockname()[1]}"
        with served("registry", "-b", bootstrap, "-l", "127.0.0.1:0") as running:
            connection, _ = silent.accept()
            with connection:
                code, _, complaints = running.stop()
                assert (code, complaints.strip()) == (130, "")


def test_a_registry_is_on_a_cluster_or_on_its_own() -> None:
    with pytest.raises(UsageError, match="cannot be combined"):
        command_line(["registry", "--bootstrap", "x:1", "--data-dir", "y"], standalone_mode=False)


def test_schemas_are_registered_listed_and_shown(shell: Shell, tmp_path: Path) -> None:
    files = {
        "a.avsc": '"int"',
        "j.json": '{"type": "object"}',
        "p.proto": 'syntax = "proto3"; message M { int64 id = 1; }',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        shell.run("register", f"kinds/{name}", str(tmp_path / name))
    rows = shell.json("list", "--prefix", "kinds/")
    assert isinstance(rows, list)
    assert [(row["subject"], row["version"], row["type"]) for row in rows] == [
        ("kinds/a.avsc", 1, "AVRO"),
        ("kinds/j.json", 1, "JSON"),
        ("kinds/p.proto", 1, "PROTOBUF"),
    ]
    assert "kinds/a.avsc" in shell.run("list")
    assert shell.run("get", "kinds/a.avsc").strip() == '"int"'
    found = shell.json("get", "--id", str(rows[1]["id"]))
    assert isinstance(found, dict)
    assert found["schema"] == '{"type":"object"}'


def test_a_schema_refers_to_another(shell: Shell) -> None:
    item = '{"type": "record", "name": "Item", "fields": []}'
    cart = '{"type": "record", "name": "Cart", "fields": [{"name": "item", "type": "Item"}]}'
    shell.run("register", "item", text=item)
    shell.run("register", "cart", "--reference", "Item=item:1", text=cart)
    found = shell.json("get", "cart")
    assert isinstance(found, dict)
    assert found["references"] == [{"name": "Item", "subject": "item", "version": 1}]
    with pytest.raises(UsageError, match="NAME=SUBJECT:VERSION"):
        shell_without_handling("register", "cart", "-", "--reference", "item")


def shell_without_handling(*arguments: str) -> None:
    command_line(["schemas", *arguments], standalone_mode=False)


def test_a_schema_is_checked_before_it_is_registered(shell: Shell) -> None:
    assert "compatible" in shell.run("check", "checked", text=WRONG)
    shell.run("register", "checked", text=ORDER)
    assert shell.json("check", "checked", text=ORDER) == {
        "ok": True,
        "compatible": True,
        "differences": [],
    }
    assert "READER_FIELD_MISSING" in shell.run("check", "checked", text=WRONG, code=1)
    verdict = shell.json("check", "checked", "--version", "1", text=WRONG, code=1)
    assert isinstance(verdict, dict)
    assert verdict["compatible"] is False
    assert "READER_FIELD_MISSING" in verdict["differences"][0]
    with pytest.raises(RegistryError, match="incompatible"):
        shell.run("register", "checked", text=WRONG)


def test_schemas_are_soft_deleted_then_permanently(shell: Shell) -> None:
    shell.run("register", "gone", text=ORDER)
    shell.run("config", "gone", "--set", "none")
    shell.run("register", "gone", text='"int"')
    assert "gone" in shell.run("delete", "gone", "--version", "1", text="y\n")
    with pytest.raises(RegistryError, match="not deleted first"):
        shell.run("delete", "gone", "--permanent", "--yes")
    assert shell.json("delete", "gone") == {"ok": True, "subject": "gone", "versions": [2]}
    assert shell.json("list", "--prefix", "gone") == []
    listed = shell.json("list", "--prefix", "gone", "--deleted", "--all")
    assert isinstance(listed, list)
    assert [(row["version"], row["deleted"]) for row in listed] == [(1, True), (2, True)]
    shell.run("get", "gone", "--version", "2", "--deleted")
    shell.run("delete", "gone", "--permanent", "--yes")
    assert shell.json("list", "--prefix", "gone", "--deleted") == []


def test_levels_are_shown_set_and_unset(shell: Shell) -> None:
    assert shell.json("config") == {"compatibilityLevel": "BACKWARD"}
    assert shell.json("config", "levels") == {"compatibilityLevel": "BACKWARD"}
    assert shell.json("config", "levels", "--set", "full_transitive") == {
        "compatibilityLevel": "FULL_TRANSITIVE"
    }
    assert "FULL_TRANSITIVE" in shell.run("config", "levels")
    assert shell.json("config", "levels", "--unset") == {"compatibilityLevel": "BACKWARD"}
    with pytest.raises(UsageError, match="cannot be combined"):
        shell_without_handling("config", "levels", "--unset", "--set", "FULL")


def test_what_is_asked_for_must_be_clear(shell: Shell) -> None:
    with pytest.raises(UsageError, match="a subject or --id"):
        shell_without_handling("get")
    with pytest.raises(UsageError, match="cannot read"):
        shell_without_handling("register", "s", "no-such-file.avsc")
    with pytest.raises(RegistryError, match="Subject 'none' not found"):
        shell.run("get", "none")


def test_a_registry_that_does_not_answer_is_named() -> None:
    with pytest.raises(RegistryError, match="does not respond"):
        Shell("http://127.0.0.1:9").run("list", "--auth", "user:secret")
