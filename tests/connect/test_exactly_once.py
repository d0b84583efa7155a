"""Exactly-once sources: records and offsets in one transaction, zombies fenced."""

import pytest

from broker import Broker
from broker.client import admin, producer
from broker.clock import ManualClock
from connect.errors import ConnectError
from connect.records import SourceRecord
from connect.runtime.source.boundaries import ConnectorBoundary, TransactionEnd
from connect.state.task_state import TargetState, TaskId
from connect.stop_signal import TaskStopped
from tests.connect.running_worker import (
    OFFSETS,
    RunningWorker,
    Statuses,
    make_topic,
    running_worker,
    string_values,
)
from tests.connect.scripted import SOURCE, SOURCES, Batch, ScriptedSourceTask, SourceScript
from tests.support.peer import wait_until
from tests.support.topics import read_topic

pytestmark = pytest.mark.slow

ENABLED = {"exactly.once.source.support": "enabled"}
INTEGERS = "connect.converters.primitives:IntegerConverter"


def row(number: int, value: object = None) -> SourceRecord:
    return SourceRecord({"file": "a"}, {"line": number}, "out", value=value or f"v{number}")


def stored(worker: RunningWorker) -> object:
    return worker.stored("src", file="a")


def wait_stored(worker: RunningWorker, line: int) -> None:
    wait_until(lambda: stored(worker) == {"line": line}, f"offset {line} stored")


def test_every_poll_is_a_transaction_with_its_offsets(broker: Broker) -> None:
    with running_worker(broker, ENABLED) as worker:
        script, _ = worker.source()
        script.feed([row(1), row(2)], [row(3)])
        wait_stored(worker, 3)
        assert string_values(broker, "out") == ["v1", "v2", "v3"]
        wait_until(lambda: script.commits == 2, "two commits")
        metadata = [metadata for _, metadata in script.committed]
        assert [each and each.offset for each in metadata] == [0, 1, 3]  # 2 is a marker
        assert worker.value("src", "transaction-size-max") == 2
        assert worker.value("src", "transaction-size-min") == 1
        with admin(broker) as administration:
            (listing,) = administration.list_transactions()
        assert listing.transactional_id == "workers-src-0"


def test_with_interval_boundaries_many_polls_are_one_transaction(broker: Broker) -> None:
    clock = ManualClock()
    make_topic(broker, "out")
    with running_worker(broker, ENABLED, clock) as worker:
        script, _ = worker.source(
            transaction_boundary="interval", transaction_boundary_interval_ms="7000"
        )
        script.feed([row(1)], [row(2)])
        wait_until(lambda: len(string_values(broker, "out", committed=False)) == 2, "two sent")
        assert string_values(broker, "out") == []
        assert stored(worker) is None
        clock.advance(7_000)
        wait_stored(worker, 2)
        assert string_values(broker, "out") == ["v1", "v2"]
        assert worker.value("src", "transaction-size-max") == 2


def test_a_connector_can_end_transactions_itself(broker: Broker) -> None:
    script = SourceScript()

    def decide(task: ScriptedSourceTask, batch: Batch) -> None:
        transactions = task.context.transaction_context
        assert transactions is not None
        assert not isinstance(batch, Exception)
        match batch[0].source_offset["line"]:
            case 3:
                transactions.commit_transaction()
            case 4:
                transactions.abort_transaction(batch[1])
            case 7:
                transactions.commit_transaction(batch[0])

    script.on_poll = decide
    with running_worker(broker, ENABLED) as worker:
        worker.source(script=script, transaction_boundary="connector")
        script.feed([row(1)], [row(2)], [row(3)])
        wait_stored(worker, 3)
        assert string_values(broker, "out") == ["v1", "v2", "v3"]
        script.feed([row(4), row(5), row(6)])
        wait_stored(worker, 5)
        assert string_values(broker, "out") == ["v1", "v2", "v3"]
        script.feed([row(7), row(8)])
        wait_stored(worker, 7)
        assert string_values(broker, "out") == ["v1", "v2", "v3", "v6", "v7"]
        dropped = {record.source_offset["line"] for record, meta in script.committed if not meta}
        assert dropped == {4, 5}
        worker.stop("src")
        assert string_values(broker, "out") == ["v1", "v2", "v3", "v6", "v7"]
        assert stored(worker) == {"line": 7}


