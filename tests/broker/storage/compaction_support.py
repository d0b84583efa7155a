"""What the tests of compaction and retention share: a log that is cleaned, and readers of it."""

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path

from broker.batch.codec import control_batch, decode_records, encode_batch, split_batches
from broker.batch.layout import BatchHeader
from broker.batch.records import Record
from broker.clock import ManualClock
from broker.config import BrokerConfig, TopicConfig
from broker.files import FileSystem
from broker.model import FileSlice, OpenFile, ProducerIdentity, TopicPartition
from broker.storage.cleaner import Cleaner
from broker.storage.context import LogContext
from broker.storage.partition_log import PartitionLog
from broker.storage.recovery import Recovered, open_log

TP = TopicPartition("prices", 0)
NOW_MS = 1_700_000_000_000
Pair = tuple[bytes | None, bytes | None]


class QuickFiles(FileSystem):
    """Files that nobody waits for: these tests never lose power."""

    def fsync(self, file: OpenFile) -> None:
        """Nothing."""

    def fsync_directory(self, path: str) -> None:
        """Nothing."""


@dataclass
class Cleaned:
    """One log of a compacted topic, with its cleaner; it can be opened again and again."""

    folder: Path
    files: FileSystem = field(default_factory=QuickFiles)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    broker: BrokerConfig = field(default_factory=BrokerConfig)
    settings: dict[str, object] = field(default_factory=dict)
    cleaned_offsets: dict[TopicPartition, int] = field(default_factory=dict)
    sequences: dict[int, int] = field(default_factory=dict)
    opened: bool = False
    log: PartitionLog = field(init=False)
    cleaner: Cleaner = field(init=False)

    def __post_init__(self) -> None:
        """Open it."""
        defaults: dict[str, object] = {
            "cleanup_policy": ("compact",),
            "min_cleanable_dirty_ratio": 0.0,
            "delete_retention_ms": 1000,
            "message_timestamp_after_max_ms": (1 << 63) - 1,
        }
        self.settings = defaults | self.settings
        self.open()

    @property
    def config(self) -> TopicConfig:
        """The topic's settings."""
        return replace(self.broker.topic_defaults(), **self.settings)  # type: ignore[arg-type]

    def open(self) -> None:
        """Open the log as after a crash, every batch checked."""
        start_offset = self.log.start_offset if self.opened else 0
        self.opened = True
        context = LogContext(clock=self.clock, files=self.files)
        self.log = PartitionLog(
            context, str(self.folder), TP, topic_id=bytes(16), config=self.config
        )
        open_log(self.log, start_offset=start_offset, recovery_point=0, summary=Recovered())
        self.cleaner = Cleaner(
            threading.RLock(), self.clock, self.broker, {TP: self.log}, self.cleaned_offsets
        )

    def append(
        self,
        *pairs: Pair,
        producer_id: int = -1,
        transactional: bool = False,
        compression: str = "none",
        timestamp_ms: int | None = None,
    ) -> int:
        """Append a batch; the first offset."""
        identity, sequence = ProducerIdentity(), -1
        if producer_id >= 0:
            identity = ProducerIdentity(producer_id, 0)
            sequence = self.sequences.get(producer_id, 0)
            self.sequences[producer_id] = sequence + len(pairs)
        now_ms = self.clock.now_ms()
        data = encode_batch(
            [(key, value, (), timestamp_ms or now_ms) for key, value in pairs],
            producer=identity,
            base_sequence=sequence,
            transactional=transactional,
            compression=compression,
        )
        appended = self.log.append(memoryview(bytearray(data)), origin="client", now_ms=now_ms)
        assert not appended.duplicate
        return appended.base_offset

    def end(self, producer_id: int, *, commit: bool) -> int:
        """End a producer's transaction; the marker's offset."""
        data = control_batch(
            commit=commit,
            producer=ProducerIdentity(producer_id, 0),
            coordinator_epoch=0,
            timestamp_ms=self.clock.now_ms(),
        )
        return self.log.append(
            memoryview(bytearray(data)), origin="coordinator", now_ms=self.clock.now_ms()
        ).base_offset

    def compact(self) -> int:
        """Roll, then compact until nothing is left to do; how many rounds it took."""
        self.log.roll()
        return self.compact_sealed()

    def compact_sealed(self) -> int:
        """Compact until nothing is left to do."""
        rounds = 0
        while self.cleaner.clean_one():
            rounds += 1
            assert rounds < 50
        return rounds

    def batches(self) -> list[tuple[BatchHeader, list[Record]]]:
        """All batches of the log."""
        found = []
        log = self.log
        offset = log.start_offset
        while offset < log.end_offset:
            fetched = log.read(offset, bytes_max=1 << 20, offset_limit=log.end_offset)
            records = fetched.records
            data = records.read() if isinstance(records, FileSlice) else records
            if not data:
                break
            view = memoryview(data)
            for position, header in split_batches(view):
                kept = [r for r in decode_records(view, position) if r.offset >= log.start_offset]
                found.append((header, kept))
            assert fetched.next_offset > offset
            offset = fetched.next_offset
        return found

    def records(self) -> dict[int, Pair]:
        """All records but markers, by offset."""
        return {
            record.offset: (record.key, record.value)
            for header, records in self.batches()
            if not header.is_control
            for record in records
        }

    def committed(self) -> dict[int, Pair]:
        """The records a read_committed consumer sees, by offset."""
        log = self.log
        waiting = sorted(
            log.aborted_transactions(log.start_offset, log.last_stable_offset),
            key=lambda item: item.first_offset,
        )
        aborting: set[int] = set()
        found: dict[int, Pair] = {}
        for header, records in self.batches():
            if header.base_offset >= log.last_stable_offset:
                break
            while waiting and waiting[0].first_offset <= header.last_offset:
                aborting.add(waiting.pop(0).producer_id)
            if header.is_control:
                if records and records[0].key == b"\0\0\0\0":
                    aborting.discard(header.producer_id)
            elif not (header.is_transactional and header.producer_id in aborting):
                found |= {record.offset: (record.key, record.value) for record in records}
        return found

    def markers(self) -> list[int]:
        """Offsets of the markers."""
        return [
            r.offset for header, records in self.batches() if header.is_control for r in records
        ]
