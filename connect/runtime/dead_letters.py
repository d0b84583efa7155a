"""DeadLetters: the topic for records that a sink could not process.

A dead letter has the original key, value, headers and timestamp of the record. With
errors.deadletterqueue.context.headers.enable it also has these headers, all of them strings:

    __connect.errors.topic                  the original topic of the record
    __connect.errors.partition
    __connect.errors.offset
    __connect.errors.connector.name         the connector
    __connect.errors.task.id
    __connect.errors.stage                  VALUE_CONVERTER for example
    __connect.errors.class.name             the converter, transform or task
    __connect.errors.exception.class.name   the error
    __connect.errors.exception.message      null when the error has none
    __connect.errors.exception.stacktrace

A batch that cannot be read has one dead letter, without key and value. It always has the headers,
and __connect.errors.next.offset: the batch has the offsets from __connect.errors.offset up to this
one (exclusive).

The offset of a record is committed only after its letter is acknowledged. A letter that the broker
refuses (too large, not authorized, no such topic) fails the task, which then commits nothing more.
"""

import logging
from concurrent.futures import Future
from dataclasses import dataclass

from broker import stack_traces
from broker.client.api import ConsumerRecord, DeliveryCallback, NewTopic, RecordMetadata
from broker.client.cluster_admin import Admin
from broker.client.record_producer import Producer
from broker.errors import BrokerError, CorruptBatchError, MillstreamError, RequestTimeout
from connect.config.connector import ErrorSettings
from connect.errors import ConnectError
from connect.retries import RETRY_MS, is_transient
from connect.runtime.class_names import class_name
from connect.runtime.error_handling import RecordFailure, Stage, place_of
from connect.runtime.metrics import ErrorCounts
from connect.runtime.topic_creation import clamped_replication, create_if_missing
from connect.state.task_state import TaskId
from connect.stop_signal import StopSignal, TaskStopped

logger = logging.getLogger(__name__)

HEADER = "__connect.errors."
NO_TIMESTAMP = -1
CHECK_TIMEOUT_MS = 5_000


@dataclass(frozen=True, slots=True)
class DeadLetterClients:
    """The clients that write dead letters."""

    producer: Producer
    admin: Admin


class DeadLetterRefused(ConnectError):
    """A record could neither be delivered nor written to the dead letter queue."""


