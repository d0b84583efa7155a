"""OwnedTask: a task that a runner owns, from its stores on disk to its running code.

RESTORING --stores are at the end of their changelogs--> RESTORED --opened--> RUNNING
    ^                                                                            |
    +---------- the commit failed, or the transaction was aborted ---------------+
STANDBY: stores follow their changelogs, nothing runs; becomes RESTORING when it takes over
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from broker.client.record_consumer import Consumer
from broker.model import TopicPartition
from streams.runtime.partitions import TaskId
from streams.runtime.task import Task
from streams.state.directory import TaskDirectory
from streams.state.task_state import TaskState


class Phase(Enum):
    """The phase of a task; see the diagram above."""

    STANDBY = "standby"
    RESTORING = "restoring"
    RESTORED = "restored"
    RUNNING = "running"


@dataclass(slots=True, eq=False)
class OwnedTask:
    """A task of one runner; only the runner's thread uses it."""

    task_id: TaskId
    inputs: tuple[TopicPartition, ...]
    changelogs: Mapping[str, TopicPartition]  # by store
    source_stores: frozenset[str]  # stores whose changelog is an input
    state: TaskState
    directory: TaskDirectory
    phase: Phase
    task: Task | None = None
    needs_commit: bool = False  # records were processed since the last commit
    positions: dict[str, int] = field(default_factory=dict)  # next changelog offset, by store
    committed: dict[TopicPartition, int] = field(default_factory=dict)  # by this runner
    lags: dict[TopicPartition, int] = field(default_factory=dict)  # of inputs, as last fetched
    ends: dict[TopicPartition, int] = field(default_factory=dict)  # of inputs, as last seen
    processed: dict[TopicPartition, int] = field(
        default_factory=dict
    )  # next offsets, fetched together with `ends`
    restore_ends: dict[str, int] = field(default_factory=dict)  # of changelogs, by store

    def running(self) -> Task:
        """The Task of a running task."""
        assert self.task is not None, f"task {self.task_id} is {self.phase.value}"
        return self.task

    def close_state(self) -> None:
        """Close the stores and release their directory."""
        try:
            self.state.close()
            self.directory.mark_used()
        finally:
            self.directory.release()

    def update_ends(self, consumer: Consumer) -> None:
        """Update the end offsets and positions of the inputs, for metrics."""
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
        """The sum of the positions of all stores, which the assignor compares."""
        return sum(self.positions.values())
