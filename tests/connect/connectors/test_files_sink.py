"""The files sink: what is in which file, when files are finished, and where reading goes on."""

import builtins
import datetime
import gzip
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from broker.clock import ManualClock
from broker.model import TopicPartition
from connect import data
from connect.connectors.files_sink import FilesSinkConnector, FilesSinkTask, partition_files
from connect.connectors.files_sink.commit_log import CommitLog
from connect.data import ConnectSchema, Struct
from connect.errors import ConfigError, ConnectError, RetriableError
from connect.records import SinkRecord
from tests.connect.connectors.contexts import HandSinkContext, ReportedRecords
from tests.connect.connectors.files_sink_driver import finished_files

START_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z
ZERO, ONE = TopicPartition("t", 0), TopicPartition("t", 1)
POINT = data.struct("point", {"x": data.INT32, "label": data.OPTIONAL_STRING})


class Sink:
    """A started task that has partitions 0 and 1 of topic "t"."""

    opened: ClassVar[list["Sink"]] = []

    def __init__(
        self,
        directory: Path,
        config: Mapping[str, str] | None = None,
        *,
        reporter: ReportedRecords | None = None,
    ) -> None:
        self.clock = ManualClock(START_MS)
        self.context = HandSinkContext(reporter)
        self.task = FilesSinkTask(self.clock)
        self.task.context = self.context
        self.task.start({"directory": str(directory), **(config or {})})
        self.task.open([ZERO, ONE])
        Sink.opened.append(self)

    def put(self, records: Iterable[SinkRecord]) -> None:
        self.task.put(list(records))


@pytest.fixture(autouse=True)
def stopped_sinks() -> Iterator[None]:
    """Stops all tasks at the end, also those that a test left as a crash would."""
    yield
    while Sink.opened:
        Sink.opened.pop().task.stop()


def record(
    offset: int,
    value: object,
    *,
    partition: int = 0,
    schema: ConnectSchema | None = None,
    time_ms: int = START_MS,
) -> SinkRecord:
    return SinkRecord("t", partition, None, None, schema, value, offset, time_ms)


def point(offset: int, x: int, label: str | None = None) -> SinkRecord:
    return record(offset, Struct(POINT, [x, label]), schema=POINT)


def contents(directory: Path) -> dict[str, list[object]]:
    """The values in each finished file."""
    return {
        str(path.relative_to(directory)): [
            json.loads(line) for line in path.read_text().splitlines()
        ]
        for path in finished_files(directory)
    }


def test_files_are_named_after_their_first_offset_and_finished_by_count(tmp_path: Path) -> None:
    sink = Sink(tmp_path, {"flush.size": "3"})
    sink.put(record(offset, offset) for offset in range(5, 12))
    sink.put([record(0, 0, partition=1)])
    assert contents(tmp_path) == {
        "t/partition=0/t+0+0000000005.json": [5, 6, 7],
        "t/partition=0/t+0+0000000008.json": [8, 9, 10],
    }


def test_only_finished_files_are_committed(tmp_path: Path) -> None:
    sink = Sink(tmp_path, {"flush.size": "3"})
    sink.put(record(offset, offset) for offset in range(2))
    assert sink.task.pre_commit({ZERO: 2, ONE: 7}) == {ONE: 7}
    sink.put(record(offset, offset) for offset in range(2, 4))
    assert sink.task.pre_commit({ZERO: 4, ONE: 7}) == {ZERO: 3, ONE: 7}


def test_reading_goes_on_after_the_last_finished_file(tmp_path: Path) -> None:
    first = Sink(tmp_path, {"flush.size": "2"})
    assert first.context.rewound == {}
    # Offset 1 is missing, as in a topic with transactions.
    first.put([record(0, "a"), record(2, "b"), record(3, "lost")])
    second = Sink(tmp_path, {"flush.size": "2"})
    assert second.context.rewound == {ZERO: 3}
    second.put([record(3, "c"), record(4, "d")])
    assert contents(tmp_path) == {
        "t/partition=0/t+0+0000000000.json": ["a", "b"],
        "t/partition=0/t+0+0000000003.json": ["c", "d"],
    }


