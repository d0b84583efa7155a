"""Metrics of tasks, with the names of Kafka Connect.

Tasks add to plain numbers, once per batch; averages, rates and ratios are computed on request.
`values` returns them by Kafka's names, such as "source-record-poll-total".
"""

from dataclasses import dataclass

from broker.clock import Clock
from connect.runtime.samples import Samples


@dataclass(slots=True)
class ErrorCounts:
    """The error counts of one task."""

    failures: int = 0
    errors: int = 0
    skipped: int = 0
    retries: int = 0
    logged: int = 0
    dead_letters: int = 0
    dead_letter_failures: int = 0
    last_error_ms: int = 0

    def values(self) -> dict[str, float]:
        """The metrics by Kafka's names."""
        return {
            "total-record-failures": self.failures,
            "total-record-errors": self.errors,
            "total-records-skipped": self.skipped,
            "total-retries": self.retries,
            "total-errors-logged": self.logged,
            "deadletterqueue-produce-requests": self.dead_letters,
            "deadletterqueue-produce-failures": self.dead_letter_failures,
            "last-error-timestamp": self.last_error_ms,
        }


class StateTimes:
    """The state of a task, and the fraction of time in each state."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ms = clock.monotonic_ms()
        self._spent_ms: dict[str, int] = {}
        self.status = "unassigned"

    def enter(self, status: str) -> None:
        now_ms = self._clock.monotonic_ms()
        spent_ms = self._spent_ms.get(self.status, 0)
        self._spent_ms[self.status] = spent_ms + now_ms - self._since_ms
        self._since_ms = now_ms
        self.status = status

    def ratio(self, status: str) -> float:
        """The fraction of time in a state."""
        current_ms = self._clock.monotonic_ms() - self._since_ms
        spent_ms = self._spent_ms.get(status, 0) + (current_ms if status == self.status else 0)
        total_ms = sum(self._spent_ms.values()) + current_ms
        return spent_ms / total_ms if total_ms else float(status == self.status)


class TaskMetrics:
    """The metrics of both sources and sinks; the task's thread writes them."""

    def __init__(self, clock: Clock) -> None:
        self.states = StateTimes(clock)
        self.errors = ErrorCounts()
        self._batch_size = Samples(clock)
        self._commit_ms = Samples(clock)
        self._commit_successes = Samples(clock)  # 1 or 0 each
        self._commit_failures = Samples(clock)

    def batch(self, size: int) -> None:
        """Count a processed batch."""
        self._batch_size.add(size)

    def committed(self, taken_ms: int) -> None:
        """Count an offset commit."""
        self._commit_ms.add(taken_ms)
        self._commit_successes.add(1)
        self._commit_failures.add(0)

    def commit_failed(self) -> None:
        """Count a failed offset commit; the next one includes its offsets."""
        self._commit_successes.add(0)
        self._commit_failures.add(1)

    def values(self) -> dict[str, float]:
        """The metrics by Kafka's names."""
        return {
            "running-ratio": self.states.ratio("running"),
            "pause-ratio": self.states.ratio("paused"),
            "batch-size-avg": self._batch_size.average,
            "batch-size-max": self._batch_size.largest,
            "offset-commit-avg-time-ms": self._commit_ms.average,
            "offset-commit-max-time-ms": self._commit_ms.largest,
            "offset-commit-success-percentage": self._commit_successes.average,
            "offset-commit-failure-percentage": self._commit_failures.average,
            **self.errors.values(),
        }


