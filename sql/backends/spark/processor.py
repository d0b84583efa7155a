"""TaskProcessor: the tasks of a query as Spark's stateful operator, one group for each task."""

from collections.abc import Iterator
from typing import Any

import pandas
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from sql.backends.spark.task_work import OutputRecord, work_of
from streams.record import NO_HEADERS, Chunk, Headers
from streams.runtime.partitions import TaskId
from streams.state.paged import Pages

COLUMNS = ("topic", "partition", "timestamp", "key", "value", "headers")
OUTPUT = (
    "topic string, partition int, timestamp bigint, key binary, value binary, "
    "headers array<struct<name string, value binary>>"
)


class MapPages:
    """Pages in a MapState; see streams.state.paged.Pages."""

    def __init__(self, state: Any) -> None:
        """Of one group."""
        self._state = state

    def get(self, store: str, number: int) -> bytes | None:
        """A page; None when there is none."""
        found = self._state.getValue((store, number))
        return None if found is None else bytes(found[0])

    def put(self, store: str, number: int, page: bytes) -> None:
        """Keep a page."""
        self._state.updateValue((store, number), (page,))

    def remove(self, store: str, number: int) -> None:
        """Forget a page."""
        self._state.removeKey((store, number))


class TaskProcessor(StatefulProcessor):  # type: ignore[misc]  # Any: PySpark has no types here
    """Runs the records of a batch through a task; the group's key is the task's name.

    The rows have the columns of records.py, and `task`.
    """

    def __init__(self, job: str) -> None:
        """`job` is the text of a Job."""
        self._job = job

    # Any, here and below: what Spark gives and takes.
    def init(self, handle: Any) -> None:
        """Called before each batch."""
        self._pages = handle.getMapState("pages", "store string, number int", "page binary")

    def handleInputRows(
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,
    ) -> Iterator[Any]:
        """The records that one task writes in a batch."""
        yield _run(self._job, str(key[0]), pandas.concat(list(rows)), MapPages(self._pages))

    def close(self) -> None:
        """There is nothing to let go of: the task ends with its batch."""


class NoPages:
    """What tasks without stores keep between batches: nothing; see streams.state.paged.Pages."""

    def get(self, store: str, number: int) -> bytes | None:
        """None."""
        return None

    def put(self, store: str, number: int, page: bytes) -> None:
        """Forget it."""

    def remove(self, store: str, number: int) -> None:
        """There is none."""


def stateless_batches(job: str, batches: Iterator[Any]) -> Iterator[Any]:
    """What tasks without stores write; a batch may have records of several."""
    for batch in batches:
        for task, rows in batch.groupby("task", sort=False):
            yield _run(job, str(task), rows, NoPages())


def _run(job: str, name: str, rows: Any, pages: Pages) -> Any:
    """The records that a task writes when it reads some."""
    task = TaskId.parse(name)
    ordered = rows.sort_values(["topic", "offset"], kind="stable")
    chunks = [
        _chunk(str(topic), task.partition, part)
        for topic, part in ordered.groupby("topic", sort=False)
    ]
    written = work_of(job).run(task, chunks, pages)
    return pandas.DataFrame([_row(record) for record in written], columns=COLUMNS)


def _chunk(topic: str, partition: int, part: Any) -> Chunk:
    offsets = part["offset"].tolist()
    headers = None
    if "headers" in part.columns:
        found = [_headers(each) for each in part["headers"]]
        headers = found if any(found) else None
    return Chunk(
        topic,
        partition,
        offsets,
        part["timestamp"].tolist(),
        part["key"].tolist(),
        part["value"].tolist(),
        headers,
        offsets[-1] + 1,
    )


def _headers(found: Any) -> Headers:
    if found is None:
        return NO_HEADERS
    return tuple((each["name"], each["value"]) for each in found)


def _row(record: OutputRecord) -> tuple[object, ...]:
    headers = [{"name": name, "value": value} for name, value in record.headers]
    return (
        record.topic,
        record.partition,
        record.timestamp_ms,
        record.key,
        record.value,
        headers,
    )
