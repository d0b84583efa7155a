"""TopologyTestDriver: runs a topology without a broker, for tests.

    pipe_input -> TopicLog -> task of its partition -> sinks -> TopicLog -> the tasks that read it
                                   |  (until all are processed)
                                   +-> commit: changelogs -> TopicLog

There is a task for each sub-topology and partition, as in a running application. Each piped record
is processed completely: records of repartition and other topics that the topology reads are
processed, too, the smallest timestamp first.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from broker.client.api import OffsetAndMetadata
from broker.clock import ManualClock
from broker.model import TopicPartition
from broker.serde import Serde
from streams.config import StreamsConfig
from streams.errors import StoreError, StoreNotFound, StreamsConfigError, StreamsError
from streams.runtime.global_task import GlobalTask
from streams.runtime.partitions import Layout, TaskId, external_topics, lay_out
from streams.runtime.task import Task
from streams.runtime.task_metrics import TaskMetrics
from streams.serdes import serde_of, serde_or_default
from streams.state.store import (
    KeyValueStore,
    SessionStore,
    StoreKind,
    StoreSpec,
    TimestampedKeyValueStore,
    TimestampedWindowStore,
    VersionedStore,
    WindowStore,
)
from streams.state.task_state import TaskState
from streams.testing.topic_log import TopicLog
from streams.testing.topics import Row, TestInputTopic, TestOutputTopic
from streams.topology import SourceNode, Topology
from streams.windows import Duration, milliseconds

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

Typed = type[T] | Serde[T]

COMMITS = ("each", "manual")
_KEY_VALUE = (StoreKind.KEY_VALUE, StoreKind.LRU)


class TopologyTestDriver:
    """Runs a topology record by record.

    >>> from streams.testing import TopologyTestDriver
    >>> with TopologyTestDriver(topology) as driver:         # doctest: +SKIP
    ...     words = driver.create_input_topic("words", key=str, value=str)
    ...     counts = driver.create_output_topic("counts", key=str, value=int)
    ...     words.pipe_input("a", "hello hello")
    ...     assert counts.read_key_values_to_list() == [("hello", 1), ("hello", 2)]
    """

    def __init__(
        self,
        topology: Topology,
        *,
        config: StreamsConfig | Mapping[str, object] | None = None,
        partitions: int | Mapping[str, int] = 1,
        start_ms: int = 0,
        state_directory: Path | str | None = None,
        commit: str = "each",
    ) -> None:
        """Open all tasks.

        `partitions` is the partition count of every topic, or of some by name (others have 1).
        `start_ms` is the start of the wall clock. Without `state_directory` stores are in memory.
        `commit` is "each": after every record, or "manual": only when `commit()` is called.
        """
        if commit not in COMMITS:
            raise StreamsConfigError(
                f'"commit" is {commit!r}', hint='it must be "each" or "manual"'
            )
        self.topology = topology
        self.config = _config(config)
        self.clock = ManualClock(start_ms)
        self._partitions = partitions
        self._directory = None if state_directory is None else Path(state_directory)
        self._commits_each = commit == "each"
        self._log = TopicLog(self._partition_count)
        self._committed: dict[TopicPartition, OffsetAndMetadata] = {}
        self._existing = {
            topic: self._configured_count(topic) for topic in external_topics(topology)
        }
        self._metrics: dict[TaskId | None, TaskMetrics] = {}
        self._tasks: dict[TaskId, Task] = {}
        self._states: list[TaskState] = []
        self._closed = False
        self._ticks = count()
        self._layout = self._lay_out()
        self._global: GlobalTask | None = None
        try:
            self._global = self._open_global()
            self._open_tasks()
        except Exception:
            self.close()
            raise

    # Topics

    def create_input_topic(
        self,
        name: str,
        *,
        key: Typed[K] | None = None,
        value: Typed[V] | None = None,
        start_timestamp: int | None = None,
        auto_advance: Duration = 0,
    ) -> TestInputTopic[K, V]:
        """A topic to write to, with a type or serde for keys and for values."""
        self._check_read(name)
        start_ms = self.clock.now_ms() if start_timestamp is None else start_timestamp
        return TestInputTopic(
            name,
            self._pipe,
            self._serdes(key, value),
            start_timestamp=start_ms,
            auto_advance=auto_advance,
        )

    def create_output_topic(
        self, name: str, *, key: Typed[K] | None = None, value: Typed[V] | None = None
    ) -> TestOutputTopic[K, V]:
        """A topic to read from, with a type or serde for keys and for values."""
        log = self._log
        return TestOutputTopic(name, lambda: log.by_topic.get(name, ()), self._serdes(key, value))

    def pipe_batch(self, rows: Iterable[tuple[str, Row]]) -> None:
        """Write records of several topics (`TestInputTopic.row`), all before any is processed."""
        for topic, row in rows:
            self._check_read(topic)
            self._log.append(topic, *row)
        self._run_to_idle()

    @property
    def produced_topic_names(self) -> frozenset[str]:
        """Topics that have records, including those written by the test."""
        return frozenset(self._log.by_topic)

    # Time and commits

    def advance_wall_clock_time(self, duration: Duration) -> None:
        """Advance the wall clock, and run punctuators that are due by it."""
        self._check_open()
        self.clock.advance(milliseconds(duration, "duration"))
        for task_id, task in self._tasks.items():
            task.punctuate_wall_clock()
            if self._commits_each:
                self._commit(task_id, task)
        self._run_to_idle()

    def commit(self) -> None:
        """Commit all tasks, so that cached results are emitted."""
        self._check_open()
        for task_id, task in self._tasks.items():
            self._commit(task_id, task)
        self._run_to_idle()

    def restart(self) -> None:
        """Close all tasks without a commit, and reopen them at the last commit.

        Stores in memory are rebuilt from their changelogs; in a directory they are opened again.
        Records after the last commit are processed again.
        """
        self._check_open()
        self._close_tasks()
        self._log.fresh.clear()
        self._global = self._open_global()
        self._open_tasks()
        for task_id, task in self._tasks.items():
            for tp in self._layout.inputs(task_id):
                done = self._committed.get(tp)
                for record in self._log.read(tp, 0 if done is None else done.offset):
                    task.add(record.chunk())
        self._run_to_idle()

    # Stores and metrics

    # Any, because only the test knows the types of the store.
    def get_state_store(self, name: str, *, partition: int | None = None) -> Any:
        """An open store by its name; `partition` is required if there are several."""
        self._check_open()
        if self._global is not None and name in self.topology.global_stores:
            return self._global.state.store(name)
        owners = {
            task_id.partition: task
            for task_id, task in self._tasks.items()
            if name in self._layout.sub_topology(task_id.sub_topology).stores
        }
        if not owners:
            known = sorted({*self.topology.stores, *self.topology.global_stores})
            raise StoreNotFound(
                f'the topology has no store "{name}"',
                hint=f"its stores are {', '.join(known) or 'none'}",
            )
        if partition is None and len(owners) == 1:
            partition = next(iter(owners))
        if partition not in owners:
            raise StoreNotFound(
                f'store "{name}" has partitions {", ".join(map(str, sorted(owners)))}',
                hint=f'specify one: get_state_store("{name}", partition=0)',
            )
        return owners[partition].state.store(name)

    def get_key_value_store(
        self, name: str, *, partition: int | None = None
    ) -> KeyValueStore[Any, Any]:
        """A key-value store without timestamps."""
        return cast("KeyValueStore[Any, Any]", self._store_of(name, partition, _KEY_VALUE))

    def get_timestamped_key_value_store(
        self, name: str, *, partition: int | None = None
    ) -> TimestampedKeyValueStore[Any, Any]:
        """The store of a table: values with their timestamps."""
        store = self._store_of(name, partition, (StoreKind.TIMESTAMPED_KEY_VALUE,))
        return cast("TimestampedKeyValueStore[Any, Any]", store)

    def get_versioned_store(
        self, name: str, *, partition: int | None = None
    ) -> VersionedStore[Any, Any]:
        """The store of a versioned table."""
        store = self._store_of(name, partition, (StoreKind.VERSIONED,))
        return cast("VersionedStore[Any, Any]", store)

    def get_window_store(self, name: str, *, partition: int | None = None) -> WindowStore[Any, Any]:
        """A window store without timestamps."""
        return cast("WindowStore[Any, Any]", self._store_of(name, partition, (StoreKind.WINDOW,)))

    def get_timestamped_window_store(
        self, name: str, *, partition: int | None = None
    ) -> TimestampedWindowStore[Any, Any]:
        """The store of a windowed table: values with their timestamps."""
        store = self._store_of(name, partition, (StoreKind.TIMESTAMPED_WINDOW,))
        return cast("TimestampedWindowStore[Any, Any]", store)

    def get_session_store(
        self, name: str, *, partition: int | None = None
    ) -> SessionStore[Any, Any]:
        """The store of a session-windowed table."""
        store = self._store_of(name, partition, (StoreKind.SESSION,))
        return cast("SessionStore[Any, Any]", store)

    def get_state_stores(self, name: str) -> list[Any]:
        """The store of every partition, in order."""
        parts = sorted(
            task_id.partition
            for task_id in self._tasks
            if name in self._layout.sub_topology(task_id.sub_topology).stores
        )
        return [self.get_state_store(name, partition=partition) for partition in parts or [0]]

    def metric(self, name: str, *, node: str | None = None) -> int:
        """A counter over all tasks, for example "dropped-records-total"; or that of one node."""
        return sum(
            value
            for metrics in self._metrics.values()
            for counter, at, value in metrics.items()
            if counter == name and node in (None, at)
        )

    @property
    def tasks(self) -> Mapping[TaskId, Task]:
        """The running tasks."""
        return self._tasks

    def close(self) -> None:
        """Close all tasks; uncommitted changes are lost."""
        if not self._closed:
            self._closed = True
            self._close_tasks()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _store_of(self, name: str, partition: int | None, kinds: tuple[StoreKind, ...]) -> object:
        store: object = self.get_state_store(name, partition=partition)
        known = self.topology.global_stores.get(name)
        kind = (self.topology.stores[name] if known is None else known.spec).kind
        if kind not in kinds:
            raise StoreError(
                f'store "{name}" is a {kind.value} store',
                hint=f"it is not {' or '.join(each.value for each in kinds)}; "
                f"use get_state_store, or the method for its kind",
            )
        return store

    # Internal: processing

    def _pipe(self, topic: str, rows: Sequence[Row]) -> None:
        self.pipe_batch((topic, row) for row in rows)

    def _run_to_idle(self) -> None:
        self._check_open()
        self._route()
        while True:
            next_task = self._next_task()
            if next_task is None:
                return
            task_id, task = next_task
            try:
                task.process(1)
                if self._commits_each:
                    self._commit(task_id, task)
            finally:
                self._route()

    def _next_task(self) -> tuple[TaskId, Task] | None:
        """The task with the smallest next timestamp among those that may continue."""
        heads = []
        for task_id, task in self._tasks.items():
            head = task.head() if task.buffered_total else None
            if head is not None:
                heads.append((head, task_id))
        now_ms = self.clock.now_ms()
        for _, task_id in sorted(heads):
            task = self._tasks[task_id]
            # The driver is the broker: there are no other records than the queued ones.
            if task.ready(now_ms, dict.fromkeys(task.inputs, 0)):
                return task_id, task
        return None

    def _route(self) -> None:
        """Add new records to the tasks that read their topics."""
        fresh, self._log.fresh = self._log.fresh, []
        for record in fresh:
            tp = TopicPartition(record.topic, record.partition)
            for task_id in self._readers.get(tp, ()):
                self._tasks[task_id].add(record.chunk())
            if self._global is not None and record.topic in self._global_topics:
                self._global.apply(record.chunk())
                self._global.commit()

    def _commit(self, task_id: TaskId, task: Task) -> None:
        task.flush()
        positions = {}
        changelogs = self._layout.changelogs(task_id)
        for store, rows in task.state.changes():
            if store in changelogs and store not in self.topology.source_changelogs:
                topic, partition = changelogs[store]
                for key, value, headers, timestamp_ms in rows:
                    self._log.send(topic, key, value, timestamp_ms, headers, partition)
        self._committed.update(task.offsets())
        for store, tp in changelogs.items():
            positions[store] = self._log.end(tp)
            if store in self.topology.source_changelogs:
                done = self._committed.get(tp)
                positions[store] = 0 if done is None else done.offset
        task.state.commit(positions)
        task.committed()

    # Internal: opening and closing

    def _open_tasks(self) -> None:
        """Open the tasks of the layout that are not open, at the last commit."""
        for task_id in self._layout.tasks():
            if task_id not in self._tasks:
                self._tasks[task_id] = self._open_task(task_id)
        self._readers = self._layout.task_of()

    def _open_task(self, task_id: TaskId) -> Task:
        sub = self._layout.sub_topology(task_id.sub_topology)
        state = self._open_state([self.topology.stores[name] for name in sub.stores], str(task_id))
        self._restore(task_id, state)
        inputs = self._layout.inputs(task_id)
        task = Task(
            self.topology,
            sub,
            partition=task_id.partition,
            application_id=self.config.application_id,
            state=state,
            output=self._log,
            clock=self.clock,
            config=self.config,
            global_stores={} if self._global is None else self._global.stores,
            metrics=self._metrics.setdefault(task_id, TaskMetrics()),
            topics=[tp.topic for tp in inputs],
            ticks=self._ticks,
        )
        task.resume_from({tp: self._committed[tp] for tp in inputs if tp in self._committed})
        return task

    def _open_state(self, specs: Sequence[StoreSpec], folder: str) -> TaskState:
        state = TaskState(
            specs,
            directory=None if self._directory is None else self._directory / folder,
            default_key_serde=self.config.default_key_serde,
            default_value_serde=self.config.default_value_serde,
            application_id=self.config.application_id,
        )
        self._states.append(state)
        return state

    def _restore(self, task_id: TaskId, state: TaskState) -> None:
        """Restore a store from the changelog records after its last commit."""
        for store, tp in self._layout.changelogs(task_id).items():
            end = self._log.end(tp)
            if store in self.topology.source_changelogs:
                done = self._committed.get(tp)
                end = 0 if done is None else done.offset
            start = state.position(store) or 0
            records = self._log.read(tp)[start:end]
            if records:
                state.restore(
                    store,
                    [(record.key, record.value, record.timestamp_ms) for record in records],
                    end,
                )

    def _open_global(self) -> GlobalTask | None:
        stores = self.topology.global_stores
        self._global_topics = {store.topic for store in stores.values()}
        if not stores:
            return None
        state = TaskState(
            [store.spec for store in stores.values()],
            directory=None,
            default_key_serde=self.config.default_key_serde,
            default_value_serde=self.config.default_value_serde,
            application_id=self.config.application_id,
        )
        self._states.append(state)
        task = GlobalTask(
            self.topology,
            application_id=self.config.application_id,
            state=state,
            output=self._log,
            clock=self.clock,
            config=self.config,
            metrics=self._metrics.setdefault(None, TaskMetrics()),
        )
        for topic in sorted(self._global_topics):
            for record in self._log.by_topic.get(topic, ()):
                task.apply(record.chunk())
        task.commit()
        return task

    def _close_tasks(self) -> None:
        first: Exception | None = None
        closing: list[Task | GlobalTask] = [*self._tasks.values()]
        if self._global is not None:
            closing.append(self._global)
        for task in closing:
            try:
                task.close()
            except Exception as error:
                first = first or error
        for state in self._states:
            state.close()
        self._tasks.clear()
        self._states.clear()
        if first is not None:
            raise first

    # Internal: topics

    def _lay_out(self) -> Layout:
        return lay_out(self.topology, self.config.application_id, self._existing)

    def _configured_count(self, topic: str) -> int:
        if isinstance(self._partitions, int):
            return self._partitions
        return self._partitions.get(topic, 1)

    def _partition_count(self, topic: str) -> int:
        for counts in (
            self._layout.partition_counts,
            self._layout.repartition_topics,
            self._layout.changelog_topics,
        ):
            if topic in counts:
                return counts[topic]
        return self._configured_count(topic)

    def _check_read(self, topic: str) -> None:
        """Raise if no source reads a topic; add one that matches a pattern."""
        if topic in self._layout.partition_counts or topic in self._global_topics:
            return
        if any(
            isinstance(node, SourceNode)
            and node.pattern is not None
            and node.pattern.fullmatch(topic)
            for sub in self.topology.sub_topologies
            for node in sub.nodes
        ):
            self._existing[topic] = self._configured_count(topic)
            self._layout = self._lay_out()
            self._open_tasks()
            return
        known = sorted({*self._layout.partition_counts, *self._global_topics})
        raise StreamsError(
            f'the topology does not read topic "{topic}"',
            hint=f"it reads {', '.join(known) or 'nothing'}",
        )

    def _serdes(self, key: Typed[K] | None, value: Typed[V] | None) -> tuple[Serde[K], Serde[V]]:
        serdes = [
            serde_or_default(None if given is None else serde_of(given), default)
            for given, default in (
                (key, self.config.default_key_serde),
                (value, self.config.default_value_serde),
            )
        ]
        return cast("tuple[Serde[K], Serde[V]]", tuple(serdes))

    def _check_open(self) -> None:
        if self._closed:
            raise StreamsError("the driver is closed", hint="create a new one")


def _config(given: StreamsConfig | Mapping[str, object] | None) -> StreamsConfig:
    if isinstance(given, StreamsConfig):
        return given
    return StreamsConfig.from_properties({"application_id": "app", **(given or {})})
