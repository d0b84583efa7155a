"""Connectors of simulated workers: files of numbered lines are read, and a ledger is written.

Both systems are models that survive the worker. A source task reads some of two files, line by
line; each file has its own partition in the topic. Some lines cannot be written, some that were
written cannot be read:

    1 17 tag-3               file, number, and the setting `tag` of the connector
    0 4 tag-3 unwritable     refused by the converter of the source
    1 9 tag-0 unreadable     refused by the converter or the transform of the sink

A ledger keeps what a sink task has flushed; what was only put is lost when the worker dies.
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
class Outside:
    """The systems that connectors read and write, and what they have seen of connectors."""

    count: int  # of lines in each file
    large_letters: bool = False  # whether some unreadable lines are long
    now_us: Callable[[], int] = lambda: 0
    touched_ms: dict[str, int] = field(default_factory=dict)  # when a connector last did something
    delivered: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    # Up to which offset a sink has let partitions be committed.
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
        """A connector does something."""
        self.touched_ms[connector] = self.now_us() // 1_000


# By the name that settings of connectors have: outside of all simulated processes.
OUTSIDE: dict[str, Outside] = {}


def is_unwritable(number: int) -> bool:
    """Whether the source's converter refuses a line."""
    return number % 7 == 3


class LineSource(SourceConnector):
    """Reads the files, with one task or two."""

    def start(self, config: Mapping[str, str]) -> None:
        """Keep the settings."""
        self._config = dict(config)

    def task_class(self) -> type[SourceTask]:
        """Its tasks."""
        return LineTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Each task has every so many of the files."""
        tasks = min(max_tasks, FILES)
        names = ("name", "outside", "topic", "tag", "batch", "poll.ms")
        given = {name: self._config[name] for name in names}
        shares = [range(first, FILES, tasks) for first in range(tasks)]
        return [{**given, "files": " ".join(map(str, share))} for share in shares]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        """Offsets say which line is next."""
        return ExactlyOnceSupport.SUPPORTED


class LineTask(SourceTask):
    """Reads some of the files."""

    def start(self, config: Mapping[str, str]) -> None:
        """Go on after the lines whose offsets were stored."""
        self._config = config
        self._outside = OUTSIDE[config["outside"]]
        self._next: dict[int, int] = {}
        for file in map(int, config["files"].split()):
            stored = self.context.offset_reader.offset({"file": file})
            self._next[file] = 0 if stored is None else int(str(stored["next"]))

    def poll(self) -> Sequence[SourceRecord] | None:
        """A few lines of each file, after a while."""
        if self.context.stopping().wait(int(self._config["poll.ms"]) / 1000):
            return None
        self._outside.touch(self._config["name"])
        found = [
            SourceRecord(
                {"file": file},
                {"next": number + 1},
                self._config["topic"],
                partition=file,
                key=str(file),
                value=self._outside.line(file, number, self._config["tag"]),
            )
            for file, first in self._next.items()
            for number in range(first, min(first + int(self._config["batch"]), self._outside.count))
        ]
        for each in found:
            self._next[int(str(each.source_partition["file"]))] = int(
                str(each.source_offset["next"])
            )
        return found


class LedgerSink(SinkConnector):
    """Writes the ledger of its name."""

    def start(self, config: Mapping[str, str]) -> None:
        """Keep the settings."""
        self._config = dict(config)

    def task_class(self) -> type[SinkTask]:
        """Its tasks."""
        return LedgerTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """All tasks are equal; the group gives them partitions."""
        names = ("name", "outside", "lazy", "tag")
        return [{name: self._config[name] for name in names} for _ in range(min(max_tasks, FILES))]


class LedgerTask(SinkTask):
    """Holds records until they are flushed; a lazy one flushes them a commit later."""

    def start(self, config: Mapping[str, str]) -> None:
        """Nothing is held."""
        self._name = config["name"]
        self._is_lazy = config["lazy"] == "true"
        self._outside = OUTSIDE[config["outside"]]
        self._held: list[tuple[TopicPartition, int, str]] = []
        self._before: dict[TopicPartition, int] = {}

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Hold them; now and then the ledger is away."""
        if not records:
            return
        self._outside.touch(self._name)
        self._outside.puts[self._name] += 1
        if self._outside.puts[self._name] % 7 == 5:
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
        """Flush, and say up to where; now and then that fails."""
        self._outside.flushes[self._name] += 1
        if self._outside.flushes[self._name] % 9 == 6:
            raise ConnectError("the ledger cannot be written")
        ends = self._before if self._is_lazy else dict(offsets)
        self._before = dict(offsets)
        ends = {tp: end for tp, end in ends.items() if tp in offsets}
        flushed = [each for each in self._held if each[1] < ends.get(each[0], 0)]
        self._held = [each for each in self._held if each[1] >= ends.get(each[0], 0)]
        self._outside.delivered[self._name].update(value for _, _, value in flushed)
        for tp, end in ends.items():
            known = self._outside.offered.get((self._name, tp), 0)
            self._outside.offered[self._name, tp] = max(known, end)
        return ends

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        """What is not flushed is forgotten."""
        gone = set(partitions)
        self._held = [each for each in self._held if each[0] not in gone]
        self._before = {tp: end for tp, end in self._before.items() if tp not in gone}


class LineConverter:
    """Lines as UTF-8; it refuses those that have the text of its setting `refused`.

    Many at once it converts without those that it refuses if it is `short`, as if its author had
    not thought of it: the worker must see that some are missing.
    """

    @classmethod
    def config(cls) -> ConfigDef:
        """Its settings are not checked."""
        return ConfigDef()

    def configure(self, config: Mapping[str, object], is_key: bool) -> None:
        """Take what it refuses."""
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
        """The bytes of a line."""
        if self._refuses(str(value)):
            raise DataError(f"refused: {str(value)[:40]}")
        return str(value).encode()

    def to_connect_data(
        self, topic: str, headers: Sequence[Header], data: bytes | None
    ) -> tuple[ConnectSchema | None, object]:
        """The line of some bytes."""
        text = (data or b"").decode()
        if self._refuses(text):
            raise DataError(f"refused: {text[:40]}")
        return None, text

    def from_connect_many(
        self, topic: str, schemas: Sequence[ConnectSchema | None], values: Sequence[object]
    ) -> Sequence[bytes | None]:
        """The bytes of each line."""
        kept = [each for each in values if not (self._is_short and self._refuses(str(each)))]
        return [self.from_connect_data(topic, (), None, each) for each in kept]

    def to_connect_many(
        self, topic: str, data: Sequence[bytes | None]
    ) -> tuple[Sequence[ConnectSchema | None], Sequence[object]]:
        """The line of each."""
        texts = [(each or b"").decode() for each in data]
        if self._is_short:
            texts = [each for each in texts if not self._refuses(each)]
        elif any(map(self._refuses, texts)):
            raise DataError("refused: one of many")
        return [None] * len(texts), texts


class LineFilter(Transformation):
    """Refuses lines that cannot be read."""

    def apply(self, record: Record) -> Record | None:
        """The same record, or an error."""
        if UNREADABLE in str(record.value):
            raise DataError(f"refused: {str(record.value)[:40]}")
        return record
