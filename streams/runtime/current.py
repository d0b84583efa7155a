"""CurrentRecord: the input record that a task is processing."""

from collections.abc import Iterator
from operator import length_hint

from streams.processor import NO_TIME
from streams.record import Chunk, Headers, Position


class CurrentRecord:
    """The position of a task: a row of a chunk, or the origin of a cached result.

    The loop over a chunk sets one number per record, or none: while rows are pulled, the row is
    computed from the number of remaining rows, when it is needed.
    """

    __slots__ = ("chunk", "failed", "held", "index", "remaining", "time_ms")

    def __init__(self) -> None:
        self.chunk: Chunk | None = None
        self.index = 0  # while rows are pulled: of the last row
        self.remaining: Iterator[object] | None = (
            None  # the timestamps of rows that are not yet pulled
        )
        self.held: Position | None = None  # used while there is no chunk
        self.time_ms = NO_TIME  # the task's stream time
        # The last error that a cached result raised, and where the result came from.
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
        return self.index if self.remaining is None else self.index - length_hint(self.remaining)

    @property
    def raw(self) -> tuple[bytes | None, bytes | None, Headers]:
        """The bytes of key and value, and the headers; empty outside a chunk."""
        chunk = self.chunk
        if chunk is None:
            return None, None, ()
        row = self.row
        headers = () if chunk.headers is None else chunk.headers[row]
        return chunk.keys[row], chunk.values[row], headers

    def origin_of(
        self, error: Exception
    ) -> tuple[Position | None, tuple[bytes | None, bytes | None, Headers]]:
        """The position of the record that caused an error, and its bytes if they are available."""
        failed, self.failed = self.failed, None
        if failed is not None and failed[0] is error:
            return failed[1], (None, None, ())
        return self.position, self.raw
