"""Pull queries on tables that are spread over several servers."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from decimal import Decimal
from pathlib import Path

import httpx
import pytest

from broker.broker import Broker
from broker.config import BrokerConfig
from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig
from sql.errors import StatementFailed
from sql.server.peers import HttpPeers
from sql.server.server import SqlServer
from tests.sql.engine.conftest import SETTINGS as BROKER_SETTINGS
from tests.sql.engine.engines import ORDERS, SETTINGS, until_rows, wait_for
from tests.support.ports import held_ports

TABLE = (
    "CREATE TABLE totals AS SELECT id, CAST(SUM(amount) AS DECIMAL(5, 2)) AS d, "
    "MAP('x' := 1.5E0) AS m, CAST('2020-01-02T03:04:05' AS TIMESTAMP) AS t, 1E0 AS f "
    "FROM orders GROUP BY id;"
)


def free_address() -> str:
    return f"127.0.0.1:{held_ports(1)[0]}"


@pytest.fixture
def engines(tmp_path: Path) -> Iterator[list[Engine]]:
    """Two servers of one service."""
    with ExitStack() as opened:
        config = BrokerConfig.from_properties(BROKER_SETTINGS)
        broker = opened.enter_context(Broker(config, data_directory=str(tmp_path / "broker")))
        peers = opened.enter_context(closing(HttpPeers()))
        started = []
        for name in ("one", "two"):
            address = free_address()
            settings = SqlConfig({**SETTINGS, "ksql.advertised.listener": f"http://{address}"})
            engine = Engine(
                broker, data_directory=tmp_path / name, config=settings, follow=True, peers=peers
            )
            started.append(opened.enter_context(engine))
            opened.enter_context(SqlServer(engine, listen=address))
        yield started


@pytest.mark.slow
def test_rows_of_other_servers_are_found(engines: list[Engine]) -> None:
    first, second = engines
    first.execute(ORDERS + TABLE)
    keys = [f"k{number}" for number in range(10)]
    first.execute("".join(f"INSERT INTO orders VALUES ('{key}', 'x', 1);" for key in keys))
    wait_for(lambda: bool(second.commands.running), lambda: "nothing runs there")
    [query] = first.commands.running.values()
    assert query.where is not None
    store = query.where.store
    there = second.config.address
    wait_for(lambda: query.runtime.elsewhere(store) == [there], lambda: "all is here")
    time_ms = 1_577_934_245_000
    wanted: list[tuple[object, ...]] = [
        (key, Decimal("1.00"), {"x": 1.5}, time_ms, 1.0) for key in keys
    ]
    for engine in engines:
        until_rows(engine, "SELECT * FROM totals;", wanted)


@pytest.mark.slow
def test_a_server_that_is_not_there_fails_the_query() -> None:
    with closing(HttpPeers()) as peers, pytest.raises(StatementFailed, match="did not respond"):
        list(peers.pull(free_address(), "SELECT 1;", {}))


def test_what_another_server_refuses_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = httpx.Response(
        400, text='{"@type":"generic_error","error_code":40000,"message":"no"}'
    )
    with closing(HttpPeers()) as peers:
        monkeypatch.setattr(peers._client, "post", lambda *_, **__: refusal)
        with pytest.raises(StatementFailed, match="refused: no"):
            list(peers.pull("there:1", "SELECT 1;", {}))
