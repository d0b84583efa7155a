"""BrokerState: what handlers work on, and what they know of the request they answer."""

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
        """The id under which this broker is known to clients."""
        return self.config.broker_id


@dataclass(slots=True)
class RequestContext:
    """The version a request came in, and from whom; what was prepared before the lock was taken."""

    version: int
    connection: ConnectionInfo
    prepared: Any = None  # Any: what the API's own preparation returned


# A handler answers with a response, with a Pending one, or with None when no answer is wanted
# (acks=0). Errors are codes inside the response; a BrokerError that leaves a handler ends the
# connection, which is all that can be done where no answer is expected.
# Any: each handler takes the request class of its API, which the table below it pairs with the key.
Handler = Callable[[BrokerState, Any, RequestContext], object]
