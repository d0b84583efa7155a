"""An application goes on when its broker is killed and started again."""

from pathlib import Path

import pytest

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

pytestmark = pytest.mark.slow

ROWS = [(key, "x") for key in "abcdefgh" * 50]


def test_counts_stay_exact_over_the_death_of_the_broker(tmp_path: Path) -> None:
    settings = {name: value for name, value in SETTINGS.items() if name != "listeners"}
    broker = MillstreamBroker(tmp_path / "broker", settings=settings | {"durability": "fsync"})
    with broker:
        make_topics(broker.bootstrap, **{"in": 2, "out": 2})
        app = StreamsApp(
            count_topology(),
            application_id="app",
            broker=broker.bootstrap,
            state_dir=tmp_path / "state",
            processing_guarantee="exactly_once_v2",
            heartbeat_interval_ms=100,
        )
        with app:
            assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
            for start in range(0, len(ROWS), 100):
                write(broker.bootstrap, "in", ROWS[start : start + 100])
                broker.kill()
                broker.start()
            reader = Reader(broker.bootstrap, "out")
            assert by_key(reader.until(len(ROWS))) == expected_counts(ROWS)
            reader.close()
        assert app.error is None
