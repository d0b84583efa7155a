"""StateDirectory: the directories of an application's tasks, and their locks.

    <state_dir>/<application id>/<task>/        one directory per task, for example "0_3"
    <state_dir>/<application id>/<task>/.lock   locked by the process that runs the task
    <state_dir>/<application id>/<task>/rocksdb/

Locks are those of the operating system (flock), so they are released whenever the process ends. The
directories of tasks that moved away are kept: if the tasks return, only the end of the
changelog must be read. Clean-up removes directories that are not locked and were not used for a
long time.
"""

import re
from collections.abc import Callable, Collection
from pathlib import Path

from broker.machine import Machine
from broker.model import OpenFile
from streams.errors import StateDirectoryLocked, StoreError

LOCK = ".lock"
TASK = re.compile(r"\d+_\d+")


class TaskDirectory:
    """The directory of a task, locked until `release`."""

    def __init__(self, path: Path, lock: OpenFile, mark_used: Callable[[], None]) -> None:
        self.path = path
        self.mark_used = mark_used  # sets the time of last use, for clean-up
        self._lock: OpenFile | None = lock

    def release(self) -> None:
        """Release the lock."""
        self._lock = None  # closed with the last reference


class StateDirectory:
    """The directories of one application. Several processes can use them."""

    def __init__(self, state_dir: str | Path, application_id: str, machine: Machine) -> None:
        self.path = Path(state_dir) / application_id
        self._clock = machine.clock
        self._files = machine.files

    def lock(self, task: str) -> TaskDirectory:
        """Lock the directory of a task; raises StateDirectoryLocked if another process has it."""
        path = self.path / task
        while True:
            self._files.make_folder(str(path))
            try:
                lock = self._files.lock(str(path / LOCK))
            except FileNotFoundError:
                continue  # clean-up removed the directory between the two steps
            except BlockingIOError as error:
                raise StateDirectoryLocked(
                    f'the state of task "{task}" is in use',
                    at=str(path),
                    hint="another process or runner has the task; give each process a state_dir",
                ) from error
            if self._files.is_named(lock, str(path / LOCK)):
                self._mark_used(path)
                return TaskDirectory(path, lock, lambda: self._mark_used(path))

    def _mark_used(self, path: Path) -> None:
        self._files.set_modified_ms(str(path), self._clock.now_ms())

    def tasks(self) -> list[str]:
        """Tasks that have a directory, locked or not."""
        try:
            names = self._files.list_folder(str(self.path))
        except FileNotFoundError:
            return []
        return sorted(name for name in names if TASK.fullmatch(name))

    def clean(self, *, unused_for_ms: int, keep: Collection[str] = ()) -> list[str]:
        """Remove directories that are not locked and were not used for this long."""
        latest_ms = self._clock.now_ms() - unused_for_ms
        return [task for task in self.tasks() if task not in keep and self._remove(task, latest_ms)]

    def remove(self, task: str) -> bool:
        """Remove the directory of a task; False if a process has locked it."""
        return self._remove(task, None)

    def _remove(self, task: str, latest_ms: int | None) -> bool:
        path = self.path / task
        used_ns = self._files.modified_ns(str(path))
        if used_ns is None:
            return True
        if latest_ms is not None and used_ns > latest_ms * 1_000_000:
            return False
        try:
            lock = self._files.lock(str(path / LOCK))
        except BlockingIOError:
            return False
        except FileNotFoundError:
            return True
        self._files.remove_folder(str(path))
        if self._files.is_named(lock, str(path / LOCK)):
            raise StoreError(
                f'the state of task "{task}" cannot be deleted',
                at=str(path),
                hint="the process needs write permission for the directory and its parent",
            )
        return True
