"""What runs on the platform while it is killed: connectors, a writer, an exactly-once SQL chain.

```
lines.txt -> FileStreamSource -> lines -> FileStreamSink -> copy.txt
Datagen -> generated -> SQL counts
writer of the test -> orders -> SQL: filter, window, join, totals, repartition, chain
                             -> SQL: balances (Avro) -> JDBC sink -> copy.db
```
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import orjson

from broker import Broker
from tests.millstream.crash.up_process import UpProcess
from tests.sql.crash.ledger import SOURCES, Query, queries
from tests.support.sql_server import PATIENCE_S
from tests.support.topics import read_topic

GENERATED = 4_000
GENERATED_SCHEMA = {
    "type": "record",
    "name": "Generated",
    "fields": [
        {"name": "id", "type": {"type": "long", "arg.properties": {"iteration": {"start": 0}}}},
        {
            "name": "bucket",
            "type": {"type": "int", "arg.properties": {"range": {"min": 0, "max": 7}}},
        },
    ],
}
SETTINGS = {
    "broker.transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    "broker.offsets.topic.num.partitions": "4",
    "broker.transaction.state.log.num.partitions": "4",
    "connect.exactly.once.source.support": "enabled",
    "connect.offset.flush.interval.ms": "500",
    "connect.consumer.isolation.level": "read_committed",
    # Only what makes a death be noticed sooner.
    "connect.consumer.session.timeout.ms": "6000",
    "connect.consumer.heartbeat.interval.ms": "1000",
    "sql.ksql.streams.processing.guarantee": "exactly_once_v2",
    # Every change of a table is emitted, so that missing and duplicate rows can be seen.
    "sql.ksql.streams.cache.max.bytes.buffering": "0",
    "sql.ksql.streams.transaction.timeout.ms": "5000",
    "sql.ksql.streams.commit.interval.ms": "200",
    "sql.ksql.query.retry.backoff.initial.ms": "500",
}
STATEMENTS = """
CREATE STREAM generated (id BIGINT, bucket INT)
    WITH (kafka_topic='generated', value_format='JSON', partitions=1);
CREATE TABLE counted AS SELECT bucket, COUNT(*) AS n FROM generated GROUP BY bucket;
CREATE TABLE balances WITH (value_format='AVRO') AS
    SELECT customer, AS_VALUE(customer) AS name, COUNT(*) AS n, SUM(amount) AS total
    FROM orders GROUP BY customer;
"""
STRING = "org.apache.kafka.connect.storage.StringConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"


def ledger_queries() -> list[Query]:
    """One query of each kind: filter, window, join, totals, repartition, chain."""
    return queries()[:6]


def start_workload(up: UpProcess) -> list[str]:
    """Create everything once; the names of the connectors."""
    up.sql(SOURCES)
    up.sql(STATEMENTS)
    up.sql("".join(each.statement for each in ledger_queries()))
    connectors = {
        "generator": {
            "connector.class": "Datagen",
            "kafka.topic": "generated",
            "schema.string": orjson.dumps(GENERATED_SCHEMA).decode(),
            "iterations": str(GENERATED),
            "rate": "200",
            "seed": "7",
            "key.converter": STRING,
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "exactly.once.support": "required",
        },
        "lines": {
            "connector.class": "FileStreamSource",
            "file": "lines.txt",
            "topic": "lines",
            "value.converter": STRING,
            "exactly.once.support": "required",
        },
        "copied-lines": {
            "connector.class": "FileStreamSink",
            "file": "copy.txt",
            "topics": "lines",
            "value.converter": STRING,
        },
        "balances": {
            "connector.class": "JdbcSink",
            "connection.url": "jdbc:sqlite:copy.db",
            "topics": "BALANCES",
            "table.name.format": "balances",
            "insert.mode": "upsert",
            "pk.mode": "record_value",
            "pk.fields": "NAME",
            "auto.create": "true",
            "key.converter": STRING,
            "value.converter": AVRO,
            "value.converter.schema.registry.url": up.url("registry"),
        },
    }
    for name, config in connectors.items():
        up.create_connector(name, config)
    return list(connectors)


class LinesFile:
    """The file that FileStreamSource reads: numbered lines, appended by the test."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.count = 0
        path.touch()

    def append(self, count: int) -> None:
        """Write more lines."""
        with self._path.open("a") as file:
            for number in range(self.count, self.count + count):
                file.write(f"line {number}\n")
        self.count += count


@contextmanager
def offline(up: UpProcess) -> Iterator[Broker]:
    """A broker on the platform's data directory while the platform is stopped."""
    with Broker(data_directory=str(up.data_directory)) as broker:
        yield broker


def read_values(target: Broker | str, topic: str) -> list[bytes]:
    """All committed values of the one partition of a topic."""
    records = read_topic(target, topic, committed=True, timeout_s=PATIENCE_S)
    return [record.value or b"" for record in records]


def copied_balances(folder: Path) -> dict[str, tuple[int, int]]:
    """What the JDBC sink wrote: count and total by customer."""
    # Any: rows of a database.
    rows: list[Any]
    with closing(sqlite3.connect(folder / "copy.db")) as database:
        try:
            rows = database.execute('SELECT "NAME", "N", "TOTAL" FROM balances').fetchall()
        except sqlite3.OperationalError:
            return {}  # the sink has not created the table yet
    return {name: (count, total) for name, count, total in rows}