def test_records_that_come_again_are_not_written_again(tmp_path: Path) -> None:
    sink = Sink(tmp_path, {"flush.size": "3"})
    sink.put([record(0, "a"), record(1, "b")])
    sink.put([record(0, "a"), record(1, "b"), record(2, "c")])
    assert list(contents(tmp_path).values()) == [["a", "b", "c"]]


def test_partitions_that_are_given_away_leave_nothing_behind(tmp_path: Path) -> None:
    sink = Sink(tmp_path)
    sink.put([record(0, "a"), record(0, "a", partition=1)])
    sink.task.close([ZERO])
    assert [path.parent.name for path in tmp_path.rglob("*.part")] == ["1"]
    sink.task.stop()
    assert list(tmp_path.rglob("*.part")) == []
    assert sink.task.pre_commit({ZERO: 1}) == {}


def test_a_recreated_topic_is_detected(tmp_path: Path) -> None:
    Sink(tmp_path, {"flush.size": "2"}).put([record(5, "a"), record(6, "b")])
    with pytest.raises(
        ConnectError, match="files up to offset 7 are committed, but offset 0 was read"
    ):
        Sink(tmp_path).put([record(0, "new")])


def test_files_are_finished_before_a_record_that_is_much_later(tmp_path: Path) -> None:
    sink = Sink(tmp_path, {"rotate.interval.ms": "1000"})
    times = [0, 999, 500, 1_000, 100, 2_000]
    sink.put(record(offset, ms, time_ms=START_MS + ms) for offset, ms in enumerate(times))
    assert list(contents(tmp_path).values()) == [[0, 999, 500], [1_000, 100]]


def test_files_are_finished_on_schedule_even_when_nothing_comes(tmp_path: Path) -> None:
    sink = Sink(tmp_path, {"rotate.schedule.interval.ms": "60000"})
    sink.put([record(0, "a"), record(0, "b", partition=1)])
    sink.clock.advance(59_000 - START_MS % 60_000)
    sink.put([])
    assert contents(tmp_path) == {}
    sink.clock.advance(1_000)
    sink.put([])
    assert list(contents(tmp_path).values()) == [["a"], ["b"]]
    sink.clock.advance(60_000)
    sink.put([])
    assert len(contents(tmp_path)) == 2


def test_a_change_of_schema_begins_a_new_file(tmp_path: Path) -> None:
    other = data.struct("point", {"x": data.INT32, "y": data.INT32})
    same = data.struct("point", {"x": data.INT32, "label": data.OPTIONAL_STRING})
    sink = Sink(tmp_path, {"format": "parquet", "flush.size": "4"})
    sink.put(
        [
            point(0, 1),
            record(1, Struct(same, [2, "b"]), schema=same),
            record(2, Struct(other, [3, 4]), schema=other),
            *[record(offset, Struct(other, [5, 6]), schema=other) for offset in (3, 4, 5)],
        ]
    )
    assert [parquet.read_table(path).to_pylist() for path in finished_files(tmp_path)] == [
        [{"x": 1, "label": None}, {"x": 2, "label": "b"}],
        [{"x": 3, "y": 4}, *[{"x": 5, "y": 6}] * 3],
    ]


def test_too_many_open_files_are_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_files, "OPEN_FILES_MAX", 2)
    config = {"partitioner.class": "field", "partition.field.name": "x"}
    sink = Sink(tmp_path, config)
    sink.put(record(offset, {"x": x}) for offset, x in enumerate("abac"))
    assert contents(tmp_path) == {
        "t/x=a/t+0+0000000000.json": [{"x": "a"}, {"x": "a"}],
        "t/x=b/t+0+0000000001.json": [{"x": "b"}],
    }


