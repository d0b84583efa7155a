"""Receiving: splits the byte stream of a connection into frames, with as few copies as possible.

A frame that arrives whole is passed on where it was received, in a buffer that all connections
share; one that arrives in pieces gets its own buffer, into which the rest is received. That buffer
is pooled, and is at most twice as large as the received data, including other frames of the same
read: a size that is announced but never sent costs a few KiB, while a client that pipelines many
requests does not make the last of them arrive in small pieces.
"""

from struct import Struct

from broker.errors import MalformedMessage

SIZE = Struct(">i")
SHARED_BYTES = 256 * 1024
STEP_BYTES = 1024 * 1024
POOLED_BYTES_MIN = 4 * 1024
POOL_BYTES_MAX = 16 * 1024 * 1024


class BufferPool:
    """Buffers for frames that arrive in pieces, pooled for later frames."""

    def __init__(self) -> None:
        """Empty; the shared buffer is made at once."""
        self.shared = memoryview(bytearray(SHARED_BYTES))
        self.bytes_in_use = 0
        self._free: dict[int, list[bytearray]] = {}
        self._free_bytes = 0

    def take(self, size: int) -> bytearray:
        """A buffer of at least this size, or of one step if that is less; a power of two."""
        wanted = POOLED_BYTES_MIN
        while wanted < size and wanted < STEP_BYTES:
            wanted *= 2
        self.bytes_in_use += wanted
        free = self._free.get(wanted)
        if free:
            self._free_bytes -= wanted
            return free.pop()
        return bytearray(wanted)

    def grow(self, buffer: bytearray, size: int) -> bytearray:
        """A buffer twice as large, with the same bytes at the start; large ones end at `size`."""
        if len(buffer) < STEP_BYTES:
            bigger = self.take(2 * len(buffer))
        else:
            bigger = bytearray(min(size, 2 * len(buffer)))
            self.bytes_in_use += len(bigger)
        bigger[: len(buffer)] = buffer
        self.give(buffer)
        return bigger

    def give(self, buffer: bytearray) -> None:
        """Return a buffer; large ones, and those beyond the pool's limit, are released."""
        size = len(buffer)
        self.bytes_in_use -= size
        if size <= STEP_BYTES and self._free_bytes + size <= POOL_BYTES_MAX:
            self._free.setdefault(size, []).append(buffer)
            self._free_bytes += size


class FrameReader:
    """Splits the received bytes of one connection into frames.

    `space()` is where to receive next, `received(count)` adds the received bytes, `next_frame()`
    returns the complete frames one by one. To stop early, call `keep()`, which saves the rest from
    the shared buffer, and continue with `next_frame()` later.
    """

    __slots__ = (
        "_end", "_frame", "_handed_on", "_kept", "_pool", "_size", "_size_max", "_start", "_view"
    )  # fmt: skip

    def __init__(self, pool: BufferPool, *, size_max: int) -> None:
        self._pool = pool
        self._size_max = size_max
        self._view = pool.shared  # [_start:_end] is received and not passed on yet
        self._start = 0
        self._end = 0
        self._kept = b""  # bytes saved from the shared buffer
        self._frame: bytearray | None = None  # the buffer of a frame that arrives in pieces
        self._size = 0  # the size of that frame
        self._handed_on = False  # whether it was complete and passed on

    @property
    def has_kept(self) -> bool:
        """Whether received bytes were saved for later."""
        return bool(self._kept)

    @property
    def in_pieces(self) -> bool:
        """Whether a frame has arrived incompletely."""
        return self._frame is not None

    def space(self) -> memoryview:
        """Where to receive next."""
        if self._frame is not None:
            return self._view[self._end : self._size]
        shared = self._view = self._pool.shared
        kept = len(self._kept)
        shared[:kept] = self._kept
        self._start, self._end, self._kept = 0, kept, b""
        return shared[kept:]

    def received(self, count: int) -> None:
        """Add bytes that were received into `space()`."""
        self._end += count

    def next_frame(self) -> memoryview | None:
        """The next complete frame, valid until the next call; None if more data is needed."""
        if self._frame is not None:
            return self._next_of_pieces()
        if self._kept:
            self._view, self._kept = memoryview(bytearray(self._kept)), b""
            self._start, self._end = 0, len(self._view)
        first = self._start + SIZE.size
        if first > self._end:
            self.keep()
            return None
        (size,) = SIZE.unpack_from(self._view, self._start)
        if not 0 <= size <= self._size_max:
            raise MalformedMessage(
                f"a frame has {size} bytes, but only {self._size_max} are allowed"
            )
        if first + size > self._end:
            self._begin_pieces(first, size)
            return None
        self._start = first + size
        return self._view[first : self._start]

    def keep(self) -> None:
        """Save the rest of the shared buffer, since others receive into it."""
        if self._handed_on:
            self.release()
        elif self._frame is None and self._start < self._end:
            self._kept = bytes(self._view[self._start : self._end])
            self._start = self._end = 0

    def release(self) -> None:
        """Return the buffer of a frame that arrived in pieces."""
        if self._frame is not None:
            self._view = self._pool.shared
            self._pool.give(self._frame)
            self._frame = None
            self._handed_on = False
            self._start = self._end = 0

    def _next_of_pieces(self) -> memoryview | None:
        assert self._frame is not None
        if self._handed_on:
            self.release()
            return None
        if self._end == self._size:
            self._handed_on = True
            return self._view[: self._size]
        if self._end == len(self._frame):
            self._frame = self._pool.grow(self._frame, self._size)
            self._view = memoryview(self._frame)
        return None

    def _begin_pieces(self, first: int, size: int) -> None:
        rest = self._view[first : self._end]
        frame = self._pool.take(min(size, 2 * self._end))
        frame[: len(rest)] = rest
        self._size = size
        self._start, self._end = 0, len(rest)
        self._frame, self._view = frame, memoryview(frame)
