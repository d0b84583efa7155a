"""ErrorHandler: retries, tolerance and reports for operations on single records.

    operation fails
      ├── RetriableError, and errors.retry.timeout is not over ──► retry after 300 ms, 600 ms, ...
      └── anything else ──► report: error log, dead letter topic
                              ├── tolerated     ──► the record is skipped
                              └── not tolerated ──► ConnectError, the task fails

| stage                        | errors.tolerance=all tolerates | errors.tolerance=none |
|------------------------------|--------------------------------|-----------------------|
| TRANSFORMATION, *_CONVERTER  | every error                    | nothing               |
| all others                   | RetriableError                 | nothing               |

Records without errors do not come here: callers run operations directly, and use the handler only
after an exception.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Protocol, TypeVar

from broker.client.api import ConsumerRecord
from broker.clock import Clock
from connect.config.connector import ErrorSettings
from connect.errors import ConnectError, RetriableError
from connect.records import SourceRecord
from connect.runtime.metrics import ErrorCounts
from connect.state.task_state import TaskId
from connect.stop_signal import StopSignal

logger = logging.getLogger(__name__)

T = TypeVar("T")

RETRY_DELAY_FIRST_MS = 300
FOREVER_MS = 1 << 60


class Stage(Enum):
    """The processing stage of a record; dead letters contain these names."""

    TASK_POLL = "TASK_POLL"
    TASK_PUT = "TASK_PUT"
    TRANSFORMATION = "TRANSFORMATION"
    KEY_CONVERTER = "KEY_CONVERTER"
    VALUE_CONVERTER = "VALUE_CONVERTER"
    HEADER_CONVERTER = "HEADER_CONVERTER"
    KAFKA_PRODUCE = "KAFKA_PRODUCE"
    KAFKA_CONSUME = "KAFKA_CONSUME"


# In these stages every error concerns the record; in others it may concern the external system.
ABOUT_THE_RECORD = frozenset(
    {Stage.TRANSFORMATION, Stage.KEY_CONVERTER, Stage.VALUE_CONVERTER, Stage.HEADER_CONVERTER}
)


class Skipped(Enum):
    """The result of an operation whose error was tolerated."""

    RECORD = "the record is skipped"


SKIPPED: Final = Skipped.RECORD


@dataclass(slots=True)
class RecordFailure:
    """A failed operation on a record, with the number of attempts."""

    stage: Stage
    performed_by: str
    error: Exception
    record: SourceRecord | ConsumerRecord | None = None
    attempts: int = 1

    def describe(self, *, with_record: bool) -> str:
        """The operation, as the error log shows it."""
        text = f"Executing stage '{self.stage.name}' with class '{self.performed_by}'"
        if with_record and isinstance(self.record, SourceRecord):
            text += f", where source record is = {self.record}"
        elif with_record and isinstance(self.record, ConsumerRecord):
            topic, partition, offset, timestamp_ms = self.record[:4]
            text += (
                f", where consumed record is {{topic='{topic}', partition={partition}, "
                f"offset={offset}, timestamp={timestamp_ms}}}"
            )
        return f"{text}."


class Reporter(Protocol):
    """Receives all operations that failed permanently."""

    def report(self, failure: RecordFailure) -> object:
        """Report a failure; the next iteration or commit raises an error of the report."""
        ...


class ErrorLog:
    """Writes errors to the log."""

    def __init__(self, task_id: TaskId, counts: ErrorCounts, *, with_records: bool) -> None:
        """Records are logged only if that is enabled: they may be secret."""
        self._task_id = task_id
        self._counts = counts
        self._with_records = with_records

    def report(self, failure: RecordFailure) -> None:
        """Log one line and the stack trace of the error."""
        logger.error(
            "Error encountered in task %s. %s",
            self._task_id,
            failure.describe(with_record=self._with_records),
            exc_info=failure.error,
        )
        self._counts.logged += 1


@dataclass(slots=True)
class ErrorHandler:
    """Handles failed operations of one task; only the task's thread calls it."""

    settings: ErrorSettings
    counts: ErrorCounts
    clock: Clock
    stop: StopSignal
    reporters: list[Reporter] = field(default_factory=list)

    def recover(self, failure: RecordFailure, operation: Callable[[], T]) -> T | Skipped:
        """Retry the operation until the timeout; returns its result, or SKIPPED if tolerated."""
        timeout_ms = self.settings.retry_timeout_ms
        limit_ms = FOREVER_MS if timeout_ms < 0 else timeout_ms
        deadline_ms = self.clock.monotonic_ms() + limit_ms
        while True:
            self.counts.failures += 1
            left_ms = deadline_ms - self.clock.monotonic_ms()
            if not isinstance(failure.error, RetriableError) or left_ms <= 0:
                self.give_up(failure)
                return SKIPPED
            self.stop.pause(min(self._delay_ms(failure.attempts), left_ms))
            self.counts.retries += 1
            failure.attempts += 1
            try:
                return operation()
            except Exception as error:
                failure.error = error

    def give_up(self, failure: RecordFailure) -> None:
        """Report an operation that is not retried; raises unless its error is tolerated."""
        self.report(failure)
        error = failure.error
        tolerable = failure.stage in ABOUT_THE_RECORD or isinstance(error, RetriableError)
        if not tolerable:
            raise ConnectError(
                "Unhandled exception in error handler", at=place_of(failure)
            ) from error
        if not self.settings.tolerates_all:
            # Kafka Connect skips the record here when the error was retriable and its retries are
            # exhausted, whatever the tolerance: a record would be lost without notice.
            raise ConnectError(
                "Tolerance exceeded in error handler", at=place_of(failure)
            ) from error
        self.skip(failure)

    def skip(self, failure: RecordFailure) -> None:
        """Skip a record whose error was reported and is tolerated."""
        self.counts.skipped += 1
        skipped = self.counts.skipped
        if not self.reporters and skipped & (skipped - 1) == 0:
            # Without any reporter nothing would be logged; now the records 1, 2, 4, 8, ... are.
            logger.warning(
                "%d records skipped so far, the last one (%s): %s; set "
                "errors.log.enable=true to log each of them",
                skipped,
                place_of(failure),
                failure.error,
            )

    def report(self, failure: RecordFailure) -> list[object]:
        """Notify all reporters; returns their results."""
        self.counts.errors += 1
        self.counts.last_error_ms = self.clock.now_ms()
        return [reporter.report(failure) for reporter in self.reporters]

    def _delay_ms(self, attempts: int) -> int:
        delay_ms = RETRY_DELAY_FIRST_MS << min(attempts - 1, 30)
        return min(delay_ms, self.settings.retry_delay_max_ms)


def place_of(failure: RecordFailure) -> str:
    """The position and the stage of a failed record."""
    record = failure.record
    if isinstance(record, ConsumerRecord):
        where = f'topic "{record.topic}" partition {record.partition} offset {record.offset}'
    elif isinstance(record, SourceRecord):
        where = f'record for topic "{record.topic}", source offset {dict(record.source_offset)}'
    else:
        where = "no record"
    return f"{where}, stage {failure.stage.name}, {failure.performed_by}"
