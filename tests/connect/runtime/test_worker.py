"""The worker: connectors and tasks, none of which is in the way of another."""

import threading
from collections.abc import Iterator, Mapping

import pytest

from broker import Broker
from connect.api import Connector
from connect.errors import AlreadyExists, ConnectError, NotFound
from connect.records import SourceRecord
from connect.state.task_state import TargetState, TaskId
from tests.connect.running_worker import (
    RunningWorker,
    Statuses,
    make_topic,
    running_worker,
    string_values,
    write,
)
from tests.connect.scripted import (
    SINK,
    SINKS,
    SOURCE,
    SOURCES,
    Batch,
    ScriptedSource,
    ScriptedSourceTask,
    SinkScript,
    SourceScript,
)
from tests.support.peer import wait_until

pytestmark = pytest.mark.slow

SHORT = {"task.shutdown.graceful.timeout.ms": "300"}


@pytest.fixture
def worker(broker: Broker) -> Iterator[RunningWorker]:
    """A worker that does not wait long for what does not stop."""
    with running_worker(broker, SHORT) as running:
        yield running


def start_connector(
    worker: RunningWorker,
    name: str = "src",
    *,
    target: TargetState = TargetState.STARTED,
    script: SourceScript | None = None,
    **settings: str,
) -> tuple[SourceScript, Statuses, threading.Event]:
    """Start a scripted source; the event is set when it wants other tasks."""
    SOURCES[name] = script or SourceScript()
    config = {"name": name, "connector.class": SOURCE, "script": name}
    config |= {key.replace("_", "."): value for key, value in settings.items()}
    statuses, wanted = Statuses(), threading.Event()
    worker.worker.start_connector(name, config, statuses, wanted.set, target)
    return SOURCES[name], statuses, wanted


def test_a_connector_cuts_its_tasks(worker: RunningWorker) -> None:
    script, statuses, _ = start_connector(worker, tasks_max="3")
    script.task_count = 2
    statuses.wait_for("startup")
    task = {"script": "src", "task.class": "tests.connect.scripted:ScriptedSourceTask"}
    assert worker.worker.connector_task_configs("src") == [
        {**task, "n": "0"},
        {**task, "n": "1"},
    ]
    assert worker.worker.stop_connector("src")
    assert not worker.worker.stop_connector("src")
    assert script.log == ["connector started", "connector stopped"]
    assert statuses.seen == ["startup", "shutdown"]


def test_tasks_of_a_sink_get_its_topics(worker: RunningWorker) -> None:
    SINKS["snk"] = SinkScript()
    config = {"connector.class": SINK, "script": "snk", "topics": "a,b", "tasks.max": "2"}
    worker.worker.start_connector("snk", config, Statuses(), lambda: None)
    configs = worker.worker.connector_task_configs("snk")
    assert [config["topics"] for config in configs] == ["a,b", "a,b"]


def test_more_tasks_than_allowed_are_refused_unless_that_is_switched_off(
    worker: RunningWorker, caplog: pytest.LogCaptureFixture
) -> None:
    script, _, _ = start_connector(worker, tasks_max="1")
    script.task_count = 2
    with pytest.raises(ConnectError, match="has generated 2 tasks, which is greater than 1"):
        worker.worker.connector_task_configs("src")
    worker.worker.stop_connector("src")
    script, _, _ = start_connector(worker, tasks_max="1", tasks_max_enforce="false")
    script.task_count = 2
    assert len(worker.worker.connector_task_configs("src")) == 2
    assert "has generated 2 tasks" in caplog.text


def test_a_connector_that_cannot_start_fails_with_its_trace(worker: RunningWorker) -> None:
    statuses = Statuses()
    config = {"connector.class": SOURCE, "script": "not there"}
    worker.worker.start_connector("bad", config, statuses, lambda: None)
    statuses.wait_for("failure")
    assert "KeyError: 'not there'" in statuses.trace
    with pytest.raises(ConnectError, match='connector "bad" has failed'):
        worker.worker.connector_task_configs("bad")
    assert worker.worker.stop_connector("bad")


