"""Many applications on shared threads, clients and reads: each as if it were alone."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from broker.broker import Broker
from broker.server import Server
from streams.app import AppState, OnFailure, SharedRuntime, StreamsApp
from streams.processor import NodeContext, Process
from streams.record import Headers
from streams.runtime.commit import FAULT_POINTS
from streams.topology import ProcessorNode, SinkNode, SourceNode, SubTopology, Topology
from tests.streams.runtime.apps import (
    DEADLINE_MS,
    TEXT,
    Reader,
    Upper,
    by_key,
    count_topology,
    expected_counts,
    make_topics,
    repartitioned_count_topology,
    upper_topology,
    write,
)
from tests.streams.runtime.test_exactly_once import BreakAt
from tests.support.peer import wait_until

pytestmark = pytest.mark.slow

ROWS = [(key, "x") for key in "abcdabca" * 25]
APPS = 30


@pytest.fixture
def shared(broker: Broker) -> Iterator[SharedRuntime]:
    runtime = SharedRuntime(broker)
    yield runtime
    runtime.close()


def app_of(
    topology: Topology, runtime: SharedRuntime, tmp_path: Path, name: str, **settings: Any
) -> StreamsApp:
    settings = {"state_dir": tmp_path / "state", "commit_interval_ms": 20, **settings}
    return StreamsApp(topology, application_id=name, broker=runtime, **settings)


def test_many_applications_read_a_topic_once_on_a_few_threads(
    broker: Broker, shared: SharedRuntime, tmp_path: Path
) -> None:
    outputs = [f"out-{number}" for number in range(APPS)]
    make_topics(broker, **{"in": 2}, **dict.fromkeys(outputs, 1))
    before = threading.active_count()
    with ExitStack() as running:
        apps = [
            running.enter_context(
                app_of(count_topology(sink=sink), shared, tmp_path, f"app-{sink}")
            )
            for sink in outputs
        ]
        for app in apps:
            assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        for start in range(0, len(ROWS), 50):
            write(broker, "in", ROWS[start : start + 50])
        for sink in outputs:
            reader = Reader(broker, sink)
            assert by_key(reader.until(len(ROWS))) == expected_counts(ROWS)
            reader.close()
        assert threading.active_count() - before < APPS
        counts = shared.clients.transports.counts
        assert counts.bytes_given > counts.bytes_read * APPS / 3


@pytest.mark.parametrize("point", FAULT_POINTS)
def test_commits_that_break_count_nothing_twice(
    broker: Broker, shared: SharedRuntime, tmp_path: Path, point: str
) -> None:
    make_topics(broker, **{"in": 2, "out": 2, "other": 2})
    exact: dict[str, Any] = {"processing_guarantee": "exactly_once_v2"}
    fault = BreakAt(point, 2)
    app = app_of(repartitioned_count_topology(), shared, tmp_path, "one", fault=fault, **exact)
    app.on_uncaught_exception(lambda error: OnFailure.REPLACE_RUNNER)
    beside = app_of(count_topology(sink="other"), shared, tmp_path, "two", **exact)
    with app, beside:
        for sink in ("out", "other"):
            reader = Reader(broker, sink)
            if sink == "out":
                for start in range(0, len(ROWS), 40):
                    write(broker, "in", ROWS[start : start + 40])
                    reader.until(start + 40)
            assert by_key(reader.until(len(ROWS))) == expected_counts(ROWS)
            reader.close()
        assert beside.error is None
    assert fault.has_broken


class Refuses:
    """Fails at every record."""

    def open(self, context: NodeContext) -> Process:
        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            raise ValueError("not this one")

        return process


def test_an_application_that_fails_does_not_disturb_the_others(
    broker: Broker, shared: SharedRuntime, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 2, "out": 2})
    nodes = (
        SourceNode("source", ("in",), key_serde=TEXT, value_serde=TEXT),
        ProcessorNode("refuses", Refuses(), ("source",)),
    )
    failing = app_of(Topology((SubTopology(0, nodes, ()),), {}), shared, tmp_path, "failing")
    with failing, app_of(upper_topology(), shared, tmp_path, "well") as well:
        write(broker, "in", ROWS)
        assert failing.wait_for(AppState.ERROR, timeout_ms=DEADLINE_MS)
        reader = Reader(broker, "out")
        assert len(reader.until(len(ROWS))) == len(ROWS)
        reader.close()
        assert well.error is None


def test_a_paused_application_goes_on_where_it_was(
    broker: Broker, shared: SharedRuntime, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 1, "out": 1, "other": 1})
    with (
        app_of(upper_topology(), shared, tmp_path, "one") as one,
        app_of(upper_topology(sink="other"), shared, tmp_path, "two"),
    ):
        reader, other = Reader(broker, "out"), Reader(broker, "other")
        write(broker, "in", ROWS[:10])
        reader.until(10)
        one.pause()
        write(broker, "in", ROWS[10:20])
        other.until(20)
        one.resume()
        assert len(reader.until(20)) == 20
        reader.close()
        other.close()


def two_inputs_topology() -> Topology:
    nodes = (
        SourceNode("source", ("in",), key_serde=TEXT, value_serde=TEXT),
        SourceNode("other", ("idle",), key_serde=TEXT, value_serde=TEXT),
        ProcessorNode("upper", Upper(), ("source", "other")),
        SinkNode("sink", "both", ("upper",), key_serde=TEXT, value_serde=TEXT),
    )
    return Topology((SubTopology(0, nodes, ()),), {})


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_an_input_that_has_nothing_new_does_not_keep_the_others_waiting(
    broker: Broker, shared: SharedRuntime, tmp_path: Path, guarantee: str
) -> None:
    """A fetch that has nothing to bring waits for an hour here: nobody may wait for its answer."""
    make_topics(broker, **{"in": 1, "idle": 1, "out": 1, "both": 1})
    settings: dict[str, Any] = {
        "processing_guarantee": guarantee,
        "main.consumer.fetch_max_wait_ms": 3_600_000,
    }
    reader, both = Reader(broker, "out"), Reader(broker, "both")
    write(broker, "in", ROWS)
    with app_of(upper_topology(), shared, tmp_path, "first", **settings):
        reader.until(len(ROWS))  # all of "in" has been read, and is kept for the next
        with app_of(two_inputs_topology(), shared, tmp_path, "second", **settings):
            assert len(both.until(len(ROWS))) == len(ROWS)
            for number in range(1, 6):
                write(broker, "in", ROWS)
                reader.until(len(ROWS) * (number + 1))
                assert len(both.until(len(ROWS) * (number + 1))) == len(ROWS) * (number + 1)
            write(broker, "idle", ROWS)
            assert len(both.until(len(ROWS) * 7)) == len(ROWS) * 7
    reader.close()
    both.close()


def test_two_runners_of_an_application_share_its_partitions(
    broker: Broker, shared: SharedRuntime, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 2, "out": 2})
    with app_of(count_topology(), shared, tmp_path, "pair", num_stream_threads=2) as app:
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)

        def tasks() -> list[int]:
            return [0 if each.tasks is None else len(each.tasks.snapshot) for each in app.runners]

        wait_until(lambda: tasks() == [1, 1], "a task for each runner")
        write(broker, "in", ROWS)
        reader = Reader(broker, "out")
        assert by_key(reader.until(len(ROWS))) == expected_counts(ROWS)
        reader.close()


def test_applications_share_a_way_to_a_broker_over_tcp(broker: Broker, tmp_path: Path) -> None:
    outputs = [f"out-{number}" for number in range(8)]
    make_topics(broker, **{"in": 2}, **dict.fromkeys(outputs, 1))
    with Server(broker, listeners=("PLAINTEXT://127.0.0.1:0",)) as server, ExitStack() as running:
        runtime = SharedRuntime(server.bootstrap)
        running.callback(runtime.close)
        for sink in outputs:
            exact = {"processing_guarantee": "exactly_once_v2"}
            topology = count_topology(sink=sink)
            running.enter_context(app_of(topology, runtime, tmp_path, f"app-{sink}", **exact))
        write(broker, "in", ROWS)
        for sink in outputs:
            reader = Reader(broker, sink)
            assert by_key(reader.until(len(ROWS))) == expected_counts(ROWS)
            reader.close()


def test_state_is_restored_by_an_application_that_starts_again(
    broker: Broker, shared: SharedRuntime, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 2, "out": 2})
    reader = Reader(broker, "out")
    for number, start in enumerate(range(0, len(ROWS), 50)):
        # Each has no local state: everything comes from the changelog.
        with app_of(count_topology(), shared, tmp_path / str(number), "again"):
            write(broker, "in", ROWS[start : start + 50])
            reader.until(start + 50)
    assert by_key(reader.until(len(ROWS))) == expected_counts(ROWS)
    reader.close()
