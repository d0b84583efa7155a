"""Stateless queries as columns of Spark: filters and projections of a stream, between its serdes.

    records -> decoded rows -> where, select -> encoded records

The order of the records of a partition is kept. Queries run in this way with
'spark.expressions'='spark': the JVM computes expressions, while Python decodes and encodes the rows
in both cases.
"""

from collections.abc import Callable
from typing import Any

from sql.backends.spark.column_types import has_spark_type
from sql.backends.spark.expressions import is_native, spark_text
from sql.backends.spark.frames import FrameContext, decoding, encoded
from sql.backends.spark.job import Job
from sql.backends.spark.row_functions import is_builtin, own_condition, own_values, used_places
from sql.backends.spark.stages import Staged
from sql.datatypes import ArrayType, DataType, MapType, StructType
from sql.expressions import TypedExpression
from sql.functions.user import registry_with
from sql.plan import Filter, PlanNode, Project, Scan, Sink
from sql.planner import plan_from_json

SETTING = "spark.expressions"
SPARK = "spark"
PASSED_COLUMNS = ("present", "keyed", "timestamp", "headers")

# Spark's frames are Any in this module: PySpark has no type hints for them.


def plan_of_columns(job: Job) -> Sink | None:
    """The plan of a query that runs as columns; None if it should not or cannot."""
    if job.settings.get(SETTING) != SPARK:
        return None
    plan = plan_from_json(job.plan, registry_with(job.function_modules))
    assert isinstance(plan, Sink)
    return plan if is_stateless(plan) else None


def is_stateless(sink: Sink) -> bool:
    """Whether a plan consists of filters and projections of a stream that Spark supports."""
    step: PlanNode = sink.input
    while isinstance(step, Filter | Project):
        conditions = [step.condition] if isinstance(step, Filter) else []
        columns = [each for _, each in step.columns] if isinstance(step, Project) else []
        if not all(map(is_native, conditions)) and not all(map(is_builtin, conditions)):
            return False
        if not all(is_native(each) or _can_be_own(each) for each in columns):
            return False
        if not all(has_spark_type(each.type) for each in step.shape.row):
            return False
        step = step.input
    return (
        isinstance(step, Scan)
        and not step.shape.is_table
        and step.shape.window is None
        and all(has_spark_type(each.type) for each in step.shape.row)
    )


def _can_be_own(expression: TypedExpression) -> bool:
    """Whether Millstream's function may compute it: workers have the built-in functions.

    A map that it creates may have null as a key, which Spark does not support.
    """
    return expression.type is not None and not _has_map(expression.type) and is_builtin(expression)


def _has_map(type_: DataType) -> bool:
    match type_:
        case MapType():
            return True
        case ArrayType(element):
            return _has_map(element)
        case StructType(fields):
            return any(_has_map(each.type) for each in fields)
        case _:
            return False


def written_records(
    sink: Sink,
    read: Callable[[Staged], Any],
    partitions: int,
    context: FrameContext | None = None,
) -> Any:
    """The records that a stateless query writes; `read` returns its source's after a stage."""
    steps: list[Filter | Project] = []
    step: PlanNode = sink.input
    while isinstance(step, Filter | Project):
        steps.insert(0, step)
        step = step.input
    assert isinstance(step, Scan), "a stateless plan begins with a scan"
    frame = read(decoding(step, context, used=_used(steps, step)))
    keys = len(step.shape.key)
    first = len(step.shape.row) - keys
    key = [f"c{first + place} AS k{place}" for place in range(keys)]
    frame = frame.selectExpr("*", *key)
    if any(isinstance(each, Filter) for each in steps):
        frame = frame.where("present")  # a deleted row matches no condition
    for each in steps:
        frame = _filtered(each, frame) if isinstance(each, Filter) else _selected(each, frame, keys)
    return encoded(sink, frame, partitions, context)


def _names(step: PlanNode) -> list[str]:
    return [f"c{place}" for place in range(len(step.shape.row))]


def _filtered(step: Filter, frame: Any) -> Any:
    names = _names(step.input)
    if is_native(step.condition):
        return frame.where(spark_text(step.condition, names))
    return frame.where(own_condition(step, names))


def _selected(step: Project, frame: Any, keys: int) -> Any:
    from pyspark.sql.functions import expr

    names = _names(step.input)
    own = [place for place, (_, each) in enumerate(step.columns) if not is_native(each)]
    if own:
        frame = frame.withColumn("own", own_values(step, own, names))
    columns = [
        expr(f"own.f{place}" if place in own else spark_text(each, names)).alias(f"c{place}")
        for place, (_, each) in enumerate(step.columns)
    ]
    return frame.select(*columns, *(f"k{place}" for place in range(keys)), *PASSED_COLUMNS)


def _used(steps: list[Filter | Project], scan: Scan) -> frozenset[int] | None:
    """The columns of a source that are needed; None if whole rows are written."""
    found: set[int] = set(range(len(scan.shape.row) - len(scan.shape.key), len(scan.shape.row)))
    for step in steps:
        if isinstance(step, Project):
            return frozenset(found | set(used_places([each for _, each in step.columns])))
        found |= set(used_places([step.condition]))
    return None
