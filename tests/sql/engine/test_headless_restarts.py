"""A headless server pins the plans of its file: other settings do not change running queries."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from broker.broker import Broker
from broker.client import admin, producer
from broker.client.administration.values import ConfigChange, ConfigResource, NewTopic
from broker.config import BrokerConfig
from sql.command_log import CommandLog, DamagedCommand, config_topic
from sql.engine.engine import Engine
from sql.engine.pinned_plans import PinnedPlans
from sql.engine.settings import SqlConfig
from sql.errors import StatementFailed
from sql.planner.planner import Planner
from tests.sql.engine.conftest import SETTINGS as BROKER
from tests.sql.engine.engines import ORDERS, SETTINGS, TOTALS, until_rows, wait_for

pytestmark = pytest.mark.slow

FORMAT = "ksql.persistence.default.format.value"
PREFIX = "ksql.output.topic.name.prefix"
PLAIN_ORDERS = (
    "CREATE STREAM orders (id STRING KEY, item STRING, amount INT) "
    "WITH (kafka_topic='orders', partitions=2);\n"
)
BIG = "CREATE STREAM big AS SELECT id, amount FROM orders WHERE amount > 0 EMIT CHANGES;\n"
LATER = "CREATE STREAM later AS SELECT id, item FROM orders;\n"
WINDOWED = (
    "CREATE TABLE hourly AS SELECT id, SUM(amount) AS total FROM orders "
    "WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY id;\n"
)
TOPIC = config_topic("default_")


@contextmanager
def headless(broker: Broker, folder: Path, file: str, **settings: Any) -> Iterator[Engine]:
    """A headless server of a file, started."""
    folder.mkdir(exist_ok=True)
    script = folder / "queries.sql"
    script.write_text(file)
    config = SqlConfig({**SETTINGS, "ksql.queries.file": str(script), **settings})
    with Engine(broker, data_directory=folder / "sql", config=config, headless=True) as engine:
        yield engine


def write_order(broker: Broker, key: str, amount: int) -> None:
    """Write a record as JSON, whatever the catalog says."""
    with producer(broker) as out:
        value = json.dumps({"ITEM": "x", "AMOUNT": amount}).encode()
        out.send("orders", value, key.encode()).result()


def pinned(broker: Broker) -> list[str]:
    """The keys of the config topic, in the order in which they were written."""
    with closing(CommandLog(broker, TOPIC)) as log:
        return [each.command.id for each in log.unread()]


def topics_of(broker: Broker) -> set[str]:
    with admin(broker) as administration:
        return set(administration.list_topics())


def test_the_default_format_of_a_later_start_changes_nothing(
    broker: Broker, tmp_path: Path
) -> None:
    file = PLAIN_ORDERS + BIG + TOTALS
    with headless(broker, tmp_path, file, **{FORMAT: "JSON"}) as engine:
        write_order(broker, "a", 1)
        until_rows(engine, "SELECT * FROM totals;", [("a", 1)])
        before = engine.state
    with headless(broker, tmp_path, file, **{FORMAT: "DELIMITED"}) as engine:
        assert engine.state == before
        write_order(broker, "b", 2)
        until_rows(engine, "SELECT * FROM totals;", [("a", 1), ("b", 2)])
        until_rows(engine, "SELECT * FROM big;", [("a", 1), ("b", 2)])
    with headless(broker, tmp_path, file) as engine:  # and with none at all
        assert engine.state == before
    assert len(pinned(broker)) == 3


def test_the_output_prefix_of_a_later_start_is_for_new_statements(
    broker: Broker, tmp_path: Path
) -> None:
    with headless(broker, tmp_path, ORDERS + BIG, **{PREFIX: "first-"}) as engine:
        assert engine.state.catalog.sources["BIG"].topic == "first-BIG"
    with headless(broker, tmp_path, ORDERS + LATER + BIG, **{PREFIX: "second-"}) as engine:
        assert list(engine.state.queries) == ["CSAS_LATER_2", "CSAS_BIG_1"], "ids stay, too"
        assert engine.state.catalog.sources["BIG"].topic == "first-BIG"
        assert engine.state.catalog.sources["LATER"].topic == "second-LATER"
    assert "second-BIG" not in topics_of(broker)


def test_a_query_keeps_the_settings_of_its_first_start(broker: Broker, tmp_path: Path) -> None:
    file = ORDERS + TOTALS
    first = {"processing.guarantee": "exactly_once_v2", "auto.offset.reset": "earliest"}
    with headless(broker, tmp_path, file, **first):
        pass
    second = {
        "processing.guarantee": "at_least_once",
        "auto.offset.reset": "latest",
        "num.stream.threads": 2,
    }
    with headless(broker, tmp_path, file, **second) as engine:
        [query] = engine.state.queries.values()
        kept = engine._launcher.config_of(query)
        assert kept["processing.guarantee"] == "exactly_once_v2"
        assert kept["auto.offset.reset"] == "earliest"
        assert kept["num.stream.threads"] == 2, "how the machine works is the server's"


def test_a_file_that_did_not_change_is_not_planned_again(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    type_ = "CREATE TYPE pair AS STRUCT<a INT, b INT>;"
    pairs = (
        "CREATE STREAM pairs (id STRING KEY, p pair) "
        "WITH (kafka_topic='pairs', value_format='JSON', partitions=1);"
    )
    kept = (
        "CREATE SOURCE TABLE kept (id STRING PRIMARY KEY, n INT) "
        "WITH (kafka_topic='kept', value_format='JSON');"
    )
    with admin(broker) as administration:
        administration.create_topics([NewTopic("kept", 1)]).all()
    altered = "ALTER STREAM orders ADD COLUMN extra STRING;"
    insert = "INSERT INTO big SELECT id, amount FROM orders WHERE amount < 0;"
    file = type_ + pairs + kept + ORDERS + BIG + insert + insert + altered + TOTALS + WINDOWED
    with headless(broker, tmp_path, file) as engine:
        before = engine.state
        assert len(before.queries) == 6
    formatted = "-- the same\n" + file.replace(" FROM ", "\n  from ").replace("EMIT", "/* */ EMIT")
    monkeypatch.setattr(Planner, "plan", None)
    with headless(broker, tmp_path, formatted) as engine:
        assert engine.state == before


def test_a_removed_statement_ends_and_goes_on_when_it_comes_back(
    broker: Broker, tmp_path: Path
) -> None:
    with headless(broker, tmp_path, PLAIN_ORDERS + BIG + TOTALS, **{FORMAT: "JSON"}) as engine:
        write_order(broker, "a", 1)
        until_rows(engine, "SELECT * FROM totals;", [("a", 1)])
    with headless(broker, tmp_path, PLAIN_ORDERS + BIG, **{FORMAT: "DELIMITED"}) as engine:
        assert list(engine.commands.running) == ["CSAS_BIG_1"]
        write_order(broker, "a", 2)
        until_rows(engine, "SELECT * FROM big;", [("a", 1), ("a", 2)])
    with headless(broker, tmp_path, TOTALS.join([PLAIN_ORDERS, BIG])) as engine:
        assert list(engine.state.queries) == ["CTAS_TOTALS_2", "CSAS_BIG_1"]
        until_rows(engine, "SELECT * FROM totals;", [("a", 3)])


def test_the_first_plans_are_not_rewritten_as_stores_of_an_earlier_version_may_be_there(
    broker: Broker, tmp_path: Path
) -> None:
    by_item = "CREATE TABLE {} AS SELECT item, COUNT(*) AS n FROM orders GROUP BY item;\n"
    first = ORDERS + by_item.format("first")
    for file in (first, first + by_item.format("later")):
        with headless(broker, tmp_path, file) as engine:
            rules = [each.planned.rules for each in engine.state.queries.values()]
    assert rules == [(), ("prune_columns",)]


def test_an_edited_statement_keeps_its_settings_its_id_and_its_offsets(
    broker: Broker, tmp_path: Path
) -> None:
    with headless(broker, tmp_path, PLAIN_ORDERS + BIG, **{FORMAT: "JSON"}) as engine:
        write_order(broker, "a", 1)
        until_rows(engine, "SELECT * FROM big;", [("a", 1)])
    edited = BIG.replace("> 0", "> 1")
    for _ in range(2):
        with headless(broker, tmp_path, PLAIN_ORDERS + edited, **{FORMAT: "KAFKA"}) as engine:
            assert list(engine.state.queries) == ["CSAS_BIG_1"]
            assert engine.state.catalog.sources["BIG"].value_format.name == "JSON"
            write_order(broker, "b", 2)
            write_order(broker, "c", 1)
    until: list[tuple[object, ...]] = [("a", 1), ("b", 2), ("b", 2)]
    with headless(broker, tmp_path, PLAIN_ORDERS + edited) as engine:
        until_rows(engine, "SELECT * FROM big;", until)
    assert pinned(broker).count("1/stream/`BIG`/create") == 2, "one for each version"


def test_a_query_follows_a_source_that_was_edited(broker: Broker, tmp_path: Path) -> None:
    everything = (
        "CREATE TABLE newest AS SELECT id, LATEST_BY_OFFSET(item) AS i FROM orders GROUP BY id;"
    )
    copied = "CREATE STREAM copied AS SELECT * FROM orders;"
    with headless(broker, tmp_path, PLAIN_ORDERS + copied + everything, **{FORMAT: "JSON"}):
        pass
    wider = PLAIN_ORDERS.replace("amount INT", "amount INT, extra STRING")
    with headless(broker, tmp_path, wider + copied + everything, **{FORMAT: "KAFKA"}) as engine:
        source = engine.state.catalog.sources["COPIED"]
        assert [each.name for each in source.schema.value] == ["ITEM", "AMOUNT", "EXTRA"]
        assert source.value_format.name == "JSON"
        assert list(engine.state.queries) == ["CSAS_COPIED_1", "CTAS_NEWEST_2"]


def test_an_edit_that_cannot_use_the_state_begins_a_new_query(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with headless(broker, tmp_path, ORDERS + WINDOWED + BIG):
        pass
    edited = WINDOWED.replace("1 HOUR", "2 HOURS")
    for _ in range(2):
        with headless(broker, tmp_path, ORDERS + edited + BIG) as engine:
            assert list(engine.state.queries) == ["CTAS_HOURLY_3", "CSAS_BIG_2"]
    [warning] = [each.getMessage() for each in caplog.records if "CTAS_HOURLY_1" in each.message]
    assert "a new one starts" in warning


def test_other_settings_of_set_are_for_the_statements_after_it(
    broker: Broker, tmp_path: Path
) -> None:
    file = "SET 'auto.offset.reset'='{}';" + ORDERS + TOTALS
    for reset in ("earliest", "latest"):
        with headless(broker, tmp_path, file.format(reset)) as engine:
            [query] = engine.state.queries.values()
            assert query.id == "CTAS_TOTALS_1"
            assert engine._launcher.config_of(query)["auto.offset.reset"] == reset


def test_servers_with_other_settings_run_the_same_queries(broker: Broker, tmp_path: Path) -> None:
    file = PLAIN_ORDERS + BIG
    with (
        headless(broker, tmp_path / "one", file, **{FORMAT: "JSON"}) as one,
        headless(broker, tmp_path / "two", file, **{FORMAT: "DELIMITED"}) as two,
    ):
        assert two.state == one.state


def test_a_server_that_is_overtaken_while_it_starts_uses_the_plans_of_the_other(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = PLAIN_ORDERS + BIG
    write = PinnedPlans.write
    states = []

    def overtaken(self: PinnedPlans, pins: Any) -> bool:
        monkeypatch.setattr(PinnedPlans, "write", write)
        with headless(broker, tmp_path / "one", file, **{FORMAT: "JSON"}) as one:
            states.append(one.state)
        return self.write(pins)

    monkeypatch.setattr(PinnedPlans, "write", overtaken)
    with headless(broker, tmp_path / "two", file, **{FORMAT: "DELIMITED"}) as two:
        assert [two.state] == states
    assert len(pinned(broker)) == 2


def test_a_start_that_fails_pins_nothing(broker: Broker, tmp_path: Path) -> None:
    avro = PLAIN_ORDERS.replace("WITH (", "WITH (value_format='AVRO', ")
    wrong = "CREATE STREAM wrong AS SELECT nothing FROM orders;"
    for file in (avro, ORDERS + wrong):
        with pytest.raises(StatementFailed), headless(broker, tmp_path, file):
            pass
    assert pinned(broker) == []
    with headless(broker, tmp_path, PLAIN_ORDERS, **{FORMAT: "JSON"}) as engine:
        assert engine.state.catalog.sources["ORDERS"].value_format.name == "JSON"


def test_a_source_without_its_topic_is_refused_as_at_the_first_start(
    broker: Broker, tmp_path: Path
) -> None:
    file = ORDERS.replace(", partitions=2", "")
    with headless(broker, tmp_path / "other", ORDERS, **{"ksql.service.id": "other_"}):
        pass
    with headless(broker, tmp_path, file):
        pass
    with admin(broker) as administration:
        administration.delete_topics(["orders"]).all()
    with (
        pytest.raises(StatementFailed, match="Topic 'orders' does not exist"),
        headless(broker, tmp_path, file),
    ):
        pass


def test_a_record_that_is_not_a_pinned_plan_stops_the_start(broker: Broker, tmp_path: Path) -> None:
    log = CommandLog(broker, TOPIC, cleanup_policy="compact")
    log.open()
    with producer(broker) as out:
        out.send(TOPIC, b'{"ksqlProperties": {}}', b'"config"', partition=0).result()
    with pytest.raises(DamagedCommand), headless(broker, tmp_path, ORDERS):
        pass


def test_the_config_topic_is_compacted_and_has_one_partition(
    broker: Broker, tmp_path: Path
) -> None:
    with headless(broker, tmp_path, ORDERS):
        pass
    with admin(broker) as administration:
        assert len(administration.describe_topics([TOPIC])[TOPIC].partitions) == 1
        topic = ConfigResource("topic", TOPIC)
        assert administration.describe_configs([topic])[topic]["cleanup.policy"].value == "compact"
    assert TOPIC == "_confluent-ksql-default_configs"
    assert "_confluent-ksql-default_command_topic" not in topics_of(broker)


def test_pins_are_read_after_the_config_topic_was_compacted(tmp_path: Path) -> None:
    settings = {**BROKER, "log.cleaner.backoff.ms": "50"}
    config = BrokerConfig.from_properties(settings)
    with Broker(config, data_directory=str(tmp_path / "broker")) as broker:
        log = CommandLog(broker, TOPIC, cleanup_policy="compact")
        log.open()
        with admin(broker) as administration:
            small = {"segment.bytes": "8192", "min.cleanable.dirty.ratio": "0.001"}
            changes = [ConfigChange(name, value) for name, value in small.items()]
            administration.alter_configs({ConfigResource("topic", TOPIC): changes}).all()
        for least in range(8):
            file = ORDERS + BIG.replace("> 0", f"> {least}") + LATER
            with headless(broker, tmp_path / "one", file) as engine:
                before = engine.state
        wait_for(lambda: len(pinned(broker)) < 8, lambda: f"{pinned(broker)} was not compacted")
        with headless(broker, tmp_path / "one", file, **{PREFIX: "other-"}) as engine:
            assert engine.state == before