def test_an_unknown_class_fails_the_connector(worker: RunningWorker) -> None:
    statuses = Statuses()
    worker.worker.start_connector("bad", {"connector.class": "no.Such"}, statuses, lambda: None)
    statuses.wait_for("failure")
    assert "no.Such" in statuses.trace


def test_a_connector_is_stopped_while_it_is_paused_and_started_again(
    worker: RunningWorker,
) -> None:
    script, statuses, _ = start_connector(worker)
    statuses.wait_for("startup")
    worker.worker.set_target_state("src", TargetState.PAUSED)
    statuses.wait_for("paused")
    worker.worker.set_target_state("src", TargetState.STARTED)
    statuses.wait_for("running")
    worker.worker.set_target_state("src", TargetState.STOPPED)
    statuses.wait_for("stopped")
    assert script.log == [
        "connector started",
        "connector stopped",
        "connector started",
        "connector stopped",
    ]


def test_a_connector_can_begin_paused_or_stopped(worker: RunningWorker) -> None:
    for target, status in ((TargetState.PAUSED, "paused"), (TargetState.STOPPED, "stopped")):
        script, statuses, _ = start_connector(worker, status, target=target)
        statuses.wait_for(status)
        assert script.log == []


def test_a_connector_can_ask_for_other_tasks_and_fail_itself(worker: RunningWorker) -> None:
    _, statuses, wanted = start_connector(worker)
    statuses.wait_for("startup")

    def misbehave(connector: Connector) -> None:
        connector.context.request_task_reconfiguration()
        connector.context.raise_error(OSError("found out later"))

    worker.worker.ask_connector("src", misbehave)
    assert wanted.is_set()
    statuses.wait_for("failure")
    assert "OSError: found out later" in statuses.trace


def test_a_connector_can_read_its_offsets(worker: RunningWorker) -> None:
    script, _ = worker.source("src")
    script.feed([SourceRecord({"file": "a"}, {"line": 3}, "out", value="x")])
    wait_until(lambda: worker.value("src", "source-record-write-total") == 1, "written")
    worker.stop("src")
    _, statuses, _ = start_connector(worker)
    statuses.wait_for("startup")
    partition: Mapping[str, object] = {"file": "a"}
    found = worker.worker.ask_connector(
        "src", lambda connector: connector.context.offset_reader.offset(partition)
    )
    assert found == {"line": 3}


def test_names_are_taken_once(worker: RunningWorker) -> None:
    start_connector(worker)
    with pytest.raises(AlreadyExists, match="Connector src already exists"):
        start_connector(worker)
    worker.source("other")
    with pytest.raises(ConnectError, match="Task already exists in this worker: other-0"):
        worker.source("other")
    with pytest.raises(NotFound):
        worker.worker.connector_task_configs("none")


class HangingSource(ScriptedSource):
    """Never starts."""

    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        FREE.wait(30)


FREE = threading.Event()


def test_a_connector_that_hangs_is_in_nobodys_way(
    worker: RunningWorker, caplog: pytest.LogCaptureFixture
) -> None:
    FREE.clear()
    SOURCES["hang"] = SourceScript()
    config = {"connector.class": f"{__name__}:HangingSource", "script": "hang"}
    hanging = Statuses()
    worker.worker.start_connector("hang", config, hanging, lambda: None)
    _, statuses, _ = start_connector(worker)
    statuses.wait_for("startup")
    assert len(worker.worker.connector_task_configs("src")) == 1
    assert worker.worker.stop_connector("hang")
    assert 'connector "hang" does not stop: its thread is abandoned' in caplog.text
    FREE.set()
    assert hanging.seen == []


