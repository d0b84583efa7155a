"""StateDirectories: where the stores of tasks lie on disk.

<state_dir>/<application id>/process.id     who we are, also after a restart
<state_dir>/<application id>/0_3/           stores of task 0_3
<state_dir>/<application id>/global/        global stores
"""

import fcntl
import os
import shutil
import uuid
from pathlib import Path

from broker.clock import Clock
from streams.runtime.partitions import TaskId
from streams.state.directory import StateDirectory, TaskDirectory

PROCESS_FILE = "process.id"
PROCESS_ID_BYTES_MAX = 200
GLOBAL = "global"


class StateDirectories:
    """The folders of one process of an application."""

    def __init__(
        self,
        state_dir: str | Path,
        application_id: str,
        clock: Clock,
        child: int | None = None,
    ) -> None:
        """Each of several processes on one machine has a folder of its own."""
        within = application_id if child is None else f"{application_id}/process-{child}"
        self._tasks = StateDirectory(state_dir, within, clock)
        self.folder = self._tasks.path
        self._process_file: int | None = None  # open and locked while the id is ours

    def claim_process_id(self) -> str:
        """The id of this process: the one of its last run, unless another process has that now.

        Transactions are named after it, so no two processes may have the same.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        file = os.open(self.folder / PROCESS_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(file)
            return str(uuid.uuid4())
        self._process_file = file
        known = os.read(file, PROCESS_ID_BYTES_MAX).decode().strip()
        if not known:
            known = str(uuid.uuid4())
            os.write(file, f"{known}\n".encode())
        return known

    def release_process_id(self) -> None:
        """Let the next process have the id."""
        file, self._process_file = self._process_file, None
        if file is not None:
            os.close(file)

    def lock(self, task: TaskId) -> TaskDirectory:
        """Take the folder of a task; StateDirectoryLocked when another has it."""
        return self._tasks.lock(str(task))

    def of_global_stores(self) -> Path:
        """The folder of global stores."""
        return self.folder / GLOBAL

    def tasks_on_disk(self) -> list[TaskId]:
        """Tasks that have a folder here."""
        return [TaskId.parse(name) for name in self._tasks.tasks()]

    def remove_task(self, task: TaskId) -> None:
        """Delete the stores of a task that nobody has locked."""
        self._tasks.remove(str(task))

    def clean(self, *, unused_for_ms: int) -> list[TaskId]:
        """Delete stores of tasks that went elsewhere so long ago."""
        return [TaskId.parse(name) for name in self._tasks.clean(unused_for_ms=unused_for_ms)]

    def remove_all(self) -> None:
        """Delete everything of the application; no instance may run."""
        shutil.rmtree(self.folder, ignore_errors=True)
