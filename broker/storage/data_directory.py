"""DataDirectory: all partition logs under one path, and the files they share."""

import fcntl
import logging
import os
import resource
import threading
import uuid
from collections.abc import Callable, Mapping
from random import Random

from broker.clock import Clock
from broker.config import BrokerConfig, TopicConfig
from broker.errors import StorageError
from broker.model import OpenFile, TopicPartition
from broker.storage import checkpoints
from broker.storage.cleaner import Cleaner
from broker.storage.context import OPEN_FILES_MAX, LogContext
from broker.storage.files import FileSystem, OpenFiles
from broker.storage.flusher import Durable, Failed, Flusher
from broker.storage.partition_log import PartitionLog
from broker.storage.recovery import Recovered, open_log
from broker.storage.retention import apply_retention

LOGGER = logging.getLogger(__name__)
LOCK_FILE = ".lock"
FOLDER_DELETED = "-delete"
FOLDER_STRAY = "-stray"
FOLDER_NAME_MAX = 200  # leaves room for an id and a suffix within what file systems take

Expected = Mapping[TopicPartition, tuple[bytes, TopicConfig]]


def _unanswered(_: StorageError) -> None:
    """Who gives no other way to hear of a failure gives up when its own time is over."""


class DataDirectory:
    """Opens, creates and deletes logs; housekeeping is done by whoever calls for it.

    Everything but housekeeping (`flush_due`, `apply_retention`, `compact_one`, `checkpoint`) is
    called under the lock; that takes it for short steps and does its long work without.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        config: BrokerConfig,
        clock: Clock,
        lock: threading.RLock,
        files: FileSystem | None = None,
        random: Random | None = None,
    ) -> None:
        """Nothing is touched before `open`."""
        self.path = os.path.abspath(path)
        self.cluster_id = ""
        self.recovered = Recovered()
        self.config = config
        self._clock = clock
        self._lock = lock
        self._files = files or FileSystem()
        self._random = random or Random()
        self._durable = config.durability == "fsync"
        self._flusher = Flusher(lock, self._files)
        self._context = LogContext(
            clock=clock,
            files=self._files,
            random=self._random,
            open_files=OpenFiles(_open_files_max()),
            acknowledge_durable=self._durable,
            needs_flush=self._flusher.needs_flush,
        )
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._discarded_folders: list[str] = []
        self._lock_file: OpenFile | None = None
        self._checkpointing = threading.Lock()
        self._checkpointed: dict[str, dict[TopicPartition, int]] = {}
        # How far compaction got, by partition; what the cleaner's checkpoint says.
        self.cleaned_offsets: dict[TopicPartition, int] = {}
        self._cleaner = Cleaner(lock, clock, config)

    # --- logs ---

    def get(self, topic_partition: TopicPartition) -> PartitionLog | None:
        """The log of a partition, if there is one."""
        return self._logs.get(topic_partition)

    def log(self, topic_partition: TopicPartition) -> PartitionLog:
        """The log of a partition; KeyError when there is none."""
        return self._logs[topic_partition]

    def logs(self) -> list[PartitionLog]:
        """All logs."""
        return list(self._logs.values())

    def create(
        self, topic_partition: TopicPartition, topic_id: bytes, config: TopicConfig
    ) -> PartitionLog:
        """A new, empty log; its files are made at the first append."""
        assert topic_partition not in self._logs, f"{topic_partition} is there already"
        log = self._new_log(topic_partition, topic_id, config)
        self._logs[topic_partition] = log
        return log

    def _new_log(
        self, topic_partition: TopicPartition, topic_id: bytes, config: TopicConfig
    ) -> PartitionLog:
        folder = os.path.join(self.path, str(topic_partition))
        return PartitionLog(
            self._context, folder, topic_partition, topic_id=topic_id, config=config
        )

    def delete(self, topic_partition: TopicPartition) -> None:
        """Forget a log; its folder is renamed now and removed by housekeeping."""
        log = self._logs.pop(topic_partition)
        self._flusher.forget(log)
        log.release()
        self.cleaned_offsets.pop(topic_partition, None)
        if log.segments:
            self._discarded_folders.append(self._set_aside(str(topic_partition), FOLDER_DELETED))

    def _set_aside(self, name: str, suffix: str) -> str:
        """Rename a folder so that it is no partition's any more."""
        identifier = uuid.UUID(int=self._random.getrandbits(128)).hex
        new = os.path.join(self.path, f"{name[:FOLDER_NAME_MAX]}.{identifier}{suffix}")
        try:
            self._files.rename(os.path.join(self.path, name), new)
        except OSError as error:
            raise StorageError(f"cannot rename: {error.strerror}", at=new) from error
        return new

    def when_durable(
        self, log: PartitionLog, offset: int, callback: Durable, failed: Failed = _unanswered
    ) -> None:
        """Call back once all records below an offset count as written.

        At once, unless durability is fsync; then when they are on the disk. If the disk fails,
        `failed` is called in place of it.
        """
        if self._durable:
            self._flusher.when_durable(log, offset, callback, failed)
        else:
            callback()

    # --- opening and closing ---

    def open(
        self, expected: Expected, *, progress: Callable[[int, int], None] = lambda *_: None
    ) -> None:
        """Open the logs that should be there; `progress` hears how many of how many are done."""
        self._files.make_folder(self.path)
        self._take_lock()
        self._read_meta()
        names = self._files.list_folder(self.path)
        clean = checkpoints.CLEAN_SHUTDOWN in names
        if clean:
            self._files.unlink(os.path.join(self.path, checkpoints.CLEAN_SHUTDOWN))
            self._files.fsync_directory(self.path)
        self.recovered = Recovered(clean=clean)
        folders = {name for name, size in names.items() if size < 0}
        recovery_points = self._read_offsets(checkpoints.RECOVERY_POINTS)
        start_offsets = self._read_offsets(checkpoints.START_OFFSETS)
        self.cleaned_offsets = self._read_offsets(checkpoints.CLEANED_OFFSETS)
        self._clear_folders(folders, expected)
        for done, (topic_partition, (topic_id, config)) in enumerate(expected.items(), start=1):
            log = self._new_log(topic_partition, topic_id, config)
            if str(topic_partition) in folders:
                open_log(
                    log,
                    start_offset=start_offsets.get(topic_partition, 0),
                    recovery_point=None if clean else recovery_points.get(topic_partition, 0),
                    summary=self.recovered,
                )
            self._logs[topic_partition] = log
            progress(done, len(expected))
        if self._durable:
            self._make_durable()
            self._flusher.start()
        self.checkpoint()

    def _take_lock(self) -> None:
        path = os.path.join(self.path, LOCK_FILE)
        file = OpenFile(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StorageError(
                "the data directory is in use by another broker",
                at=path,
                hint="use it at its address (of SQL: `millstream sql URL`), stop it, or choose "
                "another directory",
            ) from None
        self._lock_file = file

    def _read_meta(self) -> None:
        meta = checkpoints.read_meta(self._files, self.path)
        broker_id = str(self.config.broker_id)
        if not meta:
            meta = {
                "version": "1",
                "cluster.id": self._new_id(),
                "node.id": broker_id,
                "directory.id": self._new_id(),
            }
            checkpoints.write_meta(self._files, self.path, meta)
        found = meta.get("node.id", meta.get("broker.id", broker_id))
        if found != broker_id:
            raise StorageError(
                f"the data directory belongs to broker {found}, this is broker {broker_id}",
                at=os.path.join(self.path, checkpoints.META_PROPERTIES),
                hint="set broker.id, or choose another log.dirs",
            )
        self.cluster_id = meta.get("cluster.id", "")

    def _new_id(self) -> str:
        return checkpoints.id_to_text(self._random.getrandbits(128).to_bytes(16, "big"))

    def _read_offsets(self, name: str) -> dict[TopicPartition, int]:
        return checkpoints.read_offsets(self._files, self.path, name)

    def _clear_folders(self, folders: set[str], expected: Expected) -> None:
        """Remove deleted logs; set those aside that belong to no topic, or to an older one."""
        topic_ids = {str(tp): topic_id for tp, (topic_id, _) in expected.items()}
        for name in sorted(folders):
            path = os.path.join(self.path, name)
            if name.endswith(FOLDER_DELETED):
                self._files.remove_folder(path)
                self.recovered.leftovers_removed += 1
                continue
            found = checkpoints.read_topic_id(self._files, path)
            if found is None or name.endswith(FOLDER_STRAY):
                continue  # nothing of ours, or without a say
            if found != topic_ids.get(name):
                folders.discard(name)
                aside = self._set_aside(name, FOLDER_STRAY)
                self.recovered.stray_folders.append(aside)
                LOGGER.warning("%s belongs to no topic, it is now %s", path, aside)

    def _make_durable(self) -> None:
        """What a crash left may not be on the disk yet, and readers are about to see it."""
        self._flusher.flush_all(
            log for log in self._logs.values() if log.durable_offset < log.end_offset
        )

    def close(self) -> None:
        """Flush all logs and leave the marker of a stop in order. Called without the lock."""
        if self._lock_file is None:
            return
        self._flusher.stop()
        with self._lock:
            clean = True
            for log in self._logs.values():
                clean = self._seal(log) and clean
            self._flusher.flush_all(self._logs.values())
            for log in self._logs.values():
                clean = clean and log.failure is None
                log.release()
        self.remove_discarded(delay_ms=0)
        try:
            self.checkpoint()
            if clean:
                path = os.path.join(self.path, checkpoints.CLEAN_SHUTDOWN)
                self._files.write_file(path, checkpoints.CLEAN_SHUTDOWN_CONTENT)
        except OSError as error:
            LOGGER.error("cannot stop in order: %s; the next start will look at all logs", error)
        self._flusher.stop()
        self._lock_file = None

    def _seal(self, log: PartitionLog) -> bool:
        try:
            log.seal()
        except StorageError as error:
            LOGGER.error("%s", error)
            return False
        return True

    # --- housekeeping ---

    def flush_due(self) -> None:
        """Flush what flush.ms or a rolled segment asks for; remove what was deleted."""
        self._flusher.flush(PartitionLog.flush_is_due)
        self.remove_discarded()

    def apply_retention(self) -> None:
        """Remove the segments that are too old or too many."""
        for log in self.logs():
            with self._lock:
                if self.get(log.topic_partition) is not log:
                    continue
                try:
                    apply_retention(log, self._clock.now_ms())
                except (StorageError, OSError) as error:
                    LOGGER.warning("cannot remove segments of %s: %s", log.topic_partition, error)

    def compact_one(self) -> bool:
        """Compact the log that needs it most; False when none does."""
        compacted = self._cleaner.clean_one(self)
        if compacted:
            self.checkpoint()
        return compacted

    def remove_discarded(self, *, delay_ms: int | None = None) -> None:
        """Remove files and folders that were renamed for it and whose delay is over."""
        with self._lock:
            now_ms = self._clock.monotonic_ms()
            discarded = self._context.discarded
            due = [item for item in discarded if item[0] <= now_ms or delay_ms == 0]
            discarded[:] = [item for item in discarded if item not in set(due)]
            folders, self._discarded_folders = self._discarded_folders, []
        for _, path in due:
            self._files.unlink(path)
        for path in folders:
            self._files.remove_folder(path)

    def checkpoint(self) -> None:
        """Write down how far the logs are flushed and where they start; forget old producers.

        Raises OSError; what was written down before stands, and is still true.
        """
        with self._lock:
            logs = self.logs()
            now_ms = self._clock.now_ms()
            for log in logs:
                log.producers.expire(now_ms, self.config.producer_id_expiration_ms)
            tables = {
                checkpoints.RECOVERY_POINTS: {
                    log.topic_partition: log.recovery_point for log in logs if log.segments
                },
                checkpoints.START_OFFSETS: {
                    log.topic_partition: log.start_offset
                    for log in logs
                    if log.segments and log.start_offset > log.segments[0].base_offset
                },
                checkpoints.CLEANED_OFFSETS: dict(self.cleaned_offsets),
            }
        with self._checkpointing:
            for name, offsets in tables.items():
                if self._checkpointed.get(name) != offsets:
                    checkpoints.write_offsets(self._files, self.path, name, offsets)
                    self._checkpointed[name] = offsets


def _open_files_max() -> int:
    """Half of what the process may have open: sockets need the rest."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        OPEN_FILES_MAX
        if soft == resource.RLIM_INFINITY
        else max(min(OPEN_FILES_MAX, soft // 2), 16)
    )
