"""Broker: storage, catalog, coordinators and handlers put together; no network.

    with Broker(data_directory="data") as broker:
        broker.handle(ApiKey.METADATA, 12, MetadataRequest(topics=None), ConnectionInfo())

Servers and embedded clients both call `handle`. On a manual clock nothing happens by itself: who
moves the clock calls `run_due`.
"""

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from random import Random
from types import TracebackType
from typing import Self

from broker.clock import Clock, ManualClock, SystemClock
from broker.config import BrokerConfig
from broker.coordinator.groups import GroupCoordinator
from broker.coordinator.housekeeping import Housekeeping
from broker.coordinator.topics import Change, Topic, TopicCatalog
from broker.coordinator.transactions import TransactionCoordinator
from broker.errors import BrokerError, ErrorCode, UnsupportedVersion
from broker.handlers import HANDLERS, VERSIONS, BrokerState, RequestContext, refusal
from broker.handlers.fetch_sessions import FetchSessions
from broker.handlers.partitions import error_code_of
from broker.metrics import Metrics
from broker.model import ConnectionInfo
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.storage.data_directory import DataDirectory
from broker.timers import Timers

logger = logging.getLogger(__name__)

# What clients are told before a server has said where it listens.
EMBEDDED_ENDPOINT = ("localhost", 9092)


class Broker:
    """A whole broker in this process; threads other than the caller's only do housekeeping."""

    def __init__(
        self,
        config: BrokerConfig | None = None,
        *,
        clock: Clock | None = None,
        data_directory: str | None = None,
    ) -> None:
        """Nothing is opened before `start`."""
        config = config or BrokerConfig()
        if data_directory is not None:
            config = replace(config, log_dirs=(str(data_directory),))
        self.config = config
        self.clock: Clock = clock or SystemClock()
        self.timers = Timers(self.clock)
        self.metrics = Metrics()
        self._lock = threading.RLock()
        self._endpoints: dict[str, tuple[str, int]] = {}
        self._state: BrokerState | None = None
        self._housekeeping: Housekeeping | None = None

    @property
    def state(self) -> BrokerState:
        """The parts of the running broker; use them under `lock` only."""
        assert self._state is not None, "the broker is not started"
        return self._state

    @property
    def lock(self) -> threading.RLock:
        """The lock under which everything happens."""
        return self._lock

    @property
    def cluster_id(self) -> str:
        """The id of the one-broker cluster, kept in the data directory."""
        return self.state.cluster_id

    def start(self, *, progress: Callable[[int, int], None] = lambda *_: None) -> Self:
        """Open the data directory and recover; `progress` hears of partitions done and to do."""
        assert self._state is None, "the broker is running"
        path = self.config.data_directory
        storage = DataDirectory(path, config=self.config, clock=self.clock, lock=self._lock)
        topics = TopicCatalog(path, config=self.config, storage=storage)
        with self._lock:
            topics.load()
            storage.open(topics.expected(), progress=progress)
        _report_recovery(storage)
        try:
            with self._lock:
                self._state = self._assemble(storage, topics)
        except BaseException:
            storage.close()
            raise
        if not isinstance(self.clock, ManualClock):
            self._housekeeping = Housekeeping(
                self.config, clock=self.clock, timers=self.timers, storage=storage, lock=self._lock
            )
            self._housekeeping.start()
        return self

    def _assemble(self, storage: DataDirectory, topics: TopicCatalog) -> BrokerState:
        groups = GroupCoordinator(
            config=self.config,
            clock=self.clock,
            timers=self.timers,
            topics=topics,
            storage=storage,
        )
        transactions = TransactionCoordinator(
            config=self.config,
            clock=self.clock,
            timers=self.timers,
            topics=topics,
            storage=storage,
            groups=groups,
        )
        groups.load()
        transactions.load()
        sessions = FetchSessions(
            slots=self.config.max_incremental_fetch_session_cache_slots,
            clock=self.clock,
            random=Random(),
        )
        topics.subscribe(self._topic_changed)
        return BrokerState(
            config=self.config,
            clock=self.clock,
            timers=self.timers,
            lock=self._lock,
            storage=storage,
            topics=topics,
            groups=groups,
            transactions=transactions,
            fetch_sessions=sessions,
            metrics=self.metrics,
            cluster_id=storage.cluster_id,
            endpoint_for=self.endpoint_for,
        )

    def close(self) -> None:
        """Flush, leave the marker of a stop in order, and let go of the data directory."""
        state, self._state = self._state, None
        if state is None:
            return
        if self._housekeeping is not None:
            self._housekeeping.stop()
            self._housekeeping = None
        state.storage.close()

    def __enter__(self) -> Self:
        """Start, unless that was done."""
        return self if self._state is not None else self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
        self.close()

    def advertise(self, listener: str, host: str, port: int) -> None:
        """Tell clients of a listener where this broker is."""
        self._endpoints[listener] = (host, port)

    def endpoint_for(self, listener: str) -> tuple[str, int]:
        """Host and port that clients of a listener are told."""
        found = self._endpoints.get(listener)
        if found is None:
            found = next(iter(self._endpoints.values()), EMBEDDED_ENDPOINT)
        return found

    def handle(
        self, api_key: ApiKey, version: int, request: object, connection: ConnectionInfo
    ) -> object:
        """Answer a request: a response, a Pending one, or None when no answer is wanted.

        A BrokerError means that there is no way to answer: the connection should be closed.
        """
        handler = HANDLERS.get(api_key)
        if handler is None:
            raise UnsupportedVersion(f"{api_key.name} is not answered by this broker")
        with self._lock:
            if self._state is None:
                raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, "the broker is not running")
            try:
                return handler(self.state, request, RequestContext(version, connection))
            except BrokerError:
                raise
            except Exception as error:
                logger.exception("%s version %d failed", api_key.name, version)
                answer = refusal(api_key, request, error_code_of(error))
                if answer is None:
                    raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
                return answer

    def when_done(self, pending: Pending[object], callback: Callable[[object], None]) -> None:
        """Call back with the answer, once it is there, in the thread that gives it."""
        with self._lock:
            pending.then(callback)

    def abandon(self, pending: Pending[object]) -> None:
        """Nobody waits for this answer any more."""
        with self._lock:
            pending.abandon()

    def unsupported_api_versions(self) -> object:
        """What a client gets that asks for ApiVersions in a version nobody knows: version 0."""
        return VERSIONS.unsupported()

    def run_due(self) -> int:
        """Run the timers that are due, as the housekeeping does on a real clock."""
        with self._lock:
            return self.timers.run_due()

    def _topic_changed(self, change: Change, topic: Topic) -> None:
        if change == "deleted":
            self.metrics.forget_topic(topic.name)


def _report_recovery(storage: DataDirectory) -> None:
    found = storage.recovered
    if found.clean or not found.logs:
        return
    logger.info(
        "recovered %d logs after a crash: %d segments, %d bytes scanned, %d bytes truncated",
        found.logs,
        found.segments_scanned,
        found.bytes_scanned,
        found.bytes_truncated,
    )
