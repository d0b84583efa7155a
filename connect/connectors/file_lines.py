"""Lines of standard input, or of a file that may grow, be truncated or replaced."""

import errno
import os
import re
import select
import stat
import sys
from itertools import accumulate, count, repeat
from operator import add
from pathlib import Path

from connect.errors import ConnectError

READ_BYTES = 256 * 1024
LINE_BYTES_MAX = 64 * 1024 * 1024
# The number of bytes before the current position that are compared to detect changed files.
_TAIL_BYTES = 256
# A carriage return at the end may be half of a line end: it waits for the next byte.
_LINE_END = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)


# A line without its end, and the position in the file after it (None for standard input).
Line = tuple[str, int | None]


class LineSplitter:
    """Splits bytes into lines; the last line waits for its end."""

    def __init__(self, position: int = 0) -> None:
        """The position is that of the first byte."""
        self.unfinished = b""
        self._position = position  # of the unfinished line

    def split(self, data: bytes) -> list[tuple[str, int]]:
        """The lines that are complete, and the position after each."""
        data = self.unfinished + data
        end = self._position + len(data)
        if b"\r" in data:
            lines = self._split_at_any_end(data)
        else:
            parts = data.split(b"\n")
            self.unfinished = parts.pop()
            decoded = map(bytes.decode, parts, repeat("utf-8"), repeat("replace"))
            # `count` adds one for each line end.
            ends = map(add, accumulate(map(len, parts)), count(self._position + 1))
            lines = list(zip(decoded, ends, strict=False))
        self._position = end - len(self.unfinished)
        if len(self.unfinished) > LINE_BYTES_MAX:
            raise ConnectError(
                f"a line is longer than {LINE_BYTES_MAX} bytes",
                hint="the file may not be a text file",
            )
        return lines

    def _split_at_any_end(self, data: bytes) -> list[tuple[str, int]]:
        lines: list[tuple[str, int]] = []
        start = 0
        for end in _LINE_END.finditer(data):
            text = data[start : end.start()].decode("utf-8", "replace")
            start = end.end()
            lines.append((text, self._position + start))
        self.unfinished = data[start:]
        return lines


class FileLines:
    """Lines of a file from some position on.

    When the file gets shorter, has different bytes before the current position, or was replaced by
    another file, reading restarts at its beginning. The old file is read to its end before a file
    that replaces it; an unfinished last line then counts as a line.
    """

    def __init__(self, path: str, position: int) -> None:
        """Open the file; FileNotFoundError if it does not exist (yet)."""
        self._path = Path(path)
        self._open(position)

    def next_lines(self) -> list[Line]:
        """The added lines; none at the end of the file."""
        if self._is_changed():
            self._start_again()
        data = os.read(self._file, READ_BYTES)
        if data:
            return self._lines_of(data)
        return self._lines_of_replaced() if self._is_replaced() else []

    def close(self) -> None:
        os.close(self._file)

    def _open(self, position: int) -> None:
        if not stat.S_ISREG(self._path.stat().st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        size = os.fstat(self._file).st_size
        self._read_to = position if position <= size else 0
        self._splitter = LineSplitter(self._read_to)
        os.lseek(self._file, self._read_to, os.SEEK_SET)
        self._tail = self._bytes_before()

    def _start_again(self) -> None:
        os.lseek(self._file, 0, os.SEEK_SET)
        self._read_to = 0
        self._tail = b""
        self._splitter = LineSplitter()

    def _is_changed(self) -> bool:
        if os.fstat(self._file).st_size < self._read_to:
            return True
        return self._bytes_before() != self._tail

    def _bytes_before(self) -> bytes:
        count = min(_TAIL_BYTES, self._read_to)
        return os.pread(self._file, count, self._read_to - count)

    def _is_replaced(self) -> bool:
        try:
            named = self._path.stat()
        except FileNotFoundError:
            return False  # it may be recreated or replaced
        opened = os.fstat(self._file)
        return (named.st_dev, named.st_ino) != (opened.st_dev, opened.st_ino)

    def _lines_of(self, data: bytes) -> list[Line]:
        self._read_to += len(data)
        self._tail = (self._tail + data)[-_TAIL_BYTES:]
        return [*self._splitter.split(data)]

    def _lines_of_replaced(self) -> list[Line]:
        last = self._splitter.unfinished.rstrip(b"\r")
        os.close(self._file)
        self._open(0)
        return [(last.decode("utf-8", "replace"), 0)] if last else []


class StandardInputLines:
    """Lines of standard input; they have no positions."""

    def __init__(self) -> None:
        self._splitter = LineSplitter()

    def next_lines(self) -> list[Line]:
        """The lines that have arrived; none if there is nothing to read now."""
        file = sys.stdin.fileno()
        ready, _, _ = select.select([file], [], [], 0)
        if not ready:
            return []
        lines = self._splitter.split(os.read(file, READ_BYTES))
        return [(text, None) for text, _ in lines]

    def close(self) -> None:
        """Do nothing: others may read standard input."""
