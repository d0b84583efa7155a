"""Records that go through converters by columns become what they become one by one."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.api import ConsumerRecord
from connect.api import Converter
from connect.config.connector import ErrorSettings
from connect.converters.json_converter import JsonConverter
from connect.converters.primitives import ByteArrayConverter, IntegerConverter, StringConverter
from connect.data import INT32, OPTIONAL_STRING, STRING, ConnectSchema, Struct, struct
from connect.errors import ConnectError
from connect.records import Header, SinkRecord, SourceRecord
from connect.runtime.conversion import Converters, bulk_converters
from connect.runtime.error_handling import ErrorHandler
from connect.runtime.metrics import ErrorCounts
from connect.runtime.sink.pipeline import ReportableRecord, SinkPipeline
from connect.runtime.source.pipeline import Row, SourcePipeline
from connect.stop_signal import StopSignal
from tests.connect.hasty_clock import HastyClock

PERSON = struct("person", {"id": INT32, "name": OPTIONAL_STRING})
CONVERTERS = [StringConverter, JsonConverter, ByteArrayConverter]


def handler(*, tolerates_all: bool = True) -> ErrorHandler:
    clock = HastyClock()
    settings = ErrorSettings(tolerates_all=tolerates_all)
    return ErrorHandler(settings, ErrorCounts(), clock, StopSignal(clock), [])


def converters(value: Converter) -> Converters:
    made = StringConverter(), value, StringConverter()
    for converter, is_key in zip(made, (True, False, False), strict=True):
        converter.configure({}, is_key)
    return Converters(*made, "a.KeyConverter", "a.ValueConverter", "a.HeaderConverter")


VALUES: list[tuple[ConnectSchema | None, object]] = [
    (None, None),
    (None, "text"),
    (None, {"a": [1, None]}),
    (None, b"bytes"),
    (STRING, "text"),
    (STRING, 7),  # does not fit
    (STRING, "\ud800"),  # has no bytes
    (PERSON, Struct(PERSON, [1, "Ann"])),
    (PERSON, Struct(PERSON, ["one", None])),  # does not fit
]
SOURCE_RECORDS = st.lists(
    st.builds(
        lambda value, topic, key, stamp_ms, headers: SourceRecord(
            {}, {}, topic, None, None, key, value[0], value[1], stamp_ms, headers
        ),
        st.sampled_from(VALUES[:5]) | st.sampled_from(VALUES),
        st.just("t") | st.sampled_from(["t", "u"]),
        st.none() | st.just("k"),
        st.just(5) | st.sampled_from([None, -1]),
        st.just(()) | st.just([Header("h", None, "v")]),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("kind", CONVERTERS)
@given(records=SOURCE_RECORDS)
def test_rows_are_the_same_as_one_by_one(
    kind: type[Converter], records: Sequence[SourceRecord]
) -> None:
    pipeline = SourcePipeline([], converters(kind()), handler())
    rows: list[Row | None] = []
    pipeline.add_rows(records, rows)
    assert rows == [pipeline.row(record) for record in records]


READ = st.lists(
    st.builds(
        lambda key, value, stamp_ms, headers: (stamp_ms, key, value, headers),
        st.none() | st.just(b"k"),
        st.sampled_from(
            [None, b"", b"text", b"\xff", b"7", b"{", b'{"schema":null,"payload":{"a":1}}']
        ),
        st.just(5) | st.just(-1),
        st.just(()) | st.just((("h", b"v"),)),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("reportable", [False, True])
@pytest.mark.parametrize("kind", CONVERTERS)
@given(read=READ)
def test_read_records_are_the_same_as_one_by_one(
    kind: type[Converter],
    reportable: bool,
    read: Sequence[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes], ...]]],
) -> None:
    consumed = [ConsumerRecord("t", 3, offset, *parts) for offset, parts in enumerate(read)]
    pipeline = SinkPipeline([], converters(kind()), handler(), reportable=reportable)
    batch: list[SinkRecord] = []
    pipeline.add_records(consumed, "CreateTime", batch)
    single = [pipeline.record(each, "CreateTime") for each in consumed]
    assert batch == [record for record in single if record is not None]
    if reportable:
        assert [type(record) for record in batch] == [ReportableRecord] * len(batch)
        kept = [record.consumed for record in batch if isinstance(record, ReportableRecord)]
        assert all(record in consumed for record in kept)


def test_without_tolerance_the_rows_before_the_wrong_record_are_there() -> None:
    pipeline = SourcePipeline([], converters(StringConverter()), handler(tolerates_all=False))
    records = [SourceRecord({}, {}, "t", value=value) for value in ("a", "b", b"\x00", "d")]
    rows: list[Row | None] = []
    with pytest.raises(ConnectError):
        pipeline.add_rows(records, rows)
    assert [row and row[1][1] for row in rows] == [b"a", b"b"]


class _Loud(StringConverter):
    """Changes how one value is converted, and says nothing of many."""

    def from_connect_data(
        self, topic: str, headers: Sequence[Header], schema: ConnectSchema | None, value: object
    ) -> bytes | None:
        return super().from_connect_data(topic, headers, schema, str(value).upper())


def test_a_converter_that_changes_one_value_is_asked_for_each() -> None:
    assert bulk_converters(converters(StringConverter())) is not None
    assert bulk_converters(converters(IntegerConverter())) is None
    assert bulk_converters(converters(_Loud())) is None
    pipeline = SourcePipeline([], converters(_Loud()), handler())
    rows: list[Row | None] = []
    pipeline.add_rows([SourceRecord({}, {}, "t", value="a")], rows)
    assert [row and row[1][1] for row in rows] == [b"A"]


class ShortConverter(StringConverter):
    """Loses values when it has many."""

    def __init__(self, change: int) -> None:
        super().__init__()
        self._change = change

    def from_connect_data(self, *args: Any) -> bytes | None:
        return super().from_connect_data(*args)

    def to_connect_data(self, *args: Any) -> Any:
        return super().to_connect_data(*args)

    def from_connect_many(self, *args: Any) -> Sequence[bytes | None]:
        return self._changed(super().from_connect_many(*args))

    def to_connect_many(self, *args: Any) -> Any:
        schemas, values = super().to_connect_many(*args)
        return schemas, self._changed(values)

    def _changed(self, values: Sequence[Any]) -> Sequence[Any]:
        return [*values, *values[:1]] if self._change > 0 else values[:-1]


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("reportable", [False, True])
def test_a_bulk_converter_that_returns_another_number_of_values_loses_no_record(
    change: int, reportable: bool
) -> None:
    consumed = [ConsumerRecord("t", 0, n, 5, b"k", b"%d" % n) for n in range(4)]
    kinds = converters(ShortConverter(change))
    batch: list[SinkRecord] = []
    sink = SinkPipeline([], kinds, handler(), reportable=reportable)
    sink.add_records(consumed, "CreateTime", batch)
    assert [record.value for record in batch] == ["0", "1", "2", "3"]
    polled = [SourceRecord({}, {}, "t", value=str(n)) for n in range(4)]
    rows: list[Row | None] = []
    SourcePipeline([], kinds, handler()).add_rows(polled, rows)
    assert [row[1][1] for row in rows if row is not None] == [b"0", b"1", b"2", b"3"]


def test_columns_of_different_lengths_make_no_records() -> None:
    with pytest.raises(ValueError, match="zip"):
        SinkRecord.of_columns(["t", "t"], [0])
    with pytest.raises(ValueError, match="zip"):
        SourceRecord.of_columns([{}], [{}, {}])


def test_a_change_that_no_record_has_is_refused() -> None:
    record = SinkRecord("t", 0, None, None, None, "v", 1)
    with pytest.raises(TypeError, match="a record has no valeu"):
        record.changed(valeu="w")  # type: ignore[call-arg]