def test_a_task_that_does_not_stop_is_left_to_itself_and_the_others_go_on(
    worker: RunningWorker, broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    free = threading.Event()
    stubborn = SourceScript()

    def hang(task: ScriptedSourceTask, batch: Batch) -> None:
        free.wait(30)

    stubborn.on_poll = hang
    _, hanging = worker.source("hang", script=stubborn)
    stubborn.feed([SourceRecord({}, {}, "out", value="from the dead")])
    script, statuses = worker.source("src")
    wait_until(lambda: stubborn.polls > 0, "the poll that hangs")
    worker.stop("hang")
    assert "task hang-0 does not stop: its thread is abandoned" in caplog.text
    script.feed([SourceRecord({}, {}, "out", value="alive")])
    wait_until(lambda: worker.value("src", "source-record-write-total") == 1, "written")
    _, restarted = worker.source("hang")
    restarted.wait_for("startup")
    free.set()
    wait_until(lambda: "stopped" in stubborn.log, "the old task ends")
    assert hanging.seen == ["startup"]
    assert statuses.seen == ["startup"]
    assert string_values(broker, "out") == ["alive"]


def test_a_sink_that_does_not_stop_gives_its_partitions_to_the_next(
    worker: RunningWorker, broker: Broker
) -> None:
    """Its consumer would hold them for max.poll.interval.ms, which is five minutes."""
    make_topic(broker, "in")
    write(broker, "in", "a")
    free, stubborn = threading.Event(), SinkScript()
    stubborn.on_put = lambda task, records: _wait(free) if records else None
    worker.sink("snk", script=stubborn, topics="in")
    wait_until(lambda: "open in-0" in stubborn.log, "assigned")
    wait_until(lambda: worker.value("snk", "sink-record-read-total") == 1, "the put that hangs")
    worker.stop("snk")
    script, _ = worker.sink("snk", topics="in")
    wait_until(lambda: script.values() == ["a"], "the record")
    free.set()
    wait_until(lambda: "stopped" in stubborn.log, "the old task ends")


def test_many_tasks_stop_at_the_same_time(worker: RunningWorker) -> None:
    for number in range(5):
        worker.source("src", number)
    worker.worker.stop_tasks(TaskId("src", number) for number in range(5))
    assert worker.worker.tasks_of("src") == []
    with pytest.raises(NotFound):
        worker.worker.task_metrics(TaskId("src", 0))


def test_wrong_settings_fail_a_task_with_their_names(worker: RunningWorker) -> None:
    _, wrong = worker.source("a", value_converter="no.Such")
    _, bad = worker.source("b", errors_tolerance="some")
    _, unknown = worker.source("c", producer_override_linger="5")
    for statuses, said in (
        (wrong, '"value.converter" is not a converter: "no.Such"'),
        (bad, "Invalid value some for configuration errors.tolerance"),
        (unknown, 'unknown setting "linger" of a producer'),
    ):
        statuses.wait_for("failure")
        assert said in statuses.trace


def test_the_worker_counts_starts(worker: RunningWorker) -> None:
    _, statuses, _ = start_connector(worker)
    statuses.wait_for("startup")
    _, bad = worker.source("bad", errors_tolerance="some")
    bad.wait_for("failure")
    text = worker.worker.metrics()
    assert "millstream_connect_connector_startup_success_total 1.0\n" in text
    assert "millstream_connect_task_startup_failure_total 1.0\n" in text
    assert "millstream_connect_connector_count 1.0\n" in text
    assert 'connector_class="tests.connect.scripted:ScriptedSource"' in text
    assert 'millstream_connect_connector_status{connector="src",status="running"} 1.0\n' in text


def test_closing_stops_everything(broker: Broker) -> None:
    with running_worker(broker) as worker:
        script, connector, _ = start_connector(worker)
        connector.wait_for("startup")
        _, task = worker.source("task")
        task.wait_for("startup")
    assert connector.seen == ["startup", "shutdown"]
    assert task.seen == ["startup", "shutdown"]
    assert script.log == ["connector started", "connector stopped"]


def _wait(event: threading.Event) -> None:
    assert event.wait(60)
