"""DataFrames of rows on Spark: records to rows and back, as the native engine reads and writes."""

from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark's own tests: install pyspark, pandas<3 and pyarrow")

from sql.backends.spark.frames import FrameContext, decoding, encoded
from sql.backends.spark.records import schema_text
from sql.plan import Project, Scan, Sink
from tests.sql.planner.session import Session
from tests.support.spark import MARKS, shared_session

pytestmark = MARKS

STATEMENTS = """
    CREATE STREAM s (k INT KEY, flag BOOLEAN, number BIGINT, real DOUBLE, exact DECIMAL(9, 2),
            text STRING, raw BYTES, day DATE, moment TIME, stamp TIMESTAMP, items ARRAY<INT>,
            names MAP<STRING, ARRAY<DOUBLE>>, parts STRUCT<a INT, b MAP<STRING, INT>>)
        WITH (kafka_topic='s', value_format='JSON');
    CREATE STREAM r WITH (kafka_topic='r') AS SELECT * FROM s;
"""
FULL = (
    b'{"FLAG":true,"NUMBER":9007199254740993,"REAL":1.5E300,"EXACT":1.50,"TEXT":"\xc3\xa9",'
    b'"RAW":"AAE=","DAY":3,"MOMENT":7,"STAMP":-5,"ITEMS":[1,null],"NAMES":{"x":[0.5]},'
    b'"PARTS":{"A":1,"B":{"y":2}}}'
)
KEY = b"\x00\x00\x00\x07"


@pytest.fixture(scope="module")
def spark() -> Any:
    """The session of all tests."""
    return shared_session()


def test_records_become_rows_and_rows_become_the_same_records(spark: Any) -> None:
    sink = Session().run(STATEMENTS).plans[-1].plan
    assert isinstance(sink, Sink)
    assert isinstance(sink.input, Project)
    scan = sink.input.input
    assert isinstance(scan, Scan)
    records = [
        ("s", 1, 10, 100, 0, KEY, FULL, [("h", b"1")]),
        ("s", 1, 11, 101, 0, KEY, b"no json", None),
        ("s", 1, 12, 102, 0, None, None, None),
        ("other", 1, 13, 103, 0, KEY, FULL, None),
        ("s", 1, 14, 104, 0, KEY, b'{"number": "7"}', None),
    ]
    frame = spark.createDataFrame(records, schema_text(include_headers=True))
    rows = decoding(scan, FrameContext()).applied(frame)
    found = rows.orderBy("offset").collect()
    assert [(each.offset, each.present, each.keyed) for each in found] == [
        (10, True, True),
        (12, False, False),
        (14, True, True),
    ]
    place = {column.name: f"c{index}" for index, column in enumerate(scan.shape.row)}
    assert [each[place["NUMBER"]] for each in found] == [9007199254740993, None, 7]
    assert [each[place["ROWTIME"]] for each in found] == [100, 102, 104]
    assert [each[place["K"]] for each in found] == [7, None, 7]

    values = [place[column.name] for column in sink.shape.row]
    chosen = rows.selectExpr(
        *(f"{name} as c{index}" for index, name in enumerate(values)),
        f"{place['K']} as k0",
        "timestamp",
        "present",
        "keyed",
        "headers",
    )
    written = encoded(sink, chosen, 4).orderBy("timestamp").collect()
    assert [(each.topic, each.timestamp) for each in written] == [
        ("r", 100),
        ("r", 102),
        ("r", 104),
    ]
    assert [each.key for each in written] == [KEY, None, KEY]
    assert written[0].value == FULL
    assert written[1].value is None
    assert b'"NUMBER":7,"REAL":null' in written[2].value
    assert [(each.name, each.value) for each in written[0].headers] == [("h", b"1")]
