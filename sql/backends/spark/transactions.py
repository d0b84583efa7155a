"""Transactions of a sink's tasks: a task's part of a micro-batch is written once or not at all.

    transactional id   <sink id>-<task>
    marker             in a group of the task; see marks.py

The marker is committed in the same transaction as the records. A repeated task finds it and writes
nothing. Each task has its own group because brokers accept offsets only for existing partitions:
the marker belongs to partition 0 of a topic that the task writes to.

A transactional id belongs to the producer that initialized it last. A producer that is reused for
the next micro-batch sends the marker first: if it was fenced, it fails before any row is read.
"""

import atexit
import os
from collections.abc import Mapping
from dataclasses import dataclass

from broker.client.api import GroupMetadata
from broker.client.cluster_admin import Admin
from broker.client.config import ProducerConfig
from broker.client.opening import admin, producer
from broker.client.record_producer import Producer
from broker.errors import ConfigError, MillstreamError
from sql.backends.spark.marks import Mark, RowDigest, TaskBatch, mark_of
from sql.backends.spark.options import SinkOptions, of_admin
from sql.backends.spark.writing import partition_count

TRANSACTION_TIMEOUT_MS = 300_000
REMEMBERED_MAX = 256


@dataclass(slots=True)
class IdleProducer:
    """A producer that is idle until its next micro-batch."""

    producer: Producer
    mark: Mark  # of the previous micro-batch


_idle_producers: dict[tuple[int, str, str], IdleProducer] = {}
_checked: set[tuple[str, str, int, str | None]] = set()


def begin(part: TaskBatch, options: SinkOptions, topic: str) -> Producer | Mark:
    """A producer with an open transaction that contains the marker; or the mark, if it is written.

    With a mark, the caller must check that the rows are the written ones: TaskBatch.check_rows.
    """
    kept = _idle_producers.pop(_name(part, options), None)
    if kept is not None:
        part.check_packing(kept.mark)
        if part.is_written(kept.mark):
            _idle_producers[_name(part, options)] = kept
            return kept.mark
        if kept.mark.packing == part.packing and _is_taken(kept.producer, part, topic):
            return kept.producer
        kept.producer.close()  # another process has run this task in the meantime
    return _begin_transaction(part, options, topic)


def _is_taken(opened: Producer, part: TaskBatch, topic: str) -> bool:
    try:
        _mark(opened, part, topic)
    except MillstreamError:
        return False
    return True


def _begin_transaction(part: TaskBatch, options: SinkOptions, topic: str) -> Producer | Mark:
    settings = {"transaction_timeout_ms": TRANSACTION_TIMEOUT_MS} | dict(options.client)
    opened = producer(options.servers, transactional_id=part.transactional_id, **settings)
    try:
        # This ends the transaction of an earlier attempt; only then the marker is reliable.
        opened.init_transactions()
        result = written_mark(part, options)
        if result is not None:
            opened.close()
            return result
        partition_count(opened, topic)  # the marker belongs to it: it must exist
        _mark(opened, part, topic)
    except BaseException:
        opened.close()
        raise
    return opened


def _mark(opened: Producer, part: TaskBatch, topic: str, rows: RowDigest | None = None) -> None:
    if rows is None:
        opened.begin_transaction()
    opened.send_offsets_to_transaction(part.marker(topic, rows), GroupMetadata(part.marker_group))


def written_mark(part: TaskBatch, options: SinkOptions) -> Mark | None:
    """The mark of a committed transaction of this part, or None.

    PackingChanged if other parts of the micro-batch were written with another packing.
    """
    with admin(options.servers, **of_admin(options.client, ProducerConfig)) as administration:
        _check_others(part, administration)
        found = _marks(administration, part.marker_group)
    for each in found:
        part.check_packing(each)
    return next((each for each in found if part.is_written(each)), None)


def _check_others(part: TaskBatch, administration: Admin) -> None:
    """Check the marks of all tasks, once per process for each repeated micro-batch.

    With another packing, the task that wrote these rows may have none now.
    """
    name = (part.sink_id, part.query_id, part.batch_id, part.packing)
    if part.packing is None or name in _checked:
        return
    prefix = part.marker_prefix
    groups = [
        each.group_id for each in administration.list_groups() if each.group_id.startswith(prefix)
    ]
    for group in groups:
        if group[len(prefix) :].isdecimal():
            for each in _marks(administration, group):
                part.check_packing(each)
    if len(_checked) >= REMEMBERED_MAX:
        _checked.clear()
    _checked.add(name)


def _marks(administration: Admin, group: str) -> list[Mark]:
    return [mark_of(at) for at in administration.list_group_offsets(group).all().values()]


def commit(
    opened: Producer,
    part: TaskBatch,
    options: SinkOptions,
    *,
    topic: str = "",
    rows: RowDigest | None = None,
) -> None:
    """Commit the transaction with the marker; `rows` are the rows in the mark of `topic`."""
    if rows is not None:
        _mark(opened, part, topic, rows)
    opened.commit_transaction()
    if len(_idle_producers) >= REMEMBERED_MAX:
        _idle_producers.pop(next(iter(_idle_producers))).producer.close()
    _idle_producers[_name(part, options)] = IdleProducer(opened, part.mark(rows))


def abandon(opened: Producer) -> None:
    """Abort the transaction and close the producer."""
    opened.close()


def check_time(part: TaskBatch, options: SinkOptions, error: BaseException, took_ms: int) -> None:
    """Raise an error if a task failed because its transaction timed out."""
    limit_ms = int(str(options.client.get("transaction_timeout_ms", TRANSACTION_TIMEOUT_MS)))
    if isinstance(error, MillstreamError) and took_ms >= limit_ms:
        raise ConfigError(
            f"task {part.task} of micro-batch {part.batch_id} took {took_ms} ms, more than its "
            f"transaction allows: transaction.timeout.ms is {limit_ms}",
            hint='lower "max_offsets_per_trigger" (spark.max.offsets.per.trigger in SQL), or raise '
            '"kafka.transaction.timeout.ms"',
        ) from error


def _name(part: TaskBatch, options: SinkOptions) -> tuple[int, str, str]:
    return os.getpid(), part.transactional_id, repr((options.servers, _sorted(options.client)))


def _sorted(settings: Mapping[str, object]) -> list[tuple[str, object]]:
    return sorted(settings.items())


@atexit.register
def close_idle() -> None:
    """Close the idle producers."""
    for (process, _, _), kept in _idle_producers.items():
        if process == os.getpid():
            kept.producer.close()
    _idle_producers.clear()
    _checked.clear()
