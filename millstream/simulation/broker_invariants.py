"""BrokerInvariants: invariants inside the broker, checked once per virtual second."""

import gc
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker.broker import Broker
from broker.model import TopicPartition
from broker.storage.partition_log import PartitionLog
from millstream.simulation.actors.broker import BrokerActor
from millstream.simulation.observations import Violation
from millstream.simulation.scenario import FAILING_FSYNCS, SLOW_DISK_FAULTS
from millstream.simulation.start_checks import OPEN_STATES

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import SimulatedPlatform

BAD_DISKS = ("full disk", "no descriptors", *SLOW_DISK_FAULTS, *FAILING_FSYNCS)
MARGIN_MS = 30_000
TIMEOUT_MS_MAX = 60_000  # of all transactions in a simulation
SUBSCRIBERS_MAX = 50  # waiting fetches of one partition
TIMERS_MAX = 500
# Consecutive aborted transactions of one epoch without records in a partition:
# there is nothing between their markers.
EMPTY_MAX = 6
FILES_MAX = 30  # open files other than those of logs

Key = tuple[object, ...]


class BrokerInvariants:
    """Checks the running broker, and measures how long its transactions are open."""

    def __init__(self, platform: "SimulatedPlatform") -> None:
        self._platform = platform
        self._life = 0
        self._since_ms: dict[Key, int] = {}

    def check(self) -> None:
        """Check the broker, if it runs; time with a disk fault does not count."""
        actor = self._platform.actors["broker"]
        assert isinstance(actor, BrokerActor)
        broker = actor.running
        if broker is None or actor.starts != self._life or self._has_bad_disk():
            self._life = actor.starts
            self._since_ms = {}
            return
        now_ms = self._platform.simulation.scheduler.now_us // 1_000
        since_ms: dict[Key, int] = {}
        for key, limit_ms in _open_transactions(broker):
            since_ms[key] = self._since_ms.get(key, now_ms)
            if now_ms - since_ms[key] > limit_ms + MARGIN_MS:
                details = f"{key} is open for {now_ms - since_ms[key]} ms"
                self._platform.report(Violation("transactions end in time", details))
        self._since_ms = since_ms

    def _has_bad_disk(self) -> bool:
        """Whether markers may be delayed: during a disk fault, and shortly after."""
        now_ms = self._platform.simulation.scheduler.now_us // 1_000
        return any(
            fault.at_ms <= now_ms <= fault.end_ms + MARGIN_MS
            for fault in self._platform.scenario.faults
            if fault.kind in BAD_DISKS
        )

    def check_leftovers(self) -> None:
        """Check that no resources are held for clients after all have left."""
        actor = self._platform.actors["broker"]
        assert isinstance(actor, BrokerActor)
        broker = actor.running
        if broker is not None:
            gc.collect()  # files are closed with their last reference
            open_files = self._platform.disk_of(actor).open_count()
            for resource, count, count_max in _leftovers(broker, open_files):
                if count > count_max:
                    details = f"{resource}: {count}, which is more than {count_max}"
                    self._platform.report(Violation("nothing grows without bound", details))
            self._check_markers(broker)

    def _check_markers(self, broker: Broker) -> None:
        """Check that a transaction has one marker in a partition, and one more per restart.

        Compaction removes the records between markers, so compacted logs cannot be checked.
        """
        count_max = EMPTY_MAX + self._platform.actors["broker"].starts
        for log in broker.state.storage.logs():
            count = 0 if log.config.compacts else _most_markers(log)
            if count > count_max:
                details = f"{log.topic_partition} has {count} markers of one transaction"
                self._platform.report(Violation("nothing grows without bound", details))


def _open_transactions(broker: Broker) -> Iterator[tuple[Key, int]]:
    """Open transactions, and partitions with one, with their time limits."""
    state = broker.state
    for each in state.transactions.transactions():
        if each.state in OPEN_STATES:
            key = (each.transactional_id, each.producer_id, each.start_ms)
            yield key, each.timeout_ms
    for log in state.storage.logs():
        if log.last_stable_offset < log.high_watermark:
            yield _key_of(log.topic_partition, log.last_stable_offset), TIMEOUT_MS_MAX


def _key_of(tp: TopicPartition, offset: int) -> Key:
    return (str(tp), "last stable offset", offset)


def _most_markers(log: PartitionLog) -> int:
    """The largest number of markers of a producer and epoch without records between them."""
    counts: Counter[tuple[int, int]] = Counter()
    most = 0
    for segment in log.segments:
        for _, header in segment.headers():
            key = (header.producer_id, header.producer_epoch)
            counts[key] = counts[key] + 1 if header.is_control else 0
            most = max(most, counts[key])
    return most


def _leftovers(broker: Broker, open_files: int) -> Iterator[tuple[str, int, int]]:
    storage = broker.state.storage
    logs = storage.logs()
    held = len(storage._context.open_files)  # noqa: SLF001 - not counted elsewhere
    yield "open files that no log holds", open_files - held, FILES_MAX
    yield "timers", len(broker.timers._heap), TIMERS_MAX  # noqa: SLF001
    yield "waiters for an fsync", len(storage._flusher._waiters), len(logs)  # noqa: SLF001
    for log in logs:
        name = f"fetches that wait for {log.topic_partition}"
        yield name, len(log._subscribers), SUBSCRIBERS_MAX  # noqa: SLF001
        yield f"producers of {log.topic_partition}", len(log.producers), 2_000
