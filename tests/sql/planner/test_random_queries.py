"""Random queries are refused as wrong statements, or have plans in which everything fits."""

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sql.catalog import Catalog, SourceInfo
from sql.errors import SqlError
from sql.functions.builtin import builtin_functions
from sql.planner import explain_text, plan_from_json, plan_to_json
from tests.sql.planner.golden import CASES, read_plans
from tests.sql.planner.invariants import check_plan
from tests.sql.planner.session import Session

SOURCES = """
    CREATE STREAM a (id INT KEY, x INT, s STRING, l ARRAY<INT>)
        WITH (KAFKA_TOPIC='a', VALUE_FORMAT='JSON');
    CREATE STREAM b (id INT KEY, x INT, r STRUCT<x INT, z STRING>)
        WITH (KAFKA_TOPIC='b', FORMAT='JSON');
    CREATE TABLE c (id INT PRIMARY KEY, x INT, w STRING) WITH (KAFKA_TOPIC='c', FORMAT='JSON');
    CREATE TABLE d (id INT PRIMARY KEY, f INT) WITH (KAFKA_TOPIC='d', VALUE_FORMAT='JSON');
"""
NUMBERS = {
    "a": ("a.id", "a.x", "l[1]", "a.rowtime", "x"),
    "b": ("b.id", "b.x", "r->x", "id"),
    "c": ("c.id", "c.x", "LEN(w)"),
    "d": ("d.id", "f"),
}
STREAMS = ("a", "b")


def numbers(sources: list[str]) -> st.SearchStrategy[str]:
    """Expressions that are numbers, of columns that some sources have."""
    known = [each for source in sources for each in NUMBERS[source]]
    return st.recursive(
        st.sampled_from([*known, *known, "1", "NULL", "nothing"]),
        lambda inner: st.one_of(
            st.builds("({} + {})".format, inner, inner),
            st.builds("{}({})".format, st.sampled_from(["ABS", "AS_VALUE"]), inner),
        ),
        max_leaves=2,
    )


def maybe(draw: st.DrawFn, text: str) -> str:
    """A part of a query that is there now and then."""
    return text if draw(st.integers(0, 3)) == 0 else ""


@st.composite
def from_clauses(draw: st.DrawFn) -> tuple[list[str], str]:
    """Some sources, streams first, and how they are joined."""
    sources = sorted(draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)))
    text = sources[0]
    kinds = st.sampled_from(["JOIN", "JOIN", "LEFT JOIN", "FULL OUTER JOIN", "RIGHT JOIN"])
    for source in sources[1:]:
        within = "WITHIN 1 HOUR" if source in STREAMS else ""
        left = draw(st.sampled_from([each for each in NUMBERS[sources[0]] if "." in each]))
        right = draw(st.sampled_from([f"{source}.id", f"{source}.id", f"ABS({source}.id)"]))
        text += f" {draw(kinds)} {source} {within} ON {left} = {right}"
    return sources, text


@st.composite
def queries(draw: st.DrawFn) -> str:
    """The text of a SELECT."""
    sources, joined = draw(from_clauses())
    number = numbers(sources)
    where = maybe(draw, f"WHERE {draw(number)} > {draw(number)}")
    some = draw(st.lists(number, min_size=1, max_size=2))
    if draw(st.integers(0, 2)) == 0:
        window = maybe(draw, "WINDOW TUMBLING (SIZE 1 MINUTE)")
        having = maybe(draw, f"HAVING SUM({draw(number)}) > 1")
        calls = [f"SUM({draw(number)}) AS total", "COUNT(*)", f"{some[0]} + COUNT(*) AS more"]
        items = [*some, *draw(st.lists(st.sampled_from(calls), max_size=2, unique=True))]
        groups = ", ".join(some)
        return (
            f"SELECT {', '.join(items)} FROM {joined} {window} {where} GROUP BY {groups} {having}"
        )
    first = draw(st.sampled_from(["*", f"{sources[0]}.id", f"{sources[0]}.*", "rowkey"]))
    partition = maybe(draw, f"PARTITION BY {some[0]}")
    exploded = [maybe(draw, "EXPLODE(ARRAY[1, 2]) AS e")]
    items = [each for each in (first, f"{draw(number)} AS one", *some, *exploded) if each]
    return f"SELECT {', '.join(items)} FROM {joined} {where} {partition}"


@cache
def known_sources() -> dict[str, SourceInfo]:
    """The streams and tables of all queries."""
    return Session().run(SOURCES).catalog.sources


@pytest.mark.slow
@given(queries(), st.sampled_from(["CREATE STREAM o AS", "CREATE TABLE o AS", "INSERT INTO a", ""]))
@settings(deadline=None)
def test_a_query_is_refused_or_planned_as_a_whole(query: str, before: str) -> None:
    session = Session(Catalog(dict(known_sources())))
    try:
        session.run(f"{before} {query} EMIT CHANGES;")
    except SqlError:
        return
    plan = session.plans[-1].plan
    check_plan(plan)
    explain_text(plan)
    document = json.loads(json.dumps(plan_to_json(plan)))
    assert plan_from_json(document, builtin_functions()) == plan


def test_golden_plans_are_whole() -> None:
    for file in CASES.glob("*.txt"):
        for case in read_plans(file):
            for planned in Session().run(case.statements).plans:
                check_plan(planned.plan)
