"""Opening the nodes of a sub-topology: children first, so that each knows where to forward."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from streams.errors import ProcessingFailed, StreamsError
from streams.handlers import log_and_fail
from streams.processor import Process
from streams.runtime.dead_letters import user_line
from streams.runtime.guard import counted, guarded
from streams.runtime.node_context import Surroundings, TaskNodeContext, forward_to_all
from streams.runtime.sink import OpenSink, open_sink
from streams.runtime.source import OpenSource
from streams.runtime.task_metrics import DROPPED, PROCESSED
from streams.serdes import serde_or_default
from streams.topology import Node, ProcessorNode, SinkNode, SourceNode, SubTopology

TopicOf = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class OpenNodes:
    """The code of processors and sinks, and what sources forward to, by name of the node."""

    processes: Mapping[str, Process]  # as written, without guards: tracebacks show these
    sources: Mapping[str, Process]


def open_nodes(sub: SubTopology, surroundings: Surroundings, topic_of: TopicOf) -> OpenNodes:
    """Open all nodes of a sub-topology in one task."""
    children: dict[str, list[str]] = {node.name: [] for node in sub.nodes}
    for node in sub.nodes:
        if not isinstance(node, SourceNode):
            for parent in node.parents:
                children[parent].append(node.name)
    plain: dict[str, Process] = {}
    called: dict[str, Process] = {}
    sources: dict[str, Process] = {}
    for index, node in reversed(list(enumerate(sub.nodes))):
        to = {child: called[child] for child in children[node.name]}
        if isinstance(node, SourceNode):
            sources[node.name] = forward_to_all(tuple(to.values()))
            continue
        stores = node.stores if isinstance(node, ProcessorNode) else ()
        context = TaskNodeContext(surroundings, node.name, index, children=to, stores=stores)
        if isinstance(node, ProcessorNode):
            plain[node.name] = _open_processor(node, context)
        else:
            plain[node.name] = _open_sink(node, context, surroundings, topic_of)
        called[node.name] = _as_called(node, plain[node.name], surroundings)
    surroundings.opened()
    return OpenNodes(plain, sources)


def _open_processor(node: ProcessorNode, context: TaskNodeContext) -> Process:
    try:
        return node.operator.open(context)
    except StreamsError:
        raise
    except Exception as error:
        line = user_line(error)
        at = f'node "{node.name}", task {context.task_id}'
        raise ProcessingFailed(
            f'node "{node.name}" cannot be opened: {type(error).__name__}: {error}',
            at=f"{at}\n      {line}" if line else at,
            hint="repair what the node does before its first record",
        ) from error


def _open_sink(
    node: SinkNode, context: TaskNodeContext, surroundings: Surroundings, topic_of: TopicOf
) -> Process:
    config = surroundings.config
    sink = OpenSink(
        context,
        surroundings.output,
        surroundings.failures,
        surroundings.metrics.counter(PROCESSED, node.name),
        key_serde=serde_or_default(node.key_serde, config.default_key_serde),
        value_serde=serde_or_default(node.value_serde, config.default_value_serde),
    )
    return open_sink(node, topic_of, sink)


def _as_called(node: Node, process: Process, surroundings: Surroundings) -> Process:
    """A node's code as its parents call it: guarded if the handler may go on after a failure."""
    config = surroundings.config
    called = process
    if config.processing_exception_handler is not log_and_fail:
        called = guarded(node.name, called, surroundings.failures)
    if config.metrics_recording_level != "INFO" and isinstance(node, ProcessorNode):
        called = counted(called, surroundings.metrics.counter(PROCESSED, node.name))
    return called


def open_source(
    node: SourceNode,
    topic: str,
    forward: Process,
    surroundings: Surroundings,
    punctuate: Callable[[], object],
) -> OpenSource:
    """What the loop over a topic's records needs."""
    config, metrics = surroundings.config, surroundings.metrics
    return OpenSource(
        node=node.name,
        topic=topic,
        key_serde=serde_or_default(node.key_serde, config.default_key_serde),
        value_serde=serde_or_default(node.value_serde, config.default_value_serde),
        extractor=node.timestamp_extractor or config.default_timestamp_extractor,
        forward=forward,
        current=surroundings.current,
        failures=surroundings.failures,
        stream_punctuations=surroundings.stream_punctuations,
        punctuate=punctuate,
        record_time=surroundings.state.record_time,
        processed=metrics.counter(PROCESSED, node.name),
        dropped=metrics.counter(DROPPED),
    )
