"""GlobalTask: fills the global stores of an instance with all partitions of their topics."""

from collections.abc import Mapping

from broker.clock import Clock
from broker.errors import CorruptBatchError
from broker.model import TopicPartition
from streams.config import StreamsConfig
from streams.record import Chunk
from streams.runtime.output import Output
from streams.runtime.task import Task
from streams.runtime.task_metrics import TaskMetrics
from streams.state.task_state import TaskState
from streams.topology import Node, SubTopology, Topology

GLOBAL_NUMBER = -1


class GlobalTask:
    """Runs the nodes that write global stores; each chunk is applied when it arrives.

    Restoring is the same as running: the nodes see every record of the topics.
    """

    def __init__(  # noqa: PLR0913 - its dependencies
        self,
        topology: Topology,
        *,
        application_id: str,
        state: TaskState,
        output: Output,
        clock: Clock,
        config: StreamsConfig,
        metrics: TaskMetrics | None = None,
    ) -> None:
        """`state` has the stores of `topology.global_stores`."""
        nodes: list[Node] = []
        for store in topology.global_stores.values():
            nodes += [store.source, store.processor]
        names = tuple(topology.global_stores)
        self.state = state
        self._task = Task(
            topology,
            SubTopology(GLOBAL_NUMBER, tuple(nodes), names),
            partition=GLOBAL_NUMBER,
            application_id=application_id,
            state=state,
            output=output,
            clock=clock,
            config=config,
            global_stores={name: state.store(name) for name in names},
            metrics=metrics,
            topics=(),
        )
        self.metrics = self._task.metrics

    @property
    def stores(self) -> Mapping[str, object]:
        """The open stores, for tasks to read."""
        return {name: self.state.store(name) for name in self.state.names}

    def apply(self, chunk: Chunk) -> None:
        """Process records of one partition."""
        self._task.add(chunk)
        while self._task.buffered_total:
            self._task.process(len(chunk))

    def skip_corrupt_batch(self, error: CorruptBatchError) -> None:
        """Pass a batch that cannot be read to the exception handler."""
        self._task.skip_corrupt_batch(error)

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset of each partition that was read."""
        return {tp: position.offset for tp, position in self._task.offsets().items()}

    def commit(self) -> None:
        """Flush the nodes and commit the stores."""
        self._task.flush()
        self.state.changes()
        self.state.commit({})

    def close(self) -> None:
        """Close the nodes."""
        self._task.close()
