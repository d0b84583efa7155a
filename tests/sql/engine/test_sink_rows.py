"""Tables that are read from their topics, for pull queries."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.broker import Broker
from broker.client import consumer, producer
from broker.client.partitioner import partition_for_key
from broker.clock import SystemClock
from sql.backends.native.materialized import Materialized
from sql.engine.engine import Engine
from sql.engine.local_endpoints import LocalEndpoints
from sql.engine.sink_rows import SinkRows
from sql.engine.spark_launching import table_scan
from streams.errors import StoreNotReady
from tests.sql.engine.engines import ORDERS, TOTALS, engine_of, rows, until_rows
from tests.support.peer import wait_until

COUNTS = (
    "CREATE TABLE counts AS SELECT id, COUNT(*) AS n FROM orders "
    "WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY id;"
)


@pytest.fixture
def engine(broker: Broker, tmp_path: Path) -> Iterator[Engine]:
    with engine_of(broker, tmp_path) as made:
        made.execute(ORDERS + TOTALS + COUNTS)
        for id_, amount in (("a", 5), ("b", 2), ("a", 7)):
            made.execute(f"INSERT INTO orders (id, amount) VALUES ('{id_}', {amount});")
        until_rows(made, "SELECT * FROM totals;", [("a", 12), ("b", 2)])
        yield made


def rows_of(engine: Engine, broker: Broker, folder: Path, name: str) -> SinkRows:
    query_id = engine.state.catalog.sources[name].query_id
    assert query_id is not None
    scan = table_scan(engine.state.queries[query_id])
    assert scan is not None
    return SinkRows(scan, folder, target=broker, registry=None, clock=SystemClock())


def asked(engine: Engine, found: SinkRows, name: str, text: str) -> list[tuple[object, ...]]:
    """The rows of a pull query, as if Spark made the table."""
    query_id = engine.state.catalog.sources[name].query_id
    running = engine.commands.running[query_id or ""]
    scan = table_scan(running.info)
    assert scan is not None
    before = running.where, running.runtime
    running.where = Materialized("", scan.shape, lambda key, row: row)
    running.runtime = _Stores(found)  # type: ignore[assignment]
    try:
        return sorted(rows(engine, text), key=str)
    finally:
        running.where, running.runtime = before


class _Stores:
    """What a pull query asks of a runtime."""

    def __init__(self, found: SinkRows) -> None:
        self._found = found

    def wait_running(self, timeout_ms: int) -> bool:
        return True

    def elsewhere(self, name: str) -> list[str]:
        return []

    def stores(self, name: str) -> list[SinkRows]:
        self._found.catch_up(30_000)
        return [self._found]


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ("TOTALS", "SELECT * FROM totals;"),
        ("TOTALS", "SELECT total FROM totals WHERE id = 'a';"),
        ("TOTALS", "SELECT * FROM totals WHERE id IN ('a', 'b', 'c');"),
        ("TOTALS", "SELECT id FROM totals WHERE id > 'a' AND total < 10;"),
        ("COUNTS", "SELECT * FROM counts;"),
        ("COUNTS", "SELECT id, n FROM counts WHERE id = 'a' AND WINDOWSTART > 0;"),
    ],
)
def test_a_pull_query_finds_in_the_topic_what_the_stores_have(
    engine: Engine, broker: Broker, tmp_path: Path, table: str, text: str
) -> None:
    until_rows(engine, "SELECT id, n FROM counts;", [("a", 2), ("b", 1)])
    # The table is in the topic a moment after it is in the store.
    found = rows_of(engine, broker, tmp_path / "rows", table)
    wanted = sorted(rows(engine, text), key=str)
    assert wanted
    wait_until(lambda: asked(engine, found, table, text) == wanted, "the topic")
    found.close()


def test_rows_go_on_from_where_they_were_and_deletions_are_seen(
    engine: Engine, broker: Broker, tmp_path: Path
) -> None:
    text = "SELECT * FROM totals;"
    found = rows_of(engine, broker, tmp_path / "rows", "TOTALS")
    wait_until(lambda: asked(engine, found, "TOTALS", text) == [("a", 12), ("b", 2)], "the topic")
    found.close()
    with producer(broker) as out:
        out.send("TOTALS", None, key=b"a", partition=_partition(broker, b"a")).result()
    again = rows_of(engine, broker, tmp_path / "rows", "TOTALS")
    assert asked(engine, again, "TOTALS", text) == [("b", 2)]
    again.discard()
    assert not (tmp_path / "rows").exists()


def _partition(broker: Broker, key: bytes) -> int:
    with consumer(broker) as reader:
        return partition_for_key(key, len(reader.partitions_for("TOTALS")))


def test_records_of_an_open_transaction_are_not_there(
    engine: Engine, broker: Broker, tmp_path: Path
) -> None:
    found = rows_of(engine, broker, tmp_path / "rows", "TOTALS")
    asked(engine, found, "TOTALS", "SELECT * FROM totals;")
    with producer(broker, transactional_id="spark") as out:
        out.init_transactions()
        out.begin_transaction()
        out.send("TOTALS", b'{"TOTAL": 99}', key=b"z").result()
        assert asked(engine, found, "TOTALS", "SELECT * FROM totals WHERE id = 'z';") == []
        out.abort_transaction()
        out.begin_transaction()
        out.send("TOTALS", b'{"TOTAL": 98}', key=b"z").result()
        out.commit_transaction()
    assert asked(engine, found, "TOTALS", "SELECT * FROM totals WHERE id = 'z';") == [("z", 98)]
    found.close()


def test_rows_that_were_not_read_in_time_are_an_error(
    engine: Engine, broker: Broker, tmp_path: Path
) -> None:
    first = rows_of(engine, broker, tmp_path / "first", "TOTALS")
    text = "SELECT * FROM totals;"
    wait_until(lambda: asked(engine, first, "TOTALS", text) != [], "the topic")
    first.close()
    found = rows_of(engine, broker, tmp_path / "rows", "TOTALS")
    with pytest.raises(StoreNotReady, match=r'topic "TOTALS" are still being read: .* left'):
        found.catch_up(-1)
    found.catch_up(30_000)  # and goes on
    found.close()


def test_a_broker_in_this_process_is_served_for_others(broker: Broker) -> None:
    reachable = LocalEndpoints(broker, None)
    servers = reachable.servers()
    assert reachable.servers() == servers
    with producer(servers) as out:
        assert out.send("made", b"1").result() is not None
    assert reachable.registry_url() is None
    reachable.close()
