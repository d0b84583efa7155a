"""Source tasks at least once: records into topics, and offsets after them."""

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import pytest

from broker import Broker
from broker.client import admin
from broker.client.produced_batch import Delivery
from broker.clock import ManualClock
from connect.errors import RetriableError
from connect.records import Header, SourceRecord
from connect.state.task_state import TargetState
from tests.connect.running_worker import RunningWorker, make_topic, running_worker, string_values
from tests.connect.scripted import Batch, ScriptedSourceTask, SourceScript
from tests.support.peer import wait_until
from tests.support.topics import read_topic

pytestmark = pytest.mark.slow

INTEGERS = "connect.converters.primitives:IntegerConverter"
STRINGS = "connect.converters.primitives:StringConverter"


def row(number: int, value: object = None, *, file: str = "a", topic: str = "out") -> SourceRecord:
    return SourceRecord({"file": file}, {"line": number}, topic, value=value or f"v{number}")


def wait_written(worker: RunningWorker, count: int, name: str = "src") -> None:
    metric = "source-record-write-total"
    wait_until(lambda: worker.value(name, metric) == count, f"{count} written")


def test_records_are_written_in_their_order_and_offsets_stored_at_the_end(broker: Broker) -> None:
    with running_worker(broker) as worker:
        script, statuses = worker.source()
        script.feed([row(1), row(2)], [row(3)])
        wait_written(worker, 3)
        worker.stop("src")
        assert string_values(broker, "out") == ["v1", "v2", "v3"]
        assert worker.stored("src", file="a") == {"line": 3}
        assert statuses.seen == ["startup", "shutdown"]
        assert script.log == ["started", "stopped"]
        assert worker.topics == {("src", "out")}


def test_all_parts_of_a_record_are_written(broker: Broker) -> None:
    make_topic(broker, "out", partitions=3)
    whole = SourceRecord(
        {},
        {},
        "out",
        partition=2,
        key="k",
        value="v",
        timestamp_ms=1234,
        headers=[Header("h", None, "x")],
    )
    with running_worker(broker, {"header.converter": STRINGS}) as worker:
        script, _ = worker.source()
        script.feed([whole, SourceRecord({}, {}, "out", partition=1, timestamp_ms=-1)])
        wait_written(worker, 2)
    bare, full = read_topic(broker, "out", committed=True)
    assert (full.partition, full.key, full.value, full.timestamp_ms) == (2, b"k", b"v", 1234)
    assert full.headers == (("h", b"x"),)
    assert (bare.key, bare.value, bare.headers) == (None, None, ())
    assert bare.timestamp_ms > 1_600_000_000_000


def test_a_new_task_goes_on_where_the_last_one_ended(broker: Broker) -> None:
    found: list[object] = []
    with running_worker(broker) as worker:
        script, _ = worker.source()
        script.feed([row(1), row(7, file="b")])
        wait_written(worker, 2)
        worker.stop("src")
        again = SourceScript()
        asked = [{"file": name} for name in ("b", "none", "a")]
        again.on_start = lambda task: found.extend(task.context.offset_reader.offsets(asked))
        _, statuses = worker.source(script=again)
        statuses.wait_for("startup")
    assert found == [{"line": 7}, None, {"line": 1}]


def test_offsets_are_stored_every_interval_even_while_a_poll_waits(broker: Broker) -> None:
    clock, free = ManualClock(), threading.Event()

    def wait_at_the_second(task: ScriptedSourceTask, batch: Batch) -> None:
        if batch == [row(2)]:
            free.wait(30)

    script = SourceScript()
    script.on_poll = wait_at_the_second
    with running_worker(broker, clock=clock) as worker:
        worker.source(script=script)
        script.feed([row(1)], [row(2)])

        def stored() -> bool:
            clock.advance(10_000)
            return worker.stored("src", file="a") == {"line": 1}

        wait_until(stored, "the offset of the first record")
        assert script.commits == 0
        free.set()
        wait_until(lambda: script.commits > 0, "commit of the task, in its own thread")


