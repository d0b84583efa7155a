"""Pull queries without a broker: which keys they look up, and what they may not ask."""

import pytest

from sql.analyse.sources import NoSchemas, SourceAnalyser
from sql.catalog import Catalog
from sql.engine.pull_rules import check_key_values, check_without_scans
from sql.engine.pulling import check_pull, pull_plan, requested_keys
from sql.engine.settings import SqlConfig
from sql.errors import StatementFailed
from sql.functions.builtin import builtin_functions
from sql.parse import parse_statement
from sql.planner import Planner
from sql.syntax.statements import CreateSource, Select

TABLES = (
    "CREATE TABLE t (k STRING PRIMARY KEY, v INT) WITH (kafka_topic='t', value_format='JSON');",
    "CREATE TABLE d (k DOUBLE PRIMARY KEY, v INT) WITH (kafka_topic='d', value_format='JSON');",
    "CREATE TABLE m (a INT PRIMARY KEY, b STRING PRIMARY KEY, v INT) "
    "WITH (kafka_topic='m', format='JSON');",
)
NO_SCANS = SqlConfig({"ksql.query.pull.table.scan.enabled": False})


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    found = Catalog()
    for text in TABLES:
        statement = parse_statement(text)
        assert isinstance(statement, CreateSource)
        made = SourceAnalyser(found, SqlConfig(), NoSchemas()).create(statement, text)
        assert made is not None
        found.sources[made.name] = made
    return found


def select(text: str) -> Select:
    statement = parse_statement(text)
    assert isinstance(statement, Select)
    return statement


def keys_of(catalog: Catalog, text: str) -> list[tuple[object, ...]] | None:
    planned = Planner(catalog, builtin_functions(), SqlConfig()).plan(select(text))
    assert planned is not None
    return requested_keys(pull_plan(planned.plan))


@pytest.mark.parametrize(
    ("query", "keys"),
    [
        ("SELECT * FROM t WHERE k = 'a';", [("a",)]),
        ("SELECT * FROM t WHERE 'a' = k AND v > 3;", [("a",)]),
        ("SELECT * FROM t WHERE k IN ('a', 'b', 'a');", [("a",), ("b",)]),
        ("SELECT * FROM t WHERE k = 'a' OR k = 'b';", [("a",), ("b",)]),
        ("SELECT * FROM t WHERE k = 'a' AND k = 'b';", []),
        ("SELECT * FROM t WHERE k = 'a' OR v = 1;", None),
        ("SELECT * FROM t WHERE k > 'a';", None),
        ("SELECT * FROM t WHERE k = UCASE('a');", [("A",)]),
        ("SELECT * FROM t;", None),
        ("SELECT * FROM d WHERE k = 10;", [(10.0,)]),
        ("SELECT * FROM d WHERE k = 10.5;", [(10.5,)]),
        ("SELECT * FROM m WHERE a = 1 AND b = 'x';", [(1, "x")]),
        ("SELECT * FROM m WHERE b = 'x' AND a IN (1, 2);", [(1, "x"), (2, "x")]),
        ("SELECT * FROM m WHERE a = 1;", None),
        ("SELECT * FROM m WHERE (a = 1 AND b = 'x') OR (a = 2 AND b = 'y');", [(1, "x"), (2, "y")]),
    ],
)
def test_keys_are_looked_up_where_a_condition_names_all_of_them(
    catalog: Catalog, query: str, keys: list[tuple[object, ...]] | None
) -> None:
    assert keys_of(catalog, query) == keys


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT * FROM t JOIN m ON t.v = m.v;", "JOIN clauses"),
        ("SELECT * FROM t GROUP BY k;", "GROUP BY clauses"),
        ("SELECT * FROM t PARTITION BY v;", "PARTITION BY clauses"),
        ("SELECT * FROM t HAVING v > 1;", "HAVING clauses"),
        ("SELECT * FROM t WINDOW TUMBLING (SIZE 1 DAY);", "WINDOW clauses"),
    ],
)
def test_what_only_push_queries_can_do_is_refused(query: str, why: str) -> None:
    with pytest.raises(StatementFailed, match=f"Pull queries don't support {why}"):
        check_pull(select(query).query)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT ROWPARTITION FROM t;", "in SELECT clauses: `ROWPARTITION`"),
        ("SELECT * FROM t WHERE ROWOFFSET > 1;", "in WHERE clauses: `ROWOFFSET`"),
        ("SELECT v, v FROM t;", "Duplicate value columns found in schema: `V` INTEGER"),
    ],
)
def test_columns_that_stores_do_not_have_are_refused(
    catalog: Catalog, query: str, why: str
) -> None:
    with pytest.raises(StatementFailed, match=why):
        keys_of(catalog, query)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT * FROM t;", "requires table scan"),
        ("SELECT * FROM t WHERE v = 1;", "missing key column for disjunct"),
        ("SELECT * FROM t WHERE k = 'a' OR v = 1;", "missing key column for disjunct"),
        ("SELECT * FROM t WHERE k <> 'a';", "must currently be '='"),
        ("SELECT * FROM t WHERE k = 'a' AND k = 'b';", "cannot be combined"),
        ("SELECT * FROM t WHERE k LIKE 'a%';", "requires table scan"),
        ("SELECT * FROM d WHERE k < 3;", "requires table scan"),
        ("SELECT * FROM d WHERE k = v;", "a resolvable expression"),
        ("SELECT * FROM m WHERE a = 1;", "must specify every key"),
    ],
)
def test_without_scans_a_query_must_name_its_keys(catalog: Catalog, query: str, why: str) -> None:
    asked = select(query).query
    with pytest.raises(StatementFailed, match=why):
        check_without_scans(asked.where, catalog.sources[asked.source.name], NO_SCANS)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t WHERE k = 'a' AND v > 1;",
        "SELECT * FROM t WHERE k >= 'a';",
        "SELECT * FROM m WHERE a IN (1, 2) AND b = 'x';",
    ],
)
def test_without_scans_lookups_and_one_range_are_allowed(catalog: Catalog, query: str) -> None:
    asked = select(query).query
    check_without_scans(asked.where, catalog.sources[asked.source.name], NO_SCANS)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT * FROM m WHERE a IN (1, NULL);", "can not be NULL"),
        ("SELECT * FROM m WHERE a IN ('x');", "can not be converted to the type"),
    ],
)
def test_keys_must_be_values_of_their_columns(catalog: Catalog, query: str, why: str) -> None:
    asked = select(query).query
    with pytest.raises(StatementFailed, match=why):
        check_key_values(asked.where, catalog.sources[asked.source.name])
