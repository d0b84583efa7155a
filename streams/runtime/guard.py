"""Guards: which node failed, and on what.

As long as the processing handler is `log_and_fail`, nodes are called as they are, and the traceback
of an error shows which node raised it: zero cost per record. Any other handler may let the parent
continue, so every node is called through a guard.
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
SETTLED = (
    ProcessingFailed,
    DeserializationFailed,
    ProductionFailed,
    InvalidTimestamp,
    StreamsConfigError,
    TaskMigrated,
)
# What a node's code is given, as its variables are called where rows are pulled.
_VARIABLES = ("key", "value", "timestamp_ms", "headers")

# A node's code, or its code for rows that are pulled.
NodeFunction = Callable[..., object]


def guarded(node: str, process: Process, failures: Failures) -> Process:
    """A node's code that asks the handler about what it raises."""

    def guard(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        try:
            process(key, value, timestamp_ms, headers)
        except SETTLED:
            raise
        except Exception as error:
            failures.processing(node, error, key, value, timestamp_ms, headers)

    return guard


def counted(process: Process, counter: Counter) -> Process:
    """A node's code that counts its records."""

    def count(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        counter.value += 1
        process(key, value, timestamp_ms, headers)

    return count


class Failed(NamedTuple):
    """The node that raised, and what it was given."""

    node: str
    key: object
    value: object
    timestamp_ms: int
    headers: Headers


def find_failed(error: BaseException, nodes: Iterable[tuple[str, NodeFunction]]) -> Failed | None:
    """The innermost node among the frames that an error came through."""
    by_code: dict[CodeType, list[tuple[str, NodeFunction]]] = {}
    for node, process in nodes:
        function = process.__func__ if isinstance(process, MethodType) else process
        if isinstance(function, FunctionType):
            by_code.setdefault(function.__code__, []).append((node, process))
    found = None
    trace = error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        name = _node_of(frame, by_code.get(frame.f_code, ()))
        if name is not None:
            found = _failed(name, frame, frame.f_code)
        trace = trace.tb_next
    return found


def _node_of(frame: FrameType, candidates: Iterable[tuple[str, NodeFunction]]) -> str | None:
    """The node whose function a frame runs: several nodes may share the code, not its cells."""
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


def _failed(node: str, frame: FrameType, code: CodeType) -> Failed | None:
    names = [name for name in code.co_varnames[: code.co_argcount] if name != "self"]
    if names == ["rows"]:
        names = list(_VARIABLES)
    if len(names) != len(_VARIABLES):
        return Failed(node, None, None, -1, ())
    key, value, timestamp_ms, headers = (frame.f_locals.get(name) for name in names)
    return Failed(
        node,
        key,
        value,
        timestamp_ms if isinstance(timestamp_ms, int) else -1,
        headers if isinstance(headers, tuple) else (),
    )
