"""FetchedRun: what one fetch brought of one partition, taken batch by batch without its records.

Readers of committed data leave out aborted transactions by batch headers alone: the broker lists
the aborted transactions of the run by producer and first offset, and each ends at its marker.
"""

from collections.abc import Iterable, Iterator

from broker.batch.codec import BatchHeader, decode_records, read_control, split_batches
from broker.batch.layout import HEADER_BYTES, LENGTH_END
from broker.errors import BrokerError, CorruptBatch, ErrorCode
from broker.model import AbortedTransaction


class FetchedRun:
    """Whole batches of one answer, from a first offset on."""

    __slots__ = ("_aborted", "_aborting", "_batches", "_head", "_view", "next_offset", "size")

    def __init__(
        self,
        view: memoryview,
        *,
        start_offset: int,
        aborted: Iterable[AbortedTransaction] = (),
        check_crcs: bool = True,
    ) -> None:
        """Find where the last whole batch ends; nothing else is looked at yet."""
        self._view = view
        self.size = len(view)
        self.next_offset = _next_offset(view, start_offset)
        self._aborted = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborting: set[int] = set()
        self._batches = self._visible(split_batches(view, check_crc=check_crcs))
        self._head: tuple[memoryview, BatchHeader] | None = None

    def peek(self) -> tuple[memoryview, BatchHeader] | None:
        """The next batch that has records for the reader, or None at the end of the run."""
        if self._head is None:
            self._head = next(self._batches, None)
        return self._head

    def advance(self) -> None:
        """Go past the batch that `peek` showed."""
        self._head = None

    def _visible(
        self, batches: Iterable[tuple[int, BatchHeader]]
    ) -> Iterator[tuple[memoryview, BatchHeader]]:
        for position, header in batches:
            batch = self._view[position : position + header.size]
            self._start_aborting(header)
            if header.is_control:
                self._end_aborting(batch, header)
            elif not (header.is_transactional and header.producer_id in self._aborting):
                yield batch, header

    def _start_aborting(self, header: BatchHeader) -> None:
        while self._aborted and self._aborted[-1].first_offset <= header.last_offset:
            self._aborting.add(self._aborted.pop().producer_id)

    def _end_aborting(self, batch: memoryview, header: BatchHeader) -> None:
        if header.producer_id not in self._aborting:
            return
        for record in decode_records(batch):
            committed, _ = read_control(record)
            if not committed:
                self._aborting.discard(header.producer_id)


def _next_offset(view: memoryview, start_offset: int) -> int:
    """The offset after the last whole batch; bytes without a whole batch are refused."""
    position = 0
    last = -1
    end = len(view)
    while position + HEADER_BYTES <= end:
        size = LENGTH_END + int.from_bytes(view[position + 8 : position + 12], "big", signed=True)
        if size < HEADER_BYTES:
            raise CorruptBatch(f"a batch after offset {start_offset} says it has {size} bytes")
        if size > end - position:
            break
        last = position
        position += size
    if last < 0:
        raise BrokerError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch at offset {start_offset} is larger than the {end} bytes fetched",
            hint="raise max_partition_fetch_bytes and fetch_max_bytes",
        )
    base = int.from_bytes(view[last : last + 8], "big", signed=True)
    delta = int.from_bytes(view[last + 23 : last + 27], "big", signed=True)
    if base + delta < start_offset:
        raise CorruptBatch(f"a fetch from offset {start_offset} brought only older records")
    return base + delta + 1
