"""Requests about committed offsets: commit, fetch, delete, and commits inside transactions."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.coordinator.consumer_group import ConsumerGroup
from broker.coordinator.group import ClassicGroup, GroupState
from broker.coordinator.group_records import record
from broker.coordinator.internal_topics import CoordinatorRecord, InternalLog, Written
from broker.coordinator.offsets import NO_EXPIRY, CommittedOffset, OffsetStore
from broker.coordinator.parts import Parts, each, finish
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.model import ProducerIdentity, TopicPartition
from broker.pending import Pending
from broker.protocol.messages import offsets as wire
from broker.protocol.messages import transactions as transaction_wire
from broker.protocol.messages.group_records import OffsetCommitKey, OffsetCommitValue

NO_OFFSET = -1
NO_LEADER_EPOCH = -1
MEMBER_EPOCH_VERSION_MIN = 9
TOPIC_ID_VERSION_MIN = 10
MANY_GROUPS_VERSION_MIN = 8
GROUP_ERROR_VERSION_MIN = 2

Group = ClassicGroup | ConsumerGroup
R = TypeVar("R")


class OffsetTopic(Protocol):
    """A topic as commits see it."""

    @property
    def name(self) -> str:
        """Its name."""
        ...

    @property
    def id(self) -> bytes:
        """Its id."""
        ...

    @property
    def partition_count(self) -> int:
        """How many partitions it has."""
        ...


class OffsetTopics(Protocol):
    """The catalog as commits see it."""

    def get(self, name: str, /) -> OffsetTopic | None:
        """The topic of this name."""
        ...

    def by_id(self, topic_id: bytes, /) -> OffsetTopic | None:
        """The topic with this id."""
        ...


class Groups(Protocol):
    """The groups as commits see them."""

    def find(self, group_id: str) -> Group | None:
        """The group of this id."""
        ...

    def open_simple(self, group_id: str) -> None:
        """Make a group that only has offsets, unless there is one."""
        ...


@dataclass(frozen=True, slots=True)
class CommittingMember:
    """Who commits, as the request says."""

    group_id: str
    member_id: str
    instance_id: str | None
    generation: int


class CommitPartition(Protocol):
    """What both kinds of commit requests say of a partition."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


@dataclass(slots=True)
class OffsetCommit:
    """Offsets on their way: what is written, and the answer for each partition asked for."""

    offsets: dict[TopicPartition, CommittedOffset]
    codes: list[list[int]]


