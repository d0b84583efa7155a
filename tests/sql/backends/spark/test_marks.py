"""Marks of a sink's tasks: rows are skipped only where they are those that were written."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.client.api import OffsetAndMetadata
from sql.backends.spark.marks import Mark, PackingChanged, RowDigest, TaskBatch, mark_of

ROW = st.tuples(st.none() | st.binary(max_size=9), st.none() | st.binary(max_size=9))
QUERY = "11111111-2222-3333-4444-555555555555"


def digest(rows: Sequence[tuple[bytes | None, bytes | None]], *, pieces: int = 1) -> RowDigest:
    """The digest of rows that come in pieces."""
    found = RowDigest()
    for first in range(pieces):
        part = rows[first::pieces]
        found.add([key for key, _ in part], [value for _, value in part])
    return found


@given(st.lists(ROW), st.data(), st.integers(1, 4))
def test_the_order_of_rows_does_not_matter(
    rows: list[tuple[bytes | None, bytes | None]], data: st.DataObject, pieces: int
) -> None:
    mixed = data.draw(st.permutations(rows))
    assert digest(rows) == digest(list(mixed), pieces=pieces)


@given(st.lists(st.integers(), unique=True, min_size=2), st.data())
def test_other_rows_are_distinguished_even_if_there_are_as_many(
    numbers: list[int], data: st.DataObject
) -> None:
    rows = [(b"%d" % each, b"value") for each in numbers]
    left = data.draw(st.sampled_from(rows))
    assert digest(rows) != digest([row for row in rows if row != left])
    other = [(b"x", b"value") if row == left else row for row in rows]
    assert digest(rows) != digest(other)


def test_keys_and_values_change_places_with_notice() -> None:
    assert digest([(b"a", b"b")]) != digest([(b"b", b"a")])
    without = RowDigest()
    without.add(None, [b"b"])
    assert without != digest([(b"a", b"b")])


@pytest.mark.parametrize(
    "mark",
    [
        Mark(QUERY, 4, "millstream/0"),
        Mark(QUERY, 4, rows=RowDigest(7, 12)),
        Mark(QUERY, 1),
    ],
)
def test_a_mark_reads_as_it_is_written(mark: Mark) -> None:
    assert mark_of(mark.to_offset()) == mark


@pytest.mark.parametrize("note", ["", QUERY, "12", "{}", '{"query": 1, "rows": 2}', "[]"])
def test_any_other_note_is_that_of_an_earlier_version(note: str) -> None:
    assert mark_of(OffsetAndMetadata(4, metadata=note)) == Mark(note, 4)


def test_rows_that_are_not_those_that_were_written_are_not_skipped() -> None:
    part = TaskBatch("sink", 2, QUERY, 7)
    written, now = digest([(b"1", b"one"), (b"2", b"two")]), digest([(b"3", b"three")])
    part.check_rows(part.mark(written), digest([(b"2", b"two"), (b"1", b"one")]))
    with pytest.raises(
        PackingChanged, match=r"task 2 of micro-batch 7.*2 rows before; now it has 1"
    ):
        part.check_rows(part.mark(written), now)
    part.check_rows(Mark(QUERY, 9, rows=written), now)  # a later one is done, so this one was
    part.check_rows(Mark(QUERY, 8), now)  # an earlier version's


@pytest.mark.parametrize(
    "mark",
    [
        Mark("another query", 8, "kafka/0"),
        Mark(QUERY, 7, "kafka/0"),
        Mark(QUERY, 9, "kafka/0"),
        Mark(QUERY, 8),
        Mark(QUERY, 8, "millstream/0"),
    ],
)
def test_only_the_same_micro_batch_must_have_the_same_packing(mark: Mark) -> None:
    TaskBatch("sink", 2, QUERY, 7, "millstream/0").check_packing(mark)
