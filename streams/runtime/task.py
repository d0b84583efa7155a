"""Task: one sub-topology on one partition.

    add(chunk) -> input_buffer -> process(limit): source loop -> node -> node -> sink -> Output
    flush() -> what nodes held back goes the same way, parents first
    offsets() -> what to commit, with the times in the metadata

Only its runner's thread uses a task. It sends and stores nothing by itself: committing is the
runner's.
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
from streams.runtime.guard import SETTLED, find_failed
from streams.runtime.input_buffer import InputBuffer, PartitionQueue
from streams.runtime.node_context import TaskContext
from streams.runtime.opening import open_nodes, open_source
from streams.runtime.output import Output
from streams.runtime.task_metrics import COMMITS, ENFORCED, PUNCTUATED, TaskMetrics
from streams.runtime.task_times import decode_times, encode_times
from streams.state.task_state import TaskState
from streams.topology import SourceNode, SubTopology, Topology


class Task:
    """The code of one sub-topology, running on the records of one partition number."""

    def __init__(  # noqa: PLR0913 - what a task must be given
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

        `topics` are the final names of those that have a partition of this number; left out: all
        that the sources name. Topics of a pattern join when their first chunk comes. Tasks that
        share `ticks` can be compared by `head`. Tasks of one thread share its `cache`.
        """
        self.task_id = f"{sub_topology.number}_{partition}"
        self.state = state
        self.metrics = TaskMetrics() if metrics is None else metrics
        self._partition = partition
        self._topology = topology
        self._sub_topology = sub_topology
        self._application_id = application_id
        self._with = TaskContext(
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
            self._nodes = open_nodes(sub_topology, self._with, self._topic_of)
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

    def unreadable(self, error: CorruptBatchError) -> None:
        """Ask the handler about a batch that cannot be read; if it continues, so does the input.

        Nothing of its partition may wait: the batch comes next.
        """
        tp = TopicPartition(error.topic, error.partition)
        queue = self._input.queues.get(tp) or self._open_input(*tp)
        self._with.current.failed = (error, Position(*tp, error.offset))
        source = self._source_of(tp.topic).name
        self._with.failures.deserialization(source, error, queue.time_ms)
        queue.position = error.next_offset

    def buffered(self, tp: TopicPartition) -> int:
        """How many records of a partition wait."""
        queue = self._input.queues.get(tp)
        return 0 if queue is None else queue.count

    @property
    def buffered_total(self) -> int:
        """How many records wait."""
        return self._input.count

    @property
    def inputs(self) -> tuple[TopicPartition, ...]:
        """The partitions that the task reads."""
        return tuple(self._input.queues)

    def head(self) -> tuple[int, int] | None:
        """Timestamp of the next record, and since when its partition waits for its turn."""
        return self._input.head()

    def ready(self, now_ms: int, lags: Mapping[TopicPartition, int]) -> bool:
        """Whether to process now, by max.task.idle.ms and what is known of the inputs' lags."""
        before = self._input.enforced
        ready = self._input.ready(now_ms, lags)
        self.metrics.counter(ENFORCED).add(self._input.enforced - before)
        return ready

    # Work

    def process(self, limit: int) -> int:
        """Process up to this many records in timestamp order; returns how many.

        Stops early when an input has run empty, so that `ready` can be asked again.
        """
        done = 0
        try:
            while done < limit:
                turn = self._input.turn()
                if turn is None:
                    break
                queue, until_ms = turn
                done += self._run(queue, limit - done, until_ms)
                if not queue.count and self._input.must_decide_again:
                    break
        finally:
            self._with.current.chunk = None
        self._end_round(done)
        return done

    def punctuate_stream_time(self) -> int:
        """Run punctuators that are due by the task's stream time; how many ran."""
        time_ms = self._with.current.time_ms
        if time_ms == NO_TIME:
            return 0
        return self._punctuated(self._with.stream_punctuations.run(time_ms, self._punctuate))

    def punctuate_wall_clock(self) -> int:
        """Run punctuators that are due by the wall clock; how many ran."""
        now_ms = self._with.clock.now_ms()
        return self._punctuated(self._with.clock_punctuations.run(now_ms, self._punctuate))

    @property
    def next_wall_clock_ms(self) -> int:
        """When the next punctuator is due by the wall clock."""
        return self._with.clock_punctuations.due_ms

    @property
    def stream_time_ms(self) -> int:
        """The largest timestamp taken from the inputs, -1 at first."""
        return self._with.current.time_ms

    # Commit

    @property
    def commit_requested(self) -> bool:
        """Whether a node asked for a commit."""
        return self._with.commit_requested

    def flush(self) -> None:
        """Let nodes forward what they held back, parents first."""
        for index, action in self._with.before_commit:
            self._guard(action, self._sub_topology.nodes[index].name)

    def offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What to commit: positions and times of all inputs that were read, if any changed."""
        operators = {name: time.ms for name, time in self._with.times.items()}
        queues = [queue for queue in self._input.queues.values() if queue.position is not None]
        texts = encode_times([queue.time_ms for queue in queues], operators)
        found = {
            queue.topic_partition: OffsetAndMetadata(queue.position, metadata=text)
            for queue, text in zip(queues, texts, strict=True)
            if queue.position is not None
        }
        return {} if found == self._committed else found

    def position(self, tp: TopicPartition) -> int | None:
        """The next offset of an input to process; None if nothing was read."""
        queue = self._input.queues.get(tp)
        return None if queue is None else queue.position

    def resume_from(self, committed: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Go on from a commit: positions, and the times in its metadata."""
        for tp, position in committed.items():
            queue = self._input.queues.get(tp) or self._open_input(*tp)
            times = decode_times(position.metadata)
            queue.position = position.offset
            queue.time_ms = max(queue.time_ms, times.partition_ms)
            self._with.current.time_ms = max(self._with.current.time_ms, times.partition_ms)
            self._with.resume_times(times.operators)

    def committed(self) -> None:
        """What `offsets` said is committed."""
        self._committed.update(self.offsets())
        self._with.commit_requested = False
        self.metrics.counter(COMMITS).add()

    def close(self) -> None:
        """Close all nodes, parents first; the first error is raised when all are closed."""
        first: Exception | None = None
        for _, action in self._with.on_close:
            try:
                action()
            except Exception as error:
                first = first or error
        self._with.on_close.clear()
        self._input.clear()
        if first is not None:
            raise first

    # Inside

    def _topic_of(self, topic: str) -> str:
        """The final name of a topic of the topology."""
        internal = topic in self._topology.repartition_topics
        return f"{self._application_id}-{topic}" if internal else topic

    def _open_input(self, topic: str, partition: int) -> PartitionQueue:
        source = self._source_of(topic)
        run, find_head = open_source(
            source, topic, self._nodes, self._with, self.punctuate_stream_time
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
        except SETTLED:
            raise
        except Exception as error:
            self._settle(error, self._source_of(queue.topic_partition.topic).name)
            return 1

    def _punctuated(self, ran: int) -> int:
        self.metrics.counter(PUNCTUATED).add(ran)
        if self._with.current.chunk is None:
            self._end_round(ran)
        return ran

    def _end_round(self, done: int) -> None:
        """Let nodes forward what they held back for the end of the round, parents first."""
        if done:
            for index, action in self._with.after_round:
                self._guard(action, self._sub_topology.nodes[index].name)

    def _punctuate(self, node: str, punctuator: Punctuator, time_ms: int) -> None:
        """Run a punctuator: it belongs to no record."""
        current, record_time = self._with.current, self.state.record_time
        chunk, held, current.chunk, current.held = current.chunk, current.held, None, None
        record_time.ms = time_ms
        try:
            self._guard(lambda: punctuator(time_ms), node)
        finally:
            current.chunk, current.held = chunk, held

    def _guard(self, action: Callable[[], None], node: str) -> None:
        try:
            action()
        except SETTLED:
            raise
        except Exception as error:
            self._settle(error, node)

    def _settle(self, error: Exception, node: str) -> None:
        """Ask the handler about an error that came through; `node` if no other is to blame."""
        failed = find_failed(error, self._nodes.functions)
        if failed is None:
            time_ms = self._with.current.time_ms
            self._with.failures.processing(node, error, None, None, time_ms, ())
        else:
            self._with.failures.processing(failed.node, error, *failed[1:])


def cache_of_thread(config: StreamsConfig) -> CacheBudget:
    """A thread's share of what results of the application may be held back."""
    return CacheBudget(config.statestore_cache_max_bytes // config.num_stream_threads)
