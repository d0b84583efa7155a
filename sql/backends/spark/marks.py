"""Marks: what the sink's tasks have written of a micro-batch, as their groups' offsets say it.

    group    <sink id>-spark-marker-<task>
    offset   micro-batch + 1
    note     {"query": "...", "packing": "millstream/0"}               of a SQL query
             {"query": "...", "rows": 1200, "digest": 81985529}        of another program
             the query's id alone                                      of earlier versions

A mark says that a task need not write. That is true only if the task has the rows again that it had
then. A SQL query knows what decides that: its packing. For other programs the mark holds a digest
of the rows, whatever their order. The query's id is the checkpoint's: after a new checkpoint old
marks say nothing.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from zlib import crc32

from broker.client.api import OffsetAndMetadata
from broker.errors import MillstreamError
from broker.model import TopicPartition

SAME_HINT = (
    "start it with its earlier settings until this micro-batch is complete (the options of its "
    "source, the connector, the cores of the master, the version), or run it once with "
    '"delivery" at_least_once, which writes the whole micro-batch again'
)


class PackingChanged(MillstreamError):
    """A micro-batch that was written in part comes again, and its tasks have other rows."""


@dataclass(slots=True)
class RowDigest:
    """Rows of a task, in any order."""

    rows: int = 0
    digest: int = 0

    def add(self, keys: Sequence[bytes | None] | None, values: Sequence[bytes | None]) -> None:
        """Take some rows; without keys `keys` is None."""
        self.rows += len(values)
        # Null and empty are one here: what counts is whether they are the same rows.
        found: Iterable[int]
        if keys is None:
            found = map(crc32, _filled(values))
        else:
            found = map(crc32, _filled(values), map(crc32, _filled(keys)))
        self.digest = (self.digest + sum(found)) & 0xFFFFFFFF


def _filled(column: Sequence[bytes | None]) -> list[bytes]:
    return [each or b"" for each in column]


@dataclass(frozen=True, slots=True)
class Mark:
    """What a task has written, and how far."""

    query_id: str
    batches: int  # so many micro-batches: the next one's number
    packing: str | None = None
    rows: RowDigest | None = None

    def to_offset(self) -> OffsetAndMetadata:
        """As it is committed."""
        note: dict[str, object] = {"query": self.query_id}
        if self.packing is not None:
            note["packing"] = self.packing
        if self.rows is not None:
            note |= {"rows": self.rows.rows, "digest": self.rows.digest}
        return OffsetAndMetadata(self.batches, metadata=json.dumps(note))


def mark_of(at: OffsetAndMetadata) -> Mark:
    """What was committed."""
    try:
        note = json.loads(at.metadata or "")
        query_id, packing = str(note["query"]), note.get("packing")
        rows = RowDigest(note["rows"], note["digest"]) if "rows" in note else None
    except (ValueError, TypeError, KeyError):
        return Mark(at.metadata or "", at.offset)  # an earlier version's
    return Mark(query_id, at.offset, packing, rows)


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """One task's part of one micro-batch."""

    sink_id: str
    task: int
    query_id: str
    batch_id: int
    packing: str | None = None  # None: the sink does not know how rows come to tasks

    @property
    def transactional_id(self) -> str:
        """Who writes."""
        return f"{self.sink_id}-{self.task}"

    @property
    def marker_prefix(self) -> str:
        """How the groups of all tasks begin."""
        return f"{self.sink_id}-spark-marker-"

    @property
    def marker_group(self) -> str:
        """Where it is marked as written."""
        return f"{self.marker_prefix}{self.task}"

    def mark(self, rows: RowDigest | None = None) -> Mark:
        """That it is written; `rows` are those it has written."""
        return Mark(self.query_id, self.batch_id + 1, self.packing, rows)

    def marker(
        self, topic: str, rows: RowDigest | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The mark, as offsets of a group."""
        return {TopicPartition(topic, 0): self.mark(rows).to_offset()}

    def is_written(self, found: Mark) -> bool:
        """Whether this task's mark says that it is written."""
        return found.query_id == self.query_id and found.batches > self.batch_id

    def check_packing(self, found: Mark) -> None:
        """Refuse to write if any task has written its part with another packing."""
        is_same_batch = found.query_id == self.query_id and found.batches == self.batch_id + 1
        if not is_same_batch or None in (self.packing, found.packing):
            return
        if found.packing != self.packing:
            raise PackingChanged(
                f'micro-batch {self.batch_id} of "{self.sink_id}" was partly written by tasks of '
                f'"{found.packing}"; now its tasks are of "{self.packing}" and have other rows',
                hint=SAME_HINT,
            )

    def check_rows(self, found: Mark, now: RowDigest) -> None:
        """Refuse to skip rows that are not those that were written."""
        if found.batches != self.batch_id + 1 or found.rows is None or found.rows == now:
            return
        raise PackingChanged(
            f'task {self.task} of micro-batch {self.batch_id} of "{self.sink_id}" wrote '
            f"{found.rows.rows} rows before; now it has {now.rows} rows, which differ from them",
            hint=SAME_HINT,
        )
