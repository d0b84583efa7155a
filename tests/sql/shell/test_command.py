"""`millstream sql` on an engine of its own: -e, -f, --json, variables, limits and exit codes."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from broker.broker import Broker
from broker.client import admin
from broker.config import BrokerConfig
from broker.errors import MillstreamError, StorageError
from broker.server import Server
from millstream.__main__ import command_line
from millstream.commands.sql_service_id import service_id_of
from sql.server.server import SqlServer
from sql.shell.embedded import EngineOptions, open_on_cluster
from tests.sql.engine.conftest import SETTINGS
from tests.sql.engine.engines import ORDERS, engine_of
from tests.support.peer import wait_until
from tests.support.tidy import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("sql-shell")]

# One partition: rows come in the order they were inserted.
SOURCE = (
    "CREATE STREAM orders (id STRING KEY, item STRING, amount DECIMAL(6, 2)) "
    "WITH (kafka_topic='orders', value_format='JSON', partitions=1);"
    "INSERT INTO orders VALUES ('a', 'pen', 1.50);"
    "INSERT INTO orders VALUES ('b', 'ink', 2);"
    "INSERT INTO orders VALUES ('a', 'ink', 2.25);"
)
TOTALS = "CREATE TABLE totals AS SELECT id, SUM(amount) AS total FROM orders GROUP BY id;"
# The settings make waiting shorter, and read what was written before.
QUICK = (
    *("-s", "auto.offset.reset=earliest", "-s", "commit.interval.ms=50"),
    *("-s", "cache.max.bytes.buffering=0", "-s", "num.stream.threads=1"),
)


class Runner:
    """Runs `millstream sql` on one data directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def result(self, *arguments: str, text: str = "") -> Result:
        where = ("--data-dir", str(self.folder / "data"))
        return CliRunner().invoke(
            command_line, ["sql", *where, *QUICK, *arguments], input=text, catch_exceptions=False
        )

    def text(self, *arguments: str, text: str = "") -> str:
        result = self.result(*arguments, text=text)
        assert result.exit_code == 0, result.output
        return result.stdout

    def json(self, *arguments: str) -> list[dict[str, Any]]:
        lines = self.text("--json", *arguments).splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def test_statements_queries_and_tables_in_one_command(runner: Runner) -> None:
    push = "SELECT total FROM totals WHERE id = 'a' AND total > 2 EMIT CHANGES LIMIT 1;"
    pull = "SELECT * FROM totals WHERE id IN ('a', 'b');"
    created, counted, pushed, *pulled = runner.json("-e", SOURCE + TOTALS + push + pull)
    assert created["commandStatus"]["message"] == "Stream created"
    assert counted["commandStatus"]["queryId"].startswith("CTAS_TOTALS_")
    assert pushed == {"TOTAL": 3.75}
    assert sorted(pulled, key=str) == [{"ID": "a", "TOTAL": 3.75}, {"ID": "b", "TOTAL": 2.0}]


def test_the_next_command_finds_everything_again(runner: Runner) -> None:
    runner.text("-e", SOURCE)
    assert runner.text("-e", "SELECT item, amount FROM orders LIMIT 2") == (
        "+----+------+\n"
        "|ITEM|AMOUNT|\n"
        "+----+------+\n"
        "|pen |1.50  |\n"
        "|ink |2.00  |\n"
        "+----+------+\n"
        "Limit Reached, 2 rows\n"
    )
    assert runner.text("-e", "SHOW STREAMS;").splitlines()[3].split("|")[1:3] == [
        " ORDERS      ",
        " orders      ",
    ]


def test_a_file_with_variables(runner: Runner, tmp_path: Path) -> None:
    script = tmp_path / "script.sql"
    script.write_text(
        SOURCE
        + "DEFINE most = '2';\n-- the end has no semicolon\n"
        + "SELECT id FROM orders WHERE item = '${item}' EMIT CHANGES LIMIT ${most}"
    )
    rows = runner.json("-f", str(script), "-d", "item=ink")[1:]
    assert rows == [{"ID": "b"}, {"ID": "a"}]


def test_statements_come_from_standard_input_too(runner: Runner) -> None:
    found = runner.text(text="version\n; exit; SHOW NONSENSE;")
    assert found.strip()


