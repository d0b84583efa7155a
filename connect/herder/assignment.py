"""Assignment: the connectors and tasks of this worker.

Today a group has one worker, which runs everything. Several workers of one group would share
connectors here, by Connect's group protocol; other code would not change.
"""

from connect.state.task_state import TaskId


class Assignment:
    """Everything is assigned to this worker."""

    generation = 0  # statuses of earlier generations are stale

    def __init__(self, worker_id: str) -> None:
        """The worker's host and port."""
        self.worker_id = worker_id

    def runs_connector(self, name: str) -> bool:
        """Whether a connector is assigned to this worker."""
        del name
        return True

    def runs_task(self, task: TaskId) -> bool:
        """Whether a task is assigned to this worker."""
        del task
        return True
