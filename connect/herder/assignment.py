"""Assignment: the connectors and tasks of this worker, and whether it is the leader.

Today a group has one worker, which runs everything. Several workers of one group would share
connectors by an Assignment that implements Connect's group protocol; other code would not change.
"""

from typing import Protocol

from connect.state.task_state import TaskId


class Assignment(Protocol):
    """The connectors and tasks assigned to this worker. Thread-safe."""

    @property
    def worker_id(self) -> str:
        """host:port of this worker."""
        ...

    @property
    def generation(self) -> int:
        """The generation of the assignment; statuses of earlier generations are stale."""
        ...

    def is_leader(self) -> bool:
        """Whether this worker may write configurations."""
        ...

    def runs_connector(self, name: str) -> bool:
        """Whether a connector is assigned to this worker."""
        ...

    def runs_task(self, task: TaskId) -> bool:
        """Whether a task is assigned to this worker."""
        ...


class SingleWorker:
    """An Assignment of everything to this worker."""

    generation = 0

    def __init__(self, worker_id: str) -> None:
        self.worker_id = worker_id

    def is_leader(self) -> bool:
        return True

    def runs_connector(self, name: str) -> bool:
        del name
        return True

    def runs_task(self, task: TaskId) -> bool:
        del task
        return True