def test_queries_end_after_rows_or_a_time(runner: Runner) -> None:
    push = "SELECT * FROM orders EMIT CHANGES;"
    assert len(runner.json("-e", SOURCE + push, "--query-row-limit", "2")) == 3
    quiet = "SELECT * FROM orders WHERE id = 'nobody' EMIT CHANGES;"
    assert runner.json("-e", quiet, "--query-timeout", "1") == []
    assert runner.json("-e", "PRINT 'orders';", "--query-timeout", "1") == []


def test_topics_are_printed(runner: Runner) -> None:
    found = runner.text("-e", SOURCE + "PRINT 'orders' FROM BEGINNING LIMIT 1;")
    assert "key: a" in found


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT nothing FROM orders;", "NOTHING"),
        ("SELEC 1;", "SELEC"),
        ("CREATE STREAM orders (a INT) WITH (kafka_topic='o', value_format='JSON');", "ORDERS"),
    ],
)
def test_an_error_ends_the_command(runner: Runner, statement: str, message: str) -> None:
    with pytest.raises(MillstreamError, match=message):
        runner.result("-e", f"{SOURCE} {statement} SHOW STREAMS;")


def test_wrong_options_are_refused(runner: Runner, tmp_path: Path) -> None:
    (tmp_path / "a.sql").touch()
    assert runner.result("-e", "x", "-f", str(tmp_path / "a.sql")).exit_code == 2
    assert runner.result("-f", str(tmp_path / "missing.sql")).exit_code == 2
    assert runner.result("-e", "x", "-d", "novalue").exit_code == 2
    with pytest.raises(MillstreamError, match=r"no\.such"):
        runner.result("-e", "SHOW STREAMS;", "-s", "no.such=1")
    assert runner.result("--engine", "abacus").exit_code == 2


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--bounded",), "--bounded requires --engine spark"),
        (("--spark-master", "local[2]"), "--spark-master requires --engine spark"),
        (("http://x:1", "--engine", "spark", "--bounded"), "not for a server"),
        (("http://x:1", "--engine", "spark", "--spark-master", "local"), "not for a server"),
    ],
)
def test_options_of_spark_that_make_no_sense_are_refused(
    runner: Runner, options: tuple[str, ...], why: str
) -> None:
    found = runner.result(*options, "-e", "SHOW STREAMS;")
    assert found.exit_code == 2
    assert why in found.output


def test_a_directory_in_use_is_left_alone(runner: Runner, tmp_path: Path) -> None:
    with (
        Broker(BrokerConfig.from_properties(SETTINGS), data_directory=str(tmp_path / "data")),
        pytest.raises(StorageError, match="in use"),
    ):
        runner.result("-e", "SHOW STREAMS;")


