"""Persistent queries on Spark, from statements to rows."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.broker import Broker
from broker.config import BrokerConfig
from broker.server import Server
from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig
from sql.engine.spark_runtime import check_servers
from sql.errors import SqlError, StatementFailed
from sql.queries import QueryState
from tests.support.spark import MASTER, shared_session

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "listeners": "PLAINTEXT://127.0.0.1:0",
}


def test_an_engine_that_nobody_has_is_refused() -> None:
    with pytest.raises(StatementFailed, match="it must be one of native, spark"):
        SqlConfig({"engine": "abacus"})


def test_a_broker_inside_the_process_cannot_be_reached_by_workers(tmp_path: Path) -> None:
    with (
        Broker(data_directory=str(tmp_path)) as broker,
        pytest.raises(SqlError, match="cannot reach a broker inside"),
    ):
        check_servers(broker)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    shared_session()
    config = BrokerConfig.from_properties(SETTINGS)
    with (
        Broker(config, data_directory=str(tmp_path / "broker")) as broker,
        Server(broker) as server,
        Engine(
            server.bootstrap,
            data_directory=tmp_path / "sql",
            config=SqlConfig({"auto.offset.reset": "earliest", "spark.master": MASTER}),
        ) as opened,
    ):
        yield opened


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_a_query_on_spark_writes_what_the_native_one_writes(engine: Engine) -> None:
    engine.execute("""
        CREATE STREAM orders (id STRING KEY, amount INT, shop STRING)
            WITH (kafka_topic='orders', value_format='JSON', partitions=1);
        CREATE TABLE here AS SELECT shop, COUNT(*) AS n, SUM(amount) s FROM orders GROUP BY shop;
        SET 'engine'='spark';
        CREATE TABLE there AS SELECT shop, COUNT(*) AS n, SUM(amount) s FROM orders GROUP BY shop;
    """)
    for number in range(12):
        engine.execute(f"INSERT INTO orders VALUES ('o{number}', {number}, 's{number % 3}');")
    rows = {}
    for name in ("here", "there"):
        changes = engine.query(f"SELECT * FROM {name} EMIT CHANGES LIMIT 12;")
        rows[name] = sorted(row.values for row in changes.rows())
    assert rows["there"] == rows["here"]
    states = {found.runtime.state for found in engine.commands.running.values()}
    assert states == {QueryState.RUNNING}
