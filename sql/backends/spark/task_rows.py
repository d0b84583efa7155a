"""Passes rows of Spark through the tasks of queries, as Arrow batches or pandas frames.

A row has the columns of records.py. A task's name contains the application's id: "app/0_3".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas
import pyarrow as pa

from sql.backends.spark.job import unpacked
from sql.backends.spark.processor import SEPARATOR
from sql.backends.spark.records import HEADERS_TYPE, parts
from sql.backends.spark.task_work import OutputRecord, work_of
from sql.backends.spark.writing import binary_list
from streams.record import NO_HEADERS, Chunk, Headers
from streams.runtime.partitions import TaskId
from streams.state.paged import Pages

COLUMNS = ("topic", "partition", "timestamp", "key", "value", "headers")
TYPES = (pa.string(), pa.int32(), pa.int64(), pa.binary(), pa.binary(), HEADERS_TYPE)

# Any, here and below: objects of Spark, pandas and Arrow have no type hints.


class NoPages:
    """The pages of tasks without stores: none; see streams.state.paged.Pages."""

    def get(self, store: str, number: int) -> bytes | None:
        """Always None."""
        return None

    def put(self, store: str, number: int, page: bytes) -> None:
        """Do nothing."""

    def remove(self, store: str, number: int) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class StatelessTasks:
    """The stage of tasks without stores; `readers` are the sub-topologies that read each topic."""

    jobs: bytes  # compressed, see job.py
    readers: Mapping[str, Sequence[str]]

    def run(self, batches: Iterator[Any]) -> Iterator[Any]:
        """The records that the tasks write."""
        for batch in batches:
            for topic, of_topic in parts(batch, "topic"):
                for partition, rows in parts(of_topic, "partition"):
                    chunk = _arrow_chunk(topic, partition, rows)
                    for name in self.readers[topic]:
                        written = _run(self.jobs, f"{name}_{partition}", [chunk], NoPages())
                        if written:
                            yield _arrow_batch(written)


def stateful_rows(jobs: bytes, name: str, rows: Iterable[Any], pages: Pages) -> Iterator[Any]:
    """The records that a task with stores writes, for pandas frames of a batch."""
    ordered = pandas.concat(list(rows)).sort_values(["topic", "offset"], kind="stable")
    partition = _task_of(name).partition
    chunks = [
        _chunk(str(topic), partition, part) for topic, part in ordered.groupby("topic", sort=False)
    ]
    written = _run(jobs, name, chunks, pages)
    yield pandas.DataFrame([_row(record) for record in written], columns=COLUMNS)


def _task_of(name: str) -> TaskId:
    return TaskId.parse(name.rpartition(SEPARATOR)[2])


def _run(jobs: bytes, name: str, chunks: Sequence[Chunk], pages: Pages) -> list[OutputRecord]:
    """The records that a task writes when it processes some records."""
    application, _, task = name.rpartition(SEPARATOR)
    return work_of(unpacked(jobs)[application]).run(TaskId.parse(task), chunks, pages)


# --- Arrow ----------------------------------------------------------------------------------------


def _arrow_chunk(topic: str, partition: int, rows: Any) -> Chunk:
    """Records of one partition, in the order of their offsets."""
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
