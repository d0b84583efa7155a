"""Rules of the rewrite stage: what they change, and what they leave as it is."""

from typing import Any

import pytest
from hypothesis import given, settings

from sql.errors import SqlError
from sql.plan import (
    Aggregate,
    Filter,
    ForeignKeyJoin,
    PlanNode,
    Project,
    Rekey,
    Scan,
    StreamJoin,
    StreamTableJoin,
    TableJoin,
    inputs,
)
from sql.planner import explain_text
from sql.planner.upgrades import check_upgrade, upgraded
from sql.rewrite import RULES, Rule, rewritten
from tests.sql.planner.golden import CASES, GoldenPlan, read_plans
from tests.sql.planner.invariants import check_plan
from tests.sql.planner.session import Session
from tests.sql.planner.test_random_queries import SOURCES as RANDOM_SOURCES
from tests.sql.planner.test_random_queries import queries

SOURCES = """
    CREATE STREAM s (id INT KEY, a BIGINT, b STRING, c DOUBLE, l ARRAY<INT>)
        WITH (KAFKA_TOPIC='s', VALUE_FORMAT='JSON');
    CREATE STREAM r (id INT KEY, e BIGINT, f STRING) WITH (KAFKA_TOPIC='r', VALUE_FORMAT='JSON');
    CREATE TABLE t (id INT PRIMARY KEY, n STRING, m INT)
        WITH (KAFKA_TOPIC='t', VALUE_FORMAT='JSON');
    CREATE TABLE u (id INT PRIMARY KEY, o STRING, p INT)
        WITH (KAFKA_TOPIC='u', VALUE_FORMAT='JSON');
"""
PUSH, PRUNE = RULES
GOLDEN = [each for file in sorted(CASES.glob("*.txt")) for each in read_plans(file)]


def plan_of(query: str, rules: tuple[Rule, ...] = RULES) -> PlanNode:
    planned = Session().run(f"{SOURCES} CREATE {query};").plans[-1]
    found = rewritten(planned, rules)
    assert all(each in [rule.name for rule in rules] for each in found.rules)
    check_plan(found.plan, rewritten=True)
    return found.plan


def all_steps(plan: PlanNode) -> list[PlanNode]:
    return [plan, *(each for below in inputs(plan) for each in all_steps(below))]


def step_of(plan: PlanNode, kind: type[PlanNode]) -> Any:
    [found] = [each for each in all_steps(plan) if isinstance(each, kind)]
    return found


def names(plan: PlanNode) -> list[str]:
    return [each.name for each in plan.shape.row]


# --- prune_columns --------------------------------------------------------------------------------


def test_rows_of_a_repartition_topic_have_the_group_and_the_arguments() -> None:
    plan = plan_of("TABLE o AS SELECT b, SUM(a) AS n FROM s WHERE c > 1 GROUP BY b")
    assert names(step_of(plan, Aggregate).input) == ["A", "B"]


def test_a_row_that_is_only_counted_has_its_time() -> None:
    plan = plan_of("TABLE o AS SELECT l[1] AS k, COUNT(*) AS n FROM s GROUP BY l[1]")
    assert names(step_of(plan, Aggregate).input) == ["L", "ROWTIME"]


def test_a_group_that_is_the_key_has_no_repartition_topic_and_stays_as_it_is() -> None:
    query = "TABLE o AS SELECT id, SUM(a) AS n FROM s GROUP BY id"
    assert plan_of(query) == plan_of(query, ())


def test_groups_of_a_table_have_what_is_grouped_and_aggregated() -> None:
    plan = plan_of("TABLE o AS SELECT m, COUNT(n) AS k FROM t GROUP BY m")
    step = step_of(plan, Aggregate).input
    assert isinstance(step, Project)
    assert names(step) == ["N", "M"]
    assert step_of(plan, Scan).kept is None, "CREATE OR REPLACE may use any column of it"


def test_windows_of_a_join_of_streams_have_the_columns_that_are_selected_or_compared() -> None:
    plan = plan_of(
        "STREAM o AS SELECT s.id, c, f FROM s JOIN r WITHIN 1 HOUR ON s.id = r.id WHERE a > e"
    )
    join = step_of(plan, StreamJoin)
    assert (names(join.left), names(join.right)) == (["A", "C"], ["E", "F"])
    assert names(join) == ["S_A", "S_C", "R_E", "R_F"]


def test_a_table_that_is_joined_keeps_some_columns() -> None:
    plan = plan_of("STREAM o AS SELECT s.id, a, m FROM s JOIN t ON s.id = t.id")
    join = step_of(plan, StreamTableJoin)
    assert isinstance(join.right, Scan)
    assert (join.right.kept, names(join.right)) == ((1,), ["M"])
    assert isinstance(join.left, Scan), "its rows are not stored"


def test_a_stream_with_a_new_key_is_sent_without_the_key() -> None:
    plan = plan_of("STREAM o AS SELECT t.id, c, m FROM s JOIN t ON CAST(a AS INT) = t.id")
    join = step_of(plan, StreamTableJoin)
    assert names(join.left) == ["C"]
    assert isinstance(join.left, Project)
    assert isinstance(join.left.input, Rekey)


def test_joined_tables_keep_some_columns_each() -> None:
    plan = plan_of("TABLE o AS SELECT t.id, n, p FROM t JOIN u ON t.id = u.id")
    join = step_of(plan, TableJoin)
    assert (names(join.left), names(join.right)) == (["N"], ["P"])


