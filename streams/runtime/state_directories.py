"""StateDirectories: where the stores of tasks lie on disk.

<state_dir>/<application id>/process.id     who we are, also after a restart
<state_dir>/<application id>/0_3/           stores of task 0_3
<state_dir>/<application id>/global/        global stores
"""

from pathlib import Path
from uuid import UUID

from broker.machine import Machine
from broker.model import OpenFile
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
        machine: Machine,
        child: int | None = None,
    ) -> None:
        """Each of several processes on one machine has a folder of its own."""
        within = application_id if child is None else f"{application_id}/process-{child}"
        self._tasks = StateDirectory(state_dir, within, machine)
        self.folder = self._tasks.path
        self._machine = machine
        self._process_file: OpenFile | None = None  # open and locked while the id is ours

    def claim_process_id(self) -> str:
        """The id of this process: the one of its last run, unless another process has that now.

        Transactions are named after it, so no two processes may have the same.
        """
        files = self._machine.files
        files.make_folder(str(self.folder))
        try:
            file = files.lock(str(self.folder / PROCESS_FILE))
        except BlockingIOError:
            return str(self._machine.uuid())
        self._process_file = file
        known = _parse_id(files.pread(file, PROCESS_ID_BYTES_MAX, 0))
        if known is None:  # a new file, or one that lost its bytes with the machine's power
            known = str(self._machine.uuid())
            files.truncate(file, 0)
            files.write_all(file, f"{known}\n".encode(), 0)
            files.fsync(file)
        return known

    @property
    def has_lasting_id(self) -> bool:
        """Whether the next run will have the same id; no other process has it meanwhile."""
        return self._process_file is not None

    def release_process_id(self) -> None:
        """Let the next process have the id."""
        self._process_file = None  # closed with the last reference

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
        """Delete the stores of a task that is not locked."""
        self._tasks.remove(str(task))

    def clean(self, *, unused_for_ms: int) -> list[TaskId]:
        """Delete stores of tasks that moved away at least this long ago."""
        return [TaskId.parse(name) for name in self._tasks.clean(unused_for_ms=unused_for_ms)]

    def remove_all(self) -> None:
        """Delete everything of the application; no instance may run."""
        self._machine.files.remove_folder(str(self.folder))


def _parse_id(data: bytes) -> str | None:
    """What the file says; None when that is not an id."""
    try:
        return str(UUID(data.decode("ascii").strip()))
    except ValueError:
        return None
