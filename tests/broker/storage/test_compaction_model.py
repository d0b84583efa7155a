"""Compaction against a model: the last committed value per key, whatever crashes in between."""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.broker.storage.compaction_support import Cleaned, Pair
from tests.broker.storage.faults import Crash, FaultyFileSystem

KEYS = st.sampled_from([b"a", b"b", b"c", b"a key that is longer than its digest"])
PAIRS = st.lists(
    st.tuples(KEYS, st.none() | st.binary(min_size=1, max_size=30)), min_size=1, max_size=4
)
PRODUCERS = st.integers(1, 2)
RETENTION_MS = 1000

Step = tuple[object, ...]
STEPS: st.SearchStrategy[list[Step]] = st.lists(
    st.one_of(
        st.tuples(st.just("append"), PAIRS, st.sampled_from(["none", "none", "lz4", "zstd"])),
        st.tuples(st.just("idempotent"), st.integers(3, 4), PAIRS),
        st.tuples(st.just("transaction"), PRODUCERS, PAIRS),
        st.tuples(st.just("end"), PRODUCERS, st.booleans()),
        st.tuples(st.just("roll")),
        st.tuples(st.just("advance"), st.sampled_from([1, 500, 1000, 3000])),
        st.tuples(st.just("compact")),
        st.tuples(st.just("crash"), st.integers(0, 40), st.booleans()),
        st.tuples(st.just("delete"), st.integers(0, 100)),
        st.tuples(st.just("restart")),
    ),
    max_size=40,
)


@dataclass
class Model:
    """What was written, and which transactions were committed."""

    records: dict[int, Pair] = field(default_factory=dict)
    pending: dict[int, list[int]] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    # When a compaction first could have met a record.
    met_ms: dict[int, int] = field(default_factory=dict)

    def write(self, offset: int, pairs: list[Pair], producer_id: int | None = None) -> None:
        for position, pair in enumerate(pairs, start=offset):
            self.records[position] = pair
            if producer_id is not None:
                self.pending.setdefault(producer_id, []).append(position)

    def end(self, producer_id: int, commit: bool) -> None:
        offsets = self.pending.pop(producer_id, [])
        if not commit:
            self.aborted.update(offsets)

    def last_by_key(self, start_offset: int, stable_offset: int) -> dict[bytes | None, int]:
        """The offset of each key's last committed record, unless it was deleted."""
        undecided = {offset for offsets in self.pending.values() for offset in offsets}
        last = {
            key: offset
            for offset, (key, _) in self.records.items()
            if offset < stable_offset and offset not in self.aborted | undecided
        }
        return {key: offset for key, offset in last.items() if offset >= start_offset}

    def meet(self, stable_offset: int, now_ms: int) -> None:
        for offset in self.records:
            if offset < stable_offset:
                self.met_ms.setdefault(offset, now_ms)


class Run:
    """Takes the steps on a log and on the model."""

    def __init__(self, folder: Path) -> None:
        self.files = FaultyFileSystem()
        self.log = Cleaned(folder, files=self.files, settings={"segment_bytes": 600})
        self.model = Model()

    def append(self, pairs: list[Pair], compression: str) -> None:
        self.model.write(self.log.append(*pairs, compression=compression), pairs)

    def idempotent(self, producer_id: int, pairs: list[Pair]) -> None:
        self.model.write(self.log.append(*pairs, producer_id=producer_id), pairs)

    def transaction(self, producer_id: int, pairs: list[Pair]) -> None:
        offset = self.log.append(*pairs, producer_id=producer_id, transactional=True)
        self.model.write(offset, pairs, producer_id)

    def end(self, producer_id: int, commit: bool) -> None:
        if producer_id in self.model.pending:
            self.log.end(producer_id, commit=commit)
            self.model.end(producer_id, commit)

    def roll(self) -> None:
        self.log.log.roll()

    def advance(self, milliseconds: int) -> None:
        self.log.clock.advance(milliseconds)

    def compact(self) -> None:
        self.model.meet(self.log.log.last_stable_offset, self.log.clock.now_ms())
        self.log.compact_sealed()

    def delete(self, percent: int) -> None:
        """Delete the records before an offset."""
        log = self.log.log
        offset = log.start_offset + (log.high_watermark - log.start_offset) * percent // 100
        assert log.delete_records_before(offset) == offset

    def crash(self, after: int, power_lost: bool) -> None:
        """Compact, and crash after so many changes to the disk."""
        self.log.log.flush()
        self.files.crash_after_writes = after
        cleaned_offsets = dict(self.log.cleaned_offsets)
        try:
            self.compact()
        except Crash:
            self.log.cleaned_offsets.clear()
            self.log.cleaned_offsets.update(cleaned_offsets)
        self.files.crash_after_writes = None
        if power_lost:
            self.files.lose_power(lambda low, high: (low + high) // 2)
        self.restart()

    def restart(self) -> None:
        end_offset = self.log.log.end_offset
        self.log.open()
        assert self.log.log.end_offset == end_offset

    def check(self) -> None:
        log, model = self.log.log, self.model
        found = self.log.records()
        assert found.items() <= model.records.items(), "what is there is as it was written"
        stable = log.last_stable_offset
        last = model.last_by_key(log.start_offset, stable)
        committed = self.log.committed()
        assert not committed.keys() & model.aborted
        seen = {key: value for key, value in committed.values() if value is not None}
        gone = {key for key, value in committed.values() if value is None}
        expected = {
            key: model.records[offset][1]
            for key, offset in last.items()
            if model.records[offset][1] is not None
        }
        final: dict[bytes | None, bytes | None] = {}
        for key, value in committed.values():
            final[key] = value
        assert {key: value for key, value in final.items() if value is not None} == expected
        assert seen.keys() <= expected.keys() | gone
        now_ms = self.log.clock.now_ms()
        for key, offset in last.items():
            met_ms = model.met_ms.get(offset, now_ms)
            if model.records[offset][1] is not None or now_ms < met_ms + RETENTION_MS:
                assert committed[offset][0] == key


@pytest.mark.slow
@given(steps=STEPS)
def test_readers_see_the_last_committed_value_of_every_key(steps: list[Step]) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        run = Run(folder / "prices-0")
        for name, *arguments in steps:
            getattr(run, str(name))(*arguments)
            run.check()
        run.roll()
        run.compact()
        run.check()
        run.restart()
        run.check()
    finally:
        shutil.rmtree(folder)
