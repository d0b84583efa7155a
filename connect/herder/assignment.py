"""Assignment: which connectors and tasks this worker runs, and whether it decides for others.

Today a worker is alone, and everything is its own. Several workers of one group would share them by
an assignment that speaks Connect's group protocol; nothing else has to know.
"""

from typing import Protocol

from connect.task_state import TaskId


class Assignment(Protocol):
    """What is given to this worker. Any thread may ask."""

    @property
    def worker_id(self) -> str:
        """host:port of this worker, by which others know it."""
        ...

    @property
    def generation(self) -> int:
        """How often the group has shared out its work; statuses of earlier times are stale."""
        ...

    def is_leader(self) -> bool:
        """Whether this worker may write configurations."""
        ...

    def runs_connector(self, name: str) -> bool:
        """Whether a connector is this worker's."""
        ...

    def runs_task(self, task: TaskId) -> bool:
        """Whether a task is this worker's."""
        ...


class Alone:
    """Everything is this worker's; see Assignment."""

    generation = 0

    def __init__(self, worker_id: str) -> None:
        """By this address others know the worker."""
        self.worker_id = worker_id

    def is_leader(self) -> bool:
        """There is nobody else."""
        return True

    def runs_connector(self, name: str) -> bool:
        """All of them."""
        del name
        return True

    def runs_task(self, task: TaskId) -> bool:
        """All of them."""
        del task
        return True
