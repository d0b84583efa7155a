"""CleanedTransactions: the transactional batches that compaction may remove.

A batch of an aborted transaction may be removed immediately. A marker may be removed if no batch of
its transaction precedes it: then it no longer affects any record.
"""

from collections.abc import Iterable

from broker.batch.layout import BatchHeader
from broker.storage.index import AbortedRange
from broker.storage.producer_state import Marker


class CleanedTransactions:
    """Tracks the transactions of a log from an offset on; batches are passed to it in order."""

    __slots__ = ("_aborted", "_committed", "_next", "_ranges", "_seen")

    def __init__(self, ranges: Iterable[AbortedRange], first_offset: int) -> None:
        """Starts with the aborted transactions that end after the first offset."""
        live = (item for item in ranges if item.last_offset >= first_offset)
        self._ranges = sorted(live, key=lambda item: item.first_offset)
        self._next = 0
        # Transactions that are open and aborted later, by producer; those with batches are in
        # `_seen`.
        self._aborted: dict[int, AbortedRange] = {}
        self._seen: set[int] = set()
        self._committed: set[int] = set()

    def is_aborted(self, header: BatchHeader) -> bool:
        """Whether a batch of records belongs to an aborted transaction."""
        self._begin_up_to(header.last_offset)
        if not header.is_transactional:
            return False
        if header.producer_id in self._aborted:
            self._seen.add(header.producer_id)
            return True
        self._committed.add(header.producer_id)
        return False

    def end(self, header: BatchHeader, marker: Marker | None) -> tuple[bool, AbortedRange | None]:
        """Whether a marker may be removed; otherwise the aborted transaction for the index.

        A control batch without its marker was cleaned before and may be removed.
        """
        self._begin_up_to(header.last_offset)
        producer_id = header.producer_id
        if marker is None:
            return True, None
        if marker.commit:
            met = producer_id in self._committed
            self._committed.discard(producer_id)
            return not met, None
        aborted = self._aborted.pop(producer_id, None)
        if aborted is None or producer_id not in self._seen:
            return True, None
        self._seen.discard(producer_id)
        return False, aborted

    def _begin_up_to(self, offset: int) -> None:
        ranges = self._ranges
        while self._next < len(ranges) and ranges[self._next].first_offset <= offset:
            item = ranges[self._next]
            self._aborted.setdefault(item.producer_id, item)
            self._next += 1
