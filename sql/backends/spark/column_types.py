"""Column types of SQL as types of Spark.

    BOOLEAN boolean    INT int    BIGINT bigint    DOUBLE double    STRING string    BYTES binary
    DECIMAL(p, s) decimal(p, s), if p is at most 38
    TIME int, ms of the day    DATE int, days since 1970    TIMESTAMP bigint, ms since 1970
    ARRAY<T> array    MAP<K, V> map    STRUCT<name T, ...> struct, with the same names

Times are integers, as in rows: their range is Java's, they have no time zone, and settings of a
session do not affect them.
"""

from typing import Any

from pyspark.sql import types as spark

from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from sql.errors import SqlError

DIGITS_MAX = 38  # of Spark's decimals
# PySpark's types are Any here: they have no type hints.
PLAIN: dict[DataType, tuple[str, Any]] = {
    BOOLEAN: ("boolean", spark.BooleanType()),
    INT: ("int", spark.IntegerType()),
    BIGINT: ("bigint", spark.LongType()),
    DOUBLE: ("double", spark.DoubleType()),
    STRING: ("string", spark.StringType()),
    BYTES: ("binary", spark.BinaryType()),
    TIME: ("int", spark.IntegerType()),
    DATE: ("int", spark.IntegerType()),
    TIMESTAMP: ("bigint", spark.LongType()),
}


def has_spark_type(type_: DataType) -> bool:
    """Whether Spark has a type for all values of this type."""
    match type_:
        case DecimalType(precision):
            return precision <= DIGITS_MAX
        case ArrayType(element):
            return has_spark_type(element)
        case MapType(key, value):
            return has_spark_type(key) and has_spark_type(value)
        case StructType(fields):
            return all(has_spark_type(each.type) for each in fields)
        case _:
            return True


def spark_type(type_: DataType) -> Any:
    """The type of Spark's column."""
    match type_:
        case DecimalType(precision, scale):
            return spark.DecimalType(_digits(precision), scale)
        case ArrayType(element):
            return spark.ArrayType(spark_type(element))
        case MapType(key, value):
            return spark.MapType(spark_type(key), spark_type(value))
        case StructType(fields):
            return spark.StructType(
                [spark.StructField(each.name, spark_type(each.type)) for each in fields]
            )
        case _:
            return PLAIN[type_][1]


def type_text(type_: DataType) -> str:
    """The type of Spark's column in SQL."""
    match type_:
        case DecimalType(precision, scale):
            return f"decimal({_digits(precision)},{scale})"
        case ArrayType(element):
            return f"array<{type_text(element)}>"
        case MapType(key, value):
            return f"map<{type_text(key)},{type_text(value)}>"
        case StructType(fields):
            shown = (f"{quoted_name(each.name)}:{type_text(each.type)}" for each in fields)
            return f"struct<{','.join(shown)}>"
        case _:
            return PLAIN[type_][0]


def quoted_name(name: str) -> str:
    """A quoted name for Spark's SQL."""
    return f"`{name.replace('`', '``')}`"


def _digits(precision: int) -> int:
    if precision > DIGITS_MAX:
        raise SqlError(
            f"Spark does not support decimals with {precision} digits",
            hint=f"use at most {DIGITS_MAX}, or run the query on the native engine",
        )
    return precision
