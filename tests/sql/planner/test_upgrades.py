"""CREATE OR REPLACE may change conditions and projections, and nothing that state depends on."""

from typing import Any

import pytest

from sql.errors import StatementFailed
from sql.plan import Aggregate, PlanNode, Scan, Sink
from sql.planner.upgrades import check_upgrade, upgraded
from tests.sql.planner.session import Session

SOURCES = """
    CREATE STREAM s (id INT KEY, a INT, b INT) WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
    CREATE STREAM r (id INT KEY, a INT, b INT) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON');
    CREATE TABLE t (id INT PRIMARY KEY, c INT) WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
"""


def upgrade(before: str, after: str) -> None:
    first = Session().run(f"{SOURCES} CREATE {before};").plans[-1]
    second = Session().run(f"{SOURCES} CREATE {after};").plans[-1]
    check_upgrade(first.plan, second.plan)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("STREAM o AS SELECT id, a FROM s", "STREAM o AS SELECT id, a FROM s WHERE b > 1"),
        ("STREAM o AS SELECT id, a FROM s WHERE a > 1", "STREAM o AS SELECT id, b AS a FROM s"),
        (
            "STREAM o AS SELECT * FROM s PARTITION BY a",
            "STREAM o AS SELECT a, b FROM s WHERE b > 1 PARTITION BY a",
        ),
        (
            "TABLE o AS SELECT a, SUM(b) AS n FROM s GROUP BY a",
            "TABLE o AS SELECT a, SUM(b) * 2 AS n FROM s WHERE b > 1 GROUP BY a HAVING SUM(b) > 3",
        ),
        ("TABLE o AS SELECT * FROM t", "TABLE o AS SELECT id, c + 1 AS c FROM t WHERE c > 1"),
    ],
)
def test_conditions_and_projections_may_change(before: str, after: str) -> None:
    upgrade(before, after)
    upgrade(after, before)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (
            "STREAM o AS SELECT s.id, a, c FROM s JOIN t ON s.id = t.id",
            "STREAM o AS SELECT s.id, a, c FROM s JOIN t ON s.id = t.id WHERE a > 1",
            "Upgrades not yet supported for StreamTableJoin",
        ),
        (
            "TABLE o AS SELECT id, COUNT(*) FROM s WINDOW SESSION (1 DAY) GROUP BY id",
            "TABLE o AS SELECT id, COUNT(*) FROM s GROUP BY id",
            "Upgrades not yet supported for StreamWindowedAggregate",
        ),
        (
            "TABLE o AS SELECT id, COUNT(*) AS n FROM s WHERE a > 1 GROUP BY id",
            "TABLE o AS SELECT id, COUNT(*) AS n FROM s GROUP BY id",
            "StreamAggregate must have matching columns not part of aggregate. "
            "Values differ: [`ID`, `ROWTIME`, `A`] vs. [`ID`, `ROWTIME`]",
        ),
        (
            "TABLE o AS SELECT id, SUM(a) AS n FROM s GROUP BY id",
            "TABLE o AS SELECT id, MAX(a) AS n FROM s GROUP BY id",
            "StreamAggregate must have matching aggregation functions.",
        ),
        (
            "TABLE o AS SELECT a AS k, COUNT(*) AS n FROM s GROUP BY a",
            "TABLE o AS SELECT b AS k, COUNT(*) AS n FROM s GROUP BY b",
            "StreamAggregate must have matching group by expressions. Values differ: [A] vs. [B]",
        ),
        (
            "STREAM o AS SELECT a AS k, b FROM s PARTITION BY a",
            "STREAM o AS SELECT b AS k, a AS b FROM s PARTITION BY b",
            "StreamSelectKey must have matching key expressions.",
        ),
        (
            "STREAM o AS SELECT * FROM s",
            "STREAM o AS SELECT * FROM r",
            "Source must have matching source. Values differ: S vs. R",
        ),
        (
            "STREAM o AS SELECT id, a FROM s",
            "STREAM o AS SELECT a AS id, b AS a FROM s PARTITION BY a",
            "Plan type must match.",
        ),
        (
            "STREAM o AS SELECT * FROM s",
            "STREAM o WITH (VALUE_FORMAT='AVRO') AS SELECT * FROM s",
            "Sink must have matching formats. Values differ: [KAFKA, JSON] vs. [KAFKA, AVRO]",
        ),
        (
            "TABLE o AS SELECT id, COUNT(*) AS n FROM s GROUP BY id",
            "TABLE o WITH (KEY_FORMAT='JSON') AS SELECT id, COUNT(*) AS n FROM s GROUP BY id",
            "must have matching formats.",
        ),
        (
            "STREAM o WITH (VALUE_FORMAT='DELIMITED') AS SELECT * FROM s",
            "STREAM o WITH (VALUE_FORMAT='DELIMITED', VALUE_DELIMITER='|') AS SELECT * FROM s",
            "Values differ: [KAFKA, DELIMITED] vs. [KAFKA, DELIMITED (VALUE_DELIMITER=|)]",
        ),
        (
            "STREAM o AS SELECT id, a FROM s",
            "STREAM o WITH (WRAP_SINGLE_VALUE=false) AS SELECT id, a FROM s",
            "Values differ: [KAFKA, JSON] vs. [KAFKA, JSON (UNWRAP_SINGLES)]",
        ),
    ],
)
def test_what_state_depends_on_may_not_change(before: str, after: str, why: str) -> None:
    with pytest.raises(StatementFailed) as refusal:
        upgrade(before, after)
    assert why in refusal.value.message


