"""BrokerActor: the broker, in a process of its own, on a disk that survives it."""

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
from millstream.simulation.promises import check_promises

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import Platform

DATA = "/data"
# Requests by which an application, a connector or a query says how far it has come.
COMMITS = (ApiKey.OFFSET_COMMIT, ApiKey.TXN_OFFSET_COMMIT, ApiKey.END_TXN)


class ObservedBroker(Broker):
    """A broker that reports the commits it was asked for; who is told may end the client."""

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
        """Answer a request as any broker does."""
        answer = super().handle(api_key, version, request, connection, background=background)
        if api_key in COMMITS:
            self.committed(connection.client_host)
        return answer


class BrokerActor(Actor):
    """Starts a broker and serves it, until it is asked to stop."""

    def __init__(self, name: str, platform: "Platform") -> None:
        """Not started."""
        super().__init__(name, platform)
        self._broker: Broker | None = None
        self._started = 0  # which of its processes has started the broker
        self._clean_stops = 0
        self._answered_to = ""  # whose answers count
        self._answers_left = 0  # until `_stop` is called; 0: never
        self._stop: Callable[[], None] = lambda: None
        self._commits: dict[str, tuple[int, Callable[[], None]]] = {}  # of clients to be ended

    def live(self) -> None:
        """Serve."""
        assert self.machine is not None
        assert self.process is not None
        config = BrokerConfig.from_properties(dict(self.platform.scenario.settings))
        broker = ObservedBroker(config, machine=self.machine, data_directory=DATA)
        broker.committed = self._committed
        self._broker = broker.start()
        self._started = self.starts
        self.platform.watch_lock(broker)
        self.note("is up")
        check_promises(self.platform.seen, broker)
        server = self.platform.network.serve(self.process, broker, self.platform.address)
        try:
            while self.rest(60_000, 60_000):
                pass
        finally:
            server.close()
            broker.close()
        # Without descriptors, or on a full disk, a stop is not in order, as after a crash.
        if self.machine.files.modified_ns(f"{DATA}/{CLEAN_SHUTDOWN}") is not None:
            self._clean_stops += 1

    @property
    def running(self) -> Broker | None:
        """The broker, if the present process has started it and was not told to stop."""
        is_up = self.is_alive and self._started == self.starts and not self.must_stop
        return self._broker if is_up else None

    @property
    def crashes(self) -> int:
        """How many of its processes did not end in order."""
        return self.starts - self._clean_stops - self.is_alive

    def has_open(self, transactional_id: str) -> bool:
        """Whether a producer is in the middle of a transaction."""
        broker = self.running
        found = None if broker is None else broker.state.transactions.get(transactional_id)
        return found is not None and found.state is TransactionState.ONGOING

    def after_answers(self, client: str, count: int, stop: Callable[[], None]) -> None:
        """Do something when a client of the present process has had so many answers."""
        self._answered_to, self._answers_left, self._stop = client, count, stop

    def promised(self, client: str) -> None:
        """A client was told just now that something is safe: it may be the last thing it heard."""
        if self._answers_left and self.is_alive and client == self._answered_to:
            self._answers_left -= 1
            if not self._answers_left:
                self._stop()

    def after_commits(self, client: str, count: int, do: Callable[[], None]) -> None:
        """Do something when a client has asked for so many commits."""
        self._commits[client] = (count, do)

    def _committed(self, client: str) -> None:
        left, do = self._commits.pop(client, (0, None))
        if do is None:
            return
        if left == 1:
            do()
        else:
            self._commits[client] = (left - 1, do)

    def start(self) -> None:
        """Start a process."""
        self._answers_left = 0
        super().start()

    def has_rolled_unflushed(self) -> bool:
        """Whether a log has records in its last segment while some before are not on the disk."""
        broker = self.running
        return broker is not None and any(
            log.segments[-1].size_bytes > 0 and log.durable_offset < log.segments[-1].base_offset
            for log in broker.state.storage.logs()
            if log.segments
        )

    def write_bad_record(self) -> None:
        """Put a record that cannot be read into an internal topic, if there is one."""
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
            except (MillstreamError, OSError) as error:  # while the disk has a fault, too
                self.note("refused a bad record:", str(error))

        self.platform.simulation.start(process, "bad record", attempt)
