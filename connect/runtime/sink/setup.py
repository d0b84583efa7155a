"""SinkSetup: the parts of one sink task; SinkContext: the context of the task."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from broker.client.api import GroupMetadata
from broker.client.record_consumer import Consumer
from broker.clock import Clock
from broker.linear_patterns import Pattern
from broker.model import TopicPartition
from connect.api import SinkTask
from connect.runtime.dead_letters import DeadLetters
from connect.runtime.error_handling import ErrorHandler
from connect.runtime.metrics import SinkMetrics
from connect.runtime.sink.errant_records import ErrantRecords
from connect.runtime.sink.pipeline import SinkPipeline
from connect.state.task_state import TaskId
from connect.stop_signal import StopSignal


@dataclass(frozen=True, slots=True)
class SinkSetup:
    """The parts of one sink task."""

    task_id: TaskId
    task: SinkTask
    config: Mapping[str, str]
    topics: list[str] | Pattern
    consumer: Consumer
    pipeline: SinkPipeline
    handler: ErrorHandler
    metrics: SinkMetrics
    stop: StopSignal
    clock: Clock
    on_topic: Callable[[str], None]
    leave_group: Callable[[GroupMetadata], None]  # called by another thread than the consumer's
    dead_letters: DeadLetters | None = None
    errant_records: ErrantRecords | None = None
    flush_interval_ms: int = 60_000
    flush_timeout_ms: int = 5_000


@dataclass(slots=True)
class SinkContext:
    """The SinkTaskContext of a task. The runner's next turn executes the requests of the task."""

    config: Mapping[str, str]
    consumer: Consumer
    errant_record_reporter: ErrantRecords | None
    timeout_ms: int | None = None
    commit_requested: bool = False
    wanted_offsets: dict[TopicPartition, int] = field(default_factory=dict)
    paused: set[TopicPartition] = field(default_factory=set)  # by the task
    holds_all: bool = False  # the user has paused the connector, or a batch waits to be put again

    def configs(self) -> Mapping[str, str]:
        return self.config

    def offset(self, partition: TopicPartition, offset: int) -> None:
        """Continue reading at this offset."""
        self.wanted_offsets[partition] = offset

    def timeout(self, timeout_ms: int) -> None:
        """Set how long to wait before the next `put`."""
        self.timeout_ms = timeout_ms

    def assignment(self) -> set[TopicPartition]:
        """The partitions that are assigned to this task."""
        return self.consumer.assignment()

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Pause these partitions until they are resumed."""
        given = list(partitions)
        self.consumer.pause(given)
        self.paused.update(given)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Resume these partitions."""
        given = list(partitions)
        self.paused.difference_update(given)
        if not self.holds_all:
            self.consumer.resume(given)

    def request_commit(self) -> None:
        """Commit offsets soon, without waiting for the interval."""
        self.commit_requested = True

    def hold_all(self, *, hold: bool) -> None:
        """Pause all partitions of the task, or resume those that it has not paused itself."""
        self.holds_all = hold
        assigned = self.consumer.assignment()
        if hold:
            self.consumer.pause(assigned)
        else:
            self.consumer.resume(assigned - self.paused)
