"""However its records are cut into batches, a query gives what it gives record by record."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql.backends.spark.job import Job
from sql.errors import SqlError
from tests.sql.backends.spark.batches import Batches, Input


def stream(name: str, columns: str, topic: str) -> str:
    return f"CREATE STREAM {name} ({columns}) WITH (kafka_topic='{topic}', value_format='JSON');"


def table(name: str, columns: str, topic: str) -> str:
    return stream(name, columns, topic).replace("STREAM", "TABLE", 1)


ORDERS = stream("orders", "id STRING KEY, amount INT, shop STRING", "o")
CLICKS = stream("clicks", "id STRING KEY, page STRING", "c")
USERS = table("users", "id STRING PRIMARY KEY, name STRING, shop STRING", "u")
SHOPS = table("shops", "id STRING PRIMARY KEY, city STRING", "s")
COUNTS = "CREATE TABLE r AS SELECT id, COUNT(*) AS n FROM orders"

QUERIES = {
    "filter": f"""{ORDERS}
        CREATE STREAM r AS SELECT id, amount + 1 AS more FROM orders WHERE amount > 3;""",
    "count": f"""{ORDERS}
        CREATE TABLE r AS SELECT id, COUNT(*) AS n, SUM(amount) AS s FROM orders GROUP BY id;""",
    "repartition": f"""{ORDERS}
        CREATE TABLE r AS SELECT shop, COLLECT_LIST(amount) AS a FROM orders GROUP BY shop;""",
    "tumbling": f"""{ORDERS} {COUNTS}
        WINDOW TUMBLING (SIZE 5 SECONDS, GRACE PERIOD 1 SECOND) GROUP BY id;""",
    "hopping": f"""{ORDERS} {COUNTS}
        WINDOW HOPPING (SIZE 6 SECONDS, ADVANCE BY 2 SECONDS) GROUP BY id;""",
    "session": f"{ORDERS} {COUNTS} WINDOW SESSION (2 SECONDS) GROUP BY id;",
    "final": f"""{ORDERS} {COUNTS}
        WINDOW TUMBLING (SIZE 3 SECONDS, GRACE PERIOD 0 SECONDS) GROUP BY id EMIT FINAL;""",
    "streams": f"""{ORDERS} {CLICKS}
        CREATE STREAM r AS SELECT o.id AS id, amount, page FROM orders o
        LEFT JOIN clicks c WITHIN 3 SECONDS GRACE PERIOD 1 SECOND ON o.id = c.id;""",
    "stream and table": f"""{ORDERS} {USERS}
        CREATE STREAM r AS SELECT o.id AS id, amount, name FROM orders o
        JOIN users u ON o.id = u.id;""",
    "tables": f"""{USERS} {SHOPS}
        CREATE TABLE r AS SELECT ROWKEY AS id, name, city FROM users u
        FULL OUTER JOIN shops s ON u.id = s.id;""",
    "foreign key": f"""{USERS} {SHOPS}
        CREATE TABLE r AS SELECT u.id AS id, name, city FROM users u
        JOIN shops s ON u.shop = s.id;""",
    "table of a table": f"""{USERS}
        CREATE TABLE r AS SELECT shop, COUNT(*) AS n FROM users GROUP BY shop;""",
}
VALUES = {
    "o": ['{"AMOUNT": 2, "SHOP": "x"}', '{"AMOUNT": 7, "SHOP": "y"}', '{"AMOUNT": 5}'],
    "c": ['{"PAGE": "home"}', '{"PAGE": "cart"}'],
    "u": ['{"NAME": "Ann", "SHOP": "a"}', '{"NAME": "Bob", "SHOP": "b"}', ""],
    "s": ['{"CITY": "Ulm"}', '{"CITY": "Bern"}', ""],
}


def topics_of(query: str) -> list[str]:
    return [topic for topic in VALUES if f"kafka_topic='{topic}'" in QUERIES[query]]


@st.composite
def inputs(draw: st.DrawFn, topics: list[str]) -> list[list[Input]]:
    """Batches of records; only one topic may have records out of order, see `test`."""
    batches = []
    time_ms = 0
    for _ in range(draw(st.integers(1, 4))):
        batch = []
        for _ in range(draw(st.integers(0, 6))):
            topic = draw(st.sampled_from(topics))
            steps = st.integers(1, 3_000) if len(topics) > 1 else st.integers(-3_000, 5_000)
            time_ms = max(0, time_ms + draw(steps))
            key, value = draw(st.sampled_from("abc")), draw(st.sampled_from(VALUES[topic]))
            batch.append((topic, key, value, time_ms))
        batches.append(batch)
    return batches


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
@settings(max_examples=15)
@given(data=st.data())
def test_results_do_not_depend_on_the_batches(query: str, data: st.DataObject) -> None:
    batches = data.draw(inputs(topics_of(query)))
    in_batches, one_by_one = Batches(QUERIES[query]), Batches(QUERIES[query])
    for batch in batches:
        in_batches.feed(batch)
        for record in batch:
            one_by_one.feed([record])
    if query == "foreign key":
        # Answers of a batch come after all of its questions: only the last word is the same.
        assert _last(in_batches) == _last(one_by_one)
    else:
        assert in_batches.results() == one_by_one.results()


def _last(run: Batches) -> dict[bytes | None, bytes | None]:
    found = {key: value for log in run.results() for key, value, _ in log}
    return {key: value for key, value in found.items() if value is not None}


def test_a_query_that_replaced_another_reads_the_rows_that_it_stored() -> None:
    run = Batches(QUERIES["table of a table"])
    run.feed([("u", "1", '{"NAME": "Ann", "SHOP": "a"}', 1)])
    run.replace(
        "ALTER TABLE users ADD COLUMN age INT;"
        "CREATE OR REPLACE TABLE r AS SELECT shop, COUNT(*) AS n FROM users GROUP BY shop;"
    )
    run.feed([("u", "1", '{"NAME": "Ann", "SHOP": "b", "AGE": 7}', 2)])
    counts = {key: json.loads(value or b"null") for key, value in _last(run).items()}
    assert counts == {b"a": {"N": 0}, b"b": {"N": 1}}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"plan": 1}', "null", "{"])
def test_a_text_that_is_no_job_is_refused(text: str) -> None:
    with pytest.raises(SqlError, match="a job cannot be read"):
        Job.of_text(text)
