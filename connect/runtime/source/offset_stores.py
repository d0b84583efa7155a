"""OffsetStores: where the offsets of each source connector are, the worker's topic or its own.

With offsets.storage.topic a connector has a topic for itself. What is not there is looked up in
the worker's: a connector that gets a topic of its own goes on where it was.
"""

from collections.abc import Iterable, Mapping, Sequence

from broker import concurrency
from broker.client.api import Delivery, Producer
from broker.client.opening import Target
from broker.client.remote import servers_of
from connect.config.worker_config import WorkerConfig
from connect.state.offsets import Offset, OffsetStore, Partition, SourceOffset, TopicOffsets
from connect.state.state_topic import StateTopic, TopicSpec

SETTING = "offsets.storage.topic"


class ConnectorOffsets:
    """The OffsetStore of a connector that has a topic for itself."""

    def __init__(self, own: TopicOffsets, worker: OffsetStore) -> None:
        """The connector's topic comes first."""
        self._own = own
        self._worker = worker

    def get(self, connector: str, partitions: Iterable[Partition]) -> list[Offset | None]:
        """The offsets of some partitions, in their order, as of now."""
        asked = list(partitions)
        found = self._own.get(connector, asked)
        if None in found:
            fallback = self._worker.get(connector, asked)
            found = [own or older for own, older in zip(found, fallback, strict=True)]
        return found

    def all_of(self, connector: str) -> list[SourceOffset]:
        """Every partition of a connector that has an offset, as of now."""
        own = self._own.all_of(connector)
        known = [offset.partition for offset in own]
        older = self._worker.all_of(connector)
        return own + [offset for offset in older if offset.partition not in known]

    def save(self, connector: str, offsets: Iterable[SourceOffset]) -> None:
        """Keep offsets; those that are forgotten are forgotten in the worker's topic, too."""
        given = list(offsets)
        forgotten = [offset for offset in given if offset.offset is None]
        if forgotten:
            self._worker.save(connector, forgotten)
        self._own.save(connector, given)

    def send(
        self, connector: str, offsets: Iterable[SourceOffset], producer: Producer
    ) -> Sequence[Delivery]:
        """Keep offsets through a producer."""
        return self._own.send(connector, offsets, producer)


class OffsetStores:
    """All stores of a worker; any thread may ask."""

    def __init__(self, target: Target, config: WorkerConfig, worker: OffsetStore) -> None:
        """The worker's own store is opened and closed by whom it belongs to."""
        self._target = target
        self._config = config
        self._worker = worker
        self._lock = concurrency.Lock()
        self._topics: dict[str, TopicOffsets] = {}

    def of(self, connector: Mapping[str, str]) -> OffsetStore:
        """The store of a connector; its topic is made and read when it is first asked for."""
        name = connector.get(SETTING)
        if name is None or not self._config.distributed:
            return self._worker
        with self._lock:
            found = self._topics.get(name)
            if found is None:
                found = self._topics[name] = self._open(name)
        return ConnectorOffsets(found, self._worker)

    def topic_of(self, connector: Mapping[str, str]) -> str:
        """The name of the topic that a connector's offsets are written to."""
        return connector.get(SETTING) or self._config.offset_storage_topic

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
