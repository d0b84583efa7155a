"""Deletes the records of repartition topics that a query has read, as an application does.

A repeated micro-batch is read from the end of the previous one: earlier records are not needed once
that batch is in Spark's commit log.
"""

import logging

from broker.client.cluster_admin import Admin
from broker.clock import Clock
from broker.errors import MillstreamError
from broker.model import TopicPartition
from sql.backends.spark.offsets import Offsets

LOG = logging.getLogger(__name__)
INTERVAL_MS = 30_000  # as repartition.purge.interval.ms
LIMIT_MS = 5_000


def purge_committed(admin: Admin, group_id: str, topics: tuple[str, ...]) -> None:
    """After a query has ended, delete the repartition records that its group has read."""
    if not topics:
        return
    try:
        read = admin.list_group_offsets(group_id, timeout_ms=LIMIT_MS).values
    except MillstreamError as error:
        LOG.warning("could not delete records of repartition topics: %s", error)
        return
    _delete(admin, {tp: at.offset for tp, at in read.items() if tp.topic in topics})


def _delete(admin: Admin, before: Offsets) -> set[TopicPartition]:
    """Delete records; failures are logged, and never fail a query."""
    if not before:
        return set()
    try:
        results = admin.delete_records(before, timeout_ms=LIMIT_MS)
    except MillstreamError as error:
        LOG.warning("could not delete records of repartition topics: %s", error)
        return set()
    for tp, refused in results.errors.items():
        LOG.warning("could not delete records of %s: %s", tp, refused)
    return set(before) - set(results.errors)


class Purge:
    """The repartition topics of one reader; used by one thread."""

    def __init__(self, topics: tuple[str, ...], clock: Clock) -> None:
        self._topics = frozenset(topics)
        self._clock = clock
        self._due_ms = clock.monotonic_ms() + INTERVAL_MS
        self._done: dict[TopicPartition, int] = {}
        self._deleted: dict[TopicPartition, int] = {}

    def done(self, offsets: Offsets) -> None:
        """The micro-batch that ends at these offsets is complete and never repeated."""
        self._done.update({tp: at for tp, at in offsets.items() if tp.topic in self._topics})

    def run_when_due(self, admin: Admin) -> None:
        """Delete the records that were read, at most once per interval."""
        if self._done and self._clock.monotonic_ms() >= self._due_ms:
            self._due_ms = self._clock.monotonic_ms() + INTERVAL_MS
            before = {tp: at for tp, at in self._done.items() if at > self._deleted.get(tp, 0)}
            for tp in _delete(admin, before):
                self._deleted[tp] = before[tp]
