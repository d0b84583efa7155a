"""RunnerTasks: the tasks of one runner, opened and closed as assigned.

Rebalance callbacks only store the assignment. The tasks are opened (files, changelogs, offsets) by
`open_assigned`, between polls and step by step, so that the member stays in its group.
"""

import logging
from collections.abc import Iterable
from pathlib import Path

from broker.client.api import OffsetAndMetadata
from broker.client.record_consumer import Consumer
from broker.model import TopicPartition
from streams.config import StreamsConfig
from streams.errors import StateDirectoryLocked, StreamsError
from streams.runtime.assignor import RUNNING
from streams.runtime.environment import Environment
from streams.runtime.owned_task import OwnedTask, Phase
from streams.runtime.partitions import Layout, TaskId
from streams.runtime.production import Production
from streams.runtime.restore_loop import Restorer
from streams.runtime.task import Task, cache_of_thread
from streams.runtime.task_metrics import TaskMetrics
from streams.state.backing import Databases
from streams.state.databases import databases_of
from streams.state.task_state import TaskState
from streams.topology import SourceNode, Topology

logger = logging.getLogger(__name__)

LOCKED_WARNING_MS = 10_000
WAITING = frozenset({Phase.RESTORING, Phase.STANDBY})


def cache_share_bytes(topology: Topology, layout: Layout, config: StreamsConfig) -> int:
    """The size of a task's cache of committed rows, as if this process had all tasks."""
    stateful = [task for task in layout.tasks() if layout.sub_topology(task.sub_topology).stores]
    shares = len(stateful) + bool(topology.global_stores)
    return config.state_cache_max_bytes // max(1, shares)


def open_state(
    layout: Layout, config: StreamsConfig, task: TaskId, path: Path, databases: Databases
) -> TaskState:
    """Open the stores of a task in its directory."""
    topology = layout.topology
    return TaskState(
        [topology.stores[name] for name in layout.sub_topology(task.sub_topology).stores],
        directory=path,
        databases=databases,
        default_key_serde=config.default_key_serde,
        default_value_serde=config.default_value_serde,
        application_id=config.application_id,
        buffer_bytes=cache_share_bytes(topology, layout, config),
    )


