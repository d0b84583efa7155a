"""Persistent queries at work: paused, replaced, failing, watched; and what their stores hold."""

import json
from pathlib import Path
from typing import Any

import pytest

from broker.broker import Broker
from broker.client import admin, producer
from broker.client.administration.values import NewTopic
from broker.errors import ConnectionFailed, SerdeError
from sql.command_log import Command
from sql.engine.engine import Engine
from sql.engine.entities import QueryDescription
from sql.engine.topic_rows import records_to_end
from sql.errors import StatementFailed
from sql.queries import AppRuntime, FailureType, QueryState, RetryPolicy, classified
from tests.sql.engine.engines import (
    DEADLINE_MS,
    ORDERS,
    TOTALS,
    engine_of,
    rows,
    taken,
    until_rows,
    wait_for,
)
from tests.support.peer import wait_until
from tests.support.poison import write_poison_batch

pytestmark = pytest.mark.slow


def insert(engine: Engine, *orders: tuple[str, int]) -> None:
    engine.execute("".join(f"INSERT INTO orders VALUES ('{k}', 'x', {n});" for k, n in orders))


def only_query(engine: Engine) -> str:
    [query_id] = engine.state.queries
    return query_id


def test_a_paused_query_processes_nothing_until_resumed(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS)
        query_id = only_query(engine)
        insert(engine, ("a", 1))
        until_rows(engine, "SELECT * FROM totals;", [("a", 1)])
        engine.execute(f"PAUSE {query_id};")
        assert engine.commands.running[query_id].runtime.state is QueryState.PAUSED
        insert(engine, ("a", 1))
    with engine_of(broker, tmp_path) as engine:
        assert engine.commands.running[query_id].runtime.state is QueryState.PAUSED
        assert rows(engine, "SELECT * FROM totals;") == [("a", 1)]
        engine.execute("RESUME ALL;")
        until_rows(engine, "SELECT * FROM totals;", [("a", 2)])


def test_a_paused_query_has_committed_and_fetches_nothing(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path, commit__interval__ms=3_600_000) as engine:
        engine.execute(ORDERS + TOTALS)
        query_id = only_query(engine)
        insert(engine, ("a", 1))
        runtime = engine.commands.running[query_id].runtime
        assert isinstance(runtime, AppRuntime)
        app = runtime._app
        assert app is not None
        runner = app.runners[0]
        wait_until(lambda: runner.metrics.records_processed_total == 1, "the row is processed")
        engine.execute(f"PAUSE {query_id};")
        wait_until(lambda: runner.metrics.commits_total == 1, "a commit, though none is due")
        consumed = runner.metrics.records_consumed_total
        insert(engine, *[("a", 1)] * 20)
        polls = runner.metrics.polls_total
        wait_until(lambda: runner.metrics.polls_total > polls + 2, "more polls")
        assert runner.metrics.records_consumed_total == consumed
        engine.execute(f"RESUME {query_id};")
        wait_until(lambda: runner.metrics.records_processed_total == 21, "all are processed")
        engine.execute(f"PAUSE {query_id};")
        until_rows(engine, "SELECT * FROM totals;", [("a", 21)])


def test_a_query_sees_all_that_is_written_after_its_statement(
    broker: Broker, tmp_path: Path
) -> None:
    with engine_of(broker, tmp_path, auto__offset__reset="latest") as engine:
        engine.execute(ORDERS)
        insert(engine, ("a", 1))
        engine.execute(TOTALS)
        insert(engine, ("a", 2))
        until_rows(engine, "SELECT * FROM totals;", [("a", 2)])


def test_a_query_that_was_logged_as_its_server_died_begins_at_the_next_start(
    broker: Broker, tmp_path: Path
) -> None:
    with engine_of(broker, tmp_path, auto__offset__reset="latest") as engine:
        engine.execute(ORDERS)
        insert(engine, ("a", 1))
        log = engine.commands.log
        assert log is not None
        with admin(broker) as administration:
            administration.create_topics([NewTopic("TOTALS", 2)]).all()
        log.take_over()
        log.append(Command("table/`TOTALS`/create", TOTALS))
    with engine_of(broker, tmp_path, auto__offset__reset="latest") as engine:
        assert engine.commands.running[only_query(engine)].runtime.wait_running(DEADLINE_MS)
    with producer(broker) as writing:
        writing.send("orders", b'{"ITEM": "x", "AMOUNT": 2}', b"a").result()
    with engine_of(broker, tmp_path, auto__offset__reset="latest") as engine:
        until_rows(engine, "SELECT * FROM totals;", [("a", 2)])