def test_folders_by_fields_are_escaped(tmp_path: Path) -> None:
    config = {
        "partitioner.class": "io.confluent.connect.storage.partitioner.FieldPartitioner",
        "partition.field.name": "label, x",
        "flush.size": "4",
    }
    sink = Sink(tmp_path, config)
    sink.put([point(0, 1, "../up"), point(1, 2, "a b"), point(2, 3), point(3, 1, "../up")])
    assert contents(tmp_path) == {
        "t/label=..%2Fup/x=1/t+0+0000000000.json": [{"x": 1, "label": "../up"}] * 2,
        "t/label=a b/x=2/t+0+0000000001.json": [{"x": 2, "label": "a b"}],
        "t/label=null/x=3/t+0+0000000002.json": [{"x": 3, "label": None}],
    }


@pytest.mark.parametrize(
    ("config", "folder"),
    [
        ({"partitioner.class": "hourly"}, "year=2023/month=11/day=14/hour=22"),
        ({"partitioner.class": "daily"}, "year=2023/month=11/day=14"),
        (
            {"partitioner.class": "TimeBasedPartitioner", "timezone": "Asia/Tokyo"},
            "year=2023/month=11/day=15/hour=07",
        ),
        (
            {"partitioner.class": "time", "path.format": "yyyy-MM-dd/'at 100%'/HHmmss"},
            "2023-11-14/at 100%/221320",
        ),
        (
            {
                "partitioner.class": "time",
                "path.format": "HH-mm",
                "partition.duration.ms": "600000",
            },
            "22-10",
        ),
    ],
)
def test_folders_by_time_follow_their_format(
    tmp_path: Path, config: dict[str, str], folder: str
) -> None:
    Sink(tmp_path, {"flush.size": "1", **config}).put([record(0, "a")])
    assert list(contents(tmp_path)) == [f"t/{folder}/t+0+0000000000.json"]


@pytest.mark.parametrize(
    "value",
    [
        {"at": 90_061_000},
        {"at": "1970-01-02T01:01:01Z"},
        {"at": "1970-01-02T01:01:01"},
        {"at": datetime.datetime(1970, 1, 2, 1, 1, 1, tzinfo=datetime.UTC)},
    ],
)
def test_the_time_may_come_from_a_field(tmp_path: Path, value: object) -> None:
    config = {
        "partitioner.class": "hourly",
        "timestamp.extractor": "RecordField",
        "timestamp.field": "at",
        "flush.size": "1",
    }
    Sink(tmp_path, config).put([record(0, value)])
    assert list(contents(tmp_path)) == ["t/year=1970/month=01/day=02/hour=01/t+0+0000000000.json"]


def test_the_time_may_come_from_the_clock(tmp_path: Path) -> None:
    config = {"partitioner.class": "daily", "timestamp.extractor": "Wallclock", "flush.size": "1"}
    Sink(tmp_path, config).put([record(0, "a", time_ms=0)])
    assert list(contents(tmp_path)) == ["t/year=2023/month=11/day=14/t+0+0000000000.json"]


def test_json_can_be_compressed_and_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    made: dict[str, list[bytes]] = {"gzip": [], "zstd": []}
    for compression, found in made.items():
        for directory in (tmp_path / f"{compression}1", tmp_path / f"{compression}2"):
            config = {"flush.size": "2", "compression.type": compression}
            Sink(directory, config).put([record(0, "a"), record(1, "b")])
            (path,) = finished_files(directory)
            assert (
                path.name
                == {
                    "gzip": "t+0+0000000000.json.gz",
                    "zstd": "t+0+0000000000.json.zst",
                }[compression]
            )
            found.append(path.read_bytes())
        assert found[0] == found[1]
    assert gzip.decompress(made["gzip"][0]) == b'"a"\n"b"\n'
    assert zstandard.ZstdDecompressor().decompressobj().decompress(made["zstd"][0]) == b'"a"\n"b"\n'


