"""A statement is parsed, planned and lowered once, and what was planned is what runs."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker import Broker
from sql.engine import engine as engine_module
from sql.engine import launching
from sql.engine.engine import Engine
from sql.engine.settings import SqlConfig
from sql.errors import StatementFailed
from sql.parse import parse
from sql.planner import Planner
from tests.sql.engine.engines import ORDERS, SETTINGS, TOTALS, engine_of, status, until_rows

BIG = "CREATE STREAM big AS SELECT * FROM orders WHERE amount > 10;"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often something is parsed, planned or lowered."""
    counts: Counter[str] = Counter()

    def count(where: Any, name: str, what: str) -> None:
        real: Callable[..., Any] = getattr(where, name)

        def counting(*given: Any, **named: Any) -> Any:
            counts[what] += 1
            return real(*given, **named)

        monkeypatch.setattr(where, name, counting)

    count(engine_module, "parse", "parse")
    count(Planner, "plan", "plan")
    count(launching, "add_queryable", "lower")
    return counts


def test_a_query_is_parsed_planned_and_lowered_once(
    broker: Broker, tmp_path: Path, counted: Counter[str]
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS)
        assert counted == {"parse": 1}
        for text in (
            TOTALS,
            BIG,
            "CREATE OR REPLACE STREAM big AS SELECT * FROM orders WHERE amount > 20;",
            "INSERT INTO big SELECT * FROM orders WHERE amount < 5;",
        ):
            counted.clear()
            engine.execute(text)
            assert counted == {"parse": 1, "plan": 1, "lower": 1}, text
        engine.execute("INSERT INTO orders VALUES ('a', 'x', 30);")
        until_rows(engine, "SELECT * FROM totals;", [("a", 30)])


def test_statements_of_a_script_are_planned_once_each(
    broker: Broker, tmp_path: Path, counted: Counter[str]
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(
            f"{ORDERS} {BIG} DEFINE least = '20';"
            "CREATE TABLE many AS SELECT item, COUNT(*) AS n FROM big WHERE amount > ${least} "
            "GROUP BY item; DROP TABLE many;"
            "CREATE OR REPLACE STREAM big AS SELECT * FROM orders WHERE amount > 20;"
        )
        assert counted == {"parse": 6, "plan": 3, "lower": 3}
        assert list(engine.state.queries) == ["CSAS_BIG_2"]


def test_a_restart_neither_parses_nor_plans(
    broker: Broker, tmp_path: Path, counted: Counter[str]
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS + BIG)
    counted.clear()
    with engine_of(broker, tmp_path) as engine:
        assert len(engine.state.queries) == 2
        assert counted == {"lower": 2}


def test_explain_plans_once(broker: Broker, tmp_path: Path, counted: Counter[str]) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS)
        counted.clear()
        engine.execute(f"EXPLAIN {BIG}")
        assert counted == {"parse": 1, "plan": 1, "lower": 1}


def test_a_headless_server_plans_each_statement_of_its_file_once(
    broker: Broker, tmp_path: Path, counted: Counter[str]
) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(ORDERS + TOTALS + BIG)
    config = SqlConfig({**SETTINGS, "ksql.queries.file": str(file)})
    for wanted in (
        {"parse": 3, "plan": 2, "lower": 2},
        {"parse": 3, "lower": 2},
    ):
        counted.clear()
        with Engine(broker, data_directory=tmp_path / "sql", config=config, headless=True):
            assert counted == wanted


def test_a_command_is_planned_again_if_the_catalog_has_changed_since(
    broker: Broker, tmp_path: Path, counted: Counter[str]
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS)
        sandbox = engine.commands.sandbox()
        statements = [
            engine.commands.prepared(sandbox, each.statement, each.text, {})  # type: ignore[arg-type]
            for each in parse(BIG + BIG.replace("big", "other"))
        ]
        engine.execute(TOTALS)
        counted.clear()
        for each in statements:
            made = status(engine.commands.execute(each))
            assert (made.command_status.query_id or "").endswith(f"_{made.command_sequence_number}")
        assert counted == {"plan": 2, "lower": 2}
        with pytest.raises(StatementFailed, match="already exists"):
            engine.commands.execute(statements[0])


def test_a_command_is_planned_again_if_another_server_has_written(
    broker: Broker, tmp_path: Path, counted: Counter[str]
) -> None:
    with engine_of(broker, tmp_path / "one") as one, engine_of(broker, tmp_path / "two") as two:
        one.execute(ORDERS)
        two.commands.follow()
        two.execute(TOTALS.replace("totals", "others"))
        counted.clear()
        one.execute(BIG)
        assert counted["plan"] == 2
        assert counted["parse"] == 1
        two.commands.follow()
        assert one.state == two.state


def test_a_setting_that_a_request_alters_counts_for_its_next_statements(
    broker: Broker, tmp_path: Path, counted: Counter[str]
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(
            f"{ORDERS} ALTER SYSTEM 'ksql.persistence.default.format.value'='DELIMITED';"
            "CREATE STREAM plain (id STRING KEY, x INT) WITH (kafka_topic='plain', partitions=1);"
        )
        assert engine.state.catalog.sources["PLAIN"].value_format.name == "DELIMITED"


def test_a_topic_that_a_request_deletes_is_gone_for_its_next_statements(
    broker: Broker, tmp_path: Path
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS)
        again = ORDERS.replace("partitions=2", "partitions=3")
        engine.execute(f"DROP STREAM orders DELETE TOPIC; {again}")
        assert engine.state.catalog.sources["ORDERS"].partitions == 3
        without = ORDERS.replace(", partitions=2", "")
        with pytest.raises(StatementFailed, match="Topic 'orders' does not exist"):
            engine.execute(f"DROP STREAM orders DELETE TOPIC; {without}")
        assert "ORDERS" in engine.state.catalog.sources, "all of a request is executed, or nothing"
