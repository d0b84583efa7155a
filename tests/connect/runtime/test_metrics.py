"""Metrics of tasks, by Kafka's names and as Prometheus reads them."""

from broker.clock import ManualClock
from connect.runtime.metrics import SinkMetrics, SourceMetrics, TaskMetrics
from connect.runtime.metrics_text import HELP, ConnectorMetrics, metrics_text
from connect.runtime.startup_counts import StartupCounts
from connect.state.task_state import TaskId


def test_a_source_counts_what_it_polls_writes_and_drops() -> None:
    metrics = SourceMetrics(ManualClock())
    metrics.polled(10, taken_ms=4)
    metrics.written(6, dropped=1)
    values = metrics.values()
    assert values["source-record-poll-total"] == 10
    assert values["source-record-write-total"] == 6
    assert values["source-record-active-count"] == 3
    assert values["source-record-active-count-max"] == 10
    assert values["poll-batch-avg-time-ms"] == 4


def test_a_sink_counts_what_it_reads_and_puts() -> None:
    metrics = SinkMetrics(ManualClock())
    metrics.read(10)
    metrics.put(7, taken_ms=3)
    metrics.commit_completed(2)
    values = metrics.values()
    assert values["sink-record-read-total"] == 10
    assert values["sink-record-send-total"] == 7
    assert values["sink-record-active-count"] == 3
    assert values["put-batch-max-time-ms"] == 3
    assert values["offset-commit-completion-total"] == 1
    assert values["offset-commit-max-time-ms"] == 2


def test_commits_that_fail_are_a_share_of_all() -> None:
    metrics = TaskMetrics(ManualClock())
    assert metrics.values()["offset-commit-failure-percentage"] == 0
    metrics.commit_failed()
    assert metrics.values()["offset-commit-failure-percentage"] == 1
    for _ in range(3):
        metrics.committed(5)
    assert metrics.values()["offset-commit-failure-percentage"] == 0.25
    assert metrics.values()["offset-commit-success-percentage"] == 0.75


def test_a_task_knows_which_share_of_its_time_it_was_paused() -> None:
    clock = ManualClock()
    metrics = TaskMetrics(clock)
    metrics.states.enter("running")
    clock.advance(3_000)
    metrics.states.enter("paused")
    clock.advance(1_000)
    assert metrics.values()["pause-ratio"] == 0.25
    assert metrics.values()["running-ratio"] == 0.75


def test_the_text_shows_all_that_is_counted_with_its_connector_and_task() -> None:
    clock = ManualClock()
    source = SourceMetrics(clock)
    source.states.enter("running")
    source.polled(3, taken_ms=1)
    source.errors.dead_letters = 2
    worker = {"connector-count": 1, **StartupCounts(2, 1, 1).values("task")}
    orders = ConnectorMetrics("orders", "running", "source", "a.b.OrdersConnector", "1.2")
    text = metrics_text(worker, [orders], {TaskId("orders", 0): source})
    labels = 'connector="orders",task="0"'
    status = "millstream_connect_task_status"
    assert f"millstream_connect_source_record_poll_total{{{labels}}} 3.0\n" in text
    assert f"millstream_connect_deadletterqueue_produce_requests{{{labels}}} 2.0\n" in text
    assert f'{status}{{connector="orders",status="running",task="0"}} 1.0\n' in text
    assert f'{status}{{connector="orders",status="failed",task="0"}} 0.0\n' in text
    assert 'millstream_connect_connector_running_task_count{connector="orders"} 1.0\n' in text
    assert "millstream_connect_task_startup_failure_percentage 0.5\n" in text
    assert "# TYPE millstream_connect_source_record_poll_total counter\n" in text
    assert "# TYPE millstream_connect_total_retries counter\n" in text
    assert "# TYPE millstream_connect_batch_size_max gauge\n" in text


def test_every_metric_is_explained() -> None:
    clock = ManualClock()
    for metrics in (SourceMetrics(clock), SinkMetrics(clock)):
        assert set(metrics.values()) <= set(HELP)
