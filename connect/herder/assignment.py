"""Assignment: which connectors and tasks this worker runs, and whether it decides for others.

Today a worker is alone, and everything is its own. Several workers of one group would share them by
an assignment that speaks Connect's group protocol; nothing else has to know.
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
        """The worker's address is its id."""
        self.worker_id = worker_id

    def is_leader(self) -> bool:
        """No other worker exists."""
        return True

    def runs_connector(self, name: str) -> bool:
        """All of them."""
        del name
        return True

    def runs_task(self, task: TaskId) -> bool:
        """All of them."""
        del task
        return True
