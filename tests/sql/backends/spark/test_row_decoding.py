"""Rows of Arrow batches are those of the native scan, and rows that are written are read again."""

import logging
import math
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="Spark's types: install pyspark, pandas<3 and pyarrow")

import pyarrow as pa
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st

from broker.errors import SchemaError, SerdeError
from broker.serde import BytesSerde, Serde
from sql.backends.native.rows import key_serde, value_serde
from sql.backends.native.steps import StepContext
from sql.backends.native.tap import Tap
from sql.backends.native.topology import lower_result
from sql.backends.spark.arrow_values import ColumnValues
from sql.backends.spark.records import HEADERS_TYPE
from sql.backends.spark.row_decoding import DecoderSpec, RowDecoder
from sql.backends.spark.row_encoding import EncoderSpec, RowEncoder
from sql.catalog import FormatInfo, TimestampColumn, WindowInfo
from sql.datatypes import BIGINT, INT, STRING, Column, DataType, Primitive
from sql.plan import Scan, Shape
from sql.rows.row_format import Row
from sql.schema import HEADERS_TYPE as ALL_HEADERS
from sql.schema import PSEUDO_COLUMNS, WINDOW_BOUNDS, HeaderColumn
from sql.syntax.queries import WindowKind
from streams.config import StreamsConfig
from streams.dsl.builder import StreamsBuilder
from streams.handlers import log_and_continue
from streams.record import Headers, Windowed
from streams.testing import TopologyTestDriver
from tests.support.columns import columns, data_types, decimal_types, rows_of
from tests.support.memory_registry import MemoryRegistry

TOPIC = "t"
Raw = tuple[bytes | None, bytes | None, int, Headers]  # key, value, timestamp_ms, headers
SCALARS = st.one_of(st.sampled_from(Primitive), decimal_types(38))
FORMATS: dict[str, st.SearchStrategy[DataType]] = {
    "JSON": data_types(scalars=SCALARS),
    "JSON_SR": data_types(scalars=SCALARS),
    "AVRO": data_types(scalars=SCALARS),
    "PROTOBUF": data_types(scalars=SCALARS),
    "PROTOBUF_NOSR": data_types(scalars=SCALARS),
    "DELIMITED": SCALARS,
    "KAFKA": st.sampled_from((INT, BIGINT, STRING, Primitive.DOUBLE, Primitive.BYTES)),
}
SINGLE = frozenset({"KAFKA"})


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    log = logging.getLogger("streams")
    level = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(level)


def scan_of(
    value: tuple[Column, ...],
    value_format: str,
    *,
    key: tuple[Column, ...] = (Column("K", STRING),),
    window: WindowInfo | None = None,
    headers: tuple[HeaderColumn, ...] = (),
    timestamp: TimestampColumn | None = None,
) -> Scan:
    """A source with all that a row may have."""
    bounds = () if window is None else WINDOW_BOUNDS
    header_columns = tuple(Column(each.name, each.type) for each in headers)
    row = (*value, *header_columns, *PSEUDO_COLUMNS, *bounds, *key)
    key_format = FormatInfo("KAFKA" if len(key) == 1 else "JSON")
    shape = Shape(key, row, is_table=False, window=window)
    return Scan(
        "S", "S", TOPIC, shape, value, key_format, FormatInfo(value_format), headers, timestamp
    )


def serde_of(scan: Scan, registry: MemoryRegistry) -> Serde[Row]:
    """What writes the values of a source; types that its format cannot hold are not tried."""
    try:
        return value_serde(scan.value_format, scan.value, registry)
    except SchemaError:
        reject()


def native_rows(scan: Scan, records: list[Raw], registry: MemoryRegistry) -> list[Any]:
    """Time, key and row of each record that the native engine reads."""
    found: list[Any] = []
    builder, tap = StreamsBuilder(), Tap()
    lower_result(scan, StepContext(builder, registry), tap)
    tap.add(lambda key, row, timestamp_ms: found.append((timestamp_ms, key is not None, row)))
    config = StreamsConfig(application_id="app", deserialization_exception_handler=log_and_continue)
    with TopologyTestDriver(builder.build(), config=config) as driver:
        topic = driver.create_input_topic(TOPIC, key=BytesSerde(), value=BytesSerde())
        for key, value, timestamp_ms, headers in records:
            topic.pipe_input(key, value, timestamp_ms, headers=headers)
    return found


