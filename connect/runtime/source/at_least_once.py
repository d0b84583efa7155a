"""AtLeastOnce: sends records, and stores the offsets of acknowledged ones.

    poll -> send -> (acknowledged) -> offset pending -> every offset.flush.interval.ms: stored

The task's thread sends, and does the rest between two polls. As a poll may wait for long, another
thread of the task calls `step` regularly, so that offsets are stored in time.
"""

from collections.abc import Sequence

from broker import concurrency
from broker.client.produced_batch import Delivery
from broker.errors import MillstreamError, RequestTimeout
from connect.errors import ConnectError
from connect.records import SourceRecord
from connect.runtime.error_handling import RecordFailure, Stage
from connect.runtime.source.offset_flush import OffsetFlush
from connect.runtime.source.pipeline import Row
from connect.runtime.source.sending import RecordSender
from connect.runtime.source.setup import SourceSetup
from connect.runtime.source.submitted import SubmittedRecords
from connect.stop_signal import TaskStopped

WORKER_SOURCE_TASK = "org.apache.kafka.connect.runtime.WorkerSourceTask"


class AtLeastOnce:
    """The SourceDelivery of a task without transactions."""

    def __init__(self, setup: SourceSetup, sender: RecordSender) -> None:
        self._setup = setup
        self._sender = sender
        self._lock = concurrency.Lock()  # guards the fields below
        self._submitted = SubmittedRecords(self._refused, keep_records=setup.wants_commit_record)
        self._flush = OffsetFlush(
            setup.task_id.connector, setup.offsets, setup.producer, setup.metrics, setup.clock
        )
        self._next_flush_ms = setup.clock.monotonic_ms() + setup.flush_interval_ms
        self._flushing = False
        self._stored = False
        self._written: list[tuple[SourceRecord, Delivery | None]] = []
        self._error: BaseException | None = None

    def begin(self) -> None:
        """Do nothing."""

    def before_poll(self) -> None:
        """Notify the task of written records and stored offsets; raise errors of the broker."""
        self.step()
        self._notify_task()
        self._raise_refusal()

    def send(self, records: Sequence[SourceRecord]) -> None:
        """Send the records; if one fails, those before it are sent and remembered."""
        rows: list[Row | None] = []
        try:
            self._setup.pipeline.add_rows(records, rows)
        finally:
            self._send_rows(records, rows)

    def _send_rows(self, records: Sequence[SourceRecord], rows: Sequence[Row | None]) -> None:
        deliveries: list[Delivery | None] = []
        try:
            while len(deliveries) < len(rows):
                try:
                    self._sender.send(rows, deliveries)
                except TaskStopped:
                    raise
                except MillstreamError as error:
                    self._refuse(records[len(deliveries)], error)
                    deliveries.append(None)
        finally:
            sent = records if len(deliveries) == len(records) else records[: len(deliveries)]
            with self._lock:
                self._submitted.submit(sent, deliveries)

    def batch_done(self) -> None:
        """Do nothing."""

    def pause(self) -> None:
        """Do nothing: `step` stores offsets."""

    def step(self) -> None:
        """Process acknowledgements, and store offsets when it is due; any thread may call it."""
        with self._lock:
            self._process_acknowledged()
            if self._flushing and not self._flush.is_under_way():
                self._flushing = False
                self._stored = True
            now_ms = self._setup.clock.monotonic_ms()
            if now_ms >= self._next_flush_ms:
                if self._flushing and self._flush.age_ms() > self._setup.flush_timeout_ms:
                    self._setup.metrics.commit_failed()
                self._next_flush_ms = now_ms + self._setup.flush_interval_ms
                self._flush.begin()
                self._flushing = True

    def finish(self, *, failed: bool) -> None:
        """Wait for pending records, for offset.flush.timeout.ms, and store their offsets."""
        deadline_ms = self._setup.clock.monotonic_ms() + self._setup.flush_timeout_ms
        self._wait_for_deliveries(deadline_ms)
        with self._lock:
            self._process_acknowledged()
            # The earlier flush has ended; this one is the last.
            self._flush.is_under_way()
            self._flush.begin()
        self._wait_for_deliveries(deadline_ms)
        with self._lock:
            self._stored = not self._flush.is_under_way()
        if not failed:
            self._notify_task()
            self._raise_refusal()

    def _wait_for_deliveries(self, deadline_ms: int) -> None:
        try:
            self._setup.producer.flush(max(0, deadline_ms - self._setup.clock.monotonic_ms()))
        except RequestTimeout:
            return  # the broker is unavailable: the records will be read and written again

    def _process_acknowledged(self) -> None:
        found = self._submitted.acknowledged()
        if found.written or found.dropped:
            self._setup.metrics.written(found.written, dropped=found.dropped)
            self._flush.add(found.offsets)
            self._written += found.records

    def _notify_task(self) -> None:
        with self._lock:
            written, self._written = self._written, []
            stored, self._stored = self._stored, False
        if written:
            self._setup.commit_records(written)
        if stored:
            self._setup.commit_task()

    # --- records that the broker refuses -------------------------------------------------------

    def _refused(self, record: SourceRecord, error: BaseException) -> bool:
        """Whether to continue without a record; called with the lock held."""
        handler = self._setup.handler
        if not handler.settings.tolerates_all or not isinstance(error, Exception):
            self._error = self._error or error
            return False
        handler.counts.failures += 1
        failure = RecordFailure(Stage.KAFKA_PRODUCE, WORKER_SOURCE_TASK, error, record)
        handler.report(failure)
        handler.skip(failure)
        return True

    def _refuse(self, record: SourceRecord, error: MillstreamError) -> None:
        with self._lock:
            tolerated = self._refused(record, error)
        if not tolerated:
            self._raise_refusal()

    def _raise_refusal(self) -> None:
        if self._error is not None:
            raise ConnectError(
                "Unrecoverable exception from producer send callback",
                at=f"task {self._setup.task_id}",
                hint="set errors.tolerance=all to skip records that the broker refuses",
            ) from self._error
