"""Task: one sub-topology on one partition.

    add(chunk) -> input_buffer -> process(limit): source loop -> node -> node -> sink -> Output
    flush() -> nodes forward cached results in the same way, parents first
    offsets() -> the offsets to commit, with times in the metadata

Only its runner's thread uses a task. A task does not commit by itself; the runner commits it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count

from broker.client.api import OffsetAndMetadata
from broker.clock import Clock
from broker.errors import CorruptBatchError
from broker.model import TopicPartition
from streams.config import StreamsConfig
from streams.errors import StreamsError
from streams.processor import NO_TIME, CacheBudget, Punctuator
from streams.record import Chunk, Position
from streams.runtime.guard import NOT_HANDLED, find_failed_node
from streams.runtime.input_buffer import InputBuffer, PartitionQueue
from streams.runtime.node_context import TaskContext
from streams.runtime.opening import open_nodes, open_source
from streams.runtime.output import Output
from streams.runtime.task_metrics import COMMITS, ENFORCED, PUNCTUATED, TaskMetrics
from streams.runtime.task_times import decode_times, encode_times
from streams.state.task_state import TaskState
from streams.topology import SourceNode, SubTopology, Topology


class Task:
    """Runs the nodes of one sub-topology on the records of one partition number."""

    def __init__(  # noqa: PLR0913 - its dependencies
        self,
        topology: Topology,
        sub_topology: SubTopology,
        *,
        partition: int,
        application_id: str,
        state: TaskState,
        output: Output,
        clock: Clock,
        config: StreamsConfig,
        global_stores: Mapping[str, object],
        metrics: TaskMetrics | None = None,
        topics: Iterable[str] | None = None,
        ticks: Iterator[int] | None = None,
        cache: CacheBudget | None = None,
    ) -> None:
        """Open all nodes.

        `topics` are the topics, by their names on the broker, that have a partition of this number;
        by default all topics of the sources. A topic of a pattern is added with its first chunk.
        The heads of tasks that share `ticks` can be compared. Tasks of one thread share its
        `cache`.
        """
        self.task_id = f"{sub_topology.number}_{partition}"
        self.state = state
        self.metrics = TaskMetrics() if metrics is None else metrics
        self._partition = partition
        self._topology = topology
        self._sub_topology = sub_topology
        self._application_id = application_id
        self._context = TaskContext(
            task_id=self.task_id,
            partition=partition,
            application_id=application_id,
            config=config,
            clock=clock,
            output=output,
            metrics=self.metrics,
            state=state,
            global_stores=global_stores,
            cache=cache_of_thread(config) if cache is None else cache,
        )
        self._input = InputBuffer(config.max_task_idle_ms, count() if ticks is None else ticks)
        self._sources = [node for node in sub_topology.nodes if isinstance(node, SourceNode)]
        try:
            self._nodes = open_nodes(sub_topology, self._context, self._topic_of)
        except Exception:
            self.close()
            raise
        named = [self._topic_of(topic) for source in self._sources for topic in source.topics]
        for topic in named if topics is None else topics:
            self._open_input(topic, partition)
        self._committed: dict[TopicPartition, OffsetAndMetadata] = {}

    # Input

    def add(self, chunk: Chunk) -> None:
        """Queue raw records."""
        if (chunk.topic, chunk.partition) not in self._input.queues:
            self._open_input(chunk.topic, chunk.partition)
        self._input.add(chunk)

    def skip_corrupt_batch(self, error: CorruptBatchError) -> None:
        """Pass a batch that cannot be read to the handler; if that returns, skip the batch.

        No records of its partition may be queued.
        """
        tp = TopicPartition(error.topic, error.partition)
        queue = self._input.queues.get(tp) or self._open_input(*tp)
        self._context.current.failed = (error, Position(*tp, error.offset))
        source = self._source_of(tp.topic).name
        self._context.failures.deserialization(source, error, queue.time_ms)
        queue.position = error.next_offset

    def buffered(self, tp: TopicPartition) -> int:
        """The number of queued records of a partition."""
        queue = self._input.queues.get(tp)
        return 0 if queue is None else queue.count

    @property
    def buffered_total(self) -> int:
        """The number of queued records."""
        return self._input.count

    @property
    def inputs(self) -> tuple[TopicPartition, ...]:
        """The partitions that the task reads."""
        return tuple(self._input.queues)

    def head(self) -> tuple[int, int] | None:
        """Timestamp of the next record, and when its partition began to wait; None if empty."""
        return self._input.head()

    def ready(self, now_ms: int, lags: Mapping[TopicPartition, int]) -> bool:
        """Whether to process now, by max.task.idle.ms and the known lags of the inputs."""
        before = self._input.enforced
        ready = self._input.ready(now_ms, lags)
        self.metrics.counter(ENFORCED).add(self._input.enforced - before)
        return ready

    # Work

    def process(self, limit: int) -> int:
        """Process up to this many records in timestamp order; returns how many.

        Stops early when an input has become empty, so that `ready` is checked again.
        """
        done = 0
        try:
            while done < limit:
                run = self._input.next_run()
                if run is None:
                    break
                queue, until_ms = run
                done += self._run(queue, limit - done, until_ms)
                if not queue.count and self._input.may_wait:
                    break
        finally:
            self._context.current.chunk = None
        self._end_round(done)
        return done

    def punctuate_stream_time(self) -> int:
        """Run punctuators that are due by the task's stream time; returns how many."""
        time_ms = self._context.current.time_ms
        if time_ms == NO_TIME:
            return 0
        return self._punctuated(self._context.stream_punctuations.run(time_ms, self._punctuate))

    def punctuate_wall_clock(self) -> int:
        """Run punctuators that are due by the wall clock; returns how many."""
        now_ms = self._context.clock.now_ms()
        return self._punctuated(self._context.clock_punctuations.run(now_ms, self._punctuate))

    @property
    def next_wall_clock_ms(self) -> int:
        """When the next punctuator is due by the wall clock."""
        return self._context.clock_punctuations.due_ms

    @property
    def stream_time_ms(self) -> int:
        """The largest timestamp of processed records, -1 at first."""
        return self._context.current.time_ms

    # Commit

    @property
    def commit_requested(self) -> bool:
        """Whether a node requested a commit."""
        return self._context.commit_requested

    def flush(self) -> None:
        """Make nodes forward their cached results, parents first."""
        for index, action in self._context.before_commit:
            self._guard(action, self._sub_topology.nodes[index].name)

    def offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The offsets and times of all inputs to commit; empty if nothing has changed."""
        operators = {name: time.ms for name, time in self._context.times.items()}
        queues = [queue for queue in self._input.queues.values() if queue.position is not None]
        encoded_times = encode_times([queue.time_ms for queue in queues], operators)
        offsets = {
            queue.topic_partition: OffsetAndMetadata(queue.position, metadata=metadata)
            for queue, metadata in zip(queues, encoded_times, strict=True)
            if queue.position is not None
        }
        return {} if offsets == self._committed else offsets

    def position(self, tp: TopicPartition) -> int | None:
        """The next offset of an input to process; None if nothing was read."""
        queue = self._input.queues.get(tp)
        return None if queue is None else queue.position

    def resume_from(self, committed: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Continue from committed offsets, and the times in their metadata."""
        for tp, position in committed.items():
            queue = self._input.queues.get(tp) or self._open_input(*tp)
            times = decode_times(position.metadata)
            queue.position = position.offset
            queue.time_ms = max(queue.time_ms, times.partition_ms)
            self._context.current.time_ms = max(self._context.current.time_ms, times.partition_ms)
            self._context.resume_times(times.operators)

    def committed(self) -> None:
        """Called when `offsets` have been committed."""
        self._committed.update(self.offsets())
        self._context.commit_requested = False
        self.metrics.counter(COMMITS).add()

    def close(self) -> None:
        """Close all nodes, parents first; the first error is raised when all are closed."""
        first: Exception | None = None
        for _, action in self._context.on_close:
            try:
                action()
            except Exception as error:
                first = first or error
        self._context.on_close.clear()
        self._input.clear()
        if first is not None:
            raise first

    # Internal

    def _topic_of(self, topic: str) -> str:
        """The name of a topic on the broker."""
        internal = topic in self._topology.repartition_topics
        return f"{self._application_id}-{topic}" if internal else topic

    def _open_input(self, topic: str, partition: int) -> PartitionQueue:
        source = self._source_of(topic)
        run, find_head = open_source(
            source, topic, self._nodes, self._context, self.punctuate_stream_time
        )
        queue = PartitionQueue(TopicPartition(topic, partition), run, find_head)
        self._input.open(queue)
        return queue

    def _source_of(self, topic: str) -> SourceNode:
        for source in self._sources:
            if topic in map(self._topic_of, source.topics):
                return source
        for source in self._sources:
            if source.pattern is not None and source.pattern.fullmatch(topic):
                return source
        raise StreamsError(
            f'task {self.task_id} does not read topic "{topic}"',
            hint=f"its topics are {', '.join(self._sub_topology.source_topics) or 'none'}",
        )

    def _run(self, queue: PartitionQueue, limit: int, until_ms: int) -> int:
        try:
            return queue.run(queue, limit, until_ms)
        except NOT_HANDLED:
            raise
        except Exception as error:
            self._handle_error(error, self._source_of(queue.topic_partition.topic).name)
            return 1

    def _punctuated(self, ran: int) -> int:
        self.metrics.counter(PUNCTUATED).add(ran)
        if self._context.current.chunk is None:
            self._end_round(ran)
        return ran

    def _end_round(self, done: int) -> None:
        """Make nodes forward the results that they cached for the round, parents first."""
        if done:
            for index, action in self._context.after_round:
                self._guard(action, self._sub_topology.nodes[index].name)

    def _punctuate(self, node: str, punctuator: Punctuator, time_ms: int) -> None:
        """Run a punctuator; there is no current record."""
        current, record_time = self._context.current, self.state.record_time
        chunk, held, current.chunk, current.held = current.chunk, current.held, None, None
        record_time.ms = time_ms
        try:
            self._guard(lambda: punctuator(time_ms), node)
        finally:
            current.chunk, current.held = chunk, held

    def _guard(self, action: Callable[[], None], node: str) -> None:
        try:
            action()
        except NOT_HANDLED:
            raise
        except Exception as error:
            self._handle_error(error, node)

    def _handle_error(self, error: Exception, node: str) -> None:
        """Pass an error to the handler; `node` is used if the failed node is not found."""
        failed = find_failed_node(error, self._nodes.functions)
        if failed is None:
            time_ms = self._context.current.time_ms
            self._context.failures.processing(node, error, None, None, time_ms, ())
        else:
            self._context.failures.processing(failed.node, error, *failed[1:])


def cache_of_thread(config: StreamsConfig) -> CacheBudget:
    """A thread's share of the application's cache of results."""
    return CacheBudget(config.statestore_cache_max_bytes // config.num_stream_threads)
