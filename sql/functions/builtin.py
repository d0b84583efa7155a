"""The built-in functions: all families in one registry."""

from functools import cache

from sql.functions.aggregates import aggregates
from sql.functions.aggregates_by_offset import by_offset
from sql.functions.aggregates_collecting import collecting
from sql.functions.aggregates_distinct import distinct
from sql.functions.aggregates_statistics import statistics
from sql.functions.bytes_values import conversions, encodings
from sql.functions.containers import arrays, maps, others
from sql.functions.dates import dates
from sql.functions.dates_arithmetic import durations
from sql.functions.json_values import documents
from sql.functions.lambdas import lambdas
from sql.functions.masks import masks
from sql.functions.nulls import extremes, nulls
from sql.functions.numeric import numeric
from sql.functions.patterns import patterns
from sql.functions.registry import Family, FunctionRegistry
from sql.functions.strings import strings
from sql.functions.tables import tables
from sql.functions.urls import urls

# Add new families here.
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
    strings,
    masks,
    encodings,
    conversions,
    patterns,
    urls,
    documents,
    dates,
    durations,
)


@cache
def builtin_functions() -> FunctionRegistry:
    """All built-in functions; always the same registry."""
    return FunctionRegistry(FAMILIES)
