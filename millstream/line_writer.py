"""LineWriter: writes lines to standard output, and tracks which of them were read.

A command commits the records that it has printed, so "printed" must be exact. Lines are written
directly to the file descriptor, without a buffer. But lines in a pipe may never be read: `consume |
head -5` would leave hundreds of them there. Therefore a pipe can be watched: its size is reduced to
one page, so that poll(2) reports it as writable only if it is empty, and a line counts when the
reader has read all of it.
"""

import array
import fcntl
import os
import select
import stat
import sys
import termios
import time
from contextlib import suppress
from typing import Self

from broker.errors import MillstreamError
from millstream.commands.stopping import StopRequest

WAIT_MS = 200
# How long the reader may take to read a partly written line after the command was stopped.
GRACE_S = 1.0
# A writable pipe has room for this many bytes: writing them cannot block.
WRITE_BYTES = select.PIPE_BUF


class Stopped(Exception):
    """The command was stopped before the line was written."""


class OutputFailed(MillstreamError):
    """Standard output cannot be written, because of a full disk for example."""


class LineWriter:
    """Writes lines until `stop` is set; BrokenPipeError if the reader has closed the pipe."""

    def __init__(self, stop: StopRequest, *, until_read: bool = False) -> None:
        """`until_read`: a line is written when the reader of the pipe has read it."""
        self._stop = stop
        self._encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        self._fd = _descriptor()
        self._until_read = until_read
        self._pipe_bytes: int | None = None
        self._ready = select.poll()

    def __enter__(self) -> Self:
        sys.stdout.flush()
        if self._fd is not None:
            self._ready.register(self._fd, select.POLLOUT)
            if self._until_read and stat.S_ISFIFO(os.fstat(self._fd).st_mode):
                self._watch(self._fd)
        return self

    def __exit__(self, *_: object) -> None:
        if self._fd is not None and self._pipe_bytes is not None:
            with suppress(OSError):
                fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, self._pipe_bytes)

    def _watch(self, fd: int) -> None:
        """Reduce the pipe to one page; if that is not possible, written lines count as read."""
        with suppress(OSError, AttributeError):
            before = fcntl.fcntl(fd, fcntl.F_GETPIPE_SZ)
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, WRITE_BYTES)
            self._pipe_bytes = before

    def write(self, line: str) -> None:
        """Return when the line is written; raises Stopped, BrokenPipeError or OutputFailed."""
        if self._stop.is_set:
            raise Stopped
        if self._fd is None:  # a stream of a test, or of a program that calls the command
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
            return
        data = memoryview(f"{line}\n".encode(self._encoding, "backslashreplace"))
        try:
            while data:
                self._wait(self._fd)
                with suppress(BlockingIOError):
                    data = data[os.write(self._fd, data[:WRITE_BYTES]) :]
            if self._pipe_bytes is not None:
                self._wait(self._fd)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputFailed(f"cannot write to standard output: {error.strerror}") from error

    def _wait(self, fd: int) -> None:
        """Wait until there is room; in a watched pipe, until everything has been read."""
        end_s: float | None = None
        while True:
            for _, events in self._ready.poll(WAIT_MS):
                if events & select.POLLERR and self._pipe_bytes is not None and _unread(fd):
                    raise BrokenPipeError
                return
            if self._stop.is_set:
                end_s = end_s or time.monotonic() + GRACE_S
                if time.monotonic() > end_s:
                    raise Stopped


def _descriptor() -> int | None:
    """The descriptor of standard output; None if it was replaced."""
    own = sys.__stdout__
    return own.fileno() if own is not None and sys.stdout is own else None


def _unread(pipe: int) -> int:
    """The number of unread bytes in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]
