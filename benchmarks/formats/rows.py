"""Rows of SQL: encoding and decoding in each format, without a peer."""

import argparse
from decimal import Decimal
from functools import partial

from benchmarks.formats.comparison import microseconds, registry_url
from benchmarks.report import Report
from broker.serde.registry import HttpSchemaRegistry
from sql.datatypes import BIGINT, BOOLEAN, DOUBLE, STRING, TIMESTAMP, Column, DecimalType
from sql.rows.formats import format_of
from sql.rows.row_format import RowOptions

COLUMNS = (
    Column("ID", BIGINT),
    Column("CUSTOMER", STRING),
    Column("AMOUNT", DOUBLE),
    Column("PAID", BOOLEAN),
    Column("AT", TIMESTAMP),
)
ROW = (4711, "customer-0815", 129.95, True, 1_700_000_000_000)
PRICE = Column("PRICE", DecimalType(10, 2))
FORMATS = ("JSON", "DELIMITED", "AVRO", "JSON_SR", "PROTOBUF", "PROTOBUF_NOSR")


def measure(report: Report, options: argparse.Namespace) -> None:
    """Measure rows of five columns, and the same rows with a decimal."""
    with registry_url() as url:
        registry = HttpSchemaRegistry(url)
        for label, columns, row in (
            ("5 columns", COLUMNS, ROW),
            ("with a decimal", (*COLUMNS, PRICE), (*ROW, Decimal("12.50"))),
        ):
            for name in FORMATS:
                topic = f"{name}-{len(columns)}"
                serde = format_of(name).serde(columns, RowOptions(), registry)
                data = serde.serialize(topic, row)
                assert serde.deserialize(topic, data) == row
                encode = microseconds(partial(serde.serialize, topic), row)
                decode = microseconds(partial(serde.deserialize, topic), data)
                report.add(f"rows {name}, {label}: encode", "µs", encode)
                report.add(f"rows {name}, {label}: decode", "µs", decode)
