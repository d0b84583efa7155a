"""Servers that tell each other that they are there."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from broker.broker import Broker
from broker.clock import ManualClock
from broker.config import BrokerConfig
from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig
from sql.server.answers import Refused
from sql.server.cluster import HOSTS_MAX, LAGS_MAX, ServerCluster
from sql.server.server import SqlServer
from tests.sql.engine.conftest import SETTINGS as BROKER_SETTINGS
from tests.sql.engine.engines import ORDERS, SETTINGS, TOTALS
from tests.sql.server.test_peers import free_address
from tests.support.peer import wait_until

SECONDS_MAX = 30.0
ON = {"ksql.heartbeat.enable": True, "ksql.lag.reporting.enable": True}
# A busy machine may be late: none of these servers is dead.
PATIENT = {"ksql.heartbeat.window.ms": 60_000, "ksql.heartbeat.missed.threshold.ms": 500}
OTHER = {"host": "there", "port": 8088}
LAGS = {"stateStoreLags": {"q#s": {"lagByPartition": {}}}, "updateTimeMs": 5}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    config = BrokerConfig.from_properties(BROKER_SETTINGS)
    with Broker(config, data_directory=str(tmp_path / "broker")) as broker:
        yield broker


def engine_with(broker: Broker, folder: Path, **more: object) -> Engine:
    settings = {**SETTINGS, **ON, "ksql.advertised.listener": "http://here:1"}
    return Engine(broker, data_directory=folder, config=SqlConfig({**settings, **more}))


@pytest.mark.slow
def test_who_misses_heartbeats_is_dead(broker: Broker, tmp_path: Path) -> None:
    clock = ManualClock()
    engine = engine_with(broker, tmp_path)
    engine.clock = clock
    cluster = ServerCluster(engine)

    def alive() -> dict[str, bool]:
        status = cluster.status()
        assert isinstance(status, dict)
        return {host: each["hostAlive"] for host, each in status["clusterStatus"].items()}

    try:
        assert alive() == {"here:1": True}
        assert cluster.heartbeat({"hostInfo": OTHER, "timestamp": 1}) == {"isOk": True}
        assert alive() == {"here:1": True, "there:8088": True}
        clock.advance(299)
        assert alive()["there:8088"]
        clock.advance(1)
        assert not alive()["there:8088"]
        cluster.heartbeat({"hostInfo": OTHER, "timestamp": 1})
        assert alive()["there:8088"]
        clock.advance(5_000)
        assert not alive()["there:8088"]
        assert cluster.lag({"ksqlHost": OTHER, "hostStoreLags": LAGS}) == {"isOk": True}
        assert "q#s" in str(cluster.status())
    finally:
        cluster.close()
        engine.close()


@pytest.mark.slow
@pytest.mark.parametrize("jump_ms", [-3_600_000, 3_600_000])
def test_a_wall_clock_that_jumps_kills_no_server(
    broker: Broker, tmp_path: Path, jump_ms: int
) -> None:
    clock = ManualClock()
    engine = engine_with(broker, tmp_path)
    engine.clock = clock
    cluster = ServerCluster(engine)

    def alive() -> bool:
        status = cluster.status()
        assert isinstance(status, dict)
        found: bool = status["clusterStatus"]["there:8088"]["hostAlive"]
        return found

    try:
        cluster.heartbeat({"hostInfo": OTHER, "timestamp": 1})
        clock.set_wall_clock(clock.now_ms() + jump_ms)
        assert alive()
        clock.advance(300)
        assert not alive()
    finally:
        cluster.close()
        engine.close()


@pytest.mark.slow
def test_heartbeats_go_on_after_any_error(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_with(broker, tmp_path, **{"ksql.heartbeat.send.interval.ms": 1})
    cluster = ServerCluster(engine)
    rounds: list[str] = []

    def sent(client: object, hosts: object, path: str, content: object) -> None:
        rounds.append(path)
        if len(rounds) == 1:
            raise RuntimeError("nobody expected this")

    monkeypatch.setattr(cluster, "_send", sent)
    cluster.start()
    try:
        wait_until(lambda: rounds.count("/heartbeat") >= 3, "the next heartbeats")
    finally:
        cluster.close()
        engine.close()


@pytest.mark.slow
def test_lags_are_checked_and_bounded(broker: Broker, tmp_path: Path) -> None:
    engine = engine_with(broker, tmp_path)
    cluster = ServerCluster(engine)
    try:
        for host in ({}, {"host": "", "port": 1}, {"host": "x", "port": 0}, {"host": 1, "port": 1}):
            with pytest.raises(Refused):
                cluster.heartbeat({"hostInfo": host, "timestamp": 1})
        with pytest.raises(Refused):
            cluster.heartbeat({"hostInfo": OTHER})
        lag = {"currentOffsetPosition": 1, "endOffsetPosition": 3, "offsetLag": 2}
        many = {str(number): lag for number in range(LAGS_MAX)}
        wrong: tuple[object, ...] = (None, [], {"q#s": {}}, {"q#s": {"lagByPartition": {"0": {}}}})
        for stores in wrong:
            reported: dict[str, object] = {"stateStoreLags": stores, "updateTimeMs": 1}
            with pytest.raises(Refused, match="is invalid"):
                cluster.lag({"ksqlHost": OTHER, "hostStoreLags": reported})
        reported = {"stateStoreLags": {"q#s": {"lagByPartition": many}}, "updateTimeMs": 1}
        with pytest.raises(Refused, match="more than"):
            cluster.lag({"ksqlHost": OTHER, "hostStoreLags": reported})
        several = {"stateStoreLags": {"q#s": {"lagByPartition": {"0": lag}}}, "updateTimeMs": 1}
        cluster.lag({"ksqlHost": {"host": "h0", "port": 1}, "hostStoreLags": several})
        assert "'offsetLag': 2" in str(cluster.status())
        for number in range(HOSTS_MAX):
            cluster.heartbeat({"hostInfo": {"host": f"h{number}", "port": 1}, "timestamp": 1})
        with pytest.raises(Refused, match="at most 100 are tracked"):
            cluster.heartbeat({"hostInfo": OTHER, "timestamp": 1})
    finally:
        engine.close()


@pytest.mark.slow
def test_servers_find_each_other_by_their_queries(broker: Broker, tmp_path: Path) -> None:
    with ExitStack() as opened:
        urls, addresses = [], []
        for name in ("one", "two"):
            address = free_address()
            advertised = {"ksql.advertised.listener": f"http://{address}"}
            settings = {**SETTINGS, **ON, **PATIENT, **advertised}
            engine = Engine(
                broker, data_directory=tmp_path / name, config=SqlConfig(settings), follow=True
            )
            opened.enter_context(engine)
            urls.append(opened.enter_context(SqlServer(engine, listen=address)).url)
            addresses.append(address)
            if name == "one":
                engine.execute(ORDERS + TOTALS)

        def both_alive(url: str) -> bool:
            found = httpx.get(f"{url}/clusterStatus", timeout=SECONDS_MAX).json()["clusterStatus"]
            there = [host for host, each in found.items() if each["hostAlive"]]
            stores = str(found)
            return sorted(there) == sorted(addresses) and "activeStores" in stores

        for url in urls:
            wait_until(lambda url=url: both_alive(url), "two servers that are alive")  # type: ignore[misc]
