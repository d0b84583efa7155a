"""Reading spans of offsets and writing rows, as Spark's workers do it, without Spark."""

import pytest

pytest.importorskip("pyarrow", reason="the Spark source and sink speak Arrow: install pyarrow")

import pyarrow as pa

from broker.client import producer
from broker.errors import SerdeError
from broker.model import TopicPartition
from sql.backends.spark.log_ends import DataLost
from sql.backends.spark.offsets import Span
from sql.backends.spark.options import SourceOptions
from sql.backends.spark.reading import read_spans
from sql.backends.spark.records import HEADERS_TYPE
from sql.backends.spark.writing import RecordOutput, binary_list
from tests.sql.backends.spark.cluster import (
    committed_records,
    create,
    drop_before,
    fill,
    fill_and_abort,
    numbers_in,
    reading,
)

pytestmark = pytest.mark.slow


def values(options: SourceOptions, *spans: Span) -> list[int]:
    """The values of spans as numbers, as they come."""
    return [
        int(value)
        for batch in read_spans(spans, options)
        for value in batch.column("value").to_pylist()
    ]


def test_exactly_what_lies_between_is_read(servers: str) -> None:
    topic = create(servers, "between", 1)
    fill(servers, topic, range(500))
    options = reading(servers, topic)
    assert values(options, Span(topic, 0, 17, 431)) == list(range(17, 431))
    assert values(options, Span(topic, 0, 0, 10), Span(topic, 0, 10, 500)) == list(range(500))
    assert values(options) == []


def test_aborted_transactions_and_markers_at_the_end_do_not_hang(servers: str) -> None:
    topic = create(servers, "markers", 1)
    fill(servers, topic, range(3))
    fill_and_abort(servers, topic, range(5), partition=0)
    options = reading(servers, topic)
    assert values(options, Span(topic, 0, 0, 9)) == [0, 1, 2]
    assert values(options, Span(topic, 0, 3, 9)) == []
    assert values(options, Span(topic, 0, 4, 6)) == []
    fill(servers, topic, [3])
    assert values(options, Span(topic, 0, 1, 10)) == [1, 2, 3]


def test_columns_tell_where_and_when(servers: str) -> None:
    topic = create(servers, "columns", 1)
    with producer(servers) as out:
        out.send(topic, b"v", key=None, timestamp_ms=5, headers=[("h", b"1"), ("h", None)])
        out.send(topic, None, key=b"k", timestamp_ms=6)
    (batch,) = read_spans([Span(topic, 0, 0, 2)], reading(servers, topic))
    assert batch.to_pylist() == [
        {
            "topic": topic,
            "partition": 0,
            "offset": 0,
            "timestamp": 5,
            "timestamp_type": 0,
            "key": None,
            "value": b"v",
            "headers": [{"name": "h", "value": b"1"}, {"name": "h", "value": None}],
        },
        {
            "topic": topic,
            "partition": 0,
            "offset": 1,
            "timestamp": 6,
            "timestamp_type": 0,
            "key": b"k",
            "value": None,
            "headers": None,
        },
    ]


def test_records_that_go_while_a_task_reads_are_an_error_or_left_out(servers: str) -> None:
    topic = create(servers, "going", 1)
    fill(servers, topic, range(10))
    drop_before(servers, {TopicPartition(topic, 0): 4})
    with pytest.raises(DataLost, match="offsets 0 to 3"):
        values(reading(servers, topic), Span(topic, 0, 0, 10))
    lenient = reading(servers, topic, fail_on_data_loss=False)
    assert values(lenient, Span(topic, 0, 0, 10)) == list(range(4, 10))
    assert values(lenient, Span(topic, 0, 0, 3)) == []


def test_a_log_that_ends_too_early_is_an_error_or_enough(servers: str) -> None:
    topic = create(servers, "early", 1)
    fill(servers, topic, range(5))
    with pytest.raises(DataLost, match="the log ends before them"):
        values(reading(servers, topic), Span(topic, 0, 0, 9))
    lenient = reading(servers, topic, fail_on_data_loss=False)
    assert values(lenient, Span(topic, 0, 0, 9)) == list(range(5))


def write(servers: str, topic: str | None, batch: object) -> None:
    """Write the rows of an Arrow batch."""
    with producer(servers) as opened:
        output = RecordOutput(opened, topic, bytes_max=4_000, compression="none")
        output.write(batch)
        output.finish()


def test_rows_become_records(servers: str) -> None:
    topic = create(servers, "rows", 2)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([topic, topic]),
            pa.array([1, None], pa.int32()),
            pa.array([7, None], pa.int64()),
            pa.array(["k", None]),
            pa.array([b"v", None], pa.binary()),
            pa.array([[{"name": "h", "value": b"1"}], None], HEADERS_TYPE),
        ],
        names=["topic", "partition", "timestamp", "key", "value", "headers"],
    )
    write(servers, None, batch)
    first, second = sorted(
        committed_records(servers, topic), key=lambda record: record.value or b"z"
    )
    assert first[1:2] + first[3:] == (1, 7, b"k", b"v", (("h", b"1"),))
    assert (second.key, second.value, second.headers) == (None, None, ())
    assert second.timestamp_ms > 10**12


def test_many_rows_go_to_the_partitions_of_their_keys(servers: str) -> None:
    topic, same = create(servers, "many", 4), create(servers, "same", 4)
    numbers = [b"%d" % number for number in range(2_000)]
    write(servers, topic, pa.RecordBatch.from_pydict({"key": numbers, "value": numbers}))
    fill(servers, same, range(2_000))
    assert numbers_in(servers, topic) == list(range(2_000))
    places = {record.key: record.partition for record in committed_records(servers, topic)}
    assert places == {record.key: record.partition for record in committed_records(servers, same)}


def test_a_row_for_a_partition_that_is_not_there_is_refused(servers: str) -> None:
    topic = create(servers, "refused", 2)
    with pytest.raises(SerdeError, match="partition 2"):
        write(servers, topic, pa.RecordBatch.from_pydict({"value": [b"v"], "partition": [2]}))
    none = pa.array([None], pa.string())
    with pytest.raises(SerdeError, match="no topic"):
        write(servers, None, pa.RecordBatch.from_pydict({"topic": none, "value": [b"v"]}))


@pytest.mark.parametrize("slicing", [slice(0, 4), slice(1, 3), slice(2, 2), slice(3, 4)])
def test_bytes_are_cut_out_of_slices(slicing: slice) -> None:
    found = [b"one", b"", b"three", b"4"]
    length = slicing.stop - slicing.start
    assert binary_list(pa.array(found).slice(slicing.start, length)) == found[slicing]
    texts = pa.array([text.decode() for text in found]).slice(slicing.start, length)
    assert binary_list(texts) == found[slicing]
    holes = [b"one", None, b"", None]
    assert binary_list(pa.array(holes).slice(slicing.start, length)) == holes[slicing]
