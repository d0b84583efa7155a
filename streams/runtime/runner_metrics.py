"""Counters of one runner; its thread writes them, any thread may read them."""

from dataclasses import dataclass, field, fields

RATE_SPAN_MS = 1000  # the minimum time over which rates are computed
_RATED = {
    "records_consumed_total": "records_consumed_per_second",
    "records_processed_total": "records_processed_per_second",
    "records_produced_total": "records_produced_per_second",
}


@dataclass(slots=True)
class RunnerMetrics:
    """Counters of a runner. Times are measured per iteration of its loop, not per record."""

    polls_total: int = 0
    poll_nanoseconds_total: int = 0  # including the wait for records
    poll_nanoseconds_max: int = 0
    batches_consumed_total: int = 0
    records_consumed_total: int = 0
    records_consumed_per_second: float = 0.0
    records_processed_total: int = 0
    records_processed_per_second: float = 0.0
    process_nanoseconds_total: int = 0
    process_nanoseconds_max: int = 0  # of one iteration, which processes many records
    punctuations_total: int = 0
    punctuate_nanoseconds_total: int = 0
    punctuate_nanoseconds_max: int = 0
    commits_total: int = 0
    commit_nanoseconds_total: int = 0
    commit_nanoseconds_max: int = 0
    records_produced_total: int = 0
    records_produced_per_second: float = 0.0
    bytes_produced_total: int = 0
    restored_records_total: int = 0
    restore_remaining: int = 0
    tasks_active: int = 0
    tasks_standby: int = 0
    tasks_migrated_total: int = 0
    rebalances_total: int = 0
    _rated_at_ms: int | None = None
    _rated: dict[str, int] = field(default_factory=dict)
    _summarized: list[int] = field(default_factory=lambda: [0, 0, 0])

    def polled(self, elapsed_ns: int) -> None:
        """Count a poll of the consumer."""
        self.polls_total += 1
        self.poll_nanoseconds_total += elapsed_ns
        self.poll_nanoseconds_max = max(self.poll_nanoseconds_max, elapsed_ns)

    def processed(self, records: int, elapsed_ns: int) -> None:
        """Count an iteration over all tasks; those without records do not count."""
        if records:
            self.records_processed_total += records
            self.process_nanoseconds_total += elapsed_ns
            self.process_nanoseconds_max = max(self.process_nanoseconds_max, elapsed_ns)

    def punctuated(self, ran: int, elapsed_ns: int) -> None:
        """Count punctuators that ran."""
        self.punctuations_total += ran
        self.punctuate_nanoseconds_total += elapsed_ns
        self.punctuate_nanoseconds_max = max(self.punctuate_nanoseconds_max, elapsed_ns)

    def committed(self, elapsed_ns: int) -> None:
        """Count a commit."""
        self.commits_total += 1
        self.commit_nanoseconds_total += elapsed_ns
        self.commit_nanoseconds_max = max(self.commit_nanoseconds_max, elapsed_ns)

    def since_last_summary(self) -> list[int]:
        """The numbers of processed records, punctuations and commits since the last call."""
        totals = [self.records_processed_total, self.punctuations_total, self.commits_total]
        found = [now - before for now, before in zip(totals, self._summarized, strict=True)]
        self._summarized = totals
        return found

    def update_rates(self, now_ms: int) -> None:
        """Compute the rates since the last call, unless that was less than RATE_SPAN_MS ago."""
        since_ms = self._rated_at_ms
        if since_ms is not None:
            if now_ms - since_ms < RATE_SPAN_MS:
                return
            for total, rate in _RATED.items():
                increase = getattr(self, total) - self._rated[total]
                setattr(self, rate, increase * 1000 / (now_ms - since_ms))
        self._rated_at_ms = now_ms
        self._rated = {total: getattr(self, total) for total in _RATED}

    def items(self) -> list[tuple[str, int | float]]:
        """Names and values of all metrics."""
        return [
            (item.name, getattr(self, item.name))
            for item in fields(self)
            if not item.name.startswith("_")
        ]