def test_a_replaced_query_goes_on_where_the_old_one_was(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + "CREATE STREAM big AS SELECT id, amount FROM orders;")
        query_id = only_query(engine)
        insert(engine, ("a", 1))
        wait_for(lambda: len(rows(engine, "SELECT * FROM big;")) == 1, lambda: "nothing came")
        engine.execute(
            "CREATE OR REPLACE STREAM big AS SELECT id, amount, item FROM orders WHERE amount > 5;"
        )
        assert only_query(engine) == query_id
        insert(engine, ("b", 3), ("c", 7))
        until_rows(engine, "SELECT * FROM big;", [("a", 1, None), ("c", 7, "x")])
        with pytest.raises(StatementFailed, match="Cannot upgrade"):
            engine.execute("CREATE OR REPLACE STREAM big AS SELECT id, item FROM orders;")


def test_a_query_that_fails_is_restarted_and_says_why(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path, ksql__fail__on__deserialization__error=True) as engine:
        engine.execute(ORDERS + TOTALS)
        query_id = only_query(engine)
        runtime = engine.commands.running[query_id].runtime
        assert runtime.wait_running(30_000)
        with producer(broker) as out:
            out.send("orders", b"not json", b"a").result()
        wait_for(lambda: len(runtime.failures) >= 2, lambda: str(runtime.failures))
        assert runtime.failures[-1].type is FailureType.USER
        [explained] = engine.execute(f"EXPLAIN {query_id};")
        assert isinstance(explained, QueryDescription)
        assert explained.query_description.query_errors
        engine.execute(f"TERMINATE {query_id};")


