"""DeadLetters: the topic for records that a sink could not take.

A dead letter has key, value, headers and timestamp of the record as it was read, byte by byte. With
errors.deadletterqueue.context.headers.enable it has these headers too, all of them texts:

    __connect.errors.topic                  where the record was read
    __connect.errors.partition
    __connect.errors.offset
    __connect.errors.connector.name         who could not take it
    __connect.errors.task.id
    __connect.errors.stage                  VALUE_CONVERTER for example
    __connect.errors.class.name             the converter, transform or task
    __connect.errors.exception.class.name   the error
    __connect.errors.exception.message      null when the error has none
    __connect.errors.exception.stacktrace
"""

import logging
import traceback
from concurrent.futures import Future

from broker.client.api import (
    Admin,
    ConsumerRecord,
    NewTopic,
    Producer,
    RecordMetadata,
)
from broker.errors import BrokerError, MillstreamError, RequestTimeout
from connect.class_names import class_name
from connect.error_handling import ErrorSettings, Failure
from connect.errors import ConnectError
from connect.metrics import ErrorCounts
from connect.task_state import TaskId
from connect.topic_creation import clamped_replication, create_unless_there

logger = logging.getLogger(__name__)

HEADER = "__connect.errors."
NO_TIMESTAMP = -1


class DeadLetters:
    """Sends records to the dead letter topic; only the task's thread calls it."""

    def __init__(
        self,
        task_id: TaskId,
        settings: ErrorSettings,
        producer: Producer,
        counts: ErrorCounts,
    ) -> None:
        """The producer is closed by whom it belongs to."""
        self._task_id = task_id
        self._topic = settings.dead_letter_topic
        self._with_context = settings.dead_letter_headers
        self._producer = producer
        self._counts = counts
        self._unsettled = False

    def report(self, failure: Failure) -> Future[None]:
        """Send the record; a failure is counted, logged, and the outcome of the future."""
        self._counts.dead_letters += 1
        report: Future[None] = Future()
        record = failure.record
        if not isinstance(record, ConsumerRecord):
            self._failed(report, ConnectError("there is no record to write"))
            return report
        headers = record.headers
        if self._with_context:
            headers = (*headers, *context_headers(failure, self._task_id))

        def sent(metadata: RecordMetadata | None, error: BaseException | None) -> None:
            if error is None:
                report.set_result(None)
            else:
                self._failed(report, error)

        timestamp_ms = None if record.timestamp_ms == NO_TIMESTAMP else record.timestamp_ms
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
            self._failed(report, error)
        else:
            self._unsettled = True
        return report

    def _failed(self, report: Future[None], error: BaseException) -> None:
        self._counts.dead_letter_failures += 1
        logger.error(
            'task %s: cannot write a record to the dead letter topic "%s": %s',
            self._task_id,
            self._topic,
            error,
        )
        report.set_exception(error)

    def settle(self, timeout_ms: int) -> bool:
        """Wait until the fate of all that was sent is known; False when the time is up first."""
        if not self._unsettled:
            return True
        try:
            self._producer.flush(timeout_ms)
        except RequestTimeout:
            return False
        self._unsettled = False
        return True


def context_headers(failure: Failure, task_id: TaskId) -> list[tuple[str, bytes | None]]:
    """What happened to a record, as headers, in Kafka's order."""
    error = failure.error
    context: list[tuple[str, str | None]] = []
    if isinstance(failure.record, ConsumerRecord):
        context += [
            ("topic", failure.record.topic),
            ("partition", str(failure.record.partition)),
            ("offset", str(failure.record.offset)),
        ]
    context += [
        ("connector.name", task_id.connector),
        ("task.id", str(task_id.task)),
        ("stage", failure.stage.name),
        ("class.name", failure.performed_by),
        ("exception.class.name", class_name(type(error))),
        ("exception.message", str(error) or None),
        ("exception.stacktrace", "".join(traceback.format_exception(error))),
    ]
    return [
        (HEADER + name, None if text is None else text.encode(errors="replace"))
        for name, text in context
    ]


def make_topic(admin: Admin, settings: ErrorSettings) -> None:
    """Create the dead letter topic, with one partition, unless it is there."""
    topic = settings.dead_letter_topic
    if topic in admin.list_topics(include_internal=True):
        return
    factor = clamped_replication(admin, topic, settings.dead_letter_replication_factor)
    try:
        create_unless_there(admin, NewTopic(topic, 1, factor))
    except BrokerError as error:
        raise ConnectError(
            f'cannot create the dead letter topic "{topic}": {error.message}', hint=error.hint
        ) from error
