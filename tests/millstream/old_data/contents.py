"""What an archived data directory holds, written by `make` and checked by the tests."""

from contextlib import closing

import httpx
import orjson

from broker.client import admin, consumer, producer
from broker.client.administration.values import NewTopic
from broker.model import TopicPartition
from sql.client import ServerFailed, SqlClient
from tests.millstream.crash.up_process import UpProcess
from tests.support.peer import wait_until

PATIENCE_S = 120.0
# Small indexes and few partitions keep the archives small.
SETTINGS = {
    "broker.offsets.topic.num.partitions": "2",
    "broker.transaction.state.log.num.partitions": "2",
    "broker.log.index.size.max.bytes": "4096",
    "broker.log.flush.offset.checkpoint.interval.ms": "100",
    "broker.log.flush.start.offset.checkpoint.interval.ms": "100",
    "connect.offset.storage.partitions": "1",
    "connect.status.storage.partitions": "1",
    "connect.offset.flush.interval.ms": "200",
    "sql.ksql.streams.commit.interval.ms": "200",
}
# ORDERS and all queries take their formats from the defaults of the server.
DEFAULTS = {
    "sql.ksql.persistence.default.format.value": "JSON",
    "sql.ksql.persistence.default.format.key": "KAFKA",
}
STATEMENTS = """
CREATE STREAM orders (customer STRING KEY, id INT, amount INT)
    WITH (kafka_topic='orders', partitions=2);
CREATE TABLE customers (customer STRING PRIMARY KEY, region STRING)
    WITH (kafka_topic='customers', value_format='JSON', partitions=2);
CREATE TYPE address AS STRUCT<street STRING, city STRING>;
CREATE STREAM big AS SELECT customer, id, amount FROM orders WHERE amount >= 50;
CREATE TABLE totals AS SELECT customer, COUNT(*) AS n, SUM(amount) AS total FROM orders
    GROUP BY customer;
CREATE TABLE hourly AS SELECT customer, COUNT(*) AS n FROM orders
    WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 10000 DAYS) GROUP BY customer;
CREATE TABLE sizes AS SELECT amount / 10 AS tens, COUNT(*) AS n FROM orders GROUP BY amount / 10;
CREATE STREAM enriched AS SELECT o.customer AS customer, o.id AS id, c.region AS region
    FROM orders o JOIN customers c ON o.customer = c.customer;
CREATE STREAM held AS SELECT customer, id FROM orders;
"""
CUSTOMERS = {"ann": "north", "bob": "south", "cay": "north"}
START_MS = 1_700_000_000_000
HELD = 60  # orders that HELD has copied when it is paused
ORDERS = 70
LINES = 20
BILLING = TopicPartition("orders", 0)
SHRUNK, SHRUNK_TO, SHRUNK_END = TopicPartition("shrunk", 0), 40, 50
MOVED = TopicPartition("moved", 0)
SCHEMA = '{"type":"record","name":"Old","fields":[{"name":"id","type":"long"}]}'
CONNECTOR = {"connector.class": "FileStreamSource", "file": "lines.txt", "topic": "lines"}


def order(number: int) -> tuple[str, int]:
    """Customer and amount of an order."""
    return ("ann", "bob", "cay")[number % 3], number * 7 % 100


def write_orders(bootstrap: str, numbers: range) -> None:
    """Orders with timestamps of their own, so that windows are the same at any time."""
    with producer(bootstrap) as out:
        for number in numbers:
            customer, amount = order(number)
            value = orjson.dumps({"ID": number, "AMOUNT": amount})
            timestamp_ms = START_MS + number * 60_000
            out.send("orders", value, customer.encode(), timestamp_ms=timestamp_ms).result()


def write_lines(up: UpProcess, numbers: range) -> None:
    """Append lines to the connector's file."""
    with (up.folder / "lines.txt").open("a") as file:
        file.writelines(f"line {number}\n" for number in numbers)


def fill(up: UpProcess) -> None:
    """Topics, groups, transactions, schemas, queries and a connector."""
    up.sql(STATEMENTS)
    with producer(up.bootstrap) as out:
        for name, region in CUSTOMERS.items():
            value = orjson.dumps({"REGION": region})
            out.send("customers", value, name.encode(), timestamp_ms=START_MS - 1).result()
    write_orders(up.bootstrap, range(HELD))
    wait_results(up, HELD, held=HELD)
    up.sql(f"PAUSE {query_of(up, 'HELD')};")
    write_orders(up.bootstrap, range(HELD, ORDERS))
    _fill_topics(up.bootstrap)
    write_lines(up, range(LINES))
    up.create_connector("old-lines", CONNECTOR)
    url = f"{up.url('registry')}/subjects/old-value/versions"
    httpx.post(url, json={"schema": SCHEMA}, timeout=PATIENCE_S).raise_for_status()
    wait_results(up, ORDERS, held=HELD)
    wait_until(lambda: end_of(up, "lines") == LINES, "lines", timeout_s=PATIENCE_S)
    # As Kafka's, a broker that is killed knows of DeleteRecords what the checkpoint has.
    checkpoint = up.data_directory / "log-start-offset-checkpoint"
    written = f"{SHRUNK.topic} {SHRUNK.partition} {SHRUNK_TO}"
    wait_until(
        lambda: checkpoint.exists() and written in checkpoint.read_text(),
        "a checkpoint of the log start",
        timeout_s=PATIENCE_S,
    )


