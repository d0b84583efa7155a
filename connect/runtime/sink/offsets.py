"""SinkOffsets: the offsets that a sink task has read, put and committed in each partition.

    read ──put──► put ──pre_commit──► offered by the task ──commit──► committed

All offsets are those of the next record, in the original partition, even if a transform changes it.
Nothing here calls the broker.
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
    """The records of each partition: a poll returns them one partition after the other."""
    first, last = records[0], records[-1]
    if first[:2] == last[:2]:
        yield TopicPartition(*first[:2]), records
        return
    for place, run in groupby(records, itemgetter(0, 1)):
        yield TopicPartition(*place), list(run)


class SinkOffsets:
    """The offsets of one task; a partition is known from its first record on."""

    def __init__(self) -> None:
        self._read: Offsets = {}  # of the batch that is being put
        self.put: Offsets = {}
        self.committed: Offsets = {}

    def read(self, tp: TopicPartition, *, first: int, last: int) -> None:
        """Records of a partition are about to be put or dropped."""
        # The first offset counts as committed: a rewind goes back to it.
        self.committed.setdefault(tp, first)
        self._read[tp] = last + 1

    def batch_done(self) -> None:
        """The records that were read have been put."""
        self.put.update(self._read)
        self._read = {}

    def committed_now(self, offsets: Offsets) -> None:
        """Offsets were committed; those of partitions revoked in the meantime are ignored."""
        for tp, offset in offsets.items():
            if tp in self.committed:
                self.committed[tp] = offset

    def rewind(self, tp: TopicPartition, offset: int) -> None:
        """The task seeks to this offset, whatever it has put."""
        self.put[tp] = offset
        self.committed[tp] = offset
        self._read.pop(tp, None)

    def back_to_committed(self) -> Offsets:
        """Reset to the committed offsets; returns them."""
        self.put = dict(self.committed)
        self._read = {}
        return dict(self.committed)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions were revoked."""
        for tp in partitions:
            for offsets in (self._read, self.put, self.committed):
                offsets.pop(tp, None)

    def put_of(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """The offsets that were put of some partitions, if anything of them was read."""
        return {tp: self.put[tp] for tp in partitions if tp in self.put}

    def committable(
        self, offered: Mapping[TopicPartition, int], partitions: Iterable[TopicPartition]
    ) -> Offsets:
        """The new offsets to commit of those that the task offered; empty if there are none."""
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