class _Flow:
    """Incoming and outgoing records, and the active ones in between."""

    def __init__(self, clock: Clock, *, incoming: str, outgoing: str, active: str) -> None:
        self._incoming_name, self._outgoing_name, self._active_name = incoming, outgoing, active
        self._incoming = Samples(clock)
        self._outgoing = Samples(clock)
        self._active = Samples(clock)
        self.incoming_total = 0
        self.outgoing_total = 0
        self.active = 0

    def add_incoming(self, count: int) -> None:
        self._incoming.add(count)
        self.incoming_total += count
        self.active += count
        self._active.add(self.active)

    def add_outgoing(self, count: int, *, dropped: int = 0) -> None:
        self._outgoing.add(count)
        self.outgoing_total += count
        self.active = max(0, self.active - count - dropped)
        self._active.add(self.active)

    def forget_active(self) -> None:
        self.active = 0

    def values(self) -> dict[str, float]:
        return {
            f"{self._incoming_name}-total": self.incoming_total,
            f"{self._incoming_name}-rate": self._incoming.per_second,
            f"{self._outgoing_name}-total": self.outgoing_total,
            f"{self._outgoing_name}-rate": self._outgoing.per_second,
            self._active_name: self.active,
            f"{self._active_name}-avg": self._active.average,
            f"{self._active_name}-max": self._active.largest,
        }


class SourceMetrics(TaskMetrics):
    """The metrics of a source task."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._flow = _Flow(
            clock,
            incoming="source-record-poll",
            outgoing="source-record-write",
            active="source-record-active-count",
        )
        self._poll_ms = Samples(clock)
        self._transaction_size = Samples(clock)

    def polled(self, count: int, taken_ms: int) -> None:
        """Count the records of a poll."""
        self._flow.add_incoming(count)
        self._poll_ms.add(taken_ms)

    def written(self, count: int, *, dropped: int = 0) -> None:
        """Count records that the broker has acknowledged, and those that were dropped."""
        self._flow.add_outgoing(count, dropped=dropped)

    def transaction_committed(self, size: int) -> None:
        """Count a committed transaction of `size` records."""
        self._transaction_size.add(size)

    def values(self) -> dict[str, float]:
        """The metrics by Kafka's names."""
        return {
            **super().values(),
            **self._flow.values(),
            "poll-batch-avg-time-ms": self._poll_ms.average,
            "poll-batch-max-time-ms": self._poll_ms.largest,
            "transaction-size-avg": self._transaction_size.average,
            "transaction-size-min": self._transaction_size.smallest,
            "transaction-size-max": self._transaction_size.largest,
        }


class SinkMetrics(TaskMetrics):
    """The metrics of a sink task."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._flow = _Flow(
            clock,
            incoming="sink-record-read",
            outgoing="sink-record-send",
            active="sink-record-active-count",
        )
        self._put_ms = Samples(clock)
        self._completions = Samples(clock)
        self._skips = Samples(clock)
        self._completed_total = 0
        self._skipped_total = 0
        self.partition_count = 0
        self.commit_number = 0
        self.lag_max = 0

    def read(self, count: int) -> None:
        """Count records that were read from topics."""
        self._flow.add_incoming(count)

    def put(self, count: int, taken_ms: int) -> None:
        """Count records that were put to the task."""
        self._flow.add_outgoing(count)
        self._put_ms.add(taken_ms)

    def offsets_caught_up(self) -> None:
        """All records that were read have been put or dropped."""
        self._flow.forget_active()

    def commit_completed(self, taken_ms: int) -> None:
        """Count an offset commit."""
        self.committed(taken_ms)
        self._completions.add(1)
        self._completed_total += 1

    def commit_skipped(self) -> None:
        """Count a commit that completed too late."""
        self._skips.add(1)
        self._skipped_total += 1

    def values(self) -> dict[str, float]:
        """The metrics by Kafka's names."""
        return {
            **super().values(),
            **self._flow.values(),
            "put-batch-avg-time-ms": self._put_ms.average,
            "put-batch-max-time-ms": self._put_ms.largest,
            "partition-count": self.partition_count,
            "offset-commit-seq-no": self.commit_number,
            "offset-commit-completion-total": self._completed_total,
            "offset-commit-completion-rate": self._completions.per_second,
            "offset-commit-skip-total": self._skipped_total,
            "offset-commit-skip-rate": self._skips.per_second,
            "sink-record-lag-max": self.lag_max,
        }
