"""OwnedTask: a task that a runner owns, from its stores on disk to its running code.

RESTORING --stores are at the end of their changelogs--> RESTORED --opened--> RUNNING
    ^                                                                            |
    +---------- the commit failed, or the transaction was aborted ---------------+
STANDBY: stores follow their changelogs, nothing runs; becomes RESTORING when it takes over
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from broker.client.api import Consumer
from broker.model import TopicPartition
from streams.runtime.partitions import TaskId
from streams.runtime.task import Task
from streams.state.directory import TaskDirectory
from streams.state.task_state import TaskState


class Phase(Enum):
    """Where a task stands; drawn at the top."""

    STANDBY = "standby"
    RESTORING = "restoring"
    RESTORED = "restored"
    RUNNING = "running"


@dataclass(slots=True, eq=False)
class OwnedTask:
    """A task of one runner, whose thread alone uses it."""

    task_id: TaskId
    inputs: tuple[TopicPartition, ...]
    changelogs: Mapping[str, TopicPartition]  # by store
    source_stores: frozenset[str]  # stores whose changelog is an input
    state: TaskState
    directory: TaskDirectory
    phase: Phase
    task: Task | None = None
    touched: bool = False  # something was processed since the last commit
    positions: dict[str, int] = field(default_factory=dict)  # next changelog offset, by store
    committed: dict[TopicPartition, int] = field(default_factory=dict)  # by this runner
    lags: dict[TopicPartition, int] = field(default_factory=dict)  # of inputs, as last fetched
    ends: dict[TopicPartition, int] = field(default_factory=dict)  # of inputs, as last seen
    processed: dict[TopicPartition, int] = field(default_factory=dict)  # next offsets, as then
    restore_ends: dict[str, int] = field(default_factory=dict)  # of changelogs, by store

    def running(self) -> Task:
        """The code of a task that runs."""
        assert self.task is not None, f"task {self.task_id} is {self.phase.value}"
        return self.task

    def close_state(self) -> None:
        """Let others have the stores."""
        try:
            self.state.close()
            self.directory.mark_used()
        finally:
            self.directory.release()

    def note_ends(self, consumer: Consumer) -> None:
        """Note where the inputs end and how far they are processed, for who watches."""
        task = self.running()
        for tp in self.inputs:
            lag = consumer.current_lag(tp)
            if lag is not None:
                position = consumer.position(tp)
                processed = task.position(tp)
                known = self.committed.get(tp, position)
                self.processed[tp] = known if processed is None else processed
                self.ends[tp] = position + lag

    def position_sum(self) -> int:
        """How far all stores are, in one number: what assignment compares."""
        return sum(self.positions.values())