def test_what_cannot_be_read_is_skipped_and_logged_to_a_topic(
    broker: Broker, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {
        "ksql__logging__processing__topic__auto__create": True,
        "ksql__logging__processing__rows__include": True,
    }
    with engine_of(broker, tmp_path, **settings) as engine:
        engine.execute(ORDERS + TOTALS)
        with producer(broker) as out:
            out.send("orders", b"not json", b"a").result()
        insert(engine, ("a", 4))
        until_rows(engine, "SELECT * FROM totals;", [("a", 4)])
    [record] = records_to_end(broker, "default_ksql_processing_log")
    entry = json.loads(record.value or b"")
    assert entry["logger"].startswith("processing.CTAS_TOTALS_")
    assert entry["message"]["type"] == 0
    assert entry["message"]["deserializationError"]["topic"] == "orders"
    assert entry["message"]["deserializationError"]["recordB64"] == "bm90IGpzb24="


@pytest.mark.parametrize("window", ["TUMBLING (SIZE 1 SECOND)", "SESSION (1 SECOND)"])
def test_windows_of_a_key_are_pulled(broker: Broker, tmp_path: Path, window: str) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(
            ORDERS
            + f"CREATE TABLE t AS SELECT id, COUNT(*) AS n FROM orders WINDOW {window} GROUP BY id;"
        )
        for key, time_ms in (("a", 1000), ("a", 1500), ("a", 5000), ("b", 1000)):
            engine.execute(f"INSERT INTO orders (ROWTIME, id) VALUES ({time_ms}, '{key}');")
        wait_for(lambda: len(rows(engine, "SELECT * FROM t;")) == 3, lambda: "not all came")
        session = window.startswith("SESSION")
        ends = (1500, 5000) if session else (2000, 6000)
        until_rows(
            engine,
            "SELECT id, WINDOWSTART, WINDOWEND, n FROM t WHERE id = 'a';",
            [("a", 1000, ends[0], 2), ("a", 5000, ends[1], 1)],
        )
        found = rows(engine, "SELECT n FROM t WHERE id = 'a' AND WINDOWSTART > 1000;")
        assert found == [(1,)]


def test_a_source_table_can_be_pulled(broker: Broker, tmp_path: Path) -> None:
    columns = "(id INT PRIMARY KEY, name STRING) WITH (kafka_topic='t', value_format='JSON'"
    with engine_of(broker, tmp_path) as engine:
        engine.execute(f"CREATE TABLE t {columns}, partitions=1);")
        engine.execute(f"CREATE SOURCE TABLE s {columns});")
        engine.execute("INSERT INTO t VALUES (1, 'one'); INSERT INTO t VALUES (2, 'two');")
        until_rows(engine, "SELECT * FROM s;", [(1, "one"), (2, "two")])
        assert rows(engine, "SELECT name FROM s WHERE id = 2;") == [("two",)]
        with pytest.raises(StatementFailed, match="isn't queryable"):
            rows(engine, "SELECT * FROM t;")
        with pytest.raises(StatementFailed, match="read-only table"):
            engine.execute("INSERT INTO s VALUES (3, 'three');")
        with pytest.raises(StatementFailed, match="linked to a source table"):
            engine.execute(f"TERMINATE {only_query(engine)};")
        engine.execute("DROP TABLE s;")
        assert engine.state.queries == {}


def test_a_joined_table_can_be_pulled(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        for name in ("left_", "right_"):
            engine.execute(
                f"CREATE TABLE {name} (id INT PRIMARY KEY, v STRING) "
                f"WITH (kafka_topic='{name}', value_format='JSON', partitions=2);"
            )
        engine.execute(
            "CREATE TABLE both_ AS SELECT l.id AS id, l.v AS a, r.v AS b "
            "FROM left_ l JOIN right_ r ON l.id = r.id;"
        )
        engine.execute(
            "INSERT INTO left_ VALUES (1, 'x'); INSERT INTO left_ VALUES (2, 'y');"
            "INSERT INTO right_ VALUES (1, 'z');"
        )
        until_rows(engine, "SELECT * FROM both_;", [(1, "x", "z")])
        assert rows(engine, "SELECT b FROM both_ WHERE id = 1;") == [("z",)]


def test_a_push_query_can_watch_a_running_query(broker: Broker, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "ksql__query__push__v2__enabled": True,
        "auto__offset__reset": "latest",
    }
    with engine_of(broker, tmp_path, **settings) as engine:
        engine.execute(ORDERS + "CREATE STREAM copy AS SELECT * FROM orders;")
        result = engine.query("SELECT id, amount FROM copy WHERE amount > 1 EMIT CHANGES;")
        assert result.query_id.startswith("SCALABLE_PUSH_QUERY_")
        insert(engine, ("a", 1), ("a", 2))
        assert [each.values for each in taken(result, 1)] == [("a", 2)]
        result.close()


def test_a_slow_reader_does_not_stop_the_query_it_watches(broker: Broker, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "ksql__query__push__v2__enabled": True,
        "auto__offset__reset": "latest",
        "ksql__query__push__buffer__rows": 1,
    }
    with engine_of(broker, tmp_path, **settings) as engine:
        engine.execute(ORDERS + "CREATE STREAM copy AS SELECT * FROM orders;")
        result = engine.query("SELECT id FROM copy EMIT CHANGES;")
        insert(engine, ("a", 1), ("b", 2), ("c", 3))
        wait_for(lambda: len(rows(engine, "SELECT * FROM copy;")) == 3, lambda: "it stopped")
        assert result.poll(0) is not None
        with pytest.raises(StatementFailed, match="its reader is more than"):
            result.poll(0)
        result.close()


def test_a_push_query_is_terminated_by_its_id(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path, ksql__max__push__queries=1) as engine:
        engine.execute(ORDERS)
        result = engine.query("SELECT * FROM orders EMIT CHANGES;")
        with pytest.raises(StatementFailed, match="Maximum number of push queries"):
            engine.query("SELECT * FROM orders EMIT CHANGES;")
        engine.execute(f"TERMINATE {result.query_id};")
        assert list(result.rows()) == []
        assert result.done


def test_the_limit_of_persistent_queries_is_kept(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path, ksql__query__persistent__active__limit=1) as engine:
        engine.execute(ORDERS + TOTALS)
        with pytest.raises(StatementFailed, match="Configured limit: 1"):
            engine.execute("CREATE STREAM x AS SELECT * FROM orders;")


def test_insert_into_adds_a_query_to_a_stream(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + "CREATE STREAM copy AS SELECT * FROM orders WHERE amount < 5;")
        engine.execute("INSERT INTO copy SELECT * FROM orders WHERE amount > 10;")
        assert len(engine.state.queries) == 2
        insert(engine, ("a", 1), ("b", 7), ("c", 11))
        until_rows(engine, "SELECT id FROM copy;", [("a",), ("c",)])
        with pytest.raises(StatementFailed, match="queries write into this source"):
            engine.execute("DROP STREAM copy;")
        engine.execute("TERMINATE ALL; DROP STREAM copy;")


def test_failures_are_classified_by_whose_fault_they_are() -> None:
    assert classified(SerdeError("no value")) is FailureType.USER
    assert classified(ConnectionFailed("no broker")) is FailureType.SYSTEM
    assert classified(ZeroDivisionError()) is FailureType.UNKNOWN


def test_restarts_come_slower_and_slower() -> None:
    policy = RetryPolicy(15_000, 900_000)
    assert [policy.wait_ms(attempt) for attempt in (0, 1, 2, 9, 99)] == [
        15_000,
        30_000,
        60_000,
        900_000,
        900_000,
    ]


@pytest.mark.parametrize(("nulls", "shown"), [("", ("", 0)), ("OPTIONAL", (None, None))])
def test_a_table_in_protobuf_has_nulls_if_its_topic_has(
    broker: Broker, tmp_path: Path, nulls: str, shown: tuple[object, ...]
) -> None:
    option = f", value_protobuf_nullable_representation='{nulls}'" if nulls else ""
    sides = "".join(
        f"CREATE TABLE {name} (k INT PRIMARY KEY, {name}_t STRING, {name}_n BIGINT) "
        f"WITH (kafka_topic='{name}', value_format='PROTOBUF_NOSR', partitions=1{option});"
        for name in ("a", "b")
    )
    joined = (
        f"CREATE TABLE joined WITH (value_format='PROTOBUF_NOSR'{option}) AS "
        "SELECT ROWKEY AS k, a_t, a_n, b_t, b_n FROM a FULL OUTER JOIN b ON a.k = b.k;"
    )
    with engine_of(broker, tmp_path) as engine:
        engine.execute(sides + joined)
        engine.execute("INSERT INTO a VALUES (1, 'x', 5);")
        until_rows(engine, "SELECT * FROM joined;", [(1, "x", 5, *shown)])


def copied_past_a_poison_batch(broker: Broker, engine: Engine) -> str:
    """A query whose source has a batch that cannot be read between two rows; its id."""
    engine.execute(ORDERS.replace("partitions=2", "partitions=1"))
    insert(engine, ("a", 1))
    write_poison_batch(broker, "orders", 3)
    insert(engine, ("b", 2))
    engine.execute(TOTALS)
    return only_query(engine)


def test_a_batch_that_cannot_be_read_is_logged_and_the_query_goes_on(
    broker: Broker, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"ksql__logging__processing__topic__auto__create": True}
    with engine_of(broker, tmp_path, **settings) as engine:
        query_id = copied_past_a_poison_batch(broker, engine)
        until_rows(engine, "SELECT * FROM totals;", [("a", 1), ("b", 2)])
        assert engine.commands.running[query_id].runtime.state is QueryState.RUNNING
        log = "default_ksql_processing_log"
        entries: list[str] = []

        def logged() -> bool:
            entries[:] = [str(record.value) for record in records_to_end(broker, log)]
            return any("cannot read offsets 1 to 3" in entry for entry in entries)

        wait_for(logged, lambda: f"the log has {entries}")


def test_a_batch_that_cannot_be_read_fails_a_query_that_is_to_fail(
    broker: Broker, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"ksql__fail__on__deserialization__error": True}
    with engine_of(broker, tmp_path, **settings) as engine:
        query_id = copied_past_a_poison_batch(broker, engine)
        runtime = engine.commands.running[query_id].runtime
        wait_for(lambda: bool(runtime.failures), lambda: "no failure was recorded")
        assert "cannot read offsets 1 to 3" in str(runtime.failures[0])
        assert 'topic "orders" partition 0' in str(runtime.failures[0])