def test_one_blocked_producer_does_not_delay_the_offsets_of_other_tasks(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, free, blocked = ManualClock(), threading.Event(), threading.Event()
    waiting = threading.Semaphore(0)

    def wait_at_the_second(task: ScriptedSourceTask, batch: Batch) -> None:
        if batch == [row(2)]:
            waiting.release()
            free.wait(600)

    with running_worker(broker, clock=clock) as worker, ExitStack() as at_the_end:
        at_the_end.callback(free.set)
        send = worker.offsets.send

        def send_or_block(connector: str, *args: Any) -> Sequence[Delivery]:
            if connector == "blocked":
                blocked.set()
                free.wait(600)
            return send(connector, *args)

        monkeypatch.setattr(worker.offsets, "send", send_or_block)
        for name in ("blocked", "other"):
            script = SourceScript()
            script.on_poll = wait_at_the_second
            worker.source(name, script=script)
            script.feed([row(1)], [row(2)])
            assert waiting.acquire(timeout=60)  # its own thread stores no offsets any more

            def reached(name: str = name) -> bool:
                clock.advance(10_000)
                if name == "blocked":
                    return blocked.is_set()
                return worker.stored(name, file="a") == {"line": 1}

            wait_until(reached, f"offsets of {name}")


def test_the_task_is_notified_of_every_record_and_of_stored_offsets(broker: Broker) -> None:
    clock = ManualClock()
    with running_worker(broker, {"offset.flush.interval.ms": "5000"}, clock) as worker:
        script, _ = worker.source(
            value_converter=INTEGERS, errors_tolerance="all", producer_override_linger_ms="0"
        )
        first, bad = row(1, 7), row(2, "no number")
        script.feed([first, bad])
        wait_until(lambda: len(script.committed) == 2, "both notified")
        assert [record for record, _ in script.committed] == [first, bad]
        metadata, nothing = (metadata for _, metadata in script.committed)
        assert metadata is not None
        assert (metadata.topic, metadata.partition, metadata.offset) == ("out", 0, 0)
        assert nothing is None
        before = script.commits
        clock.advance(5_000)
        wait_until(lambda: script.commits > before, "commit")
        assert worker.value("src", "offset-commit-success-percentage") == 1


def test_a_retriable_error_of_a_poll_is_polled_again(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    with running_worker(broker) as worker:
        script, statuses = worker.source()
        script.feed(RetriableError("database away"), [row(1)])
        wait_written(worker, 1)
        assert statuses.seen == ["startup"]
    assert "task src-0 cannot poll, will retry: database away" in caplog.text


def test_any_other_error_fails_the_task_after_what_was_written_is_stored(broker: Broker) -> None:
    with running_worker(broker) as worker:
        script, statuses = worker.source()
        script.feed([row(1), row(2)], ZeroDivisionError("in the middle"))
        statuses.wait_for("failure")
        assert statuses.seen == ["startup", "failure"]
        assert "ZeroDivisionError: in the middle" in statuses.trace
        assert "scripted.py" in statuses.trace
        assert worker.stored("src", file="a") == {"line": 2}
        assert string_values(broker, "out") == ["v1", "v2"]
        assert script.log == ["started", "stopped"]


def test_a_task_that_cannot_start_fails_with_its_trace(broker: Broker) -> None:
    script = SourceScript()

    def refuse(task: ScriptedSourceTask) -> None:
        raise PermissionError("no such user")

    script.on_start = refuse
    with running_worker(broker) as worker:
        _, statuses = worker.source(script=script)
        statuses.wait_for("failure")
        assert "PermissionError: no such user" in statuses.trace
        assert script.log == ["stopped"]
        assert "millstream_connect_task_startup_failure_total 1" in worker.worker.metrics()


def test_a_record_that_is_not_tolerated_fails_the_task_behind_those_before_it(
    broker: Broker,
) -> None:
    with running_worker(broker) as worker:
        script, statuses = worker.source(value_converter=INTEGERS)
        script.feed([row(1, 7), row(2, "no number"), row(3)])
        statuses.wait_for("failure")
        assert "Tolerance exceeded in error handler" in statuses.trace
        assert len(read_topic(broker, "out", committed=True)) == 1
        assert worker.stored("src", file="a") == {"line": 1}


def test_tolerated_records_are_skipped_and_their_offsets_stored(broker: Broker) -> None:
    with running_worker(broker) as worker:
        script, statuses = worker.source(value_converter=INTEGERS, errors_tolerance="all")
        script.feed([row(1, 7), row(2, "no number"), row(3, "no number")])
        wait_until(lambda: worker.value("src", "total-records-skipped") == 2, "two skipped")
        worker.stop("src")
        assert worker.stored("src", file="a") == {"line": 3}
        assert len(read_topic(broker, "out", committed=True)) == 1
        assert statuses.seen == ["startup", "shutdown"]


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_a_record_that_the_broker_refuses_fails_the_task_unless_tolerated(
    broker: Broker, tolerance: str
) -> None:
    make_topic(broker, "out", max_message_bytes="2000")
    with running_worker(broker) as worker:
        script, statuses = worker.source(
            errors_tolerance=tolerance, producer_override_linger_ms="0"
        )
        script.feed([row(1)], [row(2, "x" * 5_000)], [row(3)], [row(4, "x" * 2_000_000)], [row(5)])
        if tolerance == "none":
            statuses.wait_for("failure")
            assert "Unrecoverable exception from producer send callback" in statuses.trace
            assert worker.stored("src", file="a") == {"line": 1}
        else:
            wait_written(worker, 3)
            worker.stop("src")
            assert string_values(broker, "out") == ["v1", "v3", "v5"]
            assert worker.stored("src", file="a") == {"line": 5}


def test_topics_are_made_as_the_connector_says(broker: Broker) -> None:
    with running_worker(broker) as worker:
        script, _ = worker.source(
            topic_creation_default_partitions="4", topic_creation_default_replication_factor="2"
        )
        script.feed([row(1), row(2, topic="other")])
        wait_written(worker, 2)
    with admin(broker) as administration:
        topics = administration.list_topics()
    assert (topics["out"].partitions, topics["other"].partitions) == (4, 4)


def test_a_worker_can_forbid_to_make_topics(broker: Broker) -> None:
    with running_worker(broker, {"topic.creation.enable": "false"}) as worker:
        script, _ = worker.source(
            topic_creation_default_partitions="4", topic_creation_default_replication_factor="1"
        )
        script.feed([row(1)])
        wait_written(worker, 1)
    with admin(broker) as administration:
        assert administration.list_topics()["out"].partitions == 1


def test_a_paused_task_is_not_polled_until_it_is_resumed(broker: Broker) -> None:
    with running_worker(broker) as worker:
        script, statuses = worker.source()
        statuses.wait_for("startup")
        worker.worker.set_target_state("src", TargetState.PAUSED)
        statuses.wait_for("paused")
        script.feed([row(1)])
        polls = script.polls
        worker.worker.set_target_state("src", TargetState.STARTED)
        statuses.wait_for("running")
        wait_written(worker, 1)
        assert polls < script.polls
        assert statuses.seen == ["startup", "paused", "running"]


def test_a_paused_task_can_be_stopped(broker: Broker) -> None:
    with running_worker(broker) as worker:
        _, statuses = worker.source()
        statuses.wait_for("startup")
        worker.worker.set_target_state("src", TargetState.PAUSED)
        statuses.wait_for("paused")
        worker.stop("src")
        assert statuses.seen == ["startup", "paused", "shutdown"]


def test_several_tasks_of_a_connector_write_side_by_side(broker: Broker) -> None:
    with running_worker(broker) as worker:
        scripts = [worker.source(task=number)[0] for number in range(3)]
        for number, script in enumerate(scripts):
            script.feed([row(line, file=str(number)) for line in range(1, 101)])
        metric = "source-record-write-total"
        wait_until(
            lambda: [worker.value("src", metric, n) for n in range(3)] == [100] * 3, "all written"
        )
        worker.worker.stop_tasks(worker.worker.tasks_of("src"))
        assert [worker.stored("src", file=str(number)) for number in range(3)] == [
            {"line": 100}
        ] * 3


def test_metrics_have_the_names_of_kafka(broker: Broker) -> None:
    with running_worker(broker) as worker:
        script, _ = worker.source()
        script.feed([row(1), row(2)], [row(3)])
        wait_written(worker, 3)
        assert worker.value("src", "source-record-poll-total") == 3
        assert worker.value("src", "batch-size-max") == 2
        assert worker.value("src", "source-record-active-count") == 0
        text = worker.worker.metrics()
    assert 'millstream_connect_source_record_write_total{connector="src",task="0"} 3.0\n' in text
    assert 'millstream_connect_task_status{connector="src",status="running",task="0"} 1.0\n' in text
