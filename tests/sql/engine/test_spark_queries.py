"""Persistent queries on Spark, from statements to rows: their life, and what is asked of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.broker import Broker
from broker.config import BrokerConfig
from sql.engine import entities as en
from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig
from sql.engine.spark_runtime import SparkRuntime
from sql.errors import StatementFailed
from sql.queries import QueryState
from tests.sql.engine.conftest import SETTINGS
from tests.sql.engine.engines import engine_of, rows
from tests.support.peer import wait_until
from tests.support.spark import MARKS, MASTER, shared_session

LIMIT_S = 600.0  # on a machine that is busy
ORDERS = """
    CREATE STREAM orders (id STRING KEY, amount INT, shop STRING)
        WITH (kafka_topic='orders', value_format='JSON', partitions=2);
"""
TOTALS = "CREATE TABLE {} AS SELECT shop, COUNT(*) AS n, SUM(amount) s FROM orders GROUP BY shop;"


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(StatementFailed, match="it must be one of native, spark"):
        SqlConfig({"engine": "abacus"})


def test_a_query_stays_on_the_engine_that_it_was_made_for(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS.format("totals"))
    again = engine_of(broker, tmp_path)
    again.config.alter("engine", "spark")
    again.commands.start()
    try:
        [running] = again.commands.running.values()
        assert not isinstance(running.runtime, SparkRuntime)
        with pytest.raises(StatementFailed, match="it runs on the native engine"):
            again.execute(TOTALS.format("totals").replace("CREATE", "CREATE OR REPLACE"))
    finally:
        again.close()


@contextmanager
def engine_on_spark(folder: Path, **settings: object) -> Iterator[Engine]:
    """An engine on a broker in this process, which Spark's workers must reach."""
    shared_session()
    config = BrokerConfig.from_properties(SETTINGS)
    given = {"auto.offset.reset": "earliest", "spark.master": MASTER, **settings}
    with (
        Broker(config, data_directory=str(folder / "broker")) as broker,
        Engine(
            broker, data_directory=folder / "sql", config=SqlConfig(given), backend="spark"
        ) as opened,
    ):
        yield opened


def insert(engine: Engine, numbers: range) -> None:
    for number in numbers:
        engine.execute(f"INSERT INTO orders VALUES ('o{number}', {number}, 's{number % 3}');")


def totals(numbers: range) -> list[tuple[object, ...]]:
    """What the table has after some orders."""
    shops: dict[str, list[int]] = {}
    for number in numbers:
        shops.setdefault(f"s{number % 3}", []).append(number)
    return sorted((shop, len(each), sum(each)) for shop, each in shops.items())


def found(engine: Engine, table: str) -> list[tuple[object, ...]]:
    """What a pull query finds, in order."""
    return sorted(rows(engine, f"SELECT * FROM {table};"), key=str)


def until_totals(engine: Engine, name: str, numbers: range) -> None:
    wait_until(
        lambda: found(engine, name) == totals(numbers),
        f"{name} of {numbers}",
        timeout_s=LIMIT_S,
    )


