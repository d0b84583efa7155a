"""Failures: calls the exception handlers for failed records and acts on their answers.

A dead letter is the unchanged input record with headers that describe the error; the names of the
headers are those of Kafka Streams (KIP-1034):

    __streams.errors.exception   the class of the error
    __streams.errors.message     its message
    __streams.errors.stacktrace  where it was raised
    __streams.errors.topic       where the record came from
    __streams.errors.partition
    __streams.errors.offset
"""

import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path

from broker import stack_traces
from broker.errors import MillstreamError, RegistryError
from streams.config import StreamsConfig
from streams.errors import (
    DeserializationFailed,
    ProcessingFailed,
    ProductionFailed,
    StreamsConfigError,
    StreamsError,
)
from streams.handlers import (
    Answer,
    DeadLetter,
    Failure,
    FailureKind,
    Handler,
    log_and_continue,
    log_and_fail,
)
from streams.record import Headers
from streams.runtime.current import Current
from streams.runtime.output import Output
from streams.runtime.task_metrics import DEAD_LETTERS, DROPPED, TaskMetrics

_HEADER = "__streams.errors."
_BUILT_IN = (log_and_fail, log_and_continue)
_OUR_FOLDER = str(Path(__file__).parent.parent)
_LIBRARY_FOLDERS = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))

MakeError = Callable[[Failure], StreamsError]


class Failures:
    """Handles the failed records of a task; raises if the handler answers FAIL."""

    __slots__ = ("_config", "_current", "_dead_letters", "_dropped", "_output", "_task_id")

    def __init__(
        self,
        task_id: str,
        config: StreamsConfig,
        current: Current,
        output: Output,
        metrics: TaskMetrics,
    ) -> None:
        self._task_id = task_id
        self._config = config
        self._current = current
        self._output = output
        self._dropped = metrics.counter(DROPPED)
        self._dead_letters = metrics.counter(DEAD_LETTERS)

    def deserialization(self, node: str, error: Exception, timestamp_ms: int) -> None:
        """Handle a record whose key or value cannot be deserialized."""
        failure = self._failure(FailureKind.DESERIALIZATION, node, error, timestamp_ms)
        handler = self._config.deserialization_exception_handler
        self._handle(handler, failure, _deserialization_failed)

    def processing(
        self,
        node: str,
        error: Exception,
        key: object,
        value: object,
        timestamp_ms: int,
        headers: Headers,
    ) -> None:
        """Handle an exception of a node."""
        failure = self._failure(
            FailureKind.PROCESSING, node, error, timestamp_ms, (key, value, headers)
        )
        self._handle(self._config.processing_exception_handler, failure, _processing_failed)

    def production(
        self, node: str, error: Exception, record: tuple[object, object, int, Headers]
    ) -> None:
        """Handle a record that cannot be serialized, or that the broker refused."""
        key, value, timestamp_ms, headers = record
        failure = self._failure(
            FailureKind.PRODUCTION, node, error, timestamp_ms, (key, value, headers)
        )
        self._handle(self._config.production_exception_handler, failure, _production_failed)

    def _failure(
        self,
        kind: FailureKind,
        node: str,
        error: Exception,
        timestamp_ms: int,
        record: tuple[object, object, Headers] | None = None,
    ) -> Failure:
        position, (raw_key, raw_value, raw_headers) = self._current.origin_of(error)
        key, value, headers = (None, None, raw_headers) if record is None else record
        return Failure(
            kind=kind,
            error=error,
            node=node,
            task_id=self._task_id,
            position=position,
            timestamp_ms=timestamp_ms,
            key=key,
            value=value,
            headers=headers,
            raw_key=raw_key,
            raw_value=raw_value,
            raw_headers=raw_headers,
        )

    def _handle(self, handler: Handler, failure: Failure, failed: MakeError) -> None:
        if isinstance(failure.error, RegistryError) and failed is not _processing_failed:
            # The record is valid: an unavailable registry must not cause records to be dropped.
            raise failed(failure) from failure.error
        try:
            answer = handler(failure)
        except Exception as error:
            raise ProcessingFailed(
                f"the {failure.kind.value} exception handler itself failed: {error}",
                at=failure.at,
                hint=f"it was called because of {_described(failure.error)}",
            ) from error
        topic = self._dead_letter_topic(handler, answer)
        if topic is not None:
            self._send(topic, failure)
        if not _continues(answer):
            raise failed(failure) from failure.error
        self._dropped.add()

    def _dead_letter_topic(self, handler: Handler, answer: Answer | DeadLetter) -> str | None:
        if isinstance(answer, DeadLetter):
            return answer.topic
        configured = self._config.errors_dead_letter_queue_topic_name
        if answer is not Answer.DEAD_LETTER:
            return configured if handler in _BUILT_IN else None
        if configured is None:
            raise StreamsConfigError(
                "a handler returned DEAD_LETTER, but there is no topic for dead letters",
                hint='set "errors_dead_letter_queue_topic_name", or use dead_letter("topic")',
            )
        return configured

    def _send(self, topic: str, failure: Failure) -> None:
        timestamp_ms = max(failure.timestamp_ms, 0)
        headers = (*failure.raw_headers, *error_headers(failure))
        self._output.send(topic, failure.raw_key, failure.raw_value, timestamp_ms, headers, None)
        self._dead_letters.add()


