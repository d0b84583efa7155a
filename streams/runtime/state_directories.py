"""StateDirectories: the directories of stores on disk.

<state_dir>/<application id>/process.id     the id of this process, also after a restart
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
    """The directories of one process of an application."""

    def __init__(
        self,
        state_dir: str | Path,
        application_id: str,
        machine: Machine,
        child: int | None = None,
    ) -> None:
        """`child` is the number of a child process; each child has its own directory."""
        folder = application_id if child is None else f"{application_id}/process-{child}"
        self._tasks = StateDirectory(state_dir, folder, machine)
        self.folder = self._tasks.path
        self._machine = machine
        self._process_file: OpenFile | None = None  # open and locked while this process has the id

    def claim_process_id(self) -> str:
        """Return the id of the last run, or a new one if another process is using it.

        Transactional ids contain it, so it must be unique.
        """
        files = self._machine.files
        files.make_folder(str(self.folder))
        try:
            file = files.lock(str(self.folder / PROCESS_FILE))
        except BlockingIOError:
            return str(self._machine.uuid())
        self._process_file = file
        known = _parse_id(files.pread(file, PROCESS_ID_BYTES_MAX, 0))
        if known is None:  # a new file, or its content was lost in a power failure
            known = str(self._machine.uuid())
            files.truncate(file, 0)
            files.write_all(file, f"{known}\n".encode(), 0)
            files.fsync(file)
        return known

    @property
    def has_persistent_id(self) -> bool:
        """Whether the next run will have the same id, which is reserved until then."""
        return self._process_file is not None

    def release_process_id(self) -> None:
        """Release the id for the next process."""
        self._process_file = None  # closed with the last reference

    def lock(self, task: TaskId) -> TaskDirectory:
        """Lock the directory of a task; raises StateDirectoryLocked if it is in use."""
        return self._tasks.lock(str(task))

    def of_global_stores(self) -> Path:
        """The directory of global stores."""
        return self.folder / GLOBAL

    def tasks_on_disk(self) -> list[TaskId]:
        """Tasks that have a directory."""
        return [TaskId.parse(name) for name in self._tasks.tasks()]

    def remove_task(self, task: TaskId) -> None:
        """Delete the stores of a task that is not locked."""
        self._tasks.remove(str(task))

    def clean(self, *, unused_for_ms: int) -> list[TaskId]:
        """Delete the stores of tasks that have been unused for this long."""
        return [TaskId.parse(name) for name in self._tasks.clean(unused_for_ms=unused_for_ms)]

    def remove_all(self) -> None:
        """Delete everything of the application; no instance may run."""
        self._machine.files.remove_folder(str(self.folder))


def _parse_id(data: bytes) -> str | None:
    """The id in the file; None if it is not valid."""
    try:
        return str(UUID(data.decode("ascii").strip()))
    except ValueError:
        return None
