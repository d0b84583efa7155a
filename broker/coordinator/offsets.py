"""OffsetStore: committed offsets of groups, and pending ones of transactions. In memory."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from broker.model import TopicPartition

NO_EXPIRY = -1


@dataclass(slots=True)
class CommittedOffset:
    """One committed offset."""

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    expire_timestamp_ms: int = NO_EXPIRY
    log_offset: int = -1  # its offset in __consumer_offsets: the larger one is newer


Offsets = dict[TopicPartition, CommittedOffset]


class OffsetStore:
    """Committed offsets by group and partition; pending ones also by producer."""

    def __init__(self) -> None:
        self._committed: dict[str, Offsets] = {}
        self._pending: dict[int, dict[str, Offsets]] = {}
        self._unstable: dict[str, Counter[TopicPartition]] = {}

    def groups(self) -> list[str]:
        """The groups with offsets, including pending ones."""
        return sorted(self._committed.keys() | self._unstable.keys())

    def get(self, group_id: str, partition: TopicPartition) -> CommittedOffset | None:
        """The committed offset of a group for a partition."""
        return self._committed.get(group_id, {}).get(partition)

    def committed(self, group_id: str) -> Offsets:
        """All committed offsets of a group."""
        return self._committed.get(group_id, {})

    def __iter__(self) -> Iterator[tuple[str, TopicPartition, CommittedOffset]]:
        """All committed offsets."""
        for group_id, offsets in self._committed.items():
            for partition, offset in offsets.items():
                yield group_id, partition, offset

    def has_offsets(self, group_id: str) -> bool:
        """Whether the group has offsets, including pending ones."""
        return group_id in self._committed or group_id in self._unstable

    def is_unstable(self, group_id: str, partition: TopicPartition) -> bool:
        """Whether an open transaction has an offset for the partition."""
        counts = self._unstable.get(group_id)
        return counts is not None and counts[partition] > 0

    def put(self, group_id: str, partition: TopicPartition, offset: CommittedOffset) -> None:
        """Commit an offset."""
        self._committed.setdefault(group_id, {})[partition] = offset

    def partitions(self, group_id: str) -> set[TopicPartition]:
        """The partitions with offsets of the group, including pending ones."""
        return self.committed(group_id).keys() | self._unstable.get(group_id, Counter()).keys()

    def delete(self, group_id: str, partition: TopicPartition) -> None:
        """Delete the committed offset of a partition, and pending ones."""
        offsets = self._committed.get(group_id, {})
        offsets.pop(partition, None)
        if not offsets:
            self._committed.pop(group_id, None)
        if not self.is_unstable(group_id, partition):
            return
        for producer_id, groups in list(self._pending.items()):
            pending = groups.get(group_id, {})
            if pending.pop(partition, None) is not None:
                self._settle(group_id, partition)
                if not pending:
                    del groups[group_id]
                if not groups:
                    del self._pending[producer_id]

    def put_pending(
        self, producer_id: int, group_id: str, partition: TopicPartition, offset: CommittedOffset
    ) -> None:
        """Add an offset that is committed with the producer's transaction."""
        offsets = self._pending.setdefault(producer_id, {}).setdefault(group_id, {})
        if partition not in offsets:
            self._unstable.setdefault(group_id, Counter())[partition] += 1
        offsets[partition] = offset

    def complete(
        self, producer_id: int, *, commit: bool, concerns: Callable[[str], bool]
    ) -> list[str]:
        """Apply or drop a transaction's offsets for its groups; returns the groups."""
        groups = self._pending.get(producer_id, {})
        done = [group_id for group_id in groups if concerns(group_id)]
        for group_id in done:
            for partition, offset in groups.pop(group_id).items():
                self._settle(group_id, partition)
                current = self.get(group_id, partition)
                # A plain commit after this one and before the marker takes precedence.
                if commit and (current is None or current.log_offset < offset.log_offset):
                    self.put(group_id, partition, offset)
        if not groups:
            self._pending.pop(producer_id, None)
        return done

    def _settle(self, group_id: str, partition: TopicPartition) -> None:
        counts = self._unstable[group_id]
        counts[partition] -= 1
        if not counts[partition]:
            del counts[partition]
        if not counts:
            del self._unstable[group_id]
