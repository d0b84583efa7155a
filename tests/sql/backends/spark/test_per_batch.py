"""Queries as Spark's own operators: in the end they say what the native ones say."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from broker.client import producer
from sql.backends.spark.job import Job
from sql.backends.spark.per_batch_rules import PER_BATCH, SETTING
from sql.planner import plan_to_json
from tests.sql.backends.spark.batches import Batches, Input
from tests.sql.backends.spark.cluster import committed_records, create
from tests.sql.planner.session import Session
from tests.support.spark import MARKS, shared_session

pytestmark = MARKS

ORDERS = """
    CREATE STREAM orders (id STRING KEY, shop STRING, amount INT, price DOUBLE, cost DECIMAL(9, 2))
        WITH (kafka_topic='{name}-orders', value_format='JSON');
"""
VIEWS = """
    CREATE STREAM views (id STRING KEY, page STRING)
        WITH (kafka_topic='{name}-views', value_format='JSON');
"""
TOTALS = "CREATE TABLE r WITH (kafka_topic='{name}-r') AS SELECT"
JOINED = "CREATE STREAM r WITH (kafka_topic='{name}-r') AS SELECT o.id AS id, shop, page"
Emitted = tuple[bytes | None, bytes | None, int]  # key, value, timestamp_ms
LARGE = 2**31 - 1
SINCE_MS = 100_000  # Spark's watermark begins at 0, so that a record of that time is late


def order(name: str, key: str, time_ms: int, **values: object) -> Input:
    """An order; a value that is not given is null."""
    text = json.dumps(values) if values else ""
    return f"{name}-orders", key, text, SINCE_MS + time_ms


def orders(name: str) -> tuple[list[Input], list[Input]]:
    """Two batches of orders; deletions, rows without a shop and large numbers among them."""
    first = [
        order(name, f"o{number % 5}", 1_000 * number, shop=f"s{number % 3}", amount=number,
              price=number / 4, cost=f"{number}.25")
        for number in range(20)
    ]  # fmt: skip
    first += [
        order(name, "o1", 20_000, amount=7),
        order(name, "o1", 20_500),
        (f"{name}-orders", "o2", "no JSON", SINCE_MS + 20_600),
        order(name, "o2", 13_500, shop="s1", amount=LARGE),
    ]
    second = [
        order(name, "o3", 21_000, shop="s1", amount=LARGE, price=1.5),
        order(name, "o3", 21_500, shop="s2"),
        order(name, "o4", 22_000, shop="s0", amount=-4, price=-2.25, cost="-0.01"),
        order(name, "o9", 60_000, shop="s9", amount=1),
    ]
    return first, second


def views(name: str) -> tuple[list[Input], list[Input]]:
    """Two batches of views, beside the orders."""

    def view(key: str, time_ms: int) -> Input:
        value = json.dumps({"page": f"p{time_ms}"})
        return f"{name}-views", key, value, SINCE_MS + time_ms

    first = [view("o0", 1_200), view("o1", 3_900), view("o1", 50), view("o8", 2_000)]
    second = [view("o3", 20_400), view("o3", 22_500), view("o9", 59_000), view("o7", 60_000)]
    return first, second


# By name: the statements after those of the sources. Those of `FINAL` give each row once, the
# others are compared by the last value of each key.
UPDATES = {
    "grouped": f"{TOTALS} shop, COUNT(*) AS n, COUNT(amount) AS m, SUM(amount) AS s,"
    " AVG(price) AS a, MIN(amount) AS low, MAX(cost) AS high, SUM(cost) AS c, AVG(amount) AS b"
    " FROM orders WHERE amount IS NULL OR amount <> 3 GROUP BY shop EMIT CHANGES;",
    "expression": "CREATE TABLE r WITH (kafka_topic='{name}-r', key_format='JSON') AS SELECT"
    " SUBSTRING(shop, 2) AS part, amount % 2 AS odd, COUNT(*) * 2 AS n"
    " FROM orders GROUP BY SUBSTRING(shop, 2), amount % 2 HAVING COUNT(*) > 2 EMIT CHANGES;",
    "tumbling": f"{TOTALS} id, COUNT(*) AS n, MAX(amount) AS high, WINDOWEND AS until FROM orders"
    " WINDOW TUMBLING (SIZE 5 SECONDS) GROUP BY id EMIT CHANGES;",
    "hopping": f"{TOTALS} id, SUM(amount) AS s FROM orders"
    " WINDOW HOPPING (SIZE 6 SECONDS, ADVANCE BY 4 SECONDS) GROUP BY id EMIT CHANGES;",
}
FINAL = {
    "closed": f"{TOTALS} shop, COUNT(*) AS n, SUM(amount) AS s FROM orders"
    " WINDOW TUMBLING (SIZE 5 SECONDS, GRACE PERIOD 10 SECONDS) GROUP BY shop EMIT FINAL;",
    "sessions": f"{TOTALS} id, COUNT(*) AS n, WINDOWSTART AS since FROM orders"
    " WINDOW SESSION (5 SECONDS, GRACE PERIOD 10 SECONDS) GROUP BY id EMIT FINAL;",
    "inner": f"{JOINED} FROM orders o JOIN views v WITHIN 1 SECOND ON o.id = v.id;",
    "outer": f"{JOINED} FROM orders o FULL OUTER JOIN views v"
    " WITHIN (2 SECONDS, 1 SECOND) GRACE PERIOD 10 SECONDS ON o.id = v.id;".replace(
        "o.id AS id", "ROWKEY AS id"
    ),
}


def statements(name: str) -> str:
    """All statements of a case."""
    text = ORDERS + VIEWS + (UPDATES.get(name) or FINAL[name])
    return text.replace("{name}", name)


def inputs(name: str) -> list[list[Input]]:
    """The batches of a case, by time, as a broker would have got them."""
    has_views = "views" in (UPDATES.get(name) or FINAL[name])
    both = zip(orders(name), views(name), strict=True)
    return [[*left, *(right if has_views else [])] for left, right in both]


@pytest.fixture(scope="module")
def spark() -> Any:
    """The session of all tests; Any, here and below: Spark's."""
    return shared_session()


