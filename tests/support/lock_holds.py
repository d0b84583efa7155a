"""MeasuredLock: how long the broker's lock is held, by whom, and what reaches the disk under it."""

import threading
import time
from collections import Counter, defaultdict

import pytest

from broker.broker import Broker
from broker.files import FileSystem


class MeasuredLock:
    """A lock as `threading.RLock` that takes note of every hold, under the name of the moment.

    A hold counts with the processor time of its thread: on a busy machine the time on the clock
    says how long others ran meanwhile. What waits for the disk is counted instead.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._depth = 0
        self._since = 0.0
        self.label = "start"
        self.longest: dict[str, float] = defaultdict(float)
        self.synced: Counter[str] = Counter()

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take the lock."""
        taken = self._lock.acquire(blocking, timeout)
        if taken:
            self._depth += 1
            if self._depth == 1:
                self._since = time.thread_time()
        return taken

    def release(self) -> None:
        """Let go; the last release of a thread ends its hold."""
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
        """Something is about to wait for the disk."""
        if self._is_owned():
            self.synced[self._name()] += 1

    def reset(self) -> None:
        """Forget what was measured."""
        self.longest.clear()
        self.synced.clear()


def install(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> MeasuredLock:
    """Give a broker that is not started yet a measured lock, and watch what it syncs."""
    lock = MeasuredLock()
    monkeypatch.setattr(broker, "_lock", lock)
    fsync, fsync_directory = FileSystem.fsync, FileSystem.fsync_directory

    def noted_fsync(files: FileSystem, *arguments: object) -> None:
        lock.note_sync()
        fsync(files, *arguments)  # type: ignore[arg-type]

    def noted_directory(files: FileSystem, *arguments: object) -> None:
        lock.note_sync()
        fsync_directory(files, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(FileSystem, "fsync", noted_fsync)
    monkeypatch.setattr(FileSystem, "fsync_directory", noted_directory)
    return lock
