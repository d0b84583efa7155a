"""ExactlyOnce: records of a source and its offsets, in transactions.

    begin: init_transactions            fences the previous owner of this transactional id
    send ──► send ──► ... ──► boundary ──► offsets ──► commit
                                 │
                                 └── abort, if the connector requests it: records are dropped, but
                                     their offsets are stored, or they would be read again

The transactional id is `<group.id>-<connector>-<task>`. The task's thread does everything. Earlier
tasks with other numbers may have read the same part of the source: they are fenced before this one
starts (see herder/connector_supervisor.py). After it has fenced its own number, it checks that it
is still assigned: a worker that was replaced may start tasks late.
"""

import logging
from collections.abc import Callable, Mapping, Sequence

from broker.client.produced_batch import Delivery
from broker.errors import BrokerError, ErrorCode, MillstreamError
from connect.errors import ConnectError
from connect.records import SourceRecord
from connect.retries import retry_until_stopped
from connect.runtime.source.boundaries import Boundary, TransactionEnd
from connect.runtime.source.offset_flush import Offsets
from connect.runtime.source.pipeline import Row
from connect.runtime.source.sending import RecordSender
from connect.runtime.source.setup import SourceSetup
from connect.state.offsets import SourceOffset
from connect.state.task_state import TaskId
from connect.stop_signal import TaskStopped

logger = logging.getLogger(__name__)

TRANSACTION_LOST = (
    "The task was unable to finish writing records before its producer's transaction expired, or "
    "another task with the same transactional id has taken over"
)


class ExactlyOnce:
    """The SourceDelivery of a task whose producer has a transactional id."""

    def __init__(
        self,
        setup: SourceSetup,
        sender: RecordSender,
        boundary: Boundary,
        *,
        offsets_topic: str,
        confirm: Callable[[], None] = lambda: None,
    ) -> None:
        """`confirm` raises TaskStopped if other tasks have replaced this one."""
        self._setup = setup
        self._producer = setup.producer
        self._sender = sender
        self._boundary = boundary
        self._offsets_topic = offsets_topic
        self._confirm = confirm
        self._keep_records = setup.wants_commit_record
        self._open = False
        self._count = 0  # records of the open transaction
        self._dropped = 0  # records that were dropped
        self._offsets: Offsets = {}
        self._sent: list[tuple[SourceRecord, Delivery | None]] = []

    def begin(self) -> None:
        """Take over the transactional id; open transactions of an earlier task are aborted."""
        self._producer.init_transactions()
        retry_until_stopped(
            "check that the task is still assigned", self._confirm, self._setup.stop
        )
        self._boundary.restart()

    def before_poll(self) -> None:
        """Do nothing."""

    def send(self, records: Sequence[SourceRecord]) -> None:
        """Send the records in the transaction, which may end between them."""
        start = 0
        if self._boundary.cuts_polls:
            for number, record in enumerate(records, start=1):
                end = self._boundary.after_record(record)
                if end is not TransactionEnd.NOT_YET:
                    self._send(records[start:number])
                    self._end(end)
                    start = number
        self._send(records[start:] if start else records)

    def _send(self, records: Sequence[SourceRecord]) -> None:
        rows: list[Row | None] = []
        self._setup.pipeline.add_rows(records, rows)
        if any(row is not None and row[0] == self._offsets_topic for row in rows):
            raise ConnectError(
                "Source tasks may not produce to their own offsets topics when exactly-once "
                "support is enabled"
            )
        count = len(rows) - rows.count(None)
        if count:
            self._begin_transaction()
        deliveries: list[Delivery | None] = []
        try:
            self._sender.send(rows, deliveries)
        except TaskStopped:
            raise
        except MillstreamError as error:
            raise self._with_hint("Unrecoverable exception trying to send", error) from error
        finally:
            self._add_offsets(records, deliveries)

    def _add_offsets(
        self, records: Sequence[SourceRecord], deliveries: Sequence[Delivery | None]
    ) -> None:
        """Add the offsets of the records that are in the transaction, and of no others."""
        dropped = deliveries.count(None)
        self._count += len(deliveries) - dropped
        self._dropped += dropped
        last: Mapping[str, object] | None = None
        # A send that failed has no deliveries for the records after it.
        for record, delivery in zip(records, deliveries, strict=False):
            partition = record.source_partition
            if partition is not last:
                key, last = frozenset(partition.items()), partition
            self._offsets[key] = (partition, record.source_offset)
            if self._keep_records:
                self._sent.append((record, delivery))

    def batch_done(self) -> None:
        """End the transaction if the boundary is here."""
        self._end(self._boundary.after_batch())

    def pause(self) -> None:
        """End the transaction: it would time out during a pause."""
        self._end(self._boundary.at_end())
        self._boundary.restart()

    def finish(self, *, failed: bool) -> None:
        """Commit the records of a healthy task; abort those of a failed one."""
        if not failed:
            self._end(self._boundary.at_end())
        elif self._open:
            self._abort()

    def step(self) -> None:
        """Do nothing."""

    # --- transactions --------------------------------------------------------------------------

    def _begin_transaction(self) -> None:
        if not self._open:
            self._producer.begin_transaction()
            self._open = True

    def _end(self, end: TransactionEnd) -> None:
        if end is TransactionEnd.NOT_YET or not (self._open or self._offsets):
            return
        if end is TransactionEnd.ABORT and self._open:
            logger.info("task %s requested the abort of a transaction", self._setup.task_id)
            self._abort()
            self._dropped += self._count
            self._count = 0
            self._sent = [(record, None) for record, _ in self._sent]
        self._commit()

    def _abort(self) -> None:
        self._producer.abort_transaction()
        self._open = False

    def _commit(self) -> None:
        setup = self._setup
        started_ms = setup.clock.monotonic_ms()
        offsets = [SourceOffset(partition, offset) for partition, offset in self._offsets.values()]
        try:
            self._begin_transaction()
            setup.offsets.send(setup.task_id.connector, offsets, self._producer)
            self._producer.commit_transaction()
        except MillstreamError as error:
            setup.metrics.commit_failed()
            message = f"Failed to flush offsets and/or records for task {setup.task_id}"
            raise self._with_hint(message, error) from error
        self._open = False
        self._offsets = {}
        setup.metrics.committed(setup.clock.monotonic_ms() - started_ms)
        setup.metrics.transaction_committed(self._count)
        setup.metrics.written(self._count, dropped=self._dropped)
        self._count = self._dropped = 0
        sent, self._sent = self._sent, []
        setup.commit_records(sent)
        setup.commit_task()

    def _with_hint(self, message: str, error: MillstreamError) -> ConnectError:
        at = f"task {self._setup.task_id}"
        if isinstance(error, BrokerError) and error.code is ErrorCode.PRODUCER_FENCED:
            hint = (
                "increase transaction.timeout.ms of the producer, reduce "
                "transaction.boundary.interval.ms, or set transaction.boundary=poll"
            )
            return ConnectError(TRANSACTION_LOST, at=at, hint=hint)
        return ConnectError(f"{message}: {error.message}", at=at, hint=error.hint)


def transactional_id(group_id: str, task_id: TaskId) -> str:
    """The transactional id of a task's producer."""
    return f"{group_id}-{task_id.connector}-{task_id.task}"
