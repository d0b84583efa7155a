"""Connectors of simulated workers: files of numbered lines are read, and a ledger is written.

Both systems are models that survive the worker. A source task reads some of two files, line by
line; each file has its own partition in the topic. Some lines cannot be written, and some written
ones cannot be read:

    1 17 tag-3               file, number, and the setting `tag` of the connector
    0 4 tag-3 unwritable     refused by the converter of the source
    1 9 tag-0 unreadable     refused by the converter or the transform of the sink

A ledger has what sink tasks have flushed; records that were only put are lost with the worker.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from broker.model import TopicPartition
from connect.api import (
    ExactlyOnceSupport,
    SinkConnector,
    SinkTask,
    SourceConnector,
    SourceTask,
    Transformation,
)
from connect.config_def import ConfigDef
from connect.data import ConnectSchema
from connect.errors import ConnectError, DataError, RetriableError
from connect.records import Header, Record, SinkRecord, SourceRecord

FILES = 2
UNWRITABLE, UNREADABLE = "unwritable", "unreadable"
LARGE = " large" * 400  # more than a small limit of the dead letter topic


@dataclass(slots=True)
class ExternalSystems:
    """The systems that connectors read and write, and the actions of connectors on them."""

    count: int  # of lines in each file
    large_letters: bool = False  # whether some unreadable lines are long
    now_us: Callable[[], int] = lambda: 0
    touched_ms: dict[str, int] = field(default_factory=dict)  # when a connector last did something
    delivered: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    # The offsets that a sink has returned for commits.
    offered: dict[tuple[str, TopicPartition], int] = field(default_factory=dict)
    puts: Counter[str] = field(default_factory=Counter)
    flushes: Counter[str] = field(default_factory=Counter)

    def line(self, file: int, number: int, tag: str) -> str:
        """A line of a file."""
        text = f"{file} {number} {tag}"
        if is_unwritable(number):
            return f"{text} {UNWRITABLE}"
        if number % 5 == 4 - file:
            return f"{text} {UNREADABLE}{LARGE * (self.large_letters and number % 4 == 1)}"
        return text

    def touch(self, connector: str) -> None:
        """Record that a connector does something."""
        self.touched_ms[connector] = self.now_us() // 1_000


# By the name in connector settings; outside of all simulated processes.
EXTERNAL_SYSTEMS: dict[str, ExternalSystems] = {}


def is_unwritable(number: int) -> bool:
    """Whether the source's converter refuses a line."""
    return number % 7 == 3


class LineSource(SourceConnector):
    """Reads the files, with one task or two."""

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    def task_class(self) -> type[SourceTask]:
        return LineTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Divide the files among the tasks."""
        tasks = min(max_tasks, FILES)
        names = ("name", "outside", "topic", "tag", "batch", "poll.ms")
        given = {name: self._config[name] for name in names}
        shares = [range(first, FILES, tasks) for first in range(tasks)]
        return [{**given, "files": " ".join(map(str, share))} for share in shares]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Supported, because offsets are line numbers."""
        return ExactlyOnceSupport.SUPPORTED


class LineTask(SourceTask):
    """Reads some of the files."""

    def start(self, config: Mapping[str, str]) -> None:
        """Continue after the stored offsets."""
        self._config = config
        self._external = EXTERNAL_SYSTEMS[config["outside"]]
        self._next: dict[int, int] = {}
        for file in map(int, config["files"].split()):
            stored = self.context.offset_reader.offset({"file": file})
            self._next[file] = 0 if stored is None else int(str(stored["next"]))

    def poll(self) -> Sequence[SourceRecord] | None:
        """Return a few lines of each file, after a delay."""
        if self.context.stopping().wait(int(self._config["poll.ms"]) / 1000):
            return None
        self._external.touch(self._config["name"])
        records = [
            SourceRecord(
                {"file": file},
                {"next": number + 1},
                self._config["topic"],
                partition=file,
                key=str(file),
                value=self._external.line(file, number, self._config["tag"]),
            )
            for file, first in self._next.items()
            for number in range(
                first, min(first + int(self._config["batch"]), self._external.count)
            )
        ]
        for each in records:
            self._next[int(str(each.source_partition["file"]))] = int(
                str(each.source_offset["next"])
            )
        return records


