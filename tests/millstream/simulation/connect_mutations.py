"""Mutations of Connect workers; see mutation.py."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from unittest.mock import patch

import orjson

from connect.herder.connector_supervisor import ConnectorSupervisor
from connect.records import SinkRecord
from connect.runtime.dead_letters import DeadLetters
from connect.runtime.sink.commit import SinkCommit
from connect.runtime.source.at_least_once import AtLeastOnce
from connect.runtime.source.exactly_once import ExactlyOnce
from connect.runtime.source.runner import SourceRunner
from connect.runtime.worker import Worker
from connect.runtime.worker_group import WorkerGroup
from connect.state.config_store import ConfigStore
from connect.state.offsets import SourceOffset
from connect.state.task_state import TargetState
from tests.millstream.simulation.mutation import mutation

RIVAL = ("connect", "rival worker")
AFTER_AN_ANSWER = "end after an answer"
AFTER_A_COMMIT = ("connect", "end after a commit")


@mutation("5: a record whose dead letter is refused is skipped", needs="connect", found_in=5)
def skipped_letters() -> Iterator[None]:
    def failed(letters: DeadLetters, failure: Any, report: Any, error: BaseException) -> None:
        letters._counts.dead_letter_failures += 1
        report.set_exception(error)

    with patch.object(DeadLetters, "_failed", failed):
        yield


@mutation("6: a second worker of a group is not refused", needs=RIVAL, found_in=18)
def second_workers() -> Iterator[None]:
    with patch.object(WorkerGroup, "join", lambda group, worker: None):
        yield


@mutation(
    "9: what a converter leaves out of many records is not missed", needs="connect", found_in=1
)
def short_columns() -> Iterator[None]:
    def of_columns(kind: type[SinkRecord], *columns: Any) -> list[Any]:
        return list(map(partial(tuple.__new__, kind), zip(*columns, strict=False)))

    with patch.object(SinkRecord, "of_columns", classmethod(of_columns)):
        yield


@mutation("offsets of a sink are committed before it has flushed", needs="connect", found_in=1)
def early_commits() -> Iterator[None]:
    real = SinkCommit._offered

    def offered(commit: SinkCommit, partitions: Any) -> Any:
        put = commit._offsets.put_of(partitions)
        try:
            real(commit, partitions)
        except Exception:
            return put
        return put

    with patch.object(SinkCommit, "_offered", offered):
        yield


@mutation(
    "a configuration is acknowledged before it is in the topic",
    needs=("connect", AFTER_AN_ANSWER),
    found_in=3,
)
def early_configurations() -> Iterator[None]:
    def write(store: ConfigStore, records: Sequence[tuple[str, object]]) -> None:
        for key, value in records:
            store._apply_value(key, value)
            if store._topic is not None:
                data = None if value is None else orjson.dumps(value)
                store._topic.send(key.encode(), data)

    with patch.object(ConfigStore, "_write", write):
        yield


@mutation("offsets of a source are stored after its transaction", needs=AFTER_A_COMMIT, found_in=9)
def late_offsets() -> Iterator[None]:
    real = ExactlyOnce._commit

    def commit(delivery: ExactlyOnce) -> None:
        setup = delivery._setup
        found = [SourceOffset(*each) for each in delivery._offsets.values()]
        delivery._offsets = {}
        real(delivery)
        setup.offsets.save(setup.task_id.connector, found)

    with patch.object(ExactlyOnce, "_commit", commit):
        yield


@mutation("a paused connector goes on", needs="connect", found_in=3)
def deaf_tasks() -> Iterator[None]:
    def set_target_state(worker: Worker, name: str, target: TargetState) -> None:
        if target is not TargetState.PAUSED:
            real(worker, name, target)

    real = Worker.set_target_state
    with patch.object(Worker, "set_target_state", set_target_state):
        yield


@mutation("a paused connector goes on after a restart of the worker", needs="connect", found_in=16)
def forgotten_pauses() -> Iterator[None]:
    real = Worker.start_task

    def start_task(worker: Worker, *given: Any) -> None:
        task_id, connector, task, listener, _, *rest = given
        real(worker, task_id, connector, task, listener, TargetState.STARTED, *rest)

    with patch.object(Worker, "start_task", start_task):
        yield


@mutation("the tasks of a deleted connector go on", needs="connect", found_in=3)
def left_tasks() -> Iterator[None]:
    real = ConnectorSupervisor._remove

    def remove(supervisor: ConnectorSupervisor) -> None:
        supervisor._tasks.clear()
        real(supervisor)

    with patch.object(ConnectorSupervisor, "_remove", remove):
        yield


@mutation("a sink task spins while a commit is under way", needs="connect", found_in=39)
def busy_commits() -> Iterator[None]:
    def due_in_ms(commit: SinkCommit) -> int:
        return max(0, commit._next_ms - commit._clock.monotonic_ms())

    with patch.object(SinkCommit, "due_in_ms", due_in_ms):
        yield


@mutation(
    "offsets of a source are stored before its records are acknowledged",
    needs=AFTER_A_COMMIT,
    found_in=404,
)
def early_offsets() -> Iterator[None]:
    def send(delivery: AtLeastOnce, records: Any, rows: Any) -> None:
        sent: list[Any] = []
        delivery._sender.send(rows, sent)
        with delivery._lock:
            delivery._submitted.submit(records[: len(sent)], [None] * len(sent))

    with patch.object(AtLeastOnce, "_send_rows", send):
        yield


@mutation(
    "a source task reads offsets before it has fenced the one before it", needs=RIVAL, found_in=80
)
def late_fences() -> Iterator[None]:
    def start(runner: SourceRunner) -> None:
        task = runner._setup.task
        task.context = runner._context
        task.start(runner._context.config)
        runner._start_ended = True
        runner._delivery.begin()
        if runner._setup.stop.is_set():
            runner.ask_to_stop()

    with patch.object(SourceRunner, "start", start):
        yield


@mutation("a task that failed is not started again", needs="connect", found_in=7)
def left_failures() -> Iterator[None]:
    real = ConnectorSupervisor._stop_tasks

    def stop_tasks(supervisor: ConnectorSupervisor, numbers: Sequence[int]) -> None:
        failed: Mapping[int, Any] = supervisor._parts.statuses.tasks(supervisor.name)
        real(supervisor, [n for n in numbers if n not in failed or failed[n].trace is None])

    with patch.object(ConnectorSupervisor, "_stop_tasks", stop_tasks):
        yield