ALL_TYPES = data.struct(
    "all",
    {
        "int8": data.INT8,
        "int16": data.INT16,
        "int32": data.INT32,
        "int64": data.INT64,
        "float": data.FLOAT32,
        "double": data.FLOAT64,
        "flag": data.BOOLEAN,
        "text": data.STRING,
        "bytes": data.BYTES,
        "price": data.decimal(2),
        "day": data.date(),
        "clock": data.time(),
        "at": data.timestamp(),
        "list": data.array(data.INT32),
        "points": data.array(POINT),
        "map": data.map_of(data.STRING, POINT),
        "point": POINT.as_optional(),
        "filled": data.STRING.with_(default="filled"),
        "choice": POINT.with_(default=Struct(POINT, [9, None])),
    },
)


def test_all_types_can_be_written_as_parquet(tmp_path: Path) -> None:
    at = datetime.datetime(2024, 5, 17, 12, 30, 1, 5_000, tzinfo=datetime.UTC)
    inner = Struct(POINT, [1, "north"])
    values: list[object] = [1, 2, 3, 4, 1.5, 2.5, True, "text", b"bytes", Decimal("10.50")]
    values += [at.date(), at.time(), at, [1, 2], [inner], {"a": inner}, None, None, None]
    row = Struct(ALL_TYPES, values)
    Sink(tmp_path, {"format": "parquet", "flush.size": "1"}).put([record(0, row, schema=ALL_TYPES)])
    (path,) = finished_files(tmp_path)
    read = parquet.read_table(path)
    (found,) = read.to_pylist()
    north = {"x": 1, "label": "north"}
    assert found == {
        **dict(zip(ALL_TYPES.positions, values, strict=True)),
        "points": [north],
        "map": [("a", north)],
        "filled": "filled",
        "choice": {"x": 9, "label": None},
    }
    assert str(read.schema.field("price").type) == "decimal128(38, 2)"
    assert str(read.schema.field("at").type) == "timestamp[ms, tz=UTC]"
    assert not read.schema.field("text").nullable
    assert read.schema.field("point").nullable


def test_a_large_file_of_parquet_has_several_row_groups(tmp_path: Path) -> None:
    sink = Sink(tmp_path, {"format": "parquet", "flush.size": "25000", "compression.type": "zstd"})
    sink.put(point(offset, offset) for offset in range(25_000))
    (path,) = finished_files(tmp_path)
    file = parquet.ParquetFile(path)
    assert file.metadata.num_row_groups == 3
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"
    assert file.read()["x"].to_pylist() == list(range(25_000))


def test_values_that_do_not_fit_their_schema_fail_the_task(tmp_path: Path) -> None:
    sink = Sink(tmp_path, {"format": "parquet", "flush.size": "1"})
    wrong = record(0, Struct(POINT, ["text", None]), schema=POINT)
    with pytest.raises(ConnectError, match='values of field "x" do not match their schema'):
        sink.put([wrong])
    assert sink.task.pre_commit({ZERO: 1}) == {}


