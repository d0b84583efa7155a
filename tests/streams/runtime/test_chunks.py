"""From fetched batches to Chunks."""

from broker.batch.codec import encode_batch, read_header
from broker.client.api import FetchedBatch
from broker.errors import CorruptBatchError
from broker.model import TopicPartition
from streams.record import Chunk
from streams.runtime.chunks import FetchedInput, to_chunk

TP = TopicPartition("in", 0)


def no_errors(error: CorruptBatchError) -> None:
    raise error


def batch(first: int, count: int, *, start: int | None = None) -> FetchedBatch:
    """A batch of records with offsets from `first` on; those before `start` were taken."""
    rows = [(b"k%d" % n, b"v%d" % n, (), 1000 + n) for n in range(first, first + count)]
    data = memoryview(encode_batch(rows, base_offset=first))
    return FetchedBatch(TP, data, read_header(data), first if start is None else start)


def test_columns_hold_what_the_batch_holds() -> None:
    chunk = to_chunk(batch(5, 3), 0)
    assert chunk is not None
    assert list(chunk.offsets) == [5, 6, 7]
    assert list(chunk.timestamps) == [1005, 1006, 1007]
    assert list(chunk.keys) == [b"k5", b"k6", b"k7"]
    assert list(chunk.values) == [b"v5", b"v6", b"v7"]
    assert chunk.headers is None
    assert chunk.next_offset == 8


def test_records_that_were_taken_before_are_left_out() -> None:
    chunk = to_chunk(batch(5, 3, start=7), 0)
    assert chunk is not None
    assert list(chunk.offsets) == [7]
    assert to_chunk(batch(5, 3, start=8), 0) is None


def test_the_last_batch_ends_where_the_consumer_stands() -> None:
    waiting = FetchedInput(1000)
    waiting.add([batch(0, 2), batch(2, 2)], lambda tp: 9)
    chunks: list[Chunk] = []
    waiting.feed(TP, 0, chunks.append, no_errors)
    assert [chunk.next_offset for chunk in chunks] == [2, 9]


def test_only_as_much_is_decoded_as_a_task_has_room_for() -> None:
    waiting = FetchedInput(3)
    waiting.add([batch(0, 2), batch(2, 2), batch(4, 2)], lambda tp: 6)
    chunks: list[Chunk] = []
    assert waiting.feed(TP, 0, chunks.append, no_errors) == 4
    assert waiting.has_batches(TP)
    assert waiting.feed(TP, 4, chunks.append, no_errors) == 0
    assert waiting.feed(TP, 2, chunks.append, no_errors) == 2
    assert not waiting.has_batches(TP)
