"""`millstream doctor`: what it finds on this machine, and what it advises."""

import socket
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from millstream.__main__ import command_line
from millstream.commands.doctor import OK, WARNING, java_finding
from tests.support.ports import held_ports


def findings(folder: Path, *options: str) -> dict[str, dict[str, str]]:
    result = CliRunner().invoke(
        command_line,
        ["doctor", "--json", "-d", str(folder / "not" / "yet"), *options],
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.output
    return {each["check"]: each for each in orjson.loads(result.stdout)}


@pytest.mark.slow
def test_python_libraries_disk_and_free_ports_are_looked_at(tmp_path: Path) -> None:
    (port,) = held_ports(1)
    found = findings(tmp_path, "--port-base", "0", "--sql-port", str(port))
    for check in ("Python", "millstream", "rocksdict", "port of broker"):
        assert found[check]["state"] == OK
    assert found["port of sql"]["found"] == f"{port} is free"
    assert "GiB free" in found["disk"]["found"]
    assert "extra spark" in found
    assert "Java" in found


@pytest.mark.slow
def test_the_owner_of_a_port_is_reported(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        found = findings(tmp_path, "--port-base", "0", "--sql-port", port)["port of sql"]
    assert found["state"] == WARNING
    assert found["found"].startswith(f"{port} is used by ")
    assert "--port-base" in found["advice"]


@pytest.mark.parametrize(
    ("output", "state", "found"),
    [
        ('openjdk version "17.0.2" 2022-01-18', OK, "17 at java"),
        ('java version "1.8.0_301"', WARNING, "8 at java"),
        ("no such thing", WARNING, 'java printed "no such thing"'),
        ("", WARNING, 'java printed "nothing"'),
    ],
)
def test_the_version_of_java_is_understood(output: str, state: str, found: str) -> None:
    finding = java_finding(output, "java")
    assert (finding.state, finding.found) == (state, found)
