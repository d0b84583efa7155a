"""Plans as topologies: names that stay, logged errors, results that no restart changes."""

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.serde import BytesSerde
from sql.backends.native.steps import ProcessingLog, StepContext, ignore_errors
from sql.backends.native.topology import add_query, application_id
from sql.functions.builtin import builtin_functions
from sql.parse import parse
from sql.plan import topics_read
from sql.rows.row_format import Row
from sql.testing.cases import Case, CaseKind, load_cases
from sql.testing.engine import BuiltQuery, TestEngine
from sql.testing.query_cases import encoded_inputs
from sql.testing.query_runs import TopicRecord
from sql.testing.topic_setup import set_up_topics
from streams.config import StreamsConfig
from streams.dsl.builder import StreamsBuilder
from streams.handlers import log_and_continue
from streams.testing import TopologyTestDriver
from streams.topology import Topology

OPERATORS = ("rows", "keys", "tables", "aggregates", "windows", "joins", "formats")
CASES = [
    case
    for case in load_cases([Path(__file__).parents[3] / "cases" / "sql"])
    if case.id.split("/")[0] in OPERATORS
    and case.kind is CaseKind.QUERY
    and not case.data.get("expected_error")
]
# What depends on the time of other partitions, or on where a record lies.
ONE_PARTITION = ("grace", "partition and offset", "EMIT FINAL")  # cases about one partition
PARTITIONED = [case for case in CASES if not any(each in case.id for each in ONE_PARTITION)]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    log = logging.getLogger("streams")
    level = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(level)


def engine_of(case: Case) -> TestEngine:
    engine = TestEngine(builtin_functions(), case.data.get("properties") or {})
    script = parse("\n".join(case.data["statements"]))
    set_up_topics(engine, case.data, [each.statement for each in script])
    for parsed in script:
        engine.execute(parsed)
    return engine


def topology_of(
    engine: TestEngine, query: BuiltQuery, log: ProcessingLog = ignore_errors
) -> Topology:
    builder = StreamsBuilder()
    add_query(query.plan, StepContext(builder, engine.registry, log))
    return builder.build()


def planned(*statements: str) -> tuple[TestEngine, BuiltQuery]:
    engine = TestEngine(builtin_functions(), {})
    for parsed in parse("\n".join(statements)):
        engine.execute(parsed)
    return engine, next(iter(engine.queries.values()))


def results(
    case: Case, *, partitions: int, directory: Path | None = None, restarts: bool = False
) -> dict[str, list[tuple[bytes | None, bytes | None, int]]]:
    """What each query of a case writes, by its topic."""
    engine = engine_of(case)
    inputs = encoded_inputs(engine, case.data)
    found: dict[str, list[tuple[bytes | None, bytes | None, int]]] = {}
    config = StreamsConfig(
        application_id="app",
        statestore_cache_max_bytes=0,
        deserialization_exception_handler=log_and_continue,
        extra={"__emit.interval.ms.kstreams.windowed.aggregation__": 0},
    )
    for number, query in enumerate(engine.queries.values()):
        topology = topology_of(engine, query)
        with TopologyTestDriver(
            topology,
            config=config,
            partitions=partitions,
            state_directory=None if directory is None else directory / str(number),
        ) as driver:
            for topic, record in inputs:
                if topic in topics_read(query.plan):
                    feed(driver, topic, record)
                    if restarts:
                        driver.restart()
            output = driver.create_output_topic(
                query.plan.topic, key=BytesSerde(), value=BytesSerde()
            )
            for each in output.read_records_to_list():
                row = (each.key, each.value, each.timestamp_ms)
                found.setdefault(query.plan.topic, []).append(row)
    return found


