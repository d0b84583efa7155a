"""The life of a query on Spark, with a Spark that answers at once: starts, stops and failures."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.broker import Broker
from broker.client import admin
from broker.client.api import NewTopic, OffsetAndMetadata
from broker.clock import SystemClock
from broker.machine import Machine
from broker.model import TopicPartition
from sql.engine.bounded import run_bounded
from sql.engine.spark_failures import shown_failure
from sql.engine.spark_progress import SparkProgress, spark_progress
from sql.engine.spark_runtime import SparkParts, SparkRuntime
from sql.errors import SqlError
from sql.queries import QueryState, RetryPolicy, Supervisor
from tests.support.peer import wait_until

REPORT = {
    "batchId": 7,
    "durationMs": {"triggerExecution": 250},
    "sources": [
        {
            "numInputRows": 30,
            "inputRowsPerSecond": 10.5,
            "processedRowsPerSecond": 120.0,
            "startOffset": '{"orders": {"0": 5, "1": 5}}',
            "endOffset": '{"orders": {"0": 20, "1": 20}}',
            "latestOffset": '{"orders": {"0": 24, "1": 20}}',
        }
    ],
}


class FakeQuery:
    """What SparkRuntime asks of a SparkQuery."""

    def __init__(self) -> None:
        self.is_active = False
        self.error: str | None = None
        self.progress: dict[str, Any] = {}
        self.starts = self.stops = 0
        self.may_start = threading.Event()
        self.may_start.set()
        self.failure: Exception | None = None

    def start(self) -> None:
        self.starts += 1
        self.may_start.wait(30)
        if self.failure is not None:
            raise self.failure
        self.is_active = True

    def stop(self) -> None:
        self.stops += 1
        self.is_active = False


class Bench:
    """A runtime of one fake query."""

    def __init__(self, broker: Broker, folder: Path, *, bounded: bool = False) -> None:
        self.query = FakeQuery()
        self.supervisor = Supervisor(SystemClock())
        self.checkpoint = folder / "checkpoint"
        self.checkpoint.mkdir()
        build: Callable[[], Any] = lambda: self.query  # noqa: E731 - named for its type
        self.runtime = SparkRuntime(
            SparkParts("app", build, lambda: "", self.checkpoint, None, bounded),
            target=broker,
            machine=Machine(),
            supervisor=self.supervisor,
            retry=RetryPolicy(initial_ms=20, max_ms=20, failures_kept=3),
        )

    def until(self, state: QueryState) -> None:
        wait_until(lambda: self.runtime.state is state, f"{state}")


@pytest.fixture
def bench(broker: Broker, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(broker, tmp_path)
    yield made
    made.query.may_start.set()
    made.runtime.stop()
    made.supervisor.close()


def test_starting_a_query_does_not_wait_for_spark(bench: Bench) -> None:
    bench.query.may_start.clear()
    bench.runtime.start()
    assert bench.runtime.state is QueryState.CREATED
    assert not bench.runtime.wait_running(10)
    bench.query.may_start.set()
    assert bench.runtime.wait_running(30_000)
    bench.until(QueryState.RUNNING)


def test_a_query_that_is_stopped_while_it_starts_does_not_run(bench: Bench) -> None:
    bench.query.may_start.clear()
    bench.runtime.start()
    stopping = threading.Thread(target=bench.runtime.stop)
    stopping.start()
    bench.query.may_start.set()
    stopping.join(30)
    assert not stopping.is_alive()
    assert not bench.query.is_active
    assert bench.query.stops == 1


def test_a_query_resumed_before_its_pause_was_done_runs(bench: Bench) -> None:
    bench.query.may_start.clear()
    bench.runtime.start()
    pausing = threading.Thread(target=bench.runtime.pause)
    pausing.start()
    wait_until(lambda: bench.runtime.state is QueryState.PAUSED, "the pause")
    bench.runtime.resume()
    bench.query.may_start.set()
    pausing.join(30)
    wait_until(lambda: bench.query.is_active, "the query")
    assert bench.runtime.state is not QueryState.PAUSED


def test_pause_and_resume_stop_and_start_once(bench: Bench) -> None:
    bench.runtime.start()
    bench.until(QueryState.RUNNING)
    bench.runtime.pause()
    assert bench.runtime.state is QueryState.PAUSED
    assert (bench.query.starts, bench.query.stops) == (1, 1)
    bench.runtime.start()  # as after a replacement: a paused query stays so
    assert bench.query.starts == 1
    bench.runtime.resume()
    bench.until(QueryState.RUNNING)
    assert (bench.query.starts, bench.query.stops) == (2, 1)


def test_a_failure_at_the_start_is_reported_and_retried(bench: Bench) -> None:
    bench.query.failure = SqlError("topics do not exist: orders")
    bench.runtime.start()
    wait_until(lambda: len(bench.runtime.failures) > 1, "a second failure")
    assert bench.runtime.failures[0].message == "topics do not exist: orders"
    assert bench.runtime.failures[0].type.value == "USER"
    bench.query.failure = None
    bench.until(QueryState.RUNNING)


def test_a_query_that_spark_gives_up_starts_again(bench: Bench) -> None:
    bench.runtime.start()
    bench.until(QueryState.RUNNING)
    bench.query.error = "Job aborted"
    bench.query.is_active = False
    wait_until(lambda: bench.query.starts == 2, "the second start")
    assert [each.message for each in bench.runtime.failures] == ["Job aborted"]


def test_a_spark_that_does_not_answer_is_a_failure(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.runtime.start()
    bench.until(QueryState.RUNNING)

    def gone(query: object) -> bool:
        raise ConnectionRefusedError("nobody is there")

    with monkeypatch.context() as patched:
        patched.setattr(
            FakeQuery, "is_active", property(gone, lambda query, value: None), raising=False
        )
        wait_until(lambda: bool(bench.runtime.failures), "the failure")
    assert bench.runtime.failures[0].message == "Spark does not respond: nobody is there"


def test_what_a_query_leaves_is_discarded_without_starting_spark(bench: Bench) -> None:
    bench.runtime.discard()
    assert not bench.checkpoint.exists()
    assert bench.query.starts == 0


def test_progress_is_read_from_sparks_report(bench: Bench) -> None:
    assert bench.runtime.progress is None
    bench.runtime.start()
    bench.until(QueryState.RUNNING)
    bench.query.progress = REPORT
    found = bench.runtime.progress
    assert found is not None
    assert found == SparkProgress("spark", 7, 250, 30, 10.5, 120.0, 4)
    assert found.text == "batch 7 in 250 ms, 30 rows, 120 rows/s, 4 behind"


def test_a_report_over_connect_has_offsets_as_python_writes_them() -> None:
    sources = [{"endOffset": "{'a': {'0': 1}}", "latestOffset": "{'a': {'0': 4}}"}]
    found = spark_progress({"batchId": 0, "sources": sources})
    assert found is not None
    assert (found.offsets_behind, found.batch_duration_ms) == (3, 0)
    assert spark_progress({}) is None
    strange = [{"endOffset": "?", "latestOffset": None, "processedRowsPerSecond": float("nan")}]
    found = spark_progress({"batchId": 0, "sources": strange})
    assert found is not None
    assert (found.offsets_behind, found.processed_rows_per_second) == (None, 0.0)


def test_bounded_queries_run_when_it_is_their_turn_until_nothing_is_left(
    broker: Broker, tmp_path: Path
) -> None:
    bench = Bench(broker, tmp_path, bounded=True)
    bench.runtime.start()
    assert bench.query.starts == 0
    place = TopicPartition("orders", 0)
    with admin(broker) as administration:
        administration.create_topics([NewTopic("orders", partitions=1)]).all()

    def ended_at_once() -> None:
        bench.query.starts += 1
        with admin(broker) as administration:
            administration.reset_group_offsets("app", {place: -1}).all()

    bench.query.start = ended_at_once  # type: ignore[method-assign]
    reported: list[tuple[str, bool]] = []
    assert run_bounded(
        {"Q": bench.runtime},
        broker,
        on_progress=lambda name, progress, done: reported.append((name, done)),
        wait=lambda wait_ms: False,
    )
    assert (bench.query.starts, reported) == (1, [("Q", True)])
    bench.query.error = "Job aborted"
    with admin(broker) as administration:
        administration.delete_groups(["app"]).all()
    with pytest.raises(SqlError, match="query Q failed on Spark: Job aborted"):
        run_bounded({"Q": bench.runtime}, broker, on_progress=lambda *_: None, wait=lambda _: False)


def test_a_failure_is_reported_without_traces() -> None:
    java = "Job aborted due to stage failure\n\tat org.apache.X.run(X.scala:1)\n\t... 3 more\n"
    assert shown_failure(java) == "Job aborted due to stage failure"
    plan = "Python worker failed to connect back.\n=== Streaming Query ===\nIdentifier: x\nProject"
    assert shown_failure(plan) == "Python worker failed to connect back."
    python = (
        "[STREAM_FAILED] terminated with exception: Job aborted: Traceback (most recent call last):"
        '\n  File "log_ends.py", line 3, in lost\n    raise DataLost(\n'
        "sql.backends.spark.log_ends.DataLost: records were deleted before they were read: "
        "orders-0\n"
        "  hint: keep records longer\n"
        "\n\tat org.apache.spark.api.python.Runner.run(Runner.scala:10)\n"
    )
    assert shown_failure(python) == (
        "records were deleted before they were read: orders-0\n  hint: keep records longer"
    )


@pytest.mark.parametrize("fails", [False, True])
def test_a_dropped_query_leaves_neither_checkpoint_nor_marks(
    bench: Bench, broker: Broker, fails: bool
) -> None:
    place = {TopicPartition("any", 0): OffsetAndMetadata(1)}
    with admin(broker) as administration:
        administration.create_topics([NewTopic("any", 1), NewTopic("app-x-repartition", 1)]).all()
        for group in ("app", "app-spark-marker-0", "app-spark-marker-11", "application"):
            administration.alter_group_offsets(group, place).all()
    if fails:
        bench.query.failure = RuntimeError("Spark is gone")
    bench.runtime.start()
    bench.until(QueryState.ERROR if fails else QueryState.RUNNING)
    bench.runtime.discard()
    assert not bench.checkpoint.exists()
    with admin(broker) as administration:
        assert [each.group_id for each in administration.list_groups()] == ["application"]
        assert list(administration.list_topics()) == ["any"]
