"""Marks: what the sink's tasks have written of a micro-batch, in the offsets of their groups.

    group    <sink id>-spark-marker-<task>
    offset   micro-batch + 1
    metadata {"query": "...", "packing": "millstream/0"}               of a SQL query
             {"query": "...", "rows": 1200, "digest": 81985529}        of another program
             the query's id alone                                      of earlier versions

A mark means that a task need not write. This is correct only if the task has the same rows again.
For a SQL query, that is determined by its packing. For other programs the mark contains a digest of
the rows, independent of their order. The query's id is that of the checkpoint: with a new
checkpoint, old marks have no effect.
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
    """A partly written micro-batch is repeated, but its tasks have other rows."""


@dataclass(slots=True)
class RowDigest:
    """The digest of a task's rows, in any order."""

    rows: int = 0
    digest: int = 0

    def add(self, keys: Sequence[bytes | None] | None, values: Sequence[bytes | None]) -> None:
        """Add rows; `keys` is None if they have none."""
        self.rows += len(values)
        # Null and empty are not distinguished: the digest only detects other rows.
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
    """The progress of a task."""

    query_id: str
    batches: int  # the number of micro-batches, which is the number of the next one
    packing: str | None = None
    rows: RowDigest | None = None

    def to_offset(self) -> OffsetAndMetadata:
        """The mark as a committed offset."""
        note: dict[str, object] = {"query": self.query_id}
        if self.packing is not None:
            note["packing"] = self.packing
        if self.rows is not None:
            note |= {"rows": self.rows.rows, "digest": self.rows.digest}
        return OffsetAndMetadata(self.batches, metadata=json.dumps(note))


def mark_of(at: OffsetAndMetadata) -> Mark:
    """The mark in a committed offset."""
    try:
        note = json.loads(at.metadata or "")
        query_id, packing = str(note["query"]), note.get("packing")
        rows = RowDigest(note["rows"], note["digest"]) if "rows" in note else None
    except (ValueError, TypeError, KeyError):
        return Mark(at.metadata or "", at.offset)  # of an earlier version
    return Mark(query_id, at.offset, packing, rows)


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """One task's part of one micro-batch."""

    sink_id: str
    task: int
    query_id: str
    batch_id: int
    packing: str | None = None  # None: the sink does not know the packing

    @property
    def transactional_id(self) -> str:
        """The transactional id of the task."""
        return f"{self.sink_id}-{self.task}"

    @property
    def marker_prefix(self) -> str:
        """The prefix of the groups of all tasks."""
        return f"{self.sink_id}-spark-marker-"

    @property
    def marker_group(self) -> str:
        """The group with the task's mark."""
        return f"{self.marker_prefix}{self.task}"

    def mark(self, rows: RowDigest | None = None) -> Mark:
        """The mark of a written part; `rows` are the written rows."""
        return Mark(self.query_id, self.batch_id + 1, self.packing, rows)

    def marker(
        self, topic: str, rows: RowDigest | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The mark, as offsets of a group."""
        return {TopicPartition(topic, 0): self.mark(rows).to_offset()}

    def is_written(self, found: Mark) -> bool:
        """Whether the task's mark shows that it is written."""
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
        """Refuse to skip rows that differ from the written ones."""
        if found.batches != self.batch_id + 1 or found.rows is None or found.rows == now:
            return
        raise PackingChanged(
            f'task {self.task} of micro-batch {self.batch_id} of "{self.sink_id}" wrote '
            f"{found.rows.rows} rows before; now it has {now.rows} rows, which differ from them",
            hint=SAME_HINT,
        )
