"""The JDBC connectors: validation, tables that are chosen, found and divided over tasks."""

import threading

import pytest

from broker.model import TopicPartition
from connect.api import ExactlyOnceSupport
from connect.connectors.jdbc import dialects
from connect.connectors.jdbc.addresses import Address, parse_address
from connect.connectors.jdbc.database import Database
from connect.connectors.jdbc.sink_connector import JdbcSinkConnector
from connect.connectors.jdbc.sink_task import JdbcSinkTask
from connect.connectors.jdbc.source_connector import JdbcSourceConnector
from connect.connectors.jdbc.source_task import TABLES, JdbcSourceTask
from connect.connectors.jdbc.tables import TableName, list_tables, read_table_list
from connect.errors import ConfigError, ConnectError, RetriableError
from tests.connect.connectors.contexts import StoredOffsets
from tests.connect.connectors.jdbc.databases import SomeDatabase
from tests.support.peer import wait_until

SOURCE = {"connection.url": "jdbc:sqlite:file.db", "mode": "bulk", "topic.prefix": "db-"}
SINK = {"connection.url": "jdbc:sqlite:file.db"}


class HandConnectorContext:
    """Records the calls of a connector to its worker."""

    def __init__(self) -> None:
        self.offset_reader = StoredOffsets()
        self.reconfigured = threading.Event()
        self.errors: list[Exception] = []

    def request_task_reconfiguration(self) -> None:
        self.reconfigured.set()

    def raise_error(self, error: Exception) -> None:
        self.errors.append(error)


def started(database: SomeDatabase, **settings: str) -> JdbcSourceConnector:
    connector = JdbcSourceConnector()
    connector.context = HandConnectorContext()
    given = {name.replace("_", "."): value for name, value in settings.items()}
    connector.start({**database.settings, "mode": "bulk", "topic.prefix": "db-", **given})
    return connector


def tables_of(connector: JdbcSourceConnector, tasks: int = 1) -> list[list[str]]:
    configs = connector.task_configs(tasks)
    return [[table.name for table in read_table_list(config[TABLES])] for config in configs]


@pytest.fixture
def shop(database: SomeDatabase) -> SomeDatabase:
    """Some tables and a view."""
    for name in ("customers", "orders", "order_lines", "products"):
        database.execute(f"CREATE TABLE {name} (id INT NOT NULL)")
    database.execute("CREATE VIEW cheap_products AS SELECT * FROM products")
    return database


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ["customers", "order_lines", "orders", "products"]),
        ({"table_whitelist": "orders, customers,missing"}, ["customers", "orders"]),
        ({"table_blacklist": "orders,products"}, ["customers", "order_lines"]),
        ({"table_include_list": "(.*[.])?order.*"}, ["order_lines", "orders"]),
        ({"table_include_list": "orders,pro.*"}, ["orders", "products"]),
        ({"table_exclude_list": "order.*"}, ["customers", "products"]),
        ({"table_types": "view"}, ["cheap_products"]),
        (
            {"table_types": "TABLE,VIEW", "table_blacklist": "customers,orders,order_lines"},
            ["cheap_products", "products"],
        ),
    ],
)
def test_tables_are_chosen(
    shop: SomeDatabase, settings: dict[str, str], expected: list[str]
) -> None:
    connector = started(shop, **settings)
    assert tables_of(connector) == [expected]
    connector.stop()


@pytest.mark.parametrize(
    ("tasks", "expected"),
    [
        (1, [["customers", "order_lines", "orders", "products"]]),
        (3, [["customers", "order_lines"], ["orders"], ["products"]]),
        (9, [["customers"], ["order_lines"], ["orders"], ["products"]]),
    ],
)
def test_tables_are_divided_over_tasks(
    shop: SomeDatabase, tasks: int, expected: list[list[str]]
) -> None:
    connector = started(shop)
    assert tables_of(connector, tasks) == expected
    connector.stop()


def test_names_with_schema_choose_too(shop: SomeDatabase) -> None:
    connector = started(shop, table_whitelist=shop.full_name("orders"))
    assert tables_of(connector) == [["orders"]]
    connector.stop()


def test_new_and_dropped_tables_are_noticed(shop: SomeDatabase) -> None:
    connector = started(shop, table_poll_interval_ms="20", table_blacklist="customers,products")
    context = connector.context
    assert isinstance(context, HandConnectorContext)
    assert tables_of(connector) == [["order_lines", "orders"]]
    shop.execute("CREATE TABLE returns (id INT NOT NULL)")
    assert context.reconfigured.wait(60)
    assert tables_of(connector) == [["order_lines", "orders", "returns"]]
    context.reconfigured.clear()
    shop.execute("DROP TABLE order_lines")
    assert context.reconfigured.wait(60)
    assert tables_of(connector) == [["orders", "returns"]]
    connector.stop()


