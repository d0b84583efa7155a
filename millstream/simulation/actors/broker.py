"""BrokerActor: the broker, in its own process, on a disk that survives it."""

from collections.abc import Callable
from concurrent.futures import Executor
from typing import TYPE_CHECKING

from broker.batch.codec import encode_batch
from broker.broker import Broker
from broker.config import BrokerConfig
from broker.coordinator.transaction import TransactionState
from broker.errors import MillstreamError
from broker.model import INTERNAL_TOPICS, ConnectionInfo, TopicPartition
from broker.protocol.api_keys import ApiKey
from broker.storage.checkpoints import CLEAN_SHUTDOWN
from millstream.simulation.actors.actor import Actor
from millstream.simulation.start_checks import check_started_broker

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import SimulatedPlatform

DATA = "/data"
# Requests by which applications, connectors and queries commit.
COMMITS = (ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN)


class ObservedBroker(Broker):
    """A broker that calls `committed` after requests to commit, with the client's host."""

    committed: Callable[[str], None] = staticmethod(lambda client: None)

    def handle(
        self,
        api_key: ApiKey,
        version: int,
        request: object,
        connection: ConnectionInfo,
        *,
        background: Executor | None = None,
    ) -> object:
        """Handle a request, and report commits."""
        response = super().handle(api_key, version, request, connection, background=background)
        if api_key in COMMITS:
            self.committed(connection.client_host)
        return response


class BrokerActor(Actor):
    """Runs a broker until stopped."""

    def __init__(self, name: str, platform: "SimulatedPlatform") -> None:
        super().__init__(name, platform)
        self._broker: Broker | None = None
        self._started = 0  # number of the process that started the broker
        self._clean_stops = 0
        self._acknowledged_client = ""  # the client whose acknowledgements count
        self._acknowledgements_left = 0  # until `_stop` is called; 0: never
        self._stop: Callable[[], None] = lambda: None
        self._commits: dict[
            str, tuple[int, Callable[[], None]]
        ] = {}  # by client: the number of commits left, and the action after them

    def run(self) -> None:
        assert self.machine is not None
        assert self.process is not None
        config = BrokerConfig.from_properties(dict(self.platform.scenario.settings))
        broker = ObservedBroker(config, machine=self.machine, data_directory=DATA)
        broker.committed = self._committed
        self._broker = broker.start()
        self._started = self.starts
        self.platform.watch_lock(broker)
        self.note("is up")
        check_started_broker(self.platform.observations, broker)
        server = self.platform.network.serve(self.process, broker, self.platform.address)
        try:
            while self.sleep(60_000, 60_000):
                pass
        finally:
            server.close()
            broker.close()
        # Without descriptors or disk space, a stop is not clean.
        if self.machine.files.modified_ns(f"{DATA}/{CLEAN_SHUTDOWN}") is not None:
            self._clean_stops += 1

    @property
    def running(self) -> Broker | None:
        """The broker, if the current process has started it and is not stopping."""
        is_up = self.is_alive and self._started == self.starts and not self.must_stop
        return self._broker if is_up else None

    @property
    def crashes(self) -> int:
        """The number of its processes that did not stop cleanly."""
        return self.starts - self._clean_stops - self.is_alive

    def has_open(self, transactional_id: str) -> bool:
        """Whether a producer has an open transaction."""
        broker = self.running
        entry = None if broker is None else broker.state.transactions.get(transactional_id)
        return entry is not None and entry.state is TransactionState.ONGOING

    def stop_after_acknowledgements(
        self, client: str, count: int, stop: Callable[[], None]
    ) -> None:
        """Call `stop` when a client has received this many acknowledgements."""
        self._acknowledged_client, self._acknowledgements_left, self._stop = client, count, stop

    def acknowledged_to(self, client: str) -> None:
        """Called after an acknowledgement to a client; a fault may stop the broker here."""
        if self._acknowledgements_left and self.is_alive and client == self._acknowledged_client:
            self._acknowledgements_left -= 1
            if not self._acknowledgements_left:
                self._stop()

    def after_commits(self, client: str, count: int, action: Callable[[], None]) -> None:
        """Call `action` when a client has requested this many commits."""
        self._commits[client] = (count, action)

    def _committed(self, client: str) -> None:
        left, action = self._commits.pop(client, (0, None))
        if action is None:
            return
        if left == 1:
            action()
        else:
            self._commits[client] = (left - 1, action)

    def start(self) -> None:
        self._acknowledgements_left = 0
        super().start()

    def has_rolled_unflushed(self) -> bool:
        """Whether a log has records in its last segment while earlier ones are not on disk."""
        broker = self.running
        return broker is not None and any(
            log.segments[-1].size_bytes > 0 and log.durable_offset < log.segments[-1].base_offset
            for log in broker.state.storage.logs()
            if log.segments
        )

    def write_bad_record(self) -> None:
        """Append an unreadable record to an internal topic, if there is one."""
        broker, process = self.running, self.process
        if broker is None or process is None:
            return
        topic = self.random.choice(sorted(INTERNAL_TOPICS))
        value = self.random.randbytes(self.random.choice((0, 1, 20)))

        def append() -> None:
            with broker.lock:
                log = broker.state.storage.get(TopicPartition(topic, 0))
                if log is not None:
                    now_ms = broker.clock.now_ms()
                    batch = bytearray(encode_batch([(value, value, (), now_ms)]))
                    log.append(memoryview(batch), origin="coordinator", now_ms=now_ms)
                    self.note("has a bad record in", topic)

        def attempt() -> None:
            try:
                append()
            except (MillstreamError, OSError) as error:  # if the disk has a fault, too
                self.note("refused a bad record:", str(error))

        self.platform.simulation.start(process, "bad record", attempt)
