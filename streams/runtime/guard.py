"""Guards: find out which node failed, and with which record.

With the processing handler `log_and_fail`, nodes are called directly, and the traceback of an error
shows which node raised it: no cost per record. With any other handler a parent may continue after
the error, so every node is called through a guard.
"""

from collections.abc import Callable, Iterable
from types import CodeType, FrameType, FunctionType, MethodType
from typing import NamedTuple

from streams.errors import (
    DeserializationFailed,
    InvalidTimestamp,
    ProcessingFailed,
    ProductionFailed,
    StreamsConfigError,
    TaskMigrated,
)
from streams.processor import Process
from streams.record import Headers
from streams.runtime.dead_letters import Failures
from streams.runtime.task_metrics import Counter

# Failures that were handled already, or that are not caused by the record.
NOT_HANDLED = (
    ProcessingFailed,
    DeserializationFailed,
    ProductionFailed,
    InvalidTimestamp,
    StreamsConfigError,
    TaskMigrated,
)
# The arguments of a node's function; while rows are pulled, its variables have these names.
_VARIABLES = ("key", "value", "timestamp_ms", "headers")

# The function of a node for records, or the one for pulled rows.
NodeFunction = Callable[..., object]


def guarded(node: str, process: Process, failures: Failures) -> Process:
    """Wrap a node's function: its exceptions are passed to the handler."""

    def guard(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        try:
            process(key, value, timestamp_ms, headers)
        except NOT_HANDLED:
            raise
        except Exception as error:
            failures.processing(node, error, key, value, timestamp_ms, headers)

    return guard


def counted(process: Process, counter: Counter) -> Process:
    """Wrap a node's function: it counts its records."""

    def count(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        counter.value += 1
        process(key, value, timestamp_ms, headers)

    return count


class FailedNode(NamedTuple):
    """The node that failed, and its record."""

    node: str
    key: object
    value: object
    timestamp_ms: int
    headers: Headers


def find_failed_node(
    error: BaseException, nodes: Iterable[tuple[str, NodeFunction]]
) -> FailedNode | None:
    """The innermost node in the traceback of an error."""
    by_code: dict[CodeType, list[tuple[str, NodeFunction]]] = {}
    for node, process in nodes:
        function = process.__func__ if isinstance(process, MethodType) else process
        if isinstance(function, FunctionType):
            by_code.setdefault(function.__code__, []).append((node, process))
    failed = None
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        name = _node_of(frame, by_code.get(frame.f_code, ()))
        if name is not None:
            failed = _failed(name, frame, frame.f_code)
        trace = trace.tb_next
    return failed


def _node_of(frame: FrameType, candidates: Iterable[tuple[str, NodeFunction]]) -> str | None:
    """The node whose function a frame runs; nodes may share code, but not closures."""
    values = frame.f_locals
    for node, process in candidates:
        if isinstance(process, MethodType):
            if values.get(frame.f_code.co_varnames[0]) is process.__self__:
                return node
        elif isinstance(process, FunctionType) and all(
            values.get(name) is _content(cell)
            for name, cell in zip(frame.f_code.co_freevars, process.__closure__ or (), strict=True)
        ):
            return node
    return None


def _content(cell: object) -> object:
    try:
        return cell.cell_contents  # type: ignore[attr-defined]
    except ValueError:  # still empty
        return None


def _failed(node: str, frame: FrameType, code: CodeType) -> FailedNode | None:
    names = [name for name in code.co_varnames[: code.co_argcount] if name != "self"]
    if names == ["rows"]:
        names = list(_VARIABLES)
    if len(names) != len(_VARIABLES):
        return FailedNode(node, None, None, -1, ())
    key, value, timestamp_ms, headers = (frame.f_locals.get(name) for name in names)
    return FailedNode(
        node,
        key,
        value,
        timestamp_ms if isinstance(timestamp_ms, int) else -1,
        headers if isinstance(headers, tuple) else (),
    )
