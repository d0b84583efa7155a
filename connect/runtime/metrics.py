"""Metrics of tasks, by the names that Kafka Connect gives them.

Tasks add to plain numbers, once per batch; averages, rates and ratios are computed on request.
`values` has Kafka's names, "source-record-poll-total" for example.
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
        """By Kafka's names."""
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
        """Enter a state."""
        now_ms = self._clock.monotonic_ms()
        spent_ms = self._spent_ms.get(self.status, 0)
        self._spent_ms[self.status] = spent_ms + now_ms - self._since_ms
        self._since_ms = now_ms
        self.status = status

    def ratio(self, status: str) -> float:
        """The fraction of time spent in a state."""
        current_ms = self._clock.monotonic_ms() - self._since_ms
        spent_ms = self._spent_ms.get(status, 0) + (current_ms if status == self.status else 0)
        total_ms = sum(self._spent_ms.values()) + current_ms
        return spent_ms / total_ms if total_ms else float(status == self.status)


class TaskMetrics:
    """The metrics of both sources and sinks; written by the task's thread."""

    def __init__(self, clock: Clock) -> None:
        self.states = StateTimes(clock)
        self.errors = ErrorCounts()
        self._batch_size = Samples(clock)
        self._commit_ms = Samples(clock)
        self._commit_successes = Samples(clock)  # 1 or 0 each
        self._commit_failures = Samples(clock)

    def batch(self, size: int) -> None:
        """A batch was processed."""
        self._batch_size.add(size)

    def committed(self, taken_ms: int) -> None:
        """Offsets were committed."""
        self._commit_ms.add(taken_ms)
        self._commit_successes.add(1)
        self._commit_failures.add(0)

    def commit_failed(self) -> None:
        """Offsets could not be committed; they will be with the next commit."""
        self._commit_successes.add(0)
        self._commit_failures.add(1)

    def values(self) -> dict[str, float]:
        """By Kafka's names."""
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
    """Records in, records out, and those in between."""

    def __init__(self, clock: Clock, *, came: str, went: str, active: str) -> None:
        self._came_name, self._went_name, self._active_name = came, went, active
        self._came = Samples(clock)
        self._went = Samples(clock)
        self._active = Samples(clock)
        self.came_total = 0
        self.went_total = 0
        self.active = 0

    def came(self, count: int) -> None:
        self._came.add(count)
        self.came_total += count
        self.active += count
        self._active.add(self.active)

    def went(self, count: int, *, dropped: int = 0) -> None:
        self._went.add(count)
        self.went_total += count
        self.active = max(0, self.active - count - dropped)
        self._active.add(self.active)

    def forget_active(self) -> None:
        self.active = 0

    def values(self) -> dict[str, float]:
        return {
            f"{self._came_name}-total": self.came_total,
            f"{self._came_name}-rate": self._came.per_second,
            f"{self._went_name}-total": self.went_total,
            f"{self._went_name}-rate": self._went.per_second,
            self._active_name: self.active,
            f"{self._active_name}-avg": self._active.average,
            f"{self._active_name}-max": self._active.largest,
        }


class SourceMetrics(TaskMetrics):
    """What a source task has read and written."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._flow = _Flow(
            clock,
            came="source-record-poll",
            went="source-record-write",
            active="source-record-active-count",
        )
        self._poll_ms = Samples(clock)
        self._transaction_size = Samples(clock)

    def polled(self, count: int, taken_ms: int) -> None:
        """A poll returned records."""
        self._flow.came(count)
        self._poll_ms.add(taken_ms)

    def written(self, count: int, *, dropped: int = 0) -> None:
        """Records were acknowledged by the broker, or dropped on the way there."""
        self._flow.went(count, dropped=dropped)

    def transaction_committed(self, size: int) -> None:
        """A transaction of so many records was committed."""
        self._transaction_size.add(size)

    def values(self) -> dict[str, float]:
        """By Kafka's names."""
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
    """What a sink task has read and put."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock)
        self._flow = _Flow(
            clock,
            came="sink-record-read",
            went="sink-record-send",
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
        """Records were read from topics."""
        self._flow.came(count)

    def put(self, count: int, taken_ms: int) -> None:
        """Records were given to the task, which took them."""
        self._flow.went(count)
        self._put_ms.add(taken_ms)

    def offsets_caught_up(self) -> None:
        """All records that were read have been put or dropped."""
        self._flow.forget_active()

    def commit_completed(self, taken_ms: int) -> None:
        """Offsets were committed."""
        self.committed(taken_ms)
        self._completions.add(1)
        self._completed_total += 1

    def commit_skipped(self) -> None:
        """A commit completed too late."""
        self._skips.add(1)
        self._skipped_total += 1

    def values(self) -> dict[str, float]:
        """By Kafka's names."""
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