def test_an_unexpected_error_of_the_search_for_tables_fails_the_connector(
    shop: SomeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = started(shop, table_poll_interval_ms="20")
    context = connector.context
    assert isinstance(context, HandConnectorContext)
    assert tables_of(connector) != []

    def broken(self: object) -> list[TableName]:
        raise KeyError("a column that is not there")

    monkeypatch.setattr(Database, "list_tables", broken)
    wait_until(lambda: bool(context.errors), "the error of the search")
    assert isinstance(context.errors[0], KeyError)
    connector.stop()


def test_a_database_that_is_away_for_a_while_does_not_end_the_search(
    shop: SomeDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    connector = started(shop, table_poll_interval_ms="20")
    context = connector.context
    assert isinstance(context, HandConnectorContext)
    tables_of(connector)
    away = threading.Event()
    with monkeypatch.context() as patched:

        def raise_away(self: object) -> list[TableName]:
            away.set()
            raise RetriableError("the database is away")

        patched.setattr(Database, "list_tables", raise_away)
        assert away.wait(60)
    shop.execute("CREATE TABLE returns (id INT NOT NULL)")
    assert context.reconfigured.wait(60)
    assert not context.errors
    connector.stop()


def test_a_database_without_tables_has_no_tasks_yet(database: SomeDatabase) -> None:
    connector = started(database, table_poll_interval_ms="20")
    assert connector.task_configs(3) == []
    database.execute("CREATE TABLE first (id INT NOT NULL)")
    assert connector.context.reconfigured.wait(60)  # type: ignore[attr-defined]
    assert tables_of(connector) == [["first"]]
    connector.stop()


def test_a_query_needs_no_tables(shop: SomeDatabase) -> None:
    connector = started(shop, query="SELECT * FROM orders")
    (config,) = connector.task_configs(3)
    assert config["query"] == "SELECT * FROM orders"
    assert connector.task_class() is JdbcSourceTask
    connector.stop()


def test_an_unreachable_database_fails_the_connector_only() -> None:
    connector = JdbcSourceConnector()
    context = connector.context = HandConnectorContext()
    connector.start(
        {
            **SOURCE,
            "connection.url": "jdbc:postgresql://127.0.0.1:1/nowhere",
            "connection.attempts": "2",
            "connection.backoff.ms": "1",
        }
    )
    wait_until(lambda: bool(context.errors), "the error of an unreachable database")
    assert "cannot connect" in str(context.errors[0])
    assert "postgres://127.0.0.1:1/nowhere" in str(context.errors[0])
    connector.stop()


@pytest.mark.parametrize(
    ("changes", "complaints"),
    [
        ({}, {}),
        (
            {"table.whitelist": "a", "table.blacklist": "b"},
            {
                "table.whitelist": ["table.whitelist cannot be set together with table.blacklist"],
                "table.blacklist": ["table.blacklist cannot be set together with table.whitelist"],
            },
        ),
        (
            {"table.include.list": "a", "query": "SELECT 1"},
            {"table.include.list": ["table.include.list cannot be set together with query"]},
        ),
        (
            {"mode": "timestamp"},
            {"timestamp.column.name": ["mode timestamp requires timestamp.column.name"]},
        ),
        (
            {"mode": "incrementing", "query": "SELECT 1"},
            {
                "incrementing.column.name": [
                    "mode incrementing with a query requires incrementing.column.name"
                ]
            },
        ),
    ],
)
def test_settings_of_the_source_that_cannot_stand_together(
    changes: dict[str, str], complaints: dict[str, list[str]]
) -> None:
    config = {**SOURCE, **changes}
    assert JdbcSourceConnector().validate(config) == complaints
    if complaints:
        with pytest.raises(ConfigError):
            JdbcSourceConnector().start(config)


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({}, set()),
        ({"insert.mode": "upsert"}, {"insert.mode", "pk.mode"}),
        ({"delete.enabled": "true"}, {"delete.enabled", "pk.mode"}),
        ({"pk.mode": "kafka", "pk.fields": "a,b"}, {"pk.fields"}),
        ({"pk.mode": "record_key", "delete.enabled": "true", "insert.mode": "upsert"}, set()),
    ],
)
def test_settings_of_the_sink_that_cannot_stand_together(
    changes: dict[str, str], names: set[str]
) -> None:
    config = {**SINK, **changes}
    assert set(JdbcSinkConnector().validate(config) or ()) == names
    if names:
        with pytest.raises(ConfigError):
            JdbcSinkConnector().start(config)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("mode", "all", "String must be one of: bulk, timestamp"),
        ("connection.url", "jdbc:oracle:thin:@x", "Invalid value jdbc:oracle:thin:@x"),
        ("connection.url", "nonsense", "Invalid value nonsense"),
        ("db.timezone", "Mars/Base", "Invalid time zone identifier"),
        ("batch.max.rows", "0", "Value must be at least 1"),
        ("numeric.mapping", "some", "String must be one of"),
        ("dialect.name", "OracleDatabaseDialect", "Invalid value OracleDatabaseDialect"),
        ("transaction.isolation.mode", "NONE", "String must be one of"),
    ],
)
def test_invalid_values_are_reported_by_name(name: str, value: str, complaint: str) -> None:
    found = JdbcSourceConnector.config().validate({**SOURCE, name: value})
    errors = {each.name: each.errors for each in found if each.errors}
    assert set(errors) == {name}
    assert complaint in errors[name][0]
    assert JdbcSourceConnector().validate({**SOURCE, name: value}) is None


