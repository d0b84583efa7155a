"""Boundaries: when the transactions of an exactly-once source end.

| transaction.boundary | ends                                                                |
|----------------------|---------------------------------------------------------------------|
| poll                 | after every poll that returned records                              |
| interval             | after the first poll that returns when the interval is over         |
| connector            | where the task requests it, after a record or poll                  |
"""

from enum import Enum
from typing import Protocol

from broker.clock import Clock
from connect.config.connector import SourceConfig
from connect.errors import ConnectError
from connect.records import SourceRecord


class TransactionEnd(Enum):
    """Whether and how the open transaction ends."""

    NOT_YET = "continue"
    COMMIT = "commit"
    ABORT = "abort"


class Boundary(Protocol):
    """Decides when transactions end."""

    @property
    def cuts_polls(self) -> bool:
        """Whether a transaction may end between two records of one poll."""
        ...

    def restart(self) -> None:
        """The task starts, or resumes after a pause."""
        ...

    def after_record(self, record: SourceRecord) -> TransactionEnd:
        """Called after every record."""
        ...

    def after_batch(self) -> TransactionEnd:
        """Called after every poll."""
        ...

    def at_end(self) -> TransactionEnd:
        """Called when no poll follows for now."""
        ...


class PollBoundary:
    """A transaction has the records of one poll."""

    cuts_polls = False

    def restart(self) -> None:
        """Do nothing."""

    def after_record(self, record: SourceRecord) -> TransactionEnd:
        """Never: a transaction has whole polls."""
        return TransactionEnd.NOT_YET

    def after_batch(self) -> TransactionEnd:
        """Always."""
        return TransactionEnd.COMMIT

    def at_end(self) -> TransactionEnd:
        """Commit the records of an interrupted poll."""
        return TransactionEnd.COMMIT


class IntervalBoundary(PollBoundary):
    """Transactions end after a time interval."""

    def __init__(self, clock: Clock, interval_ms: int) -> None:
        """`restart` starts the first interval."""
        self._clock = clock
        self._interval_ms = interval_ms
        self._committed_ms = clock.monotonic_ms()

    def restart(self) -> None:
        """Begin an interval: the time of a pause does not count."""
        self._committed_ms = self._clock.monotonic_ms()

    def after_batch(self) -> TransactionEnd:
        """Commit once the interval has ended."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - self._committed_ms < self._interval_ms:
            return TransactionEnd.NOT_YET
        self._committed_ms = now_ms
        return TransactionEnd.COMMIT


class ConnectorBoundary:
    """The task defines where transactions end; this is its TransactionContext, too."""

    cuts_polls = True

    def __init__(self) -> None:
        self._batch = TransactionEnd.NOT_YET
        # By identity: a task may poll equal records. The record is kept so that its id stays.
        self._records: dict[int, tuple[SourceRecord, TransactionEnd]] = {}

    def commit_transaction(self, record: SourceRecord | None = None) -> None:
        """Commit after the given record of the next batch, or after the whole next batch."""
        self._request(record, TransactionEnd.COMMIT)

    def abort_transaction(self, record: SourceRecord | None = None) -> None:
        """Abort after the given record of the next batch, or after the whole next batch."""
        self._request(record, TransactionEnd.ABORT)

    def _request(self, record: SourceRecord | None, end: TransactionEnd) -> None:
        known = self._batch if record is None else self._records.get(id(record), (record, end))[1]
        if known not in (TransactionEnd.NOT_YET, end):
            raise ConnectError("a transaction cannot be both committed and aborted")
        if record is None:
            self._batch = end
        else:
            self._records[id(record)] = (record, end)

    def restart(self) -> None:
        """Do nothing."""

    def after_record(self, record: SourceRecord) -> TransactionEnd:
        """The request of the task for this record."""
        if not self._records:
            return TransactionEnd.NOT_YET
        return self._records.pop(id(record), (record, TransactionEnd.NOT_YET))[1]

    def after_batch(self) -> TransactionEnd:
        """The request of the task for the batch."""
        end, self._batch = self._batch, TransactionEnd.NOT_YET
        return end

    def at_end(self) -> TransactionEnd:
        """Only on request: an incomplete transaction is aborted."""
        return self.after_batch()


def boundary_of(config: SourceConfig, clock: Clock, flush_interval_ms: int) -> Boundary:
    """The boundary that a connector's configuration chooses."""
    match config.transaction_boundary:
        case "interval":
            given_ms = config.transaction_interval_ms
            return IntervalBoundary(clock, flush_interval_ms if given_ms is None else given_ms)
        case "connector":
            return ConnectorBoundary()
        case _:
            return PollBoundary()
