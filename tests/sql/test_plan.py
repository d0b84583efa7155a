"""Steps of a plan know the columns of their rows."""

from sql.catalog import FormatInfo
from sql.datatypes import BIGINT, STRING, Column
from sql.expressions import ColumnValue, Comparing, Constant
from sql.plan import Filter, Scan, Shape


def test_a_filter_has_the_columns_of_its_input() -> None:
    key, value = Column("K", STRING), Column("V", BIGINT)
    shape = Shape((key,), (value, key), is_table=False)
    scan = Scan("source", "S", "s", shape, (value,), FormatInfo("KAFKA"), FormatInfo("JSON"))
    condition = Comparing(">", ColumnValue(0, "V", BIGINT), Constant(1, BIGINT))
    assert Filter("filter", scan, condition).shape == shape
