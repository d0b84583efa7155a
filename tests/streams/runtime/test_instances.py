"""Several instances of one application: they share tasks, and go on for each other."""

from pathlib import Path
from typing import Any

import pytest

from broker.broker import Broker
from streams.app import AppState, OnFailure, StreamsApp
from streams.topology import Topology
from tests.streams.runtime.apps import (
    DEADLINE_MS,
    Reader,
    by_key,
    count_topology,
    expected_counts,
    make_topics,
    upper_topology,
    write,
)
from tests.support.peer import wait_until

pytestmark = pytest.mark.slow

ROWS = [(key, "x") for key in "abcdefgh" * 25]


def instance(
    topology: Topology, broker: Broker, tmp_path: Path, name: str, **settings: Any
) -> StreamsApp:
    settings = {
        "state_dir": tmp_path / name,
        "commit_interval_ms": 50,
        "heartbeat_interval_ms": 100,
        "application_server": f"{name}:80",
        **settings,
    }
    return StreamsApp(topology, application_id="shared", broker=broker, **settings)


def active(app: StreamsApp) -> set[int]:
    """The partitions of the counting sub-topology that run in an instance."""
    return {
        owned.task_id.partition
        for runner in app.runners
        if runner.tasks is not None
        for owned in runner.tasks.running()
    }


def standbys(app: StreamsApp) -> set[int]:
    return {
        owned.task_id.partition
        for runner in app.runners
        if runner.tasks is not None
        for owned in runner.tasks.standbys()
    }


def test_two_instances_share_the_tasks_and_one_takes_all_when_the_other_leaves(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 4, "out": 1})
    settings = {"processing_guarantee": "exactly_once_v2"}
    with instance(count_topology(), broker, tmp_path, "one", **settings) as one:
        reader = Reader(broker, "out")
        write(broker, "in", ROWS[:100])
        reader.until(100)
        with instance(count_topology(), broker, tmp_path, "two", **settings) as two:
            wait_until(lambda: len(active(one)) == len(active(two)) == 2, "an even share")
            assert active(one) | active(two) == {0, 1, 2, 3}
            wait_until(lambda: len(one.metadata("counts")) == 2, "metadata of both")
            write(broker, "in", ROWS[100:150])
            reader.until(150)
        wait_until(lambda: active(one) == {0, 1, 2, 3}, "the take-over")
        write(broker, "in", ROWS[150:])
        assert by_key(reader.until(200)) == expected_counts(ROWS)
        reader.close()


def test_a_standby_follows_and_takes_over_without_reading_everything_again(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 2, "out": 1})
    settings = {"num_standby_replicas": 1}
    one = instance(count_topology(), broker, tmp_path, "one", **settings)
    two = instance(count_topology(), broker, tmp_path, "two", **settings)
    with one, two:
        wait_until(lambda: len(active(one)) == len(active(two)) == 1, "an even share")
        wait_until(lambda: standbys(one) == active(two), "a standby")
        wait_until(lambda: standbys(two) == active(one), "the other standby")
        reader = Reader(broker, "out")
        write(broker, "in", ROWS)
        reader.until(len(ROWS))
        wait_until(lambda: all(lag.lag == 0 for lag in one.lags()), "no lag")
        before = one.runners[0].metrics.restored_records_total
        assert before > 0
        two.close()
        wait_until(lambda: active(one) == {0, 1}, "the take-over")
        assert one.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        assert one.runners[0].metrics.restored_records_total == before
        write(broker, "in", ROWS)
        assert by_key(reader.until(2 * len(ROWS))) == expected_counts(ROWS * 2)
        reader.close()


def test_a_task_with_much_state_moves_only_after_its_new_owner_has_warmed_up(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 2, "out": 1})
    settings = {"acceptable_recovery_lag": 0}
    with instance(count_topology(), broker, tmp_path, "one", **settings) as one:
        reader = Reader(broker, "out")
        write(broker, "in", ROWS)
        reader.until(len(ROWS))
        with instance(count_topology(), broker, tmp_path, "two", **settings) as two:
            wait_until(lambda: len(active(two)) == 1, "the hand-over")
            assert len(active(one)) == 1
            assert two.runners[0].metrics.restored_records_total > 0
            write(broker, "in", ROWS)
            assert by_key(reader.until(2 * len(ROWS))) == expected_counts(ROWS * 2)
        reader.close()


def test_runners_are_added_and_removed_while_the_application_runs(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, **{"in": 4, "out": 1})
    with instance(upper_topology(), broker, tmp_path, "one") as app:
        assert app.wait_for(AppState.RUNNING, timeout_ms=DEADLINE_MS)
        assert app.add_runner() == "runner-2"
        wait_until(
            lambda: [len(r.tasks.running()) for r in app.runners if r.tasks] == [2, 2],
            "an even share",
        )
        assert app.remove_runner() == "runner-2"
        wait_until(lambda: active(app) == {0, 1, 2, 3}, "all tasks in one runner")
        assert [runner.name for runner in app.runners] == ["runner-1"]


def test_an_error_in_one_instance_can_stop_all(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, **{"in": 2, "out": 1})

    def fault(point: str) -> None:
        raise RuntimeError("broken")

    one = instance(count_topology(), broker, tmp_path, "one", fault=fault)
    two = instance(count_topology(), broker, tmp_path, "two")
    one.on_uncaught_exception(lambda error: OnFailure.SHUTDOWN_APPLICATION)
    with one, two:
        wait_until(lambda: len(active(one)) == len(active(two)) == 1, "an even share")
        write(broker, "in", ROWS)
        assert one.wait_for(AppState.ERROR, timeout_ms=DEADLINE_MS)
        assert two.wait_for(AppState.ERROR, timeout_ms=DEADLINE_MS)
    assert str(one.error) == "broken"
    assert "asked the whole application to stop" in str(two.error)
