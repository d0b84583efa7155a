"""The partition count of each topic and the task count of each sub-topology; pure functions.

A sub-topology has one task for each partition of its largest source topic. A repartition topic has
as many partitions as the user has set; otherwise as many as the topics with which it must be
co-partitioned; otherwise as many as the largest source topic of the sub-topologies that write it,
which may again be a repartition topic.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from broker.model import TopicPartition
from streams.errors import TopologyError
from streams.topology import SinkNode, SourceNode, SubTopology, Topology


class TaskId(NamedTuple):
    """A sub-topology and a partition."""

    sub_topology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.sub_topology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an id such as "0_3"; raises ValueError for anything else."""
        sub_topology, _, partition = text.partition("_")
        return cls(int(sub_topology), int(partition))


@dataclass(frozen=True, slots=True)
class Layout:
    """The tasks and topics of one application, with the topics' names on the broker."""

    application_id: str
    topology: Topology
    partition_counts: Mapping[str, int]  # of all topics that are read, repartition topics included
    source_topics: Mapping[int, tuple[str, ...]]  # by sub-topology
    repartition_topics: Mapping[str, int]
    changelog_topics: Mapping[str, int]  # except source topics

    def tasks(self) -> list[TaskId]:
        """All tasks, in order."""
        return [
            TaskId(sub.number, partition)
            for sub in self.topology.sub_topologies
            for partition in range(self.task_count(sub.number))
        ]

    def task_count(self, sub_topology: int) -> int:
        """The number of tasks of a sub-topology."""
        return max((self.partition_counts[t] for t in self.source_topics[sub_topology]), default=0)

    def sub_topology(self, number: int) -> SubTopology:
        """A sub-topology by its number."""
        return next(sub for sub in self.topology.sub_topologies if sub.number == number)

    def inputs(self, task: TaskId) -> list[TopicPartition]:
        """The partitions that a task reads."""
        return [
            TopicPartition(topic, task.partition)
            for topic in self.source_topics[task.sub_topology]
            if task.partition < self.partition_counts[topic]
        ]

    def changelogs(self, task: TaskId) -> dict[str, TopicPartition]:
        """The changelog partition of each store of a task that has one."""
        topology = self.topology
        return {
            store: TopicPartition(
                changelog_topic(topology, self.application_id, store), task.partition
            )
            for store in self.sub_topology(task.sub_topology).stores
            if store in topology.changelogs
        }

    def stateful_tasks(self) -> frozenset[TaskId]:
        """Tasks whose stores can be restored from changelogs."""
        return frozenset(task for task in self.tasks() if self.changelogs(task))

    def subscription(self) -> frozenset[str]:
        """All topics that the group reads."""
        return frozenset(topic for topics in self.source_topics.values() for topic in topics)

    def task_of(self) -> dict[TopicPartition, list[TaskId]]:
        """The tasks that read each partition, usually one."""
        tasks: dict[TopicPartition, list[TaskId]] = {}
        for task in self.tasks():
            for tp in self.inputs(task):
                tasks.setdefault(tp, []).append(task)
        return tasks


def final_topic(topology: Topology, application_id: str, topic: str) -> str:
    """The name of a source topic on the broker: internal ones begin with the application's id."""
    return f"{application_id}-{topic}" if topic in topology.repartition_topics else topic


def changelog_topic(topology: Topology, application_id: str, store: str) -> str:
    """The name of a store's changelog on the broker."""
    topic = topology.changelogs[store]
    if store in topology.source_changelogs:
        return final_topic(topology, application_id, topic)
    return f"{application_id}-{topic}"


def external_topics(topology: Topology) -> frozenset[str]:
    """Source topics that the application does not create."""
    return frozenset(
        topic
        for sub in topology.sub_topologies
        for topic in sub.source_topics
        if topic not in topology.repartition_topics
    )


def has_patterns(topology: Topology) -> bool:
    """Whether any source reads all topics that match a pattern."""
    return any(
        isinstance(node, SourceNode) and node.pattern is not None
        for sub in topology.sub_topologies
        for node in sub.nodes
    )


