"""Threads that maintain queries survive any error."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from broker.broker import Broker
from broker.clock import ManualClock, SystemClock
from broker.machine import Machine
from sql.engine.commands import Commands
from sql.engine.follower import RETRY, Follower
from sql.engine.launching import QueryLauncher
from sql.queries import SUPERVISOR_RETRY, AppRuntime, QueryState, RetryPolicy, Supervisor
from streams.topology import Topology
from tests.sql.engine.engines import (
    DEADLINE_MS,
    ORDERS,
    TOTALS,
    engine_of,
    status,
    until_rows,
)
from tests.support.peer import wait_until


class Failing:
    """Raises the first times that it is called."""

    def __init__(self, *, times: int) -> None:
        self.left = times
        self.calls = 0
        self.done = threading.Event()

    def __call__(self) -> None:
        self.calls += 1
        if self.left:
            self.left -= 1
            raise RuntimeError("nobody expected this")
        self.done.set()

    follow = __call__  # as Commands has it


def until(condition: Callable[[], bool], clock: ManualClock, wait_ms: int) -> None:
    """Let time pass until something is so."""

    def there() -> bool:
        clock.advance(wait_ms)
        return condition()

    wait_until(there, "the condition")


def test_an_action_that_raises_does_not_end_the_supervisor() -> None:
    clock = ManualClock()
    supervisor = Supervisor(clock)
    failing, other = Failing(times=3), threading.Event()
    supervisor.after(0, failing)
    supervisor.after(0, other.set)
    assert other.wait(DEADLINE_MS / 1_000), "other queries are looked after"
    assert supervisor.failure is not None
    assert "nobody expected this" in supervisor.failure
    until(failing.done.is_set, clock, SUPERVISOR_RETRY.max_ms)
    wait_until(lambda: supervisor.failure is None, "all is well again")
    assert failing.calls == 4, "it was tried again until it worked"
    supervisor.close()


def test_the_follower_goes_on_after_any_error() -> None:
    clock = ManualClock()
    failing = Failing(times=2)
    follower = Follower(cast(Commands, failing), clock)
    follower.start()
    until(lambda: follower.failure is not None, clock, RETRY.initial_ms)
    assert "nobody expected this" in str(follower.failure)
    until(failing.done.is_set, clock, RETRY.max_ms)
    until(lambda: follower.failure is None, clock, RETRY.max_ms)
    follower.close()


def test_a_query_whose_start_raises_anything_is_in_error_and_is_tried_again(
    broker: Broker, tmp_path: Path
) -> None:
    failing = Failing(times=1_000_000)

    def build() -> Topology:
        failing()
        raise AssertionError

    supervisor = Supervisor(SystemClock())
    runtime = AppRuntime(
        "app",
        build,
        target=broker,
        machine=Machine(),
        settings={"state_dir": str(tmp_path / "state")},
        supervisor=supervisor,
        retry=RetryPolicy(1, 1),
    )
    runtime.start()
    assert runtime.state is QueryState.ERROR
    assert "nobody expected this" in runtime.failures[0].message
    wait_until(lambda: failing.calls >= 3, "it is tried again")
    runtime.discard()
    supervisor.close()


@pytest.mark.slow
def test_the_status_says_that_commands_are_not_followed(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        assert engine.status.is_healthy
        engine._follower = Follower(engine.commands, ManualClock())
        engine._follower._failure = "cannot read the commands of other servers: why"
        assert not engine.status.is_healthy
        assert engine.status.degraded == "cannot read the commands of other servers: why"
        engine._follower = None


@pytest.mark.slow
def test_a_command_that_raises_anything_is_one_that_failed(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS)
        with monkeypatch.context() as patch:
            patch.setattr(QueryLauncher, "begin", lambda *_: Failing(times=1)())
            found = status(engine.execute(TOTALS)[0])
        assert found.command_status.status == "ERROR"
        assert "nobody expected this" in found.command_status.message
        [left] = engine.state.queries
        engine.execute(f"TERMINATE {left}; DROP TABLE totals;")
        engine.execute(TOTALS)
        engine.execute("INSERT INTO orders VALUES ('a', 'x', 1);")
        until_rows(engine, "SELECT * FROM totals;", [("a", 1)])


@pytest.mark.slow
def test_settings_of_streams_reach_queries_and_others_are_warned_of(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {
        "ksql__streams__max__request__size": "2000000",
        "ksql__streams__fetch__max__bytes": "300000",
        "ksql__streams__consumer__max__poll__records": "17",
        "ksql__streams__isolation__level": "read_committed",
        "ksql__streams__application__id": "mine",
    }
    with engine_of(broker, tmp_path, **cast(Any, settings)) as engine:
        engine.execute(ORDERS + TOTALS)
        engine.execute("INSERT INTO orders VALUES ('a', 'x', 1);")
        until_rows(engine, "SELECT * FROM totals;", [("a", 1)])
    assert 'setting "isolation.level" has no effect' in caplog.text
    assert 'setting "application.id" has no effect' in caplog.text
