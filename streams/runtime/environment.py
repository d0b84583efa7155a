"""Environment: the objects that the runners of one process share."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from broker import concurrency
from broker.client.administration.values import ConfigResource
from broker.client.cluster_admin import Admin
from broker.clock import Clock
from broker.errors import ConnectionFailed, MillstreamError, RequestTimeout
from broker.machine import Machine
from broker.model import TopicPartition
from streams.config import StreamsConfig
from streams.runtime.assignment import Rules
from streams.runtime.assignor import HostTasks, ProcessReport, TaskAssignor
from streams.runtime.clients import Clients, log_bounds, log_ends
from streams.runtime.internal_topics import TopicSettings, prepare_topics
from streams.runtime.output_buffer import BATCH_BYTES
from streams.runtime.partitions import Layout, TaskId, lay_out
from streams.runtime.state_directories import StateDirectories
from streams.topology import Topology

BATCH_MARGIN_BYTES = 128
BATCH_LIMITS = ("max.message.bytes", "segment.bytes")  # of a topic


@dataclass(slots=True)
class Environment:
    """Created before the first runner starts; `layout` is replaced when topics change."""

    config: StreamsConfig
    topology: Topology
    clients: Clients
    admin: Admin
    machine: Machine
    directories: StateDirectories
    report: ProcessReport
    layout: Layout
    # Any: the types of stores are not known here.
    global_stores: Mapping[str, Any] = field(default_factory=dict)
    fault: Callable[[str], None] = lambda point: None
    hosts: tuple[HostTasks, ...] = ()  # the tasks of all hosts, as of the last rebalance
    _batch_limits: dict[str, int] = field(default_factory=dict)
    _clean_at_ms: int | None = None
    _lock: concurrency.Lock = field(default_factory=lambda: concurrency.Lock())

    @property
    def clock(self) -> Clock:
        """The clock of the machine."""
        return self.machine.clock

    def assignor(self) -> TaskAssignor:
        """A new assignor for one runner."""
        config = self.config
        rules = Rules(
            config.num_standby_replicas, config.acceptable_recovery_lag, config.max_warmup_replicas
        )
        return TaskAssignor(
            self.report,
            rules,
            lay_out=self._layout_of_leader,
            end_positions=self.end_positions,
            incarnation=self.machine.uuid().hex[:12],
        )

    def _layout_of_leader(self, counts: Mapping[str, int]) -> Layout:
        """The layout for the leader's partition counts; creates missing internal topics."""
        known = self.layout
        if all(counts.get(topic) == count for topic, count in known.partition_counts.items()):
            return known
        return self.refresh_layout()

    def refresh_layout(self) -> Layout:
        """Read the topics of the cluster and compute the layout again."""
        with self._lock:
            self.layout = prepare_topics(
                self.admin,
                self.topology,
                self.config.application_id,
                TopicSettings.of(self.config),
                self.clock,
            )
            return self.layout

    def layout_for(self, counts: Mapping[str, int]) -> Layout:
        """The layout for other partition counts; creates no topics."""
        return lay_out(self.topology, self.config.application_id, counts)

    def end_positions(self, layout: Layout, tasks: Iterable[TaskId]) -> dict[TaskId, int]:
        """The sum of the ends of each task's changelogs."""
        listed = list(tasks)
        ends = log_ends(self.admin, (tp for t in listed for tp in layout.changelogs(t).values()))
        return {task: sum(ends[tp] for tp in layout.changelogs(task).values()) for task in listed}

    def bounds(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """First offset and end of logs."""
        return log_bounds(self.admin, partitions)

    def set_hosts(self, hosts: tuple[HostTasks, ...]) -> None:
        """Set the tasks of all hosts."""
        self.hosts = hosts

    def clean_directories(self) -> None:
        """Delete the stores of tasks that moved away, after `state_cleanup_delay_ms`."""
        delay_ms = self.config.state_cleanup_delay_ms
        now_ms = self.clock.monotonic_ms()
        with self._lock:
            due = self._clean_at_ms is not None and now_ms >= self._clean_at_ms
            if due or self._clean_at_ms is None:
                self._clean_at_ms = now_ms + delay_ms
        if due:
            for task in self.directories.clean(unused_for_ms=delay_ms):
                self.report.remove(task)

    def batch_limit(self, topic: str) -> int:
        """The maximum size of a batch of a topic, from max.message.bytes and segment.bytes."""
        with self._lock:
            known = self._batch_limits.get(topic)
        if known is not None:
            return known
        limit = BATCH_BYTES
        resource = ConfigResource("topic", topic)
        try:
            entries = self.admin.describe_configs([resource], BATCH_LIMITS)[resource]
            for name in BATCH_LIMITS:
                limit = min(limit, int(entries[name].value or limit))
        except (RequestTimeout, ConnectionFailed):
            return BATCH_BYTES - BATCH_MARGIN_BYTES  # not stored: the next call tries again
        except (MillstreamError, KeyError):
            limit = BATCH_BYTES  # assume Kafka's defaults
        with self._lock:
            self._batch_limits[topic] = max(1, limit - BATCH_MARGIN_BYTES)
        return self._batch_limits[topic]
