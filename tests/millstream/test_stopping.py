"""What a signal handler sets and the main thread waits for."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from millstream.commands.serving import RunningService, serve
from millstream.commands.stopping import StopRequest, stop_signals
from millstream.output import Output

# Signals come all the time, also in the middle of waits.
SIGNALLED = """
import os, signal, threading
from millstream.commands.stopping import StopRequest

asked = StopRequest()
signal.signal(signal.SIGUSR1, lambda *_: asked.set())

def send():
    while not over.is_set():
        os.kill(os.getpid(), signal.SIGUSR1)

over = threading.Event()
sending = threading.Thread(target=send)
sending.start()
for _ in range(100):
    asked = StopRequest()
    while not asked.wait(0.01):
        pass
over.set()
sending.join()
"""


def test_a_service_that_fails_ends_the_command_and_stops_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stopped: list[str] = []

    @contextmanager
    def failing() -> Iterator[RunningService]:
        try:
            yield RunningService({"event": "b"}, "b", lambda: RuntimeError("another one took over"))
        finally:
            stopped.append("b")

    @contextmanager
    def healthy() -> Iterator[RunningService]:
        try:
            yield RunningService({"event": "a"}, "a")
        finally:
            stopped.append("a")

    with pytest.raises(RuntimeError, match="another one took over"):
        serve([healthy, failing], Output(as_json=True))
    assert stopped == ["b", "a"]
    assert "event" in capsys.readouterr().out


def test_it_is_not_set_until_it_is_asked_and_stays_so() -> None:
    asked = StopRequest()
    assert not asked.wait(0)
    asked.set()
    assert asked.wait(0)
    assert asked.wait(0)


@pytest.mark.slow
def test_a_signal_in_the_middle_of_a_wait_ends_it() -> None:
    command = [sys.executable, "-c", SIGNALLED]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_closed_terminal_stops_a_command_unless_it_runs_with_nohup(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_DFL)
    assert stop_signals() == [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)
    assert stop_signals() == [signal.SIGINT, signal.SIGTERM]
