"""Types of columns in Spark."""

import pytest

pytest.importorskip("pyspark", reason="types of PySpark")

from sql.backends.spark.column_types import has_spark_type, spark_type, type_text
from sql.datatypes import BIGINT, INT, STRING, ArrayType, DecimalType, Field, MapType, StructType
from sql.errors import SqlError
from tests.sql.analyse.typing_scope import COLUMNS

NESTED = StructType((Field("a`b", ArrayType(DecimalType(4, 2))), Field("M", MapType(STRING, INT))))


def test_the_text_of_a_type_is_that_type() -> None:
    assert type_text(NESTED) == "struct<`a``b`:array<decimal(4,2)>,`M`:map<string,int>>"
    assert spark_type(NESTED).simpleString() == "struct<a`b:array<decimal(4,2)>,M:map<string,int>>"
    for type_ in COLUMNS.values():
        assert type_text(type_).replace("`", "") == spark_type(type_).simpleString()


def test_a_decimal_with_too_many_digits_has_no_type() -> None:
    assert has_spark_type(ArrayType(DecimalType(38, 38)))
    long = MapType(BIGINT, DecimalType(39, 0))
    assert not has_spark_type(long)
    with pytest.raises(SqlError, match="39 digits"):
        spark_type(long)
    with pytest.raises(SqlError, match="39 digits"):
        type_text(long)
