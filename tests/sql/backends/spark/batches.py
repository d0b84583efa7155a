"""A query in batches without Spark: topics as lists, tasks run on what they have not read yet."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from broker.client.partitioner import partition_for_key
from broker.model import TopicPartition
from sql.backends.spark.job import Job
from sql.backends.spark.task_work import TaskWork
from sql.planner import plan_to_json
from sql.planner.upgrades import upgraded
from streams.record import NO_HEADERS, Chunk
from streams.runtime.partitions import TaskId
from tests.sql.planner.session import Session
from tests.streams.state.test_paged import MemoryPages

PARTITIONS = 2
Input = tuple[str, str, str, int]  # topic, key, value, timestamp_ms
Output = tuple[bytes | None, bytes | None, int]  # key, value, timestamp_ms


@dataclass
class Batches:
    """The query that the last of some statements makes."""

    statements: str
    partitions: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        plan = Session().run(self.statements).plans[-1].plan
        topics = {topic: self.partitions.get(topic, PARTITIONS) for topic in _topics(plan)}
        job = Job("app", plan_to_json(plan), topics)
        self.work = TaskWork(Job.of_text(job.to_text()))
        self.counts = {**topics, **self.work.layout.partition_counts}
        self.logs: dict[TopicPartition, list[tuple[bytes | None, bytes | None, int]]] = {}
        self.read: dict[tuple[TaskId, TopicPartition], int] = {}
        self.pages: dict[TaskId, MemoryPages] = {}
        self.sink: str = getattr(plan, "topic")  # noqa: B009 - the plan of a persistent query

    def replace(self, statements: str) -> None:
        """Go on with the query that statements after the first ones make of this one."""
        plans = Session().run(f"{self.statements} {statements}").plans
        plan = upgraded(plans[-2].plan, plans[-1].plan)
        topics = {topic: self.partitions.get(topic, PARTITIONS) for topic in _topics(plan)}
        job = Job("app", plan_to_json(plan), topics)
        self.work = TaskWork(Job.of_text(job.to_text()))

    def feed(self, records: Iterable[Input]) -> None:
        """Write one batch of records, and run until nothing is left to read."""
        for topic, key, value, timestamp_ms in records:
            place = partition_for_key(key.encode(), self.counts[topic])
            log = self.logs.setdefault(TopicPartition(topic, place), [])
            log.append((key.encode(), value.encode() or None, timestamp_ms))
        while any(self._run(task) for task in self.work.layout.tasks()):
            pass

    def results(self) -> list[list[Output]]:
        """What was written, by partition."""
        return [
            self.logs.get(TopicPartition(self.sink, number), [])
            for number in range(self.counts[self.sink])
        ]

    def _run(self, task: TaskId) -> bool:
        chunks = []
        for tp in self.work.layout.inputs(task):
            begin = self.read.get((task, tp), 0)
            rows = self.logs.get(tp, [])[begin:]
            if rows:
                self.read[task, tp] = begin + len(rows)
                chunks.append(_chunk(tp, begin, rows))
        if not chunks:
            return False
        pages = self.pages.setdefault(task, MemoryPages())
        for record in self.work.run(task, chunks, pages):
            number = 0 if record.partition is None else record.partition
            log = self.logs.setdefault(TopicPartition(record.topic, number), [])
            log.append((record.key, record.value, record.timestamp_ms))
        return True


def _chunk(tp: TopicPartition, begin: int, rows: list[Output]) -> Chunk:
    keys, values, timestamps = zip(*rows, strict=True)
    offsets = range(begin, begin + len(rows))
    return Chunk(*tp, offsets, timestamps, keys, values, [NO_HEADERS] * len(rows), offsets[-1] + 1)


def _topics(plan: object) -> set[str]:
    """All topics that a plan names."""
    found: set[str] = set()
    waiting = [plan]
    while waiting:
        step = waiting.pop()
        topic = getattr(step, "topic", None)
        if isinstance(topic, str):
            found.add(topic)
        waiting += [
            child for name in ("input", "left", "right") if (child := getattr(step, name, None))
        ]
    return found
