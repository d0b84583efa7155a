"""What the tests of the log share: batches, a log in a folder, reading all of it back."""

import threading
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from broker.batch.codec import decode_records, encode_batch
from broker.batch.records import Record
from broker.clock import ManualClock
from broker.config import BrokerConfig, TopicConfig
from broker.files import FileSystem
from broker.model import FileSlice, ProducerIdentity, TopicPartition
from broker.storage.data_directory import DataDirectory
from broker.storage.partition_log import Appended, Origin, PartitionLog
from tests.broker.storage.faults import QuickFileSystem

TP = TopicPartition("orders", 0)
TOPIC_ID = bytes(range(16))
NOW_MS = 1_700_000_000_000


def batch(  # noqa: PLR0913  (what a batch says, by name)
    count: int = 1,
    *,
    value: bytes = b"value",
    timestamp_ms: int = NOW_MS,
    producer: ProducerIdentity | None = None,
    sequence: int = -1,
    transactional: bool = False,
    compression: str = "none",
) -> memoryview:
    """A batch that can be appended."""
    rows = [(b"key", value, (), timestamp_ms) for _ in range(count)]
    return memoryview(
        bytearray(
            encode_batch(
                rows,
                producer=producer or ProducerIdentity(),
                base_sequence=sequence,
                transactional=transactional,
                compression=compression,
            )
        )
    )


@dataclass
class Disk:
    """A data directory that can be opened again and again."""

    path: Path
    files: FileSystem = field(default_factory=QuickFileSystem)
    clock: ManualClock = field(default_factory=lambda: ManualClock(NOW_MS))
    durability: str = "kafka"
    settings: dict[str, object] = field(default_factory=dict)
    directory: DataDirectory | None = None

    def open(self, **settings: object) -> PartitionLog:
        """Open the directory with one partition, and return its log."""
        self.settings.update(settings)
        config = BrokerConfig(durability=self.durability)
        self.directory = DataDirectory(
            self.path,
            config=config,
            clock=self.clock,
            lock=threading.RLock(),
            files=self.files,
            random=Random(0),
        )
        topic = replace(config.topic_defaults(), **self.settings)  # type: ignore[arg-type]
        self.directory.open({TP: (TOPIC_ID, topic)})
        return self.directory.log(TP)

    def close(self) -> None:
        """Stop in order."""
        assert self.directory is not None
        self.directory.close()

    def crash(self) -> None:
        """Stop without a word: files as they are, nothing written any more."""
        assert self.directory is not None
        self.directory._flusher.stop()
        for log in self.directory.logs():
            log.release()
        self.directory._lock_file = None

    @property
    def folder(self) -> Path:
        """Where the partition's files are."""
        return self.path / str(TP)

    def file(self, offset: int, kind: str) -> Path:
        """One of the partition's files."""
        return self.folder / f"{offset:020d}{kind}"

    def names(self, kind: str) -> list[str]:
        """Names of the partition's files of a kind, in order."""
        return sorted(path.name for path in self.folder.glob(f"*{kind}"))


def append(log: PartitionLog, data: memoryview, origin: Origin = "client") -> Appended:
    """Append at the usual time."""
    return log.append(data, origin=origin, now_ms=NOW_MS)


def as_bytes(records: FileSlice | bytes) -> bytes:
    """The bytes of what was read."""
    return records if isinstance(records, bytes) else records.read()


def read_bytes(log: PartitionLog, offset: int | None = None, *, limit: int | None = None) -> bytes:
    """Everything from an offset on."""
    position = log.start_offset if offset is None else offset
    limit = log.end_offset if limit is None else limit
    found = []
    while position < limit:
        fetched = log.read(position, bytes_max=1 << 20, offset_limit=limit)
        data = as_bytes(fetched.records)
        if not data:
            break
        found.append(data)
        position = fetched.next_offset
    return b"".join(found)


def read_records(log: PartitionLog) -> list[Record]:
    """All records from the start offset on."""
    data = memoryview(read_bytes(log))
    found: list[Record] = []
    position = 0
    while position < len(data):
        found += decode_records(data, position)
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    return [record for record in found if record.offset >= log.start_offset]


def topic_config(**settings: object) -> TopicConfig:
    """A topic's settings over the defaults."""
    return replace(BrokerConfig().topic_defaults(), **settings)  # type: ignore[arg-type]