def _fill_topics(bootstrap: str) -> None:
    with admin(bootstrap) as cluster, producer(bootstrap) as out:
        cluster.create_topics([NewTopic(SHRUNK.topic, 1, 1), NewTopic(MOVED.topic, 1, 1)])
        for number in range(SHRUNK_END):
            out.send(SHRUNK.topic, b"%d" % number).result()
        cluster.delete_records({SHRUNK: SHRUNK_TO})[SHRUNK]
    with producer(bootstrap, transactional_id="mover") as out:
        out.init_transactions()
        for value, commits in ((b"kept", True), (b"dropped", False), (b"kept too", True)):
            out.begin_transaction()
            out.send(MOVED.topic, value)
            out.flush(60_000)
            if commits:
                out.commit_transaction()
            else:
                out.abort_transaction()
    with consumer(bootstrap, group_id="billing", auto_offset_reset="earliest") as reader:
        reader.assign([BILLING])
        reader.seek(BILLING, 5)
        reader.commit()


def query_of(up: UpProcess, sink: str) -> str:
    """The id of the query that writes a sink."""
    (shown,) = up.sql("SHOW QUERIES;")
    (found,) = [each["id"] for each in shown["queries"] if sink in each["sinks"]]
    return str(found)


def states(up: UpProcess) -> dict[str, str]:
    """The state of each query by its sink."""
    (shown,) = up.sql("SHOW QUERIES;")
    return {each["sinks"][0]: each["state"] for each in shown["queries"]}


def sinks(up: UpProcess) -> dict[str, tuple[str, str, str]]:
    """Topic and formats of every stream and table."""
    streams, tables = up.sql("SHOW STREAMS; SHOW TABLES;")
    return {
        each["name"]: (each["topic"], each["keyFormat"], each["valueFormat"])
        for each in streams["streams"] + tables["tables"]
    }


def pull(up: UpProcess, text: str) -> list[list[object]]:
    """The rows of a pull query, in order; none while the table is not ready."""
    with closing(SqlClient(up.url("sql"))) as client:
        try:
            with closing(client.query(text)) as found:
                return sorted(found.rows(), key=str)
        except ServerFailed as failed:
            if "is not ready" in str(failed):
                return []
            raise


def end_of(up: UpProcess, *topics: str) -> int:
    """How many records topics of one or two partitions have."""
    with consumer(up.bootstrap) as reader:
        found = [
            TopicPartition(topic, number)
            for topic in topics
            for number in range(1 if topic == "lines" else 2)
        ]
        return sum(reader.end_offsets(found).values())


def expected_totals(orders: int) -> list[list[object]]:
    """Customer, count and sum after so many orders."""
    rows: dict[str, list[object]] = {}
    for name in CUSTOMERS:
        amounts = [order(number)[1] for number in range(orders) if order(number)[0] == name]
        rows[name] = [name, len(amounts), sum(amounts)]
    return list(rows.values())


def expected_sizes(orders: int) -> list[list[object]]:
    """Amounts by tens after so many orders."""
    found: dict[int, int] = {}
    for number in range(orders):
        size = order(number)[1] // 10
        found[size] = found.get(size, 0) + 1
    return [[size, count] for size, count in sorted(found.items())]


def expected_hours(orders: int) -> list[list[object]]:
    """Customer, start of the hour and count after so many orders."""
    found: dict[tuple[str, int], int] = {}
    for number in range(orders):
        at = START_MS + number * 60_000
        key = order(number)[0], at - at % 3_600_000
        found[key] = found.get(key, 0) + 1
    return sorted(([name, start, count] for (name, start), count in found.items()), key=str)


def wait_results(up: UpProcess, orders: int, *, held: int) -> None:
    """Until every query has worked on so many orders."""
    big = sum(order(number)[1] >= 50 for number in range(orders))

    def done() -> bool:
        return (
            pull(up, "SELECT customer, n, total FROM totals;") == expected_totals(orders)
            and pull(up, "SELECT tens, n FROM sizes;") == expected_sizes(orders)
            and pull(up, "SELECT customer, windowstart, n FROM hourly;") == expected_hours(orders)
            and end_of(up, "BIG") == big
            and end_of(up, "ENRICHED") == orders
            and end_of(up, "HELD") == held
        )

    wait_until(done, f"results of {orders} orders", timeout_s=PATIENCE_S)
