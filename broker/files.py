"""FileSystem: the calls that reach the disk, and OpenFiles: how many descriptors stay open."""

import contextlib
import errno
import fcntl
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

from broker import descriptors
from broker.model import OpenFile

RELEASED_AT_ONCE = 16
PIPE_BYTES = 1 << 16


class NotOpened(OSError):
    """A file or directory could not be opened for fsync; its content is unknown."""


class FileSystem:
    """The disk; tests and simulations replace it with one that tears writes, fills up or fails."""

    # Closes cached files; returns whether there were any.
    make_room: Callable[[], bool] = staticmethod(lambda: False)

    def open(self, path: str, flags: int = os.O_RDWR) -> OpenFile:
        """Open a file; if there are no free descriptors, cached files are closed."""
        try:
            return self.open_once(path, flags)
        except OSError as error:
            if error.errno not in descriptors.NO_DESCRIPTORS or not self.make_room():
                raise
        return self.open_once(path, flags)

    def open_once(self, path: str, flags: int) -> OpenFile:
        """Open a file, or fail if there are no free descriptors."""
        return OpenFile(path, flags)

    def lock(self, path: str) -> OpenFile:
        """Open and lock a file; BlockingIOError if another process has locked it.

        Closing the file releases the lock, as does the end of the process.
        """
        file = self.open(path, os.O_RDWR | os.O_CREAT)
        fcntl.flock(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return file

    def size(self, file: OpenFile) -> int:
        """Size of an open file in bytes."""
        return os.fstat(file.descriptor).st_size

    def pwrite(self, file: OpenFile, data: memoryview | bytes, position: int) -> int:
        """Write at a position; may write less than asked."""
        return os.pwrite(file.descriptor, data, position)

    def pread(self, file: OpenFile, size: int, position: int) -> bytes:
        """Read at a position; less at the end of the file."""
        return os.pread(file.descriptor, size, position)

    def truncate(self, file: OpenFile, size: int) -> None:
        """Cut a file to a size."""
        os.ftruncate(file.descriptor, size)

    def fsync(self, file: OpenFile) -> None:
        """Wait until the file's bytes are on the disk."""
        os.fdatasync(file.descriptor)

    def fsync_directory(self, path: str) -> None:
        """Wait until the directory entries of a folder are on the disk."""
        try:
            folder = self.open(path, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise NotOpened(error.errno, error.strerror, path) from error
        self.fsync_names(folder)

    def fsync_names(self, folder: OpenFile) -> None:
        """Wait until the directory entries of an open folder are on the disk."""
        os.fsync(folder.descriptor)

    def fsync_parents(self, path: str) -> None:
        """Wait until the names of a folder and of its parents are on the disk."""
        while (parent := os.path.dirname(path)) != path:
            try:
                self.fsync_directory(parent)
            except NotOpened as error:
                if error.errno != errno.EACCES:  # a folder without access belongs to another user
                    raise
            path = parent

    def rename(self, old: str, new: str) -> None:
        """Rename a file or folder, replacing the target."""
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        """Remove a file, if it exists."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def make_folder(self, path: str) -> None:
        """Create a folder with its parents, if it does not exist."""
        os.makedirs(path, exist_ok=True)

    def remove_folder(self, path: str) -> None:
        """Remove a folder and its content."""
        shutil.rmtree(path, ignore_errors=True)

    def list_folder(self, path: str) -> dict[str, int]:
        """Names and sizes of the files in a folder; sub-folders have size -1."""
        with os.scandir(path) as entries:
            return {entry.name: -1 if entry.is_dir() else entry.stat().st_size for entry in entries}

    def read_file(self, path: str) -> bytes | None:
        """The content of a small file; None if it does not exist."""
        try:
            file = self.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            return self.pread(file, self.size(file), 0)
        except OSError as error:
            if error.errno != errno.ESPIPE:
                raise
        return _read_pipe(file)

    def modified_ns(self, path: str) -> int | None:
        """The modification time of a file; None if it does not exist."""
        try:
            return os.stat(path).st_mtime_ns
        except (FileNotFoundError, NotADirectoryError):
            return None

    def set_modified_ms(self, path: str, time_ms: int) -> None:
        """Set the modification time of a file or folder."""
        os.utime(path, ns=(time_ms * 1_000_000, time_ms * 1_000_000))

    def is_named(self, file: OpenFile, path: str) -> bool:
        """Whether a path still refers to an open file, which was neither removed nor replaced."""
        try:
            return os.path.samestat(os.fstat(file.descriptor), os.stat(path))
        except FileNotFoundError:
            return False

    def space(self, path: str) -> tuple[int, int]:
        """The total and the free bytes of the disk that contains a folder."""
        disk = os.statvfs(path)
        return disk.f_frsize * disk.f_blocks, disk.f_frsize * disk.f_bavail

    def descriptors_max(self) -> int:
        """The number of descriptors that the process may open."""
        return descriptors.limit()

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Replace a small file in one step: a reader sees the old bytes or the new ones."""
        temporary = path + ".tmp"
        file = self.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.write_all(file, data, 0)
        if durable:
            self.fsync(file)
        self.rename(temporary, path)
        if durable:
            self.fsync_directory(os.path.dirname(path) or os.curdir)

    def write_all(self, file: OpenFile, data: memoryview | bytes, position: int) -> None:
        """Write all of the data, in as many calls as necessary."""
        written = self.pwrite(file, data, position)
        while written < len(data):
            written += self.pwrite(file, memoryview(data)[written:], position + written)


def _read_pipe(file: OpenFile) -> bytes:
    """The content of a pipe, such as `<(command)` or /dev/stdin, until it is closed."""
    pieces = []
    while piece := os.read(file.descriptor, PIPE_BYTES):
        pieces.append(piece)
    return b"".join(pieces)


class Holder(Protocol):
    """The owner of an open file, which can close it."""

    recently_used: bool

    def release(self) -> None:
        """Close the file; it is opened again when it is needed."""
        ...


class OpenFiles:
    """Limits the number of open files: those not used recently are closed first.

    Using an open file only sets a flag; opening one may close another.
    """

    def __init__(self, count_max: int) -> None:
        assert count_max > 0
        self._count_max = count_max
        self._holders: OrderedDict[Holder, None] = OrderedDict()

    def __len__(self) -> int:
        """How many are open."""
        return len(self._holders)

    def opened(self, holder: Holder) -> None:
        """Register a holder that has just opened its file, after closing others if necessary."""
        while len(self._holders) >= self._count_max:
            oldest, _ = self._holders.popitem(last=False)
            if oldest.recently_used:
                oldest.recently_used = False
                self._holders[oldest] = None
            else:
                oldest.release()
        self._holders[holder] = None

    def release_some(self) -> bool:
        """Close files that were not used recently; whether there were any."""
        count = min(len(self._holders), RELEASED_AT_ONCE)
        for _ in range(count):
            oldest, _ = self._holders.popitem(last=False)
            oldest.release()
        return count > 0

    def closed(self, holder: Holder) -> None:
        """Unregister a holder that has closed its file itself."""
        self._holders.pop(holder, None)
