"""Metadata: the instances with their partitions of each store, and the lag of local copies."""

from typing import TYPE_CHECKING, NamedTuple

from broker.client.partitioner import partition_for_key
from streams.errors import StoreNotFound
from streams.runtime.environment import Environment
from streams.runtime.partitions import TaskId

if TYPE_CHECKING:
    from streams.runtime.instance import Instance


class HostMetadata(NamedTuple):
    """One instance: its application_server and its partitions of each store."""

    host: str
    process_id: str
    active: dict[str, frozenset[int]]  # partitions, by store
    standby: dict[str, frozenset[int]]


class StoreLag(NamedTuple):
    """How far a local copy of a store's partition is behind its changelog."""

    store: str
    partition: int
    position: int
    end: int

    @property
    def lag(self) -> int:
        """The number of offsets that it is behind."""
        return max(0, self.end - self.position)


def hosts_of(environment: Environment, store: str | None = None) -> list[HostMetadata]:
    """All instances as of the last rebalance, or only those that have a store."""
    if store is not None:
        _check_store(environment, store)
    hosts = []
    for host in environment.hosts:
        active = _partitions(environment, host.active, store)
        standby = _partitions(environment, host.standby, store)
        if store is None or active or standby:
            hosts.append(HostMetadata(host.host, host.process_id, active, standby))
    return hosts


def key_host(environment: Environment, store: str, key: object) -> tuple[HostMetadata | None, int]:
    """The instance whose active task has a key, and the key's partition."""
    _check_store(environment, store)
    spec = environment.topology.stores[store]
    serde = spec.key_serde or environment.config.default_key_serde
    sub = next(sub for sub in environment.topology.sub_topologies if store in sub.stores)
    data = serde.serialize(store, key)
    assert data is not None, "the key of a lookup is not null"
    partition = partition_for_key(data, environment.layout.task_count(sub.number))
    for host in hosts_of(environment, store):
        if partition in host.active.get(store, ()):
            return host, partition
    return None, partition


def store_lags(instance: "Instance") -> list[StoreLag]:
    """The positions and end offsets of all local copies."""
    environment = instance.check_running()
    copies = [
        (store, tp, owned.positions.get(store, 0))
        for owned in instance.tasks()
        for store, tp in owned.changelogs.items()
    ]
    bounds = environment.bounds(tp for _, tp, _ in copies)
    return [
        StoreLag(store, tp.partition, position, bounds[tp][1]) for store, tp, position in copies
    ]


def _check_store(environment: Environment, store: str) -> None:
    if store not in environment.topology.stores:
        raise StoreNotFound(
            f'there is no store "{store}"',
            hint=f"stores are {', '.join(sorted(environment.topology.stores)) or 'none'}",
        )


def _partitions(
    environment: Environment, tasks: frozenset[TaskId], only: str | None
) -> dict[str, frozenset[int]]:
    by_store: dict[str, set[int]] = {}
    for sub in environment.topology.sub_topologies:
        partitions = {task.partition for task in tasks if task.sub_topology == sub.number}
        for store in sub.stores:
            if partitions and only in (None, store):
                by_store.setdefault(store, set()).update(partitions)
    return {store: frozenset(partitions) for store, partitions in by_store.items()}
