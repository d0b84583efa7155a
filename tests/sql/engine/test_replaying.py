"""A restart replays logged plans: other settings, planners or functions do not change a query."""

import json
from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from broker.broker import Broker
from broker.client import admin, producer
from broker.client.administration.values import NewTopic
from broker.errors import RequestTimeout
from sql.command_log import Command, CommandLog, command_topic
from sql.engine.engine import Engine
from sql.engine.entities import QueryDescription
from sql.engine.settings import SqlConfig
from sql.functions.builtin import builtin_functions
from sql.functions.user import registry_with
from sql.planner.planner import PlannedQuery, Planner
from sql.queries import QueryState
from tests.sql.engine.engines import (
    DEADLINE_MS,
    ORDERS,
    SETTINGS,
    TOTALS,
    engine_of,
    rows,
    until_rows,
    wait_for,
)

pytestmark = pytest.mark.slow

FORMAT = "ksql.persistence.default.format.value"
PLAIN_ORDERS = (
    "CREATE STREAM orders (id STRING KEY, item STRING, amount INT) "
    "WITH (kafka_topic='orders', partitions=2);"
)
BIG = "CREATE STREAM big AS SELECT id, amount FROM orders WHERE amount > 0 EMIT CHANGES;"
TOPIC = command_topic("default_")
GONE = {"function": "GONE", "takes": ["STRING"], "kind": "scalar"}
INTEGER = {"type": "INTEGER"}


def opened(broker: Broker, folder: Path, settings: dict[str, Any]) -> Engine:
    return engine_of(broker, folder, **settings)


def insert(engine: Engine, *orders: tuple[str, int]) -> None:
    engine.execute("".join(f"INSERT INTO orders VALUES ('{k}', 'x', {n});" for k, n in orders))


def write_order(broker: Broker, key: str, amount: int) -> None:
    """Write a record as JSON, whatever the catalog says."""
    with producer(broker) as out:
        value = json.dumps({"ITEM": "x", "AMOUNT": amount}).encode()
        out.send("orders", value, key.encode()).result()


def old_record(statement: str, command_id: str, **properties: object) -> tuple[bytes, bytes]:
    """The record of a command as the version before plans wrote it."""
    body = {
        "statement": statement,
        "streamsProperties": properties,
        "originalProperties": {},
        "schemas": {},
        "version": 1,
    }
    return json.dumps(command_id).encode(), json.dumps(body).encode()


def write_old_log(broker: Broker, commands: Iterable[tuple[bytes, bytes]]) -> None:
    log = CommandLog(broker, TOPIC)
    log.open()
    with producer(broker) as out:
        for key, value in commands:
            out.send(TOPIC, value, key, partition=0).result()


def read_log(broker: Broker) -> list[Command]:
    with closing(CommandLog(broker, TOPIC)) as log:
        return [each.command for each in log.unread()]


def topics_of(broker: Broker) -> set[str]:
    with admin(broker) as administration:
        return set(administration.list_topics())


def test_a_query_keeps_its_formats_when_the_default_changes(broker: Broker, tmp_path: Path) -> None:
    with opened(broker, tmp_path, {FORMAT: "JSON"}) as engine:
        engine.execute(PLAIN_ORDERS + BIG + TOTALS)
        insert(engine, ("a", 1))
        until_rows(engine, "SELECT * FROM totals;", [("a", 1)])
        before = engine.state
    with opened(broker, tmp_path, {FORMAT: "DELIMITED"}) as engine:
        assert engine.state == before
        assert engine.state.catalog.sources["ORDERS"].value_format.name == "JSON"
        write_order(broker, "b", 2)
        until_rows(engine, "SELECT * FROM totals;", [("a", 1), ("b", 2)])
        until_rows(engine, "SELECT * FROM big;", [("a", 1), ("b", 2)])
    with engine_of(broker, tmp_path) as engine:  # and with none at all
        assert engine.state == before


def test_a_query_keeps_its_topic_when_the_prefix_changes(broker: Broker, tmp_path: Path) -> None:
    prefix = {"ksql.output.topic.name.prefix": "first-"}
    with opened(broker, tmp_path, prefix) as engine:
        engine.execute(ORDERS + BIG)
    before = topics_of(broker)
    with opened(broker, tmp_path, {"ksql.output.topic.name.prefix": "second-"}) as engine:
        assert engine.state.catalog.sources["BIG"].topic == "first-BIG"
        insert(engine, ("a", 1))
        until_rows(engine, "SELECT * FROM big;", [("a", 1)])
        assert topics_of(broker) == before
        engine.execute("CREATE STREAM later AS SELECT id, item FROM orders;")
        assert engine.state.catalog.sources["LATER"].topic == "second-LATER"


