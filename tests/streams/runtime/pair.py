"""`python -m tests.streams.runtime.pair FOLDER`: an application in two processes, one is killed."""

import os
import signal
import sys
from pathlib import Path

from broker.broker import Broker
from broker.config import BrokerConfig
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
from tests.support.peer import wait_until

ROWS = [(key, "x") for key in "abcdefgh" * 100]


def main(folder: Path) -> None:
    """Counts are exact, and no process is left."""
    config = BrokerConfig.from_properties(SETTINGS)
    with Broker(config, data_directory=str(folder / "broker")) as broker:
        make_topics(broker, **{"in": 4, "out": 1})
        app = StreamsApp(
            count_topology(),
            application_id="pair",
            broker=broker,
            state_dir=folder / "state",
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
            assert not Path(f"/proc/{pid}").exists(), f"process {pid} is left"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
