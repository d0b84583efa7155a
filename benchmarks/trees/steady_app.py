"""One workload in one process, which does the same amount of work again and again.

PYTHONPATH=CHECKOUT python -P benchmarks/trees/steady_app.py WORKLOAD RECORDS

Prints a line when it is ready. For each line that it reads, it processes RECORDS records and prints
the processor time per record, in µs, over all threads. It must also run in older checkouts, so it
uses only functions that they have.
"""

import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from zlib import crc32

from benchmarks.raw_load import run as raw_requests
from benchmarks.sql.engine_app import ORDERS, RUNNING_LIMIT_MS, open_engine, statements
from benchmarks.streams.millstream_app import SETTINGS, build
from benchmarks.streams.workload import (
    PARTITIONS,
    RECORDS_PER_WINDOW,
    WINDOW_MS,
    begin_ms,
    committed_of,
    create,
    orders,
)
from broker.batch.codec import encode_batch
from broker.broker import Broker
from broker.client import admin
from broker.config import BrokerConfig
from broker.model import ConnectionInfo
from broker.protocol.api_keys import ApiKey
from broker.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from broker.server.server import Server
from streams.app import StreamsApp

INPUT, OUTPUT = "orders", "results"
BATCH_RECORDS = 500
PRODUCE_VERSION = 9
ROUNDS_MAX = 60
POLL_INTERVAL_S = 0.01
REQUEST_RECORDS = 64  # in each request of raw_load


@dataclass(frozen=True, slots=True)
class Feed:
    """Encodes orders for the input topic in advance; timestamps grow with each round."""

    broker: Broker
    records: int
    first_ms: int

    def requests(self, number: int) -> list[ProduceRequest]:
        """The requests that write the orders of one round."""
        shift_ms = number * -(-self.records // RECORDS_PER_WINDOW) * WINDOW_MS
        parts: list[list[tuple[bytes, bytes, tuple[()], int]]] = [[] for _ in range(PARTITIONS)]
        for key, value, time_ms in orders(self.records, self.first_ms + shift_ms):
            parts[crc32(key) % PARTITIONS].append((key, value, (), time_ms))
        requests = []
        for at in range(0, max(map(len, parts)), BATCH_RECORDS):
            data = [
                PartitionProduceData(place, encode_batch(rows[at : at + BATCH_RECORDS]))
                for place, rows in enumerate(parts)
                if rows[at : at + BATCH_RECORDS]
            ]
            topic = TopicProduceData(name=INPUT, partition_data=data)
            requests.append(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic]))
        return requests

    def send(self, requests: list[ProduceRequest]) -> None:
        """Write the orders to the broker."""
        for request in requests:
            self.broker.handle(ApiKey.PRODUCE, PRODUCE_VERSION, request, ConnectionInfo())


@contextmanager
def running_app(bootstrap: str, workload: str, folder: str) -> Iterator[str]:
    """Run the workload in our DSL; yields its group."""
    app = StreamsApp(
        build(workload, INPUT, "", OUTPUT),
        application_id="app",
        broker=bootstrap,
        state_dir=f"{folder}/state",
        **SETTINGS,
    )
    with app:
        yield "app"


@contextmanager
def running_query(bootstrap: str, workload: str, folder: str) -> Iterator[str]:
    """Run the workload in SQL; yields its group."""
    with open_engine(bootstrap, "app", f"{folder}/state") as engine:
        engine.execute(ORDERS.format(topic=INPUT))
        [statement] = statements(workload, OUTPUT)
        engine.execute(statement)
        [query] = engine.commands.running.values()
        assert query.runtime.wait_running(RUNNING_LIMIT_MS), query.runtime.failures
        yield query.runtime.application_id


def process_orders(
    feed: Feed, bootstrap: str, name: str, folder: str
) -> Generator[float, None, None]:
    """Send orders and wait until the application has committed; yields µs for each round."""
    kind, _, workload = name.partition("-")
    running = {"streams": running_app, "sql": running_query}[kind]
    create(bootstrap, OUTPUT)
    with admin(bootstrap) as cluster, running(bootstrap, workload, folder) as group:
        for number in range(ROUNDS_MAX):
            requests = feed.requests(number)
            before = time.process_time()
            feed.send(requests)
            while committed_of(cluster, group, INPUT) < feed.records * (number + 1):
                time.sleep(POLL_INTERVAL_S)
            yield (time.process_time() - before) / feed.records * 1e6


def serve_requests(bootstrap: str, records: int) -> Generator[float, None, None]:
    """Produce and fetch with the raw protocol; yields µs for each round."""
    for _ in range(ROUNDS_MAX):
        before = time.process_time()
        raw_requests(bootstrap, INPUT, records // REQUEST_RECORDS)
        yield (time.process_time() - before) / records * 1e6


def main(arguments: list[str]) -> None:
    """Do one round for each line on standard input."""
    name, records = arguments[0], int(arguments[1])
    config = BrokerConfig.from_properties({"group.initial.rebalance.delay.ms": "0"})
    with (
        tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder,
        Broker(config, data_directory=f"{folder}/data") as broker,
        Server(broker, listeners=("PLAINTEXT://127.0.0.1:0",)) as server,
    ):
        create(server.bootstrap, INPUT)
        if name == "broker":
            rounds = serve_requests(server.bootstrap, records)
        else:
            feed = Feed(broker, records, begin_ms(ROUNDS_MAX * RECORDS_PER_WINDOW))
            rounds = process_orders(feed, server.bootstrap, name, folder)
        print(next(rounds), flush=True)  # warms up
        for _ in sys.stdin:
            print(next(rounds), flush=True)
        rounds.close()


if __name__ == "__main__":
    main(sys.argv[1:])
