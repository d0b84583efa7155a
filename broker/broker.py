"""Broker: connects storage, catalog, coordinators and handlers; no network.

    with Broker(data_directory="data") as broker:
        broker.handle(ApiKey.METADATA, 12, MetadataRequest(topics=None), ConnectionInfo())

Servers and embedded clients both call `handle`. With a manual clock no timer runs by itself: the
code that advances the clock calls `run_due`.
"""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from types import GeneratorType
from typing import Final, Self

from broker import concurrency
from broker.clock import Clock, ManualClock
from broker.config import BrokerConfig
from broker.coordinator.groups import GroupCoordinator
from broker.coordinator.housekeeping import Housekeeping
from broker.coordinator.partitions import Partitions
from broker.coordinator.parts import Parts
from broker.coordinator.topics import Change, Steps, Topic, TopicCatalog
from broker.coordinator.transactions import TransactionCoordinator
from broker.errors import BrokerError, ErrorCode, UnsupportedVersion
from broker.handlers import (
    HANDLERS,
    PREPARATIONS,
    VERSIONS,
    BrokerState,
    RequestContext,
    refusal,
)
from broker.handlers.fetch_sessions import FetchSessions
from broker.handlers.partitions import error_code_of
from broker.machine import Machine, on_clock
from broker.metrics import Metrics
from broker.model import ConnectionInfo
from broker.pending import Pending
from broker.protocol.api_keys import ApiKey
from broker.storage.data_directory import DataDirectory
from broker.timers import Timers

logger = logging.getLogger(__name__)

HOLD_MS = 10  # how long a request that is processed in parts holds the lock at a time
UNFINISHED: Final = object()

# The address that clients receive before a server has set its own.
EMBEDDED_ENDPOINT = ("localhost", 9092)


