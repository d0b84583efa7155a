"""ServerCluster: the servers of the service that are alive, and the lags of their stores.

A server with ksql.heartbeat.enable sends heartbeats to the others, and with
ksql.lag.reporting.enable the lags of its stores. It knows the other servers from the queries that
they run; it also remembers any other server that sends a heartbeat, but sends none to it.
"""

import logging
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

import httpx
import msgspec

from broker import concurrency
from broker.errors import MillstreamError
from broker.rest import Json
from sql.engine.engine import Engine
from sql.engine.query_metrics import query_metrics
from sql.server.answers import BAD_REQUEST, NOT_FOUND, Refused

logger = logging.getLogger(__name__)

HEARTBEATS = "ksql.heartbeat.enable"
LAGS = "ksql.lag.reporting.enable"
DISCOVER_EVERY_MS = 2_000
LAGS_EVERY_MS = 5_000
SEND_SECONDS_MAX = 1.0
HOSTS_MAX = 100
HOST_CHARACTERS_MAX = 255
PORT_MAX = 65_535
BEATS_MAX = 1_000
LAGS_MAX = 2_000  # partitions of stores
NO_LAGS: Mapping[str, object] = {"stateStoreLags": {}, "updateTimeMs": 0}


Name = Annotated[str, msgspec.Meta(max_length=500)]


class PartitionLag(msgspec.Struct, frozen=True):
    """The lag of a store's partition; field names are those of the JSON."""

    currentOffsetPosition: int
    endOffsetPosition: int
    offsetLag: int


class StoreLags(msgspec.Struct, frozen=True):
    """The lag of a store."""

    lagByPartition: dict[Name, PartitionLag]


class HostStoreLags(msgspec.Struct, frozen=True):
    """The lags of all stores of a server."""

    stateStoreLags: dict[Name, StoreLags]
    updateTimeMs: int


@dataclass(slots=True)
class OtherServer:
    """The heartbeats and lags of another server."""

    beats_ms: deque[int] = field(default_factory=lambda: deque(maxlen=BEATS_MAX))
    changed_ms: int = 0
    alive: bool = False
    lags: Mapping[str, object] = field(default_factory=lambda: NO_LAGS)