def test_the_engine_may_run_on_a_cluster_and_statements_go_to_a_server(
    runner: Runner, tmp_path: Path
) -> None:
    config = BrokerConfig.from_properties(SETTINGS)
    with (
        Broker(config, data_directory=str(tmp_path / "broker")) as broker,
        Server(broker) as kafka,
    ):
        runner.text("-b", kafka.bootstrap, "--service-id", "default_", "-e", SOURCE)
        with engine_of(broker, tmp_path) as engine, SqlServer(engine, listen="127.0.0.1:0") as sql:
            assert runner.json(sql.url, "-e", "SELECT id FROM orders LIMIT 1;") == [{"ID": "a"}]
            with pytest.raises(MillstreamError, match="ORDERS"):
                runner.result(sql.url, "-e", ORDERS)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A cluster with the SQL server of `up`, which has a query."""
    config = BrokerConfig.from_properties(SETTINGS)
    with (
        Broker(config, data_directory=str(tmp_path / "broker")) as broker,
        Server(broker) as kafka,
        engine_of(broker, tmp_path) as engine,
    ):
        engine.execute(SOURCE + TOTALS)
        yield kafka.bootstrap


def groups(bootstrap: str) -> set[str]:
    """Groups that have members."""
    with admin(bootstrap) as administration:
        return {each.group_id for each in administration.list_groups() if each.state != "Empty"}


def service_topics(bootstrap: str) -> set[str]:
    with admin(bootstrap) as administration:
        return {name for name in administration.list_topics() if name.startswith("_confluent-ksql")}


def test_a_command_is_no_node_of_the_service_of_a_server(runner: Runner, cluster: str) -> None:
    before = service_topics(cluster)
    create = (
        "CREATE STREAM orders (id STRING KEY, item STRING) "
        "WITH (kafka_topic='orders', value_format='JSON');"
        "CREATE STREAM pens WITH (kafka_topic='pens') AS SELECT * FROM orders;"
    )
    shown = runner.json("-b", cluster, "-e", create + "SHOW QUERIES;")
    assert [each["sinks"] for each in shown[-1]["queries"]] == [["PENS"]]
    # Nothing of it stays, but the topic that the statement names.
    assert service_topics(cluster) == before
    with admin(cluster) as administration:
        assert "pens" in administration.list_topics()
        left = {each.group_id for each in administration.list_groups()}
    assert not [each for each in left if each.startswith("_confluent-ksql-cli_")]


def test_a_file_goes_on_with_its_queries_at_the_next_run(
    runner: Runner, cluster: str, tmp_path: Path
) -> None:
    file = tmp_path / "job.sql"
    file.write_text(
        "CREATE STREAM IF NOT EXISTS orders (id STRING KEY, item STRING) "
        "WITH (kafka_topic='orders', value_format='JSON');"
        "CREATE TABLE IF NOT EXISTS counts AS SELECT id, COUNT(*) AS n FROM orders GROUP BY id;"
        "SHOW QUERIES;"
    )
    ids = []
    for _ in range(2):
        shown = runner.json("-b", cluster, "-f", str(file))
        (query,) = shown[-1]["queries"]
        ids.append(query["id"])
    assert ids[0] == ids[1]
    assert [each for each in service_topics(cluster) if "cli_job_" in each]


def test_a_service_that_runs_is_left_alone(runner: Runner, cluster: str) -> None:
    wait_until(lambda: bool(groups(cluster)), "a query that runs")
    for given in (("--service-id", "default_"), ("-s", "ksql.service.id=default_")):
        with pytest.raises(MillstreamError, match="its queries would run twice"):
            runner.result("-b", cluster, *given, "-e", "SHOW STREAMS;")


def test_a_service_is_used_by_one_command_at_a_time(
    runner: Runner, cluster: str, tmp_path: Path
) -> None:
    options = EngineOptions(tmp_path / "data", {"ksql.service.id": "mine_"})
    with (
        closing(open_on_cluster(cluster, None, options)),
        pytest.raises(MillstreamError, match="its queries would run twice"),
    ):
        runner.result("-b", cluster, "--service-id", "mine_", "-e", "SHOW STREAMS;")


@pytest.mark.parametrize(
    ("file", "text", "bounded", "is_temporary"),
    [
        (Path("a/job.sql"), "x", False, False),
        (Path("a/job.sql"), "x", True, False),
        (None, "x", True, False),
        (None, None, False, False),
        (None, "x", False, True),
    ],
)
def test_ids_of_services_stay_unless_they_are_temporary(
    file: Path | None, text: str | None, bounded: bool, is_temporary: bool
) -> None:
    first, second = (service_id_of(None, file=file, text=text, bounded=bounded) for _ in "ab")
    assert first.is_temporary is is_temporary
    assert (first.text == second.text) is not is_temporary
    assert first.text.startswith("cli_")
    other = service_id_of(None, file=Path("b/job.sql"), text=text, bounded=bounded)
    assert other.text != first.text


def test_the_example_ends_with_the_totals_of_a_customer(runner: Runner) -> None:
    example = str(ROOT / "examples" / "order_totals.sql")
    assert runner.text("-f", example).endswith(
        "|CUSTOMER|FROM_TIME|ORDERS|TOTAL|\n"
        "+--------+---------+------+-----+\n"
        "|ann     |22:00    |2     |20.00|\n"
        "|ann     |23:00    |1     |4.00 |\n"
        "+--------+---------+------+-----+\n"
        "2 rows\n"
    )


def test_functions_of_files_can_be_called(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from sql.functions.user import udf\n\n"
        "@udf\ndef doubled(text: str) -> str:\n    return text + text\n"
    )
    found = Runner(tmp_path).result(
        "--functions",
        str(file),
        "-e",
        SOURCE + "SELECT doubled(item) AS d FROM orders EMIT CHANGES LIMIT 1;",
    )
    assert "penpen" in found.output