def test_a_query_keeps_the_settings_that_it_was_made_under(broker: Broker, tmp_path: Path) -> None:
    """auto.offset.reset of the server, its guarantee, and the limits of functions."""
    first: dict[str, Any] = {
        "processing.guarantee": "exactly_once_v2",
        "auto.offset.reset": "earliest",
    }
    with opened(broker, tmp_path, first) as engine:
        engine.execute(
            ORDERS + "CREATE TABLE items AS SELECT id, COLLECT_LIST(amount) AS amounts "
            "FROM orders GROUP BY id;"
        )
        [query_id] = engine.state.queries
        insert(engine, ("a", 1), ("a", 2))
        until_rows(engine, "SELECT * FROM items;", [("a", [1, 2])])
    second: dict[str, Any] = {
        "processing.guarantee": "at_least_once",
        "auto.offset.reset": "latest",
        "ksql.functions.collect_list.limit": 2,
        "ksql.fail.on.production.error": False,
        "num.stream.threads": 2,
    }
    with opened(broker, tmp_path, second) as engine:
        kept = engine._launcher.config_of(engine.state.queries[query_id])
        assert kept["processing.guarantee"] == "exactly_once_v2"
        assert kept["auto.offset.reset"] == "earliest"
        assert kept["ksql.fail.on.production.error"] is True
        assert kept["num.stream.threads"] == 2, "how the machine works is the server's"
        insert(engine, ("a", 3))
        until_rows(engine, "SELECT * FROM items;", [("a", [1, 2, 3])])
        [explained] = engine.execute(f"EXPLAIN {query_id};")
        assert isinstance(explained, QueryDescription)
        assert explained.query_description.overridden_properties == {}


def test_a_new_query_begins_where_the_setting_of_its_time_says(
    broker: Broker, tmp_path: Path
) -> None:
    with opened(broker, tmp_path, {"auto.offset.reset": "earliest"}) as engine:
        engine.execute(ORDERS)
        insert(engine, ("a", 1))
        log = engine.commands.log
        assert log is not None
        engine.execute(BIG)
        [query_id] = engine.state.queries
        engine.commands.running[query_id].runtime.stop()
    with admin(broker) as administration:  # as if its server had died before its first commit
        group = f"_confluent-ksql-default_query_{query_id}"
        administration.delete_groups([group])
    with opened(broker, tmp_path, {"auto.offset.reset": "latest"}) as engine:
        wait_for(lambda: ("a", 1) in rows(engine, "SELECT * FROM big;"), lambda: "nothing came")


def test_another_planner_does_not_change_a_running_query(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS)
        insert(engine, ("a", 1))
        until_rows(engine, "SELECT * FROM totals;", [("a", 1)])
        before = engine.state
    plan = Planner.plan

    def planned(self: Planner, statement: Any, text: str = "") -> PlannedQuery | None:
        found = plan(self, statement, text)
        if found is None:
            return None
        # A planner that calls its steps by other names would look for other stores and topics.
        sink: Any = found.plan
        return replace(found, plan=replace(sink, input=replace(sink.input, name="Renamed")))

    monkeypatch.setattr(Planner, "plan", planned)
    with engine_of(broker, tmp_path) as engine:
        assert engine.state == before
        until_rows(engine, "SELECT * FROM totals;", [("a", 1)])


