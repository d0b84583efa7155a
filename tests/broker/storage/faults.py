"""A file system that fills up, fails, tears writes and forgets what was not fsynced."""

import errno
import os
from collections.abc import Callable

from broker.files import FileSystem
from broker.model import OpenFile


class QuickFileSystem(FileSystem):
    """Does not wait for the disk; nobody pulls the plug on it."""

    def fsync(self, file: OpenFile) -> None:
        """Trust the page cache."""

    def fsync_directory(self, path: str) -> None:
        """Trust the page cache."""


class Crash(BaseException):
    """The process ends here; BaseException, so that nobody handles it."""


class FaultyFileSystem(FileSystem):
    """Real files, and beside them what would be left of them had the power gone."""

    def __init__(self) -> None:
        """No faults, nothing written yet."""
        self.room_bytes: int | None = None
        self.write_bytes_max: int | None = None
        self.fsync_fails = False
        self.truncate_fails = False
        self.crash_after_writes: int | None = None
        self.fsyncs = 0
        self._paths: dict[int, str] = {}  # inode -> path
        self._durable: dict[str, bytes] = {}
        self._unsynced_names: list[str] = []

    def open(self, path: str, flags: int = os.O_RDWR) -> OpenFile:
        """Open a file, and know it from now on."""
        if flags & os.O_CREAT:
            self._count()
            if not os.path.exists(path):
                self._unsynced_names.append(path)
                self._durable[path] = b""
        file = super().open(path, flags)
        self._paths[os.fstat(file.descriptor).st_ino] = path
        return file

    def pwrite(self, file: OpenFile, data: memoryview | bytes, position: int) -> int:
        """Write as far as there is room, half of it when the process ends here."""
        if self._count():
            super().pwrite(file, data[: len(data) // 2], position)
            raise Crash
        if self.room_bytes is None:
            return super().pwrite(file, data[: self.write_bytes_max], position)
        if self.room_bytes == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = super().pwrite(file, data[: self.room_bytes], position)
        self.room_bytes -= written
        return written

    def _count(self) -> bool:
        """Count a change; True when the process ends with this one."""
        if self.crash_after_writes is None:
            return False
        self.crash_after_writes -= 1
        return self.crash_after_writes < 0

    def _step(self) -> None:
        if self._count():
            raise Crash

    def truncate(self, file: OpenFile, size: int) -> None:
        """Cut a file, unless that is to fail."""
        self._step()
        if self.truncate_fails:
            raise OSError(errno.EIO, "Input/output error")
        super().truncate(file, size)

    def fsync(self, file: OpenFile) -> None:
        """What the file holds now is there after a power cut."""
        self._step()
        self.fsyncs += 1
        if self.fsync_fails:
            raise OSError(errno.EIO, "Input/output error")
        status = os.fstat(file.descriptor)
        path = self._paths[status.st_ino]
        self._durable[path] = os.pread(file.descriptor, status.st_size, 0)

    def fsync_directory(self, path: str) -> None:
        """The names in a folder are there after a power cut."""
        self._step()
        prefix = os.path.join(path, "")
        self._unsynced_names = [
            name for name in self._unsynced_names if os.path.dirname(name) + "/" != prefix
        ]

    def rename(self, old: str, new: str) -> None:
        """Rename, for good; with it all that came before, as a journal keeps its order."""
        self._step()
        super().rename(old, new)
        self._unsynced_names.clear()
        if os.path.isdir(new):
            self._durable = {
                path.replace(old + "/", new + "/"): data for path, data in self._durable.items()
            }
            return
        self._paths[os.stat(new).st_ino] = new
        self._durable[new] = self._durable.pop(old, b"")

    def unlink(self, path: str) -> None:
        """Remove a file."""
        self._step()
        super().unlink(path)
        self._durable.pop(path, None)
        self._unsynced_names.clear()

    def lose_power(self, choose: Callable[[int, int], int]) -> None:
        """Leave of each file what is durable and some of what is not; torn, or with zeros.

        `choose(low, high)` decides, the bounds included.
        """
        names = self._unsynced_names
        for name in names[choose(0, len(names)) :]:
            if os.path.exists(name):
                os.unlink(name)
            self._durable.pop(name, None)
        for path, durable in self._durable.items():
            if os.path.exists(path):
                self._tear(path, durable, choose)
        self.forget_faults()

    def _tear(self, path: str, durable: bytes, choose: Callable[[int, int], int]) -> None:
        with open(path, "rb") as file:
            current = file.read()
        if current == durable:
            return
        kept = current[: choose(len(durable), max(len(durable), len(current)))]
        if not current.startswith(durable):
            kept = current if choose(0, 1) else durable
        elif choose(0, 3) == 0:
            kept += b"\0" * (len(current) - len(kept))
        with open(path, "wb") as file:
            file.write(kept)
        self._durable[path] = kept

    def forget_faults(self) -> None:
        """Work as it should again."""
        self.room_bytes = self.write_bytes_max = None
        self.fsync_fails = self.truncate_fails = False
        self.crash_after_writes = None
        self._unsynced_names.clear()
