"""Small connectors that tests script, and that record their calls."""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence

from broker.client.api import RecordMetadata
from broker.model import TopicPartition
from connect.api import SinkConnector, SinkTask, SourceConnector, SourceTask
from connect.records import SinkRecord, SourceRecord

SOURCE = "tests.connect.scripted:ScriptedSource"
SINK = "tests.connect.scripted:ScriptedSink"

# What a poll does: gives records, or raises.
Batch = Sequence[SourceRecord] | Exception


class SourceScript:
    """What a source's tasks do; tests feed it, tasks take from it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._batches: list[Batch] = []
        self.polls = 0
        self.log: list[str] = []
        self.commits = 0
        self.committed: list[tuple[SourceRecord, RecordMetadata | None]] = []
        self.tasks: list[ScriptedSourceTask] = []
        self.on_start: Callable[[ScriptedSourceTask], None] = lambda task: None
        self.on_poll: Callable[[ScriptedSourceTask, Batch], None] = lambda task, batch: None
        self.task_count = 1

    def feed(self, *batches: Batch) -> None:
        with self._changed:
            self._batches += batches
            self._changed.notify_all()

    def take(self) -> Batch | None:
        with self._changed:
            self.polls += 1
            if not self._batches:
                self._changed.wait(0.02)
            return self._batches.pop(0) if self._batches else None

    @property
    def task(self) -> "ScriptedSourceTask":
        return self.tasks[-1]


class SinkScript:
    """What a sink's tasks do."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.batches: list[list[SinkRecord]] = []  # that were taken, without empty ones
        self.attempts: list[list[SinkRecord]] = []  # all of them, refused ones included
        self.errors: list[Exception] = []  # raised by the next puts of records
        self.on_put: Callable[[ScriptedSinkTask, Sequence[SinkRecord]], None] = lambda t, r: None
        self.on_open: Callable[[ScriptedSinkTask], None] = lambda task: None
        self.pre_commit: (
            Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int]] | None
        ) = None
        self.offered: list[Mapping[TopicPartition, int]] = []
        self.tasks: list[ScriptedSinkTask] = []

    @property
    def task(self) -> "ScriptedSinkTask":
        return self.tasks[-1]

    def values(self) -> list[object]:
        """Of all records that were taken, in their order."""
        return [record.value for batch in self.batches for record in batch]


SOURCES: dict[str, SourceScript] = {}
SINKS: dict[str, SinkScript] = {}


class ScriptedSource(SourceConnector):
    """The connector of a SourceScript, which its setting "script" names."""

    def start(self, config: Mapping[str, str]) -> None:
        self.script = SOURCES[config["script"]]
        self.script.log.append("connector started")
        self._config = dict(config)

    def task_class(self) -> type[SourceTask]:
        return ScriptedSourceTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        script = self._config["script"]
        return [{"script": script, "n": str(n)} for n in range(self.script.task_count)]

    def stop(self) -> None:
        self.script.log.append("connector stopped")


class ScriptedSourceTask(SourceTask):
    """A task of a SourceScript."""

    def start(self, config: Mapping[str, str]) -> None:
        self.script = SOURCES[config["script"]]
        self.script.tasks.append(self)
        self.script.on_start(self)
        self.script.log.append("started")

    def poll(self) -> Sequence[SourceRecord] | None:
        batch = self.script.take()
        if batch is None:
            return None
        self.script.on_poll(self, batch)
        if isinstance(batch, Exception):
            raise batch
        return batch

    def commit(self) -> None:
        self.script.commits += 1

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        self.script.committed.append((record, metadata))

    def stop(self) -> None:
        self.script.log.append("stopped")


class ScriptedSink(SinkConnector):
    """The connector of a SinkScript, which its setting "script" names."""

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    def task_class(self) -> type[SinkTask]:
        return ScriptedSinkTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{"script": self._config["script"]} for _ in range(max_tasks)]


class ScriptedSinkTask(SinkTask):
    """A task of a SinkScript."""

    def start(self, config: Mapping[str, str]) -> None:
        self.script = SINKS[config["script"]]
        self.script.tasks.append(self)
        self.script.log.append("started")

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        self.script.log.append(f"open {','.join(map(str, partitions))}")
        self.script.on_open(self)

    def put(self, records: Sequence[SinkRecord]) -> None:
        self.script.on_put(self, records)
        if not records:
            return
        self.script.attempts.append(list(records))
        if self.script.errors:
            raise self.script.errors.pop(0)
        self.script.batches.append(list(records))

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        self.script.offered.append(dict(offsets))
        if self.script.pre_commit is not None:
            return self.script.pre_commit(offsets)
        return super().pre_commit(offsets)

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.script.log.append("flush")

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        self.script.log.append(f"close {','.join(map(str, partitions))}")

    def stop(self) -> None:
        self.script.log.append("stopped")