class TestOnSpark:
    """With a real Spark, in one session."""

    pytestmark = MARKS

    def test_a_query_has_its_results_and_leaves_nothing_when_it_is_dropped(
        self, tmp_path: Path
    ) -> None:
        with engine_on_spark(tmp_path) as engine:
            engine.execute(ORDERS)
            insert(engine, range(12))
            engine.execute(TOTALS.format("there"))
            until_totals(engine, "there", range(12))
            checkpoint = next((tmp_path / "sql" / "spark" / "checkpoints").iterdir())
            engine.execute("DROP TABLE there DELETE TOPIC;")
            assert not checkpoint.exists()

    @pytest.mark.long
    def test_a_query_goes_on_after_a_pause_a_replacement_and_a_restart(
        self, tmp_path: Path
    ) -> None:
        with engine_on_spark(tmp_path) as engine:
            engine.execute(f"""{ORDERS}
                {TOTALS.format("there")}
                SET 'engine'='native';
                {TOTALS.format("here")}
            """)
            insert(engine, range(12))
            until_totals(engine, "there", range(12))
            until_totals(engine, "here", range(12))
            assert rows(engine, "SELECT n, s FROM there WHERE shop = 's1';") == [(4, 22)]
            there = next(each for each in engine.state.queries if "THERE" in each)
            self._check_shown(engine, there)

            engine.execute(f"PAUSE {there};")
            assert engine.commands.running[there].runtime.state is QueryState.PAUSED
            insert(engine, range(12, 15))
            engine.execute(f"RESUME {there};")
            until_totals(engine, "there", range(15))

        with engine_on_spark(tmp_path) as engine:
            insert(engine, range(15, 18))
            until_totals(engine, "there", range(18))
            engine.execute("""
                CREATE OR REPLACE TABLE there AS SELECT shop, COUNT(*) AS n, SUM(amount) s
                FROM orders WHERE amount < 1000 GROUP BY shop;
            """)
            insert(engine, range(18, 21))
            until_totals(engine, "there", range(21))
            # Each change once: the sink's records are counted, not only the last of each key.
            changes = engine.query("SELECT n FROM there EMIT CHANGES LIMIT 21;")
            counts = sorted(str(row.values[0]) for row in changes.rows())
            assert counts == sorted(map(str, [*range(1, 8)] * 3))
            changes.close()
            checkpoint = next((tmp_path / "sql" / "spark" / "checkpoints").iterdir())
            engine.execute("DROP TABLE there DELETE TOPIC;")
            assert not checkpoint.exists()

    def _check_shown(self, engine: Engine, query_id: str) -> None:
        [shown] = engine.execute(f"EXPLAIN {query_id};")
        assert isinstance(shown, en.QueryDescription)
        progress = shown.query_description.progress
        assert progress is not None
        assert (progress.engine, progress.offsets_behind) == ("spark", 0)
        assert progress.batch_duration_ms > 0
        assert shown.query_description.overridden_properties == {"engine": "spark"}
        [described] = engine.execute("DESCRIBE there EXTENDED;")
        assert isinstance(described, en.SourceDescription)
        [group] = described.source_description.query_offset_summaries
        [topic] = group.topic_summaries
        assert all(each.consumer_offset == each.log_end_offset for each in topic.offsets)

    def test_a_bounded_engine_processes_what_is_there(self, tmp_path: Path) -> None:
        with engine_on_spark(tmp_path, **{"spark.bounded": True}) as engine:
            engine.execute(ORDERS + TOTALS.format("totals"))
            insert(engine, range(12))
            assert rows(engine, "SELECT * FROM totals;") == []
            assert engine.run_bounded()
            assert found(engine, "totals") == totals(range(12))

    @pytest.mark.long
    def test_a_bounded_engine_processes_what_is_there_and_then_what_is_new(
        self, tmp_path: Path
    ) -> None:
        reported: list[tuple[str, bool]] = []
        with engine_on_spark(tmp_path, **{"spark.bounded": True}) as engine:
            engine.execute(f"""{ORDERS}
                {TOTALS.format("totals")}
                CREATE TABLE large AS SELECT shop, s FROM totals WHERE s > 20;
            """)
            insert(engine, range(12))
            assert rows(engine, "SELECT * FROM totals;") == []
            assert engine.run_bounded(lambda name, progress, done: reported.append((name, done)))
            assert found(engine, "totals") == totals(range(12))
            assert found(engine, "large") == [("s1", 22), ("s2", 26)]
            assert {name for name, done in reported if done} == set(engine.state.queries)
            reported.clear()
            assert engine.run_bounded(lambda name, progress, done: reported.append((name, done)))
            assert reported == []
        with engine_on_spark(tmp_path, **{"spark.bounded": True}) as engine:
            insert(engine, range(12, 15))
            assert engine.run_bounded()
            assert found(engine, "totals") == totals(range(15))
            assert len(rows(engine, "SELECT * FROM large;")) == 3
