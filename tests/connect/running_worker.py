"""A worker on a broker, with what tests ask of it."""

import tempfile
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from broker.client import admin, producer
from broker.client.administration.values import NewTopic
from broker.client.opening import Target
from broker.clock import Clock
from broker.model import TopicPartition
from connect.config.worker_config import WorkerConfig
from connect.plugins import Plugins
from connect.runtime.sink.runner import SinkRunner
from connect.runtime.worker import Worker
from connect.state.offsets import TopicOffsets
from connect.state.state_topic import StateTopic, TopicSpec
from connect.state.task_state import TargetState, TaskId
from tests.connect.scripted import SINK, SINKS, SOURCE, SOURCES, SinkScript, SourceScript
from tests.support.peer import wait_until
from tests.support.topics import read_topic

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
OFFSETS = "connect-offsets"
SETTINGS = {
    "key.converter": STRINGS,
    "value.converter": STRINGS,
    "group.id": "workers",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": OFFSETS,
    "offset.storage.partitions": "2",
    "status.storage.topic": "connect-status",
    "offset.flush.interval.ms": "60000",
    "connector.allowed.paths": tempfile.gettempdir(),
}


@dataclass
class Statuses:
    """A StatusListener that keeps everything."""

    seen: list[str] = field(default_factory=list)
    trace: str = ""

    def on_startup(self) -> None:
        self.seen.append("startup")

    def on_running(self) -> None:
        self.seen.append("running")

    def on_paused(self) -> None:
        self.seen.append("paused")

    def on_stopped(self) -> None:
        self.seen.append("stopped")

    def on_failure(self, trace: str) -> None:
        self.trace = trace
        self.seen.append("failure")

    def on_shutdown(self) -> None:
        self.seen.append("shutdown")

    def wait_for(self, status: str) -> None:
        wait_until(lambda: status in self.seen, f"status {status}, seen {self.seen} {self.trace}")


class RunningWorker:
    """A worker, its offsets, and shortcuts to start scripted tasks."""

    def __init__(
        self, target: Target, clock: Clock | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        self.target = target
        self.config = WorkerConfig.parse({**SETTINGS, **(settings or {})})
        self.offsets = TopicOffsets(StateTopic(target, TopicSpec(OFFSETS, 2, 1)))
        self.offsets.open()
        self.topics: set[tuple[str, str]] = set()
        self.worker = Worker(
            target,
            self.config,
            Plugins(modules=["tests"]),
            self.offsets,
            clock,
            lambda task, topic: self.topics.add((task.connector, topic)),
        )

    def source(
        self, name: str = "src", task: int = 0, script: SourceScript | None = None, **settings: str
    ) -> tuple[SourceScript, Statuses]:
        """Start a task of a scripted source; settings have underscores for dots."""
        script = script or SourceScript()
        key = str(uuid.uuid4())
        SOURCES[key] = script
        config = {"name": name, "connector.class": SOURCE, "script": key, **_dotted(settings)}
        statuses = Statuses()
        self.worker.start_task(TaskId(name, task), config, {"script": key}, statuses)
        return script, statuses

    def sink(
        self,
        name: str = "snk",
        task: int = 0,
        script: SinkScript | None = None,
        target: TargetState = TargetState.STARTED,
        **settings: str,
    ) -> tuple[SinkScript, Statuses]:
        """Start a task of a scripted sink; settings have underscores for dots."""
        script = script or SinkScript()
        key = str(uuid.uuid4())
        SINKS[key] = script
        config = {"name": name, "connector.class": SINK, "script": key, **_dotted(settings)}
        statuses = Statuses()
        self.worker.start_task(TaskId(name, task), config, {"script": key}, statuses, target)
        return script, statuses

    def stop(self, name: str, task: int = 0) -> None:
        self.worker.stop_tasks([TaskId(name, task)])

    def stored(self, name: str, **partition: object) -> Mapping[str, object] | None:
        """The stored offset of a partition of a source."""
        return self.offsets.get(name, [partition])[0]

    def value(self, name: str, metric: str, task: int = 0) -> float:
        return self.worker.task_metrics(TaskId(name, task)).get(metric, 0)

    def close(self) -> None:
        self.worker.close()
        self.offsets.close()


def _dotted(settings: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "."): value for name, value in settings.items()}


@contextmanager
def running_worker(
    target: Target, settings: Mapping[str, str] | None = None, clock: Clock | None = None
) -> Iterator[RunningWorker]:
    """A worker with these settings besides those above."""
    worker = RunningWorker(target, clock, settings)
    try:
        yield worker
    finally:
        worker.close()


def make_topic(target: Target, name: str, partitions: int = 1, **configs: str) -> None:
    with admin(target) as administration:
        administration.create_topics([NewTopic(name, partitions, 1, _dotted(configs))]).all()


def write(target: Target, topic: str, *values: str | None, partition: int = 0) -> None:
    """Write strings, None as tombstones."""
    with producer(target, linger_ms=0) as out:
        for value in values:
            data = None if value is None else value.encode()
            out.send(topic, data, b"k", partition=partition, timestamp_ms=1_000)


def string_values(target: Target, topic: str, *, committed: bool = True) -> list[str | None]:
    """The values of a topic as strings."""
    return [
        None if record.value is None else record.value.decode()
        for record in read_topic(target, topic, committed=committed)
    ]


def committed_offsets(target: Target, group_id: str) -> dict[TopicPartition, int]:
    with admin(target) as administration:
        found = administration.list_group_offsets(group_id)
        return {tp: position.offset for tp, position in found.values.items()}


class SinkTurns:
    """Counts the turns of sink tasks that are over."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        turn = SinkRunner.turn

        def counted(runner: SinkRunner) -> None:
            turn(runner)
            self.count += 1

        monkeypatch.setattr(SinkRunner, "turn", counted)

    def wait_for_more(self, more: int) -> None:
        wanted = self.count + more
        wait_until(lambda: self.count >= wanted, f"{more} more turns")
