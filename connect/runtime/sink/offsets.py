"""SinkOffsets: how far a sink task has read, put and committed each of its partitions.

    read ──put──► put ──pre_commit──► offered by the task ──commit──► committed

All offsets are those of the next record. Offsets count in the partition a record was read from,
wherever a transform sends it. Pure bookkeeping: nothing here asks the broker.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter

from broker.client.api import ConsumerRecord
from broker.model import TopicPartition

logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]


def partition_runs(
    records: Sequence[ConsumerRecord],
) -> Iterator[tuple[TopicPartition, Sequence[ConsumerRecord]]]:
    """Records of each partition; a poll gives those of one after the other."""
    first, last = records[0], records[-1]
    if first[:2] == last[:2]:
        yield TopicPartition(*first[:2]), records
        return
    for place, run in groupby(records, itemgetter(0, 1)):
        yield TopicPartition(*place), list(run)


class SinkOffsets:
    """Of one task; a partition is known from its first record on."""

    def __init__(self) -> None:
        self._read: Offsets = {}  # of the batch that is being put
        self.put: Offsets = {}
        self.committed: Offsets = {}

    def read(self, tp: TopicPartition, *, first: int, last: int) -> None:
        """Records of a partition are about to be put, or dropped on the way."""
        # Where a partition begins is as good as committed: that is where one would go back to.
        self.committed.setdefault(tp, first)
        self._read[tp] = last + 1

    def batch_done(self) -> None:
        """What was read is put."""
        self.put.update(self._read)
        self._read = {}

    def committed_now(self, offsets: Offsets) -> None:
        """The broker has these; partitions given up in the meantime do not count."""
        for tp, offset in offsets.items():
            if tp in self.committed:
                self.committed[tp] = offset

    def rewind(self, tp: TopicPartition, offset: int) -> None:
        """The task wants to read on from here, whatever it has put."""
        self.put[tp] = offset
        self.committed[tp] = offset
        self._read.pop(tp, None)

    def back_to_committed(self) -> Offsets:
        """Forget what was put since the last commit; returns where to read on."""
        self.put = dict(self.committed)
        self._read = {}
        return dict(self.committed)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Others have these partitions now."""
        for tp in partitions:
            for offsets in (self._read, self.put, self.committed):
                offsets.pop(tp, None)

    def put_of(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """How far some partitions are put, those of which anything was read."""
        return {tp: self.put[tp] for tp in partitions if tp in self.put}

    def committable(
        self, offered: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]
    ) -> Offsets:
        """What to commit of the offsets that the task offered; empty when nothing is new."""
        mine = set(partitions)
        found: Offsets = {}
        for tp, offset in offered.items():
            if tp not in mine:
                logger.warning(
                    "a task returned offset %d of %s, which is not assigned to it", offset, tp
                )
            elif offset > self.put.get(tp, -1):
                logger.warning(
                    "a task returned offset %d of %s, which it has not received", offset, tp
                )
            elif self.committed.get(tp) != offset:
                found[tp] = offset
        return found