class ServerCluster:
    """Receives heartbeats and lags of other servers, and sends its own. Thread-safe."""

    def __init__(self, engine: Engine) -> None:
        """No heartbeats are sent before `start`."""
        self._engine = engine
        self._clock = engine.clock
        self._lock = concurrency.Lock()
        self._others: dict[str, OtherServer] = {}
        self._ending = concurrency.Condition()
        self._ended = False
        self._thread: concurrency.Thread | None = None

    def start(self) -> None:
        """Start sending heartbeats, if they are enabled."""
        if self._engine.config.flag(HEARTBEATS):
            self._thread = concurrency.Thread(target=self._run, name="sql-heartbeat", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop sending heartbeats."""
        with self._ending:
            self._ended = True
            self._ending.notify_all()
        if self._thread is not None:
            self._thread.join()

    # --- from other servers ---------------------------------------------------------------------

    def heartbeat(self, content: Mapping[str, object]) -> Json:
        """POST /heartbeat: another server is alive."""
        self._check(HEARTBEATS)
        host = _host(content, "hostInfo")
        timestamp = content.get("timestamp")
        if type(timestamp) is not int:
            raise Refused(BAD_REQUEST, '"timestamp" must be an integer')
        with self._lock:
            # This server's time: clocks of servers differ.
            self._other(host).beats_ms.append(self._clock.monotonic_ms())
        return {"isOk": True}

    def lag(self, content: Mapping[str, object]) -> Json:
        """POST /lag: the lags of another server's stores."""
        self._check(LAGS)
        host, lags = _host(content, "ksqlHost"), _checked_lags(content.get("hostStoreLags"))
        with self._lock:
            self._other(host).lags = lags
        return {"isOk": True}

    def _check(self, setting: str) -> None:
        if not self._engine.config.flag(setting):
            raise Refused(NOT_FOUND, f"This endpoint is disabled: {setting} is false")

    def _other(self, host: str) -> OtherServer:
        result = self._others.get(host)
        if result is None:
            if len(self._others) >= HOSTS_MAX:
                raise Refused(BAD_REQUEST, f"Too many servers: at most {HOSTS_MAX} are tracked")
            result = self._others[host] = OtherServer()
        return result

    # --- responses ------------------------------------------------------------------------------

    def status(self) -> Json:
        """GET /clusterStatus: this server and the others."""
        self._check(HEARTBEATS)
        now_ms, address = self._clock.now_ms(), self._engine.config.address
        found = {
            address: {
                "hostAlive": True,
                "lastStatusUpdateMs": now_ms,
                "activeStandbyPerQuery": self._stores_of_queries(),
                "hostStoreLags": self._lags(),
            }
        }
        with self._lock:
            for host, other in sorted(self._others.items()):
                if host != address:
                    self._judge(other)
                    found[host] = {
                        "hostAlive": other.alive,
                        "lastStatusUpdateMs": other.changed_ms,
                        "activeStandbyPerQuery": {},
                        "hostStoreLags": other.lags,
                    }
        return {"clusterStatus": found}

    def _judge(self, other: OtherServer) -> None:
        """A server is dead if it missed the latest heartbeats."""
        now_ms = self._clock.monotonic_ms()
        config = self._engine.config
        every_ms = config.whole("ksql.heartbeat.send.interval.ms")
        missed_max = config.whole("ksql.heartbeat.missed.threshold.ms")
        since_ms = now_ms - config.whole("ksql.heartbeat.window.ms")
        while other.beats_ms and other.beats_ms[0] < since_ms:
            other.beats_ms.popleft()
        last_ms = other.beats_ms[-1] if other.beats_ms else since_ms
        alive = bool(other.beats_ms) and (now_ms - last_ms) // max(1, every_ms) < missed_max
        if alive != other.alive or not other.changed_ms:
            other.alive, other.changed_ms = alive, self._clock.now_ms()

    def _stores_of_queries(self) -> dict[str, object]:
        result: dict[str, object] = {}
        for query_id, each in list(self._engine.commands.running.items()):
            metrics, group = query_metrics(each.runtime), each.runtime.application_id
            following = {store for store, _ in metrics.standbys}
            stores = {each.store for each in metrics.stores}
            copied = {(f"{group}-{store}-changelog", number) for store, number in metrics.standbys}
            result[query_id] = {
                "activeStores": sorted(stores - following),
                "activePartitions": _places(metrics.inputs),
                "standByStores": sorted(following),
                "standByPartitions": _places(copied),
            }
        return result

    def _lags(self) -> Mapping[str, object]:
        if not self._engine.config.flag(LAGS):
            return NO_LAGS
        # Any: numbers by partition, by store.
        found: dict[str, Any] = {}
        for query_id, running in list(self._engine.commands.running.items()):
            for each in query_metrics(running.runtime).stores:
                store = found.setdefault(f"{query_id}#{each.store}", {"lagByPartition": {}})
                store["lagByPartition"][str(each.partition)] = {
                    "currentOffsetPosition": each.position,
                    "endOffsetPosition": each.position + each.behind,
                    "offsetLag": each.behind,
                }
        return {"stateStoreLags": found, "updateTimeMs": self._clock.now_ms()}

    # --- requests to other servers --------------------------------------------------------------

    def _run(self) -> None:
        every_ms = max(1, self._engine.config.whole("ksql.heartbeat.send.interval.ms"))
        rounds = _HeartbeatRounds(self._clock.monotonic_ms() - LAGS_EVERY_MS)
        with httpx.Client(timeout=SEND_SECONDS_MAX) as client:
            while not self._ended:
                try:
                    self._round(client, rounds)
                except Exception as error:  # other servers rely on heartbeats
                    rounds.report(error)
                with self._ending:
                    if not self._ended:
                        self._clock.wait(self._ending, every_ms)

    def _round(self, client: httpx.Client, rounds: "_HeartbeatRounds") -> None:
        """Send a heartbeat; periodically also find other servers and send lags."""
        now_ms = self._clock.monotonic_ms()
        if now_ms - rounds.discovered_ms >= DISCOVER_EVERY_MS:
            rounds.discovered_ms = now_ms
            rounds.hosts = sorted(self._hosts())
        self._send(client, rounds.hosts, "/heartbeat", self._beat())
        if self._engine.config.flag(LAGS) and now_ms - rounds.lags_sent_ms >= LAGS_EVERY_MS:
            rounds.lags_sent_ms = now_ms
            lags = {"ksqlHost": self._own(), "hostStoreLags": self._lags()}
            self._send(client, rounds.hosts, "/lag", lags)

    def _hosts(self) -> set[str]:
        """The servers that run parts of the queries."""
        found: set[str] = set()
        for each in list(self._engine.commands.running.values()):
            if each.where is not None:
                try:
                    found.update(each.runtime.elsewhere(each.where.store))
                except MillstreamError as error:
                    logger.debug("query %s is not running: %s", each.info.id, error)
        return found - {self._engine.config.address}

    def _own(self) -> Json:
        host, _, port = self._engine.config.address.rpartition(":")
        return {"host": host, "port": int(port) if port.isdecimal() else 0}

    def _beat(self) -> Json:
        return {"hostInfo": self._own(), "timestamp": self._clock.now_ms()}

    def _send(self, client: httpx.Client, hosts: list[str], path: str, content: Json) -> None:
        for host in hosts:
            if self._ended:
                return
            try:
                client.post(f"http://{host}{path}", json=content)
            except (httpx.HTTPError, httpx.InvalidURL) as error:
                logger.debug("server %s does not respond: %s", host, error)


class _HeartbeatRounds:
    """The state of the heartbeat thread between rounds."""

    def __init__(self, before_ms: int) -> None:
        self.hosts: list[str] = []
        self.discovered_ms = self.lags_sent_ms = before_ms
        self._reported = ""

    def report(self, error: Exception) -> None:
        """Log an error, unless it is the same as in the previous round: rounds are short."""
        shown = repr(error)
        if shown != self._reported:
            logger.error("could not send heartbeats, retrying: %s", shown, exc_info=error)
        self._reported = shown


def _places(partitions: Iterable[tuple[str, int]]) -> list[dict[str, object]]:
    return [{"topic": topic, "partition": number} for topic, number in sorted(partitions)]


def _checked_lags(lags: object) -> Mapping[str, object]:
    """Lags in ksqlDB's format, with a limited number of partitions."""
    try:
        found = msgspec.convert(lags, HostStoreLags)
    except msgspec.ValidationError as error:
        raise Refused(BAD_REQUEST, f'"hostStoreLags" is invalid: {error}') from error
    stores = found.stateStoreLags.values()
    if sum(1 + len(each.lagByPartition) for each in stores) > LAGS_MAX:
        raise Refused(BAD_REQUEST, f'"hostStoreLags" has more than {LAGS_MAX} partitions')
    checked: dict[str, object] = msgspec.to_builtins(found)
    return checked


def _host(content: Mapping[str, object], name: str) -> str:
    found = content.get(name)
    host = found.get("host") if isinstance(found, dict) else None
    port = found.get("port") if isinstance(found, dict) else None
    if not isinstance(host, str) or not 0 < len(host) <= HOST_CHARACTERS_MAX:
        raise Refused(BAD_REQUEST, f'"{name}" must have a "host" and a "port"')
    if type(port) is not int or not 0 < port <= PORT_MAX:
        raise Refused(BAD_REQUEST, f'"{name}" must have a "host" and a "port"')
    return f"{host}:{port}"