def test_all_commands_are_replayed_from_their_plans(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements = (
        "CREATE TYPE pair AS STRUCT<a INT, b INT>;"
        + "CREATE STREAM pairs (id STRING KEY, p pair) WITH (kafka_topic='pairs', "
        "value_format='JSON', partitions=1);"
        + ORDERS
        + BIG
        + "INSERT INTO big SELECT id, amount FROM orders WHERE amount < 0;"
        + "ALTER STREAM orders ADD COLUMN extra STRING;"
        + TOTALS
        + "DROP TYPE pair;"
        + "PAUSE ALL;"
        + "ALTER SYSTEM 'ksql.suppress.enabled'='false';"
    )
    with engine_of(broker, tmp_path) as engine:
        engine.execute(statements)
        engine.execute(
            "CREATE SOURCE TABLE kept (id STRING PRIMARY KEY, n INT) "
            "WITH (kafka_topic='pairs', value_format='JSON');"
        )
        [table] = [each for each in engine.state.queries if each.startswith("CTAS")]
        engine.execute(f"TERMINATE {table}; DROP TABLE totals;")
        before = engine.state
    monkeypatch.setattr("sql.engine.commands.parse", None)  # nothing is parsed again
    with engine_of(broker, tmp_path) as engine:
        assert engine.state == before
        assert not engine.config.flag("ksql.suppress.enabled")
        assert {each.status for each in engine.commands.statuses.values()} == {"SUCCESS"}


def test_a_log_without_plans_opens_and_keeps_what_its_first_start_made_of_it(
    broker: Broker, tmp_path: Path
) -> None:
    with admin(broker) as administration:
        administration.create_topics([NewTopic("orders", 2), NewTopic("one-BIG", 2)]).all()
    write_old_log(
        broker,
        [
            old_record(PLAIN_ORDERS, "stream/`ORDERS`/create"),
            old_record(BIG, "stream/`BIG`/create", **{"ksql.output.topic.name.prefix": "one-"}),
        ],
    )
    with opened(broker, tmp_path, {FORMAT: "JSON"}) as engine:
        before = engine.state
        assert list(before.queries) == ["CSAS_BIG_1"]
        write_order(broker, "a", 1)
        until_rows(engine, "SELECT * FROM big;", [("a", 1)])
    pinned = [each for each in read_log(broker) if each.pins is not None]
    assert [each.pins for each in pinned] == [0, 1]
    for settings in ({FORMAT: "DELIMITED"}, {}):
        with opened(broker, tmp_path, settings) as engine:
            assert engine.state == before
            assert engine.commands.degraded is None
            write_order(broker, "a", 1)
            engine.execute("DROP STREAM IF EXISTS none;")
    assert len([each for each in read_log(broker) if each.pins is not None]) == 2
    with engine_of(broker, tmp_path) as engine:
        until_rows(engine, "SELECT * FROM big;", [("a", 1)] * 3)


def test_plans_of_old_commands_are_not_rewritten(broker: Broker, tmp_path: Path) -> None:
    by_item = "CREATE TABLE {} AS SELECT item, COUNT(*) AS n FROM orders GROUP BY item;"
    write_old_log(
        broker,
        [
            old_record(ORDERS, "stream/`ORDERS`/create"),
            old_record(by_item.format("old"), "table/`OLD`/create"),
        ],
    )
    with engine_of(broker, tmp_path) as engine:
        engine.execute(by_item.format("new"))
        rules = {each.split("_")[1]: q.planned.rules for each, q in engine.state.queries.items()}
        assert rules == {"OLD": (), "NEW": ("prune_columns",)}
        before = engine.state
    with engine_of(broker, tmp_path) as engine:
        assert engine.state == before


def test_a_rewritten_query_replaces_one_that_was_not(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_item = "TABLE counted AS SELECT item, SUM(amount) AS n FROM orders GROUP BY item;"
    with engine_of(broker, tmp_path) as engine:
        with monkeypatch.context() as patched:
            patched.setattr("sql.engine.changes.rewritten", lambda planned, rules: planned)
            engine.execute(f"{ORDERS} CREATE {by_item}")
        insert(engine, ("a", 1), ("b", 2))
        until_rows(engine, "SELECT * FROM counted;", [("x", 3)])
        engine.execute(f"CREATE OR REPLACE {by_item.replace('(amount)', '(amount) * 10')}")
        [query] = engine.state.queries.values()
        assert query.planned.rules == ("prune_columns",)
        insert(engine, ("a", 4))
        until_rows(engine, "SELECT * FROM counted;", [("x", 70)])
    with engine_of(broker, tmp_path) as engine:
        until_rows(engine, "SELECT * FROM counted;", [("x", 70)])


def test_an_old_command_that_fails_today_is_tried_again_at_the_next_start(
    broker: Broker, tmp_path: Path
) -> None:
    with admin(broker) as administration:
        administration.create_topics([NewTopic("orders", 2)]).all()
    write_old_log(broker, [old_record(PLAIN_ORDERS, "stream/`ORDERS`/create")])
    with engine_of(broker, tmp_path) as engine:  # it names no format, and there is no default
        assert not engine.state.catalog.sources
        assert engine.commands.statuses["stream/`ORDERS`/create"].status == "ERROR"
    with opened(broker, tmp_path, {FORMAT: "JSON"}) as engine:
        assert "ORDERS" in engine.state.catalog.sources


def test_a_query_whose_function_is_gone_is_in_error_and_says_why(
    broker: Broker, tmp_path: Path
) -> None:
    module = tmp_path / "doubling.py"
    module.write_text(
        "from sql.functions.user import udf\n\n\n"
        "@udf\n"
        "def twice(n: int) -> int:\n"
        "    return 2 * n\n"
    )
    functions = registry_with([str(module)])

    def with_functions(**given: Any) -> Engine:
        config = SqlConfig(SETTINGS)
        return Engine(broker, data_directory=tmp_path / "sql", config=config, **given)

    double = "CREATE STREAM doubled AS SELECT id, TWICE(amount) AS n FROM orders;"
    with with_functions(functions=functions) as engine:
        engine.execute(ORDERS + double)
        insert(engine, ("a", 1))
        until_rows(engine, "SELECT * FROM doubled;", [("a", 2)])
        [query_id] = engine.state.queries
        before = engine.state
    with with_functions(functions=builtin_functions()) as engine:
        runtime = engine.commands.running[query_id].runtime
        assert runtime.state is QueryState.ERROR
        assert "TWICE" in runtime.failures[-1].message
        [explained] = engine.execute(f"EXPLAIN {query_id};")
        assert isinstance(explained, QueryDescription)
        assert "TWICE" in explained.query_description.query_errors[-1].error_message
        assert "DOUBLED" in engine.state.catalog.sources
        insert(engine, ("b", 2))
    with with_functions(functions=functions) as engine:
        assert engine.state == before
        until_rows(engine, "SELECT * FROM doubled;", [("a", 2), ("b", 4)])


def test_a_command_that_cannot_be_replayed_does_not_stop_the_server(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS)
        log = engine.commands.log
        assert log is not None
        log.append(
            Command("table/`X`/create", "CREATE TABLE x;", plan={"source": {"@": "Nothing"}})
        )
        log.append(Command("table/`Y`/create", "this is no statement"))
        before = engine.state
    with engine_of(broker, tmp_path) as engine:
        assert engine.state == before
        assert engine.commands.statuses["table/`X`/create"].status == "ERROR"
        assert engine.commands.statuses["table/`Y`/create"].status == "ERROR"
        assert engine.commands.degraded is None
        engine.execute(BIG)
        [query_id] = [each for each in engine.state.queries if each.startswith("CTAS")]

    def broken(self: object, query: object) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr("sql.engine.launching.QueryLauncher.where", broken)
    with engine_of(broker, tmp_path) as engine:
        assert query_id in engine.state.queries
        assert engine.commands.running[query_id].runtime.wait_running(DEADLINE_MS)


def test_servers_with_other_settings_run_the_same_query(broker: Broker, tmp_path: Path) -> None:
    with (
        opened(broker, tmp_path / "one", {FORMAT: "JSON"}) as one,
        opened(broker, tmp_path / "two", {FORMAT: "DELIMITED"}) as two,
    ):
        one.execute(PLAIN_ORDERS + BIG)
        two.commands.follow()
        assert two.state == one.state


def test_a_query_without_its_function_can_be_dropped(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + BIG)
        log = engine.commands.log
        assert log is not None
        [query_id] = engine.state.queries
    [*_, big] = read_log(broker)
    assert big.plan is not None
    plan = json.loads(
        json.dumps(big.plan).replace("CSAS_BIG", "CSAS_OTHER").replace('"BIG"', '"OTHER"')
    )
    plan["query"]["plan"]["input"]["columns"] = [
        ["AMOUNT", {"@": "FunctionValue", "function": GONE, "arguments": [], "type": INTEGER}]
    ]
    log = CommandLog(broker, TOPIC)
    log.take_over()
    log.append(replace(big, id="stream/`OTHER`/create", plan=plan))
    log.close()
    with engine_of(broker, tmp_path) as engine:
        other = query_id.replace("BIG", "OTHER")
        assert "GONE(STRING)" in engine.commands.running[other].runtime.failures[-1].message
        engine.execute("DROP STREAM other;")
        assert list(engine.state.queries) == [query_id]
    with engine_of(broker, tmp_path) as engine:
        assert list(engine.state.queries) == [query_id]


def test_variables_and_scripts_are_logged_as_what_they_stood_for(
    broker: Broker, tmp_path: Path
) -> None:
    script = tmp_path / "orders.sql"
    script.write_text(PLAIN_ORDERS.replace("partitions", "value_format='${format}', partitions"))
    with engine_of(broker, tmp_path) as engine:
        engine.execute(f"DEFINE format = 'JSON'; RUN SCRIPT '{script}'; DEFINE low = '0';")
        engine.execute("DEFINE low = '0';" + BIG.replace("> 0", "> ${low}"))
        before = engine.state
    script.unlink()
    with engine_of(broker, tmp_path) as engine:
        assert engine.state == before
        assert engine.state.catalog.sources["ORDERS"].value_format.name == "JSON"


def test_a_command_waits_while_the_cluster_does_not_answer(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It became an error of its own, and its stream was unknown until the next restart."""
    with (
        opened(broker, tmp_path / "first", {}) as first,
        opened(broker, tmp_path / "second", {}) as second,
    ):
        first.execute(ORDERS + BIG)
        with monkeypatch.context() as patched:
            patched.setattr(second.commands.topics, "shape", unanswered)
            for _ in range(2):
                with pytest.raises(RequestTimeout):
                    second.commands.follow()
            assert not second.state.catalog.sources
        second.commands.follow()
        assert set(second.state.catalog.sources) == {"ORDERS", "BIG"}
        assert second.state.queries.keys() == first.state.queries.keys()


def unanswered(_topic: str) -> None:
    raise RequestTimeout("no answer")