class UnwrittenReports(ReportedRecords):
    """Dead letters that are not acknowledged before a test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.letters: list[Future[None]] = []

    def report(self, record: SinkRecord, error: Exception) -> Future[None]:
        super().report(record, error)
        self.letters.append(Future())
        return self.letters[-1]


def test_files_are_not_finished_before_dead_letters_are_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_files, "DEAD_LETTER_WAIT_S", 0.01)
    reporter = UnwrittenReports()
    sink = Sink(tmp_path, {"flush.size": "2"}, reporter=reporter)
    batch = [record(0, {"n": 0}), record(1, None), record(2, {"n": 2}), record(3, {"n": 3})]
    with pytest.raises(RetriableError, match="dead letters"):
        sink.put(batch)
    assert finished_files(tmp_path) == []
    reporter.letters[0].set_result(None)
    sink.put(batch)
    (file,) = finished_files(tmp_path)
    assert len(file.read_text().splitlines()) == 3
    assert len(reporter.reported) == 1


def test_a_refused_dead_letter_leaves_the_offset_before_its_record(tmp_path: Path) -> None:
    reporter = UnwrittenReports()
    sink = Sink(tmp_path, {"flush.size": "2"}, reporter=reporter)
    sink.put([record(0, {"n": 0}), record(1, None)])
    reporter.letters[0].set_exception(ConnectError("too large"))
    with pytest.raises(ConnectError, match="too large"):
        sink.put([record(2, {"n": 2})])
    assert finished_files(tmp_path) == []
    assert Sink(tmp_path).context.rewound == {}


def test_records_that_cannot_be_written_are_reported_and_the_others_written(
    tmp_path: Path,
) -> None:
    reporter = ReportedRecords()
    sink = Sink(tmp_path, {"flush.size": "2"}, reporter=reporter)
    odd, null = record(0, object()), record(2, None)
    sink.put([odd, record(1, "a"), null, record(3, "b")])
    assert [found for found, _ in reporter.reported] == [odd, null]
    assert contents(tmp_path) == {"t/partition=0/t+0+0000000001.json": ["a", "b"]}
    assert sink.task.pre_commit({ZERO: 4}) == {ZERO: 4}


@pytest.mark.parametrize(
    ("value", "config", "why"),
    [
        (None, {}, "the record has no value"),
        ({"x": 1}, {"format": "parquet"}, "a Parquet row must be a struct"),
        (object(), {}, "cannot write the value as JSON"),
        (
            {"x": 1},
            {"partitioner.class": "field", "partition.field.name": "y"},
            'the value has no field "y"',
        ),
        (
            {"at": "noon"},
            {"timestamp.extractor": "RecordField", "timestamp.field": "at"},
            "field \"at\" is not a valid time: 'noon'",
        ),
    ],
)
def test_a_bad_record_fails_the_task_with_its_place(
    tmp_path: Path, value: object, config: dict[str, str], why: str
) -> None:
    with pytest.raises(ConnectError) as caught:
        Sink(tmp_path, config).put([record(7, value)])
    assert why in caught.value.message
    assert caught.value.at == 'topic "t" partition 0 offset 7'


def test_records_without_a_value_can_be_passed_over(tmp_path: Path) -> None:
    sink = Sink(tmp_path, {"behavior.on.null.values": "ignore", "flush.size": "1"})
    sink.put([record(0, None), record(1, "a"), record(2, None)])
    assert list(contents(tmp_path).values()) == [["a"]]
    assert sink.task.pre_commit({ZERO: 3}) == {ZERO: 3}


def test_a_topic_that_a_transform_has_changed_is_where_files_go(tmp_path: Path) -> None:
    sink = Sink(tmp_path, {"flush.size": "2"})
    routed = [record(0, "a").changed(topic="a"), record(1, "b").changed(topic="b")]
    sink.put(routed)
    assert sorted(contents(tmp_path)) == [
        "a/partition=0/a+0+0000000000.json",
        "b/partition=0/b+0+0000000001.json",
    ]
    assert Sink(tmp_path).context.rewound == {ZERO: 2}


def test_offsets_that_a_user_sets_are_where_reading_goes_on(tmp_path: Path) -> None:
    config = {"directory": str(tmp_path), "flush.size": "1"}
    Sink(tmp_path, {"flush.size": "1"}).put([record(0, "a"), record(1, "b")])
    connector = FilesSinkConnector()
    assert connector.alter_offsets(config, {ZERO: 1})
    assert Sink(tmp_path).context.rewound == {ZERO: 1}
    assert connector.alter_offsets(config, {ZERO: None, ONE: None})
    again = Sink(tmp_path, {"flush.size": "1"})
    assert again.context.rewound == {}
    again.put([record(0, "a")])
    assert list(contents(tmp_path).values()) == [["a"], ["b"]]


def test_a_list_of_finished_files_that_is_broken_is_named(tmp_path: Path) -> None:
    log = CommitLog(tmp_path, ZERO)
    log.move(5)
    (file,) = tmp_path.rglob("commit.json")
    file.write_text("{")
    with pytest.raises(ConnectError) as caught:
        log.recover()
    assert caught.value.at == str(file)


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    sink = Sink(tmp_path, {"flush.size": "1"})
    (tmp_path / "t").write_text("a file where a folder should be")
    with pytest.raises(ConnectError, match="cannot write files") as caught:
        sink.put([record(0, "a")])
    assert str(tmp_path / "t") in caught.value.at
    assert sink.task.pre_commit({ZERO: 1}) == {}


@pytest.mark.parametrize(
    ("config", "name", "why"),
    [
        ({"partitioner.class": "field"}, "partition.field.name", "needs partition.field.name"),
        (
            {"partitioner.class": "time", "path.format": "YYYY/EEE"},
            "path.format",
            'path.format "YYYY/EEE" is invalid at position 5',
        ),
        ({"partitioner.class": "time", "timezone": "Mars"}, "timezone", "unknown time zone"),
        ({"compression.type": "snappy"}, "compression.type", "JSON files cannot"),
        (
            {"timestamp.extractor": "RecordField", "timestamp.field": ""},
            "timestamp.extractor",
            "without a timestamp.field",
        ),
    ],
)
def test_wrong_settings_are_found_before_anything_starts(
    tmp_path: Path, config: dict[str, str], name: str, why: str
) -> None:
    config = {"directory": str(tmp_path), **config}
    found = FilesSinkConnector().validate(config)
    assert list(found) == [name]
    assert why in found[name][0]
    with pytest.raises(ConfigError):
        FilesSinkConnector().start(config)


def test_parquet_without_its_library_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = builtins.__import__

    def without_pyarrow(name: str, *rest: Any) -> Any:  # as import itself has them
        if name.endswith("parquet_format"):
            raise ImportError("No module named 'pyarrow'")
        return find(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    with pytest.raises(ConfigError, match="need the package pyarrow") as caught:
        FilesSinkConnector().start({"directory": str(tmp_path), "format": "parquet"})
    assert "millstream[parquet]" in caught.value.hint


def test_an_unknown_partitioner_is_refused_by_the_definition() -> None:
    config = {"directory": "d", "partitioner.class": "com.example.LunarPartitioner"}
    with pytest.raises(ConfigError, match="one of: default, field, time, hourly, daily"):
        FilesSinkConnector().start(config)
    assert FilesSinkConnector().validate(config) == {}


def test_tasks_share_the_directory(tmp_path: Path) -> None:
    connector = FilesSinkConnector()
    config = {"directory": str(tmp_path)}
    connector.start(config)
    assert connector.task_configs(3) == [config] * 3
    assert connector.task_class() is FilesSinkTask
    assert connector.validate(config) == {}


OTHER = data.struct("other", {"y": data.INT64})
VALUES: list[tuple[ConnectSchema | None, object]] = [
    (POINT, Struct(POINT, [1, "one"])),
    (POINT, Struct(POINT, [2, None])),
    (OTHER, Struct(OTHER, [3])),
    (None, {"a": [1, 2.5]}),
    (None, None),
    (None, object()),  # no JSON
]


@given(
    polls=st.lists(
        st.lists(st.tuples(st.sampled_from(VALUES), st.integers(0, 1)), max_size=8), max_size=4
    ),
    flush_size=st.integers(1, 5),
)
def test_many_records_at_once_are_written_as_one_by_one(
    polls: list[list[tuple[tuple[ConnectSchema | None, object], int]]], flush_size: int
) -> None:
    numbered = itertools.count()
    given = [
        [
            record(next(numbered), value, schema=schema, partition=partition)
            for (schema, value), partition in poll
        ]
        for poll in polls
    ]
    found = []
    # With an interval, which is never over, each record is looked at.
    for interval in ("-1", str(10**15)):
        with TemporaryDirectory() as folder:
            reported = ReportedRecords()
            config = {"flush.size": str(flush_size), "rotate.interval.ms": interval}
            sink = Sink(Path(folder), config, reporter=reported)
            for poll in given:
                sink.put(poll)
            committed = sink.task.pre_commit({ZERO: 1_000, ONE: 1_000})
            sink.task.stop()
            refused = [each.original_offset for each, _ in reported.reported]
            found.append((contents(Path(folder)), committed, refused))
    assert found[0] == found[1]
