"""GroupReplay: restores groups and offsets from the records of __consumer_offsets."""

from collections.abc import Callable

from broker.batch.codec import Record, read_control
from broker.coordinator.consumer_group import ConsumerGroup
from broker.coordinator.group_records import (
    decode_record,
    replay_consumer_record,
    replayed_offset,
)
from broker.coordinator.internal_topics import InternalLog, ReplayedBatch
from broker.coordinator.offsets import OffsetStore
from broker.errors import MalformedMessage
from broker.model import TopicPartition
from broker.protocol.messages.group_records import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)


class GroupReplay:
    """Applies the records in order; of a classic group only the last record counts."""

    def __init__(
        self, store: OffsetStore, log: InternalLog, new_consumer: Callable[[str], ConsumerGroup]
    ) -> None:
        """Nothing is applied yet; offsets go directly into the store."""
        self.classic: dict[str, GroupMetadataValue] = {}
        self.consumer: dict[str, ConsumerGroup] = {}
        self._store = store
        self._log = log
        self._new_consumer = new_consumer
        self._latest: dict[bytes, tuple[int, Record]] = {}

    def take(self, batch: ReplayedBatch) -> None:
        """Apply one batch; an invalid record is logged and skipped."""
        header = batch.header
        if header.is_control or header.is_transactional:
            self.settle()
            for item in batch.records:
                try:
                    if header.is_control:
                        self._end_transaction(batch.partition, header.producer_id, item)
                    else:
                        self._take_record(item, header.producer_id)
                except Exception as error:  # whatever the bytes are, the start continues
                    self._skip(batch.partition, item, error)
            return
        latest = self._latest
        for item in batch.records:
            key = item.key or b""
            # Removed first, so that the order is that of the last record of each key.
            latest.pop(key, None)
            latest[key] = (batch.partition, item)

    def settle(self) -> None:
        """Apply the deferred records: of many records with one key, only the last one."""
        waiting, self._latest = self._latest, {}
        for partition, item in waiting.values():
            try:
                self._take_record(item, None)
            except Exception as error:  # whatever the bytes are, the start continues
                self._skip(partition, item, error)

    def _skip(self, partition: int, item: Record, error: Exception) -> None:
        self._log.skip(partition, item.offset, f"{error!r}, key {item.key!r:.100}")

    def _end_transaction(self, partition: int, producer_id: int, item: Record) -> None:
        commit, _ = read_control(item)
        self._store.complete(
            producer_id,
            commit=commit,
            concerns=lambda group_id: self._log.partition_for(group_id) == partition,
        )

    def _take_record(self, item: Record, producer_id: int | None) -> None:
        decoded = decode_record(item.key, item.value)
        match decoded:
            case None:
                return
            case OffsetCommitKey() as key, value:
                self._take_offset(key, value, item.offset, producer_id)
            case GroupMetadataKey() as key, GroupMetadataValue() as value:
                if value.members and value.protocol is None:
                    raise MalformedMessage("a group with members has no protocol")
                self.consumer.pop(key.group, None)
                self.classic[key.group] = value
            case GroupMetadataKey() as key, None:
                self.classic.pop(key.group, None)
            case ConsumerGroupMetadataKey() as key, None:
                self.consumer.pop(key.group_id, None)
            case key, value:
                group_id: str = key.group_id  # type: ignore[attr-defined]
                group = self.consumer.get(group_id)
                if group is None and value is not None:
                    self.classic.pop(group_id, None)
                    group = self.consumer[group_id] = self._new_consumer(group_id)
                if group is not None:
                    replay_consumer_record(group, key, value)

    def _take_offset(
        self, key: OffsetCommitKey, value: object, log_offset: int, producer_id: int | None
    ) -> None:
        partition = TopicPartition(key.topic, key.partition)
        if not isinstance(value, OffsetCommitValue):
            self._store.delete(key.group, partition)
        elif producer_id is None:
            self._store.put(key.group, partition, replayed_offset(value, log_offset))
        else:
            offset = replayed_offset(value, log_offset)
            self._store.put_pending(producer_id, key.group, partition, offset)