def feed(driver: TopologyTestDriver, topic: str, record: TopicRecord) -> None:
    driver.pipe_batch(
        [(topic, (record.key, record.value, record.timestamp_ms, record.headers, None))]
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[each.id for each in CASES])
def test_restarts_after_each_record_change_nothing(case: Case, tmp_path: Path) -> None:
    assert results(case, partitions=1, directory=tmp_path, restarts=True) == results(
        case, partitions=1
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", PARTITIONED, ids=[each.id for each in PARTITIONED])
def test_more_partitions_change_nothing_but_the_order(case: Case) -> None:
    one, three = results(case, partitions=1), results(case, partitions=3)
    assert {topic: Counter(rows) for topic, rows in one.items()} == {
        topic: Counter(rows) for topic, rows in three.items()
    }


RANDOM = [
    case
    for case in CASES
    if case.data["inputs"] and case.id.split("/")[0] in ("tables", "aggregates", "windows", "joins")
]


TABLES = [each for each in RANDOM if "CREATE TABLE out" in each.data["statements"][-1]]
UNWINDOWED = [each for each in TABLES if "WINDOW" not in each.data["statements"][-1]]


def random_inputs(case: Case) -> st.SearchStrategy[Case]:
    """The case with its own records in any order, at any time, some without values."""

    def changed(record: dict[str, object], timestamp: int, keeps: int) -> dict[str, object]:
        return record | {"timestamp": timestamp} | ({} if keeps else {"value": None})

    records = st.builds(
        changed, st.sampled_from(case.data["inputs"]), st.integers(0, 60), st.integers(0, 3)
    )
    return st.lists(records, max_size=12).map(
        lambda inputs: Case(case.id, case.kind, {**case.data, "inputs": inputs})
    )


@pytest.mark.slow
@pytest.mark.parametrize("case", RANDOM, ids=[each.id for each in RANDOM])
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_restarts_change_nothing_of_random_inputs(case: Case, data: st.DataObject) -> None:
    changed = data.draw(random_inputs(case))
    assert results(changed, partitions=1, restarts=True) == results(changed, partitions=1)


@pytest.mark.slow
@pytest.mark.parametrize("case", UNWINDOWED, ids=[each.id for each in UNWINDOWED])
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_more_partitions_give_the_same_table_in_the_end(case: Case, data: st.DataObject) -> None:
    changed = data.draw(random_inputs(case))
    one, three = results(changed, partitions=1), results(changed, partitions=3)
    assert last_rows(one) == last_rows(three)


def last_rows(
    found: dict[str, list[tuple[bytes | None, bytes | None, int]]],
) -> dict[tuple[str, bytes | None], bytes]:
    """The rows that a table has after its last change."""
    last = {(topic, key): value for topic, rows in found.items() for key, value, _ in rows}
    return {key: value for key, value in last.items() if value is not None}


S = "CREATE STREAM s (k INT KEY, a INT, b STRING) WITH (kafka_topic='s', value_format='JSON');"
T = "CREATE TABLE t (k INT PRIMARY KEY, c STRING) WITH (kafka_topic='t', value_format='JSON');"


@pytest.mark.parametrize(
    ("query", "repartitions", "stores"),
    [
        ("CREATE STREAM o AS SELECT * FROM s;", [], []),
        ("CREATE STREAM o AS SELECT * FROM s PARTITION BY a;", [], []),
        ("CREATE TABLE o AS SELECT * FROM t;", [], ["KsqlTopic-Reduce"]),
        (
            "CREATE TABLE o AS SELECT k, COUNT(*) FROM s GROUP BY k;",
            [],
            ["Aggregate-Aggregate-Materialize"],
        ),
        (
            "CREATE TABLE o AS SELECT a, COUNT(*) FROM s GROUP BY a;",
            ["Aggregate-GroupBy-repartition"],
            ["Aggregate-Aggregate-Materialize"],
        ),
        (
            "CREATE STREAM o AS SELECT s.k, c FROM s JOIN t ON s.k = t.k;",
            [],
            ["KafkaTopic_Right-Reduce"],
        ),
        (
            "CREATE STREAM o AS SELECT s.a, c FROM s JOIN t ON s.a = t.k;",
            ["Join-repartition"],
            ["KafkaTopic_Right-Reduce"],
        ),
    ],
)
def test_internal_topics_and_stores_are_named_after_their_steps(
    query: str, repartitions: list[str], stores: list[str]
) -> None:
    topology = topology_of(*planned(S, T, query))
    assert sorted(topology.repartition_topics) == repartitions
    assert sorted(topology.stores) == stores


def test_an_application_is_named_after_its_query() -> None:
    assert application_id("shop_", "CTAS_N_1") == "_confluent-ksql-shop_query_CTAS_N_1"


def test_topics_are_named_once() -> None:
    _, query = planned(S, T, "CREATE STREAM o AS SELECT s.k, c FROM s JOIN t ON s.k = t.k;")
    assert topics_read(query.plan) == ("s", "t")


def test_what_an_expression_cannot_process_is_logged() -> None:
    reported: list[tuple[str, str, Row | None]] = []
    engine, query = planned(S, "CREATE STREAM o AS SELECT k, 10 / a AS d FROM s WHERE 10 / a < 9;")
    topology = topology_of(
        engine, query, lambda step, error, row: reported.append((step, type(error).__name__, row))
    )
    config = StreamsConfig(application_id="app", statestore_cache_max_bytes=0)
    with TopologyTestDriver(topology, config=config) as driver:
        driver.pipe_batch([("s", (b"\0\0\0\1", b'{"A": 0}', 5, (), None))])
        assert "O" not in driver.produced_topic_names
    assert [step for step, _, _ in reported] == ["WhereFilter"]
    assert reported[0][2] is not None
    assert reported[0][2][0] == 0


def test_a_record_without_a_time_is_logged_and_dropped() -> None:
    reported: list[str] = []
    create = S.replace("'JSON'", "'JSON', timestamp='b', timestamp_format='yyyy-MM-dd HH:mm:ss'")
    engine, query = planned(create, "CREATE STREAM o AS SELECT k, a FROM s;")
    topology = topology_of(engine, query, lambda step, error, row: reported.append(step))
    config = StreamsConfig(application_id="app", statestore_cache_max_bytes=0)
    with TopologyTestDriver(topology, config=config) as driver:
        driver.pipe_batch([("s", (b"\0\0\0\1", b'{"B": "no time"}', 5, (), None))])
        driver.pipe_batch([("s", (b"\0\0\0\1", b'{"B": "1970-01-01 00:00:07"}', 5, (), None))])
        output = driver.create_output_topic("O", key=BytesSerde(), value=BytesSerde())
        assert [each.timestamp_ms for each in output.read_records_to_list()] == [7000]
    assert reported == ["KsqlTopic/Source"]
