"""Stateless queries as columns of Spark write what the native operators write."""

# Spark's frames are Any: PySpark need not be there.
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark's own tests: install pyspark, pandas<3 and pyarrow")

from sql.backends.spark.job import Job, packed
from sql.backends.spark.records import ARROW_SCHEMA, schema_text
from sql.backends.spark.stateless import is_stateless, written_records
from sql.backends.spark.task_rows import StatelessTasks
from sql.plan import Sink
from sql.planner import plan_to_json
from tests.sql.planner.session import Session
from tests.support.spark import MARKS, shared_session

import pyarrow as pa  # isort: skip

SOURCE = """
    CREATE STREAM s (k STRING KEY, number INT, real DOUBLE, text STRING, items ARRAY<INT>,
            names MAP<STRING, INT>, stamp TIMESTAMP)
        WITH (kafka_topic='s', value_format='JSON');
"""
QUERIES = {
    "native": "SELECT k, number + 1 AS more, LCASE(text) AS low, items[1] AS one FROM s"
    " WHERE number > 2 AND text LIKE '%a%'",
    "own functions": "SELECT k, SIN(real) AS sine, number / real AS part, INITCAP(text) AS name,"
    " FORMAT_TIMESTAMP(stamp, 'yyyy-MM-dd') AS day FROM s",
    "own condition": "SELECT k, number FROM s WHERE INITCAP(text) = 'Ab'",
    "all columns": "SELECT * FROM s",
    "maps": "SELECT k, names, names['a'] AS a, ROWTIME AS t, ROWOFFSET AS o FROM s",
    "failing": "SELECT k, 10 / number AS ten, number / (number - 7) IS NULL AS never FROM s",
}
VALUES = (
    b'{"NUMBER":7,"REAL":0.5,"TEXT":"AB","ITEMS":[1,null],"NAMES":{"a":1},"STAMP":86400000}',
    b'{"NUMBER":3,"REAL":-1e300,"TEXT":"xa\xc3\xa9","ITEMS":[]}',
    b'{"NUMBER":2147483647,"TEXT":"ba"}',
    b'{"NUMBER":0,"TEXT":null,"NAMES":{}}',
    b"no json",
    None,
    b"{}",
)


@pytest.fixture(scope="module")
def spark() -> Any:
    """The session of all tests."""
    return shared_session()


def plan_of(query: str) -> Sink:
    sink = Session().run(f"{SOURCE} CREATE STREAM r WITH (kafka_topic='r') AS {query};").plans[-1]
    assert isinstance(sink.plan, Sink)
    return sink.plan


def records() -> list[tuple[Any, ...]]:
    """Records of one partition, some with headers and some without keys."""
    return [
        (
            "s",
            0,
            place,
            1_000 + place,
            0,
            None if place % 5 == 4 else b"key%d" % (place % 3),
            VALUES[place % len(VALUES)],
            [{"name": "h", "value": b"1"}] if place % 2 else None,
        )
        for place in range(70)
    ]


def by_operators(plan: Sink) -> list[tuple[Any, ...]]:
    """What the operators of the native engine write."""
    job = Job("app", plan_to_json(plan), {"s": 1, "r": 1})
    columns = [
        pa.array(each, field.type)
        for each, field in zip(zip(*records(), strict=True), ARROW_SCHEMA, strict=True)
    ]
    batch = pa.RecordBatch.from_arrays(columns, schema=ARROW_SCHEMA)
    found = []
    for written in StatelessTasks(packed([job]), {"s": ["app/0"]}).run(iter([batch])):
        found += [_record(each) for each in written.to_pylist()]
    return found


def _record(found: dict[str, Any]) -> tuple[Any, ...]:
    headers = [(each["name"], each["value"]) for each in found["headers"] or ()]
    return found["topic"], found["timestamp"], found["key"], found["value"], headers


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*) AS n FROM s GROUP BY k",
        "SELECT k, EXPLODE(items) AS item FROM s",
        "SELECT k, AS_MAP(ARRAY[text], ARRAY[number]) AS m FROM s",
        "SELECT k, CAST(number AS DECIMAL(40, 2)) AS n FROM s",
    ],
)
def test_other_plans_are_left_to_the_operators(query: str) -> None:
    kind = "TABLE" if "GROUP" in query else "STREAM"
    session = Session().run(f"{SOURCE} CREATE {kind} r WITH (kafka_topic='r') AS {query};")
    plan = session.plans[-1].plan
    assert isinstance(plan, Sink)
    assert not is_stateless(plan)


class TestOnSpark:
    """Frames of one partition."""

    pytestmark = MARKS

    @pytest.mark.parametrize("name", QUERIES)
    def test_the_records_are_those_of_the_operators(self, spark: Any, name: str) -> None:
        plan = plan_of(QUERIES[name])
        assert is_stateless(plan)
        frame = spark.createDataFrame(records(), schema_text(include_headers=True)).coalesce(1)
        found = [
            _record(each.asDict(recursive=True))
            for each in written_records(plan, lambda stage: stage.applied(frame), 1).collect()
        ]
        assert found == by_operators(plan)
        assert found
