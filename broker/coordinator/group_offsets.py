"""GroupOffsets: commits, finds and deletes offsets of groups, in memory and in the log."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from broker.clock import Clock
from broker.coordinator.consumer_group import ConsumerGroup
from broker.coordinator.group import ClassicGroup, GroupState
from broker.coordinator.group_descriptions import Group
from broker.coordinator.group_records import offset_record, offset_tombstone
from broker.coordinator.internal_topics import InternalLog, Written
from broker.coordinator.offsets import NO_EXPIRY, CommittedOffset, OffsetStore
from broker.coordinator.topics import TopicCatalog
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.model import ProducerIdentity, TopicPartition
from broker.pending import Pending

Codes = list[ErrorCode]


@dataclass(frozen=True, slots=True)
class CommittingMember:
    """The group that commits offsets, and its member; epoch -1 for no member."""

    group_id: str
    member_id: str
    instance_id: str | None
    epoch: int  # or the generation
    # The client distinguishes member epochs from generations.
    knows_epochs: bool = False


@dataclass(slots=True)
class NewOffset:
    """An offset to be committed; the topic is None if no topic has the given id."""

    topic: str | None
    partition: int
    offset: int
    leader_epoch: int
    metadata: str


class GroupOffsets:
    """Commits and deletes offsets: the store always matches the log."""

    def __init__(
        self,
        *,
        metadata_bytes_max: int,
        clock: Clock,
        log: InternalLog,
        topics: TopicCatalog,
        find_group: Callable[[str], Group | None],
        open_simple: Callable[[str], None],
    ) -> None:
        """`open_simple` creates a group that only has offsets, unless it exists."""
        self._metadata_bytes_max = metadata_bytes_max
        self._clock = clock
        self._log = log
        self._topics = topics
        self.store = OffsetStore()
        self._find_group = find_group
        self._open_simple = open_simple

    # --- commit -------------------------------------------------------------------------------

    def commit(
        self,
        committer: CommittingMember,
        offsets: Sequence[NewOffset],
        *,
        retention_ms: int = -1,
        producer: ProducerIdentity | None = None,
    ) -> Codes | Pending[Codes]:
        """Commit offsets, those of a producer in its transaction; returns a code for each.

        A refused partition does not affect the others.
        """
        codes, accepted = self._check(offsets, retention_ms)
        refused = self._refuse(committer, transactional=producer is not None)
        written = None
        if refused is ErrorCode.NONE:
            refused, written = self._write(committer.group_id, accepted, producer)
        if refused is not ErrorCode.NONE:
            return [refused] * len(codes)
        failed = [ErrorCode.COORDINATOR_NOT_AVAILABLE] * len(codes)
        return self._log.answer_when_durable(written, codes, failed=lambda: failed)

    def _refuse(self, committer: CommittingMember, *, transactional: bool) -> ErrorCode:
        """The reason why this member may not commit, or None."""
        group = self._find_group(committer.group_id)
        if group is None:
            if committer.epoch < 0:
                return ErrorCode.NONE
            modern = committer.knows_epochs
            return ErrorCode.GROUP_ID_NOT_FOUND if modern else ErrorCode.ILLEGAL_GENERATION
        identity = (committer.member_id, committer.instance_id, committer.epoch)
        refused = group.check_commit(*identity, transactional=transactional)
        if refused is not ErrorCode.NONE:
            return refused
        if isinstance(group, ClassicGroup):
            if group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
                group.keep_alive(committer.member_id)
        elif not transactional and group.members and not committer.knows_epochs:
            # Older versions do not distinguish the kinds of epochs.
            return ErrorCode.UNSUPPORTED_VERSION
        return ErrorCode.NONE

    def _check(
        self, offsets: Sequence[NewOffset], retention_ms: int
    ) -> tuple[Codes, dict[TopicPartition, CommittedOffset]]:
        """An error code for each offset, and the offsets to write."""
        now_ms = self._clock.now_ms()
        expiry_ms = now_ms + retention_ms if retention_ms >= 0 else NO_EXPIRY
        codes: Codes = []
        accepted: dict[TopicPartition, CommittedOffset] = {}
        for new in offsets:
            code = self._refuse_offset(new)
            codes.append(code)
            if code is ErrorCode.NONE and new.topic is not None:
                accepted[TopicPartition(new.topic, new.partition)] = CommittedOffset(
                    new.offset, new.leader_epoch, new.metadata, now_ms, expiry_ms
                )
        return codes, accepted

    def _refuse_offset(self, new: NewOffset) -> ErrorCode:
        if new.topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        topic = self._topics.get(new.topic)
        if topic is None or not 0 <= new.partition < topic.partition_count:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if len(new.metadata) > self._metadata_bytes_max:
            return ErrorCode.OFFSET_METADATA_TOO_LARGE
        return ErrorCode.NONE

    def _write(
        self,
        group_id: str,
        offsets: dict[TopicPartition, CommittedOffset],
        producer: ProducerIdentity | None,
    ) -> tuple[ErrorCode, Written | None]:
        """One batch for all partitions; the store changes only when the batch is in the log."""
        if not offsets:
            return ErrorCode.NONE, None
        records = [
            offset_record(group_id, partition, offset) for partition, offset in offsets.items()
        ]
        try:
            written = self._log.append(
                self._log.partition_for(group_id), records, producer=producer
            )
        except BrokerError as error:
            return APPEND_ERRORS.get(error.code, error.code), None
        except StorageError:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, None
        self._open_simple(group_id)
        for partition, offset in offsets.items():
            offset.log_offset = written.last_offset
            if producer is None:
                self.store.put(group_id, partition, offset)
            else:
                self.store.put_pending(producer.producer_id, group_id, partition, offset)
        return ErrorCode.NONE, written

    # --- find ---------------------------------------------------------------------------------

    def refuse_fetch(self, group_id: str, member_id: str | None, epoch: int) -> ErrorCode:
        """The reason why a member may not read offsets, or None; None and -1: no member."""
        group = self._find_group(group_id)
        if not isinstance(group, ConsumerGroup) or (member_id is None and epoch < 0):
            return ErrorCode.NONE
        return group.check_member(member_id or "", epoch)

    def find(
        self, group_id: str, partition: TopicPartition, *, stable: bool
    ) -> CommittedOffset | None:
        """The committed offset; UNSTABLE_OFFSET_COMMIT while a transaction may change it."""
        if stable and self.store.is_unstable(group_id, partition):
            raise BrokerError(ErrorCode.UNSTABLE_OFFSET_COMMIT)
        return self.store.get(group_id, partition)

    def committed_partitions(self, group_id: str) -> dict[str, list[int]]:
        """Partitions with a committed offset: their numbers by topic, in order."""
        topics: dict[str, list[int]] = {}
        for name, number in sorted(self.store.committed(group_id)):
            topics.setdefault(name, []).append(number)
        return topics

    # --- delete -------------------------------------------------------------------------------

    def delete(self, group_id: str, partitions: Sequence[TopicPartition]) -> Codes | Pending[Codes]:
        """Delete offsets of topics that no member subscribes to; a code for each partition."""
        group = self._find_group(group_id)
        if group is None:
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND)
        if isinstance(group, ClassicGroup) and (refused := group.refuse_offset_delete()):
            raise BrokerError(refused)
        known = self.store.partitions(group_id)
        codes = [self._refuse_delete(group, partition) for partition in partitions]
        gone = [
            partition
            for partition, code in zip(partitions, codes, strict=True)
            if code is ErrorCode.NONE and partition in known
        ]
        try:
            written = self.forget(group_id, gone)
        except (BrokerError, StorageError) as error:
            raise BrokerError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message) from error
        return self._log.answer_when_durable(written, codes)

    def _refuse_delete(self, group: Group, partition: TopicPartition) -> ErrorCode:
        topic = self._topics.get(partition.topic)
        if topic is None or partition.partition not in range(topic.partition_count):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if group.is_subscribed_to(partition.topic):
            return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        return ErrorCode.NONE

    def forget(self, group_id: str, partitions: Iterable[TopicPartition]) -> Written | None:
        """Delete offsets, first on disk."""
        gone = list(partitions)
        if not gone:
            return None
        records = [offset_tombstone(group_id, partition) for partition in gone]
        written = self._log.append_all(self._log.partition_for(group_id), records)
        for partition in gone:
            self.store.delete(group_id, partition)
        return written


# Error codes of an append -> the codes that clients of offsets know.
APPEND_ERRORS = {
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}


def expired_offsets(
    store: OffsetStore, group: Group, *, now_ms: int, retention_ms: int
) -> list[TopicPartition]:
    """Expired offsets: unused for too long, without a transaction or a member that reads them."""
    since_ms = _expiry_base(group)
    if since_ms is None:
        return []
    found = []
    for partition, offset in store.committed(group.group_id).items():
        if offset.expire_timestamp_ms != NO_EXPIRY:
            due_ms = offset.expire_timestamp_ms
        else:
            due_ms = since_ms(partition.topic, offset) + retention_ms
        if now_ms >= due_ms and not store.is_unstable(group.group_id, partition):
            found.append(partition)
    return found


NEVER_MS = 2**63 - 1


def _expiry_base(group: Group) -> Callable[[str, CommittedOffset], int] | None:
    """The time from which an offset ages; None if the group's offsets do not expire."""
    if isinstance(group, ClassicGroup) and group.protocol_type is not None:
        if group.state is GroupState.EMPTY:
            since_ms = group.state_since_ms
            return lambda _, offset: max(since_ms, offset.commit_timestamp_ms)
        if group.state is not GroupState.STABLE or group.subscribed_topics is None:
            return None
    return lambda topic, offset: (
        NEVER_MS if group.is_subscribed_to(topic) else offset.commit_timestamp_ms
    )