class OffsetRequests:
    """Answers requests about offsets, over the store and the log."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        clock: Clock,
        log: InternalLog,
        topics: OffsetTopics,
        groups: Groups,
        store: OffsetStore,
    ) -> None:
        self._metadata_bytes_max = config.offset_metadata_max_bytes
        self._clock = clock
        self._log = log
        self._topics = topics
        self._groups = groups
        self._store = store

    # --- commit -------------------------------------------------------------------------------

    def commit(
        self, request: wire.OffsetCommitRequest, version: int
    ) -> wire.OffsetCommitResponse | Pending[wire.OffsetCommitResponse]:
        """Commit offsets of a group; partitions that cannot be are refused one by one."""
        who = CommittingMember(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id_or_member_epoch,
        )
        by_id = version >= TOPIC_ID_VERSION_MIN
        asked = [
            (self._topics.by_id(topic.topic_id) if by_id else self._topics.get(topic.name), topic)
            for topic in request.topics
        ]
        unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        expiry_ms = request.retention_time_ms
        commit = self._collect(
            [(topic, unknown, asked_topic.partitions) for topic, asked_topic in asked], expiry_ms
        )
        refused = self._refuse(who, version, transactional=False)
        written = None
        if refused is ErrorCode.NONE:
            refused, written = self._write(who.group_id, commit, producer=None)

        def answer(refused: int) -> wire.OffsetCommitResponse:
            return wire.OffsetCommitResponse(
                topics=[
                    wire.OffsetCommitResponseTopic(
                        topic.name,
                        topic.topic_id,
                        [
                            wire.OffsetCommitResponsePartition(
                                partition.partition_index, refused or code
                            )
                            for partition, code in zip(topic.partitions, codes, strict=True)
                        ],
                    )
                    for topic, codes in zip(request.topics, commit.codes, strict=True)
                ]
            )

        return self._answer_commit(written, refused, answer)

    def commit_transactional(
        self, request: transaction_wire.TxnOffsetCommitRequest
    ) -> (
        transaction_wire.TxnOffsetCommitResponse | Pending[transaction_wire.TxnOffsetCommitResponse]
    ):
        """Write offsets that count once the producer's transaction commits."""
        who = CommittingMember(
            request.group_id, request.member_id, request.group_instance_id, request.generation_id
        )
        unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        commit = self._collect(
            [(self._topics.get(topic.name), unknown, topic.partitions) for topic in request.topics]
        )
        producer = ProducerIdentity(request.producer_id, request.producer_epoch)
        refused = self._refuse(who, version=0, transactional=True)
        written = None
        if refused is ErrorCode.NONE:
            refused, written = self._write(who.group_id, commit, producer=producer)

        def answer(refused: int) -> transaction_wire.TxnOffsetCommitResponse:
            return transaction_wire.TxnOffsetCommitResponse(
                topics=[
                    transaction_wire.TxnOffsetCommitResponseTopic(
                        topic.name,
                        [
                            transaction_wire.TxnOffsetCommitResponsePartition(
                                partition.partition_index, refused or code
                            )
                            for partition, code in zip(topic.partitions, codes, strict=True)
                        ],
                    )
                    for topic, codes in zip(request.topics, commit.codes, strict=True)
                ]
            )

        return self._answer_commit(written, refused, answer)

    def _answer_commit(
        self, written: Written | None, refused: ErrorCode, answer: Callable[[int], R]
    ) -> R | Pending[R]:
        return self._log.answer_when_durable(
            written,
            answer(refused),
            failed=lambda: answer(ErrorCode.COORDINATOR_NOT_AVAILABLE),
        )

    def _refuse(self, who: CommittingMember, version: int, *, transactional: bool) -> ErrorCode:
        """Why this member may not commit, if so."""
        group = self._groups.find(who.group_id)
        if group is None:
            if who.generation < 0:
                return ErrorCode.NONE
            modern = version >= MEMBER_EPOCH_VERSION_MIN
            return ErrorCode.GROUP_ID_NOT_FOUND if modern else ErrorCode.ILLEGAL_GENERATION
        identity = (who.member_id, who.instance_id, who.generation)
        refused = group.check_commit(*identity, transactional=transactional)
        if refused is not ErrorCode.NONE:
            return refused
        if isinstance(group, ClassicGroup):
            if group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
                group.keep_alive(who.member_id)
        elif not transactional and group.members and version < MEMBER_EPOCH_VERSION_MIN:
            # Older versions cannot say which epoch they mean.
            return ErrorCode.UNSUPPORTED_VERSION
        return ErrorCode.NONE

    def _collect(
        self,
        topics: Iterable[tuple[OffsetTopic | None, ErrorCode, Iterable[CommitPartition]]],
        retention_ms: int = -1,
    ) -> OffsetCommit:
        """Check each partition; those that pass are to be written."""
        now_ms = self._clock.now_ms()
        expiry_ms = now_ms + retention_ms if retention_ms >= 0 else NO_EXPIRY
        commit = OffsetCommit({}, [])
        for topic, unknown, partitions in topics:
            codes: list[int] = []
            for partition in partitions:
                number, metadata = partition.partition_index, partition.committed_metadata or ""
                if topic is None:
                    codes.append(unknown)
                elif not 0 <= number < topic.partition_count:
                    codes.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                elif len(metadata) > self._metadata_bytes_max:
                    codes.append(ErrorCode.OFFSET_METADATA_TOO_LARGE)
                else:
                    codes.append(ErrorCode.NONE)
                    commit.offsets[TopicPartition(topic.name, number)] = CommittedOffset(
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        metadata,
                        now_ms,
                        expiry_ms,
                    )
            commit.codes.append(codes)
        return commit

    def _write(
        self, group_id: str, commit: OffsetCommit, *, producer: ProducerIdentity | None
    ) -> tuple[ErrorCode, Written | None]:
        """One batch for all partitions; the store changes only when it is in the log."""
        if not commit.offsets:
            return ErrorCode.NONE, None
        records = [
            offset_record(group_id, partition, offset)
            for partition, offset in commit.offsets.items()
        ]
        try:
            written = self._log.append(
                self._log.partition_for(group_id), records, producer=producer
            )
        except BrokerError as error:
            return APPEND_ERRORS.get(error.code, error.code), None
        except StorageError:
            return ErrorCode.COORDINATOR_NOT_AVAILABLE, None
        self._groups.open_simple(group_id)
        for partition, offset in commit.offsets.items():
            offset.log_offset = written.last_offset
            if producer is None:
                self._store.put(group_id, partition, offset)
            else:
                self._store.put_pending(producer.producer_id, group_id, partition, offset)
        return ErrorCode.NONE, written

    # --- fetch --------------------------------------------------------------------------------

    def fetch(self, request: wire.OffsetFetchRequest, version: int) -> wire.OffsetFetchResponse:
        """What groups have committed; -1 where they have not."""
        return finish(self.fetch_in_parts(request, version))

    def fetch_in_parts(
        self, request: wire.OffsetFetchRequest, version: int
    ) -> Parts[wire.OffsetFetchResponse]:
        """What groups have committed, bit by bit."""
        stable = request.require_stable
        if version >= MANY_GROUPS_VERSION_MIN:
            groups = []
            seen: set[str] = set()
            for asked in request.groups:
                if asked.group_id not in seen:  # one that comes again is answered once
                    seen.add(asked.group_id)
                    groups.append((yield from self._fetch_group(asked, stable, version)))
                yield
            return wire.OffsetFetchResponse(groups=groups)
        asked_topics = request.topics
        if asked_topics is None:
            asked_topics = [
                wire.OffsetFetchRequestTopic(name, numbers)
                for name, numbers in self._committed_topics(request.group_id)
            ]
        topics = []
        for topic in asked_topics:
            partitions = []
            for number in topic.partition_indexes:
                found = self._answer(request.group_id, topic.name, number, stable=stable)
                partitions.append(wire.OffsetFetchResponsePartition(*found))
                yield
            topics.append(wire.OffsetFetchResponseTopic(topic.name, partitions))
            yield
        return wire.OffsetFetchResponse(topics=topics)

    def _fetch_group(
        self, asked: wire.OffsetFetchRequestGroup, stable: bool, version: int
    ) -> Parts[wire.OffsetFetchResponseGroup]:
        refused = self._refuse_fetch(asked)
        if refused is not ErrorCode.NONE:
            return wire.OffsetFetchResponseGroup(asked.group_id, [], refused)
        group_id, topics = asked.group_id, []
        if asked.topics is None:
            for name, numbers in self._committed_topics(group_id):
                topics.append((yield from self._fetched(group_id, name, numbers, stable)))
        else:
            for topic in asked.topics:
                fetch = (
                    self._fetch_by_id if version >= TOPIC_ID_VERSION_MIN else self._fetch_by_name
                )
                topics.append((yield from fetch(group_id, topic, stable)))
                yield
        return wire.OffsetFetchResponseGroup(group_id, topics)

    def _fetch_by_name(
        self, group_id: str, asked: wire.OffsetFetchRequestTopics, stable: bool
    ) -> Parts[wire.OffsetFetchResponseTopics]:
        return self._fetched(group_id, asked.name, asked.partition_indexes, stable)

    def _refuse_fetch(self, asked: wire.OffsetFetchRequestGroup) -> ErrorCode:
        group = self._groups.find(asked.group_id)
        if not isinstance(group, ConsumerGroup):
            return ErrorCode.NONE
        if asked.member_id is None and asked.member_epoch < 0:
            return ErrorCode.NONE
        return group.check_member(asked.member_id or "", asked.member_epoch)

    def _fetch_by_id(
        self, group_id: str, asked: wire.OffsetFetchRequestTopics, stable: bool
    ) -> Parts[wire.OffsetFetchResponseTopics]:
        topic = self._topics.by_id(asked.topic_id)
        if topic is not None:
            return (yield from self._fetched(group_id, topic.name, asked.partition_indexes, stable))
        return wire.OffsetFetchResponseTopics(
            topic_id=asked.topic_id,
            partitions=[
                wire.OffsetFetchResponsePartitions(
                    number, NO_OFFSET, NO_LEADER_EPOCH, "", ErrorCode.UNKNOWN_TOPIC_ID
                )
                for number in asked.partition_indexes
            ],
        )

    def _fetched(
        self, group_id: str, name: str, numbers: Iterable[int], stable: bool
    ) -> Parts[wire.OffsetFetchResponseTopics]:
        topic = self._topics.get(name)
        answer = partial(self._answer, group_id, name, stable=stable)
        found = yield from each(
            numbers, lambda number: wire.OffsetFetchResponsePartitions(*answer(number))
        )
        return wire.OffsetFetchResponseTopics(
            name, topic.id if topic is not None else bytes(16), found
        )

    def _answer(
        self, group_id: str, topic: str, number: int, *, stable: bool
    ) -> tuple[int, int, int, str, int]:
        partition = TopicPartition(topic, number)
        if stable and self._store.is_unstable(group_id, partition):
            unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
            return number, NO_OFFSET, NO_LEADER_EPOCH, "", unstable
        found = self._store.get(group_id, partition)
        if found is None:
            return number, NO_OFFSET, NO_LEADER_EPOCH, "", ErrorCode.NONE
        return number, found.offset, found.leader_epoch, found.metadata, ErrorCode.NONE

    def _committed_topics(self, group_id: str) -> list[tuple[str, list[int]]]:
        topics: dict[str, list[int]] = {}
        for name, number in sorted(self._store.committed(group_id)):
            topics.setdefault(name, []).append(number)
        return list(topics.items())

    # --- delete -------------------------------------------------------------------------------

    def delete(
        self, request: wire.OffsetDeleteRequest
    ) -> wire.OffsetDeleteResponse | Pending[wire.OffsetDeleteResponse]:
        """Forget offsets of topics that no member subscribes to."""
        group = self._groups.find(request.group_id)
        if group is None:
            return wire.OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
        if isinstance(group, ClassicGroup) and (refused := group.refuse_offset_delete()):
            return wire.OffsetDeleteResponse(error_code=refused)
        known = self._store.partitions(request.group_id)
        gone: list[TopicPartition] = []
        topics = []
        for asked in request.topics:
            numbers = [partition.partition_index for partition in asked.partitions]
            answers = []
            for number in numbers:
                partition = TopicPartition(asked.name, number)
                code = self._refuse_delete(group, partition)
                if code is ErrorCode.NONE and partition in known:
                    gone.append(partition)
                answers.append(wire.OffsetDeleteResponsePartition(number, code))
            topics.append(wire.OffsetDeleteResponseTopic(asked.name, answers))
        try:
            written = self.forget(request.group_id, gone)
        except (BrokerError, StorageError):
            return wire.OffsetDeleteResponse(error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return self._log.answer_when_durable(written, wire.OffsetDeleteResponse(topics=topics))

    def _refuse_delete(self, group: Group, partition: TopicPartition) -> ErrorCode:
        topic = self._topics.get(partition.topic)
        if topic is None or partition.partition not in range(topic.partition_count):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if group.is_subscribed_to(partition.topic):
            return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        return ErrorCode.NONE

    def forget(self, group_id: str, partitions: Iterable[TopicPartition]) -> Written | None:
        """Delete offsets, on disk first."""
        gone = list(partitions)
        if not gone:
            return None
        records = [offset_tombstone(group_id, partition) for partition in gone]
        written = self._log.append_all(self._log.partition_for(group_id), records)
        for partition in gone:
            self._store.delete(group_id, partition)
        return written


# What an append says -> what clients of offsets know.
APPEND_ERRORS = {
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
}


def offset_record(
    group_id: str, partition: TopicPartition, offset: CommittedOffset
) -> CoordinatorRecord:
    """A committed offset as the log has it."""
    value = OffsetCommitValue(
        offset=offset.offset,
        leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        commit_timestamp=offset.commit_timestamp_ms,
        expire_timestamp=offset.expire_timestamp_ms,
    )
    return record(OffsetCommitKey(group_id, *partition), value)


def offset_tombstone(group_id: str, partition: TopicPartition) -> CoordinatorRecord:
    """The end of a committed offset."""
    return record(OffsetCommitKey(group_id, *partition), None)


def replayed_offset(value: OffsetCommitValue, log_offset: int) -> CommittedOffset:
    """A committed offset as it was read back."""
    return CommittedOffset(
        offset=value.offset,
        leader_epoch=value.leader_epoch,
        metadata=value.metadata,
        commit_timestamp_ms=value.commit_timestamp,
        expire_timestamp_ms=value.expire_timestamp,
        log_offset=log_offset,
    )


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
    """From when on an offset gets old; None when the group's offsets do not."""
    if isinstance(group, ClassicGroup) and group.protocol_type is not None:
        if group.state is GroupState.EMPTY:
            since_ms = group.state_since_ms
            return lambda _, offset: max(since_ms, offset.commit_timestamp_ms)
        if group.state is not GroupState.STABLE or group.subscribed_topics is None:
            return None
    return lambda topic, offset: (
        NEVER_MS if group.is_subscribed_to(topic) else offset.commit_timestamp_ms
    )
