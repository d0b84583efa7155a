"""Partitions: all partitions of this broker. The topic catalog adds and removes them."""

from broker.config import TopicConfig
from broker.coordinator.partition import UNKNOWN_EPOCH, Partition, Role
from broker.errors import BrokerError, ErrorCode
from broker.model import TopicPartition
from broker.storage.data_directory import DataDirectory


class Partitions:
    """Partitions by topic and number, over the logs of a data directory."""

    def __init__(self, storage: DataDirectory) -> None:
        """Empty until `lead_all`."""
        self._storage = storage
        self._partitions: dict[TopicPartition, Partition] = {}

    def lead_all(self) -> None:
        """Become leader of the partitions of all open logs."""
        for log in self._storage.logs():
            partition = self._partitions[log.topic_partition] = Partition(log, self._storage)
            partition.lead(self._storage.leader_epoch)

    def get(self, topic_partition: TopicPartition) -> Partition | None:
        """A partition, or None."""
        return self._partitions.get(topic_partition)

    def leader(self, topic_partition: TopicPartition, epoch: int = UNKNOWN_EPOCH) -> Partition:
        """A partition that this broker leads; BrokerError if it does not exist or is not led.

        `epoch` is the leader epoch that the client knows.
        """
        partition = self._partitions.get(topic_partition)
        if partition is None:
            raise BrokerError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                f'partition "{topic_partition}" does not exist',
            )
        if epoch != UNKNOWN_EPOCH or partition.role is not Role.LEADER:  # usually nothing to check
            partition.check_leads(epoch)
        return partition

    def create(
        self, topic_partition: TopicPartition, topic_id: bytes, config: TopicConfig
    ) -> Partition:
        """Create an empty partition, led by this broker."""
        log = self._storage.create(topic_partition, topic_id, config)
        partition = self._partitions[topic_partition] = Partition(log, self._storage)
        partition.lead(self._storage.leader_epoch)
        return partition

    def update_config(self, topic_partition: TopicPartition, config: TopicConfig) -> None:
        """Apply changed settings of the topic immediately."""
        self._partitions[topic_partition].update_config(config)

    def delete(self, topic_partition: TopicPartition) -> None:
        """Remove a partition and its log."""
        del self._partitions[topic_partition]
        self._storage.delete(topic_partition)
