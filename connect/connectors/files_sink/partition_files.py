"""PartitionFiles: the open files of one partition, and when they are committed.

All files of a partition are committed together, in a cut. A cut happens

    after   flush.size records
    before  a record whose schema is not that of the file it goes to
    before  a record that is rotate.interval.ms or more after the first one since the last cut
    before  a record that would exceed the maximum number of open files
    when    rotate.schedule.interval.ms has passed

All but the last depend only on the records: a task that reads the same records again writes the
same files.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from broker.model import TopicPartition
from connect.config_def import Settings
from connect.connectors.files_sink.commit_log import CommitLog, FinishedPart
from connect.connectors.files_sink.formats import FileFormat, FileWriter, file_format
from connect.connectors.files_sink.partitioners import (
    DEFAULT,
    Folder,
    Time,
    partitioner_name,
    read_folder,
    read_time,
    reads_field,
)
from connect.data import ConnectSchema
from connect.errors import ConnectError, DataError, RetriableError
from connect.records import SinkRecord

OPEN_FILES_MAX = 200
DEAD_LETTER_WAIT_S = 10


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The settings of files: location, format, and when they are committed."""

    directory: Path
    format: FileFormat
    folder: Folder
    time: Time
    flush_size: int
    rotate_interval_ms: int
    offset_digits: int
    one_file: bool  # for all records between two cuts


def read_layout(settings: Settings) -> FileLayout:
    """The layout; ConfigError for invalid or missing settings."""
    name = partitioner_name(settings.text("partitioner.class"))
    rotate_interval_ms = settings.integer("rotate.interval.ms")
    return FileLayout(
        Path(settings.text("directory")),
        file_format(settings.text("format").lower(), settings.text("compression.type").lower()),
        read_folder(settings),
        read_time(settings),
        settings.integer("flush.size"),
        rotate_interval_ms,
        settings.integer("filename.offset.zero.pad.width"),
        name == DEFAULT and rotate_interval_ms <= 0 and not reads_field(settings),
    )


@dataclass(slots=True)
class _OpenFile:
    writer: FileWriter
    part: Path
    name: str
    schema: ConnectSchema | None


@dataclass(slots=True)
class _Cut:
    """The files and records since the last cut."""

    files: dict[str, _OpenFile] = field(default_factory=dict)
    records: int = 0
    first_time_ms: int = 0


class PartitionFiles:
    """Writes the records of one partition, in the order of their offsets."""

    def __init__(self, layout: FileLayout, partition: TopicPartition) -> None:
        """Finishes or discards an interrupted commit."""
        self._layout = layout
        self._partition = partition
        self._log = CommitLog(layout.directory, partition)
        self._cut = _Cut()
        # All records before it are in committed files; None if unknown.
        self.committed = self._log.recover()
        self._next: int | None = None  # the offset after the last record taken
        self._reported: list[Future[None]] = []  # dead letters since the last cut

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to commit."""
        return self._cut.records == 0

    def write(self, record: SinkRecord, now_ms: int) -> None:
        """Writes a record; DataError if it cannot be written, without a partial write."""
        if not self.is_new(record):
            return
        layout = self._layout
        time_ms = layout.time(record, now_ms)
        folder = f"{record.topic}/{layout.folder(record, time_ms)}"
        if self._cut.records and self._must_cut_before(record, folder, time_ms):
            self.finish()
        cut = self._cut
        known = cut.files.get(folder)
        opened = known or self._open(record, folder)
        try:
            opened.writer.write(record)
        except DataError:
            if known is None:
                self._drop(folder)
            raise
        if cut.records == 0:
            cut.first_time_ms = time_ms
        cut.records += 1
        self._next = record.original_offset + 1
        if cut.records >= layout.flush_size:
            self.finish()

    def write_many(self, records: Sequence[SinkRecord], start: int) -> int:
        """Writes records at once if they are alike; returns how many, 0 if one by one."""
        layout, first = self._layout, records[start]
        if not layout.one_file or first.value is None or not self.is_new(first):
            return 0
        folder = f"{first.topic}/{layout.folder(first, 0)}"
        if self._cut.records and self._must_cut_before(first, folder, 0):
            self.finish()
        cut = self._cut
        some = records[start : start + layout.flush_size - cut.records]
        kinds = {(each.topic, id(each.value_schema), each.value is None) for each in some}
        if kinds != {(first.topic, id(first.value_schema), False)}:
            return 0
        known = cut.files.get(folder)
        try:
            (known or self._open(first, folder)).writer.write_many(some)
        except DataError:
            if known is None and folder in cut.files:
                self._drop(folder)
            return 0
        cut.records += len(some)
        self._next = some[-1].original_offset + 1
        if cut.records >= layout.flush_size:
            self.finish()
        return len(some)

    def skip(self, record: SinkRecord, reported: Future[None] | None = None) -> None:
        """Skips a record that is in no file, and remembers its dead letter."""
        if reported is not None:
            self._reported.append(reported)
        if self.is_new(record):
            self._next = record.original_offset + 1

    def finish(self) -> None:
        """Commits all open files."""
        assert self._next is not None, "there are files to commit"
        self._wait_for_dead_letters()
        files = self._cut.files.values()
        for opened in files:
            opened.writer.close()
        self._log.commit([FinishedPart(opened.part, opened.name) for opened in files], self._next)
        # Only now: after an earlier failure, no offsets may be committed.
        self._cut = _Cut()
        self.committed = self._next

    def is_new(self, record: SinkRecord) -> bool:
        """Whether the record is not committed yet; ConnectError if that is impossible."""
        offset = record.original_offset
        if self._next is not None:
            return offset >= self._next
        if self.committed is not None and offset < self.committed:
            raise ConnectError(
                f"files up to offset {self.committed} are committed, but offset {offset} was read",
                at=f'topic "{self._partition.topic}" partition {self._partition.partition}',
                hint="the topic was recreated: write to another directory, or reset the offsets "
                "of the connector",
            )
        return True

    def _wait_for_dead_letters(self) -> None:
        """Waits until every skipped record is in the dead letter queue."""
        while self._reported:
            try:
                self._reported[-1].result(DEAD_LETTER_WAIT_S)
            except TimeoutError:
                raise RetriableError("dead letters are not acknowledged yet") from None
            self._reported.pop()

    def discard(self) -> None:
        """Discards open files; their records will be read again."""
        for folder in list(self._cut.files):
            self._drop(folder)
        self._cut = _Cut()

    def _must_cut_before(self, record: SinkRecord, folder: str, time_ms: int) -> bool:
        cut, interval_ms = self._cut, self._layout.rotate_interval_ms
        if interval_ms > 0 and time_ms >= cut.first_time_ms + interval_ms:
            return True
        opened = cut.files.get(folder)
        if opened is None:
            return len(cut.files) >= OPEN_FILES_MAX
        return opened.schema is not record.value_schema and opened.schema != record.value_schema

    def _open(self, record: SinkRecord, folder: str) -> _OpenFile:
        layout, offset = self._layout, record.original_offset
        part = self._log.part(offset)
        digits = f"{offset:0{layout.offset_digits}d}"
        name = f"{record.topic}+{record.original_partition}+{digits}{layout.format.extension}"
        writer = layout.format.open(part, record.value_schema)
        opened = _OpenFile(writer, part, f"{folder}/{name}", record.value_schema)
        self._cut.files[folder] = opened
        return opened

    def _drop(self, folder: str) -> None:
        opened = self._cut.files.pop(folder)
        opened.writer.discard()
        opened.part.unlink(missing_ok=True)
