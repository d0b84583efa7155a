"""OffsetStores: the offset store of each source connector: the worker's topic or its own.

With offsets.storage.topic, a connector has its own topic. Offsets that it does not have are looked
up in the worker's topic: a connector that gets its own topic continues where it was.
"""

from collections.abc import Iterable, Sequence

from broker import concurrency
from broker.client.opening import Target
from broker.client.produced_batch import Delivery
from broker.client.record_producer import Producer
from broker.client.remote import servers_of
from connect.config.worker_config import WorkerConfig
from connect.state.offsets import Offset, OffsetStore, Partition, SourceOffset, TopicOffsets
from connect.state.state_topic import StateTopic, TopicSpec


class ConnectorOffsets:
    """The OffsetStore of a connector with its own topic."""

    def __init__(self, own: TopicOffsets, worker: OffsetStore) -> None:
        """The connector's topic takes precedence."""
        self._own = own
        self._worker = worker

    def get(self, connector: str, partitions: Iterable[Partition]) -> list[Offset | None]:
        """The current offsets of some partitions, in their order."""
        asked = list(partitions)
        found = self._own.get(connector, asked)
        if None in found:
            fallback = self._worker.get(connector, asked)
            found = [own or older for own, older in zip(found, fallback, strict=True)]
        return found

    def all_of(self, connector: str) -> list[SourceOffset]:
        """The current offsets of all partitions of a connector."""
        own = self._own.all_of(connector)
        known = [offset.partition for offset in own]
        older = self._worker.all_of(connector)
        return own + [offset for offset in older if offset.partition not in known]

    def save(self, connector: str, offsets: Iterable[SourceOffset]) -> None:
        """Store offsets; deleted ones are deleted in the worker's topic, too."""
        given = list(offsets)
        forgotten = [offset for offset in given if offset.offset is None]
        if forgotten:
            self._worker.save(connector, forgotten)
        self._own.save(connector, given)

    def send(
        self, connector: str, offsets: Iterable[SourceOffset], producer: Producer
    ) -> Sequence[Delivery]:
        """Store offsets through a producer."""
        return self._own.send(connector, offsets, producer)


class OffsetStores:
    """All stores of a worker; any thread may call it."""

    def __init__(self, target: Target, config: WorkerConfig, worker: OffsetStore) -> None:
        """The caller opens and closes the worker's own store."""
        self._target = target
        self._config = config
        self._worker = worker
        self._lock = concurrency.Lock()
        self._topics: dict[str, TopicOffsets] = {}

    def of(self, name: str | None) -> OffsetStore:
        """The store of a connector with this topic, which is created and read on first use."""
        if name is None or not self._config.distributed:
            return self._worker
        with self._lock:
            found = self._topics.get(name)
            if found is None:
                found = self._topics[name] = self._open(name)
        return ConnectorOffsets(found, self._worker)

    def close(self) -> None:
        """Close the topics of connectors."""
        with self._lock:
            for store in self._topics.values():
                store.close()
            self._topics.clear()

    def _open(self, name: str) -> TopicOffsets:
        config = self._config
        spec = TopicSpec(
            name, config.offset_storage_partitions, config.offset_storage_replication_factor
        )
        over_network = servers_of(self._target) is not None
        options = config.own_client_settings(over_network=over_network)
        store = TopicOffsets(StateTopic(self._target, spec, options=options))
        store.open()
        return store