class RunnerTasks:
    """The tasks of a runner. Only its thread uses them; other threads read `snapshot`."""

    def __init__(
        self,
        environment: Environment,
        consumer: Consumer,
        production: Production,
        restorer: Restorer,
    ) -> None:
        self._environment = environment
        self._consumer = consumer
        self._production = production
        self._restorer = restorer
        self._cache = cache_of_thread(environment.config)
        self._assigned_active: frozenset[TaskId] = frozenset()
        self._assigned_standby: frozenset[TaskId] = frozenset()
        self._owned: dict[TaskId, OwnedTask] = {}
        self._locked_since_ms: dict[TaskId, int] = {}
        self.metrics: dict[TaskId, TaskMetrics] = {}
        self.snapshot: tuple[OwnedTask, ...] = ()

    # --- tasks --------------------------------------------------------------------------------

    def running(self) -> list[OwnedTask]:
        """Tasks that process records."""
        return [owned for owned in self._owned.values() if owned.phase is Phase.RUNNING]

    @property
    def all_running(self) -> bool:
        """Whether all assigned active tasks are running."""
        return all(
            task in self._owned and self._owned[task].phase is Phase.RUNNING
            for task in self._assigned_active
        )

    def standbys(self) -> list[OwnedTask]:
        """The standby tasks."""
        return [owned for owned in self._owned.values() if owned.phase is Phase.STANDBY]

    def owned(self, task: TaskId) -> OwnedTask | None:
        """A task of this runner, by its id."""
        return self._owned.get(task)

    # --- assignment ---------------------------------------------------------------------------

    def assign(self, active: frozenset[TaskId], standby: frozenset[TaskId]) -> None:
        """Store an assignment, and close tasks that are not in it."""
        self._assigned_active = active
        self._assigned_standby = standby - active
        for task, owned in list(self._owned.items()):
            keep = task in active or (
                task in self._assigned_standby and owned.phase is Phase.STANDBY
            )
            if not keep:
                self.close(owned)

    def reading(self, partitions: Iterable[TopicPartition]) -> list[OwnedTask]:
        """Active tasks that read any of these partitions."""
        selected = set(partitions)
        return [
            owned
            for owned in self._owned.values()
            if owned.phase is not Phase.STANDBY and selected.intersection(owned.inputs)
        ]

    def close(self, owned: OwnedTask) -> None:
        """Close a task; uncommitted changes are lost."""
        self._owned.pop(owned.task_id, None)
        self._assigned_active -= {owned.task_id}
        self._restorer.remove(owned)
        try:
            if owned.task is not None:
                owned.task.close()
        finally:
            owned.close_state()
            self._report_closed(owned)
            self.metrics.pop(owned.task_id, None)
            self._update_snapshot()

    def restart(self, owned: OwnedTask) -> None:
        """Discard changes, and restart from the last commit."""
        if owned.task is not None:
            owned.task.close()
            owned.task = None
        owned.state.discard()
        owned.needs_commit = False
        owned.phase = Phase.RESTORING
        self._restorer.remove(owned)
        self._consumer.pause(owned.inputs)

    # --- opening ------------------------------------------------------------------------------

    def open_assigned(self) -> list[OwnedTask]:
        """Open assigned tasks as far as possible; returns those that have started."""
        for task in sorted(self._assigned_active):
            owned = self._owned.get(task)
            if owned is None:
                self._acquire(task, Phase.RESTORING)
            elif owned.phase is Phase.STANDBY:
                self._activate_standby(owned)
        for task in sorted(self._assigned_standby):
            if task not in self._owned:
                self._acquire(task, Phase.STANDBY)
        started = []
        for owned in list(self._owned.values()):
            if owned.phase in WAITING and not self._restorer.has(owned):
                self._begin_restore(owned)  # the broker did not respond before
            if owned.phase is Phase.RESTORED:
                self._start(owned)
                started.append(owned)
        return started

    def _acquire(self, task: TaskId, phase: Phase) -> None:
        try:
            owned = self._open(task, phase)
        except StateDirectoryLocked as error:
            # Usually another runner of this process has not released it yet.
            now_ms = self._environment.clock.monotonic_ms()
            if now_ms - self._locked_since_ms.setdefault(task, now_ms) > LOCKED_WARNING_MS:
                self._locked_since_ms[task] = now_ms
                logger.warning("task %s waits for its state directory: %s", task, error)
            return
        self._locked_since_ms.pop(task, None)
        self._owned[task] = owned
        self._update_snapshot()

    def _open(self, task: TaskId, phase: Phase) -> OwnedTask:
        environment = self._environment
        layout, config, topology = environment.layout, environment.config, environment.topology
        stores = layout.sub_topology(task.sub_topology).stores
        directory = environment.directories.lock(task)
        try:
            state = open_state(
                layout, config, task, directory.path, databases_of(environment.machine)
            )
        except BaseException:
            directory.release()
            raise
        changelogs = layout.changelogs(task)
        positions = {
            store: position
            for store in changelogs
            if (position := state.position(store)) is not None
        }
        return OwnedTask(
            task,
            tuple(layout.inputs(task)),
            changelogs,
            frozenset(store for store in stores if store in topology.source_changelogs),
            state,
            directory,
            phase,
            positions=positions,
        )

    def _activate_standby(self, owned: OwnedTask) -> None:
        self._restorer.remove(owned)
        owned.phase = Phase.RESTORING

    def _begin_restore(self, owned: OwnedTask) -> None:
        if not owned.changelogs:
            owned.phase = Phase.RESTORED if owned.phase is Phase.RESTORING else owned.phase
            return
        # Fetched even if not needed: this waits until transactions of the last owner have ended.
        committed = self._consumer.committed(owned.inputs)
        limits = {tp: item.offset for tp, item in committed.items() if item is not None}
        self._report_position(owned, running=False)
        if not self._restorer.add(owned, limits):
            logger.warning(
                "the stores of task %s are ahead of their changelogs and are rebuilt",
                owned.task_id,
            )
            self._delete_stores(owned)

    def _delete_stores(self, owned: OwnedTask) -> None:
        """Delete invalid stores; the next `open_assigned` creates empty ones."""
        active = self._assigned_active
        self.close(owned)
        self._assigned_active = active
        self._environment.directories.remove_task(owned.task_id)
        self._environment.report.remove(owned.task_id)

    def _start(self, owned: OwnedTask) -> None:
        environment = self._environment
        committed = self._consumer.committed(owned.inputs)
        metrics = self.metrics[owned.task_id] = TaskMetrics()
        task = Task(
            environment.topology,
            environment.layout.sub_topology(owned.task_id.sub_topology),
            partition=owned.task_id.partition,
            application_id=environment.config.application_id,
            state=owned.state,
            output=self._production.output,
            clock=environment.clock,
            config=environment.config,
            global_stores=environment.global_stores,
            metrics=metrics,
            topics=[tp.topic for tp in owned.inputs],
            cache=self._cache,
        )
        task.resume_from({tp: item for tp, item in committed.items() if item is not None})
        for tp, item in committed.items():
            self._seek(owned, tp, item)
            if item is not None:
                owned.committed[tp] = item.offset
        self._consumer.resume(owned.inputs)
        owned.task = task
        owned.phase = Phase.RUNNING
        self._report_position(owned, running=True)
        self._update_snapshot()

    def _seek(
        self, owned: OwnedTask, tp: TopicPartition, committed: OffsetAndMetadata | None
    ) -> None:
        if committed is not None:
            self._consumer.seek(tp, OffsetAndMetadata(committed.offset, committed.leader_epoch))
            return
        policy = self._reset_policy(owned.task_id, tp.topic)
        if policy == "earliest":
            self._consumer.seek_to_beginning([tp])
        elif policy == "latest":
            self._consumer.seek_to_end([tp])
        else:
            raise StreamsError(
                f"no offset is committed for {tp}, and auto_offset_reset is none",
                hint='set "auto_offset_reset" to "earliest" or "latest"',
            )

    def _reset_policy(self, task: TaskId, topic: str) -> str:
        config, layout = self._environment.config, self._environment.layout
        if topic in layout.repartition_topics:
            return "earliest"
        for node in layout.sub_topology(task.sub_topology).nodes:
            if isinstance(node, SourceNode) and node.offset_reset is not None:
                matched = node.pattern is not None and node.pattern.fullmatch(topic)
                if topic in node.topics or matched:
                    return node.offset_reset
        return config.auto_offset_reset

    # --- reports to the leader ----------------------------------------------------------------

    def _report_position(self, owned: OwnedTask, *, running: bool) -> None:
        if owned.changelogs:
            position = RUNNING if running else owned.position_sum()
            self._environment.report.set_position(owned.task_id, position)

    def _report_closed(self, owned: OwnedTask) -> None:
        """Report the position of the stores that remain on disk."""
        stores = self._environment.topology.stores
        on_disk = [store for store in owned.changelogs if stores[store].persistent]
        if on_disk:
            position = sum(owned.positions.get(store, 0) for store in on_disk)
            self._environment.report.set_position(owned.task_id, position)
        else:
            self._environment.report.remove(owned.task_id)

    def report_standby_positions(self) -> None:
        """Report the positions of standbys and restoring tasks."""
        for owned in self._owned.values():
            if owned.phase is not Phase.RUNNING:
                self._report_position(owned, running=False)

    def _update_snapshot(self) -> None:
        self.snapshot = tuple(self._owned.values())
