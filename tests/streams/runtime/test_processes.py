"""Applications in processes: killed without warning, and several for one application."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.broker import Broker
from streams.app import AppState, StreamsApp
from tests.streams.runtime.apps import (
    DEADLINE_MS,
    Reader,
    by_key,
    count_topology,
    expected_counts,
    make_topics,
    write,
)
from tests.streams.runtime.conftest import SETTINGS
from tests.support.millstream_broker import MillstreamBroker
from tests.support.peer import REPOSITORY, wait_until

pytestmark = pytest.mark.slow

ROWS = [(key, "x") for key in "abcdefgh" * 100]


@pytest.fixture
def bootstrap(tmp_path: Path) -> Iterator[str]:
    """Our broker in a process of its own."""
    settings = {name: value for name, value in SETTINGS.items() if name != "listeners"}
    with MillstreamBroker(tmp_path / "broker", settings=settings) as broker:
        yield broker.bootstrap


def start_counting(bootstrap: str, state: Path, guarantee: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.streams.runtime.counting"]
    return subprocess.Popen(
        [*command, bootstrap, str(state), guarantee],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_after_kills_without_warning_committed_counts_are_exact(
    bootstrap: str, tmp_path: Path
) -> None:
    make_topics(bootstrap, **{"in": 2, "out": 2})
    reader = Reader(bootstrap, "out")
    for start in range(0, 600, 200):
        write(bootstrap, "in", ROWS[start : start + 200])
        process = start_counting(bootstrap, tmp_path / "state", "exactly_once_v2")
        reader.until(start + 1)
        process.kill()
        process.communicate()
    write(bootstrap, "in", ROWS[600:])
    process = start_counting(bootstrap, tmp_path / "state", "exactly_once_v2")
    counts = by_key(reader.until(len(ROWS)))
    process.communicate("")
    reader.close()
    assert process.returncode == 0
    assert counts == expected_counts(ROWS)


def test_at_least_once_loses_nothing_when_killed(bootstrap: str, tmp_path: Path) -> None:
    make_topics(bootstrap, **{"in": 2, "out": 2})
    reader = Reader(bootstrap, "out")
    write(bootstrap, "in", ROWS[:400])
    process = start_counting(bootstrap, tmp_path / "state", "at_least_once")
    reader.until(1)
    process.kill()
    process.communicate()
    write(bootstrap, "in", ROWS[400:])
    process = start_counting(bootstrap, tmp_path / "state", "at_least_once")
    wanted = {key: int(counts[-1]) for key, counts in expected_counts(ROWS).items()}
    wait_until(
        lambda: (
            all(int(reader.last(1).get(key, 0)) >= wanted[key] for key in wanted)
            if reader.poll()
            else False
        ),
        "all counts",
    )
    process.communicate("")
    reader.close()


def test_two_processes_share_an_embedded_broker(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 4, "out": 1})
    app = StreamsApp(
        count_topology(),
        application_id="pair",
        broker=broker,
        state_dir=tmp_path / "state",
        processing_guarantee="exactly_once_v2",
        processes=2,
        heartbeat_interval_ms=100,
        session_timeout_ms=6_000,
    )
    with app:
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        reader = Reader(broker, "out")
        write(broker, "in", ROWS[:400])
        reader.until(400)
        wait_until(lambda: 'process="1"' in app.metrics_text(), "metrics of the second child")
        first = app.child_pids[0]
        os.kill(first, signal.SIGKILL)
        wait_until(lambda: app.child_pids[0] != first, "a new child")
        write(broker, "in", ROWS[400:])
        assert by_key(reader.until(len(ROWS))) == expected_counts(ROWS)
        pids = app.child_pids
        reader.close()
    assert app.state is AppState.NOT_RUNNING
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
