"""Planned queries know what their engine needs beside the plan."""

from sql.catalog import FormatInfo, WindowInfo
from sql.datatypes import BIGINT, Column
from sql.functions.builtin import builtin_functions
from sql.plan import Aggregate, Project, Scan, Sink
from sql.planner import Planner
from sql.syntax.queries import EmitClause, WindowKind
from tests.sql.planner.session import Session

SOURCES = """
    CREATE STREAM s (id INT KEY, v INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
    CREATE STREAM r (id INT KEY, v INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON');
    CREATE SOURCE TABLE t (id INT PRIMARY KEY, v INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
"""


def test_a_query_names_its_sources_in_the_order_of_the_text() -> None:
    session = Session().run(f"{SOURCES} CREATE STREAM o AS SELECT * FROM r JOIN t ON r.id = t.id;")
    assert session.plans[-1].sources == ("R", "T")


def test_a_push_query_has_no_sink_and_knows_its_limit() -> None:
    planned = Session().run(f"{SOURCES} SELECT v, id FROM s EMIT CHANGES LIMIT 5;").plans[-1]
    assert isinstance(planned.plan, Project)
    assert [each.name for each in planned.schema.value] == ["V", "ID"]
    assert (planned.sink, planned.limit, planned.emit) == (None, 5, EmitClause.CHANGES)


def test_an_insert_writes_to_what_is_there_under_the_id_that_it_asks_for() -> None:
    planned = (
        Session()
        .run(f"{SOURCES} INSERT INTO s WITH (QUERY_ID='mine') SELECT id, v FROM r;")
        .plans[-1]
    )
    assert isinstance(planned.plan, Sink)
    assert planned.plan.topic == "s"
    assert (planned.creates_sink, planned.query_id) == (False, "mine")


def test_a_windowed_aggregate_gives_a_windowed_table() -> None:
    session = Session().run(
        f"{SOURCES} CREATE TABLE o AS SELECT id, COUNT(*) AS n FROM s "
        "WINDOW TUMBLING (SIZE 2 SECONDS, RETENTION 1 DAY) GROUP BY id;"
    )
    sink = session["O"]
    assert sink.window == WindowInfo(WindowKind.TUMBLING, 2_000)
    assert sink.schema.value == (Column("N", BIGINT),)
    project = session.plans[-1].plan
    assert isinstance(project, Sink)
    assert isinstance(project.input, Project)
    aggregate = project.input.input
    assert isinstance(aggregate, Aggregate)
    assert aggregate.window is not None
    assert aggregate.window.retention_ms == 86_400_000
    assert aggregate.by_key


def test_a_source_table_is_kept_so_that_it_can_be_asked() -> None:
    catalog = Session().run(SOURCES).catalog
    planned = Planner(catalog, builtin_functions(), {}).source_table("T")
    assert isinstance(planned.plan, Scan)
    assert planned.plan.materialized
    assert planned.plan.key_format == FormatInfo("KAFKA")


def test_a_query_that_may_find_its_sink_made_does_nothing_then() -> None:
    text = "CREATE STREAM IF NOT EXISTS o AS SELECT * FROM s;"
    session = Session().run(f"{SOURCES} {text} {text}")
    assert len(session.plans) == 1
