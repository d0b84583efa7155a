"""Tasks of queries inside Spark: with stores as its stateful operator, without on Arrow batches.

A row has the columns of records.py, and `task`: the application's id and the task's, "app/0_3".
Tasks of several queries may run side by side; each has its own rows and its own state.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from sql.backends.spark.records import HEADERS_TYPE
from sql.backends.spark.task_work import OutputRecord, work_of
from sql.backends.spark.writing import binary_list
from streams.record import NO_HEADERS, Chunk, Headers
from streams.runtime.partitions import TaskId
from streams.state.paged import Pages

TASK = "task"
COLUMNS = ("topic", "partition", "timestamp", "key", "value", "headers")
OUTPUT = (
    "topic string, partition int, timestamp bigint, key binary, value binary, "
    "headers array<struct<name string, value binary>>"
)
TYPES = (pa.string(), pa.int32(), pa.int64(), pa.binary(), pa.binary(), HEADERS_TYPE)
SEPARATOR = "/"

# Any, here and below: what Spark, pandas and Arrow give and take has no types.


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


class TaskProcessor(StatefulProcessor):  # type: ignore[misc]
    """Runs the records of a batch through a task; the group's key is the task's name."""

    def __init__(self, jobs: Mapping[str, str]) -> None:
        """`jobs` are the texts of Jobs, by their applications' ids."""
        self._jobs = dict(jobs)

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
        name = str(key[0])
        ordered = pandas.concat(list(rows)).sort_values(["topic", "offset"], kind="stable")
        partition = _task_of(name).partition
        chunks = [
            _chunk(str(topic), partition, part)
            for topic, part in ordered.groupby("topic", sort=False)
        ]
        written = _run(self._jobs, name, chunks, MapPages(self._pages))
        yield pandas.DataFrame([_row(record) for record in written], columns=COLUMNS)

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


def stateless_batches(jobs: Mapping[str, str], batches: Iterable[Any]) -> Iterator[Any]:
    """What tasks without stores write, for Arrow batches; each may have records of several."""
    for batch in batches:
        for name, rows in _parts(batch, TASK):
            partition = _task_of(name).partition
            chunks = [_arrow_chunk(topic, partition, part) for topic, part in _parts(rows, "topic")]
            written = _run(jobs, name, chunks, NoPages())
            if written:
                yield _arrow_batch(written)


def _task_of(name: str) -> TaskId:
    return TaskId.parse(name.rpartition(SEPARATOR)[2])


def _run(
    jobs: Mapping[str, str], name: str, chunks: Sequence[Chunk], pages: Pages
) -> list[OutputRecord]:
    """The records that a task writes when it reads some."""
    application, _, task = name.rpartition(SEPARATOR)
    return work_of(jobs[application]).run(TaskId.parse(task), chunks, pages)


# --- Arrow ----------------------------------------------------------------------------------------


def _parts(batch: Any, column: str) -> Iterator[tuple[str, Any]]:
    """The rows of a batch by the value of a column, in the order in which they came."""
    values = batch.column(column)
    names = values.unique().to_pylist()
    if len(names) == 1:
        yield names[0], batch
        return
    for name in names:
        yield name, batch.filter(pc.equal(values, pa.scalar(name, values.type)))


def _arrow_chunk(topic: str, partition: int, rows: Any) -> Chunk:
    """Records of one partition: they come in the order of their offsets."""
    offsets = rows.column("offset").to_pylist()
    headers = None
    if "headers" in rows.schema.names and rows.column("headers").null_count < len(offsets):
        headers = [_headers(each) for each in rows.column("headers").to_pylist()]
    return Chunk(
        topic,
        partition,
        offsets,
        rows.column("timestamp").to_pylist(),
        binary_list(rows.column("key")),
        binary_list(rows.column("value")),
        headers,
        offsets[-1] + 1,
    )


def _arrow_batch(written: Sequence[OutputRecord]) -> Any:
    *columns, headers = zip(*written, strict=True)
    if any(headers):
        found = [[{"name": name, "value": it} for name, it in each] for each in headers]
        last = pa.array(found, HEADERS_TYPE)
    else:
        last = pa.nulls(len(written), HEADERS_TYPE)
    arrays = [pa.array(each, kind) for each, kind in zip(columns, TYPES, strict=False)]
    return pa.RecordBatch.from_arrays([*arrays, last], names=COLUMNS)


# --- pandas ---------------------------------------------------------------------------------------


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
