"""The log against a model: whatever happens, what was flushed stays and reads are exact."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from broker.batch.codec import control_batch, decode_records, encode_batch
from broker.batch.layout import read_header
from broker.batch.records import Record, Row
from broker.clock import ManualClock
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.files import OpenFiles
from broker.model import AbortedTransaction, ProducerIdentity
from broker.storage.compaction import begin_round, compact
from broker.storage.context import LogContext
from broker.storage.partition_log import PartitionLog
from broker.storage.recovery import Recovered, open_log
from broker.storage.segment import Segment
from tests.broker.storage.faults import Crash, FaultyFileSystem
from tests.broker.storage.support import (
    NOW_MS,
    TOPIC_ID,
    TP,
    as_bytes,
    batch,
    read_bytes,
    topic_config,
)

PRODUCERS = st.integers(1, 3)


@dataclass
class Entry:
    """One batch as the model remembers it."""

    base_offset: int
    next_offset: int
    data: bytes
    timestamp_ms: int
    producer_id: int = -1
    sequence: int = -1
    ends: str = ""  # "commit" or "abort" for a marker
    sent: bytes = b""  # as it was before compaction
    records: list[Record] = field(default_factory=list)


@dataclass
class Model:
    """What the log should hold."""

    entries: list[Entry] = field(default_factory=list)
    start_offset: int = 0
    end_offset: int = 0

    def cut(self, end_offset: int) -> None:
        """Keep what is below an offset."""
        self.entries = [entry for entry in self.entries if entry.next_offset <= end_offset]
        self.end_offset = end_offset

    def open_transactions(self) -> dict[int, int]:
        """First offsets of transactions without marker."""
        found: dict[int, int] = {}
        for entry in self.entries:
            if entry.ends:
                found.pop(entry.producer_id, None)
            elif entry.producer_id >= 0:
                found.setdefault(entry.producer_id, entry.base_offset)
        return found

    def aborted(self) -> list[tuple[AbortedTransaction, int]]:
        """Aborted transactions that a reader could meet, with the offsets of their markers."""
        opened: dict[int, int] = {}
        last: dict[int, int] = {}
        found = []
        for entry in self.entries:
            if entry.ends:
                first = opened.pop(entry.producer_id, None)
                shown = last.get(entry.producer_id, 0) > self.start_offset
                if first is not None and entry.ends == "abort" and shown:
                    aborted = AbortedTransaction(entry.producer_id, first)
                    found.append((aborted, entry.base_offset))
            elif entry.producer_id >= 0:
                opened.setdefault(entry.producer_id, entry.base_offset)
                last[entry.producer_id] = entry.next_offset
        return found

    def next_sequence(self, producer_id: int) -> int | None:
        """What a producer must send next; None when nothing is known of it."""
        own = [e for e in self.entries if e.producer_id == producer_id and not e.ends]
        if own:
            return own[-1].sequence + own[-1].next_offset - own[-1].base_offset
        return None


def _entry_of(data: bytes, **facts: Any) -> Entry:
    header = read_header(data)
    facts.setdefault("sent", data)
    return Entry(
        header.base_offset,
        header.next_offset,
        data,
        header.max_timestamp,
        records=decode_records(data) if header.record_count else [],
        **facts,
    )


def _rows(key: int, count: int, size: int, later_ms: int) -> list[Row]:
    return [(bytes([key + n]), b"v" * size, (), NOW_MS + later_ms) for n in range(count)]


class LogMachine(RuleBasedStateMachine):
    """One partition's log, its disk and its crashes."""

    @initialize(
        interval=st.sampled_from([0, 150, 4096]), segment=st.sampled_from([600, 1500, 9000])
    )
    def set_up(self, interval: int, segment: int) -> None:
        """A new log."""
        self.root = tempfile.mkdtemp(prefix="log-model-")
        self.files = FaultyFileSystem()
        self.clock = ManualClock(NOW_MS)
        self.config = topic_config(
            index_interval_bytes=interval,
            segment_bytes=segment,
            file_delete_delay_ms=0,
            cleanup_policy=("compact", "delete"),
        )
        self.model = Model()
        self.recovery_point: int | None = 0
        self.checkpoint_start = 0
        self.open()

    def open(self) -> None:
        """Open the log as a new process would."""
        context = LogContext(
            clock=self.clock,
            files=self.files,
            random=Random(0),
            open_files=OpenFiles(2),
            loaded_indexes=OpenFiles(2),
            acknowledge_durable=True,
        )
        folder = os.path.join(self.root, str(TP))
        self.log = PartitionLog(context, folder, TP, topic_id=TOPIC_ID, config=self.config)
        self.summary = Recovered()
        open_log(
            self.log,
            start_offset=self.checkpoint_start,
            recovery_point=self.recovery_point,
            summary=self.summary,
        )
        self.log.flush()  # readers see what a crash left: it must not go any more

    def teardown(self) -> None:
        """Remove the files."""
        if hasattr(self, "root"):
            self.log.release()
            shutil.rmtree(self.root)

    # --- writing ---

    def _append(self, data: memoryview, **facts: Any) -> None:
        sent = bytes(data)
        origin = "coordinator" if facts.get("ends") else "client"
        appended = self.log.append(data, origin=origin, now_ms=NOW_MS)  # type: ignore[arg-type]
        assert appended.base_offset == self.model.end_offset
        assert not appended.duplicate
        entry = _entry_of(bytes(data), sent=sent, **facts)
        assert entry.next_offset == appended.last_offset + 1
        self.model.entries.append(entry)
        self.model.end_offset = entry.next_offset

    @rule(
        key=st.integers(0, 5),
        count=st.integers(1, 4),
        size=st.integers(0, 80),
        later_ms=st.integers(-50, 50),
    )
    def append(self, key: int, count: int, size: int, later_ms: int) -> None:
        """Records of nobody in particular."""
        self._append(memoryview(bytearray(encode_batch(_rows(key, count, size, later_ms)))))

    @rule(producer_id=PRODUCERS, count=st.integers(1, 3))
    def append_to_transaction(self, producer_id: int, count: int) -> None:
        """Records of a transaction, which begins with them if none is open."""
        sequence = self.model.next_sequence(producer_id) or 0
        self._append(
            batch(
                count,
                producer=ProducerIdentity(producer_id, 0),
                sequence=sequence,
                transactional=True,
            ),
            producer_id=producer_id,
            sequence=sequence,
        )

    @rule(producer_id=PRODUCERS, commit=st.booleans())
    def end_transaction(self, producer_id: int, commit: bool) -> None:
        """A marker."""
        data = control_batch(
            commit=commit,
            producer=ProducerIdentity(producer_id, 0),
            coordinator_epoch=0,
            timestamp_ms=NOW_MS,
        )
        ends = "commit" if commit else "abort"
        self._append(memoryview(bytearray(data)), producer_id=producer_id, ends=ends)

    def _knows(self, producer_id: int) -> bool:
        """Whether the log must know a producer: its last records are still there."""
        own = [e for e in self.model.entries if e.producer_id == producer_id and not e.ends]
        return bool(own) and own[-1].base_offset >= self.log.segments[0].base_offset

    @rule(producer_id=PRODUCERS)
    def append_again(self, producer_id: int) -> None:
        """The last batch of a producer once more: it is known."""
        own = [e for e in self.model.entries if e.producer_id == producer_id and not e.ends]
        if self._knows(producer_id):
            data = memoryview(bytearray(own[-1].sent))
            appended = self.log.append(data, origin="client", now_ms=NOW_MS)
            assert appended.duplicate
            assert appended.base_offset == own[-1].base_offset
            assert appended.last_offset == own[-1].next_offset - 1

    @rule(producer_id=PRODUCERS, gap=st.integers(1, 5))
    def append_out_of_order(self, producer_id: int, gap: int) -> None:
        """A sequence that leaves some out is refused."""
        expected = self.model.next_sequence(producer_id)
        if expected is not None and self._knows(producer_id):
            data = batch(
                producer=ProducerIdentity(producer_id, 0),
                sequence=expected + gap,
                transactional=True,
            )
            with pytest.raises(BrokerError) as caught:
                self.log.append(data, origin="client", now_ms=NOW_MS)
            assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(room_bytes=st.integers(0, 120))
    def append_to_full_disk(self, room_bytes: int) -> None:
        """No room for a batch: it is refused, and nothing of it stays."""
        self.files.room_bytes = room_bytes
        with pytest.raises(StorageError):
            self.log.append(batch(value=b"x" * 120), origin="client", now_ms=NOW_MS)
        self.files.room_bytes = None

    @rule()
    def roll(self) -> None:
        """A new segment."""
        self.log.roll()

    @rule()
    def flush(self) -> None:
        """Everything on the disk."""
        self.log.flush()
        assert self.log.high_watermark == self.model.end_offset

    @rule()
    def checkpoint(self) -> None:
        """Write down recovery point and start offset."""
        self.recovery_point = self.log.recovery_point
        self.checkpoint_start = self.log.start_offset

    # --- removing ---

    @precondition(lambda self: self.log.high_watermark > self.log.start_offset)
    @rule(data=st.data())
    def delete_records(self, data: st.DataObject) -> None:
        """Move the start offset."""
        offset = data.draw(st.integers(self.log.start_offset, self.log.high_watermark))
        assert self.log.delete_records_before(offset) == offset
        self.model.start_offset = offset

    @precondition(lambda self: len(self.log.segments) > 1)
    @rule()
    def retain(self) -> None:
        """The first segment goes, as retention would have it."""
        if self.log.segments[1].base_offset <= self.log.high_watermark:
            self.log.delete_segments(self.log.segments[:1])
            self.model.start_offset = self.log.start_offset

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        """Cut the end off."""
        offset = data.draw(st.integers(self.log.start_offset, self.log.end_offset))
        self.log.truncate_to(offset)
        holding = [entry for entry in self.model.entries if entry.next_offset > offset]
        boundary = min([offset, *(entry.base_offset for entry in holding)])
        self.model.cut(max(boundary, self.log.segments[0].base_offset if self.log.segments else 0))
        self.model.start_offset = min(self.model.start_offset, self.model.end_offset)
        if self.recovery_point is not None:
            self.recovery_point = min(self.recovery_point, self.model.end_offset)
        self.checkpoint_start = min(self.checkpoint_start, self.model.start_offset)

    @precondition(lambda self: len(self.log.segments) > 2)
    @rule(data=st.data())
    def merge_segments(self, data: st.DataObject) -> None:
        """Put a copy in the place of sealed segments, as compaction does."""
        sealed = self.log.segments[:-1]
        first = data.draw(st.integers(0, len(sealed) - 1))
        last = data.draw(st.integers(first, len(sealed) - 1))
        self._merge(sealed[first : last + 1])

    def _merge(self, old: list[Segment]) -> None:
        new = Segment.create(
            self.log.context, self.log.folder, old[0].base_offset, suffix=".cleaned"
        )
        for segment in old:
            for position, header in segment.headers():
                new.append(segment.read_batch(position, header), [header])
            for aborted in segment.aborted():
                new.add_aborted(aborted)
        new.seal()
        files = self.log.context.files
        for file in new.files_to_flush():
            if not isinstance(file, str) or os.path.exists(file):
                files.fsync(files.open(file) if isinstance(file, str) else file)
        new.rename(".swap")
        files.fsync_directory(new.folder)
        self.log.replace_segments(old, [new])

    @precondition(lambda self: len(self.log.segments) > 1)
    @rule()
    def compact(self) -> None:
        """Only the last record per key is sure to stay, and no other appears."""
        before = self._visible(self.model.entries)
        self._compact()
        self._learn()
        after = self._visible(self.model.entries)
        assert after.items() <= before.items()
        last = {record.key: offset for offset, record in before.items()}
        assert set(last.values()) <= after.keys()

    def _compact(self) -> None:
        log = self.log
        undecided = [s.base_offset for s in log.segments if s.next_offset > log.last_stable_offset]
        task = begin_round(
            log,
            first_dirty_offset=log.start_offset,
            first_uncleanable_offset=min([log.segments[-1].base_offset, *undecided]),
            now_ms=NOW_MS,
        )
        if task.segments:
            compact(task, contextlib.nullcontext(), map_bytes_max=1 << 16)

    def _visible(self, entries: list[Entry]) -> dict[int, Record]:
        """What a reader of committed records sees, by offset, open transactions included."""
        aborted = self.model.aborted()
        return {
            record.offset: record
            for entry in entries
            for record in entry.records
            if entry.next_offset > self.log.start_offset
            and not entry.ends
            and not any(
                transaction.producer_id == entry.producer_id
                and transaction.first_offset <= entry.base_offset < marker_offset
                for transaction, marker_offset in aborted
            )
        }

    def _learn(self) -> None:
        """Take the batches from the log, and what is known of them from before."""
        known = {entry.base_offset: entry for entry in self.model.entries}
        first = self.log.segments[0].base_offset if self.log.segments else self.log.end_offset
        learnt = [entry for entry in self.model.entries if entry.next_offset <= first]
        for segment in self.log.segments:
            for position, header in segment.headers():
                data = segment.read_batch(position, header)
                old = known.get(header.base_offset)
                facts: dict[str, Any] = {}
                if old is not None:
                    facts = {
                        "producer_id": old.producer_id,
                        "sequence": old.sequence,
                        "ends": old.ends,
                        "sent": old.sent,
                    }
                learnt.append(_entry_of(data, **facts))
        self.model.entries = learnt

    # --- stopping ---

    @rule()
    def restart(self) -> None:
        """Stop in order: nothing is scanned, nothing is lost."""
        self.log.close()
        self.recovery_point = None
        self.checkpoint_start = self.log.start_offset
        self.open()
        assert self.summary.segments_scanned == 0
        self.recovery_point = self.log.recovery_point

    @rule()
    def kill(self) -> None:
        """The process ends, the machine does not: everything written is there."""
        self.log.release()
        self._reopen_after_crash(lowest=self.model.end_offset)

    @rule(data=st.data())
    def lose_power(self, data: st.DataObject) -> None:
        """Only what was flushed is sure to be there."""
        lowest = self.log.durable_offset
        self.log.release()
        self.files.lose_power(lambda low, high: data.draw(st.integers(low, high)))
        self._reopen_after_crash(lowest=lowest)

    @rule(
        writes=st.integers(0, 12),
        action=st.sampled_from(["append", "roll", "flush", "merge", "compact", "delete", "close"]),
    )
    def die_midway(self, writes: int, action: str) -> None:
        """The process ends in the middle of something."""
        self.files.crash_after_writes = writes
        size = len(self.model.entries)
        with contextlib.suppress(Crash):
            self._do(action)
        self.files.forget_faults()
        del self.model.entries[size:]  # written or not: nobody was told
        lowest = self.model.entries[-1].next_offset if self.model.entries else 0
        lowest = max(lowest, self.log.segments[0].base_offset if self.log.segments else 0)
        self.log.release()
        self._reopen_after_crash(lowest=lowest)

    def _do(self, action: str) -> None:
        actions: dict[str, Callable[[], object]] = {
            "append": lambda: self.append(0, 2, 70, 0),
            "compact": self._compact,
            "roll": self.log.roll,
            "flush": self.log.flush,
            "close": self.log.close,
            "merge": lambda: self._merge(self.log.segments[:-1]),
            "delete": lambda: self.log.delete_segments(self.log.segments[:1]),
        }
        if action in ("merge", "compact", "delete") and len(self.log.segments) < 2:
            return
        if action == "delete" and self.log.segments[1].base_offset > self.log.high_watermark:
            return
        actions[action]()

    def _reopen_after_crash(self, *, lowest: int) -> None:
        self.recovery_point = self.recovery_point or 0
        end_offset = self.model.end_offset
        self.open()
        found = self.log.end_offset
        assert found >= lowest
        if found > end_offset:
            # A batch that nobody was told of: the model learns it from the log.
            assert found == end_offset + 2
        if self.log.start_offset == found and found > max(
            (e.next_offset for e in self.model.entries), default=0
        ):
            self.model.entries.clear()
        self.model.cut(found)
        self.model.start_offset = self.log.start_offset
        before = self._visible(self.model.entries)
        self._learn()
        for offset, record in self._visible(self.model.entries).items():
            assert before.get(offset, record) == record

    @rule(data=st.data())
    def spoil_index(self, data: st.DataObject) -> None:
        """An index file lies, is cut, or is gone; after a stop in order."""
        self.log.close()
        self.checkpoint_start = self.log.start_offset
        self.recovery_point = None
        names = sorted(
            name
            for name in (os.listdir(self.log.folder) if self.log.segments else [])
            if name.endswith((".index", ".timeindex"))
        )
        if names:
            path = os.path.join(self.log.folder, data.draw(st.sampled_from(names)))
            with open(path, "rb") as file:
                content = bytearray(file.read())
            how = data.draw(st.sampled_from(["remove", "cut", "flip"]))
            if how == "remove":
                os.unlink(path)
            elif content:
                at = data.draw(st.integers(0, len(content) - 1))
                if how == "cut":
                    del content[at:]
                else:
                    content[at] ^= 1 << data.draw(st.integers(0, 7))
                with open(path, "wb") as file:
                    file.write(content)
        self.open()
        self.recovery_point = self.log.recovery_point

    # --- reading ---

    @rule(data=st.data(), bytes_max=st.integers(0, 1500))
    def read(self, data: st.DataObject, bytes_max: int) -> None:
        """Whole batches from an offset on, within limits."""
        offset = data.draw(st.integers(self.log.start_offset, self.log.end_offset))
        limit = data.draw(st.integers(self.log.start_offset, self.log.end_offset))
        fetched = self.log.read(offset, bytes_max=bytes_max, offset_limit=limit)
        got = as_bytes(fetched.records)
        following = [e for e in self.model.entries if e.next_offset > offset]
        expected = b""
        for entry in following:
            if entry.next_offset > limit or len(expected) == len(got):
                break
            expected += entry.data
        assert got == expected
        first = following[0] if following else None
        assert len(got) <= max(bytes_max, len(first.data) if first else 0)
        if offset < limit and first is not None and first.next_offset <= limit:
            assert got
        if got:
            last = [e for e in following if e.base_offset < fetched.next_offset][-1]
            assert last.next_offset <= fetched.next_offset <= limit

    @rule(later_ms=st.integers(-60, 60))
    def look_up_time(self, later_ms: int) -> None:
        """The first record of a time or later."""
        timestamp_ms = NOW_MS + later_ms
        expected = next(
            (
                (record.offset, record.timestamp_ms)
                for entry in self.model.entries
                for record in entry.records
                if record.timestamp_ms >= timestamp_ms and record.offset >= self.log.start_offset
            ),
            None,
        )
        assert self.log.offset_for_timestamp(timestamp_ms) == expected

    @rule(data=st.data())
    def look_up_aborted(self, data: st.DataObject) -> None:
        """Aborted transactions within a range, all of them and not many more."""
        first = data.draw(st.integers(self.log.start_offset, self.log.end_offset))
        last = data.draw(st.integers(first, self.log.end_offset))
        got = self.log.aborted_transactions(first, last)
        for aborted, marker_offset in self.model.aborted():
            if marker_offset >= first and aborted.first_offset < last:
                # Compaction may have taken the transaction's first batches away.
                assert any(
                    item.producer_id == aborted.producer_id
                    and item.first_offset <= aborted.first_offset
                    for item in got
                )

    @invariant()
    def offsets_agree(self) -> None:
        """Offsets are the model's, in their order."""
        if not hasattr(self, "log"):
            return
        log = self.log
        assert log.end_offset == self.model.end_offset
        assert log.start_offset == self.model.start_offset
        assert log.start_offset <= log.high_watermark <= log.end_offset
        assert log.last_stable_offset <= log.high_watermark

    @rule()
    def read_everything(self) -> None:
        """From start to end, byte for byte."""
        expected = b"".join(
            entry.data for entry in self.model.entries if entry.next_offset > self.log.start_offset
        )
        assert read_bytes(self.log) == expected

    @rule()
    def transactions_agree(self) -> None:
        """The open transactions are the model's, as far as the log still shows their beginning."""
        shown = self.model.entries[0].base_offset if self.model.entries else self.log.end_offset
        found = dict(self.log.producers.open_transactions)
        for producer_id, first in self.model.open_transactions().items():
            if first >= max(shown, self.log.start_offset):
                assert found[producer_id] == first


LogModelTest = pytest.mark.slow(pytest.mark.timeout(3600)(LogMachine.TestCase))
LogModelTest.settings = settings(
    max_examples=settings().max_examples, stateful_step_count=50, deadline=None
)


def test_offsets_that_compaction_and_truncation_emptied_are_not_given_again() -> None:
    machine = LogMachine()
    machine.set_up(interval=0, segment=9000)
    try:
        for _ in range(2):
            machine.append(key=0, count=2, size=10, later_ms=0)
        machine.roll()
        machine.append(key=9, count=1, size=0, later_ms=0)
        machine.flush()
        machine.compact()
        machine.log.truncate_to(3)
        assert (machine.log.end_offset, read_bytes(machine.log)) == (2, b"")
        machine.log.close()
        machine.recovery_point = None
        machine.open()
        assert machine.log.end_offset == 2
    finally:
        machine.teardown()
