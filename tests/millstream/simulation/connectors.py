"""A source and a sink for simulated Connect workers: numbers, and a list of those that came."""

from collections.abc import Mapping, Sequence

from connect.api import SinkConnector, SinkTask, SourceConnector, SourceTask
from connect.records import SinkRecord, SourceRecord

NUMBERS = "tests.millstream.simulation.connectors:NumberSource"
GATHERING = "tests.millstream.simulation.connectors:GatheringSink"
POLL_S = 0.5
BATCH = 3

# What sinks were given, by the name that their setting has: outside of all simulated processes.
GATHERED: dict[str, list[int]] = {}


class NumberSource(SourceConnector):
    """Emits the numbers from 0 up to, but not including, a last one; a few for each task."""

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    def task_class(self) -> type[SourceTask]:
        return NumberTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        names = ("topic", "count")
        given = {name: self._config[name] for name in names}
        return [{**given, "step": str(max_tasks), "first": str(n)} for n in range(max_tasks)]


class NumberTask(SourceTask):
    """Emits every so many numbers."""

    def start(self, config: Mapping[str, str]) -> None:
        self._topic, self._count = config["topic"], int(config["count"])
        self._first, self._step = int(config["first"]), int(config["step"])
        stored = self.context.offset_reader.offset({"first": self._first})
        self._next = self._first if stored is None else int(str(stored["next"]))

    def poll(self) -> Sequence[SourceRecord] | None:
        self.context.stopping().wait(POLL_S)
        found = range(self._next, self._count, self._step)[:BATCH]
        if not found:
            return None
        self._next = found[-1] + self._step
        return [
            SourceRecord(
                {"first": self._first}, {"next": n + self._step}, self._topic, value=str(n)
            )
            for n in found
        ]


class GatheringSink(SinkConnector):
    """Keeps what it is given."""

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    def task_class(self) -> type[SinkTask]:
        return GatheringTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{"into": self._config["into"]} for _ in range(max_tasks)]


class GatheringTask(SinkTask):
    """Adds numbers to a list."""

    def start(self, config: Mapping[str, str]) -> None:
        self._into = GATHERED[config["into"]]

    def put(self, records: Sequence[SinkRecord]) -> None:
        self._into.extend(int(str(record.value)) for record in records)
