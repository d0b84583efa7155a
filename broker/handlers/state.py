"""BrokerState and RequestContext: the parts of the broker and the request that handlers use."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broker import concurrency
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.coordinator.groups import GroupCoordinator
from broker.coordinator.partitions import Partitions
from broker.coordinator.topics import TopicCatalog
from broker.coordinator.transactions import TransactionCoordinator
from broker.handlers.fetch_sessions import FetchSessions
from broker.metrics import Metrics
from broker.model import ConnectionInfo
from broker.storage.data_directory import DataDirectory
from broker.timers import Timers


@dataclass(slots=True)
class BrokerState:
    """The parts of a running broker; everything in it is used under `lock`."""

    config: BrokerConfig
    clock: Clock
    timers: Timers
    lock: concurrency.RLock
    storage: DataDirectory
    partitions: Partitions
    topics: TopicCatalog
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    fetch_sessions: FetchSessions
    metrics: Metrics
    cluster_id: str
    endpoint_for: Callable[[str], tuple[str, int]]

    @property
    def node_id(self) -> int:
        """The broker id that clients see."""
        return self.config.broker_id


@dataclass(slots=True)
class RequestContext:
    """The version and connection of a request, and values prepared before locking."""

    version: int
    connection: ConnectionInfo
    prepared: Any = None  # Any: what the API's own preparation returned


# A handler returns a response, a Pending one, or None if no response is expected (acks=0). Errors
# are codes inside the response; a BrokerError that a handler raises closes the connection, which is
# the only option where no response is expected. Any: each handler takes the request class of its
# API, and the table below pairs it with the key.
Handler = Callable[[BrokerState, Any, RequestContext], object]
