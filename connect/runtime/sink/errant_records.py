"""ErrantRecords: reports of single records that a sink task could not deliver."""

from concurrent.futures import Future

from broker import concurrency
from broker.client.api import ConsumerRecord
from connect.api import SinkTask
from connect.errors import ConnectError
from connect.records import SinkRecord
from connect.runtime.class_names import class_name
from connect.runtime.conversion import Converters
from connect.runtime.error_handling import ErrorHandler, RecordFailure, Stage
from connect.runtime.sink.pipeline import NO_TIMESTAMP, ReportableRecord


class ErrantRecords:
    """The ErrantRecordReporter of a task; any of its threads may report."""

    def __init__(self, handler: ErrorHandler, converters: Converters) -> None:
        """The handler's reporters receive the records."""
        self._handler = handler
        self._converters = converters
        self._lock = concurrency.Lock()

    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        """Report a record; ConnectError if errors are not tolerated."""
        failure = RecordFailure(Stage.TASK_PUT, class_name(SinkTask), error, self._consumed(record))
        handler = self._handler
        with self._lock:
            handler.counts.failures += 1
            reports = [each for each in handler.report(failure) if isinstance(each, Future)]
            if not handler.settings.tolerates_all:
                raise ConnectError("Tolerance exceeded in errant record reporter") from error
            handler.skip(failure)
        if reports:
            return reports[0]
        logged: Future[None] = Future()
        logged.set_result(None)
        return logged

    def _consumed(self, record: SinkRecord) -> ConsumerRecord:
        """The record as it was consumed or, if the task has changed it, its current state."""
        if isinstance(record, ReportableRecord):
            return record.consumed
        topic, converters = record.topic, self._converters
        to_bytes = converters.header.from_connect_header
        return ConsumerRecord(
            topic,
            record.partition,
            record.offset,
            NO_TIMESTAMP if record.timestamp_ms is None else record.timestamp_ms,
            converters.key.from_connect_data(topic, record.headers, record.key_schema, record.key),
            converters.value.from_connect_data(
                topic, record.headers, record.value_schema, record.value
            ),
            tuple(
                (name, to_bytes(topic, name, schema, value))
                for name, schema, value in record.headers
            ),
        )