def step_of(plan: Any, kind: type[PlanNode]) -> PlanNode:
    """The step of a kind in a plan without joins."""
    while not isinstance(plan, kind):
        plan = plan.input
    return plan


def upgraded_sink(*statements: str) -> Sink:
    """The last of some queries, each of which replaced the one before."""
    plans = [each.plan for each in Session().run(f"{SOURCES} {'; '.join(statements)};").plans]
    plan = plans[0]
    for following in plans[1:]:
        plan = upgraded(plan, following)
    assert isinstance(plan, Sink)
    return plan


def test_a_plan_knows_the_rows_that_those_before_it_have_stored() -> None:
    query = "OR REPLACE TABLE o AS SELECT c, COUNT(*) AS n FROM t GROUP BY c"
    plan = upgraded_sink(
        f"CREATE {query}",
        f"CREATE {query}",
        "ALTER TABLE t ADD COLUMN d INT",
        f"CREATE {query}",
        f"CREATE {query}",
        "ALTER TABLE t ADD COLUMN e INT",
        f"CREATE {query} HAVING COUNT(*) > 1",
    )
    group, scan = step_of(plan, Aggregate), step_of(plan, Scan)
    assert isinstance(group, Aggregate)
    assert isinstance(scan, Scan)
    for rows in (scan.earlier_rows, group.earlier_rows):
        assert [[each.name for each in row][:3] for row in rows] == [
            ["C", "ROWTIME", "ROWPARTITION"],
            ["C", "D", "ROWTIME"],
        ]


def test_a_stream_that_stores_nothing_has_no_rows_before() -> None:
    query = "CREATE OR REPLACE STREAM o AS SELECT * FROM s"
    plan = upgraded_sink(query, "ALTER STREAM s ADD COLUMN c INT", query)
    scan = step_of(plan, Scan)
    assert isinstance(scan, Scan)
    assert scan.earlier_rows == ()


def test_a_column_of_another_type_cannot_be_read_from_a_store() -> None:
    first = Session().run(f"{SOURCES} CREATE TABLE o AS SELECT * FROM t;").plans[-1]
    other = SOURCES.replace("c INT", "c STRING")
    second = Session().run(f"{other} CREATE TABLE o AS SELECT * FROM t;").plans[-1]
    with pytest.raises(StatementFailed, match="`C` was stored as INTEGER, but is STRING now"):
        upgraded(first.plan, second.plan)
