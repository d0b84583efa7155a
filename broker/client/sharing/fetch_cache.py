"""FetchCache: recently read batches of all partitions, up to a size limit.

The oldest are evicted first. Cached batches are used only while nothing indicates that the log has
changed: an error, a new leader, a high watermark before their end, or a lost connection invalidates
them. The owner's lock guards everything here.
"""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Callable, Hashable

from broker.client.sharing.runs import Run
from broker.protocol.messages.fetch import PartitionData

UNKNOWN = -1
RUNS_MAX = 1024  # of a partition: many small ones would make lookups slow


class CachedPartition:
    """One partition of one leader, as readers of one isolation level see it."""

    __slots__ = (
        "_starts",
        "epoch",
        "high_watermark",
        "key",
        "last_stable_offset",
        "log_start_offset",
        "node_id",
        "reads_under_way",
        "runs",
    )

    def __init__(self, key: Hashable, node_id: int, epoch: int) -> None:
        self.key = key
        self.node_id = node_id
        self.epoch = epoch
        self.high_watermark = UNKNOWN
        self.last_stable_offset = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.reads_under_way = 0
        self.runs: list[Run] = []  # by offset; they do not overlap
        self._starts: list[int] = []

    def find(self, offset: int) -> Run | None:
        """The run that contains an offset."""
        index = bisect_right(self._starts, offset) - 1
        if index < 0 or offset < self.log_start_offset:
            return None
        run = self.runs[index]
        return run if offset < run.next_offset else None

    def insert(self, run: Run, offset: int) -> Run | None:
        """Insert a run that was read from an offset, cut at the start of the next run.

        Returns the cached run; None when the next run contains all of it. No cached run may contain
        the offset or conflict with the run.
        """
        index = bisect_right(self._starts, offset)
        if index < len(self.runs) and run.next_offset > self.runs[index].start:
            before = run.before(self.runs[index].start)
            if before is None:
                # The next run contains everything from the offset on.
                self.runs[index].start = self._starts[index] = offset
                return None
            run = before
        if index and self.runs[index - 1].next_offset > run.start:
            run.start = offset
        self.runs.insert(index, run)
        self._starts.insert(index, run.start)
        return run

    def conflicts(self, run: Run, offset: int) -> bool:
        """Whether a batch of a run overlaps the start of the next cached run.

        Then they are from different logs.
        """
        index = bisect_right(self._starts, offset)
        if index == len(self.runs) or run.next_offset <= self.runs[index].start:
            return False
        limit = self.runs[index].start
        before = run.before(limit)
        return before is not None and before.next_offset > limit

    def remove(self, run: Run) -> None:
        """Drop one run."""
        index = self.runs.index(run)
        del self.runs[index], self._starts[index]

    def clear(self) -> list[Run]:
        """Drop all runs."""
        removed, self.runs, self._starts = self.runs, [], []
        return removed


class FetchCache:
    """The cached partitions."""

    def __init__(self, bytes_max: int) -> None:
        """`bytes_max` limits the cached bytes, except those that a reader is about to fetch."""
        self.bytes = 0
        self._bytes_max = bytes_max
        self._partitions: dict[Hashable, CachedPartition] = {}
        self._by_age: OrderedDict[Run, CachedPartition] = OrderedDict()

    def partition(self, key: Hashable, node_id: int, epoch: int) -> CachedPartition:
        """The cached partition of a leader; that of an earlier leader is dropped."""
        known = self._partitions.get(key)
        if known is not None:
            if known.epoch == epoch and known.node_id == node_id:
                return known
            if known.epoch > epoch:
                return CachedPartition(key, node_id, epoch)
            self.forget(known)
        made = self._partitions[key] = CachedPartition(key, node_id, epoch)
        return made

    def add(self, partition: CachedPartition, run: Run, offset: int) -> None:
        """Cache a run that was read from an offset which no cached run contains."""
        if partition.conflicts(run, offset):
            self._clear(partition)
        added = partition.insert(run, offset)
        if added is not None and self._partitions.get(partition.key) is partition:
            self._by_age[added] = partition
            self.bytes += len(added.view)
            if len(partition.runs) > RUNS_MAX:
                oldest = next(run for run in partition.runs if run is not added)
                self._drop(partition, oldest)

    def learn(self, partition: CachedPartition, data: PartitionData) -> None:
        """Store the bounds of the log, and drop runs outside of them."""
        partition.high_watermark = data.high_watermark
        partition.last_stable_offset = data.last_stable_offset
        partition.log_start_offset = data.log_start_offset
        if partition.runs and partition.runs[-1].next_offset > data.high_watermark:
            self._clear(partition)  # the leader has less than was read
        while partition.runs and partition.runs[0].next_offset <= partition.log_start_offset:
            self._drop(partition, partition.runs[0])

    def forget(self, partition: CachedPartition) -> None:
        """Drop a partition; reads under way will not be cached either."""
        self._clear(partition)
        if self._partitions.get(partition.key) is partition:
            del self._partitions[partition.key]

    def forget_where(self, applies: Callable[[CachedPartition], bool]) -> None:
        """Drop the partitions for which `applies` is true."""
        for partition in [each for each in self._partitions.values() if applies(each)]:
            self.forget(partition)

    def evict(self) -> None:
        """Drop the oldest runs above the limit, except those that a reader still needs."""
        passed: list[tuple[Run, CachedPartition]] = []
        while self.bytes > self._bytes_max and self._by_age:
            run, partition = self._by_age.popitem(last=False)
            if run.pins:
                passed.append((run, partition))
                continue
            self.bytes -= len(run.view)
            partition.remove(run)
            self.release(partition)
        for run, partition in reversed(passed):
            self._by_age[run] = partition
            self._by_age.move_to_end(run, last=False)

    def release(self, partition: CachedPartition) -> None:
        """Drop a partition that has neither cached runs nor reads under way."""
        if not partition.runs and not partition.reads_under_way:
            self.forget(partition)

    def _drop(self, partition: CachedPartition, run: Run) -> None:
        partition.remove(run)
        self._uncount(run)

    def _clear(self, partition: CachedPartition) -> None:
        for run in partition.clear():
            self._uncount(run)

    def _uncount(self, run: Run) -> None:
        if self._by_age.pop(run, None) is not None:
            self.bytes -= len(run.view)
