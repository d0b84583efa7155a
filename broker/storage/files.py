"""FileSystem: the calls that reach the disk, and OpenFiles: how many descriptors stay open."""

import contextlib
import os
import shutil
from collections import OrderedDict
from typing import Protocol

from broker.model import OpenFile


class FileSystem:
    """The disk as the log sees it; tests put one in its place that tears, fills up or fails."""

    def open(self, path: str, flags: int = os.O_RDWR) -> OpenFile:
        """Open a file."""
        return OpenFile(path, flags)

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
        """Wait until the names in a folder are on the disk."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, old: str, new: str) -> None:
        """Give a file or folder another name, replacing what had it."""
        os.replace(old, new)

    def unlink(self, path: str) -> None:
        """Remove a file, if it is there."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def make_folder(self, path: str) -> None:
        """Make a folder with its parents, if it is not there."""
        os.makedirs(path, exist_ok=True)

    def remove_folder(self, path: str) -> None:
        """Remove a folder with all that is in it."""
        shutil.rmtree(path, ignore_errors=True)

    def list_folder(self, path: str) -> dict[str, int]:
        """Names and sizes of the files in a folder; sub-folders have size -1."""
        with os.scandir(path) as entries:
            return {entry.name: -1 if entry.is_dir() else entry.stat().st_size for entry in entries}

    def read_file(self, path: str) -> bytes | None:
        """The whole of a small file; None when there is none."""
        try:
            file = self.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        return self.pread(file, os.fstat(file.descriptor).st_size, 0)

    def write_file(self, path: str, data: bytes, *, durable: bool = True) -> None:
        """Replace a small file in one step: whoever looks sees the old bytes or the new."""
        temporary = path + ".tmp"
        file = self.open(temporary, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        self.write_all(file, data, 0)
        if durable:
            self.fsync(file)
        self.rename(temporary, path)
        if durable:
            self.fsync_directory(os.path.dirname(path))

    def write_all(self, file: OpenFile, data: memoryview | bytes, position: int) -> None:
        """Write all of the data, however many calls it takes."""
        written = self.pwrite(file, data, position)
        while written < len(data):
            written += self.pwrite(file, memoryview(data)[written:], position + written)


class Holder(Protocol):
    """Who holds an open file and can let go of it."""

    recently_used: bool

    def release(self) -> None:
        """Let go of the file; it is opened again when needed."""
        ...


class OpenFiles:
    """Keeps at most so many files open: those not used lately are let go first.

    Using an open file costs setting one flag; only opening one looks for another to close.
    """

    def __init__(self, count_max: int) -> None:
        """No files yet."""
        assert count_max > 0
        self._count_max = count_max
        self._holders: OrderedDict[Holder, None] = OrderedDict()

    def __len__(self) -> int:
        """How many are open."""
        return len(self._holders)

    def opened(self, holder: Holder) -> None:
        """Remember a holder that has just opened its file; make room first."""
        while len(self._holders) >= self._count_max:
            oldest, _ = self._holders.popitem(last=False)
            if oldest.recently_used:
                oldest.recently_used = False
                self._holders[oldest] = None
            else:
                oldest.release()
        self._holders[holder] = None

    def closed(self, holder: Holder) -> None:
        """Forget a holder that has let go by itself."""
        self._holders.pop(holder, None)
