"""Exactly once: whatever breaks, and wherever, committed output is as if nothing had."""

import threading
from pathlib import Path
from typing import Any

import pytest

from broker.broker import Broker
from broker.client import admin
from streams.app import AppState, OnFailure, StreamsApp
from streams.runtime.commit import FAULT_POINTS
from streams.topology import Topology
from tests.streams.runtime.apps import (
    DEADLINE_MS,
    Reader,
    by_key,
    count_topology,
    expected_counts,
    make_topics,
    repartitioned_count_topology,
    write,
)
from tests.support.peer import wait_until

pytestmark = pytest.mark.slow

ROWS = [(key, "x") for key in "abcdabca" * 25]


class Broken(Exception):
    """What a test breaks a runner with."""


class BreakAt:
    """Raises at the n-th time that a point of a commit is passed, and then never again."""

    def __init__(self, point: str, times: int) -> None:
        self._point = point
        self._left = times

    @property
    def has_broken(self) -> bool:
        return self._left == 0

    def __call__(self, point: str) -> None:
        if point == self._point and self._left > 0:
            self._left -= 1
            if self._left == 0:
                raise Broken(point)


def exact_app(topology: Topology, broker: Broker, tmp_path: Path, **settings: Any) -> StreamsApp:
    settings = {
        "state_dir": tmp_path / "state",
        "processing_guarantee": "exactly_once_v2",
        "commit_interval_ms": 20,
        "heartbeat_interval_ms": 100,
        **settings,
    }
    return StreamsApp(topology, application_id="exact", broker=broker, **settings)


@pytest.mark.parametrize("point", FAULT_POINTS)
@pytest.mark.parametrize("times", [1, 3])
def test_a_runner_that_breaks_in_a_commit_is_replaced_and_nothing_counts_twice(
    broker: Broker, tmp_path: Path, point: str, times: int
) -> None:
    make_topics(broker, **{"in": 2, "out": 2})
    fault = BreakAt(point, times)
    app = exact_app(count_topology(), broker, tmp_path, fault=fault)
    app.on_uncaught_exception(lambda error: OnFailure.REPLACE_RUNNER)
    with app:
        reader = Reader(broker, "out")
        for start in range(0, len(ROWS), 40):
            write(broker, "in", ROWS[start : start + 40])
            reader.until(start + 40)
        assert by_key(reader.until(len(ROWS))) == expected_counts(ROWS)
        reader.close()
    assert fault.has_broken


@pytest.mark.parametrize("point", FAULT_POINTS)
def test_a_new_instance_goes_on_where_a_broken_one_has_committed(
    broker: Broker, tmp_path: Path, point: str
) -> None:
    make_topics(broker, **{"in": 2, "out": 2})
    write(broker, "in", ROWS[:100])
    fault = BreakAt(point, 2)
    broken = exact_app(count_topology(), broker, tmp_path, fault=fault)
    with broken:
        reader = Reader(broker, "out")
        reader.until(1)
        write(broker, "in", ROWS[100:])
        assert broken.wait_for(AppState.ERROR, timeout_ms=DEADLINE_MS)
    assert isinstance(broken.error, Broken)
    with exact_app(count_topology(), broker, tmp_path):
        assert by_key(reader.until(len(ROWS))) == expected_counts(ROWS)
    reader.close()


def test_two_sub_topologies_are_exact_together(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 2, "out": 2})
    fault = BreakAt("produced", 4)
    app = exact_app(repartitioned_count_topology(), broker, tmp_path, fault=fault)
    app.on_uncaught_exception(lambda error: OnFailure.REPLACE_RUNNER)
    with app:
        reader = Reader(broker, "out")
        write(broker, "in", ROWS)
        assert by_key(reader.until(len(ROWS))) == expected_counts(ROWS)
        reader.close()


class HoldAt:
    """Holds a runner at a point of its next commit, once it is armed, until it is let go."""

    def __init__(self, point: str) -> None:
        self._point = point
        self.armed = False
        self.held = threading.Event()
        self.let_go = threading.Event()

    def __call__(self, point: str) -> None:
        if self.armed and point == self._point:
            self.armed = False
            self.held.set()
            assert self.let_go.wait(DEADLINE_MS / 1000), "the test has let go"


@pytest.mark.parametrize("point", ["begun", "produced", "offsets sent"])
def test_an_instance_that_was_thought_dead_commits_nothing(
    broker: Broker, tmp_path: Path, point: str
) -> None:
    make_topics(broker, **{"in": 2, "out": 2})
    hold = HoldAt(point)
    late: dict[str, Any] = {"fault": hold, "consumer.max_poll_interval_ms": 300}
    late |= {"transaction_timeout_ms": 1000, "state_dir": tmp_path / "one"}
    with exact_app(count_topology(), broker, tmp_path, **late) as one:
        reader = Reader(broker, "out")
        write(broker, "in", ROWS[:80])
        reader.until(80)
        hold.armed = True
        write(broker, "in", ROWS[80:120])
        assert hold.held.wait(DEADLINE_MS / 1000)
        with exact_app(count_topology(), broker, tmp_path, state_dir=tmp_path / "two") as two:
            # The new owner waits for the transaction of the old one to end before it reads on.
            reader.until(120)
            hold.let_go.set()
            wait_until(lambda: one.runners[0].metrics.tasks_migrated_total > 0, "the loss")
            write(broker, "in", ROWS[120:])
            assert by_key(reader.until(len(ROWS))) == expected_counts(ROWS)
            assert two.error is None
        assert one.error is None
    reader.close()


def test_a_transaction_that_took_too_long_is_done_again(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 2, "out": 2})
    hold = HoldAt("produced")
    settings = {"fault": hold, "transaction_timeout_ms": 500}
    with exact_app(count_topology(), broker, tmp_path, **settings) as app:
        reader = Reader(broker, "out")
        write(broker, "in", ROWS[:80])
        reader.until(80)
        hold.armed = True
        write(broker, "in", ROWS[80:])
        assert hold.held.wait(DEADLINE_MS / 1000)
        with admin(broker) as administration:
            wait_until(
                lambda: (
                    {found.state for found in administration.list_transactions()}
                    == {"CompleteAbort"}
                ),
                "the end of the transaction",
            )
        hold.let_go.set()
        assert by_key(reader.until(len(ROWS))) == expected_counts(ROWS)
        assert app.runners[0].metrics.tasks_migrated_total > 0
    reader.close()
