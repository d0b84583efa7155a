"""A SQL server in a process of its own, a writer that never rests, and a reader of all results."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from broker import Broker
from broker.client import consumer, producer
from broker.model import TopicPartition
from tests.sql.crash.ledger import (
    CUSTOMERS,
    CUSTOMERS_TOPIC,
    ORDERS_TOPIC,
    PARTITIONS,
    Key,
    Order,
    Query,
    Rows,
)
from tests.support.peer import wait_until
from tests.support.sql_server import PATIENCE_S, SqlServerProcess

BROKER_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}
SETTINGS = {
    "ksql.streams.processing.guarantee": "exactly_once_v2",
    # Every change of a table is emitted, so that what is missing or doubled can be seen.
    "ksql.streams.cache.max.bytes.buffering": "0",
    # Only what makes a death be noticed sooner.
    "ksql.streams.session.timeout.ms": "3000",
    "ksql.streams.heartbeat.interval.ms": "500",
    "ksql.streams.transaction.timeout.ms": "5000",
    "ksql.streams.commit.interval.ms": "200",
    "ksql.query.retry.backoff.initial.ms": "500",
}


class Server(SqlServerProcess):
    """A server under exactly-once, and what it says of its catalog."""

    def __init__(self, folder: Path, bootstrap: str) -> None:
        super().__init__(folder, bootstrap=bootstrap, settings=SETTINGS)

    def catalog(self) -> list[tuple[str, ...]]:
        """Streams, tables and queries, without what changes while they run."""
        found = []
        for entity in self.ask("SHOW STREAMS; SHOW TABLES; SHOW QUERIES;"):
            for each in entity.get("streams", []) + entity.get("tables", []):
                found.append((each["type"], each["name"], each["topic"], each["valueFormat"]))
            for each in entity.get("queries", []):
                found.append((each["queryType"], each["id"], each["queryString"], *each["sinks"]))
        return sorted(found)

    def wait_running(self, count: int) -> None:
        """Until all queries run."""

        def running() -> bool:
            (entity,) = self.ask("SHOW QUERIES;")
            return [each["state"] for each in entity["queries"]] == ["RUNNING"] * count

        wait_until(running, "queries that run", timeout_s=PATIENCE_S)

    def pull(self, table: str) -> list[list[Any]]:
        """The rows of a whole table."""
        parts = self.ask(f"SELECT * FROM {table};", "/query")
        return [part["row"]["columns"] for part in parts if "row" in part]


class Writer:
    """A thread that writes orders at a pace, each exactly once, whatever happens to others.

    It writes what it is allowed to: on a slow machine there are as many as on a quick one.
    """

    def __init__(self, bootstrap: str, orders: Iterator[Order], pause_s: float) -> None:
        self._producer = producer(bootstrap, linger_ms=5, delivery_timeout_ms=300_000)
        self._orders = orders
        self._pause_s = pause_s
        self._stopping = threading.Event()
        self._allowed = threading.Semaphore(0)
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self.count = 0

    def write_customers(self) -> None:
        """All customers, before the first order."""
        for name, region in CUSTOMERS.items():
            value = orjson.dumps({"region": region})
            self._producer.send(CUSTOMERS_TOPIC, value, name.encode(), timestamp_ms=1)
        self._producer.flush(int(PATIENCE_S * 1000))

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def allow(self, count: int) -> None:
        """Let it write so many more."""
        self._allowed.release(count)

    def stop(self) -> None:
        """Write what is begun; raises what went wrong."""
        self._stopping.set()
        self._allowed.release()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive(), "the writer hangs"
        if self._failure is not None:
            raise self._failure
        self._producer.close(int(PATIENCE_S * 1000))

    def wait_more(self, count: int) -> None:
        """Until so many more are written."""
        goal = self.count + count

        def reached() -> bool:
            if self._failure is not None:
                raise self._failure
            return self.count >= goal

        wait_until(reached, "orders that are written", timeout_s=PATIENCE_S)

    def _run(self) -> None:
        try:
            for order in self._orders:
                self._allowed.acquire()
                if self._stopping.wait(self._pause_s):
                    break
                self._producer.send(
                    ORDERS_TOPIC,
                    orjson.dumps(order.value),
                    order.customer.encode(),
                    timestamp_ms=order.timestamp_ms,
                )
                self.count += 1
            self._producer.flush(int(PATIENCE_S * 1000))
        except BaseException as error:
            self._failure = error


class Results:
    """Committed records of all output topics, from their beginning."""

    def __init__(self, bootstrap: Broker | str, queries: Iterable[Query]) -> None:
        self._queries = {each.name: each for each in queries}
        self._consumer = consumer(
            bootstrap, auto_offset_reset="earliest", isolation_level="read_committed"
        )
        self._consumer.assign(places_of(self._queries))
        self.rows: dict[str, Rows] = {name: {} for name in self._queries}
        self.count = 0

    def read(self, timeout_ms: int = 50) -> None:
        """Take what has come."""
        for record in self._consumer.poll(timeout_ms):
            assert record.key is not None
            assert record.value is not None
            key: Key = self._queries[record.topic].decode_key(record.key)
            self.rows[record.topic].setdefault(key, []).append(orjson.loads(record.value))
            self.count += 1

    def read_until(self, count: int, check: Callable[[], object]) -> None:
        """Take what comes until there are so many; `check` may raise meanwhile."""
        deadline = time.monotonic() + PATIENCE_S
        while self.count < count:
            self.read()
            check()
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.count} of {count} results came")

    def read_to_the_end(self) -> None:
        """Take all that is there, also what should not be."""
        places = self._consumer.assignment()
        ends = self._consumer.end_offsets(places)

        def whole() -> bool:
            self.read()
            return all(self._consumer.position(tp) >= ends[tp] for tp in places)

        wait_until(whole, "the whole output", timeout_s=PATIENCE_S)

    def close(self) -> None:
        """Stop reading."""
        self._consumer.close()


def places_of(topics: Iterable[str]) -> list[TopicPartition]:
    """All partitions of topics."""
    return [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS)]


def read_orders(bootstrap: Broker | str) -> list[Order]:
    """The source as it is in the topic: what came in which order is not the writer's to say."""
    found: list[Order] = []
    places = places_of([ORDERS_TOPIC])
    with consumer(bootstrap) as reader:
        reader.assign(places)
        reader.seek_to_beginning()
        ends = reader.end_offsets(places)

        def whole() -> bool:
            for record in reader.poll(50):
                value: Mapping[str, int] = orjson.loads(record.value or b"")
                customer = (record.key or b"").decode()
                found.append(Order(customer, **value, timestamp_ms=record.timestamp_ms))
            return all(reader.position(tp) >= ends[tp] for tp in places)

        wait_until(whole, "the whole source", timeout_s=PATIENCE_S)
    return found
