"""CREATE OR REPLACE may change conditions and projections, and nothing that state depends on."""

import pytest

from sql.errors import StatementFailed
from sql.planner.upgrades import check_upgrade
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
    ],
)
def test_what_state_depends_on_may_not_change(before: str, after: str, why: str) -> None:
    with pytest.raises(StatementFailed) as refusal:
        upgrade(before, after)
    assert why in refusal.value.message