class Broker:
    """A whole broker in this process; its own threads only do housekeeping."""

    def __init__(
        self,
        config: BrokerConfig | None = None,
        *,
        machine: Machine | None = None,
        clock: Clock | None = None,
        data_directory: str | None = None,
    ) -> None:
        """Opens nothing before `start`. The default machine is this one, with `clock` if given."""
        config = config or BrokerConfig()
        if data_directory is not None:
            config = replace(config, log_dirs=(str(data_directory),))
        self.config = config
        self.machine = machine or on_clock(clock)
        self.clock: Clock = self.machine.clock
        self.timers = Timers(self.clock)
        self.metrics = Metrics()
        self._lock = concurrency.RLock()
        self._endpoints: dict[str, tuple[str, int]] = {}
        self._state: BrokerState | None = None
        self.never_started = True
        self._housekeeping: Housekeeping | None = None

    @property
    def state(self) -> BrokerState:
        """The parts of the running broker; use them under `lock` only."""
        assert self._state is not None, "the broker is not started"
        return self._state

    @property
    def lock(self) -> concurrency.RLock:
        """The lock that guards the whole broker."""
        return self._lock

    @property
    def cluster_id(self) -> str:
        """The id of the one-broker cluster, stored in the data directory."""
        return self.state.cluster_id

    def start(self, *, progress: Callable[[int, int], None] = lambda *_: None) -> Self:
        """Open the data directory and recover; `progress` gets the number of opened partitions."""
        assert self._state is None, "the broker is running"
        self.never_started = False
        path = self.config.data_directory
        machine = self.machine
        storage = DataDirectory(
            path,
            config=self.config,
            clock=self.clock,
            lock=self._lock,
            files=machine.files,
            random=machine.random,
        )
        partitions = Partitions(storage)
        topics = TopicCatalog(
            path, config=self.config, partitions=partitions, lock=self._lock, machine=machine
        )
        with self._lock:
            topics.load()
            storage.open(topics.expected(), progress=progress)
        _report_recovery(storage)
        try:
            with self._lock:
                partitions.lead_all()
                self._state = self._assemble(storage, topics)
        except BaseException:
            storage.close()
            raise
        if not isinstance(self.clock, ManualClock):
            self._housekeeping = Housekeeping(
                self.config,
                clock=self.clock,
                timers=self.timers,
                storage=storage,
                topics=topics,
                lock=self._lock,
            )
            self._housekeeping.start()
        return self

    def _assemble(self, storage: DataDirectory, topics: TopicCatalog) -> BrokerState:
        groups = GroupCoordinator(
            config=self.config,
            machine=self.machine,
            timers=self.timers,
            topics=topics,
        )
        transactions = TransactionCoordinator(
            config=self.config,
            clock=self.clock,
            timers=self.timers,
            topics=topics,
            storage=storage,
            complete_offsets=groups.complete_transaction,
        )
        groups.load()
        transactions.load()
        sessions = FetchSessions(
            slots=self.config.max_incremental_fetch_session_cache_slots,
            clock=self.clock,
            random=self.machine.random,
        )
        topics.subscribe(self._topics_changed)
        return BrokerState(
            config=self.config,
            clock=self.clock,
            timers=self.timers,
            lock=self._lock,
            storage=storage,
            partitions=topics.partitions,
            topics=topics,
            groups=groups,
            transactions=transactions,
            fetch_sessions=sessions,
            metrics=self.metrics,
            cluster_id=storage.cluster_id,
            endpoint_for=self.endpoint_for,
        )

    def close(self) -> None:
        """Flush, write the clean-shutdown marker, and release the data directory."""
        state, self._state = self._state, None
        if state is None:
            return
        if self._housekeeping is not None:
            self._housekeeping.stop()
            self._housekeeping = None
        state.storage.close()

    def __enter__(self) -> Self:
        return self if self._state is not None else self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def advertise(self, listener: str, host: str, port: int) -> None:
        """Set the address of this broker that clients of a listener receive."""
        self._endpoints[listener] = (host, port)

    def endpoint_for(self, listener: str) -> tuple[str, int]:
        """Advertised host and port of a listener."""
        found = self._endpoints.get(listener)
        if found is None:
            found = next(iter(self._endpoints.values()), EMBEDDED_ENDPOINT)
        return found

    def handle(
        self,
        api_key: ApiKey,
        version: int,
        request: object,
        connection: ConnectionInfo,
        *,
        background: Executor | None = None,
    ) -> object:
        """Handle a request: returns a response, a Pending one, or None if no response is expected.

        A BrokerError means that no response is possible: the connection should be closed; a Pending
        response may also fail with it. A caller that must not wait for a large request passes an
        executor, which runs the rest of it.
        """
        handler = HANDLERS.get(api_key)
        if handler is None:
            raise UnsupportedVersion(f"{api_key.name} is not supported by this broker")
        context = RequestContext(version, connection)
        state = self._state
        if state is not None and api_key in PREPARATIONS:
            context.prepared = PREPARATIONS[api_key](state, request, context)
        try:
            with self._lock:
                answer = handler(self._running(), request, context)
            if type(answer) is GeneratorType:
                # Produced batches are views of a buffer that the caller reuses.
                if background is not None and api_key is not ApiKey.PRODUCE:
                    refuse = partial(_refusal, api_key, version, request)
                    return self._answer_in_background(answer, refuse, background)
                answer = self._answer_in_parts(answer)
        except BrokerError:
            raise
        except Exception as error:
            return _refusal(api_key, version, request, error)
        if self._housekeeping is None and type(answer) is Pending:
            return self._settled(answer)
        return answer

    def _running(self) -> BrokerState:
        if self._state is None:
            raise BrokerError(ErrorCode.BROKER_NOT_AVAILABLE, "the broker is not running")
        return self._state

    def _answer_in_parts(self, parts: Parts[object]) -> object:
        """Release the lock periodically, so that other requests do not wait for a large one."""
        while (answer := self._next_parts(parts)) is UNFINISHED:
            # Without a pause this thread would acquire the lock again before a waiting one wakes.
            concurrency.pause()
        return answer

    def _next_parts(self, parts: Parts[object]) -> object:
        """Process for HOLD_MS; UNFINISHED if there is more to do."""
        with self._lock:
            self._running()
            ends_ms = self.clock.monotonic_ms() + HOLD_MS
            try:
                while self.clock.monotonic_ms() < ends_ms:
                    next(parts)
            except StopIteration as end:
                return end.value
        return UNFINISHED

    def _answer_in_background(
        self,
        parts: Parts[object],
        refuse: Callable[[Exception], object],
        background: Executor,
    ) -> object:
        """Respond immediately if the request is short, otherwise later."""
        answer = self._next_parts(parts)
        if answer is not UNFINISHED:
            return answer
        pending: Pending[object] = Pending()

        def complete(value: object) -> None:
            with self._lock:
                pending.complete(value)

        def finish() -> None:
            try:
                found = self._answer_in_parts(parts)
            except BrokerError as error:
                found = error
            except Exception as error:
                try:
                    found = refuse(error)
                except BrokerError as refused:
                    found = refused
            if isinstance(found, Pending):
                self.when_done(found, complete)
            else:
                complete(found)

        background.submit(finish)
        return pending

    def _settled(self, pending: Pending[object]) -> object:
        """Without threads, the caller does the pending writes of the topic catalog."""
        self._running().topics.write_changes()
        return pending.value if pending.done else pending

    def when_done(self, pending: Pending[object], callback: Callable[[object], None]) -> None:
        """Call back with the response when it is available, in the thread that completes it."""
        with self._lock:
            pending.then(callback)

    def abandon(self, pending: Pending[object]) -> None:
        """The client no longer waits for this response."""
        with self._lock:
            pending.abandon()

    def unsupported_api_versions(self) -> object:
        """The response to ApiVersions in an unknown version: version 0."""
        return VERSIONS.unsupported()

    def run_due(self) -> int:
        """Run the timers that are due, as housekeeping does with a real clock."""
        with self._lock:
            return self.timers.run_due()

    def _topics_changed(self, change: Change, topics: Sequence[Topic]) -> Steps:
        if change == "deleted":
            for topic in topics:
                self.metrics.forget_topic(topic.name)
                yield


def _refusal(api_key: ApiKey, version: int, request: object, error: Exception) -> object:
    """The response to a failed request; BrokerError if its version has no error field."""
    logger.error("%s failed", api_key.name, exc_info=error)
    refused = refusal(api_key, version, request, error_code_of(error))
    if refused is None:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)) from error
    return refused


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
