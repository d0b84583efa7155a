"""Current: the input record that a task is processing."""

from collections.abc import Iterator
from operator import length_hint

from streams.processor import NO_TIME
from streams.record import Chunk, Headers, Position


class Current:
    """Where the task is: a row of a chunk, or a place that a held-back result came from.

    The loop over a chunk sets one number per record, or none at all: where rows are pulled, their
    number is what is left of them. It is looked up when it is needed.
    """

    __slots__ = ("chunk", "failed", "held", "index", "left", "time_ms")

    def __init__(self) -> None:
        self.chunk: Chunk | None = None
        self.index = 0  # while rows are pulled: of the last that will be
        self.left: Iterator[object] | None = None  # what is still to be pulled
        self.held: Position | None = None  # used while there is no chunk
        self.time_ms = NO_TIME  # the task's stream time
        # The last error that a held-back result raised, and where the result came from.
        self.failed: tuple[Exception, Position | None] | None = None

    @property
    def position(self) -> Position | None:
        """Topic, partition and offset; None inside a punctuator."""
        chunk = self.chunk
        if chunk is None:
            return self.held
        return Position(chunk.topic, chunk.partition, chunk.offsets[self.row])

    @property
    def row(self) -> int:
        """The row of the chunk."""
        return self.index if self.left is None else self.index - length_hint(self.left)

    @property
    def raw(self) -> tuple[bytes | None, bytes | None, Headers]:
        """Key, value and headers as they came in; nothing outside a chunk."""
        chunk = self.chunk
        if chunk is None:
            return None, None, ()
        row = self.row
        headers = () if chunk.headers is None else chunk.headers[row]
        return chunk.keys[row], chunk.values[row], headers

    def place_of(
        self, error: Exception
    ) -> tuple[Position | None, tuple[bytes | None, bytes | None, Headers]]:
        """Where the record came from that raised an error, and its bytes if they are still here."""
        failed, self.failed = self.failed, None
        if failed is not None and failed[0] is error:
            return failed[1], (None, None, ())
        return self.position, self.raw
