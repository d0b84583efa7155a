"""Statements around the queries: sessions, lists, descriptions, scripts, several servers."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from broker.broker import Broker
from broker.client import admin, producer
from sql.command_log import command_topic
from sql.engine import entities as en
from sql.engine.commands import Degraded
from sql.engine.engine import Engine
from sql.engine.session import SqlSession
from sql.engine.settings import SqlConfig
from sql.engine.trial import WrongEndpoint
from sql.errors import SqlError, StatementFailed
from sql.queries import FailureType
from sql.server.messages import entity_json
from tests.sql.engine.engines import (
    ORDERS,
    SETTINGS,
    TOTALS,
    engine_of,
    rows,
    status,
    until_rows,
    wait_for,
)
from tests.support.memory_registry import MemoryRegistry

pytestmark = pytest.mark.slow


def test_settings_and_variables_are_the_sessions(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        session = SqlSession()
        engine.execute_in(session, "SET 'auto.offset.reset' = 'latest'; DEFINE name = 'orders';")
        assert session.properties == {"auto.offset.reset": "latest"}
        engine.execute_in(session, ORDERS.replace("orders (", "${name} (", 1))
        assert set(engine.state.catalog.sources) == {"ORDERS"}
        [shown] = engine.execute_in(session, "SHOW VARIABLES;")
        assert shown == en.VariablesList("SHOW VARIABLES;", (en.Variable("NAME", "orders"),))
        engine.execute_in(session, "UNSET 'auto.offset.reset'; UNDEFINE name;")
        assert session == SqlSession()
        with pytest.raises(StatementFailed, match="Unknown property: fish"):
            engine.execute_in(session, "SET 'fish' = '1';")


def test_properties_are_listed_with_what_the_session_overrides(
    broker: Broker, tmp_path: Path
) -> None:
    with engine_of(broker, tmp_path) as engine:
        [shown] = engine.execute("SHOW PROPERTIES;", {"auto.offset.reset": "latest"})
        assert isinstance(shown, en.PropertiesList)
        by_name = {each.name: each for each in shown.properties}
        assert by_name["ksql.streams.auto.offset.reset"].value == "latest"
        assert not by_name["ksql.service.id"].editable
        assert shown.overwritten_properties == ("auto.offset.reset",)


def test_a_source_is_described_in_ksqldbs_shape(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS)
        [described] = engine.execute("DESCRIBE totals EXTENDED;")
        shown = entity_json(described)
        assert shown["@type"] == "sourceDescription"
        source = shown["sourceDescription"]
        assert (source["name"], source["type"], source["topic"]) == ("TOTALS", "TABLE", "TOTALS")
        assert source["partitions"] == 2
        assert [each["name"] for each in source["fields"]] == ["ID", "TOTAL"]
        assert source["fields"][0]["type"] == "KEY"
        [query] = source["writeQueries"]
        assert (query["queryType"], query["state"]) == ("PERSISTENT", "RUNNING")
        [group] = source["queryOffsetSummaries"]
        assert group["topicSummaries"][0]["kafkaTopic"] == "orders"
        [orders] = engine.execute("DESCRIBE orders;")
        shown = entity_json(orders)["sourceDescription"]
        assert shown["sourceConstraints"] == ["TOTALS"]
        assert [each["id"] for each in shown["readQueries"]] == [query["id"]]


def test_queries_are_explained_by_id_and_by_statement(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS)
        [query_id] = engine.state.queries
        [by_id] = engine.execute(f"EXPLAIN {query_id};")
        assert isinstance(by_id, en.QueryDescription)
        details = by_id.query_description
        assert (details.sources, details.sinks) == (("ORDERS",), ("TOTALS",))
        assert "Aggregate" in details.execution_plan
        assert "Aggregate-Materialize" in details.topology
        [by_text] = engine.execute("EXPLAIN SELECT item FROM orders EMIT CHANGES;")
        assert isinstance(by_text, en.QueryDescription)
        assert [each.name for each in by_text.query_description.fields] == ["ITEM"]
        with pytest.raises(StatementFailed, match="does not exist"):
            engine.execute("EXPLAIN CSAS_NOTHING_1;")


def test_topics_functions_and_types_are_listed(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + "CREATE TYPE point AS STRUCT<x INT, y INT>;")
        topics, everything, extended, functions, types = engine.execute(
            "SHOW TOPICS; SHOW ALL TOPICS; SHOW TOPICS EXTENDED; SHOW FUNCTIONS; SHOW TYPES;"
        )
        assert isinstance(topics, en.TopicsList)
        assert [(each.name, each.replica_info) for each in topics.topics] == [("orders", (1, 1))]
        assert isinstance(everything, en.TopicsList)
        assert engine.command_topic in {each.name for each in everything.topics}
        assert isinstance(extended, en.ExtendedTopicsList)
        assert isinstance(functions, en.FunctionsList)
        assert {"ABS", "SUM", "EXPLODE"} <= {each.name for each in functions.functions}
        assert isinstance(types, en.TypesList)
        assert [each.name for each in types.types["POINT"].fields or ()] == ["X", "Y"]
        [described] = engine.execute("DESCRIBE FUNCTION abs;")
        assert isinstance(described, en.FunctionDescription)
        assert described.type == "SCALAR"
        [dropped] = engine.execute("DROP TYPE point;")
        assert status(dropped).command_status.message == "Dropped type 'POINT'"


def test_topics_are_asserted(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS)
        [found] = engine.execute("ASSERT TOPIC orders WITH (PARTITIONS=2);")
        assert found == en.AssertedTopic("ASSERT TOPIC orders WITH (PARTITIONS=2);", "orders", True)
        with pytest.raises(StatementFailed, match="Topic gone does not exist"):
            engine.execute("ASSERT TOPIC gone TIMEOUT 0 SECONDS;")


def test_queries_are_no_statements_and_statements_no_queries(
    broker: Broker, tmp_path: Path
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS)
        with pytest.raises(WrongEndpoint):
            engine.execute("SELECT * FROM orders;")
        with pytest.raises(WrongEndpoint):
            engine.query("SHOW STREAMS;")
        with pytest.raises(StatementFailed, match="exactly one"):
            engine.query("SELECT * FROM orders; SELECT * FROM orders;")


def test_a_script_is_run(broker: Broker, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(f"-- streams and tables\n{ORDERS}\n{TOTALS}\n")
    with engine_of(broker, tmp_path) as engine:
        assert len(engine.execute(f"RUN SCRIPT '{script}';")) == 2
        with pytest.raises(StatementFailed, match="Failed to read file"):
            engine.execute("RUN SCRIPT 'nowhere.sql';")


def test_a_topic_is_printed(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + "INSERT INTO orders VALUES ('a', 'pen', 1);")
        printed = engine.print_topic("PRINT orders FROM BEGINNING LIMIT 1;")
        lines = list(printed.lines())
        printed.close()
        assert lines[0] == "Key format: KAFKA_STRING"
        assert 'value: {"ITEM":"pen","AMOUNT":1}' in lines[2]
        with pytest.raises(StatementFailed, match="Could not find topic 'gone'"):
            engine.print_topic("PRINT gone;")


def test_a_damaged_log_degrades_the_engine_and_keeps_what_was_read(
    broker: Broker, tmp_path: Path
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS)
    with producer(broker) as out:
        out.send(command_topic("default_"), b"not a command", b"x").result()
    with engine_of(broker, tmp_path) as engine:
        assert not engine.status.is_healthy
        assert set(engine.state.catalog.sources) == {"ORDERS", "TOTALS"}
        engine.execute("INSERT INTO orders VALUES ('a', 'pen', 1);")
        until_rows(engine, "SELECT * FROM totals;", [("a", 1)])
        with pytest.raises(Degraded, match="command topic"):
            engine.execute("CREATE TYPE t AS INT;")


def test_another_server_carries_out_the_same_commands(broker: Broker, tmp_path: Path) -> None:
    config = SqlConfig(SETTINGS)
    with (
        engine_of(broker, tmp_path / "one") as first,
        Engine(broker, data_directory=tmp_path / "two", config=config, follow=True) as second,
    ):
        first.execute(ORDERS)
        wait_for(lambda: "ORDERS" in second.state.catalog.sources, lambda: "nothing came")
        second.execute("CREATE TYPE t AS INT;")
        first.execute("CREATE TYPE u AS INT;")
        assert set(first.state.catalog.types) == {"T", "U"}


def test_servers_that_write_at_the_same_time_take_turns(broker: Broker, tmp_path: Path) -> None:
    engines = [
        Engine(broker, data_directory=tmp_path / each, config=SqlConfig(SETTINGS), follow=True)
        for each in ("one", "two")
    ]
    with engines[0] as first, engines[1] as second:

        def define(engine: Engine, name: str) -> None:
            for number in range(5):
                engine.execute(f"CREATE TYPE {name}{number} AS INT;")

        with ThreadPoolExecutor() as pool:
            for done in [pool.submit(define, first, "a"), pool.submit(define, second, "b")]:
                done.result()
        for engine in (first, second):
            engine.commands.follow()
            assert len(engine.state.catalog.types) == 10


class Peers:
    """Asks engines of the same process."""

    def __init__(self) -> None:
        self.engines: dict[str, Engine] = {}

    def pull(
        self, host: str, text: str, properties: Mapping[str, object]
    ) -> Iterator[tuple[object, ...]]:
        for row in self.engines[host].query(text, properties, local=True).rows():
            yield row.values


def test_a_pull_query_asks_the_servers_that_have_the_other_partitions(
    broker: Broker, tmp_path: Path
) -> None:
    peers = Peers()
    for name in ("one", "two"):
        config = SqlConfig({**SETTINGS, "ksql.advertised.listener": f"http://{name}:8088"})
        peers.engines[f"{name}:8088"] = Engine(
            broker, data_directory=tmp_path / name, config=config, follow=True, peers=peers
        )
    first, second = peers.engines.values()
    keys = [f"k{number}" for number in range(10)]
    wanted: list[tuple[object, ...]] = [(key, 1) for key in keys]
    with first, second:
        first.execute(ORDERS + TOTALS)
        first.execute("".join(f"INSERT INTO orders VALUES ('{key}', 'x', 1);" for key in keys))
        wait_for(lambda: bool(second.commands.running), lambda: "nothing runs there")
        [query] = first.commands.running.values()
        assert query.where is not None
        store = query.where.store
        wait_for(lambda: query.runtime.elsewhere(store) == ["two:8088"], lambda: "all is here")
        for engine in (first, second):
            until_rows(engine, "SELECT * FROM totals;", wanted)
            assert rows(engine, "SELECT * FROM totals WHERE id = 'k3';") == [("k3", 1)]


def test_a_terminated_cluster_leaves_nothing_behind(broker: Broker, tmp_path: Path) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS)
        engine.commands.terminate_cluster(["TOT.*"])
        with pytest.raises(Degraded, match="terminated"):
            engine.execute("CREATE TYPE t AS INT;")
    with engine_of(broker, tmp_path) as engine:
        assert engine.state.catalog.sources == {}
        [topics] = engine.execute("SHOW TOPICS;")
        assert isinstance(topics, en.TopicsList)
        assert [each.name for each in topics.topics] == ["orders"]


def test_a_query_whose_topic_is_gone_does_not_keep_others_from_running(
    broker: Broker, tmp_path: Path
) -> None:
    with engine_of(broker, tmp_path) as engine:
        engine.execute(ORDERS + TOTALS)
        engine.execute(ORDERS.replace("orders", "lost") + "CREATE STREAM c AS SELECT * FROM lost;")
    with admin(broker) as administration:
        administration.delete_topics(["lost"]).all()
    with engine_of(broker, tmp_path) as engine:
        assert engine.status.is_healthy
        engine.execute("INSERT INTO orders VALUES ('a', 'pen', 1);")
        until_rows(engine, "SELECT * FROM totals;", [("a", 1)])
        [failed] = [each for name, each in engine.commands.running.items() if "CSAS_C" in name]
        wait_for(lambda: bool(failed.runtime.failures), lambda: "it did not fail")
        assert failed.runtime.failures[-1].type is FailureType.USER


def test_columns_of_a_registry_are_the_same_after_a_restart(broker: Broker, tmp_path: Path) -> None:
    registry = MemoryRegistry()
    write = (
        "CREATE STREAM a (k STRING KEY, x INT) "
        "WITH (kafka_topic='a', value_format='AVRO', partitions=1);"
    )
    with engine_of(broker, tmp_path, registry) as engine:
        engine.execute(write)
        engine.execute(
            "CREATE STREAM b (k STRING KEY) WITH (kafka_topic='a', value_format='AVRO');"
            "INSERT INTO b VALUES ('k', 5);"
        )
        assert rows(engine, "SELECT * FROM a;") == [("k", 5)]
        before = engine.state.catalog.sources["B"].schema
    with engine_of(broker, tmp_path, MemoryRegistry()) as engine:
        assert engine.state.catalog.sources["B"].schema == before


def test_formats_with_schemas_need_a_registry(broker: Broker, tmp_path: Path) -> None:
    with (
        engine_of(broker, tmp_path) as engine,
        pytest.raises(StatementFailed, match="schema registry"),
    ):
        engine.execute(
            "CREATE STREAM a (x INT) WITH (kafka_topic='a', value_format='AVRO', partitions=1);"
        )


def test_without_a_broker_topic_a_source_is_refused(broker: Broker, tmp_path: Path) -> None:
    with (
        engine_of(broker, tmp_path) as engine,
        pytest.raises(StatementFailed, match="Topic 'none' does not exist"),
    ):
        engine.execute("CREATE STREAM a (x INT) WITH (kafka_topic='none', value_format='JSON');")


def test_only_definitions_run_without_a_log(broker: Broker, tmp_path: Path) -> None:
    config = SqlConfig(SETTINGS)
    with Engine(broker, data_directory=tmp_path, config=config, headless=True) as engine:
        engine.execute(ORDERS + TOTALS)
        assert sorted(engine.state.queries) == ["CTAS_TOTALS_1"]
        with pytest.raises(StatementFailed, match="standalone mode"):
            engine.execute("SHOW STREAMS;")


def test_a_file_of_statements_runs_without_a_log(broker: Broker, tmp_path: Path) -> None:
    script = tmp_path / "queries.sql"
    script.write_text(f"SET 'auto.offset.reset' = 'earliest'; {ORDERS} {TOTALS}")
    config = SqlConfig({**SETTINGS, "ksql.queries.file": str(script)})
    for total in (1, 2):
        with Engine(broker, data_directory=tmp_path, config=config, headless=True) as engine:
            engine.insert_row("ORDERS", {"ID": "a", "AMOUNT": 1})
            until_rows(engine, "SELECT * FROM totals;", [("a", total)])


def test_an_error_names_its_statement_and_what_was_done_before(
    broker: Broker, tmp_path: Path
) -> None:
    with engine_of(broker, tmp_path) as engine:
        with pytest.raises(StatementFailed) as refused:
            engine.execute(ORDERS + "DROP STREAM missing;")
        assert refused.value.statement == "DROP STREAM missing;"
        assert refused.value.answers == ()
        with pytest.raises(StatementFailed) as failed:
            engine.execute(ORDERS + "INSERT INTO orders VALUES ('a', 'pen', 'many');")
        assert failed.value.statement.startswith("INSERT INTO orders")
        assert len(failed.value.answers) == 1


@pytest.mark.parametrize(
    ("statement", "line", "column"),
    [
        ("DROP missing;", 3, 8),
        ("PRINT orders\nFROM;", 4, 1),
        ("DROP STREAM ${name};", 3, 15),
        ("CREATE STREAM other AS SELECT\n fish FROM orders;", 4, 2),
    ],
)
def test_an_error_names_its_line_of_the_script(
    broker: Broker, tmp_path: Path, statement: str, line: int, column: int
) -> None:
    with engine_of(broker, tmp_path) as engine:
        with pytest.raises(SqlError) as refused:
            engine.execute(f"-- first\n{ORDERS}\n  {statement}")
        assert (refused.value.line, refused.value.column) == (line, column)


def test_the_processing_log_can_be_a_stream(broker: Broker, tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "ksql__logging__processing__topic__auto__create": True,
        "ksql__logging__processing__stream__auto__create": True,
    }
    for _ in range(2):
        with engine_of(broker, tmp_path, **settings) as engine:
            assert set(engine.state.catalog.sources) == {"KSQL_PROCESSING_LOG"}


def test_one_request_may_insert_into_a_stream_from_several_queries(
    broker: Broker, tmp_path: Path
) -> None:
    few = "INSERT INTO big SELECT id, amount FROM orders WHERE amount < 0;"
    with engine_of(broker, tmp_path) as engine:
        engine.execute(
            ORDERS
            + "CREATE STREAM big AS SELECT id, amount FROM orders WHERE amount > 0;"
            + few
            + few.replace("0", "1")
        )
        assert len(engine.state.queries) == 3
