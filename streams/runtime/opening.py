"""Opens the nodes of a sub-topology: children first, because parents forward to them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from streams.errors import ProcessingFailed, StreamsError
from streams.handlers import log_and_fail
from streams.processor import NodeContext, Process, ProcessRows, RowsOperator
from streams.runtime.dead_letters import user_line
from streams.runtime.guard import NodeFunction, counted, guarded
from streams.runtime.input_buffer import FindHead, Run
from streams.runtime.node_context import TaskContext, TaskNodeContext, forward_to_all
from streams.runtime.pulling import open_pulling
from streams.runtime.sink import ConsumeRows, OpenSink, open_sink
from streams.runtime.source import OpenSource
from streams.runtime.task_metrics import DROPPED, PROCESSED
from streams.serdes import serde_or_default
from streams.topology import Node, ProcessorNode, SinkNode, SourceNode, SubTopology

T = TypeVar("T")
TopicOf = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class OpenNodes:
    """The functions of processors and sinks, and those that sources forward to, by node name."""

    # Nodes and their functions, without guards: tracebacks show these.
    functions: Sequence[tuple[str, NodeFunction]]
    sources: Mapping[str, Process]
    pulled: Mapping[str, ConsumeRows]  # of sources, and of nodes, whose records can be pulled


def open_nodes(sub: SubTopology, task_context: TaskContext, topic_of: TopicOf) -> OpenNodes:
    """Open all nodes of a sub-topology in one task."""
    children = _children(sub)
    functions: list[tuple[str, NodeFunction]] = []
    called: dict[str, Process] = {}
    sources: dict[str, Process] = {}
    pulled: dict[str, ConsumeRows] = {}
    for index, node in reversed(list(enumerate(sub.nodes))):
        to = {child: called[child] for child in children[node.name]}
        only_child = next(iter(to)) if len(to) == 1 else ""
        if isinstance(node, SourceNode):
            sources[node.name] = forward_to_all(tuple(to.values()))
            if only_child in pulled:
                pulled[node.name] = pulled[only_child]
            continue
        stores = node.stores if isinstance(node, ProcessorNode) else ()
        context = TaskNodeContext(task_context, node.name, index, children=to, stores=stores)
        consume_rows = None
        if isinstance(node, SinkNode):
            process, consume_rows = _open_sink(node, context, task_context, topic_of)
            if consume_rows is not None:
                functions.append((node.name, consume_rows))
        else:
            process = _open_operator(node, context, node.operator.open)
            if only_child in pulled and isinstance(node.operator, RowsOperator):
                process_rows = _open_operator(node, context, node.operator.open_rows)
                functions.append((node.name, process_rows))
                consume_rows = _pulled_through(process_rows, pulled[only_child])
        functions.append((node.name, process))
        called[node.name] = _wrapped(node, process, task_context)
        if consume_rows is not None and called[node.name] is process:
            pulled[node.name] = consume_rows
    task_context.opened()
    return OpenNodes(functions, sources, pulled)


def _children(sub: SubTopology) -> dict[str, list[str]]:
    """The names of each node's children."""
    children: dict[str, list[str]] = {node.name: [] for node in sub.nodes}
    for node in sub.nodes:
        if not isinstance(node, SourceNode):
            for parent in node.parents:
                children[parent].append(node.name)
    return children


def _open_operator(
    node: ProcessorNode, context: TaskNodeContext, open_node: Callable[[NodeContext], T]
) -> T:
    try:
        return open_node(context)
    except StreamsError:
        raise
    except Exception as error:
        line = user_line(error)
        at = f'node "{node.name}", task {context.task_id}'
        raise ProcessingFailed(
            f'node "{node.name}" cannot be opened: {type(error).__name__}: {error}',
            at=f"{at}\n      {line}" if line else at,
            hint="fix the initialization of the node",
        ) from error


def _pulled_through(process_rows: ProcessRows, consume_rows: ConsumeRows) -> ConsumeRows:
    """A function that processes the rows of a node and passes the results to `consume_rows`."""
    return lambda rows: consume_rows(process_rows(rows))


def _open_sink(
    node: SinkNode, context: TaskNodeContext, task_context: TaskContext, topic_of: TopicOf
) -> tuple[Process, ConsumeRows | None]:
    config = task_context.config
    sink = OpenSink(
        context,
        task_context.output,
        task_context.failures,
        task_context.metrics.counter(PROCESSED, node.name),
        key_serde=serde_or_default(node.key_serde, config.default_key_serde),
        value_serde=serde_or_default(node.value_serde, config.default_value_serde),
    )
    return open_sink(node, topic_of, sink)


def _wrapped(node: Node, process: Process, task_context: TaskContext) -> Process:
    """The function that a node's parents call: guarded if the handler may continue."""
    config = task_context.config
    called = process
    if config.processing_exception_handler is not log_and_fail:
        called = guarded(node.name, called, task_context.failures)
    if config.metrics_recording_level != "INFO" and isinstance(node, ProcessorNode):
        called = counted(called, task_context.metrics.counter(PROCESSED, node.name))
    return called


def open_source(
    node: SourceNode,
    topic: str,
    nodes: OpenNodes,
    task_context: TaskContext,
    punctuate: Callable[[], object],
) -> tuple[Run, FindHead | None]:
    """The loop over a topic's records, and the function that finds the head, if one is needed."""
    config, metrics = task_context.config, task_context.metrics
    source = OpenSource(
        node=node.name,
        topic=topic,
        key_serde=serde_or_default(node.key_serde, config.default_key_serde),
        value_serde=serde_or_default(node.value_serde, config.default_value_serde),
        extractor=node.timestamp_extractor or config.default_timestamp_extractor,
        forward=nodes.sources[node.name],
        current=task_context.current,
        failures=task_context.failures,
        stream_punctuations=task_context.stream_punctuations,
        punctuate=punctuate,
        record_time=task_context.state.record_time,
        processed=metrics.counter(PROCESSED, node.name),
        dropped=metrics.counter(DROPPED),
    )
    run, find_head = source.loops()
    if find_head is None and node.name in nodes.pulled:
        run = open_pulling(source, nodes.pulled[node.name], run)
    return run, find_head
