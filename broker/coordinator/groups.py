"""GroupCoordinator: all groups and their offsets, stored in __consumer_offsets.

The groups decide (group.py, consumer_group.py). The coordinator writes their decisions to the log,
calls them at their deadlines, and restores them at the start. A response is sent only when the
state that it contains is as durable as `durability` requires.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from broker.config import MINUTE_MS, BrokerConfig
from broker.coordinator.consumer_group import (
    JOIN_EPOCH,
    ConsumerGroup,
    ConsumerGroupRules,
    Heartbeat,
    HeartbeatResult,
    UnsavedChanges,
)
from broker.coordinator.group import ClassicGroup, GroupRules, GroupState, Saved
from broker.coordinator.group_descriptions import (
    ClassicGroupDescription,
    ConsumerGroupDescription,
    Group,
    GroupSnapshot,
    ListedGroup,
    describe_classic,
    describe_consumer,
    group_state,
    group_type,
    list_groups,
)
from broker.coordinator.group_members import Join, JoinResult, Sync, SyncResult
from broker.coordinator.group_offsets import GroupOffsets, expired_offsets
from broker.coordinator.group_records import (
    classic_group_record,
    consumer_group_records,
    consumer_group_tombstones,
    offset_tombstone,
    record,
    replay_classic_group,
)
from broker.coordinator.group_replay import GroupReplay
from broker.coordinator.internal_topics import (
    CoordinatorRecord,
    InternalLog,
    Written,
)
from broker.coordinator.partition import Partition
from broker.coordinator.parts import Parts, batched
from broker.coordinator.topic_pattern import PatternMatches
from broker.coordinator.topics import Change, Steps, Topic, TopicCatalog
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.machine import Machine
from broker.model import GROUP_TOPIC, ProducerIdentity
from broker.pending import Pending
from broker.protocol.messages.group_records import (
    GroupMetadataKey,
)
from broker.timers import Timer, Timers

logger = logging.getLogger(__name__)

R = TypeVar("R")

FORGOTTEN_AT_ONCE_MAX = 500  # offsets
TICK_RETRY_MS = 1_000


class GroupCoordinator:
    """Handles all requests about groups and offsets."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        machine: Machine,
        timers: Timers,
        topics: TopicCatalog,
    ) -> None:
        """No groups; `load` restores them."""
        clock = self._clock = machine.clock
        self._machine = machine
        self._timers = timers
        self._topics = topics
        self._groups: dict[str, Group] = {}
        self._armed: dict[str, Timer] = {}
        self._retention_ms = config.offsets_retention_minutes * MINUTE_MS
        self._check_interval_ms = config.offsets_retention_check_interval_ms
        self._rules = GroupRules(
            initial_rebalance_delay_ms=config.group_initial_rebalance_delay_ms,
            size_max=config.group_max_size,
            session_timeout_min_ms=config.group_min_session_timeout_ms,
            session_timeout_max_ms=config.group_max_session_timeout_ms,
        )
        self._consumer_rules = ConsumerGroupRules(
            session_timeout_ms=config.group_consumer_session_timeout_ms,
            heartbeat_interval_ms=config.group_consumer_heartbeat_interval_ms,
            size_max=config.group_consumer_max_size,
            assignors=config.group_consumer_assignors,
        )
        self._log = InternalLog(
            GROUP_TOPIC,
            partition_count=config.offsets_topic_num_partitions,
            topics=topics,
            clock=clock,
        )
        self._matches = PatternMatches(topics.names)
        self.offsets = GroupOffsets(
            metadata_bytes_max=config.offset_metadata_max_bytes,
            clock=clock,
            log=self._log,
            topics=topics,
            find_group=self._groups.get,
            open_simple=self._open_simple,
        )
        self._store = self.offsets.store
        topics.subscribe(self._topics_changed)

    # --- classic groups -----------------------------------------------------------------------

    def join(self, group_id: str, asked: Join) -> JoinResult | Pending[JoinResult]:
        """A client joins a classic group."""
        member_id = asked.member_id
        if not group_id:
            return JoinResult(member_id, ErrorCode.INVALID_GROUP_ID)
        group = self._groups.get(group_id)
        if group is None and member_id:
            return JoinResult(member_id, ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ConsumerGroup):
            if group.members:
                return JoinResult(member_id, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
            self._append(group_id, consumer_group_tombstones(group))
            group = None
        if group is None:
            group = self._new_classic(group_id)
        answer = group.join(asked)
        # A group whose first join is refused is not created.
        if isinstance(answer, Pending) or answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            self._groups[group_id] = group
        self._arm(group)
        return answer

    def sync(self, group_id: str, asked: Sync) -> SyncResult | Pending[SyncResult]:
        """A member requests its assignment."""
        group, error = self._classic(group_id)
        if group is None:
            return SyncResult(error)
        answer = group.sync(asked)
        self._arm(group)
        return answer

    def heartbeat(
        self, group_id: str, member_id: str, instance_id: str | None, generation: int
    ) -> ErrorCode:
        """A member is alive."""
        group, error = self._classic(group_id)
        if group is not None:
            # The timer is not changed: it finds the later deadline when it fires.
            error = group.heartbeat(member_id, instance_id, generation)
        return error

    def leave(
        self, group_id: str, members: Iterable[tuple[str, str | None]]
    ) -> list[ErrorCode] | Pending[list[ErrorCode]]:
        """Members leave, each identified by its id or its instance id; returns a code for each."""
        group = self._groups.get(group_id)
        codes = [_leave(group, member_id, instance_id) for member_id, instance_id in members]
        written = None
        if group is not None:
            if isinstance(group, ConsumerGroup):
                written = self._write_consumer(group)
            self._arm(group)
        return self._log.answer_when_durable(written, codes)

    def _classic(self, group_id: str) -> tuple[ClassicGroup | None, ErrorCode]:
        if not group_id:
            return None, ErrorCode.INVALID_GROUP_ID
        group = self._groups.get(group_id)
        if isinstance(group, ClassicGroup):
            return group, ErrorCode.NONE
        return None, ErrorCode.UNKNOWN_MEMBER_ID

    def _new_classic(self, group_id: str) -> ClassicGroup:
        return ClassicGroup(
            group_id,
            rules=self._rules,
            clock=self._clock,
            new_id=self._new_id,
            save=self._save_classic,
        )

    def _save_classic(
        self, group: ClassicGroup, assignments: Mapping[str, bytes], saved: Saved
    ) -> None:
        try:
            written = self._append(group.group_id, [classic_group_record(group, assignments)])
        except (BrokerError, StorageError) as error:
            logger.error('group "%s" cannot be saved: %s', group.group_id, error)
            saved(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return

        def durable() -> None:
            saved(ErrorCode.NONE)
            self._arm(group)

        self._log.when_durable(
            written, durable, lambda _: saved(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        )

    # --- consumer groups ----------------------------------------------------------------------

    def consumer_heartbeat(
        self, group_id: str, asked: Heartbeat
    ) -> HeartbeatResult | Pending[HeartbeatResult]:
        """A member of a consumer group joins, stays or leaves; a refusal is a BrokerError."""
        group, conversion = self._consumer_group(group_id, asked)
        if asked.epoch < JOIN_EPOCH:
            result = group.leave(asked)
        else:
            asked.member_id = asked.member_id or self._new_id()
            result = group.heartbeat(asked)
        self._groups[group_id] = group
        written = self._write_consumer(group, conversion)
        armed = self._armed.get(group_id)
        due_ms = group.deadline_ms(asked.member_id)
        # Checking all members at every heartbeat would be expensive: deadlines rarely move earlier.
        if armed is None or due_ms is None or due_ms < armed.due_ms:
            self._arm(group)
        return self._log.answer_when_durable(written, result)

    def _consumer_group(
        self, group_id: str, asked: Heartbeat
    ) -> tuple[ConsumerGroup, list[CoordinatorRecord]]:
        """The group, created if necessary, and tombstones of the classic group it replaces."""
        group = self._groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group, []
        if asked.epoch != JOIN_EPOCH or (group is not None and not _is_empty(group)):
            what = "does not exist" if group is None else "is not a consumer group"
            raise BrokerError(ErrorCode.GROUP_ID_NOT_FOUND, f'group "{group_id}" {what}')
        conversion = [] if group is None else [record(GroupMetadataKey(group_id), None)]
        return self._new_consumer(group_id), conversion

    def _new_consumer(self, group_id: str) -> ConsumerGroup:
        return ConsumerGroup(
            group_id,
            rules=self._consumer_rules,
            clock=self._clock,
            find_topic=self._topics.get,
            matches=self._matches,
        )

    def match_pattern(self, text: str) -> Iterator[None]:
        """Match all topics with a pattern in steps, before a member subscribes to it."""
        return self._matches.prepare(text)

    def _write_consumer(
        self, group: ConsumerGroup, before: Iterable[CoordinatorRecord] = ()
    ) -> Written | None:
        if not group.changes:
            return None
        written = self._append(group.group_id, [*before, *consumer_group_records(group)])
        group.changes = UnsavedChanges()
        return written

    # --- administration -----------------------------------------------------------------------

    def list_groups(
        self, states: Iterable[str] = (), types: Iterable[str] = ()
    ) -> list[ListedGroup]:
        """All groups, or those of some states and types."""
        groups = [self._groups[group_id] for group_id in sorted(self._groups)]
        return list_groups(groups, states, types)

    def describe_classic(self, group_id: str) -> ClassicGroupDescription:
        """A classic group; GROUP_ID_NOT_FOUND for any other group."""
        return describe_classic(group_id, self._groups.get(group_id))

    def describe_consumer(self, group_id: str) -> ConsumerGroupDescription:
        """A consumer group; GROUP_ID_NOT_FOUND for any other group."""
        return describe_consumer(group_id, self._groups.get(group_id))

    def delete(self, group_ids: Iterable[str]) -> Parts[list[ErrorCode] | Pending[list[ErrorCode]]]:
        """Delete groups without members, with their offsets; returns a code for each.

        Groups are deleted one after the other, and many offsets of a group in steps.
        """
        codes: list[ErrorCode] = []
        written: dict[Partition, Written] = {}
        for group_id in group_ids:
            error = ErrorCode.NONE
            group = self._groups.get(group_id)
            if group is None:
                error = ErrorCode.GROUP_ID_NOT_FOUND
            elif not _is_empty(group):
                error = ErrorCode.NON_EMPTY_GROUP
            else:
                try:
                    yield from self._forget_most(group)
                    done = self._delete(group)
                    if done is not None:
                        written[done.partition] = done  # the last of each partition
                except (BrokerError, StorageError) as failure:
                    logger.error('group "%s" cannot be deleted: %s', group_id, failure)
                    lives = getattr(failure, "code", None) is ErrorCode.NON_EMPTY_GROUP
                    error = (
                        ErrorCode.NON_EMPTY_GROUP if lives else ErrorCode.COORDINATOR_NOT_AVAILABLE
                    )
            codes.append(error)
            yield
        return self._answer_when_all_durable(list(written.values()), codes)

    def _forget_most(self, group: Group) -> Parts[None]:
        """Delete most offsets of a deleted group in steps; it may be used again meanwhile."""
        offsets = self._store.partitions(group.group_id)
        while len(offsets) > FORGOTTEN_AT_ONCE_MAX:
            self.offsets.forget(group.group_id, list(offsets)[:FORGOTTEN_AT_ONCE_MAX])
            yield
            if self._groups.get(group.group_id) is not group or not _is_empty(group):
                raise BrokerError(ErrorCode.NON_EMPTY_GROUP)
            offsets = self._store.partitions(group.group_id)

    def _answer_when_all_durable(self, written: list[Written], answer: R) -> R | Pending[R]:
        """The groups are in several partitions: wait for all of them."""
        pending: Pending[R] = Pending()
        remaining = len(written) + 1

        def count() -> None:
            nonlocal remaining
            remaining -= 1
            if not remaining:
                pending.complete(answer)

        for done in written:
            self._log.when_durable(done, count)
        count()
        return answer if pending.done else pending

    def _delete(self, group: Group) -> Written | None:
        group_id = group.group_id
        partitions = sorted(self._store.partitions(group_id))
        records = [offset_tombstone(group_id, partition) for partition in partitions]
        if isinstance(group, ConsumerGroup):
            records += consumer_group_tombstones(group)
        else:
            records.append(record(GroupMetadataKey(group_id), None))
        written = self._log.append_all(self._log.partition_for(group_id), records)
        for partition in partitions:
            self._store.delete(group_id, partition)
        del self._groups[group_id]
        if isinstance(group, ClassicGroup):
            group.die()
        armed = self._armed.pop(group_id, None)
        if armed is not None:
            armed.cancel()
        return written

    def snapshot(self) -> list[GroupSnapshot]:
        """Every group for metrics: state, size, committed offsets."""
        return [
            GroupSnapshot(
                group_id,
                group_type(group),
                group_state(group),
                len(group.members),
                {
                    partition: offset.offset
                    for partition, offset in self._store.committed(group_id).items()
                },
            )
            for group_id, group in self._groups.items()
        ]

    # --- offsets ------------------------------------------------------------------------------

    def complete_transaction(self, producer: ProducerIdentity, commit: bool) -> None:
        """The transaction's marker is in __consumer_offsets: apply its offsets or drop them."""
        self._store.complete(producer.producer_id, commit=commit, concerns=lambda _: True)

    def _open_simple(self, group_id: str) -> None:
        """Create a group that only has offsets, unless it exists."""
        if group_id not in self._groups:
            self._groups[group_id] = self._new_classic(group_id)

    def _topics_changed(self, change: Change, topics: Sequence[Topic]) -> Steps:
        if change == "altered":
            return
        yield from self._matches.prepare_all()
        for group in list(self._groups.values()):
            if isinstance(group, ConsumerGroup):
                group.topics_changed()
                yield
        if change == "deleted":
            yield from self._forget_topics({topic.name for topic in topics})

    def _forget_topics(self, names: set[str]) -> Steps:
        for group_id in self._store.groups():
            partitions = self._store.partitions(group_id)
            gone = [partition for partition in partitions if partition.topic in names]
            try:
                for some in batched(gone, FORGOTTEN_AT_ONCE_MAX):
                    self.offsets.forget(group_id, some)
                    yield
            except (BrokerError, StorageError) as error:
                logger.error(
                    'cannot delete the offsets of deleted topics in "%s": %s', group_id, error
                )
            yield

    # --- time ---------------------------------------------------------------------------------

    def _arm(self, group: Group) -> None:
        """Schedule the group's next deadline."""
        group_id = group.group_id
        if self._groups.get(group_id) is not group:
            return
        now_ms = self._clock.monotonic_ms()
        due_ms = group.next_deadline_ms()
        if due_ms is not None and due_ms <= now_ms:
            self._advance(group)
            due_ms = group.next_deadline_ms()
        armed = self._armed.get(group_id)
        if armed is not None:
            # A timer that fires too early finds the later deadline and is scheduled again.
            if due_ms is not None and armed.due_ms <= due_ms:
                return
            armed.cancel()
            del self._armed[group_id]
        if due_ms is not None:
            delay_ms = max(due_ms - now_ms, 0)
            self._armed[group_id] = self._timers.schedule(delay_ms, partial(self._tick, group_id))
        elif isinstance(group, ClassicGroup) and self._was_never_joined(group):
            del self._groups[group_id]

    def _was_never_joined(self, group: ClassicGroup) -> bool:
        """Whether a client requested a member id and never joined: nothing is on disk."""
        empty = group.state is GroupState.EMPTY and group.generation == 0
        return empty and not self._store.has_offsets(group.group_id)

    def _tick(self, group_id: str) -> None:
        """Handle a deadline of the group that now has this id, which may be another one."""
        self._armed.pop(group_id, None)
        group = self._groups.get(group_id)
        if group is None:
            return
        try:
            self._arm(group)
        except Exception:
            logger.exception('group "%s" failed at its deadline and is retried', group_id)
            again = self._timers.schedule(TICK_RETRY_MS, partial(self._tick, group_id))
            self._armed.setdefault(group_id, again)

    def _advance(self, group: Group) -> None:
        group.tick()
        if isinstance(group, ConsumerGroup):
            try:
                self._write_consumer(group)
            except (BrokerError, StorageError) as error:
                logger.error('group "%s" cannot be saved: %s', group.group_id, error)

    def expire_offsets(self) -> Parts[None]:
        """Delete offsets past their retention, and groups that have nothing left."""
        now_ms = self._clock.now_ms()
        for group in list(self._groups.values()):
            yield
            if self._groups.get(group.group_id) is not group:
                continue
            try:
                gone = expired_offsets(
                    self._store, group, now_ms=now_ms, retention_ms=self._retention_ms
                )
                for some in batched(gone, FORGOTTEN_AT_ONCE_MAX):
                    self.offsets.forget(group.group_id, some)
                    yield
                if _is_empty(group) and not self._store.has_offsets(group.group_id):
                    self._delete(group)
            except (BrokerError, StorageError) as error:
                logger.error('offsets of "%s" cannot be expired: %s', group.group_id, error)
            except Exception:  # the offsets of the other groups are still expired
                logger.exception('offsets of "%s" cannot be expired', group.group_id)

    # --- start --------------------------------------------------------------------------------

    def load(self) -> None:
        """Restore all groups and offsets, and start the expiration of offsets."""
        replay = GroupReplay(self._store, self._log, self._new_consumer)
        for batch in self._log.replay():
            replay.take(batch)
        replay.settle()
        self._log.report_skipped()
        for group_id, value in replay.classic.items():
            classic = self._new_classic(group_id)
            if _restores(group_id, partial(replay_classic_group, classic, value)):
                self._groups[group_id] = classic
        for group_id, consumer in replay.consumer.items():
            if _restores(group_id, consumer.restored):
                self._groups[group_id] = consumer
        for group_id in self._store.groups():
            self._open_simple(group_id)
        for group in list(self._groups.values()):
            self._arm(group)
        self._timers.repeat(
            self._check_interval_ms, lambda: self._timers.run_in_parts(self.expire_offsets())
        )

    def _new_id(self) -> str:
        return str(self._machine.uuid())

    def _append(self, group_id: str, records: Iterable[CoordinatorRecord]) -> Written:
        return self._log.append(self._log.partition_for(group_id), records)


def _restores(group_id: str, restore: Callable[[], None]) -> bool:
    """Restore a group; one with invalid records is skipped."""
    try:
        restore()
    except Exception:
        logger.exception('group "%s" cannot be restored: its members must join again', group_id)
        return False
    return True


def _leave(group: Group | None, member_id: str, instance_id: str | None) -> ErrorCode:
    if isinstance(group, ClassicGroup):
        return group.leave(member_id, instance_id)
    member = None if group is None else group.find(member_id, instance_id)
    if group is None or member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    group.remove(member)
    return ErrorCode.NONE


def _is_empty(group: Group) -> bool:
    if isinstance(group, ClassicGroup):
        return group.state is GroupState.EMPTY
    return not group.members
