"""Mutations of logs and stores on the disk; see mutation.py."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any
from unittest.mock import patch

from broker.storage import recovery, retention
from broker.storage.flusher import Flusher
from broker.storage.index import OffsetIndex
from broker.storage.partition_log import PartitionLog
from broker.storage.segment import SWAP, Segment
from streams.runtime.owned_task import OwnedTask, Phase
from streams.runtime.runner_loop import RunnerLoop
from streams.runtime.runner_tasks import RunnerTasks
from tests.millstream.simulation.mutation import mutation


@mutation("the offset index points behind the record", needs=("producer", "reader"), found_in=1)
def index_behind() -> Iterator[None]:
    def position_before(index: OffsetIndex, offset: int) -> int:
        found = bisect_right(index.offsets, offset)
        return index.positions[min(found, len(index.positions) - 1)] if index.positions else 0

    with patch.object(OffsetIndex, "position_before", position_before):
        yield


@mutation("retention counts from the first record of a segment", "retention by time", found_in=20)
def early_retention() -> Iterator[None]:
    def first_timestamp(segment: Segment) -> int:
        return segment.first_timestamp

    with patch.object(retention, "largest_timestamp", first_timestamp):
        yield


@mutation("retention counts from the start of the broker", "retention by time", found_in=5)
def wrong_clock() -> Iterator[None]:
    real = retention._too_old

    def too_old(log: PartitionLog, now_ms: int) -> Any:
        return real(log, log.context.clock.monotonic_ms())

    with patch.object(retention, "_too_old", too_old):
        yield


@mutation("an fsync that failed is repeated", needs=("producer", "failing fsync"), found_in=7)
def repeated_fsync() -> Iterator[None]:
    def finish(flusher: Any, ticket: Any, error: OSError | None) -> None:
        real(flusher, ticket, None if error is None else flusher._sync(ticket))

    real = Flusher._finish
    with patch.object(Flusher, "_finish", finish):
        yield


@mutation("a stop does not wait for the disk", "power loss after a stop", found_in=5)
def hasty_stop() -> Iterator[None]:
    def flush_all(flusher: Flusher, logs: Iterable[PartitionLog]) -> None:
        for log in logs:
            ticket = log.flushing.begin()
            if ticket is not None:
                log.flushing.finish(ticket)

    with patch.object(Flusher, "flush_all", flush_all):
        yield


@mutation("a compaction that a crash cut off is dropped", needs="end in a swap", found_in=166)
def dropped_swaps() -> Iterator[None]:
    with patch.object(recovery, "LEFTOVERS", (*recovery.LEFTOVERS, SWAP)):
        yield


@mutation(
    "streams: a standby takes over before it has caught up",
    needs=("application", "application 1", "partition", "stop"),
    found_in=19,
)
def early_takeover() -> Iterator[None]:
    def take_over(tasks: Any, owned: OwnedTask) -> None:
        tasks._restorer.remove(owned)
        owned.phase = Phase.RESTORED

    with patch.object(RunnerTasks, "_activate_standby", take_over):
        yield


@mutation("streams: repartition records go before they are read", "application", found_in=5)
def early_purge() -> Iterator[None]:
    real = RunnerLoop._purge_when_due

    def purge(loop: Any) -> None:
        for owned in loop._tasks.running():
            owned.committed |= loop._consumer.end_offsets(list(owned.committed))
        real(loop)

    with patch.object(RunnerLoop, "_purge_when_due", purge):
        yield
