"""Transactions of a sink's tasks: what a task writes in a micro-batch is there once, or not at all.

    transactional id   <sink id>-<task>
    marker             group <sink id>-spark-marker-<task>, offset = micro-batch + 1, note = query

The marker is committed in the same transaction as the records. A task that is done again finds it
and writes nothing. It has a group for each task because brokers take offsets only for partitions
that exist: it lies on partition 0 of a topic that the task writes to. The note is the query's id,
which is the checkpoint's: after a new checkpoint old markers say nothing.

A transactional id belongs to who opened it last. A producer that is kept for the next micro-batch
sends the marker first: if another has taken its place it learns so before it took a row.
"""

import atexit
import os
from collections.abc import Mapping
from dataclasses import dataclass

from broker.client.api import GroupMetadata, OffsetAndMetadata
from broker.client.config import ProducerConfig
from broker.client.opening import admin, producer
from broker.client.record_producer import RecordProducer
from broker.errors import MillstreamError
from broker.model import TopicPartition
from sql.backends.spark.options import SinkOptions, of_admin

TRANSACTION_TIMEOUT_MS = 300_000
KEPT_MAX = 256


@dataclass(frozen=True, slots=True)
class TaskBatch:
    """One task's part of one micro-batch."""

    sink_id: str
    task: int
    query_id: str
    batch_id: int

    @property
    def transactional_id(self) -> str:
        """Who writes."""
        return f"{self.sink_id}-{self.task}"

    @property
    def marker_group(self) -> str:
        """Where it is marked as written."""
        return f"{self.sink_id}-spark-marker-{self.task}"

    def marker(self, topic: str) -> dict[TopicPartition, OffsetAndMetadata]:
        """The mark."""
        at = OffsetAndMetadata(self.batch_id + 1, metadata=self.query_id)
        return {TopicPartition(topic, 0): at}


@dataclass(slots=True)
class Kept:
    """A producer that waits for its next micro-batch."""

    producer: RecordProducer
    query_id: str
    batch_id: int


_kept: dict[tuple[int, str, str], Kept] = {}


def begin(part: TaskBatch, options: SinkOptions, topic: str) -> RecordProducer | None:
    """A producer with a transaction open that holds the marker; None if all is written already."""
    kept = _kept.pop(_name(part, options), None)
    if kept is not None:
        if kept.query_id == part.query_id and kept.batch_id >= part.batch_id:
            _kept[_name(part, options)] = kept
            return None
        try:
            _mark(kept.producer, part, topic)
        except MillstreamError:
            kept.producer.close()  # another process has had this task since
        else:
            return kept.producer
    return _begin_anew(part, options, topic)


def _begin_anew(part: TaskBatch, options: SinkOptions, topic: str) -> RecordProducer | None:
    settings = {"transaction_timeout_ms": TRANSACTION_TIMEOUT_MS} | dict(options.client)
    opened = producer(options.servers, transactional_id=part.transactional_id, **settings)
    try:
        # This ends what an earlier attempt left open; only then the marker is sure.
        opened.init_transactions()
        if is_written(part, options):
            opened.close()
            return None
        _mark(opened, part, topic)
    except BaseException:
        opened.close()
        raise
    return opened


def _mark(opened: RecordProducer, part: TaskBatch, topic: str) -> None:
    opened.begin_transaction()
    opened.send_offsets_to_transaction(part.marker(topic), GroupMetadata(part.marker_group))


def is_written(part: TaskBatch, options: SinkOptions) -> bool:
    """Whether a transaction of this part has been committed."""
    with admin(options.servers, **of_admin(options.client, ProducerConfig)) as asking:
        marks = asking.list_group_offsets(part.marker_group).all()
    return any(at.metadata == part.query_id and at.offset > part.batch_id for at in marks.values())


def commit(opened: RecordProducer, part: TaskBatch, options: SinkOptions) -> None:
    """Make everything visible, with the marker."""
    opened.commit_transaction()
    if len(_kept) >= KEPT_MAX:
        _kept.pop(next(iter(_kept))).producer.close()
    _kept[_name(part, options)] = Kept(opened, part.query_id, part.batch_id)


def abandon(opened: RecordProducer) -> None:
    """Abort what is open and let the producer go."""
    opened.close()


def _name(part: TaskBatch, options: SinkOptions) -> tuple[int, str, str]:
    return os.getpid(), part.transactional_id, repr((options.servers, _sorted(options.client)))


def _sorted(settings: Mapping[str, object]) -> list[tuple[str, object]]:
    return sorted(settings.items())


@atexit.register
def close_kept() -> None:
    """Close the producers that wait for another micro-batch."""
    for (process, _, _), kept in _kept.items():
        if process == os.getpid():
            kept.producer.close()
    _kept.clear()
