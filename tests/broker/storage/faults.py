"""A file system that fills up, fails, tears writes and forgets what was not fsynced."""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class NameChange:
    """A file or folder that was created, renamed or removed: which names it had and has."""

    old: str | None
    new: str | None
    gone: bytes | None = None  # durable bytes of the file that was removed or replaced

    def is_in(self, folder: str) -> bool:
        """Whether a folder has one of the names."""
        return any(os.path.dirname(path) == folder for path in (self.old, self.new) if path)


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
        self._unsynced_names: list[NameChange] = []

    def open(self, path: str, flags: int = os.O_RDWR) -> OpenFile:
        """Open a file, and know it from now on."""
        if flags & os.O_CREAT:
            self._count()
            if not os.path.exists(path):
                self._unsynced_names.append(NameChange(None, path))
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
        folder = path.rstrip("/")
        self._unsynced_names = [each for each in self._unsynced_names if not each.is_in(folder)]

    def fsync_names(self, folder: OpenFile) -> None:
        """The same for a folder that is open."""
        self.fsync_directory(self._paths[os.fstat(folder.descriptor).st_ino])

    def rename(self, old: str, new: str) -> None:
        """Rename: the new name is there after a power cut when its folder was fsynced."""
        self._step()
        gone = self._durable_bytes(new)
        super().rename(old, new)
        self._unsynced_names.append(NameChange(old, new, gone))
        self._move_durable(old, new)

    def unlink(self, path: str) -> None:
        """Remove a file: it may be back after a power cut, until its folder was fsynced."""
        self._step()
        if not os.path.exists(path):
            return
        gone = self._durable_bytes(path)
        super().unlink(path)
        self._unsynced_names.append(NameChange(path, None, gone))
        self._durable.pop(path, None)

    def _durable_bytes(self, path: str) -> bytes | None:
        """What a power cut leaves of a file; None when there is none."""
        if not os.path.isfile(path):
            return None
        if path in self._durable:
            return self._durable[path]
        with open(path, "rb") as file:  # nobody has written to it
            return file.read()

    def _move_durable(self, old: str, new: str) -> None:
        """A file or folder has another name."""
        if os.path.isdir(new):
            self._durable = {
                path.replace(old + "/", new + "/"): data for path, data in self._durable.items()
            }
            return
        self._paths[os.stat(new).st_ino] = new
        self._durable[new] = self._durable.pop(old, b"")

    def lose_power(self, choose: Callable[[int, int], int]) -> None:
        """Leave of each file what is durable and some of what is not; torn, or with zeros.

        `choose(low, high)` decides, the bounds included.
        """
        names = self._unsynced_names
        for change in reversed(names[choose(0, len(names)) :]):  # a journal keeps its order
            self._undo(change)
        for path, durable in self._durable.items():
            if os.path.exists(path):
                self._tear(path, durable, choose)
        self.forget_faults()

    def _undo(self, change: NameChange) -> None:
        """Files have the names that they had before."""
        if change.new is not None and os.path.exists(change.new):
            if change.old is None:
                os.unlink(change.new)
                self._durable.pop(change.new, None)
            else:
                os.rename(change.new, change.old)
                self._move_durable(change.new, change.old)
        back = change.old if change.new is None else change.new
        if change.gone is not None and back is not None:
            with open(back, "wb") as file:
                file.write(change.gone)
            self._durable[back] = change.gone

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