def test_a_connector_without_boundaries_of_its_own_has_no_transaction_context(
    broker: Broker,
) -> None:
    with running_worker(broker, ENABLED) as worker:
        script, statuses = worker.source()
        statuses.wait_for("startup")
        assert script.task.context.transaction_context is None


def test_a_boundary_cannot_commit_and_abort_at_once() -> None:
    boundary, record = ConnectorBoundary(), row(1)
    boundary.commit_transaction(record)
    with pytest.raises(ConnectError, match="both committed and aborted"):
        boundary.abort_transaction(record)
    assert boundary.after_record(row(1)) is TransactionEnd.NOT_YET  # equal, but another one
    assert boundary.after_record(record) is TransactionEnd.COMMIT
    assert boundary.after_record(record) is TransactionEnd.NOT_YET


def test_a_failed_task_leaves_nothing_to_be_seen(broker: Broker) -> None:
    with running_worker(broker, ENABLED) as worker:
        script, statuses = worker.source(transaction_boundary="interval")
        script.feed([row(1), row(2)])
        wait_until(lambda: worker.value("src", "source-record-poll-total") == 2, "polled")
        script.feed(ZeroDivisionError("in the middle"))
        statuses.wait_for("failure")
        assert string_values(broker, "out") == []
        assert stored(worker) is None
        again, _ = worker.source("src", task=1)
        again.feed([row(1), row(2)])
        wait_stored(worker, 2)
        assert string_values(broker, "out") == ["v1", "v2"]


def test_a_poll_that_fails_halfway_is_not_written_at_all(broker: Broker) -> None:
    with running_worker(broker, ENABLED) as worker:
        script, statuses = worker.source(value_converter=INTEGERS)
        script.feed([row(1, 7), row(2, "no number")])
        statuses.wait_for("failure")
        assert read_topic(broker, "out", committed=True) == []
        assert len(read_topic(broker, "out", committed=False)) <= 1
        assert stored(worker) is None


def test_tolerated_records_advance_offsets_even_alone(broker: Broker) -> None:
    with running_worker(broker, ENABLED) as worker:
        script, _ = worker.source(value_converter=INTEGERS, errors_tolerance="all")
        script.feed([row(1, "no number")])
        wait_stored(worker, 1)


def test_a_paused_task_has_no_transaction_open(broker: Broker) -> None:
    with running_worker(broker, ENABLED) as worker:
        script, statuses = worker.source(transaction_boundary="interval")
        script.feed([row(1)])
        wait_until(lambda: worker.value("src", "source-record-poll-total") == 1, "polled")
        worker.worker.set_target_state("src", TargetState.PAUSED)
        statuses.wait_for("paused")
        assert string_values(broker, "out") == ["v1"]
        assert stored(worker) == {"line": 1}


def test_a_stopped_task_commits_what_it_has_sent(broker: Broker) -> None:
    with running_worker(broker, ENABLED) as worker:
        script, _ = worker.source(transaction_boundary="interval")
        script.feed([row(1)])
        wait_until(lambda: worker.value("src", "source-record-poll-total") == 1, "polled")
        worker.stop("src")
        assert string_values(broker, "out") == ["v1"]
        assert stored(worker) == {"line": 1}


