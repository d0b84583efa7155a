"""MeasuredLock: hold times of the broker's lock by thread, and fsyncs while it is held."""

import threading
import time
from collections import Counter, defaultdict

import pytest

from broker.broker import Broker
from broker.files import FileSystem


class MeasuredLock:
    """A `threading.RLock` that records the longest hold and the fsyncs, by label or thread.

    Holds are measured in processor time of the thread, because wall time includes other threads
    and processes of a busy machine. This excludes waiting for the disk, so fsyncs are counted.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._since = 0.0
        self.label = "start"
        self.longest: dict[str, float] = defaultdict(float)
        self.synced: Counter[str] = Counter()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock."""
        acquired = self._lock.acquire(blocking, timeout)
        if acquired:
            self._depth += 1
            if self._depth == 1:
                self._since = time.thread_time()
        return acquired

    def release(self) -> None:
        """Release the lock; the last release of a thread ends its hold."""
        self._depth -= 1
        if self._depth == 0:
            held = time.thread_time() - self._since
            name = self._name()
            self.longest[name] = max(self.longest[name], held)
        self._lock.release()

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()

    def _is_owned(self) -> bool:  # for threading.Condition
        return bool(self._lock._is_owned())  # type: ignore[attr-defined]

    def _release_save(self) -> object:
        self.release()
        return None

    def _acquire_restore(self, _: object) -> None:
        self.acquire()

    def _name(self) -> str:
        thread = threading.current_thread()
        return self.label if thread is threading.main_thread() else thread.name

    def note_sync(self) -> None:
        """Count an fsync if this thread holds the lock."""
        if self._is_owned():
            self.synced[self._name()] += 1

    def reset(self) -> None:
        """Clear the measurements."""
        self.longest.clear()
        self.synced.clear()


def install(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> MeasuredLock:
    """Replace the lock of a broker that is not started yet, and count its fsyncs."""
    lock = MeasuredLock()
    monkeypatch.setattr(broker, "_lock", lock)
    fsync, fsync_directory = FileSystem.fsync, FileSystem.fsync_directory

    def counted_fsync(files: FileSystem, *arguments: object) -> None:
        lock.note_sync()
        fsync(files, *arguments)  # type: ignore[arg-type]

    def counted_fsync_directory(files: FileSystem, *arguments: object) -> None:
        lock.note_sync()
        fsync_directory(files, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(FileSystem, "fsync", counted_fsync)
    monkeypatch.setattr(FileSystem, "fsync_directory", counted_fsync_directory)
    return lock
