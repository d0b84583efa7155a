"""The life of a runner, without what it runs."""

from collections.abc import Generator, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker.clock import ManualClock
from broker.errors import RequestTimeout
from broker.model import TopicPartition
from streams.runtime import runner as runner_module
from streams.runtime.environment import Environment
from streams.runtime.runner import TaskRunner
from streams.runtime.runner_loop import RunnerLoop
from streams.runtime.runner_metrics import RunnerMetrics
from streams.runtime.runner_state import OnFailure


class Loop:
    """Takes turns without end, or fails."""

    def __init__(self, environment: Environment, runner: TaskRunner) -> None:
        self.runner = runner

    def run(self) -> Iterator[int]:
        while not self.runner.stopping.is_set():
            yield 0
        raise ValueError("broken")

    def report_shutdown(self) -> None:
        raise ConnectionError("nobody hears it")

    def close(self) -> None:
        cast("list[str]", self.runner._config).append("closed")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(runner_module, "RunnerLoop", Loop)
    return []


def runner_of(told: list[str]) -> TaskRunner:
    # Any: the loop asks nothing of its environment.
    environment: Any = SimpleNamespace(config=told, clock=None)

    def on_error(runner: TaskRunner, error: BaseException) -> OnFailure:
        told.append(f"asked about {error}")
        return OnFailure.REPLACE_RUNNER

    return TaskRunner(
        "runner-1",
        environment,
        on_state=lambda runner, state: told.append(state.name),
        on_error=on_error,
        on_end=lambda runner, error, answer: told.append(f"ended by {error}: {answer}"),
    )


def test_a_runner_that_fails_is_closed_and_tells_why(told: list[str]) -> None:
    runner = runner_of(told)
    assert runner._run_once() == 0
    runner.stopping.set()
    assert runner._run_once() is None
    assert told == [
        "asked about broken",
        "closed",
        "DEAD",
        f"ended by broken: {OnFailure.REPLACE_RUNNER}",
    ]


def test_a_runner_that_is_dropped_with_its_threads_tells_nobody(told: list[str]) -> None:
    runner = runner_of(told)
    assert runner._run_once() == 0
    cast("Generator[int, None, None]", runner._iterations).close()  # as garbage collection does it
    assert told == []


@pytest.mark.parametrize(("rebalancing", "wait_ms"), [(False, 0), (True, 100)])
def test_a_commit_that_is_due_does_not_keep_a_runner_busy_while_its_group_rebalances(
    rebalancing: bool, wait_ms: int
) -> None:
    # Any: only what the wait depends on is there. A commit is refused during a rebalance, so a
    # runner that does not wait for the end of it would turn without end.
    loop: Any = object.__new__(RunnerLoop)
    owned = SimpleNamespace(
        needs_commit=True, running=lambda: SimpleNamespace(next_wall_clock_ms=1 << 62)
    )
    loop._clock = ManualClock(10_000)
    loop._commit_at_ms = 0
    loop._paused, loop._output_since_ms = False, None
    loop._restorer = SimpleNamespace(restoring=False)
    loop._tasks = SimpleNamespace(all_running=True, running=lambda: [owned])
    loop._assignor = SimpleNamespace(rebalancing=rebalancing)
    assert loop._wait_ms(100) == wait_ms


def test_summaries_count_since_the_last_one() -> None:
    metrics = RunnerMetrics()
    metrics.processed(5, 1)
    metrics.committed(1)
    assert metrics.since_last_summary() == [5, 0, 1]
    metrics.punctuated(2, 1)
    assert metrics.since_last_summary() == [0, 2, 0]


def test_a_broker_that_does_not_answer_puts_off_what_can_wait() -> None:
    """Outages shorter than task_timeout_ms end no runner, also while records are being purged."""

    def silent(*_: object) -> Any:
        raise RequestTimeout("not answered")

    tp = TopicPartition("counts-repartition", 0)
    # Any: only what purging and standbys depend on is there.
    loop: Any = object.__new__(RunnerLoop)
    loop._clock = ManualClock(10_000)
    loop._purge_at_ms = loop._slow_checks_at_ms = 0
    loop._probe_at_ms, loop._rejoin = None, False
    loop._config = SimpleNamespace(repartition_purge_interval_ms=5_000, log_summary_interval_ms=0)
    loop._tasks = SimpleNamespace(
        running=lambda: [SimpleNamespace(committed={tp: 7}, update_ends=lambda _: None)],
        standbys=lambda: ["standby"],
        report_standby_positions=lambda: None,
    )
    loop._environment = SimpleNamespace(
        layout=SimpleNamespace(repartition_topics={tp.topic: 1}),
        admin=SimpleNamespace(delete_records=silent),
        clean_directories=lambda: None,
    )
    loop._purge_when_due()
    assert loop._purge_at_ms == 15_000
    loop._metrics = SimpleNamespace(update_rates=lambda _: None)
    loop._restorer = SimpleNamespace(remaining=lambda: 0, source_partitions=lambda: [tp])
    loop._consumer = SimpleNamespace(committed=silent)
    loop._runner = SimpleNamespace(name="runner")
    loop._do_periodic_work()
    assert loop._slow_checks_at_ms > 10_000