class DeadLetters:
    """Sends records to the dead letter queue.

    The task's thread calls it, and other threads of the task may report records. A refused letter
    fails the task: nothing more may be committed, or the record would be lost.
    """

    def __init__(
        self,
        task_id: TaskId,
        settings: ErrorSettings,
        clients: DeadLetterClients,
        counts: ErrorCounts,
        stop: StopSignal,
    ) -> None:
        """The owner closes the clients."""
        self._task_id = task_id
        self._topic = settings.dead_letter_topic
        self._with_context = settings.dead_letter_headers
        self._producer = clients.producer
        self._admin = clients.admin
        self._counts = counts
        self._stop = stop
        self._unsettled = False
        self._refused: DeadLetterRefused | None = None  # the first; written by any thread

    def report(self, failure: RecordFailure) -> Future[None]:
        """Send the record; a refused letter fails the future and `raise_refused`."""
        self._counts.dead_letters += 1
        report: Future[None] = Future()
        report.set_running_or_notify_cancel()  # tasks cannot cancel it
        record = failure.record
        if not isinstance(record, ConsumerRecord):
            self._failed(failure, report, ConnectError("there is no record to write"))
            return report

        def sent(metadata: RecordMetadata | None, error: BaseException | None) -> None:
            if error is None:
                report.set_result(None)
            else:
                self._failed(failure, report, error)

        try:
            self._send(failure, record, sent)
        except TaskStopped:
            raise
        except MillstreamError as error:
            self._failed(failure, report, error)
        else:
            self._unsettled = True
        return report

    def _send(self, failure: RecordFailure, record: ConsumerRecord, sent: DeliveryCallback) -> None:
        """Send the letter, and retry while the broker is unavailable."""
        headers = record.headers
        if self._with_context or failure.stage is Stage.KAFKA_CONSUME:
            headers = (*headers, *context_headers(failure, self._task_id))
        timestamp_ms = None if record.timestamp_ms == NO_TIMESTAMP else record.timestamp_ms
        while True:
            try:
                self._producer.send(
                    self._topic,
                    record.value,
                    record.key,
                    timestamp_ms=timestamp_ms,
                    headers=headers,
                    callback=sent,
                )
            except MillstreamError as error:
                if not is_transient(error):
                    raise
                self._check_topic()
                logger.warning("task %s cannot write a dead letter now: %s", self._task_id, error)
            else:
                return
            self._stop.pause(RETRY_MS)

    def _check_topic(self) -> None:
        """Raise if the topic does not exist: retries do not help."""
        try:
            topics = self._admin.list_topics(include_internal=True, timeout_ms=CHECK_TIMEOUT_MS)
        except MillstreamError as error:
            if is_transient(error):
                return  # the brokers are unavailable: retry
            raise
        if self._topic not in topics:
            raise ConnectError(
                "the topic does not exist, or the worker is not authorized to describe it",
                hint="restart the task to create the topic",
            )

    def _failed(self, failure: RecordFailure, report: Future[None], error: BaseException) -> None:
        self._counts.dead_letter_failures += 1
        logger.error(
            'task %s: cannot write a record to the dead letter queue topic "%s": %s',
            self._task_id,
            self._topic,
            error,
        )
        if self._refused is None:
            self._refused = self._refusal(failure, error)
        report.set_exception(error)

    def _refusal(self, failure: RecordFailure | None, error: BaseException) -> DeadLetterRefused:
        why = error.message if isinstance(error, MillstreamError) else str(error)
        hint = error.hint if isinstance(error, MillstreamError) else ""
        refused = DeadLetterRefused(
            f'cannot write a record to the dead letter queue topic "{self._topic}": {why}',
            at="" if failure is None else place_of(failure),
            hint=hint
            or ("no offset past this record was committed; remove the cause and restart the task"),
        )
        refused.__cause__ = error
        return refused

    def raise_refused(self) -> None:
        """Raise DeadLetterRefused if a letter was refused."""
        if self._refused is not None:
            raise self._refused

    def settle(self, timeout_ms: int) -> bool:
        """Wait until all letters are acknowledged; False on a timeout.

        DeadLetterRefused if one was refused.
        """
        if self._unsettled:
            try:
                self._producer.flush(timeout_ms)
            except RequestTimeout:
                self.raise_refused()
                try:
                    self._check_topic()
                except MillstreamError as error:
                    self._refused = self._refusal(None, error)
                    raise self._refused from error
                return False
            self._unsettled = False
        self.raise_refused()
        return True


def context_headers(failure: RecordFailure, task_id: TaskId) -> list[tuple[str, bytes | None]]:
    """The error context of a record as headers, in Kafka's order."""
    error = failure.error
    context: list[tuple[str, str | None]] = []
    if isinstance(failure.record, ConsumerRecord):
        context += [
            ("topic", failure.record.topic),
            ("partition", str(failure.record.partition)),
            ("offset", str(failure.record.offset)),
        ]
    if isinstance(error, CorruptBatchError):
        context.append(("next.offset", str(error.next_offset)))
    context += [
        ("connector.name", task_id.connector),
        ("task.id", str(task_id.task)),
        ("stage", failure.stage.name),
        ("class.name", failure.performed_by),
        ("exception.class.name", class_name(type(error))),
        ("exception.message", str(error) or None),
        ("exception.stacktrace", stack_traces.format_error(error)),
    ]
    return [
        (HEADER + name, None if text is None else text.encode(errors="replace"))
        for name, text in context
    ]


def create_topic(admin: Admin, settings: ErrorSettings) -> None:
    """Create the dead letter queue topic with one partition, unless it exists."""
    topic = settings.dead_letter_topic
    if topic in admin.list_topics(include_internal=True):
        return
    factor = clamped_replication(admin, topic, settings.dead_letter_replication_factor)
    try:
        create_if_missing(admin, NewTopic(topic, 1, factor))
    except BrokerError as error:
        raise ConnectError(
            f'cannot create the dead letter queue topic "{topic}": {error.message}', hint=error.hint
        ) from error
