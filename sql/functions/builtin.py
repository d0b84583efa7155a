"""The functions that every query knows: all families in one registry."""

from functools import cache

from sql.functions.aggregates import aggregates
from sql.functions.aggregates_by_offset import by_offset
from sql.functions.aggregates_collecting import collecting
from sql.functions.aggregates_distinct import distinct
from sql.functions.aggregates_statistics import statistics
from sql.functions.containers import arrays, maps, others
from sql.functions.lambdas import lambdas
from sql.functions.nulls import extremes, nulls
from sql.functions.numeric import numeric
from sql.functions.registry import Family, FunctionRegistry
from sql.functions.tables import tables

# A new family is added here, one line each.
FAMILIES: tuple[Family, ...] = (
    numeric,
    extremes,
    nulls,
    arrays,
    maps,
    lambdas,
    others,
    aggregates,
    statistics,
    collecting,
    by_offset,
    distinct,
    tables,
)


@cache
def builtin_functions() -> FunctionRegistry:
    """All built-in functions; the same registry each time."""
    return FunctionRegistry(FAMILIES)
