"""The processing log: records that a query could not process, in ksqlDB's format.

Each entry is a JSON object {level, logger, time, message}; the message has a type (0 bytes that
cannot be deserialized, 1 a row that an expression could not process, 2 a result that was refused, 3
a result that cannot be serialized, 4 a query that ended) and a member named after it. Rows are only
included with ksql.logging.processing.rows.include.
"""

import base64
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from broker.client.opening import Target, producer
from broker.client.record_producer import Producer
from broker.clock import Clock
from broker.errors import MillstreamError
from sql.backends.native.topology import is_internal
from streams.handlers import Answer, Failure, FailureKind

CAUSES_MAX = 20
MEMBERS = (
    "deserializationError",
    "recordProcessingError",
    "productionError",
    "serializationError",
    "kafkaStreamsThreadError",
)
DESERIALIZATION, PROCESSING, PRODUCTION, SERIALIZATION, THREAD = range(5)
# The columns of the stream that reads the topic.
COLUMNS = (
    "logger VARCHAR, level VARCHAR, time BIGINT, message STRUCT<"
    "type INT, "
    "deserializationError STRUCT<target VARCHAR, errorMessage VARCHAR, recordB64 VARCHAR, "
    "cause ARRAY<VARCHAR>, `topic` VARCHAR>, "
    "recordProcessingError STRUCT<errorMessage VARCHAR, record VARCHAR, cause ARRAY<VARCHAR>>, "
    "productionError STRUCT<errorMessage VARCHAR>, "
    "serializationError STRUCT<target VARCHAR, errorMessage VARCHAR, record VARCHAR, "
    "cause ARRAY<VARCHAR>, `topic` VARCHAR>, "
    "kafkaStreamsThreadError STRUCT<errorMessage VARCHAR, threadName VARCHAR, "
    "cause ARRAY<VARCHAR>>>"
)

Write = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """One error."""

    kind: int
    error: BaseException
    details: Mapping[str, object]

    def message(self) -> dict[str, object]:
        """The message of the log entry."""
        body: dict[str, object] = {"errorMessage": str(self.error), **self.details}
        if self.kind != PRODUCTION:
            body["cause"] = _causes(self.error)
        return {"type": self.kind, MEMBERS[self.kind]: body}


class ProcessingLog:
    """The processing log of a server: records that queries could not process. Thread-safe."""

    def __init__(self, clock: Clock, *, rows: bool, write: Write | None = None) -> None:
        """Entries are written to Python's log, and to `write` as JSON if it is given."""
        self._clock = clock
        self._rows = rows
        self._write = write

    def of_query(self, query_id: str) -> "QueryLog":
        """The log of one query."""
        return QueryLog(self, query_id)

    @property
    def shows_rows(self) -> bool:
        """Whether rows may be included."""
        return self._rows

    def add(self, name: str, entry: Entry) -> None:
        """Write an entry with a logger's name."""
        logging.getLogger(name).warning("%s", entry.error)
        if self._write is not None:
            body = {
                "level": "ERROR",
                "logger": name,
                "time": self._clock.now_ms(),
                "message": entry.message(),
            }
            self._write(json.dumps(body, default=str))


@dataclass(frozen=True, slots=True)
class QueryLog:
    """The processing log of one query."""

    log: ProcessingLog
    query_id: str

    def row_failed(self, step: str, error: Exception, row: object) -> None:
        """An expression raised, or a row has no time."""
        shown = json.dumps(row, default=str) if self.log.shows_rows else None
        self.log.add(
            f"processing.{self.query_id}.{step}", Entry(PROCESSING, error, {"record": shown})
        )

    def handler(self, answer: Answer, application_id: str) -> Callable[[Failure], Answer]:
        """A handler of streams that logs a failure and returns this response.

        A record of an internal topic is part of the query's state, so it must not be skipped.
        """

        def handle(failure: Failure) -> Answer:
            self._record_failed(failure)
            return Answer.FAIL if is_internal(failure, application_id) else answer

        return handle

    def ended(self, error: BaseException) -> None:
        """The query has stopped because of an error."""
        self.log.add(
            f"processing.{self.query_id}", Entry(THREAD, error, {"threadName": self.query_id})
        )

    def _record_failed(self, failure: Failure) -> None:
        topic = None if failure.position is None else failure.position.topic
        if failure.kind is FailureKind.DESERIALIZATION:
            raw = failure.raw_value if self.log.shows_rows else None
            entry = Entry(
                DESERIALIZATION,
                failure.error,
                {
                    "target": "value",
                    "recordB64": None if raw is None else base64.b64encode(raw).decode(),
                    "topic": topic,
                },
            )
        elif failure.kind is FailureKind.PRODUCTION:
            entry = Entry(PRODUCTION, failure.error, {})
        else:
            shown = json.dumps(failure.value, default=str) if self.log.shows_rows else None
            entry = Entry(PROCESSING, failure.error, {"record": shown})
        self.log.add(f"processing.{self.query_id}.{failure.node}", entry)


class LogTopic:
    """Writes entries to a topic with a separate producer; failed entries are only counted."""

    def __init__(self, target: Target, topic: str) -> None:
        self.topic = topic
        self.lost = 0
        self._producer: Producer = producer(target, client_id="millstream-processing-log")

    def write(self, entry: str) -> None:
        """Queue an entry; never raises, because the log must not make a query fail."""
        try:
            self._producer.send(self.topic, entry.encode())
        except MillstreamError:
            self.lost += 1

    def close(self) -> None:
        """Send the remaining entries."""
        self._producer.close(timeout_ms=1_000)


def _causes(error: BaseException) -> list[str]:
    result: list[str] = []
    cause = error.__cause__
    while cause is not None and len(result) < CAUSES_MAX:
        result.append(str(cause))
        cause = cause.__cause__
    return result