def batch_of(records: list[Raw]) -> Any:
    """Records as the source gives them, all of one partition."""
    keys, values, times, headers = zip(*records, strict=True)
    lists = [[{"name": name, "value": value} for name, value in each] or None for each in headers]
    arrays = [
        pa.array(keys, pa.binary()),
        pa.array(values, pa.binary()),
        pa.array(times, pa.int64()),
        pa.array([0] * len(keys), pa.int32()),
        pa.array(range(len(keys)), pa.int64()),
        pa.array(lists, HEADERS_TYPE),
    ]
    names = ["key", "value", "timestamp", "partition", "offset", "headers"]
    return pa.RecordBatch.from_arrays(arrays, names=names)


def spark_rows(scan: Scan, records: list[Raw], registry: MemoryRegistry) -> list[Any]:
    """The same of the decoder of Arrow batches."""
    decoded = RowDecoder(DecoderSpec(scan), registry).decode(batch_of(records))
    kinds = [ColumnValues(each.type) for each in scan.shape.row]
    lists = [kind.values(decoded.column(place)) for place, kind in enumerate(kinds)]
    times = decoded.column("timestamp").to_pylist()
    present, keyed = decoded.column("present").to_pylist(), decoded.column("keyed").to_pylist()
    rows = zip(*lists, strict=True)
    return [
        (time_ms, has_key, row if is_there else None)
        for time_ms, has_key, is_there, row in zip(times, keyed, present, rows, strict=True)
    ]


def same(left: object, right: object) -> bool:
    """Whether two values are equal, NaN and the types of numbers included."""
    match left, right:
        case float(), float():
            return left == right or (math.isnan(left) and math.isnan(right))
        case (list() | tuple(), list() | tuple()):
            pairs = zip(left, right, strict=False)
            return len(left) == len(right) and all(same(*each) for each in pairs)
        case dict(), dict():
            return left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    return type(left) is type(right) and left == right


@st.composite
def damaged(draw: st.DrawFn, data: bytes | None) -> bytes | None:
    """Bytes as they were, or cut, or changed, or none at all, or in other letters."""
    if data is None:
        return None
    kind = draw(st.sampled_from(("as it is", "cut", "null", "other", "lower", "quoted")))
    match kind:
        case "cut":
            return data[: draw(st.integers(0, len(data)))]
        case "null":
            return draw(st.sampled_from((None, b"", b"null")))
        case "other":
            return draw(st.binary(max_size=12))
        case "lower":
            return data.lower()
        case "quoted":
            return data.replace(b":1", b':"1"').replace(b"true", b'"true"')
    return data


@st.composite
def sources(draw: st.DrawFn, name: str) -> tuple[Scan, list[Row]]:
    """A source of a format, and rows of its values."""
    given = draw(columns(FORMATS[name], count_max=1 if name in SINGLE else 4))
    rows = draw(st.lists(rows_of(given), min_size=1, max_size=4))
    return scan_of(given, name), rows


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=20, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_records_clean_and_dirty_are_the_rows_of_the_native_scan(
    name: str, data: st.DataObject
) -> None:
    scan, rows = data.draw(sources(name))
    registry = MemoryRegistry()
    serde = serde_of(scan, registry)
    records: list[Raw] = []
    for place, row in enumerate(rows):
        key = data.draw(st.sampled_from((b"k", None, b"\xff", b"")))
        try:
            value = serde.serialize(TOPIC, row)
        except SerdeError:  # not every value fits every format
            value = None
        records.append((key, data.draw(damaged(value)), 1_000 + place, ()))
    found, expected = spark_rows(scan, records, registry), native_rows(scan, records, registry)
    assert same(found, expected), (found, expected)


