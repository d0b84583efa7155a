"""A server on a broker, with a stream, a table and some rows."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from broker.broker import Broker
from broker.config import BrokerConfig
from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig
from sql.server.server import SqlServer
from tests.sql.engine.conftest import SETTINGS as BROKER_SETTINGS
from tests.sql.engine.engines import SETTINGS, rows
from tests.support.peer import wait_until

SECONDS_MAX = 60.0
# The server closes connections that are idle for a while, perhaps just when one is used again.
NOTHING_KEPT = httpx.Limits(max_keepalive_connections=0)
QUICK = {"ksql.server.command.response.timeout.ms": 100}
STATEMENTS = """
CREATE STREAM orders (id STRING KEY, item STRING, amount INT)
  WITH (kafka_topic='orders', value_format='JSON', partitions=1);
CREATE TABLE totals AS SELECT id, SUM(amount) AS total FROM orders GROUP BY id;
CREATE STREAM kinds (k INT KEY, d DECIMAL(5, 2), f DOUBLE, b BYTES, t TIMESTAMP, s STRUCT<x DATE>,
  m MAP<STRING, TIME>, a ARRAY<DECIMAL(3, 1)>)
  WITH (kafka_topic='kinds', value_format='JSON', partitions=1);
INSERT INTO orders VALUES ('a', 'pen', 1);
INSERT INTO orders VALUES ('b', 'ink', 5);
"""


@dataclass(frozen=True, slots=True)
class Served:
    """A server, its engine, and a client."""

    engine: Engine
    server: SqlServer
    client: httpx.Client


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all tests of a module: they use names of their own."""
    folder: Path = tmp_path_factory.mktemp("served")
    config = BrokerConfig.from_properties(BROKER_SETTINGS)
    with (
        Broker(config, data_directory=str(folder / "broker")) as broker,
        Engine(broker, data_directory=folder / "sql", config=SqlConfig(SETTINGS | QUICK)) as engine,
        SqlServer(engine, listen="127.0.0.1:0", cluster_id="some-cluster") as server,
        httpx.Client(base_url=server.url, timeout=SECONDS_MAX, limits=NOTHING_KEPT) as client,
    ):
        engine.execute(STATEMENTS)
        wait_until(lambda: len(rows(engine, "SELECT * FROM totals;")) == 2, "the totals")
        yield Served(engine, server, client)
