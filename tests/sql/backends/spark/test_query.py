"""Queries on Spark: several in one streaming query, users' functions, records that are no rows."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from broker.client import admin, producer
from broker.model import EARLIEST_TIMESTAMP, TopicPartition
from sql.backends.spark.job import Job
from sql.functions.user import registry_with
from sql.planner import plan_to_json
from tests.sql.backends.spark.cluster import committed_records, create
from tests.sql.planner.session import Session
from tests.support.peer import wait_until
from tests.support.spark import MARKS, shared_session

pytestmark = MARKS

FUNCTIONS = '''"""Functions of a user."""
from sql.functions.user import udf

@udf
def twice(number: int) -> int:
    "Two times a number."
    return 2 * number
'''
NO_SETTINGS: Mapping[str, object] = {}
NUMBERS = """
    CREATE STREAM numbers (k STRING KEY, n INT) WITH (kafka_topic='{topic}', value_format='JSON');
"""


# Any, here and below: a SparkSession.
@pytest.fixture(scope="module")
def spark() -> Any:
    return shared_session()


@pytest.fixture
def run(spark: Any, servers: str, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Starts a query of jobs; it is stopped in the end."""
    from sql.backends.spark.query import SparkPlace, SparkQuery

    started = []

    def start(*jobs: Job) -> SparkQuery:
        place = SparkPlace(spark, servers, tmp_path / "checkpoints")
        query = SparkQuery(jobs, place, starting="earliest", name=f"run-{jobs[0].application_id}")
        query.start()
        started.append(query)
        return query

    yield start
    for query in started:
        query.stop()


def job(
    application_id: str,
    statements: str,
    functions: tuple[str, ...] = (),
    settings: Mapping[str, object] = NO_SETTINGS,
) -> Job:
    session = Session(functions=registry_with(functions)).run(statements)
    plan: Any = session.plans[-1].plan
    topics = {source.topic for source in session.catalog.sources.values()}
    return Job(
        application_id,
        plan_to_json(plan),
        dict.fromkeys(topics, 0),
        settings=settings,
        function_modules=functions,
    )


def write(servers: str, topic: str, *values: str) -> None:
    with producer(servers) as out:
        for number, value in enumerate(values):
            out.send(topic, value.encode(), key=b"k", timestamp_ms=number)


def values(servers: str, topic: str) -> list[str]:
    return [(each.value or b"").decode() for each in committed_records(servers, topic)]


@pytest.mark.long  # the cases of test_spark_cases.py are many jobs in one query, too
def test_several_jobs_share_batches_and_nothing_else(
    run: Callable[..., Any], servers: str, tmp_path: Path
) -> None:
    functions = tmp_path / "functions.py"
    functions.write_text(FUNCTIONS)
    for topic in ("first", "second", "doubled", "counted", "again"):
        create(servers, topic, 1)
    first = NUMBERS.format(topic="first")
    write(servers, "first", '{"N": 1}', "no JSON", '{"N": 4}')
    write(servers, "second", '{"N": 7}', '{"N": 7}')
    doubled = f"""{first} CREATE STREAM r WITH (kafka_topic='doubled') AS
        SELECT k, TWICE(n) AS m FROM numbers;"""
    counted = f"""{first} CREATE TABLE r WITH (kafka_topic='counted') AS
        SELECT n, COUNT(*) AS m FROM numbers GROUP BY n;"""
    query = run(
        job("doubles", doubled, (str(functions),)),
        job("counts", counted),
        job("again", counted.replace("'first'", "'second'").replace("counted", "again")),
    )
    query.process_all()
    assert values(servers, "doubled") == ['{"M":2}', '{"M":8}']
    assert values(servers, "counted") == ['{"M":1}', '{"M":1}']
    assert values(servers, "again") == ['{"M":1}', '{"M":2}']


@pytest.mark.parametrize("computed_by", ["python", "spark"])
def test_filters_and_projections_are_computed_by_either(
    run: Callable[..., Any], servers: str, computed_by: str
) -> None:
    source, result = f"given-{computed_by}", f"chosen-{computed_by}"
    create(servers, source, 1)
    create(servers, result, 1)
    write(servers, source, '{"N": 1}', "no JSON", '{"N": 4}', "{}", '{"n": 9}')
    text = f"""{NUMBERS.format(topic=source)}
        CREATE STREAM r WITH (kafka_topic='{result}') AS
        SELECT k, n + 1 AS m, SIGN(n) AS s FROM numbers WHERE n > 2;"""
    settings = {"spark.expressions": computed_by}
    query = run(job(f"chosen-by-{computed_by}", text, settings=settings))
    query.process_all()
    assert values(servers, result) == ['{"M":5,"S":1}', '{"M":10,"S":1}']


def test_what_was_read_of_a_repartition_topic_is_deleted(
    run: Callable[..., Any], servers: str
) -> None:
    create(servers, "purged-in", 1)
    create(servers, "purged-out", 1)
    write(servers, "purged-in", *(f'{{"N": {number}}}' for number in range(20)))
    counted = f"""{NUMBERS.format(topic="purged-in")}
        CREATE TABLE r WITH (kafka_topic='purged-out') AS
        SELECT n, COUNT(*) AS m FROM numbers GROUP BY n;"""
    query = run(job("purging", counted))
    query.process_all()
    query.stop()
    assert len(values(servers, "purged-out")) == 20
    with admin(servers) as administration:
        (internal,) = [name for name in administration.list_topics() if name.startswith("purging-")]

        def is_deleted() -> bool:
            tp = TopicPartition(internal, 0)
            first = administration.list_offsets({tp: EARLIEST_TIMESTAMP}).all()[tp].offset
            return first >= 20

        wait_until(is_deleted, "the records are deleted when the query has ended")


def test_a_task_that_fails_names_its_query(run: Callable[..., Any], servers: str) -> None:
    for topic in ("strict", "copied"):
        create(servers, topic, 1)
    write(servers, "strict", "no JSON")
    text = f"""{NUMBERS.format(topic="strict")}
        CREATE STREAM r WITH (kafka_topic='copied') AS SELECT k, n FROM numbers;"""
    settings = {"ksql.fail.on.deserialization.error": "true"}
    query = run(job("copies", text, settings=settings))
    with pytest.raises(Exception, match='task 0_0 of "copies" failed'):
        query.process_all()
    assert "copies" in (query.error or "")
    assert values(servers, "copied") == []
