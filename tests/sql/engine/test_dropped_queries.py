"""Queries that are dropped leave nothing, whatever state they are in."""

from pathlib import Path
from typing import Any

import pytest

from broker.broker import Broker
from broker.client import admin, producer
from sql.command_log import Command
from sql.engine.engine import Engine
from sql.engine.launching import QueryLauncher
from sql.queries import QueryState
from tests.sql.engine.engines import DEADLINE_MS, ORDERS, TOTALS, engine_of, until_rows, wait_for

BY_ITEM = "CREATE TABLE totals AS SELECT item, SUM(amount) AS total FROM orders GROUP BY item;"


def left_behind(broker: Broker, folder: Path) -> list[str]:
    """Local state, internal topics and groups of queries."""
    with admin(broker) as administration:
        topics = [each for each in administration.list_topics() if "query_CTAS" in each]
        groups = [
            each.group_id for each in administration.list_groups() if "query_CTAS" in each.group_id
        ]
    folders = [each.name for each in folder.glob("*")] if folder.exists() else []
    return sorted([*topics, *groups, *folders])


def fail(broker: Broker, engine: Engine) -> str:
    """Let the only query run, and fail; its id."""
    [query_id] = engine.state.queries
    runtime = engine.commands.running[query_id].runtime
    assert runtime.wait_running(DEADLINE_MS)
    with producer(broker) as out:
        out.send("orders", b"not json", b"a").result()
    wait_for(lambda: runtime.state is QueryState.ERROR, lambda: str(runtime.state))
    return query_id


FAILS: dict[str, Any] = {
    "ksql__fail__on__deserialization__error": True,
    "ksql__query__retry__backoff__initial__ms": 3_600_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["DROP TABLE totals;", "DROP TABLE totals DELETE TOPIC;",
                                       "TERMINATE ALL;"])  # fmt: skip
@pytest.mark.parametrize("paused", [False, True])
def test_a_query_in_error_leaves_nothing_when_it_is_dropped(
    broker: Broker, tmp_path: Path, statement: str, paused: bool
) -> None:
    with engine_of(broker, tmp_path, **FAILS) as engine:
        engine.execute(ORDERS + BY_ITEM)
        query_id = fail(broker, engine)
        if paused:
            engine.execute(f"PAUSE {query_id};")
        assert len(left_behind(broker, tmp_path / "sql" / "state")) >= 3
        engine.execute(statement)
        assert left_behind(broker, tmp_path / "sql" / "state") == []


@pytest.mark.slow
def test_a_query_that_failed_before_it_ran_leaves_nothing_when_it_is_dropped(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + BY_ITEM)
        [query_id] = engine.state.queries
        assert engine.commands.running[query_id].runtime.wait_running(DEADLINE_MS)
    monkeypatch.setattr(QueryLauncher, "_settings", lambda *_: {"no_such_setting": 1})
    with engine_of(broker, tmp_path, **FAILS) as engine:
        assert engine.commands.running[query_id].runtime.state is QueryState.ERROR
        monkeypatch.undo()
        engine.commands.running.pop(query_id)
        engine.execute("DROP TABLE totals;")
        assert left_behind(broker, tmp_path / "sql" / "state") == []


@pytest.mark.slow
def test_a_query_in_error_that_is_replaced_keeps_its_id_and_offsets(
    broker: Broker, tmp_path: Path
) -> None:
    with engine_of(broker, tmp_path, **FAILS) as engine:
        engine.execute(ORDERS + "CREATE STREAM big AS SELECT id, amount FROM orders;")
        engine.execute("INSERT INTO orders VALUES ('a', 'x', 1);")
        until_rows(engine, "SELECT * FROM big;", [("a", 1)])
        query_id = fail(broker, engine)
        engine.execute(
            "CREATE OR REPLACE STREAM big AS SELECT id, amount, item FROM orders;",
            {"ksql.fail.on.deserialization.error": False},
        )
        assert list(engine.state.queries) == [query_id]
        engine.execute("INSERT INTO orders VALUES ('b', 'y', 2);")
        until_rows(engine, "SELECT * FROM big;", [("a", 1, None), ("b", 2, "y")])


@pytest.mark.slow
def test_a_query_whose_server_died_as_it_was_dropped_is_cleaned_up_at_the_next_start(
    broker: Broker, tmp_path: Path
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + BY_ITEM)
        [query_id] = engine.state.queries
        assert engine.commands.running[query_id].runtime.wait_running(DEADLINE_MS)
        log = engine.commands.log
        assert log is not None
        log.take_over()
        log.append(Command(f"terminate/{query_id}/execute", f"TERMINATE {query_id};"))
    assert left_behind(broker, tmp_path / "sql" / "state")
    with engine_of(broker, tmp_path) as engine:
        assert engine.state.queries == {}
        assert left_behind(broker, tmp_path / "sql" / "state") == []


@pytest.mark.slow
def test_the_state_directory_of_the_settings_is_used(broker: Broker, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    with engine_of(broker, tmp_path, ksql__streams__state__dir=str(elsewhere)) as engine:
        engine.execute(ORDERS + TOTALS)
        engine.execute("INSERT INTO orders VALUES ('a', 'x', 1);")
        until_rows(engine, "SELECT * FROM totals;", [("a", 1)])
        assert list(elsewhere.glob("*query_CTAS_TOTALS_*/*"))
        assert not (tmp_path / "sql" / "state").exists()
        engine.execute("DROP TABLE totals;")
        assert left_behind(broker, elsewhere) == []


@pytest.mark.slow
def test_a_query_that_another_server_still_runs_keeps_its_topics_until_that_one_stops_it(
    broker: Broker, tmp_path: Path
) -> None:
    with engine_of(broker, tmp_path / "one") as one:
        one.execute(ORDERS + BY_ITEM)
        [query_id] = one.state.queries
        with engine_of(broker, tmp_path / "two") as two:  # it does not follow by itself
            for engine in (one, two):
                assert engine.commands.running[query_id].runtime.wait_running(DEADLINE_MS)
            running = two.commands.running[query_id].runtime
            one.execute("DROP TABLE totals;")
            assert len(left_behind(broker, tmp_path / "one" / "sql" / "state")) == 3
            two.commands.follow()
            assert running.failures == ()
            assert left_behind(broker, tmp_path / "two" / "sql" / "state") == []


@pytest.mark.slow
def test_a_query_does_not_create_its_deleted_topic_again(broker: Broker, tmp_path: Path) -> None:
    names = ("task__timeout__ms", "producer__max__block__ms")
    impatient = FAILS | {f"ksql__streams__{name}": 100 for name in names}
    with engine_of(broker, tmp_path, **impatient) as engine, admin(broker) as administration:
        engine.execute(ORDERS + "CREATE STREAM copied AS SELECT * FROM orders;")
        [running] = engine.commands.running.values()
        assert running.runtime.wait_running(DEADLINE_MS)
        administration.delete_topics(["COPIED"])
        engine.execute("INSERT INTO orders (item, amount) VALUES ('a', 1);")
        wait_for(
            lambda: running.runtime.state is QueryState.ERROR, lambda: str(running.runtime.state)
        )
        assert "COPIED" not in administration.list_topics()
