"""INSERT INTO ... VALUES: constant expressions as a record of a topic."""

from collections.abc import Sequence

from broker.client.registry.api import SchemaRegistry
from broker.client.serde.rows.row_format import Row
from sql.analyse.expressions import ExpressionAnalyser, converted
from sql.analyse.scope import Columns
from sql.backends.native.evaluating import row_function
from sql.backends.native.rows import key_serde, value_serde
from sql.catalog import Catalog, SourceInfo
from sql.datatypes import Column
from sql.errors import StatementFailed
from sql.functions.registry import FunctionRegistry
from sql.schema import ROWTIME
from sql.syntax.expressions import Expression
from sql.syntax.statements import InsertValues
from sql.testing.query_runs import TopicRecord


def inserted(
    statement: InsertValues,
    catalog: Catalog,
    functions: FunctionRegistry,
    registry: SchemaRegistry,
    now_ms: int,
) -> tuple[SourceInfo, TopicRecord]:
    """The record that a statement writes, and where."""
    source = catalog.sources.get(statement.target)
    if source is None:
        raise _unknown(statement.target, catalog)
    if source.is_source:
        raise StatementFailed(
            f"Cannot insert values into read-only {source.shown_kind}: {source.name}"
        )
    if source.window is not None:
        raise StatementFailed("Cannot insert values into windowed stream!")
    columns = _columns(statement, source)
    values = evaluated(statement.values, columns, catalog, functions)
    given = dict(zip((each.name for each in columns), values, strict=True))
    key = tuple(given.get(each.name) for each in source.schema.key)
    value = tuple(given.get(each.name) for each in source.schema.value)
    if source.kind.value == "TABLE" and None in key:
        raise StatementFailed(
            "Failed to insert values into "
            f"'{source.name}'. Value for primary key column(s) "
            f"{', '.join(each.name for each in source.schema.key)} is required for tables"
        )
    time_ms = given.get(ROWTIME.name)
    record = TopicRecord(
        key_serde(source.key_format, source.schema.key, registry).serialize(source.topic, key),
        value_serde(source.value_format, source.schema.value, registry).serialize(
            source.topic, value
        ),
        now_ms if time_ms is None else int(str(time_ms)),
    )
    return source, record


def evaluated(
    expressions: Sequence[Expression],
    columns: Sequence[Column],
    catalog: Catalog,
    functions: FunctionRegistry,
) -> Row:
    """The values of constant expressions, as values of the columns."""
    analyser = ExpressionAnalyser(Columns(()), functions, catalog.types)
    typed = [
        converted(analyser.typed(each), column.type)
        for each, column in zip(expressions, columns, strict=True)
    ]
    failures: list[Exception] = []
    values = row_function(typed, lambda error, row: failures.append(error))(())
    if failures:
        raise StatementFailed(f"Failed to insert values: {failures[0]}") from failures[0]
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


def _columns(statement: InsertValues, source: SourceInfo) -> list[Column]:
    known = (ROWTIME, *source.schema.key, *source.schema.value)
    names = statement.columns or tuple(each.name for each in source.schema.columns)
    headers = [each.name for each in source.schema.headers if each.name in names]
    if headers:
        raise StatementFailed(f"Cannot insert into HEADER columns: {', '.join(headers)}")
    found = {each.name: each for each in known}
    for name in names:
        if name not in found:
            raise StatementFailed(f"Column name `{name}` does not exist in {source.name}")
    if len(names) != len(statement.values):
        raise StatementFailed(
            f"Expected number columns and values to match: {list(names)}, "
            f"{len(statement.values)} values"
        )
    return [found[name] for name in names]
