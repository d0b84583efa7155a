"""Commands when nothing listens: an error soon, which says what to do."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from broker.errors import MillstreamError
from millstream.__main__ import command_line

QUICK = ("-X", "bootstrap.timeout.ms=60")
SECONDS_MAX = 20  # three, and what a busy machine needs to start a process


@pytest.fixture
def nowhere() -> Iterator[str]:
    """An address that refuses connections, since it is bound and nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{bound.getsockname()[1]}"


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "list"),
        ("topics", "create", "t"),
        ("groups", "list"),
        ("configs", "describe", "topic", "t"),
        ("consume", "t"),
        ("consume", "t", "-g", "readers"),
        ("produce", "t"),
    ],
    ids=" ".join,
)
def test_a_command_says_soon_that_no_broker_answers(
    nowhere: str, arguments: tuple[str, ...]
) -> None:
    command = [*arguments, "-b", nowhere, *QUICK]
    with pytest.raises(MillstreamError, match="no broker responds") as caught:
        CliRunner().invoke(command_line, command, input="a line\n", catch_exceptions=False)
    assert f"{nowhere}: connection refused" in str(caught.value)
    assert "millstream up" in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("sql", "-e", "SHOW STREAMS;"),
        ("sql", "server", "-l", "127.0.0.1:0"),
        ("registry", "-l", "127.0.0.1:0"),
        ("connect", "-p", "0"),
        ("run", "tests.millstream.applications:builder"),
    ],
    ids=" ".join,
)
def test_a_service_says_soon_that_no_broker_answers(
    nowhere: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = [*arguments, "-b", nowhere]
    with pytest.raises(MillstreamError, match="no broker responds") as caught:
        CliRunner().invoke(command_line, command, catch_exceptions=False)
    assert "millstream up" in str(caught.value)


@pytest.mark.slow
def test_commands_end_by_themselves_when_nothing_listens(nowhere: str) -> None:
    # At the same time, since each one waits for seconds; without a limit it would be a minute.
    running = {
        arguments: subprocess.Popen(
            [sys.executable, "-m", "millstream", *arguments, "-b", nowhere],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for arguments in (("topics", "list"), ("produce", "t"), ("consume", "t"))
    }
    deadline = time.monotonic() + SECONDS_MAX
    late, said = [], {}
    for arguments, command in running.items():
        try:
            left = max(0.1, deadline - time.monotonic())
            said[arguments], _ = command.communicate("a line\n", timeout=left)
        except subprocess.TimeoutExpired:
            late.append(arguments)
            command.kill()
            command.communicate()
    assert late == []
    for arguments, text in said.items():
        assert running[arguments].returncode == 1
        assert "connection refused" in text
        assert "millstream up" in text
