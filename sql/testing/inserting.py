"""INSERT INTO ... VALUES and ASSERT VALUES: evaluates constant expressions."""

from collections.abc import Sequence

from broker.serde.registry.api import SchemaRegistry
from sql.analyse.expressions import ExpressionAnalyser, converted
from sql.analyse.scope import Columns
from sql.backends.native.evaluating import row_function
from sql.catalog import Catalog
from sql.datatypes import Column
from sql.engine.insert_records import RecordBuilder
from sql.engine.settings import SqlConfig
from sql.errors import StatementFailed
from sql.functions.registry import FunctionRegistry
from sql.rows.row_format import Row
from sql.syntax.expressions import Expression
from sql.syntax.statements import InsertValues
from sql.testing.query_runs import TopicRecord


def inserted(
    statement: InsertValues,
    catalog: Catalog,
    functions: FunctionRegistry,
    registry: SchemaRegistry,
    now_ms: int,
) -> tuple[str, TopicRecord]:
    """The record that a statement writes, and its topic."""
    if statement.target not in catalog.sources:
        raise _unknown(statement.target, catalog)
    record_builder = RecordBuilder(catalog, functions, SqlConfig(), registry)
    record = record_builder.record(statement, now_ms)
    return record.topic, TopicRecord(record.key, record.value, record.timestamp_ms)


def evaluated(
    expressions: Sequence[Expression],
    columns: Sequence[Column],
    catalog: Catalog,
    functions: FunctionRegistry,
) -> Row:
    """The values of constant expressions, converted to the types of the columns."""
    analyser = ExpressionAnalyser(Columns(()), functions, catalog.types)
    typed = [
        converted(analyser.typed(each), column.type)
        for each, column in zip(expressions, columns, strict=True)
    ]
    failures: list[Exception] = []
    values = row_function(typed, lambda error, row: failures.append(error))(())
    if failures:
        raise StatementFailed(f"Failed to evaluate: {failures[0]}") from failures[0]
    return values


def _unknown(name: str, catalog: Catalog) -> StatementFailed:
    alike = [each for each in catalog.sources if each.upper() == name.upper()]
    more = (
        f'\nDid you mean "{alike[0]}"? Hint: wrap the source name in double quotes to make it '
        "case-sensitive."
        if alike
        else ""
    )
    return StatementFailed(f"Cannot insert values into an unknown stream/table: `{name}`{more}")
