"""Expressions computed by Spark and by our own functions, to see where they differ."""

from collections.abc import Sequence

# Spark's frames and Arrow's tables are Any: they have no types here.
from typing import Any

import pyarrow as pa

from sql.analyse.expressions import ExpressionAnalyser
from sql.analyse.scope import Columns, ScopeColumn
from sql.backends.native.expressions import compile_row_function
from sql.backends.spark.arrow_values import ColumnValues
from sql.backends.spark.column_types import spark_type
from sql.backends.spark.expressions import is_native, spark_text
from sql.errors import StatementFailed
from sql.expressions import ColumnValue, TypedExpression
from sql.functions.builtin import builtin_functions
from sql.parse import parse_expression
from tests.sql.analyse.typing_scope import COLUMNS, INDEXES
from tests.sql.backends.native.test_expressions import same, silent

Row = tuple[Any, ...]
SCOPE = Columns(
    ScopeColumn("X", name, ColumnValue(INDEXES[name], name, type_))
    for name, type_ in COLUMNS.items()
)
NAMES = [f"c{index}" for index in range(len(COLUMNS))]


def typed(text: str) -> TypedExpression | None:
    """An expression over the columns of typing_scope with the real functions; None if refused."""
    try:
        return ExpressionAnalyser(SCOPE, builtin_functions()).select_item(parse_expression(text))
    except StatementFailed:
        return None


def native(texts: Sequence[str]) -> dict[str, TypedExpression]:
    """Those of some expressions that Spark computes itself."""
    found = {}
    for text in texts:
        expression = typed(text)
        if expression is not None and expression.type is not None and is_native(expression):
            found[text] = expression
    return found


def frame_of(spark: Any, rows: Sequence[Row]) -> Any:
    """A frame of rows with the columns of typing_scope."""
    columns = [
        ColumnValues(type_).array(values)
        for values, type_ in zip(zip(*rows, strict=True), COLUMNS.values(), strict=True)
    ]
    fields = [
        spark_field.simpleString()
        for spark_field in (spark_type(each) for each in COLUMNS.values())
    ]
    schema = ", ".join(f"{name} {text}" for name, text in zip(NAMES, fields, strict=True))
    return spark.createDataFrame(pa.table(columns, names=NAMES), schema=schema)


def differences(
    spark: Any, expressions: dict[str, TypedExpression], rows: Sequence[Row]
) -> list[str]:
    """What Spark computes otherwise, in one job for all expressions and rows."""
    texts = {text: spark_text(node, NAMES) for text, node in expressions.items()}
    shown = [f"{text} AS r{place}" for place, text in enumerate(texts.values())]
    result = frame_of(spark, rows).selectExpr(*shown)
    nodes = list(expressions.values())
    wrong = [
        f"{text} has type {field.dataType.simpleString()}\n  {texts[text]}"
        for (text, node), field in zip(expressions.items(), result.schema.fields, strict=True)
        if node.type is None
        or field.dataType.simpleString() != spark_type(node.type).simpleString()
    ]
    table = result.toArrow()
    compute = compile_row_function(nodes, silent)
    wanted = list(zip(*(compute(row) for row in rows), strict=True))
    for place, (text, node) in enumerate(expressions.items()):
        assert node.type is not None
        column = ColumnValues(node.type).values(table.column(place))
        for row, ours, theirs in zip(rows, wanted[place], column, strict=True):
            if not same(ours, theirs):
                used = {name: row[INDEXES[name]] for name in COLUMNS if name in text}
                wrong.append(
                    f"{text}: {ours!r}, but Spark has {theirs!r} for {used}\n  {texts[text]}"
                )
                break
    return wrong
