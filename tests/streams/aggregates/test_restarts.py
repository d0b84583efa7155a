"""A task that starts again goes on as if it had never stopped."""

from pathlib import Path
from typing import Any

import pytest

from streams.dsl.builder import StreamsBuilder
from streams.dsl.suppressed import until_window_closes
from streams.testing import TopologyTestDriver
from streams.topology import Topology
from streams.windows import (
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    hopping,
    session,
    sliding,
    tumbling,
)
from tests.streams.aggregates.running import NO_CACHE, grouped

RECORDS = [("abc"[n % 3], "x", (n * 7) % 60 + n // 2) for n in range(60)]
WINDOWS = [
    tumbling(10, grace=5),
    hopping(10, 5, grace=5),
    sliding(10, grace=5),
    session(5, grace=5),
]


def topology(windows: TimeWindows | SlidingWindows | SessionWindows, mode: str) -> Topology:
    builder = StreamsBuilder()
    source: Any = grouped(builder)
    emit = "on_close" if mode == "on_close" else "on_update"
    counts = source.windowed_by(windows, emit=emit).count()
    if mode == "suppress":
        counts = counts.suppress(until_window_closes())
    counts.to_stream().map(lambda key, count: (str(key), str(count))).to("out", key=str, value=str)
    return builder.build()


def results(built: Topology, directory: Path | None, *, restarts: bool) -> list[tuple[str, str]]:
    with TopologyTestDriver(built, config=NO_CACHE, state_directory=directory) as driver:
        given = driver.create_input_topic("in", key=str, value=str)
        out = driver.create_output_topic("out", key=str, value=str)
        for number, (key, value, timestamp_ms) in enumerate(RECORDS):
            given.pipe_input(key, value, timestamp_ms)
            if restarts and number % 10 == 5:
                driver.restart()
        return out.read_key_values_to_list()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["on_update", "on_close", "suppress"])
@pytest.mark.parametrize("windows", WINDOWS)
def test_restarts_change_no_result(windows: Any, mode: str, tmp_path: Path) -> None:
    built = topology(windows, mode)
    expected = results(built, None, restarts=False)
    assert expected
    assert results(built, None, restarts=True) == expected
    assert results(built, tmp_path, restarts=True) == expected


@pytest.mark.parametrize("windows", WINDOWS)
def test_results_on_close_are_those_of_a_suppress(windows: Any) -> None:
    on_close = results(topology(windows, "on_close"), None, restarts=False)
    suppressed = results(topology(windows, "suppress"), None, restarts=False)
    assert sorted(on_close) == sorted(suppressed)
