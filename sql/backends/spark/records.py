"""Raw records in Spark: the columns of the "millstream" source, and their creation.

A record batch is decoded by column and converted to Arrow arrays by column: only headers need work
per record.
"""

from bisect import bisect_left
from collections.abc import Iterator
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from broker.batch.records import RowHeaders
from broker.client.api import FetchedBatch

SCHEMA = (
    "topic string, partition int, offset bigint, timestamp bigint, timestamp_type int, "
    "key binary, value binary"
)
HEADERS = "headers array<struct<name: string, value: binary>>"
CREATE_TIME = 0
LOG_APPEND_TIME = 1

# Arrow has no type hints: its objects are Any in this module.
HEADER_FIELDS = [pa.field("name", pa.string()), pa.field("value", pa.binary())]
HEADERS_TYPE = pa.list_(pa.field("element", pa.struct(HEADER_FIELDS)))
PLAIN_ARROW_SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("timestamp_type", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
    ]
)
ARROW_SCHEMA = PLAIN_ARROW_SCHEMA.append(pa.field("headers", HEADERS_TYPE))


def schema_text(*, include_headers: bool) -> str:
    """The columns, as a Spark schema."""
    return f"{SCHEMA}, {HEADERS}" if include_headers else SCHEMA


def arrow_batch(batch: FetchedBatch, end: int, *, include_headers: bool) -> Any:
    """The records of a batch before `end`, as a RecordBatch; None if there are none."""
    offsets, times, keys, values, headers = batch.lists()
    first = bisect_left(offsets, batch.start_offset)
    last = bisect_left(offsets, end)
    if first >= last:
        return None
    if first or last < len(offsets):
        offsets, times = offsets[first:last], times[first:last]
        keys, values = keys[first:last], values[first:last]
        headers = None if headers is None else headers[first:last]
    count = len(offsets)
    tp = batch.topic_partition
    kind = LOG_APPEND_TIME if batch.header.has_log_append_time else CREATE_TIME
    columns = [
        pa.repeat(pa.scalar(tp.topic, pa.string()), count),
        pa.repeat(pa.scalar(tp.partition, pa.int32()), count),
        pa.array(offsets, pa.int64()),
        pa.array(times, pa.int64()),
        pa.repeat(pa.scalar(kind, pa.int32()), count),
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
    ]
    if not include_headers:
        return pa.RecordBatch.from_arrays(columns, schema=PLAIN_ARROW_SCHEMA)
    return pa.RecordBatch.from_arrays([*columns, _headers(headers, count)], schema=ARROW_SCHEMA)


def _headers(headers: RowHeaders | None, count: int) -> Any:
    """Headers as lists of structs; null for records without headers."""
    if headers is None:
        return pa.nulls(count, HEADERS_TYPE)
    lengths = list(map(len, headers))
    flat = [pair for row in headers for pair in row]
    structs = pa.StructArray.from_arrays(
        [
            # A name that is not valid UTF-8 has surrogates, which Arrow refuses.
            pa.array([name.encode("utf-8", "replace") for name, _ in flat], pa.binary()).cast(
                pa.string()
            ),
            pa.array([value for _, value in flat], pa.binary()),
        ],
        fields=HEADER_FIELDS,
    )
    starts = list(accumulate(lengths, initial=0))
    absent = pa.array([length == 0 for length in lengths], pa.bool_())
    return pa.ListArray.from_arrays(
        pa.array(starts, pa.int32()), structs, type=HEADERS_TYPE, mask=absent
    )


# Any: the values of the column.
def parts(batch: Any, column: str) -> Iterator[tuple[Any, Any]]:
    """The rows of a batch by the value of a column, in their original order."""
    values = batch.column(column)
    names = values.unique().to_pylist()
    if len(names) == 1:
        yield names[0], batch
        return
    for name in names:
        yield name, batch.filter(pc.equal(values, pa.scalar(name, values.type)))
