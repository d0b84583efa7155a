"""Admin: manages a cluster over any transport; each method waits for its response."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Self

from broker.client.administration import brokers, configs, groups, topics, transactions
from broker.client.administration.values import (
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    CreatedTopic,
    GroupDescription,
    GroupListing,
    LogDir,
    NewTopic,
    ProducerDescription,
    Results,
    TopicListing,
    TransactionDescription,
    TransactionListing,
)
from broker.client.api import FoundOffset, OffsetAndMetadata
from broker.client.cluster import Cluster
from broker.client.metadata import TopicInfo
from broker.errors import BrokerError
from broker.model import LATEST_TIMESTAMP, TopicPartition

READ_UNCOMMITTED = 0
READ_COMMITTED = 1


class Admin:
    """Manages topics, settings, groups and transactions. Any thread may call any method.

    With several items, each has a value or an error in the Results.
    """

    def __init__(self, cluster: Cluster) -> None:
        """The cluster is closed with the admin."""
        self._cluster = cluster

    def _limit(self, timeout_ms: int | None) -> int:
        return self._cluster.config.default_api_timeout_ms if timeout_ms is None else timeout_ms

    # --- topics -------------------------------------------------------------------------------

    def create_topics(
        self,
        new: Iterable[NewTopic],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[str, CreatedTopic]:
        """Create topics, or only validate the requests."""
        return topics.create_topics(
            self._cluster, new, validate_only=validate_only, timeout_ms=self._limit(timeout_ms)
        )

    def delete_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Delete topics with all their records."""
        return topics.delete_topics(self._cluster, names, timeout_ms=self._limit(timeout_ms))

    def list_topics(
        self, *, include_internal: bool = False, timeout_ms: int | None = None
    ) -> dict[str, TopicListing]:
        """All topics, by name."""
        return topics.list_topics(
            self._cluster, include_internal=include_internal, timeout_ms=self._limit(timeout_ms)
        )

    def describe_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TopicInfo]:
        """Partitions, leaders and replicas of topics."""
        return topics.describe_topics(self._cluster, names, timeout_ms=self._limit(timeout_ms))

    def create_partitions(
        self,
        totals: Mapping[str, int],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[str, None]:
        """Increase the partition count of topics to these totals."""
        return topics.create_partitions(
            self._cluster, totals, validate_only=validate_only, timeout_ms=self._limit(timeout_ms)
        )

    def delete_records(
        self, before: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, int]:
        """Delete the records before offsets (-1: all); the values are the new start offsets."""
        return topics.delete_records(self._cluster, before, timeout_ms=self._limit(timeout_ms))

    def list_offsets(
        self,
        timestamps: Mapping[TopicPartition, int],
        *,
        committed: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, FoundOffset]:
        """Offsets by time: -2 earliest, -1 latest, -3 of the record with the latest timestamp."""
        return topics.list_offsets(
            self._cluster,
            timestamps,
            isolation=READ_COMMITTED if committed else READ_UNCOMMITTED,
            timeout_ms=self._limit(timeout_ms),
        )

    # --- settings -----------------------------------------------------------------------------

    def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        names: Sequence[str] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        """Settings of topics, brokers or groups: all, or only the named ones."""
        return configs.describe_configs(
            self._cluster, resources, names, timeout_ms=self._limit(timeout_ms)
        )

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Iterable[ConfigChange]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Results[ConfigResource, None]:
        """Change single settings; the others stay unchanged."""
        return configs.alter_configs(
            self._cluster, changes, validate_only=validate_only, timeout_ms=self._limit(timeout_ms)
        )

    # --- the cluster --------------------------------------------------------------------------

    def describe_cluster(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        return brokers.describe_cluster(self._cluster, timeout_ms=self._limit(timeout_ms))

    def describe_log_dirs(
        self, broker_ids: Iterable[int] | None = None, *, timeout_ms: int | None = None
    ) -> Results[int, tuple[LogDir, ...]]:
        """The data directories of brokers, by default of all, and their partitions."""
        return brokers.describe_log_dirs(
            self._cluster, broker_ids, timeout_ms=self._limit(timeout_ms)
        )

    # --- groups -------------------------------------------------------------------------------

    def list_groups(
        self,
        *,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout_ms: int | None = None,
    ) -> list[GroupListing]:
        """All groups, or those of some states ("Stable") and types ("classic", "consumer")."""
        return groups.list_groups(
            self._cluster, states=states, types=types, timeout_ms=self._limit(timeout_ms)
        )

    def describe_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, GroupDescription]:
        """Groups with their members and assignments."""
        return groups.describe_groups(self._cluster, group_ids, timeout_ms=self._limit(timeout_ms))

    def delete_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Delete groups without members and their offsets."""
        return groups.delete_groups(self._cluster, group_ids, timeout_ms=self._limit(timeout_ms))

    def remove_group_members(
        self, group_id: str, member_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, None]:
        """Remove members from a classic group, even if they are running."""
        return groups.remove_group_members(
            self._cluster, group_id, member_ids, timeout_ms=self._limit(timeout_ms)
        )

    def list_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, OffsetAndMetadata]:
        """The committed offsets of a group."""
        return groups.list_group_offsets(
            self._cluster, group_id, partitions, timeout_ms=self._limit(timeout_ms)
        )

    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, None]:
        """Commit offsets for a group without members."""
        return groups.alter_group_offsets(
            self._cluster, group_id, offsets, timeout_ms=self._limit(timeout_ms)
        )

    def delete_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, None]:
        """Delete offsets of topics that the group is not subscribed to."""
        return groups.delete_group_offsets(
            self._cluster, group_id, partitions, timeout_ms=self._limit(timeout_ms)
        )

    def reset_group_offsets(
        self,
        group_id: str,
        timestamps: Mapping[TopicPartition, int],
        *,
        timeout_ms: int | None = None,
    ) -> Results[TopicPartition, int]:
        """Reset the offsets of a group without members to times: -2 the earliest, -1 the latest.

        If all records are older than the time, the offset becomes the end offset. The values are
        the new offsets.
        """
        found = self.list_offsets(timestamps, timeout_ms=timeout_ms)
        too_young = [tp for tp, offset in found.values.items() if offset.offset < 0]
        ends = self.list_offsets(dict.fromkeys(too_young, LATEST_TIMESTAMP), timeout_ms=timeout_ms)
        targets = {tp: offset.offset for tp, offset in {**found.values, **ends.values}.items()}
        errors: dict[TopicPartition, BrokerError] = {**found.errors, **ends.errors}
        if targets:
            altered = self.alter_group_offsets(
                group_id,
                {tp: OffsetAndMetadata(offset) for tp, offset in targets.items() if offset >= 0},
                timeout_ms=timeout_ms,
            )
            errors.update(altered.errors)
        return Results({tp: at for tp, at in targets.items() if tp not in errors}, errors)

    # --- transactions -------------------------------------------------------------------------

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        timeout_ms: int | None = None,
    ) -> list[TransactionListing]:
        """All transactional ids, or those in some states or of some producers."""
        return transactions.list_transactions(
            self._cluster,
            states=states,
            producer_ids=producer_ids,
            timeout_ms=self._limit(timeout_ms),
        )

    def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> Results[str, TransactionDescription]:
        """State, producer and partitions of transactions."""
        return transactions.describe_transactions(
            self._cluster, transactional_ids, timeout_ms=self._limit(timeout_ms)
        )

    def describe_producers(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> Results[TopicPartition, tuple[ProducerDescription, ...]]:
        """Producers that partitions remember, and which of them have a transaction open."""
        return transactions.describe_producers(
            self._cluster, partitions, timeout_ms=self._limit(timeout_ms)
        )

    def abort_transaction(
        self,
        tp: TopicPartition,
        producer: ProducerDescription,
        *,
        timeout_ms: int | None = None,
    ) -> None:
        """End a hanging transaction of a producer that `describe_producers` returned."""
        transactions.abort_transaction(
            self._cluster, tp, producer, timeout_ms=self._limit(timeout_ms)
        )

    # --- the end ------------------------------------------------------------------------------

    def close(self) -> None:
        """Release all resources."""
        self._cluster.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