def test_a_zombie_cannot_commit_once_a_new_task_has_started(broker: Broker) -> None:
    """Two workers that both believe they have the task: the later one wins."""
    with running_worker(broker, ENABLED) as old, running_worker(broker, ENABLED) as new:
        zombie, old_statuses = old.source(transaction_boundary="interval")
        zombie.feed([row(1), row(2)])
        wait_until(lambda: old.value("src", "source-record-poll-total") == 2, "polled")
        script, new_statuses = new.source()
        new_statuses.wait_for("startup")
        script.feed([row(1, "new 1")])
        wait_stored(new, 1)
        old.worker.set_target_state("src", TargetState.PAUSED)  # which wants to commit
        old_statuses.wait_for("failure")
        assert "another task with the same transactional id has taken over" in old_statuses.trace
        script.feed([row(2, "new 2")])
        wait_stored(new, 2)
        assert string_values(broker, "out") == ["new 1", "new 2"]
        assert new_statuses.seen == ["startup"]


def test_a_new_task_does_not_wait_for_a_transaction_of_the_old_one(broker: Broker) -> None:
    """A worker that was killed leaves a transaction open: reading offsets must not hang."""
    with running_worker(broker, ENABLED) as worker:
        left = producer(broker, transactional_id="workers-src-0", linger_ms=0)
        left.init_transactions()
        left.begin_transaction()
        left.send(OFFSETS, b'{"line":99}', b'["src",{"file":"a"}]').result(5_000)
        found: list[object] = []
        script = SourceScript()
        script.on_start = lambda task: found.append(
            task.context.offset_reader.offset({"file": "a"})
        )
        _, statuses = worker.source(script=script)
        statuses.wait_for("startup")
        assert found == [None]
        left.close(0)


def test_a_connector_can_have_an_offsets_topic_of_its_own(broker: Broker) -> None:
    with running_worker(broker, ENABLED) as worker:
        plain, _ = worker.source()
        plain.feed([row(5)])
        wait_stored(worker, 5)
        worker.stop("src")
        found: list[object] = []
        script = SourceScript()
        script.on_start = lambda task: found.append(
            task.context.offset_reader.offset({"file": "a"})
        )
        worker.source(script=script, offsets_storage_topic="my-offsets")
        script.feed([row(6)])
        own = worker.worker.offset_store({"offsets.storage.topic": "my-offsets"})
        wait_until(lambda: own.get("src", [{"file": "a"}]) == [{"line": 6}], "stored there")
        assert found == [{"line": 5}]
        assert stored(worker) == {"line": 5}
        assert [entry.offset for entry in own.all_of("src")] == [{"line": 6}]


def test_a_task_may_not_write_to_its_own_offsets_topic(broker: Broker) -> None:
    with running_worker(broker, ENABLED) as worker:
        script, statuses = worker.source()
        script.feed([SourceRecord({}, {}, OFFSETS, value="x")])
        statuses.wait_for("failure")
        assert "may not produce to their own offsets topics" in statuses.trace


def test_a_task_that_is_fenced_cannot_commit_though_none_of_its_number_follows(
    broker: Broker,
) -> None:
    with running_worker(broker, ENABLED) as worker:
        zombie, statuses = worker.source(task=1, transaction_boundary="interval")
        zombie.feed([row(1), row(2)])
        wait_until(lambda: worker.value("src", "source-record-poll-total", 1) == 2, "polled")
        worker.worker.fence_tasks("src", {}, 2)
        worker.worker.set_target_state("src", TargetState.PAUSED)  # which wants to commit
        statuses.wait_for("failure")
        assert "another task with the same transactional id has taken over" in statuses.trace
        assert string_values(broker, "out") == []


def test_a_task_whose_work_others_have_by_now_does_not_start(broker: Broker) -> None:
    def confirm() -> None:
        raise TaskStopped("the tasks have changed")

    with running_worker(broker, ENABLED) as worker:
        key, statuses = "changed tasks", Statuses()
        SOURCES[key] = SourceScript()
        config = {"name": "src", "connector.class": SOURCE, "script": key}
        task = TaskId("src", 0)
        worker.worker.start_task(task, config, config, statuses, TargetState.STARTED, confirm)
        statuses.wait_for("shutdown")
        assert statuses.seen == ["shutdown"]
