"""Ids and target states of tasks and connectors, and the listener for their states."""

from enum import Enum
from typing import NamedTuple, Protocol


class TaskId(NamedTuple):
    """One task of a connector."""

    connector: str
    task: int

    def __str__(self) -> str:
        return f"{self.connector}-{self.task}"


class TargetState(Enum):
    """The target state of a connector; the values are those of the config topic."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


class StatusListener(Protocol):
    """Is notified of the states of one connector or task, by the thread that runs it."""

    def on_startup(self) -> None:
        """The connector or task has started and is running."""
        ...

    def on_running(self) -> None:
        """It runs again after a pause."""
        ...

    def on_paused(self) -> None:
        """It is paused until it is resumed."""
        ...

    def on_stopped(self) -> None:
        """Only for connectors: it was stopped by the user and has no tasks."""
        ...

    def on_failure(self, trace: str) -> None:
        """It failed, and stays failed until it is restarted."""
        ...

    def on_shutdown(self) -> None:
        """The worker stopped it."""
        ...
