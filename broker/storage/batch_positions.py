"""BatchPositions: the positions in segments at which readers find their batches."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from broker.storage.segment import Segment

HINTS_MAX = 32

BatchPosition = tuple[Segment, int]  # a segment, and a position in it where a batch begins


class BatchPositions:
    """Finds the batch of an offset; caches the positions where recent readers will continue."""

    __slots__ = ("_hints",)

    def __init__(self) -> None:
        self._hints: dict[int, BatchPosition] = {}

    def find(self, segments: Sequence[Segment], offset: int) -> BatchPosition | None:
        """The first batch that ends at an offset or after it."""
        place = self._hints.get(offset)
        if place is not None and place[1] < place[0].size_bytes:
            return place
        for segment in segments_from(segments, offset):
            found = segment.find(offset)
            if found is not None:
                return segment, found[0]
        return None

    def remember(self, offset: int, segment: Segment, position: int) -> None:
        """Store the position of the batch with an offset, now or when it is appended."""
        hints = self._hints
        if len(hints) >= HINTS_MAX:
            del hints[next(iter(hints))]
        hints[offset] = (segment, position)

    def forget(self) -> None:
        """Clear the cache: segments have changed."""
        self._hints.clear()


def segments_from(segments: Sequence[Segment], offset: int) -> Iterator[Segment]:
    """The segments from the one that contains an offset."""
    first = bisect_right(segments, offset, key=_base_offset) - 1
    for number in range(max(first, 0), len(segments)):
        yield segments[number]


def _base_offset(segment: Segment) -> int:
    return segment.base_offset


def slice_end(
    segment: Segment, position: int, *, bytes_max: int, limit: int, minimum_one: bool
) -> tuple[int, int]:
    """The end of whole batches from a position on, and the offset there.

    All are below an offset limit and within a number of bytes, except a minimum of one batch.
    """
    end, next_offset = segment.size_bytes, segment.next_offset
    if limit < next_offset:
        next_offset = limit
        found = segment.find(limit)
        if found is not None:
            end, next_offset = found[0], found[1].base_offset
    if end - position > bytes_max:
        end, next_offset = segment.boundary_before(position + bytes_max)
        if end <= position and minimum_one:
            return _batch_end(segment, position, limit)
    return end, next_offset


def _batch_end(segment: Segment, position: int, limit: int) -> tuple[int, int]:
    first = next(segment.headers(position), None)
    if first is None or first[1].next_offset > limit:
        return position, limit
    return position + first[1].size, first[1].next_offset
