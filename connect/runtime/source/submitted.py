"""SubmittedRecords: which source offsets may be stored, given what the broker has acknowledged.

Per partition of the source, records stand in the order in which they were polled:

    acknowledged  acknowledged  dropped  waiting  acknowledged
                                   ▲
                                   └── the offset of this one may be stored, and no later one

A record that a transform dropped, or whose error was tolerated, counts as acknowledged: it will
never be written, and must not be polled again for ever. One that the broker refused for good waits
for ever, which fails the task. Records come and go in runs, which are
those of one poll that belong to one partition of the source; nothing is done per record but to
look at its delivery, once.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from broker.client.api import Delivery
from broker.client.bulk import arrived
from connect.records import SourceRecord

PartitionKey = frozenset[tuple[str, object]]
# Given a record and why it could not be written, says whether to go on without it.
OnFailure = Callable[[SourceRecord, BaseException], bool]


@dataclass(slots=True)
class _Run:
    """Records of one partition of the source; those before `next` are known to be written."""

    records: Sequence[SourceRecord]
    deliveries: list[Delivery | None]  # None: never sent, or refused and tolerated
    next: int = 0


@dataclass(slots=True)
class Acknowledged:
    """What became of records since the last look."""

    # The offset to store, by partition of the source, and the partition as the task named it.
    offsets: dict[PartitionKey, tuple[Mapping[str, object], Mapping[str, object]]] = field(
        default_factory=dict
    )
    records: list[tuple[SourceRecord, Delivery | None]] = field(default_factory=list)
    written: int = 0
    dropped: int = 0


class SubmittedRecords:
    """Records that were given to the producer and are not known to be written yet.

    Not safe for several threads: who uses it holds a lock.
    """

    def __init__(self, on_failure: OnFailure, *, keep_records: bool) -> None:
        """Without `keep_records` the records themselves are not given back."""
        self._on_failure = on_failure
        self._keep_records = keep_records
        self._lines: dict[PartitionKey, deque[_Run]] = {}

    def submit(self, records: Sequence[SourceRecord], deliveries: list[Delivery | None]) -> None:
        """Remember records in the order of their poll, with what the producer said of each."""
        start, count = 0, len(records)
        while start < count:
            partition = records[start].source_partition
            end = start + 1
            while end < count and (
                records[end].source_partition is partition
                or records[end].source_partition == partition
            ):
                end += 1
            line = self._lines.setdefault(frozenset(partition.items()), deque())
            if start == 0 and end == count:
                line.append(_Run(records, deliveries))
            else:
                line.append(_Run(records[start:end], deliveries[start:end]))
            start = end

    def acknowledged(self) -> Acknowledged:
        """Take what is known to be written, or dropped, since the last time."""
        found = Acknowledged()
        for key, line in list(self._lines.items()):
            while line and self._take(key, line[0], found):
                line.popleft()
            if not line:
                del self._lines[key]
        return found

    def _take(self, key: PartitionKey, run: _Run, found: Acknowledged) -> bool:
        """Take from one run until a record waits; whether none does."""
        start, deliveries = run.next, run.deliveries
        while True:
            run.next += arrived(deliveries, run.next)
            if run.next == len(deliveries) or not self._goes_on_without(run):
                break
        if run.next > start:
            dropped = deliveries[start : run.next].count(None)
            found.dropped += dropped
            found.written += run.next - start - dropped
            last = run.records[run.next - 1]
            found.offsets[key] = (last.source_partition, last.source_offset)
            if self._keep_records:
                taken = zip(run.records, deliveries, strict=True)
                found.records += islice(taken, start, run.next)
        return run.next == len(deliveries)

    def _goes_on_without(self, run: _Run) -> bool:
        """Whether the next record is refused, and that is tolerated."""
        delivery = run.deliveries[run.next]
        if delivery is None or not delivery.done():
            return False
        error = delivery.exception(0)
        if error is None:
            return True  # it has arrived in the meantime
        if not self._on_failure(run.records[run.next], error):
            return False
        run.deliveries[run.next] = None
        return True

    def __len__(self) -> int:
        """How many records wait."""
        return sum(len(run.records) - run.next for line in self._lines.values() for run in line)