def _continues(answer: Answer | DeadLetter) -> bool:
    """Whether to drop the record and continue; not for unknown answers of a handler."""
    if isinstance(answer, DeadLetter):
        return not answer.fail
    return answer in (Answer.CONTINUE, Answer.DEAD_LETTER)


def error_headers(failure: Failure) -> Headers:
    """The headers of a dead letter, which describe the error."""
    error = failure.error
    fields = {
        "exception": f"{type(error).__module__}.{type(error).__qualname__}",
        "message": str(error),
        "stacktrace": stack_traces.format_error(error),
    }
    if failure.position is not None:
        topic, partition, offset = failure.position
        fields |= {"topic": topic, "partition": str(partition), "offset": str(offset)}
    return tuple((_HEADER + name, text.encode()) for name, text in fields.items())


def user_line(error: BaseException) -> str:
    """The innermost line of the user's code in an error's traceback; empty if there is none."""
    line = ""
    for frame in traceback.extract_tb(error.__traceback__):
        ours = frame.filename.startswith(_OUR_FOLDER)
        if not ours and not frame.filename.startswith((*_LIBRARY_FOLDERS, "<")):
            line = f"{frame.filename}:{frame.lineno}: {frame.line}"
    return line


def _described(error: Exception) -> str:
    text = str(error).split("\n", 1)[0]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _processing_failed(failure: Failure) -> StreamsError:
    line = user_line(failure.error)
    at = f"{failure.at}\n      {line}" if line else failure.at
    return ProcessingFailed(
        f'node "{failure.node}" failed: {_described(failure.error)}',
        at=at,
        hint="fix the function, or set processing_exception_handler to log_and_continue or "
        "dead_letter(topic)",
    )


def _hint(error: Exception, otherwise: str) -> str:
    """The hint of the error itself, if it has one."""
    return (error.hint if isinstance(error, MillstreamError) else "") or otherwise


def _deserialization_failed(failure: Failure) -> StreamsError:
    return DeserializationFailed(
        f"the record cannot be read: {_described(failure.error)}",
        at=failure.at,
        hint=_hint(failure.error, "use the serde with which the record was written")
        + ", or set deserialization_exception_handler to log_and_continue or dead_letter(topic)",
    )


def _production_failed(failure: Failure) -> StreamsError:
    return ProductionFailed(
        f"the result cannot be written: {_described(failure.error)}",
        at=failure.at,
        hint=_hint(failure.error, "use a serde of the result's type for the sink")
        + ", or set production_exception_handler to log_and_continue or dead_letter(topic)",
    )
