"""Expressions that Spark cannot compute: Millstream's generated functions on Arrow batches.

All such expressions of a step are one call, so that rows are sent to Python once. The step is sent
as the JSON of its plan, and is compiled once per worker.
"""

import json
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any

import pyarrow as pa
from pyspark.sql.functions import arrow_udf, col
from pyspark.sql.types import BooleanType, StructField, StructType

from sql.backends.native.evaluating import predicate, row_function
from sql.backends.spark.arrow_values import ColumnValues
from sql.backends.spark.column_types import spark_type
from sql.expressions import ColumnValue, FunctionValue, TypedExpression
from sql.functions.builtin import builtin_functions
from sql.plan import Filter, Project
from sql.planner import plan_from_json, plan_to_json

# Spark's columns and Arrow's arrays are Any in this module: they have no type hints.


def own_values(step: Project, places: Sequence[int], names: Sequence[str]) -> Any:
    """Some columns of a projection as one struct with the fields f0, f1 and so on."""
    shown = []
    for place in places:
        type_ = step.columns[place][1].type
        assert type_ is not None, "a column of a projection has a type"
        shown.append(StructField(f"f{place}", spark_type(type_)))
    used = used_places([step.columns[place][1] for place in places])
    text, chosen = json.dumps(plan_to_json(step)), tuple(places)

    def compute(*columns: Any) -> Any:
        return _values(text, chosen).compute(columns)

    # Arrow reads the types of arguments and result from these annotations.
    compute.__annotations__ = {"columns": pa.Array, "return": pa.Array}
    return arrow_udf(compute, StructType(shown))(*(col(names[index]) for index in used))


def own_condition(step: Filter, names: Sequence[str]) -> Any:
    """Whether a condition is true."""
    text = json.dumps(plan_to_json(step))

    def decide(*columns: Any) -> Any:
        return _condition(text).compute(columns)

    decide.__annotations__ = {"columns": pa.Array, "return": pa.Array}
    return arrow_udf(decide, BooleanType())(
        *(col(names[index]) for index in used_places([step.condition]))
    )


class _Rows:
    """Rows with some of their columns, from Arrow arrays."""

    def __init__(self, step: Project | Filter, expressions: Sequence[TypedExpression]) -> None:
        columns = step.input.shape.row
        self._used = used_places(expressions)
        self._width = len(columns)
        self._readers = [ColumnValues(columns[index].type) for index in self._used]

    def of(self, arrays: Sequence[Any]) -> list[tuple[object, ...]]:
        """The rows; unused columns are null."""
        found: list[Sequence[object]] = [(None,) * len(arrays[0])] * self._width
        for index, reader, array in zip(self._used, self._readers, arrays, strict=True):
            found[index] = reader.values(array)
        return list(zip(*found, strict=True))


class _Values:
    """Computes some columns of a projection."""

    def __init__(self, step: Project, places: Sequence[int]) -> None:
        expressions = [step.columns[place][1] for place in places]
        self._rows = _Rows(step, expressions)
        self._function = row_function(expressions, _forget)
        self._names = [f"f{place}" for place in places]
        self._writers = [ColumnValues(each.type) for each in expressions if each.type is not None]

    def compute(self, arrays: Sequence[Any]) -> Any:
        """A struct of them."""
        found = zip(*map(self._function, self._rows.of(arrays)), strict=True)
        columns = [write.array(each) for write, each in zip(self._writers, found, strict=True)]
        return pa.StructArray.from_arrays(columns, names=self._names)


class _Condition:
    """Decides which rows are kept."""

    def __init__(self, step: Filter) -> None:
        self._rows = _Rows(step, [step.condition])
        self._predicate = predicate(step.condition, _forget)

    def compute(self, arrays: Sequence[Any]) -> Any:
        """True or false for each row."""
        return pa.array(list(map(self._predicate, self._rows.of(arrays))), pa.bool_())


def _forget(error: Exception, row: object) -> None:
    """Failures are null; workers have no processing log."""


@lru_cache(maxsize=256)
def _values(text: str, places: tuple[int, ...]) -> _Values:
    step = plan_from_json(json.loads(text), builtin_functions())
    assert isinstance(step, Project)
    return _Values(step, places)


@lru_cache(maxsize=256)
def _condition(text: str) -> _Condition:
    step = plan_from_json(json.loads(text), builtin_functions())
    assert isinstance(step, Filter)
    return _Condition(step)


def is_builtin(expression: object) -> bool:
    """Whether all functions of an expression are built in, so that workers have them."""
    if isinstance(expression, FunctionValue):
        signature, registry = expression.function.signature, builtin_functions()
        known = registry.get(signature.name).overloads if signature.name in registry else []
        if not any(signature is each.signature for each in known):
            return False
    if isinstance(expression, tuple):
        return all(map(is_builtin, expression))
    if not isinstance(expression, TypedExpression):
        return True
    return all(is_builtin(getattr(expression, each.name)) for each in fields(expression))


def used_places(expressions: Sequence[TypedExpression]) -> list[int]:
    """The indexes of the columns that expressions use; at least one, for the number of rows."""
    return sorted(set().union(*map(_places, expressions))) or [0]


def _places(expression: object) -> set[int]:
    if isinstance(expression, ColumnValue):
        return {expression.index}
    if isinstance(expression, tuple):
        return set().union(*map(_places, expression))
    if not is_dataclass(expression):
        return set()
    return set().union(*(_places(getattr(expression, each.name)) for each in fields(expression)))
