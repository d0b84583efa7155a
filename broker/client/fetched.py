"""FetchedRun: the batches of one partition from one fetch, read without decoding records.

With read_committed, batch headers alone decide which batches to skip: the broker lists the aborted
transactions of the run by producer and first offset, and each ends at its marker.

A batch that cannot be read, here or when its records are decoded, raises CorruptBatchError with its
position and the offset of the next batch.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from broker.batch.codec import (
    BatchHeader,
    Record,
    decode_lists,
    decode_records,
    read_control,
    read_header,
    split_batches,
)
from broker.batch.layout import HEADER_BYTES, LENGTH_END
from broker.batch.records import Lists
from broker.errors import BrokerError, CorruptBatch, CorruptBatchError, ErrorCode
from broker.model import AbortedTransaction, TopicPartition


@dataclass(slots=True)
class FetchedBatch:
    """One record batch, as stored in the log; `data` keeps the whole response in memory.

    Records below `start_offset` were returned before, or are before the position of a seek. The
    records of a batch that cannot be read raise CorruptBatchError.
    """

    topic_partition: TopicPartition
    data: memoryview
    header: BatchHeader
    start_offset: int

    @property
    def first_offset(self) -> int:
        return self.header.base_offset

    @property
    def last_offset(self) -> int:
        return self.header.last_offset

    def records(self) -> list[Record]:
        """All records of the batch."""
        try:
            return decode_records(self.data)
        except CorruptBatch as error:
            raise self._unreadable(error) from error

    def lists(self) -> Lists:
        """All records, one list per field; the headers are None when there are none."""
        try:
            return decode_lists(self.data)
        except CorruptBatch as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: CorruptBatch) -> CorruptBatchError:
        return unreadable(self.topic_partition, self.header, self.start_offset, error)


def unreadable(
    tp: TopicPartition, header: BatchHeader, position: int, error: CorruptBatch
) -> CorruptBatchError:
    """The error of a reader at a position that cannot decode the batch there."""
    return CorruptBatchError(
        error.message,
        topic=tp.topic,
        partition=tp.partition,
        offset=max(position, header.base_offset),
        next_offset=header.next_offset,
    )


class FetchedRun:
    """The whole batches of one response, from a first offset on."""

    __slots__ = (
        "_aborted",
        "_aborting",
        "_batches",
        "_end_offset",
        "_head",
        "_topic_partition",
        "_view",
        "next_offset",
        "size",
    )

    def __init__(
        self,
        topic_partition: TopicPartition,
        view: memoryview,
        *,
        offsets: tuple[int, int],
        aborted: Iterable[AbortedTransaction] = (),
        check_crcs: bool = True,
    ) -> None:
        """Find the end of the last whole batch; nothing else is read yet.

        `offsets` are the fetch offset and the end of the log.
        """
        start_offset, self._end_offset = offsets
        self._topic_partition = topic_partition
        self._view = view
        self.size = len(view)
        try:
            self.next_offset = _next_offset(view, start_offset)
        except CorruptBatch as error:
            raise self._unreadable(0, start_offset, error) from error
        self._aborted = sorted(aborted, key=lambda each: each.first_offset, reverse=True)
        self._aborting: set[int] = set()
        self._batches = self._visible(start_offset, check_crcs=check_crcs)
        self._head: tuple[memoryview, BatchHeader] | None = None

    def peek(self) -> tuple[memoryview, BatchHeader] | None:
        """The next batch that has records for the reader, or None at the end of the run."""
        if self._head is None:
            self._head = next(self._batches, None)
        return self._head

    def advance(self) -> None:
        """Skip the batch that `peek` returned."""
        self._head = None

    def _visible(
        self, start_offset: int, *, check_crcs: bool
    ) -> Iterator[tuple[memoryview, BatchHeader]]:
        end, offset = 0, start_offset  # of the last batch that was read
        try:
            for position, header in split_batches(self._view, check_crc=check_crcs):
                batch = self._view[position : position + header.size]
                self._start_aborting(header)
                if header.is_control:
                    self._end_aborting(batch, header)
                elif not (header.is_transactional and header.producer_id in self._aborting):
                    yield batch, header
                end, offset = position + header.size, max(offset, header.next_offset)
        except CorruptBatch as error:
            raise self._unreadable(end, offset, error) from error

    def _unreadable(self, at: int, offset: int, error: CorruptBatch) -> CorruptBatchError:
        """The error for the batch at a byte position; an implausible batch header is ignored.

        The next offset to try is then the one after `offset`, the first that was not read.
        """
        next_offset = offset + 1
        if at + HEADER_BYTES <= len(self._view):
            header = read_header(self._view, at)
            if offset < header.next_offset <= self._end_offset and header.last_offset_delta >= 0:
                offset = max(offset, header.base_offset)
                next_offset = header.next_offset
        return CorruptBatchError(
            error.message,
            topic=self._topic_partition.topic,
            partition=self._topic_partition.partition,
            offset=offset,
            next_offset=next_offset,
        )

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
    """The offset after the last whole batch; CorruptBatch if there is no whole batch."""
    position = 0
    last = -1
    end = len(view)
    while position + HEADER_BYTES <= end:
        size = LENGTH_END + int.from_bytes(view[position + 8 : position + 12], "big", signed=True)
        if size < HEADER_BYTES:
            if last >= 0:
                break  # the batches before it are taken first
            raise CorruptBatch(f"a batch after offset {start_offset} claims to have {size} bytes")
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
        raise CorruptBatch(f"a fetch from offset {start_offset} returned only older records")
    return base + delta + 1