def test_the_left_table_of_a_join_by_a_foreign_key_keeps_whole_rows() -> None:
    plan = plan_of("TABLE o AS SELECT t.id, n, p FROM t JOIN u ON t.m = u.id")
    join = step_of(plan, ForeignKeyJoin)
    assert (join.left.kept, names(join.right)) == (None, ["P"])


def test_a_plan_without_state_is_not_changed() -> None:
    for query in (
        "STREAM o AS SELECT id, a + 1 AS x FROM s WHERE b LIKE 'x%'",
        "STREAM o AS SELECT * FROM s PARTITION BY b",
        "STREAM o AS SELECT id, EXPLODE(l) AS x FROM s",
        "TABLE o AS SELECT id, n FROM t WHERE m > 1",
    ):
        assert plan_of(query) == plan_of(query, ())


def test_a_replaced_query_reads_whole_rows_that_the_old_one_has_sent() -> None:
    query = "TABLE o AS SELECT b, SUM(a) AS n FROM s GROUP BY b"
    old, new = plan_of(query, ()), plan_of(query)
    for before, after in ((old, new), (new, old), (new, new)):
        check_upgrade(before, after)
    found = step_of(upgraded(old, new), Aggregate)
    assert found.earlier_rows == (step_of(old, Aggregate).input.shape.row,)
    assert step_of(upgraded(new, new), Aggregate).earlier_rows == ()


# --- push_filters ---------------------------------------------------------------------------------


def test_a_condition_on_the_stream_comes_before_its_new_key_and_its_join() -> None:
    plan = plan_of(
        "STREAM o AS SELECT t.id, c, m FROM s JOIN t ON CAST(a AS INT) = t.id "
        "WHERE c > 2 AND (b = 'x' OR b IS NULL) AND m > 3",
        (PUSH,),
    )
    outer, first, second = [each for each in all_steps(plan) if isinstance(each, Filter)]
    assert isinstance(outer.input, StreamTableJoin)
    assert isinstance(outer.input.left, Rekey)
    assert outer.input.left.input is first
    assert isinstance(second.input, Scan)


def test_a_condition_passes_all_joins_with_tables() -> None:
    plan = plan_of(
        "STREAM o AS SELECT s.id, n, o FROM s LEFT JOIN t ON s.id = t.id JOIN u ON s.id = u.id "
        "WHERE s.b = 'x'",
        (PUSH,),
    )
    [found] = [each for each in all_steps(plan) if isinstance(each, Filter)]
    assert isinstance(found.input, Scan)


@pytest.mark.parametrize(
    "query",
    [
        # Rows that are filtered out advance the time of the join.
        "STREAM o AS SELECT s.id, e FROM s JOIN r WITHIN 1 HOUR ON s.id = r.id WHERE a > 1",
        # A filter of a table emits deletions.
        "TABLE o AS SELECT t.id, n FROM t JOIN u ON t.id = u.id WHERE m > 1",
        "TABLE o AS SELECT t.id, n FROM t JOIN u ON t.m = u.id WHERE m > 1",
        # It needs the table.
        "STREAM o AS SELECT s.id, n FROM s JOIN t ON s.id = t.id WHERE m > 1",
        "STREAM o AS SELECT s.id, n FROM s JOIN t ON s.id = t.id WHERE m > a",
        "STREAM o AS SELECT s.id, n FROM s JOIN t ON s.id = t.id WHERE a > 1 OR m > 1",
        # It may fail, which would be reported for rows without a match.
        "STREAM o AS SELECT s.id, n FROM s JOIN t ON s.id = t.id WHERE 10 / a > 1",
        "STREAM o AS SELECT s.id, n FROM s JOIN t ON s.id = t.id WHERE CAST(b AS INT) > 1",
        "STREAM o AS SELECT s.id, n FROM s JOIN t ON s.id = t.id WHERE LEN(b) > 1",
    ],
)
def test_other_conditions_stay_where_they_are(query: str) -> None:
    assert plan_of(query, (PUSH,)) == plan_of(query, ())


# --- all plans ------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", GOLDEN, ids=lambda each: each.title)
def test_expressions_of_rewritten_plans_use_columns_that_are_there(case: GoldenPlan) -> None:
    for planned in Session().run(case.statements).plans:
        found = rewritten(planned)
        check_plan(found.plan, rewritten=True)
        assert (found.rules == ()) == (found.plan == planned.plan)
        assert found.plan.shape == planned.plan.shape


@given(queries())
@settings(deadline=None)
def test_random_queries_have_rewritten_plans_in_which_everything_fits(query: str) -> None:
    try:
        [planned] = Session().run(f"{RANDOM_SOURCES} {query}").plans
    except SqlError:
        return
    found = rewritten(planned).plan
    check_plan(found, rewritten=True)
    assert found.shape == planned.plan.shape
    stores = [(each.name, type(each)) for each in all_steps(planned.plan) if _is_named(each)]
    assert [(each.name, type(each)) for each in all_steps(found) if _is_named(each)] == stores


def _is_named(step: PlanNode) -> bool:
    """Whether stores or topics may be named after a step."""
    return not isinstance(step, Filter | Project)


def test_explain_names_the_rules_that_have_changed_a_plan() -> None:
    planned = Session().run(f"{SOURCES} CREATE TABLE o AS SELECT b, SUM(a) AS n FROM s GROUP BY b;")
    found = rewritten(planned.plans[-1])
    assert found.rules == ("prune_columns",)
    assert explain_text(found.plan, found.rules).endswith("\nRewritten by: prune_columns")
    assert "Rewritten" not in explain_text(found.plan)
