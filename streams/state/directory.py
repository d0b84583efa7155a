"""StateDirectory: where the stores of an application's tasks are on disk, and who may use them.

    <state_dir>/<application id>/<task>/        one folder per task, for example "0_3"
    <state_dir>/<application id>/<task>/.lock   locked by the process that runs the task
    <state_dir>/<application id>/<task>/rocksdb/

A lock is the operating system's (flock), so it ends with the process, however that ends. Tasks that
went elsewhere leave their folders: if they come back, only the newest part of the changelog must be
read. Clean-up removes directories that are not locked and were unused for long.
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
    """A task's folder, locked until `release`."""

    def __init__(self, path: Path, lock: OpenFile, mark_used: Callable[[], None]) -> None:
        self.path = path
        self.mark_used = mark_used  # clean-up looks at when the folder was used last
        self._lock: OpenFile | None = lock

    def release(self) -> None:
        """Let another process use the folder."""
        self._lock = None  # closed with the last reference


class StateDirectory:
    """The folders of one application. Several processes may use the same one."""

    def __init__(self, state_dir: str | Path, application_id: str, machine: Machine) -> None:
        """Nothing is made before a task needs it."""
        self.path = Path(state_dir) / application_id
        self._clock = machine.clock
        self._files = machine.files

    def lock(self, task: str) -> TaskDirectory:
        """Take a task's folder for this process; StateDirectoryLocked when another has it."""
        path = self.path / task
        while True:
            self._files.make_folder(str(path))
            try:
                lock = self._files.lock(str(path / LOCK))
            except FileNotFoundError:
                continue  # clean-up removed the folder between our two steps
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
        """Tasks that have a folder, used or not."""
        try:
            names = self._files.list_folder(str(self.path))
        except FileNotFoundError:
            return []
        return sorted(name for name in names if TASK.fullmatch(name))

    def clean(self, *, unused_for_ms: int, keep: Collection[str] = ()) -> list[str]:
        """Remove directories that are not locked and were last used at least this long ago."""
        latest_ms = self._clock.now_ms() - unused_for_ms
        return [task for task in self.tasks() if task not in keep and self._remove(task, latest_ms)]

    def remove(self, task: str) -> bool:
        """Remove the folder of a task; False when a process has it locked."""
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
                hint="the process must be allowed to write in the folder and its parent",
            )
        return True