def test_a_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str) -> object:
        raise ModuleNotFoundError("No module named 'psycopg'", name="psycopg")

    monkeypatch.setattr(dialects, "import_module", missing)
    found = JdbcSinkConnector().validate({"connection.url": "jdbc:postgresql://localhost/db"})
    assert found is not None
    assert "needs the package psycopg" in found["connection.url"][0]
    assert "millstream[postgres]" in found["connection.url"][0]


@pytest.mark.parametrize(
    ("mode", "delay_ms", "on_sqlite", "on_a_server"),
    [
        ("bulk", 0, False, False),
        ("timestamp", 0, False, False),
        ("timestamp", 1_000, False, False),
        ("incrementing", 0, True, False),
        ("incrementing", 1_000, True, False),
        ("timestamp+incrementing", 0, True, False),
        ("timestamp+incrementing", 1_000, True, True),
    ],
)
def test_exactly_once_needs_an_incrementing_column_and_no_row_that_commits_late(
    mode: str, delay_ms: int, on_sqlite: bool, on_a_server: bool
) -> None:
    config = {**SOURCE, "mode": mode, "timestamp.delay.interval.ms": str(delay_ms)}
    server = {**config, "connection.url": "jdbc:postgresql://localhost/db"}
    found = [JdbcSourceConnector().exactly_once_support(each) for each in (config, server)]
    assert [each is ExactlyOnceSupport.SUPPORTED for each in found] == [on_sqlite, on_a_server]


def test_offsets_that_no_task_would_read_are_refused() -> None:
    connector = JdbcSourceConnector()
    table = {"protocol": "1", "table": "people"}
    assert connector.alter_offsets(SOURCE, [(table, {"incrementing": 5}), ({"any": 1}, None)])
    with pytest.raises(ConnectError, match="is not a partition of this connector"):
        connector.alter_offsets(SOURCE, [({"filename": "a"}, {"incrementing": 5})])
    with pytest.raises(ConnectError, match="is not an integer"):
        connector.alter_offsets(SOURCE, [(table, {"incrementing": "five"})])


def test_every_task_of_the_sink_is_the_same() -> None:
    connector = JdbcSinkConnector()
    connector.start(SINK)
    assert connector.task_configs(2) == [SINK, SINK]
    assert connector.task_class() is JdbcSinkTask
    assert connector.alter_offsets(SINK, {TopicPartition("t", 0): 7})


@pytest.mark.parametrize(
    ("url", "address"),
    [
        (
            "jdbc:postgresql://db.example:5433/shop?sslmode=require",
            Address("postgres", "shop", {"sslmode": "require"}, "db.example", 5433),
        ),
        ("jdbc:postgresql://db/shop", Address("postgres", "shop", {}, "db", 5432)),
        ("jdbc:postgresql:shop", Address("postgres", "shop", {}, "localhost", 5432)),
        (
            "jdbc:mysql://db/shop?user=anna&password=se%26cret",
            Address("mariadb", "shop", {}, "db", 3306, "anna", "se&cret"),
        ),
        ("jdbc:mariadb://db:3307/", Address("mariadb", "", {}, "db", 3307)),
        ("jdbc:sqlite:/folder/a file.db", Address("sqlite", "/folder/a file.db", {})),
        ("jdbc:sqlite::memory:", Address("sqlite", ":memory:", {})),
        ("sqlite:////folder/file.db", Address("sqlite", "/folder/file.db", {})),
        ("sqlite:///file.db", Address("sqlite", "file.db", {})),
        (
            "postgresql+psycopg://anna:p%40ss@db/shop",
            Address("postgres", "shop", {}, "db", 5432, "anna", "p@ss"),
        ),
        ("mysql+pymysql://db/shop", Address("mariadb", "shop", {}, "db", 3306)),
    ],
)
def test_urls_of_jdbc_and_sqlalchemy_are_understood(url: str, address: Address) -> None:
    assert parse_address(url) == address


def test_passwords_are_not_in_messages() -> None:
    assert "secret" not in str(parse_address("postgresql://anna:secret@db/shop"))


@pytest.mark.parametrize(
    "tables",
    [
        [],
        [TableName(None, None, "people")],
        [TableName("db", "public", 'odd "name", really'), TableName("db", None, "a.b")],
    ],
)
def test_lists_of_tables_survive_a_configuration(tables: list[TableName]) -> None:
    assert read_table_list(list_tables(tables)) == tables
