"""Clients: opens the consumers, producers and admins of an application with its settings."""

from collections.abc import Iterable
from dataclasses import fields

from broker import client
from broker.client.assignors.api import Assignor
from broker.client.classic_group_member import GroupConfig
from broker.client.cluster_admin import Admin
from broker.client.opening import Target
from broker.client.record_consumer import Consumer
from broker.client.record_producer import Producer
from broker.client.shared_clients import SharedClients
from broker.model import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition
from streams.config import StreamsConfig

# The limit of one poll, so that no poll takes long.
MAIN_BUFFER_BYTES = 32 * 1024 * 1024
RESTORE_BUFFER_BYTES = 8 * 1024 * 1024
FETCH_WAIT_MS = 100
SHARED_FETCH_WAIT_MS = 10_000  # a fetch that waits does not delay other partitions
GROUP_SETTINGS = frozenset(item.name for item in fields(GroupConfig))
PRODUCER_LINGER_MS = 0  # batches are complete when they are sent, so there is nothing to wait for


class Clients:
    """Opens clients on one broker or cluster; prefixed settings apply to clients of one kind."""

    def __init__(
        self, target: Target, config: StreamsConfig, process_id: str, *, persistent_id: bool = False
    ) -> None:
        """`process_id` distinguishes the transactions of instances.

        With `persistent_id` the instance is a static member: after a kill, the next process with
        the same id continues immediately. The lock on the file of the id reserves it for one
        process.
        """
        self._persistent_id = persistent_id
        self._target = target
        self._config = config
        self._process_id = process_id
        shared = isinstance(target, SharedClients)
        self._fetch_wait_ms = SHARED_FETCH_WAIT_MS if shared else FETCH_WAIT_MS

    def main_consumer(self, runner: str, assignor: Assignor) -> Consumer:
        """The consumer of a runner, in the application's group."""
        config = self._config
        settings: dict[str, object] = {
            "group_id": config.application_id,
            "client_id": f"{self._client_id()}-{runner}-consumer",
            "enable_auto_commit": False,
            "auto_offset_reset": config.auto_offset_reset,  # sources may override it
            "isolation_level": self._isolation(),
            "partition_assignment_strategy": [assignor],
            "session_timeout_ms": config.session_timeout_ms,
            "heartbeat_interval_ms": config.heartbeat_interval_ms,
            "fetch_buffer_bytes": MAIN_BUFFER_BYTES,
            "fetch_max_wait_ms": self._fetch_wait_ms,
            "allow_auto_create_topics": False,
        }
        if config.group_instance_id is not None:
            settings["group_instance_id"] = f"{config.group_instance_id}-{runner}"
        elif self._persistent_id:
            settings["group_instance_id"] = f"{self._process_id}-{runner}"
            settings["leave_group_on_close"] = True  # not after the session timeout
        settings |= config.prefixed("consumer.") | config.prefixed("main.consumer.")
        return client.consumer(self._target, **settings)

    def restore_consumer(self, runner: str) -> Consumer:
        """Reads changelogs; without a group."""
        settings: dict[str, object] = {
            "client_id": f"{self._client_id()}-{runner}-restore-consumer",
            "auto_offset_reset": "earliest",
            "isolation_level": self._isolation(),
            "fetch_buffer_bytes": RESTORE_BUFFER_BYTES,
            "fetch_max_wait_ms": self._fetch_wait_ms,
        }
        settings |= self._consumer_settings() | self._config.prefixed("restore.consumer.")
        return client.consumer(self._target, **settings)

    def global_consumer(self) -> Consumer:
        """Reads the topics of global stores; without a group."""
        settings: dict[str, object] = {
            "client_id": f"{self._client_id()}-global-consumer",
            "auto_offset_reset": "earliest",
            "isolation_level": self._isolation(),
            "fetch_buffer_bytes": RESTORE_BUFFER_BYTES,
            "fetch_max_wait_ms": self._fetch_wait_ms,
        }
        settings |= self._consumer_settings() | self._config.prefixed("global.consumer.")
        return client.consumer(self._target, **settings)

    def producer(self, runner: str) -> Producer:
        """The producer of a runner; transactional when the application is exactly-once."""
        config = self._config
        settings: dict[str, object] = {
            "client_id": f"{self._client_id()}-{runner}-producer",
            "linger_ms": PRODUCER_LINGER_MS,
            "delivery_timeout_ms": max(config.task_timeout_ms, 1),
        }
        if config.exactly_once:
            settings["transactional_id"] = f"{config.application_id}-{self._process_id}-{runner}"
            settings["transaction_timeout_ms"] = config.transaction_timeout_ms
        settings |= config.prefixed("producer.")
        return client.producer(self._target, **settings)

    def admin(self) -> Admin:
        """An admin of the cluster."""
        settings: dict[str, object] = {"client_id": f"{self._client_id()}-admin"}
        settings |= self._config.prefixed("admin.")
        return client.admin(self._target, **settings)

    def _consumer_settings(self) -> dict[str, object]:
        """Settings of all consumers, without those that only members of a group have."""
        given = self._config.prefixed("consumer.")
        return {name: value for name, value in given.items() if name not in GROUP_SETTINGS}

    def _client_id(self) -> str:
        config = self._config
        return config.client_id or f"{config.application_id}-{self._process_id}"

    def _isolation(self) -> str:
        return "read_committed" if self._config.exactly_once else "read_uncommitted"


def log_bounds(
    admin: Admin, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    """First offset and end of each log, including records of open transactions."""
    listed = list(partitions)
    if not listed:
        return {}
    first = admin.list_offsets(dict.fromkeys(listed, EARLIEST_TIMESTAMP)).all()
    ends = log_ends(admin, listed)
    return {tp: (first[tp].offset, ends[tp]) for tp in listed}


def log_ends(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The end of each log, including records of open transactions."""
    requests = dict.fromkeys(partitions, LATEST_TIMESTAMP)
    offsets = admin.list_offsets(requests).all() if requests else {}
    return {tp: offsets[tp].offset for tp in requests}
