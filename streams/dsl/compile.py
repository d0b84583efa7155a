"""Compiles steps to a Topology: optimisations first, then nodes in the order of the calls."""

from streams.dsl.logical import (
    CopartitionStep,
    GlobalTableStep,
    Graph,
    ProcessStep,
    RepartitionStep,
    SinkStep,
    SourceStep,
    StateStoreStep,
    Step,
    TableSourceStep,
)
from streams.dsl.optimise import (
    REUSE_SOURCE_TOPICS,
    Optimize,
    Rewriting,
    parse_optimisations,
    rewrite,
)
from streams.operators.stateless import DropNullKeys, PassThrough
from streams.topology import Topology
from streams.topology_builder import TopologyBuilder


def compile_steps(graph: Graph, optimize: Optimize = False) -> Topology:
    """Compile a graph to a topology; the graph can be extended and compiled again."""
    optimisations = parse_optimisations(optimize)
    rewriting = rewrite(graph, optimisations)
    writer = _TopologyWriter(rewriting, reuse_sources=REUSE_SOURCE_TOPICS in optimisations)
    for step in rewriting.steps:
        writer.write(step)
    return writer.builder.build()


class _TopologyWriter:
    """Adds steps to a TopologyBuilder."""

    def __init__(self, rewriting: Rewriting, *, reuse_sources: bool) -> None:
        self._rewriting = rewriting
        self._reuse_sources = reuse_sources
        self._where = ""
        self._accepts_null_keys = _above_null_key_joins(rewriting)
        self.builder = TopologyBuilder(where=lambda: self._where)

    def write(self, step: Step) -> None:
        """Add the nodes and stores of a step."""
        self._where = step.where
        match step:
            case SourceStep():
                self._write_source(step)
            case TableSourceStep():
                self._write_table_source(step)
            case GlobalTableStep():
                self.builder.add_global_store(
                    step.store,
                    step.source_name,
                    step.topic,
                    step.name,
                    step.make(),
                    key_serde=step.key_serde,
                    value_serde=step.value_serde,
                    timestamp_extractor=step.timestamp_extractor,
                )
            case ProcessStep():
                self._write_processor(step)
            case RepartitionStep():
                self._write_repartition(step)
            case SinkStep():
                self.builder.add_sink(
                    step.name,
                    step.topic,
                    self._parents(step),
                    key_serde=step.key_serde,
                    value_serde=step.value_serde,
                    partitioner=step.partitioner,
                )
            case StateStoreStep():
                self.builder.add_state_store(step.store)
            case CopartitionStep():
                self.builder.copartition(self._topics_above(step))
            case _:
                raise AssertionError(f"unknown step {step!r}")

    def _parents(self, step: Step) -> tuple[str, ...]:
        return tuple(parent.name for parent in self._rewriting.parents[step])

    def _write_source(self, step: SourceStep) -> None:
        self.builder.add_source(
            step.name,
            step.topics if step.pattern is None else step.pattern,
            key_serde=step.key_serde,
            value_serde=step.value_serde,
            timestamp_extractor=step.timestamp_extractor,
            offset_reset=step.offset_reset,
        )

    def _write_table_source(self, step: TableSourceStep) -> None:
        self.builder.add_source(
            step.source_name,
            step.topic,
            key_serde=step.key_serde,
            value_serde=step.value_serde,
            timestamp_extractor=step.timestamp_extractor,
            offset_reset=step.offset_reset,
        )
        self.builder.add_processor(step.name, step.make(), step.source_name)
        store = step.table.store
        if store is None:
            return
        self.builder.add_state_store(store, step.name)
        if self._reuse_sources:
            self.builder.connect_source_store_and_topic(store.name, step.topic)

    def _write_processor(self, step: ProcessStep) -> None:
        self.builder.add_processor(step.name, step.make(), self._parents(step))
        for spec in step.new_stores():
            self.builder.add_state_store(spec, step.name)
        self.builder.connect_processor_and_state_stores(step.name, *step.stores())

    def _write_repartition(self, step: RepartitionStep) -> None:
        builder = self.builder
        builder.add_repartition_topic(step.topic, step.partitions)
        parents = self._parents(step)
        if step.filter_name:
            null_filter = PassThrough() if step in self._accepts_null_keys else DropNullKeys()
            builder.add_processor(step.filter_name, null_filter, parents)
            parents = (step.filter_name,)
        builder.add_sink(
            step.sink_name,
            step.topic,
            parents,
            key_serde=step.key_serde,
            value_serde=step.value_serde,
            partitioner=step.partitioner,
        )
        builder.add_source(
            step.name, step.topic, key_serde=step.key_serde, value_serde=step.value_serde
        )

    def _topics_above(self, step: Step) -> set[str]:
        """Topics of the nearest source on each path upwards."""
        topics: set[str] = set()
        seen: set[Step] = set()
        waiting = list(self._rewriting.parents[step])
        while waiting:
            current = waiting.pop()
            if current in seen:
                continue
            seen.add(current)
            match current:
                case SourceStep(pattern=None):
                    topics.update(current.topics)
                case TableSourceStep() | RepartitionStep():
                    topics.add(current.topic)
                case _:
                    waiting += self._rewriting.parents[current]
        return topics


def _above_null_key_joins(rewriting: Rewriting) -> set[Step]:
    """All steps above joins that accept null keys."""
    above: set[Step] = set()
    for step in rewriting.steps:
        if isinstance(step, ProcessStep) and step.accepts_null_keys:
            above.update(rewriting.above(step))
    return above