class LedgerSink(SinkConnector):
    """Writes the ledger of its name."""

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    def task_class(self) -> type[SinkTask]:
        return LedgerTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """All tasks are equal; the group assigns partitions."""
        names = ("name", "outside", "lazy", "tag")
        return [{name: self._config[name] for name in names} for _ in range(min(max_tasks, FILES))]


class LedgerTask(SinkTask):
    """Buffers records until they are flushed; a lazy one flushes one commit later."""

    def start(self, config: Mapping[str, str]) -> None:
        self._name = config["name"]
        self._is_lazy = config["lazy"] == "true"
        self._external = EXTERNAL_SYSTEMS[config["outside"]]
        self._held: list[tuple[TopicPartition, int, str]] = []
        self._before: dict[TopicPartition, int] = {}

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Buffer the records; sometimes the ledger is unavailable."""
        if not records:
            return
        self._external.touch(self._name)
        self._external.puts[self._name] += 1
        if self._external.puts[self._name] % 7 == 5:
            raise RetriableError("the ledger is away")
        self._held += [
            (
                TopicPartition(each.original_topic, each.original_partition),
                each.original_offset,
                str(each.value),
            )
            for each in records
        ]

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Flush, and return the offsets; sometimes this fails."""
        self._external.flushes[self._name] += 1
        if self._external.flushes[self._name] % 9 == 6:
            raise ConnectError("the ledger cannot be written")
        ends = self._before if self._is_lazy else dict(offsets)
        self._before = dict(offsets)
        ends = {tp: end for tp, end in ends.items() if tp in offsets}
        flushed = [each for each in self._held if each[1] < ends.get(each[0], 0)]
        self._held = [each for each in self._held if each[1] >= ends.get(each[0], 0)]
        self._external.delivered[self._name].update(value for _, _, value in flushed)
        for tp, end in ends.items():
            known = self._external.offered.get((self._name, tp), 0)
            self._external.offered[self._name, tp] = max(known, end)
        return ends

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        """Drop records that were not flushed."""
        gone = set(partitions)
        self._held = [each for each in self._held if each[0] not in gone]
        self._before = {tp: end for tp, end in self._before.items() if tp not in gone}


class LineConverter:
    """Lines as UTF-8; refuses those that contain its setting `refused`.

    If it is `short`, the methods for many values omit refused ones, like a converter with a defect:
    the worker must detect that some are missing.
    """

    @classmethod
    def config(cls) -> ConfigDef:
        """Its settings are not checked."""
        return ConfigDef()

    def configure(self, config: Mapping[str, object], is_key: bool) -> None:
        """Read the setting `refused`."""
        self._refused = str(config.get("refused", ""))
        self._is_short = config.get("short") == "true"

    def _refuses(self, text: str) -> bool:
        return bool(self._refused) and self._refused in text

    def from_connect_data(
        self,
        topic: str,
        headers: Sequence[Header],
        schema: ConnectSchema | None,
        value: object,
    ) -> bytes | None:
        """Encode a line."""
        if self._refuses(str(value)):
            raise DataError(f"refused: {str(value)[:40]}")
        return str(value).encode()

    def to_connect_data(
        self, topic: str, headers: Sequence[Header], data: bytes | None
    ) -> tuple[ConnectSchema | None, object]:
        """Decode a line."""
        text = (data or b"").decode()
        if self._refuses(text):
            raise DataError(f"refused: {text[:40]}")
        return None, text

    def from_connect_many(
        self, topic: str, schemas: Sequence[ConnectSchema | None], values: Sequence[object]
    ) -> Sequence[bytes | None]:
        """Encode many lines."""
        kept = [each for each in values if not (self._is_short and self._refuses(str(each)))]
        return [self.from_connect_data(topic, (), None, each) for each in kept]

    def to_connect_many(
        self, topic: str, data: Sequence[bytes | None]
    ) -> tuple[Sequence[ConnectSchema | None], Sequence[object]]:
        """Decode many lines."""
        texts = [(each or b"").decode() for each in data]
        if self._is_short:
            texts = [each for each in texts if not self._refuses(each)]
        elif any(map(self._refuses, texts)):
            raise DataError("refused: one of many")
        return [None] * len(texts), texts


class LineFilter(Transformation):
    """Refuses lines that cannot be read."""

    def apply(self, record: Record) -> Record | None:
        """Return the record, or raise DataError."""
        if UNREADABLE in str(record.value):
            raise DataError(f"refused: {str(record.value)[:40]}")
        return record
