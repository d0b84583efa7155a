"""What is printed is read as the same syntax, with no more brackets than it needs."""

from typing import get_args

import pytest
from hypothesis import given

from sql.parse import parse, parse_expression, parse_statement, parse_type
from sql.printer import name_text, print_expression, print_statement, print_type
from sql.syntax import expressions as ex
from sql.syntax import statements as st
from sql.syntax.type_names import TypeSyntax
from tests.support import sql_trees


@pytest.mark.slow
@given(sql_trees.expressions)
def test_expressions_are_read_as_they_were(expression: ex.Expression) -> None:
    text = print_expression(expression)
    assert parse_expression(text) == expression
    # Decimals of different scales are equal, and their texts are not.
    assert print_expression(parse_expression(text)) == text


@given(sql_trees.types)
def test_types_are_read_as_they_were(type_: TypeSyntax) -> None:
    assert parse_type(print_type(type_)) == type_


@pytest.mark.slow
@given(sql_trees.statements)
def test_statements_are_read_as_they_were(statement: st.Statement) -> None:
    assert parse_statement(print_statement(statement), testing=True) == statement


@pytest.mark.slow
@given(sql_trees.statements)
def test_pretty_statements_are_read_as_they_were(statement: st.Statement) -> None:
    pretty = print_statement(statement, pretty=True)
    assert parse_statement(pretty, testing=True) == statement


@pytest.mark.slow
@given(sql_trees.statements, sql_trees.statements)
def test_printed_statements_make_a_script(first: st.Statement, second: st.Statement) -> None:
    texts = [print_statement(first), print_statement(second)]
    found = parse(f"{texts[0]};\n{texts[1]};", testing=True)
    assert [each.statement for each in found] == [first, second]
    assert [each.text for each in found] == texts


def test_every_kind_of_statement_is_among_the_trees() -> None:
    assert {*sql_trees.SIMPLE} == {*get_args(st.Statement)}


@pytest.mark.parametrize(
    "text",
    [
        "A + B * C",
        "(A + B) * C",
        "A - B - C",
        "A - (B - C)",
        "A / (B * C) % 2",
        "-A + -1",
        "- -1",
        "-(1)",
        "-(A + B)",
        "+A->B[1]",
        "(-1)[2]",
        "A || B || 'it''s'",
        "A || (B || C)",
        "A + B || C",
        "NOT NOT A = B AND C OR D",
        "NOT (A AND (B OR C))",
        "(A = B) = (C = D)",
        "A IS NOT NULL OR B IS DISTINCT FROM C",
        "A NOT BETWEEN 1 AND 2 + 3",
        "A NOT IN (1, B OR C)",
        "A LIKE '%!_' ESCAPE '!'",
        "CASE A WHEN 1 THEN 'one' ELSE NULL END",
        "CASE WHEN A THEN 1.50 WHEN B THEN 1.5E10 END",
        "CAST(A AS MAP<STRING, ARRAY<STRUCT<`x` DECIMAL(4, 2)>>>)",
        "REDUCE(ARRAY[1, 2], 0, (S, X) => S + X)",
        "TRANSFORM(M, X => X->`Field`['key'])",
        "COUNT(*)",
        "DATEADD(DAYS, 1, D)",
        "MAP('a' := 1, 'b' := 2)",
        "STRUCT(A := 1, `b` := TRUE)",
        "S.`select`",
        "`1A` + `A@B`",
        "5.",
    ],
)
def test_brackets_stand_only_where_they_are_needed(text: str) -> None:
    assert print_expression(parse_expression(text)) == text


def test_names_are_quoted_when_they_must_be() -> None:
    shown = [name_text(each) for each in ("ID", "id", "A B", "A`B", "FROM", "MAP", "KEY")]
    assert shown == ["ID", "`id`", "`A B`", "`A``B`", "`FROM`", "`MAP`", "KEY"]


def test_a_pretty_query_has_a_line_for_each_part() -> None:
    text = (
        "create or replace table totals with (kafka_topic='totals', partitions=3) as "
        "select o.customer, count(*) as orders, sum(amount * (1 - discount)) as total, "
        "c.name from orders o left join customers c on o.customer = c.id "
        "window tumbling (size 1 hour, grace period 5 minutes) where amount > 0 "
        "group by o.customer, c.name having count(*) > 1 emit changes;"
    )
    assert print_statement(parse_statement(text), pretty=True) == (
        "CREATE OR REPLACE TABLE TOTALS WITH (KAFKA_TOPIC='totals', PARTITIONS=3) AS\n"
        "SELECT O.CUSTOMER, COUNT(*) AS ORDERS, SUM(AMOUNT * (1 - DISCOUNT)) AS TOTAL, C.NAME\n"
        "FROM ORDERS AS O\n"
        "LEFT JOIN CUSTOMERS AS C ON O.CUSTOMER = C.ID\n"
        "WINDOW TUMBLING (SIZE 1 HOUR, GRACE PERIOD 5 MINUTES)\n"
        "WHERE AMOUNT > 0\n"
        "GROUP BY O.CUSTOMER, C.NAME\n"
        "HAVING COUNT(*) > 1\n"
        "EMIT CHANGES"
    )


def test_many_items_stand_on_lines_of_their_own() -> None:
    items = [f"A_COLUMN_WITH_A_LONG_NAME_{each}" for each in range(10)]
    pretty = print_statement(parse_statement(f"SELECT {', '.join(items)} FROM s"), pretty=True)
    assert pretty == "SELECT\n  " + ",\n  ".join(items) + "\nFROM S"


def test_many_columns_stand_on_lines_of_their_own() -> None:
    text = (
        "CREATE STREAM ORDERS (ID INT KEY, CUSTOMER STRING, AMOUNT DECIMAL(9, 2), NOTE STRING) "
        "WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON')"
    )
    statement = parse_statement(text)
    assert print_statement(statement) == text
    assert print_statement(statement, pretty=True) == (
        "CREATE STREAM ORDERS (\n"
        "  ID INT KEY,\n"
        "  CUSTOMER STRING,\n"
        "  AMOUNT DECIMAL(9, 2),\n"
        "  NOTE STRING\n"
        ")\n"
        "WITH (KAFKA_TOPIC='orders', VALUE_FORMAT='JSON')"
    )


@pytest.mark.parametrize("count", [32, 33, 64, 65, 100, 1_000])
@pytest.mark.parametrize("operator", ["AND", "OR", "||"])
def test_long_chains_are_read_as_they_were(operator: str, count: int) -> None:
    expression = parse_expression(f" {operator} ".join(["A"] * count))
    assert parse_expression(print_expression(expression)) == expression
