"""SubmittedRecords: the source offsets that may be stored, given the acknowledged records.

Per source partition, records are in the order in which they were polled:

    acknowledged  acknowledged  dropped  waiting  acknowledged
                                   ▲
                                   └── the offset of this one may be stored, and no later one

A record that a transform dropped, or whose error was tolerated, counts as acknowledged: it will
never be written, and must not be polled again. A record that the broker refused waits forever, and
the task fails. Records are handled in runs: those of one poll and one source partition. Per record,
only its delivery is checked, once.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from broker.client.bulk import arrived
from broker.client.produced_batch import Delivery
from connect.records import SourceRecord

PartitionKey = frozenset[tuple[str, object]]
# Whether to continue without a record, given its error.
OnFailure = Callable[[SourceRecord, BaseException], bool]


@dataclass(slots=True)
class _Run:
    """Records of one source partition; those before `next` are known to be written."""

    records: Sequence[SourceRecord]
    deliveries: list[Delivery | None]  # None: never sent, or refused and tolerated
    next: int = 0


@dataclass(slots=True)
class Acknowledged:
    """The records that were acknowledged since the last call."""

    # The source partition and the offset to store, by partition key.
    offsets: dict[PartitionKey, tuple[Mapping[str, object], Mapping[str, object]]] = field(
        default_factory=dict
    )
    records: list[tuple[SourceRecord, Delivery | None]] = field(default_factory=list)
    written: int = 0
    dropped: int = 0


class SubmittedRecords:
    """Records that were sent and are not known to be written yet.

    Not thread-safe: callers hold a lock.
    """

    def __init__(self, on_failure: OnFailure, *, keep_records: bool) -> None:
        """Without `keep_records`, the records themselves are not returned."""
        self._on_failure = on_failure
        self._keep_records = keep_records
        self._lines: dict[PartitionKey, deque[_Run]] = {}

    def submit(self, records: Sequence[SourceRecord], deliveries: list[Delivery | None]) -> None:
        """Add records in the order of their poll, with their deliveries."""
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
        """The records that were written or dropped since the last call."""
        found = Acknowledged()
        for key, line in list(self._lines.items()):
            while line and self._take(key, line[0], found):
                line.popleft()
            if not line:
                del self._lines[key]
        return found

    def _take(self, key: PartitionKey, run: _Run, found: Acknowledged) -> bool:
        """Process a run up to the first pending record; whether there is none."""
        start, deliveries = run.next, run.deliveries
        while True:
            run.next += arrived(deliveries, run.next)
            if run.next == len(deliveries) or not self._is_tolerated(run):
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

    def _is_tolerated(self, run: _Run) -> bool:
        """Whether the next record was refused, and that is tolerated."""
        delivery = run.deliveries[run.next]
        if delivery is None or not delivery.done():
            return False
        error = delivery.exception(0)
        if error is None:
            return True  # it was acknowledged in the meantime
        if not self._on_failure(run.records[run.next], error):
            return False
        run.deliveries[run.next] = None
        return True

    def __len__(self) -> int:
        """The number of pending records."""
        return sum(len(run.records) - run.next for line in self._lines.values() for run in line)