@pytest.mark.parametrize("name", FORMATS)
@settings(max_examples=20, suppress_health_check=list(HealthCheck), deadline=None)
@given(data=st.data())
def test_rows_that_are_written_are_those_of_the_native_sink(name: str, data: st.DataObject) -> None:
    scan, rows = data.draw(sources(name))
    registry = MemoryRegistry()
    serde = serde_of(scan, registry)
    shape = Shape(scan.shape.key, scan.value, is_table=False)
    writing = EncoderSpec(TOPIC, 4, shape, FormatInfo("KAFKA"), scan.value_format)
    kinds = [ColumnValues(each.type) for each in scan.value]
    fields = [
        (f"c{place}", kind.array([row[place] for row in rows])) for place, kind in enumerate(kinds)
    ]
    fields.append(("k0", pa.array(["k"] * len(rows), pa.string())))
    fields.append(("timestamp", pa.array([5] * len(rows), pa.int64())))
    names, arrays = zip(*fields, strict=True)
    batch = pa.RecordBatch.from_arrays(list(arrays), names=list(names))
    try:
        expected = [serde.serialize(TOPIC, row) for row in rows]
    except SerdeError:
        with pytest.raises(SerdeError):
            RowEncoder(writing, registry).encode(batch)
        return
    found = RowEncoder(writing, registry).encode(batch)
    assert found.column("value").to_pylist() == expected
    assert set(found.column("key").to_pylist()) == {b"k"}


def test_headers_windows_and_keys_of_several_columns_are_read() -> None:
    value = (Column("V", INT),)
    key = (Column("A", STRING), Column("B", INT))
    headers = (HeaderColumn("ALL_OF_THEM", ALL_HEADERS), HeaderColumn("H", Primitive.BYTES, "h"))
    window = WindowInfo(WindowKind.TUMBLING, 10)
    scan = scan_of(value, "JSON", key=key, window=window, headers=headers)
    registry = MemoryRegistry()
    keys = key_serde(scan.key_format, key, registry, window)
    raw = keys.serialize(TOPIC, Windowed(("a", None), 20, 30))
    records: list[Raw] = [
        (raw, b'{"v": 1}', 5, (("h", b"1"), ("h", b"2"), ("i", None))),
        (None, b'{"V": 2}', 6, ()),
        (b"short", b'{"V": 2}', 7, ()),
    ]
    found = spark_rows(scan, records, registry)
    assert found == native_rows(scan, records, registry)
    assert len(found) == 2
    assert found[0][2][-4:] == (20, 30, "a", None)


@pytest.mark.parametrize("column", [Column("V", BIGINT), Column("V", STRING)])
def test_the_timestamp_column_is_the_time_and_what_has_none_is_dropped(column: Column) -> None:
    pattern = None if column.type is BIGINT else "yyyy-MM-dd"
    scan = scan_of((column,), "JSON", timestamp=TimestampColumn("V", pattern))
    registry = MemoryRegistry()
    records: list[Raw] = [
        (b"k", each, 5, ())
        for each in (b'{"V": 12}', b'{"V": -1}', b"{}", None, b'{"V": "1970-01-02"}')
    ]
    found = spark_rows(scan, records, registry)
    assert found == native_rows(scan, records, registry)
    assert len(found) == 2


def test_keys_with_windows_lie_where_they_lie_without() -> None:
    window = WindowInfo(WindowKind.SESSION, None)
    shape = Shape((Column("K", INT),), (Column("V", INT),), is_table=True, window=window)
    writing = EncoderSpec(TOPIC, 7, shape, FormatInfo("KAFKA"), FormatInfo("JSON"))
    names = ["c0", "k0", "timestamp", "windowstart", "windowend", "present"]
    lists = [[1, 2, None], [3, 4, None], [5, 6, 7], [10, 20, 30], [11, 21, 31], [True, False, True]]
    kinds = [pa.int32(), pa.int32(), pa.int64(), pa.int64(), pa.int64(), pa.bool_()]
    arrays = [pa.array(each, kind) for each, kind in zip(lists, kinds, strict=True)]
    found = RowEncoder(writing).encode(pa.RecordBatch.from_arrays(arrays, names=names))
    serde = key_serde(FormatInfo("KAFKA"), shape.key, None, window)
    expected = [serde.serialize(TOPIC, Windowed((3,), 10, 11)), None]
    assert found.column("key").to_pylist()[::2] == expected
    assert found.column("value").to_pylist() == [b'{"V":1}', None, b'{"V":null}']
    assert found.column("partition").to_pylist()[2] is None
