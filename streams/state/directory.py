"""StateDirectory: where the stores of an application's tasks are on disk, and who may use them.

    <state_dir>/<application id>/<task>/        one folder per task, for example "0_3"
    <state_dir>/<application id>/<task>/.lock   locked by the process that runs the task
    <state_dir>/<application id>/<task>/rocksdb/

A lock is the operating system's (flock), so it ends with the process, however that ends. Tasks that
went elsewhere leave their folders: if they come back, only the newest part of the changelog must be
read. Clean-up removes folders that nobody has locked and nobody has used for long.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from broker.clock import Clock
from streams.errors import StateDirectoryLocked

LOCK = ".lock"
TASK = re.compile(r"\d+_\d+")


class TaskDirectory:
    """A task's folder, locked until `release`."""

    def __init__(self, path: Path, lock: int) -> None:
        """Hold an open, locked file."""
        self.path = path
        self._lock: int | None = lock

    def release(self) -> None:
        """Let another process use the folder."""
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


class StateDirectory:
    """The folders of one application. Several processes may use the same one."""

    def __init__(self, state_dir: str | Path, application_id: str, clock: Clock) -> None:
        """Nothing is made before a task needs it."""
        self.path = Path(state_dir) / application_id
        self._clock = clock

    def lock(self, task: str) -> TaskDirectory:
        """Take a task's folder for this process; StateDirectoryLocked when another has it."""
        path = self.path / task
        while True:
            path.mkdir(parents=True, exist_ok=True)
            lock = _try_lock(path / LOCK)
            if lock is None:
                raise StateDirectoryLocked(
                    f'the state of task "{task}" is in use',
                    at=str(path),
                    hint="another process or runner has the task; give each process a state_dir",
                )
            if _is_still_there(path / LOCK, lock):
                now = self._clock.now_ms() / 1000
                os.utime(path, (now, now))
                return TaskDirectory(path, lock)
            # Clean-up removed the folder between our two steps.
            os.close(lock)

    def tasks(self) -> list[str]:
        """Tasks that have a folder, used or not."""
        if not self.path.is_dir():
            return []
        return sorted(each.name for each in self.path.iterdir() if TASK.fullmatch(each.name))

    def clean(self, *, unused_for_ms: int, keep: Collection[str] = ()) -> list[str]:
        """Remove folders that no process has locked and that were last used so long ago."""
        removed = []
        latest_s = (self._clock.now_ms() - unused_for_ms) / 1000
        for task in self.tasks():
            if task not in keep and self._remove(task, latest_s):
                removed.append(task)
        return removed

    def remove(self, task: str) -> bool:
        """Remove the folder of a task; False when a process has it locked."""
        return self._remove(task, float("inf"))

    def _remove(self, task: str, latest_s: float) -> bool:
        path = self.path / task
        with suppress(FileNotFoundError):
            if path.stat().st_mtime > latest_s:
                return False
            lock = _try_lock(path / LOCK)
            if lock is None:
                return False
            try:
                shutil.rmtree(path)
            finally:
                os.close(lock)
        return True


def _try_lock(path: Path) -> int | None:
    """An open, locked file; None when another has the lock."""
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def _is_still_there(path: Path, lock: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(lock).st_ino
    except FileNotFoundError:
        return False
