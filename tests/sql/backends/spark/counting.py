"""`python -m tests.sql.backends.spark.counting SERVERS FOLDER MASTER [JAR...]`: one to be killed.

It moves orders to the partitions of their shops and counts them, in small micro-batches, until it
is killed. Every order changes its shop's row once, so that the rows of a shop count from 1 to the
number of its orders: each of them must be there, and none twice.
"""

import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path

# Spark's sessions are Any: PySpark need not be there.
from typing import Any

import orjson

from broker.client import producer
from broker.client.api import ConsumerRecord
from sql.backends.spark.connectors import KAFKA, OURS
from sql.backends.spark.job import Job
from sql.backends.spark.query import SparkPlace, SparkQuery
from sql.backends.spark.session import open_session
from sql.planner import plan_to_json
from tests.sql.planner.session import Session
from tests.support.spark import SETTINGS

ORDERS = "counted-orders"
COUNTS = "counts-of-shops"
APPLICATION = "counting"
SHOPS = 20
OFFSETS_PER_BATCH = 500
STATEMENTS = f"""
    CREATE STREAM orders (id STRING KEY, shop STRING, cents BIGINT)
        WITH (kafka_topic='{ORDERS}', value_format='JSON');
    CREATE TABLE counts WITH (kafka_topic='{COUNTS}') AS
        SELECT shop, COUNT(*) AS n, SUM(cents) AS cents FROM orders GROUP BY shop;
"""


def write_orders(servers: str, count: int) -> None:
    """Orders of all shops, spread over the partitions; of today, or a real Kafka deletes them."""
    first_ms = int(time.time() * 1000) - count
    with producer(servers, linger_ms=20) as out:
        for number in range(count):
            value = orjson.dumps({"SHOP": f"shop-{number % SHOPS}", "CENTS": number})
            out.send(ORDERS, value, key=b"%d" % number, timestamp_ms=first_ms + number)


def check_counts(records: Iterable[ConsumerRecord], orders: int) -> None:
    """Fail unless each shop has counted each of its orders once."""
    found: dict[bytes | None, list[tuple[int, int]]] = {}
    for record in records:
        row = orjson.loads(record.value or b"")
        found.setdefault(record.key, []).append((row["N"], row["CENTS"]))
    assert len(found) == SHOPS
    for shop in range(SHOPS):
        rows = sorted(found[b"shop-%d" % shop])
        each = range(shop, orders, SHOPS)
        assert [n for n, _ in rows] == list(range(1, len(each) + 1)), f"shop {shop}"
        assert rows[-1] == (len(each), sum(each))


def query(spark: Any, servers: str, folder: Path, **place: Any) -> SparkQuery:
    """The query; not started."""
    session = Session().run(STATEMENTS)
    job = Job(APPLICATION, plan_to_json(session.plans[-1].plan), {ORDERS: 0, COUNTS: 0})
    return SparkQuery(job, SparkPlace(spark, servers, folder, **place), starting="earliest")


def main(servers: str, folder: str, master: str, *jars: str) -> None:
    """Run until killed; with the jars of Spark's connector it reads with that."""
    connector = KAFKA if jars else OURS
    spark = open_session(master, {**SETTINGS, "spark.jars": ",".join(jars)} if jars else SETTINGS)
    place = {"max_offsets_per_trigger": OFFSETS_PER_BATCH, "connector": connector}
    running = query(spark, servers, Path(folder), **place)
    running.start()
    while running.is_active:
        threading.Event().wait(0.5)
    raise SystemExit(running.error)


if __name__ == "__main__":
    main(*sys.argv[1:])
