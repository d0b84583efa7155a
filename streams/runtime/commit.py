"""Commit: commits the output, changelogs, offsets and stores of a runner's tasks, in this order.

    1  cached results are forwarded           "begun"
    2  changelog records are created          "flushed"
    3  all records are acknowledged           "produced"
    4  offsets are committed; with exactly-once, in the transaction    ("offsets sent") "committed"
    5  stores are written to disk             "stored"

After a crash between two steps, the stores on disk are at this commit or an earlier one, never
ahead: they are restored from their changelogs from there. After a crash before the end of step 4, a
new owner starts at the last commit; with at-least-once it processes the records since then again.
Tests inject faults at the points in quotes.
"""

from collections.abc import Callable, Sequence

from broker.client.api import OffsetAndMetadata
from broker.client.record_consumer import Consumer
from broker.clock import Clock
from broker.errors import BrokerError, ConnectionFailed, ErrorCode, RequestTimeout
from broker.model import TopicPartition
from streams.errors import StreamsError, TaskMigrated
from streams.runtime.owned_task import OwnedTask
from streams.runtime.production import Production

Fault = Callable[[str], None]

FAULT_POINTS = ("begun", "flushed", "produced", "offsets sent", "committed", "stored")
MIGRATED = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STALE_MEMBER_EPOCH,
    }
)


class Commit:
    """Commits for one runner."""

    def __init__(
        self,
        consumer: Consumer,
        production: Production,
        *,
        exactly_once: bool,
        clock: Clock,
        timeout_ms: int,
        fault: Fault = lambda point: None,
    ) -> None:
        """`timeout_ms` limits retries while the broker does not respond."""
        self._consumer = consumer
        self._production = production
        self._exactly_once = exactly_once
        self._clock = clock
        self._timeout_ms = timeout_ms
        self._fault = fault

    def run(self, tasks: Sequence[OwnedTask]) -> bool:
        """Commit tasks that have uncommitted changes.

        Returns False during a rebalance: the caller retries later. Raises TaskMigrated if the tasks
        or the producer are fenced.
        """
        fault = self._fault
        fault("begun")
        for owned in tasks:
            owned.running().flush()
        fault("flushed")
        output = self._production.output
        for owned in tasks:
            for store, rows in owned.state.changes():
                if store not in owned.source_stores:
                    output.send_all(owned.changelogs[store], rows)
        ends = output.flush(self._timeout_ms)
        fault("produced")
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        for owned in tasks:
            offsets.update(owned.running().offsets())
        if not self._commit_offsets(offsets):
            return False
        fault("committed")
        for owned in tasks:
            _move_positions(owned, ends, offsets)
            owned.state.commit(owned.positions)
            owned.running().committed()
            owned.needs_commit = False
            fault("stored")
        return True

    def _commit_offsets(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> bool:
        if self._exactly_once:
            group = self._consumer.group_metadata()
            if group.generation_id < 0:
                # Not a member: an offset commit without a member id would be accepted.
                raise TaskMigrated("this runner is no longer a member of its group")
            self._production.commit(offsets, group, self._fault)
            return True
        deadline_ms = self._clock.monotonic_ms() + self._timeout_ms
        while True:
            try:
                self._consumer.commit(offsets)
            except BrokerError as error:
                if error.code in MIGRATED:
                    raise TaskMigrated(f"offsets cannot be committed: {error}") from error
                if error.code is ErrorCode.REBALANCE_IN_PROGRESS:
                    return False
                if not error.retriable:
                    raise
                self._check_deadline(deadline_ms, error)
            except (RequestTimeout, ConnectionFailed) as error:
                self._check_deadline(deadline_ms, error)
            else:
                return True

    def _check_deadline(self, deadline_ms: int, error: Exception) -> None:
        if self._clock.monotonic_ms() >= deadline_ms:
            raise StreamsError(
                f"offsets could not be committed within {self._timeout_ms} ms",
                hint='the broker does not respond; see "task_timeout_ms"',
            ) from error


def _move_positions(
    owned: OwnedTask,
    ends: dict[TopicPartition, int],
    offsets: dict[TopicPartition, OffsetAndMetadata],
) -> None:
    """Advance the positions of restores past the records written to, or read from, changelogs."""
    for tp in owned.inputs:
        if tp in offsets:
            owned.committed[tp] = offsets[tp].offset
    for store, tp in owned.changelogs.items():
        if store in owned.source_stores:
            if tp in offsets:
                owned.positions[store] = offsets[tp].offset
        elif tp in ends:
            owned.positions[store] = ends[tp]
