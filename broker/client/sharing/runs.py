"""Run: the whole batches of one partition in a fetch response, returned whole or in part.

Nothing is copied: readers get views of the same buffer, cut at batch boundaries.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import accumulate
from struct import Struct

from broker.batch.codec import decode_records, read_control, split_batches
from broker.batch.layout import HEADER_BYTES, LENGTH_END
from broker.errors import MillstreamError
from broker.protocol.messages.fetch import AbortedTransaction

PLACE = Struct(">qi11xi")  # base offset, length, and the last offset delta at byte 23
LENGTH = Struct(">i")
LENGTH_AT = 8


class Run:
    """Batches from a first offset on; contains all records from `start` to before `next_offset`.

    `start` may be before the first batch (compaction removed the records).
    """

    __slots__ = ("_bases", "_ends", "_nexts", "aborted", "next_offset", "pins", "start", "view")

    def __init__(
        self,
        view: memoryview,
        start: int,
        next_offset: int,
        aborted: Sequence[AbortedTransaction] | None,
    ) -> None:
        """The view must consist of whole batches; see `whole_run`."""
        self.view = view
        self.start = start
        self.next_offset = next_offset
        self.aborted = aborted
        self.pins = 0  # readers that will fetch it and have not done so yet
        self._bases: list[int] = []  # of batches; computed on demand
        self._nexts: list[int] = []
        self._ends: list[int] = []

    def part(
        self, offset: int, bytes_max: int, *, minimum_one: bool
    ) -> tuple[memoryview, Sequence[AbortedTransaction] | None] | None:
        """The batches from an offset on, and the aborted transactions that concern them.

        At most `bytes_max` bytes; with `minimum_one`, the first batch whatever its size.
        """
        if offset <= self.start and len(self.view) <= bytes_max:
            return self.view, self.aborted
        self._find_batches()
        first = bisect_right(self._nexts, offset)
        begin = self._ends[first - 1] if first else 0
        stop = bisect_right(self._ends, begin + bytes_max)
        if stop <= first:
            if not minimum_one:
                return None
            stop = first + 1
        end = self._ends[stop - 1]
        if begin == 0:
            return (self.view if end == len(self.view) else self.view[:end]), self.aborted
        try:
            aborted = self._aborted_after(begin)
        except MillstreamError:
            # A marker that cannot be read: each reader gets the error itself.
            return self.view, self.aborted
        return self.view[begin:end], aborted

    def before(self, limit: int) -> "Run | None":
        """The batches before the first one that begins at or after an offset; None if none.

        A batch that spans the offset is included.
        """
        self._find_batches()
        count = bisect_left(self._bases, limit)
        if count == 0:
            return None
        if count == len(self._bases):
            return self
        view = self.view[: self._ends[count - 1]]
        return Run(view, self.start, self._nexts[count - 1], self.aborted)

    def _find_batches(self) -> None:
        if self._ends:
            return
        position, end = 0, len(self.view)
        while position < end:
            base, length, delta = PLACE.unpack_from(self.view, position)
            position += LENGTH_END + length
            self._bases.append(base)
            self._nexts.append(base + delta + 1)
            self._ends.append(position)
        # Offsets only grow in a log; corrupt bytes must not break the binary search.
        self._nexts = list(accumulate(self._nexts, max))
        self._bases = list(accumulate(self._bases, max))

    def _aborted_after(self, begin: int) -> Sequence[AbortedTransaction] | None:
        """The aborted transactions that end after a position.

        One that ended before would hide later records of its producer: a reader lets it end at its
        marker, which is not among these batches.
        """
        if not self.aborted:
            return self.aborted
        left = sorted(self.aborted, key=lambda each: each.first_offset, reverse=True)
        ongoing: dict[int, AbortedTransaction] = {}
        for position, header in split_batches(self.view[:begin], check_crc=False):
            while left and left[-1].first_offset <= header.last_offset:
                started = left.pop()
                ongoing[started.producer_id] = started
            if header.is_control and header.producer_id in ongoing:
                for record in decode_records(self.view, position):
                    if not read_control(record)[0]:
                        ongoing.pop(header.producer_id, None)
        return [*ongoing.values(), *reversed(left)]


def whole_run(
    view: memoryview, offset: int, aborted: Sequence[AbortedTransaction] | None
) -> Run | None:
    """The whole batches of a response to a fetch from an offset; None if it has none."""
    position, last, end = 0, -1, len(view)
    while position + HEADER_BYTES <= end:
        size = LENGTH_END + LENGTH.unpack_from(view, position + LENGTH_AT)[0]
        if size < HEADER_BYTES:
            return None
        if size > end - position:
            break
        last = position
        position += size
    if last < 0:
        return None
    base, _, delta = PLACE.unpack_from(view, last)
    next_offset = base + delta + 1
    start = min(offset, PLACE.unpack_from(view, 0)[0])
    if next_offset <= offset:
        return None
    return Run(view if position == end else view[:position], start, next_offset, aborted)
