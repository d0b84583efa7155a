"""What README.md shows of the whole platform works as it is typed: SQL, and Connect with curl."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from connect.client import ConnectClient
from millstream.__main__ import command_line
from tests.millstream.test_registry_command import served
from tests.millstream.test_up_command import Up
from tests.support.peer import wait_until
from tests.support.tidy import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("readme-platform")]

README = (ROOT / "README.md").read_text()
SHELL = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
SQL = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)
LIMIT_S = 120


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the platform was started, and where its user types."""
    return tmp_path_factory.mktemp("readme")


@pytest.fixture(scope="module")
def up(folder: Path) -> Iterator[Up]:
    with served("up", "--port-base", "0", "--json", folder=folder) as running:
        platform = Up(running)
        yield platform
        assert running.stop()[0] == 0


def typed(commands: str, up: Up, folder: Path) -> None:
    """What a user types, with the ports that the test has."""
    commands = commands.replace("http://localhost:8083", up.connect).replace("curl", "curl -fsS")
    subprocess.run(["bash", "-euc", commands], cwd=folder, check=True, timeout=LIMIT_S)


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl here")
def test_a_file_goes_through_a_topic_into_another_file(up: Up, folder: Path) -> None:
    create, look_and_delete = SHELL
    typed(create, up, folder)
    original, copy = folder / "server.properties", folder / "copy.properties"
    wait_until(
        lambda: copy.exists() and copy.read_bytes() == original.read_bytes(), "a copy of the file"
    )
    typed(look_and_delete, up, folder)
    assert ConnectClient(up.connect).names() == []


def test_the_statements_of_the_shell_are_carried_out(up: Up, tmp_path: Path) -> None:
    (statements,) = SQL
    file = tmp_path / "statements.sql"
    file.write_text(statements)
    result = CliRunner().invoke(command_line, ["sql", up.sql, "-f", str(file)])
    assert result.exit_code == 0, result.output
    assert "Item_" in result.output
    assert ConnectClient(up.connect).names() == []
