"""LogFlushing: the parts of a log that are not on disk yet.

    begin ──► ticket ──► sync, without the lock ──► finish       all of it is on the disk
                                                ──► abandon      the next ticket contains it again
                                                ──► log.fail     an fsync failed

A log has one ticket at a time. The names of new files, and a disk error, are reported to the first
fsync after them: a second thread could neither wait for the former nor see the latter.
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from broker.files import FileSystem, NotOpened
from broker.model import OpenFile
from broker.storage.segment import Segment

if TYPE_CHECKING:
    from broker.storage.partition_log import PartitionLog


@dataclass(frozen=True, slots=True)
class FlushTicket:
    """The files of a log that are not on disk yet, and the offset up to which they reach."""

    log: "PartitionLog"
    # Files that are not open are opened one after another: descriptors are scarce.
    files: list[OpenFile | str]
    folders: list[str]
    sealed: list[Segment]
    end_offset: int
    truncations: int

    def sync(self, files: FileSystem) -> None:
        """Wait for the disk; the only method of a log that needs no lock.

        NotOpened if a file cannot be opened, which does not affect its data. Any other OSError is a
        failed fsync, after which it is unknown what is on disk.
        """
        for file in self.files:
            opened = _open(files, file) if isinstance(file, str) else file
            if opened is not None:
                files.fsync(opened)
        for folder in self.folders:
            files.fsync_directory(folder)


def _open(files: FileSystem, path: str) -> OpenFile | None:
    """Open a file by its path; None if it was deleted and need not be flushed."""
    try:
        return files.open(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise NotOpened(error.errno, error.strerror, path) from error


class LogFlushing:
    """Tracks what must be flushed of a log; called under the broker's lock."""

    __slots__ = (
        "_announced", "_files", "_folders", "_last_ms", "_log", "_messages", "_ticket"
    )  # fmt: skip

    def __init__(self, log: "PartitionLog") -> None:
        """Everything is on disk, except possibly the names of files.

        The last process may have ended between creating files and making their names durable.
        """
        self._log = log
        self._folders = [os.path.dirname(log.folder), log.folder]  # with new names in them
        self._files: list[str] = []  # small ones, beside the segments
        self._messages = 0
        self._last_ms = log.context.clock.monotonic_ms()
        self._announced = False
        self._ticket: FlushTicket | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether a flush is running: another one must wait for it."""
        return self._ticket is not None

    def add_file(self, path: str) -> None:
        """Add a small file of the log that was written."""
        self._files.append(path)

    def add_folder(self, path: str) -> None:
        """Add a folder with a new name in it."""
        if path not in self._folders:
            self._folders.append(path)

    def announce(self) -> None:
        """Notify the flusher, once, that there is unflushed data."""
        if not self._announced:
            self._announced = True
            self._log.context.needs_flush(self._log)

    def wrote(self, count: int) -> bool:
        """Count written records; True when flush.messages requires a flush now."""
        self._messages += count
        if not self._announced:
            self.announce()
        return self._messages >= self._log.config.flush_messages

    def segments(self) -> list[Segment]:
        """Segments to flush, at the end of the log; flushed ones never follow unflushed ones."""
        segments = self._log.segments
        first = len(segments)
        while first and not segments[first - 1].flushed:
            first -= 1
        return segments[first:]

    def begin(self) -> FlushTicket | None:
        """A ticket for the unflushed files; None if everything is on disk."""
        assert self._ticket is None, f"{self._log.topic_partition} is being flushed"
        log = self._log
        self._announced = False
        if log.failure is not None or not log.segments:
            return None
        active = log.segments[-1]
        segments = self.segments()
        if segments == [active] and not active.sealed and log.durable_offset >= log.end_offset:
            return None
        if not segments:
            return None
        files = [file for segment in segments for file in segment.files_to_flush()]
        self._ticket = FlushTicket(
            log=log,
            files=[*files, *self._files],
            folders=self._folders,
            sealed=[segment for segment in segments if segment.sealed],
            end_offset=log.end_offset,
            truncations=log.truncations,
        )
        self._folders = []
        self._files = []
        self._messages = 0
        self._last_ms = log.context.clock.monotonic_ms()
        return self._ticket

    def finish(self, ticket: FlushTicket) -> None:
        """Everything in the ticket is on disk."""
        self._ticket = None
        self._log.flushed(ticket)

    def abandon(self, ticket: FlushTicket) -> None:
        """Some files of the ticket could not be opened; the next ticket contains them again."""
        self._ticket = None
        self._folders = list(dict.fromkeys(ticket.folders + self._folders))
        names = [file for file in ticket.files if isinstance(file, str)]
        self._files = list(dict.fromkeys(names + self._files))

    def give_up(self) -> None:
        """The log has failed: nothing more is flushed."""
        self._ticket = None

    def is_due(self) -> bool:
        """Whether a sealed segment or flush.ms requires a flush."""
        log = self._log
        if len(log.segments) > 1 and not log.segments[-2].flushed:
            return True
        if log.durable_offset >= log.end_offset:
            return False
        waited_ms = log.context.clock.monotonic_ms() - self._last_ms
        return waited_ms >= log.config.flush_ms
