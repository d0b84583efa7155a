"""`millstream up`, `status` and `demo`: all services in one process, stopped, started again."""

import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from click.testing import CliRunner

from broker import Broker
from broker.client import consumer, producer
from broker.model import TopicPartition
from connect.client import ConnectClient
from millstream.__main__ import command_line
from sql.client import SqlClient
from tests.millstream.test_registry_command import ORDER, Served, Shell, served
from tests.support.peer import wait_until
from tests.support.ports import held_ports

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("up-command")]

SERVICES = ("broker", "registry", "connect", "sql")
CONNECTOR = """
CREATE SOURCE CONNECTOR sales WITH (
  'connector.class' = 'io.confluent.kafka.connect.datagen.DatagenConnector',
  'quickstart' = 'orders', 'kafka.topic' = 'sales', 'rate' = '200', 'tasks.max' = '1');
"""
QUERIES = """
CREATE STREAM sales (orderid STRING KEY, itemid STRING, orderunits DOUBLE)
  WITH (KAFKA_TOPIC = 'sales', VALUE_FORMAT = 'JSON', PARTITIONS = 1);
CREATE TABLE sold AS
  SELECT 'all' AS what, COUNT(*) AS orders FROM sales GROUP BY 'all' EMIT CHANGES;
"""
Json = Any  # Any: answers of REST APIs have many shapes


class Up:
    """A running platform: where its services are."""

    def __init__(self, running: Served) -> None:
        self.running = running
        events = {each["event"]: each for each in (running.event() for _ in SERVICES)}
        assert tuple(events) == SERVICES
        assert running.event() == {"event": "ready"}
        self.bootstrap = events["broker"]["bootstrap"]
        self.registry, self.connect, self.sql = (events[name]["url"] for name in SERVICES[1:])

    def status(self) -> Json:
        """`millstream status --json`."""
        ports = (
            each.rpartition(":")[2]
            for each in (self.bootstrap, self.registry, self.connect, self.sql)
        )
        given = zip(SERVICES, ports, strict=True)
        flags = [word for name, port in given for word in (f"--{name}-port", port)]
        return orjson.loads(run("status", "--json", *flags))

    def stop(self, number: signal.Signals) -> None:
        """Tell it to stop: it does, without a complaint."""
        code, out, complaints = self.running.stop(number)
        assert (code, complaints) == (0, "")
        assert orjson.loads(out) == {"event": "stopped"}


@contextmanager
def up(folder: Path, *options: str) -> Iterator[Up]:
    """The platform on free ports."""
    with served("up", "-d", str(folder), "--port-base", "0", "--json", *options) as running:
        yield Up(running)


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(
        command_line, arguments, env={"COLUMNS": "200"}, catch_exceptions=False
    )
    assert result.exit_code == code, result.output
    return result.stdout


def pulled(server: SqlClient) -> int:
    with closing(server.query("SELECT orders FROM sold WHERE what = 'all';")) as found:
        return sum(int(str(row[0])) for row in found.rows())


def test_up_serves_everything_and_goes_on_where_it_was(tmp_path: Path) -> None:
    with up(tmp_path) as first, closing(SqlClient(first.sql)) as server:
        with producer(first.bootstrap) as out:
            out.send("words", b"one").result()
        Shell(first.registry).run("register", "words-value", text=ORDER)
        server.execute(QUERIES, {"auto.offset.reset": "earliest"})
        (created,) = server.execute(CONNECTOR)
        assert created["@type"] == "connector_info"
        wait_until(lambda: pulled(server) > 0, "orders generated, counted and asked for")
        (shown,) = server.execute("SHOW CONNECTORS;")
        assert [each["name"] for each in shown["connectors"]] == ["SALES"]
        (described,) = server.execute("DESCRIBE CONNECTOR sales;")
        assert described["status"]["connector"]["state"] == "RUNNING"
        assert first.status()["ok"]
        first.stop(signal.SIGINT)
        counted = generated(tmp_path)
    with up(tmp_path) as second, closing(SqlClient(second.sql)) as server:
        assert Shell(second.registry).run("get", "words-value").strip() == ORDER.replace(" ", "")
        with consumer(second.bootstrap, group_id="g", auto_offset_reset="earliest") as reader:
            reader.subscribe(["words"])
            assert [each.value for each in reader.poll(timeout_ms=60_000)] == [b"one"]
        wait_until(lambda: pulled(server) > counted, "the connector and the query going on")
        found = second.status()
        assert [each["state"] for each in found["services"]] == ["up"] * 4
        assert [(each["name"], each["tasks"]) for each in found["connectors"]] == [
            ("SALES", "1 RUNNING")
        ]
        assert [each["writes"] for each in found["queries"]] == [["SOLD"]]
        server.execute("DROP CONNECTOR sales;")
        assert ConnectClient(second.connect).names() == []
        second.stop(signal.SIGTERM)


def generated(folder: Path) -> int:
    """How many orders the topic has while nothing runs."""
    partition = TopicPartition("sales", 0)
    with Broker(data_directory=str(folder)) as broker, consumer(broker) as reader:
        return reader.end_offsets([partition])[partition]


def test_people_get_a_table_of_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    port = held_ports(1)[0]
    options = ("--port-base", "0", "--sql-port", str(port), "--set", "sql.ksql.service.id=mine_")
    with served("up", "-d", str(tmp_path), *options) as running:
        while f"millstream sql http://127.0.0.1:{port}" not in running.said():
            pass
        info = httpx.get(f"http://127.0.0.1:{port}/info", timeout=60).json()["KsqlServerInfo"]
        assert info["ksqlServiceId"] == "mine_"
        assert running.stop()[0] == 0


def test_the_demo_of_up_shows_results_until_it_is_stopped(tmp_path: Path) -> None:
    with served("up", "--demo", "-d", str(tmp_path), "--port-base", "0", "--json") as running:
        events = [running.event() for _ in range(6)]
        assert [each["event"] for each in events] == [*SERVICES, "demo", "ready"]
        results: Json = running.event()
        assert results["event"] == "results"
        assert results["window"]["VIEWS"] > 0
        assert results["view"]["USERID"].startswith("User_")
        code, _, complaints = running.stop()
        assert (code, complaints) == (0, "")


def test_the_demo_ends_by_itself_with_what_came_of_it() -> None:
    lines = [orjson.loads(each) for each in run("demo", "--seconds", "3", "--json").splitlines()]
    assert [each["event"] for each in lines[:5]] == [*SERVICES, "demo"]
    windows, enriched, pulled_rows, done, stopped = lines[-5:]
    assert {each["REGION"][:7] for each in windows} == {"Region_"}
    assert {*enriched[0]} == {"USERID", "PAGEID", "REGIONID", "GENDER"}
    assert {each["REGIONID"] for each in pulled_rows} == {"Region_3"}
    assert done["enriched"] > 0
    assert stopped == {"event": "stopped"}


def test_what_does_not_answer_is_down() -> None:
    port = str(held_ports(1)[0])  # a free port
    flags = [word for name in SERVICES for word in (f"--{name}-port", port)]
    found = orjson.loads(run("status", "--json", *flags, code=1))
    assert not found["ok"]
    assert [(each["service"], each["state"]) for each in found["services"]] == [
        (name, "down") for name in SERVICES
    ]
    assert "down" in run("status", *flags, code=1)
