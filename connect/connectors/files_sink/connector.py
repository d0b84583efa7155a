"""FilesSink: writes records to files of JSON lines or Parquet, each record to exactly one."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from broker.clock import Clock, SystemClock
from broker.model import TopicPartition
from connect.api import SinkConnector, SinkTask
from connect.config_def import ConfigDef
from connect.connectors.files_sink.commit_log import CommitLog
from connect.connectors.files_sink.definition import DEFINITION
from connect.connectors.files_sink.partition_files import PartitionFiles, read_layout
from connect.errors import ConfigError, ConnectError, DataError
from connect.records import SinkRecord

ORIGIN = attrgetter("original_topic", "original_partition")


class FilesSinkConnector(SinkConnector):
    """Writes to one directory, with as many tasks as allowed."""

    def __init__(self) -> None:
        self._config: dict[str, str] = {}

    @classmethod
    def config(cls) -> ConfigDef:
        return DEFINITION

    def validate(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """Finds invalid partitioners and missing libraries before the start."""
        if any(found.errors for found in DEFINITION.validate(config)):
            return {}  # the definition reports the errors
        try:
            self.start(config)
        except ConfigError as error:
            named = (name for name in DEFINITION.keys if name in str(error))
            return {max(named, key=len, default="format"): [str(error)]}
        return {}

    def start(self, config: Mapping[str, str]) -> None:
        """Checks the whole configuration."""
        read_layout(DEFINITION.parse(config))
        self._config = dict(config)

    def local_paths(self, config: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
        """The directory of all files."""
        directory = config.get("directory", "").strip()
        return {"directory": [directory]} if directory else {}

    def task_class(self) -> type[SinkTask]:
        return FilesSinkTask

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        """Tasks share the directory: each has its own partitions."""
        return [self._config] * max_tasks

    def alter_offsets(
        self, config: Mapping[str, str], offsets: Mapping[TopicPartition, int | None]
    ) -> bool:
        """Updates the offsets in the directory; committed files remain."""
        directory = Path(DEFINITION.parse(config).text("directory"))
        for partition, offset in offsets.items():
            CommitLog(directory, partition).move(offset)
        return True


class FilesSinkTask(SinkTask):
    """Writes the files of its partitions.

    The offset to continue from is stored beside the files and committed together with them; the
    offsets of the consumer group lag behind.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        """The clock is used for the rotation schedule."""
        self._clock = clock or SystemClock()
        # By topic and partition; plain tuples are faster to create than TopicPartition.
        self._open: dict[tuple[str, int], PartitionFiles] = {}

    def start(self, config: Mapping[str, str]) -> None:
        settings = DEFINITION.parse(config)
        self._layout = read_layout(settings)
        self._schedule_ms = settings.integer("rotate.schedule.interval.ms")
        self._ignores_nulls = settings.text("behavior.on.null.values").lower() == "ignore"
        self._due_ms = self._next_due_ms()

    def open(self, partitions: Iterable[TopicPartition]) -> None:
        """Finishes interrupted commits, and continues after the last committed file."""
        for partition in partitions:
            try:
                files = PartitionFiles(self._layout, partition)
            except OSError as error:
                raise self._disk_error(error) from error
            self._open[partition] = files
            if files.committed is not None:
                self.context.offset(partition, files.committed)

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Writes the records, and commits files that are due."""
        now_ms = self._clock.now_ms()
        try:
            for place, run in groupby(records, ORIGIN):
                self._write_run(self._open[place], list(run), now_ms)
            if self._due_ms is not None and now_ms >= self._due_ms:
                self._finish_all()
                self._due_ms = self._next_due_ms()
        except OSError as error:
            raise self._disk_error(error) from error

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """The offsets in committed files; all offsets if no file is open."""
        committable: dict[TopicPartition, int] = {}
        for partition, offset in offsets.items():
            files = self._open.get(partition)
            if files is None:
                continue
            if files.is_empty:
                committable[partition] = offset
            elif files.committed is not None:
                committable[partition] = files.committed
        return committable

    def close(self, partitions: Iterable[TopicPartition]) -> None:
        """Discards open files: the next owner of the partitions writes them again."""
        for partition in partitions:
            files = self._open.pop(partition, None)
            if files is not None:
                files.discard()

    def stop(self) -> None:
        """Discards open files."""
        self.close([TopicPartition(*partition) for partition in self._open])

    def _finish_all(self) -> None:
        for files in self._open.values():
            if not files.is_empty:
                files.finish()

    def _write_run(self, files: PartitionFiles, run: Sequence[SinkRecord], now_ms: int) -> None:
        """Write records of one partition, many at once where possible."""
        start = 0
        while start < len(run):
            taken = files.write_many(run, start)
            if not taken:
                break
            start += taken
        for record in run[start:]:
            self._write(files, record, now_ms)

    def _write(self, files: PartitionFiles, record: SinkRecord, now_ms: int) -> None:
        if not files.is_new(record):
            return  # put again after a RetriableError
        try:
            if record.value is not None:
                files.write(record, now_ms)
            elif self._ignores_nulls:
                files.skip(record)
            else:
                hint = "set behavior.on.null.values=ignore to skip it"
                raise DataError("the record has no value", hint=hint)
        except DataError as error:
            files.skip(record, reported=self._refuse(record, error))

    def _refuse(self, record: SinkRecord, error: DataError) -> Future[None]:
        at = f'topic "{record.topic}" partition {record.partition} offset {record.offset}'
        reporter = self.context.errant_record_reporter
        if reporter is None:
            raise ConnectError(error.message, at=at, hint=error.hint) from error
        return reporter.report(record, DataError(error.message, at=at, hint=error.hint))

    def _disk_error(self, error: OSError) -> ConnectError:
        return ConnectError(
            f"cannot write files: {error.strerror}",
            at=str(error.filename or self._layout.directory),
            hint="no record is lost: restart the task when files can be written there",
        )

    def _next_due_ms(self) -> int | None:
        if self._schedule_ms <= 0:
            return None
        return (self._clock.now_ms() // self._schedule_ms + 1) * self._schedule_ms