@pytest.fixture
def run(spark: Any, servers: str, tmp_path: Path) -> Iterator[Callable[[str], None]]:
    """Runs a query per batch on all that is there; a second time it goes on."""
    from sql.backends.spark.query import SparkPlace, SparkQuery

    started: list[SparkQuery] = []

    def run_on(name: str) -> None:
        plan: Any = Session().run(statements(name)).plans[-1].plan
        topics = (f"{name}-orders", f"{name}-views", f"{name}-r")
        settings = {SETTING: PER_BATCH}
        job = Job(f"app-{name}", plan_to_json(plan), dict.fromkeys(topics, 0), settings)
        query = SparkQuery(job, SparkPlace(spark, servers, tmp_path), starting="earliest")
        started.append(query)
        query.start()
        query.process_all()
        query.stop()

    yield run_on
    for query in started:
        query.stop()


def write(servers: str, records: Sequence[Input]) -> None:
    """Records as they are in a case."""
    with producer(servers) as out:
        for topic, key, value, time_ms in records:
            out.send(topic, value.encode() or None, key=key.encode(), timestamp_ms=time_ms)


def written(servers: str, topic: str) -> list[Emitted]:
    """What a query has written."""
    return [(each.key, each.value, each.timestamp_ms) for each in committed_records(servers, topic)]


def native(name: str) -> list[Emitted]:
    """What the native operators write, one partition after the other."""
    batches = Batches(statements(name), dict.fromkeys((f"{name}-orders", f"{name}-views"), 1))
    for records in inputs(name):
        batches.feed(records)
    return [each for partition in batches.results() for each in partition]


QUICK = ("tumbling",)  # the others take several times as long


def last(emitted: Sequence[Emitted]) -> Mapping[bytes | None, object]:
    """The last result of each key; nothing for a tombstone."""
    found = {key: (value, time_ms) for key, value, time_ms in emitted}
    return {key: each for key, each in found.items() if each[0] is not None}


@pytest.mark.parametrize(
    "name",
    [
        name if name in QUICK else pytest.param(name, marks=pytest.mark.long)
        for name in (*UPDATES, *FINAL)
    ],
)
def test_after_two_runs_all_is_as_the_native_engine_says(
    run: Callable[[str], None], servers: str, name: str
) -> None:
    for topic in ("orders", "views", "r"):
        create(servers, f"{name}-{topic}", 1 if topic != "r" else 2)
    first, second = inputs(name)
    write(servers, first)
    run(name)
    before = written(servers, f"{name}-r")
    write(servers, second)
    run(name)
    found, expected = written(servers, f"{name}-r"), native(name)
    assert len(found) > len(before)
    assert before or name == "sessions"  # of which none has ended before the second run
    if name in FINAL:
        assert sorted(found, key=repr) == sorted(expected, key=repr)
    else:
        assert last(found) == last(expected)
        assert len(found) < len(expected)


def test_a_batch_that_is_done_again_is_written_once(spark: Any, servers: str) -> None:
    create(servers, "numbered", 2)
    rows = [(b"%d" % number, b"v") for number in range(10)]
    frame = spark.createDataFrame(rows, "key binary, value binary")
    given = {"bootstrap_servers": servers, "topic": "numbered", "sink_id": "s", "query_id": "q"}
    for batch_id in (3, 3, 4):
        writing = frame.write.format("millstream").mode("append").options(**given)
        writing.option("batch_id", str(batch_id)).save()
    assert len(written(servers, "numbered")) == 2 * len(rows)
