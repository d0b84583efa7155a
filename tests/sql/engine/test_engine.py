"""The engine on an embedded broker, from CREATE to pull and push queries."""

from pathlib import Path

import pytest

from broker.broker import Broker
from sql.engine.entities import QueriesList, StreamsList, TablesList, WarningEntity
from sql.errors import StatementFailed
from tests.sql.engine.engines import (
    ORDERS,
    TOTALS,
    engine_of,
    rows,
    status,
    taken,
    until_rows,
)

pytestmark = pytest.mark.slow


def test_values_inserted_are_aggregated_and_pulled(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        created, counted = engine.execute(ORDERS + TOTALS)
        assert status(created).command_status.message == "Stream created"
        query_id = status(counted).command_status.query_id
        assert query_id == f"CTAS_TOTALS_{status(counted).command_sequence_number}"
        engine.execute(
            "INSERT INTO orders VALUES ('a', 'pen', 1);"
            "INSERT INTO orders (amount, id) VALUES (1 + 1, 'a');"
            "INSERT INTO orders (id, amount) VALUES ('b', 5);"
        )
        until_rows(engine, "SELECT * FROM totals;", [("a", 3), ("b", 5)])
        assert rows(engine, "SELECT total, id FROM totals WHERE id = 'b';") == [(5, "b")]
        assert rows(engine, "SELECT * FROM totals WHERE id IN ('a', 'z');") == [("a", 3)]
        assert rows(engine, "SELECT * FROM totals WHERE total > 4;") == [("b", 5)]
        assert len(rows(engine, "SELECT * FROM totals LIMIT 1;")) == 1


def test_a_restart_replays_commands_and_goes_on(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS)
        engine.execute("CREATE STREAM gone AS SELECT * FROM orders; DROP STREAM gone;")
        engine.execute("INSERT INTO orders VALUES ('a', 'pen', 1);")
        until_rows(engine, "SELECT * FROM totals;", [("a", 1)])
        before = sorted(engine.state.queries)
    with engine_of(broker, tmp_path) as engine:
        assert sorted(engine.state.queries) == before
        assert set(engine.state.catalog.sources) == {"ORDERS", "TOTALS"}
        engine.execute("INSERT INTO orders VALUES ('a', 'pen', 2);")
        until_rows(engine, "SELECT * FROM totals;", [("a", 3)])


def test_a_query_must_be_terminated_before_what_it_reads_is_dropped(
    broker: Broker, tmp_path: Path
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS)
        with pytest.raises(StatementFailed, match="Cannot drop ORDERS"):
            engine.execute("DROP STREAM orders;")
        [query_id] = engine.state.queries
        [ended] = engine.execute(f"TERMINATE {query_id};")
        assert status(ended).command_status.message == "Query terminated."
        [listed] = engine.execute("SHOW QUERIES;")
        assert listed == QueriesList("SHOW QUERIES;", ())
        engine.execute("DROP TABLE totals DELETE TOPIC; DROP STREAM orders;")
        assert engine.state.catalog.sources == {}
        [warned] = engine.execute("DROP STREAM IF EXISTS orders;")
        assert isinstance(warned, WarningEntity)


def test_a_push_query_gives_rows_as_they_come_up_to_its_limit(
    broker: Broker, tmp_path: Path
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS)
        engine.execute("INSERT INTO orders VALUES ('old', 'pen', 1);")
        result = engine.query(
            "SELECT id, amount * 2 AS twice FROM orders WHERE amount > 1 EMIT CHANGES LIMIT 2;",
            {"auto.offset.reset": "latest"},
        )
        assert [str(each) for each in result.columns] == ["`ID` STRING", "`TWICE` INTEGER"]
        engine.execute(
            "INSERT INTO orders VALUES ('a', 'pen', 2);"
            "INSERT INTO orders VALUES ('a', 'pen', 1);"
            "INSERT INTO orders VALUES ('a', 'pen', 3);"
        )
        assert [each.values for each in result.rows()] == [("a", 4), ("a", 6)]
        assert result.final_message == "Limit Reached"
        assert engine.transient_queries.push_queries == {}


def test_a_push_query_on_a_table_emits_changes(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS)
        result = engine.query("SELECT * FROM totals EMIT CHANGES;")
        engine.execute("INSERT INTO orders VALUES ('a', 'pen', 2);")
        assert [each.values for each in taken(result, 1)] == [("a", 2)]
        engine.execute("INSERT INTO orders VALUES ('a', 'pen', 2);")
        assert [each.values for each in taken(result, 1)] == [("a", 4)]
        result.close()
        assert result.done


def test_a_stream_can_be_pulled_up_to_its_present_end(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS)
        engine.execute("INSERT INTO orders VALUES ('a', 'pen', 2);")
        engine.execute("INSERT INTO orders VALUES ('b', 'ink', 3);")
        result = engine.query("SELECT item FROM orders WHERE amount = 3;")
        assert [each.values for each in result.rows()] == [("ink",)]
        assert result.final_message == "Query Completed"


def test_a_request_is_refused_as_a_whole(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        with pytest.raises(StatementFailed, match="MISSING"):
            engine.execute(ORDERS + "CREATE STREAM x AS SELECT * FROM missing;")
        assert engine.state.catalog.sources == {}


def test_sources_are_listed(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS)
        streams, tables = engine.execute("SHOW STREAMS; SHOW TABLES;")
        assert isinstance(streams, StreamsList)
        assert isinstance(tables, TablesList)
        assert [each.name for each in streams.streams] == ["ORDERS"]
        assert [(each.name, each.key_format) for each in tables.tables] == [("TOTALS", "KAFKA")]