def lay_out(topology: Topology, application_id: str, existing: Mapping[str, int]) -> Layout:
    """The layout for topics with these partition counts.

    Raises TopologyError when source topics are missing or co-partitioned ones differ.
    """
    missing = sorted(external_topics(topology) - existing.keys())
    if missing:
        names = ", ".join(f'"{topic}"' for topic in missing)
        raise TopologyError(
            f"source topics do not exist: {names}",
            hint="create them before the application starts",
        )
    sources = {sub.number: _topics_of(sub, existing) for sub in topology.sub_topologies}
    counts = {
        topic: existing[topic]
        for topics in sources.values()
        for topic in topics
        if topic not in topology.repartition_topics
    }
    _resolve_repartition_topics(topology, sources, counts)
    _check_copartitions(topology, counts)

    def final(topic: str) -> str:
        return final_topic(topology, application_id, topic)

    final_counts = {final(topic): count for topic, count in counts.items()}
    final_sources = {number: tuple(map(final, topics)) for number, topics in sources.items()}
    changelogs = {}
    for sub in topology.sub_topologies:
        tasks = max((final_counts[topic] for topic in final_sources[sub.number]), default=0)
        for store in sub.stores:
            if store in topology.changelogs and store not in topology.source_changelogs and tasks:
                changelogs[changelog_topic(topology, application_id, store)] = tasks
    return Layout(
        application_id,
        topology,
        final_counts,
        final_sources,
        {final(topic): counts[topic] for topic in topology.repartition_topics},
        changelogs,
    )


def _topics_of(sub: SubTopology, existing: Mapping[str, int]) -> tuple[str, ...]:
    topics = set(sub.source_topics)
    for node in sub.nodes:
        if isinstance(node, SourceNode) and node.pattern is not None:
            topics |= {topic for topic in existing if node.pattern.fullmatch(topic)}
    return tuple(sorted(topics))


def _resolve_repartition_topics(
    topology: Topology, sources: Mapping[int, tuple[str, ...]], counts: dict[str, int]
) -> None:
    """Add the partition counts of repartition topics, in the order of their dependencies."""
    for name, repartition in topology.repartition_topics.items():
        if repartition.partitions is not None:
            counts[name] = repartition.partitions
    unknown = {name for name in topology.repartition_topics if name not in counts}
    while unknown:
        resolved = {
            name: count
            for name in sorted(unknown)
            if (count := _repartition_count(name, topology, sources, counts)) is not None
        }
        if not resolved:
            names = ", ".join(f'"{name}"' for name in sorted(unknown))
            raise TopologyError(
                f"cannot determine how many partitions repartition topics need: {names}",
                hint="they depend on each other, or have no writer; set their partition counts",
            )
        counts.update(resolved)
        unknown -= resolved.keys()


def _repartition_count(
    name: str,
    topology: Topology,
    sources: Mapping[int, tuple[str, ...]],
    counts: Mapping[str, int],
) -> int | None:
    """The count of a repartition topic; None when a topic it depends on is not known yet."""
    group = next((group for group in topology.copartitions if name in group), frozenset({name}))
    known = [counts[topic] for topic in group if topic in counts]
    if known:
        return max(known)
    needed = []
    for topic in group:
        above = _largest_source_above(topic, topology, sources, counts)
        if above is None:
            return None
        needed.append(above)
    return max(needed)


def _largest_source_above(
    name: str,
    topology: Topology,
    sources: Mapping[int, tuple[str, ...]],
    counts: Mapping[str, int],
) -> int | None:
    source_counts = []
    for sub in topology.sub_topologies:
        if any(isinstance(node, SinkNode) and node.topic == name for node in sub.nodes):
            for topic in sources[sub.number]:
                if topic not in counts:
                    return None
                source_counts.append(counts[topic])
    return max(source_counts, default=None)


def _check_copartitions(topology: Topology, counts: Mapping[str, int]) -> None:
    for group in topology.copartitions:
        known = {topic: counts[topic] for topic in sorted(group) if topic in counts}
        if len(set(known.values())) > 1:
            listed = ", ".join(f'"{topic}" has {count}' for topic, count in known.items())
            raise TopologyError(
                f"topics that are joined must have equal partition counts: {listed}",
                hint="repartition one of them, or create them with equal counts",
            )


def topics_of_tasks(layout: Layout, tasks: Iterable[TaskId]) -> list[TopicPartition]:
    """The distinct partitions that tasks read."""
    return sorted({tp for task in tasks for tp in layout.inputs(task)})
