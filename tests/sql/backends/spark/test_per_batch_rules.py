"""What can run per batch, and what is refused."""

from typing import Any

import pytest

from sql.backends.spark.per_batch_rules import PER_BATCH, SETTING, stateful_step
from sql.engine.settings import SqlConfig
from sql.errors import SqlError, StatementFailed
from tests.sql.planner.session import Session

SOURCES = """
    CREATE STREAM orders (id STRING KEY, shop STRING, amount INT)
        WITH (kafka_topic='orders', value_format='JSON');
    CREATE STREAM views (id STRING KEY, page STRING)
        WITH (kafka_topic='views', value_format='JSON');
    CREATE TABLE shops (id STRING PRIMARY KEY, page STRING)
        WITH (kafka_topic='shops', value_format='JSON');
    CREATE TABLE owners (id STRING PRIMARY KEY, page STRING)
        WITH (kafka_topic='owners', value_format='JSON');
"""
TABLE = "CREATE TABLE r AS SELECT"
JOINED = "CREATE STREAM r AS SELECT o.id AS id, shop, page FROM orders o"
REFUSED = {
    "the aggregate COLLECT_LIST": f"{TABLE} shop, COLLECT_LIST(id) AS l FROM orders GROUP BY shop;",
    "SESSION windows without EMIT FINAL": f"{TABLE} id, COUNT(*) AS n FROM orders"
    " WINDOW SESSION (5 SECONDS) GROUP BY id;",
    "LEFT JOIN of streams without a GRACE PERIOD": f"{JOINED}"
    " LEFT JOIN views v WITHIN 1 SECOND ON o.id = v.id;",
    "a join of a stream with a table": f"{JOINED} JOIN shops v ON o.id = v.id;",
    'table "SHOPS" before another step': f"{TABLE} page, COUNT(*) AS n FROM shops GROUP BY page;",
    'table "SHOPS" cannot': f"{TABLE} id, page FROM shops;",
    "a join of tables": f"{TABLE} a.id AS id, b.page AS p FROM shops a JOIN owners b"
    " ON a.id = b.id;",
    "a join of streams before another step": f"{TABLE} o.shop AS shop, COUNT(*) AS n FROM orders o"
    " JOIN views v WITHIN 1 SECOND ON o.id = v.id GROUP BY o.shop;",
}


def plan_of(statement: str) -> Any:
    """The plan of the last statement; Any: that of a persistent query."""
    return Session().run(SOURCES + statement).plans[-1].plan


@pytest.mark.parametrize("what", REFUSED)
def test_what_spark_cannot_do_is_refused_with_a_way_out(what: str) -> None:
    with pytest.raises(SqlError, match=what) as refused:
        stateful_step(plan_of(REFUSED[what]))
    assert "cannot run per batch on Spark" in str(refused.value)
    assert "leave 'spark.updates' at 'per-record'" in str(refused.value)


def test_a_query_that_keeps_nothing_runs_as_ever() -> None:
    assert (
        stateful_step(plan_of("CREATE STREAM r AS SELECT id, shop FROM orders WHERE amount > 1;"))
        is None
    )


def test_only_two_ways_to_tell_updates_are_known() -> None:
    assert SqlConfig({SETTING: "Per-Batch"})[SETTING] == PER_BATCH
    with pytest.raises(StatementFailed, match="it must be one of per-record, per-batch"):
        SqlConfig({SETTING: "sometimes"})
