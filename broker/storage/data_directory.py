"""DataDirectory: all partition logs under one path, and the files they share."""

import logging
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from random import Random

from broker import concurrency, descriptors
from broker.clock import Clock
from broker.config import LONG_MAX, BrokerConfig, TopicConfig
from broker.errors import StorageError
from broker.files import FileSystem, OpenFiles
from broker.model import OpenFile, TopicPartition
from broker.storage import checkpoints
from broker.storage.cleaner import Cleaner
from broker.storage.context import LogContext
from broker.storage.flusher import Durable, Failed, Flusher, unanswered
from broker.storage.leader_epochs import read_epoch, write_epoch
from broker.storage.partition_checkpoint import (
    NOT_CLEANED,
    CheckpointWriter,
    PartitionCheckpoint,
    read_checkpoints,
)
from broker.storage.partition_log import PartitionLog
from broker.storage.recovery import Recovered, open_log
from broker.storage.retention import RetentionStep, apply_retention

LOGGER = logging.getLogger(__name__)
LOCK_FILE = ".lock"
FOLDER_DELETED = "-delete"
FOLDER_STRAY = "-stray"
LOGS_AT_ONCE_MAX = 200
RENAMED_AT_ONCE_MAX = 200
FOLDER_NAME_MAX = 200  # leaves room for an id and a suffix within the limit of file systems

Expected = Mapping[TopicPartition, tuple[bytes, TopicConfig]]


class DataDirectory:
    """Opens, creates and deletes logs; callers trigger housekeeping.

    All methods except housekeeping (`flush_due`, `apply_retention`, `compact_one`, `checkpoint`)
    are called under the lock; housekeeping acquires it for short steps and does its long work
    without it.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        config: BrokerConfig,
        clock: Clock,
        lock: concurrency.RLock,
        files: FileSystem | None = None,
        random: Random | None = None,
    ) -> None:
        """Opens nothing before `open`."""
        self.path = os.path.abspath(path)
        self.cluster_id = ""
        self.leader_epoch = 0  # in which this broker leads all partitions
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
            open_files=OpenFiles(descriptors.log_files_max(self._files.descriptors_max())),
            acknowledge_durable=self._durable,
            needs_flush=self._flusher.needs_flush,
            flush_soon=self._flusher.flush_soon,
            free_folder=self._free_folder,
        )
        self._files.make_room = self._release_files
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._discarded_folders: list[str] = []
        # Folders of deleted logs that are not renamed yet: there were too many at once.
        self._condemned_folders: dict[str, None] = {}
        self._lock_file: OpenFile | None = None
        self._checkpoint_writer = CheckpointWriter(self._files, self.path)
        self._checkpoint_is_stale = False  # it contains a deleted log
        self._checkpointing = concurrency.Lock()
        self._expiry_check_ms = 0  # the monotonic time of the next expiration of producers
        # Up to which offset each partition is compacted; the content of the cleaner's checkpoint.
        self.cleaned_offsets: dict[TopicPartition, int] = {}
        self._cleaner = Cleaner(lock, clock, config, self._logs, self.cleaned_offsets)
        self._worker: concurrency.ThreadPoolExecutor | None = None
        self._closing = False

    @property
    def files(self) -> FileSystem:
        """The disk."""
        return self._files

    def space(self) -> tuple[int, int]:
        """The total and the free bytes of the disk."""
        return self._files.space(self.path)

    # --- logs ---

    def get(self, topic_partition: TopicPartition) -> PartitionLog | None:
        """The log of a partition, or None."""
        return self._logs.get(topic_partition)

    def log(self, topic_partition: TopicPartition) -> PartitionLog:
        """The log of a partition; KeyError if there is none."""
        return self._logs[topic_partition]

    def logs(self) -> list[PartitionLog]:
        """All logs."""
        return list(self._logs.values())

    def create(
        self, topic_partition: TopicPartition, topic_id: bytes, config: TopicConfig
    ) -> PartitionLog:
        """Create an empty log; its files are created by the first append."""
        assert topic_partition not in self._logs, f"{topic_partition} already exists"
        log = self._new_log(topic_partition, topic_id, config)
        log.leader_epoch = self.leader_epoch
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
        """Delete a log: its folder is renamed now, and removed by housekeeping.

        Of many logs at once only some are renamed now, the others by housekeeping or when a new log
        needs the name. After a crash before that, their folders are strays.
        """
        log = self._logs.pop(topic_partition)
        self._flusher.forget(log)
        log.release()
        self.cleaned_offsets.pop(topic_partition, None)
        self._checkpoint_is_stale = True
        if log.segments:
            self._condemned_folders[log.folder] = None
            if len(self._discarded_folders) < RENAMED_AT_ONCE_MAX:
                self._free_folder(log.folder)

    def _free_folder(self, folder: str) -> None:
        if folder in self._condemned_folders:
            aside = self._set_aside(os.path.basename(folder), FOLDER_DELETED)
            del self._condemned_folders[folder]
            self._discarded_folders.append(aside)

    def _set_aside(self, name: str, suffix: str) -> str:
        """Rename a directory so that it no longer belongs to a partition."""
        identifier = uuid.UUID(int=self._random.getrandbits(128)).hex
        new = os.path.join(self.path, f"{name[:FOLDER_NAME_MAX]}.{identifier}{suffix}")
        try:
            self._files.rename(os.path.join(self.path, name), new)
        except OSError as error:
            raise StorageError(f"cannot rename: {error.strerror}", at=new) from error
        return new

    def _release_files(self) -> bool:
        """Close cached files of logs when there are no free descriptors."""
        # Without waiting: the thread that holds the lock may wait for the calling thread.
        if not self._lock.acquire(blocking=False):
            return False
        try:
            return self._context.open_files.release_some()
        finally:
            self._lock.release()

    def when_durable(
        self, log: PartitionLog, offset: int, callback: Durable, failed: Failed = unanswered
    ) -> None:
        """Call back when all records below an offset are durable, as the settings require.

        This is immediate, unless durability is fsync or flush.messages is due; then it is after the
        flush. If the disk fails, `failed` is called instead.
        """
        if log.is_written(offset - 1):
            callback()
        else:
            self._flusher.when_durable(log, offset, callback, failed)

    # --- background work ---

    def in_background(self, job: Callable[[], object]) -> None:
        """Run a job in a thread, without the lock; jobs run one after another."""
        if self._worker is None:
            self._worker = concurrency.ThreadPoolExecutor(1, thread_name_prefix="log-worker")
        self._worker.submit(_guarded, job)

    def in_steps(self, steps: Iterable[Callable[[], object]]) -> None:
        """Run steps in a thread, each under the lock, with pauses for others."""

        def run() -> None:
            for step in steps:
                if self._closing:
                    return
                with self._lock:
                    step()

        self.in_background(run)

    # --- opening and closing ---

    def open(
        self, expected: Expected, *, progress: Callable[[int, int], None] = lambda *_: None
    ) -> None:
        """Open the expected logs; `progress` gets the opened and the total number."""
        self._files.make_folder(self.path)
        self._take_lock()
        is_new = self._read_meta()
        names = self._files.list_folder(self.path)
        clean = checkpoints.CLEAN_SHUTDOWN in names
        if clean:
            self._files.unlink(os.path.join(self.path, checkpoints.CLEAN_SHUTDOWN))
            self._files.fsync_directory(self.path)
        self.recovered = Recovered(clean=clean)
        folders = {name for name, size in names.items() if size < 0}
        self._clear_folders(folders, expected)
        topic_ids = {tp: topic_id for tp, (topic_id, _) in expected.items()}
        found = read_checkpoints(self._files, self.path, topic_ids)
        self.cleaned_offsets.update(
            (tp, item.cleaned_offset)
            for tp, item in found.items()
            if item.cleaned_offset != NOT_CLEANED
        )
        for done, (topic_partition, (topic_id, config)) in enumerate(expected.items(), start=1):
            log = self._new_log(topic_partition, topic_id, config)
            if str(topic_partition) in folders:
                checkpoint = found[topic_partition]
                open_log(
                    log,
                    start_offset=checkpoint.start_offset,
                    recovery_point=None if clean else checkpoint.recovery_point,
                    summary=self.recovered,
                    has_id=checkpoint.has_id,
                )
            self._logs[topic_partition] = log
            progress(done, len(expected))
        self._choose_epoch(has_lost=not is_new and not clean)
        if self._durable:
            self._make_durable()
            self._flusher.start()
        self.checkpoint()

    def _take_lock(self) -> None:
        path = os.path.join(self.path, LOCK_FILE)
        try:
            self._lock_file = self._files.lock(path)
        except BlockingIOError:
            raise StorageError(
                "the data directory is in use by another broker",
                at=path,
                hint="connect to it (SQL: `millstream sql URL`), stop it, or choose "
                "another directory",
            ) from None

    def _read_meta(self) -> bool:
        """Read the ids of cluster and directory; returns whether they are new."""
        meta = checkpoints.read_meta(self._files, self.path)
        broker_id = str(self.config.broker_id)
        is_new = not meta
        if is_new:
            # Nothing in a directory is durable before its own name is.
            self._files.fsync_parents(self.path)
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
        return is_new

    def _new_id(self) -> str:
        return checkpoints.id_to_text(self._random.getrandbits(128).to_bytes(16, "big"))

    def _clear_folders(self, folders: set[str], expected: Expected) -> None:
        """Remove deleted logs; rename folders that belong to no topic, or to an older one."""
        topic_ids = {str(tp): topic_id for tp, (topic_id, _) in expected.items()}
        for name in sorted(folders):
            path = os.path.join(self.path, name)
            if name.endswith(FOLDER_DELETED):
                self._files.remove_folder(path)
                self.recovered.leftovers_removed += 1
                continue
            found = checkpoints.read_topic_id(self._files, path)
            if found is None or name.endswith(FOLDER_STRAY):
                continue  # not a log, or without a topic id
            if found != topic_ids.get(name):
                folders.discard(name)
                aside = self._set_aside(name, FOLDER_STRAY)
                self.recovered.stray_folders.append(aside)
                LOGGER.warning("%s belongs to no topic and was renamed to %s", path, aside)

    def _choose_epoch(self, *, has_lost: bool) -> None:
        """Use a new epoch if the end of a log may be lost, before any append."""
        known = read_epoch(self._files, self.path)
        epoch = max(known, self.recovered.latest_epoch)
        if has_lost or self.recovered.logs_truncated:
            epoch += 1
        if epoch != known:
            write_epoch(self._files, self.path, epoch)
        self.leader_epoch = epoch
        for log in self._logs.values():
            log.leader_epoch = epoch

    def _make_durable(self) -> None:
        """Flush what a crash left in the page cache, before readers see it."""
        self._flusher.flush_all(
            log for log in self._logs.values() if log.durable_offset < log.end_offset
        )

    def close(self) -> None:
        """Flush all logs and write the clean-shutdown marker. Called without the lock."""
        if self._lock_file is None:
            return
        self._closing = True
        if self._worker is not None:
            self._worker.shutdown(cancel_futures=True)
        self._flusher.stop()
        with self._lock:
            clean = True
            for log in self._logs.values():
                clean = self._seal(log) and clean
        self._flusher.flush_all(self._logs.values())
        with self._lock:
            for log in self._logs.values():
                clean = clean and log.is_durable
                log.release()
        self.remove_discarded(delay_ms=0)
        try:
            self.checkpoint()
            if clean:
                path = os.path.join(self.path, checkpoints.CLEAN_SHUTDOWN)
                self._files.write_file(path, checkpoints.CLEAN_SHUTDOWN_CONTENT)
        except OSError as error:
            LOGGER.error("cannot stop cleanly: %s; the next start will check all logs", error)
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
        """Flush logs that flush.ms or a sealed segment makes due; remove deleted files."""
        self._flusher.flush(lambda log: log.flushing.is_due())
        self._remove_deleted_records()
        self.remove_discarded()
        if self._checkpoint_is_stale:
            self.checkpoint()

    def apply_retention(self) -> None:
        """Remove the segments beyond the limits of age or size."""
        self._apply_retention_to(self.logs())

    def _apply_retention_to(self, logs: list[PartitionLog]) -> None:
        waiting = [log for log in logs if self._apply_retention(log) is RetentionStep.CHECKPOINT]
        if not waiting:
            return
        try:
            self.checkpoint()
        except OSError as error:
            LOGGER.warning("cannot remove segments without a checkpoint: %s", error)
            return
        for log in waiting:
            self._apply_retention(log)

    def _remove_deleted_records(self) -> None:
        with self._lock:
            logs = list(self._context.starts_later)
            self._context.starts_later.clear()
        self._apply_retention_to(logs)

    def _apply_retention(self, log: PartitionLog) -> RetentionStep:
        """Remove all due segments of a log, unless a step fails or must wait."""
        try:
            step = self._retention_step(log)
            while step in (RetentionStep.MORE, RetentionStep.FLUSH):
                if step is RetentionStep.FLUSH:
                    self._flusher.flush_all([log])
                before, step = step, self._retention_step(log)
                if before is step is RetentionStep.FLUSH:
                    break  # it cannot be flushed now
        except (StorageError, OSError) as error:
            LOGGER.warning("cannot remove segments of %s: %s", log.topic_partition, error)
            return RetentionStep.DONE
        return step

    def _retention_step(self, log: PartitionLog) -> RetentionStep:
        with self._lock:
            if not self._is_current(log):
                return RetentionStep.DONE
            return apply_retention(log, self._clock.now_ms())

    def compact_one(self) -> bool:
        """Compact the dirtiest log; False if none needs it."""
        compacted = self._cleaner.clean_one()
        if compacted:
            self.checkpoint()
        return compacted

    def remove_discarded(self, *, delay_ms: int | None = None) -> None:
        """Remove renamed files and folders whose delay is over."""
        self._rename_condemned()
        with self._lock:
            now_ms = self._clock.monotonic_ms()
            discarded = self._context.discarded
            due = [item for item in discarded if item[0] <= now_ms or delay_ms == 0]
            if due:
                gone = set(due)
                discarded[:] = [item for item in discarded if item not in gone]
            folders, self._discarded_folders = self._discarded_folders, []
        for _, path in due:
            self._files.unlink(path)
        for path in folders:
            self._files.remove_folder(path)

    def _rename_condemned(self) -> None:
        while self._condemned_folders:
            with self._lock:
                for folder in list(islice(self._condemned_folders, RENAMED_AT_ONCE_MAX)):
                    try:
                        self._free_folder(folder)
                    except StorageError as error:
                        LOGGER.warning("cannot remove a deleted log now: %s", error)
                        return

    def checkpoint(self) -> None:
        """Write the recovery points and start offsets of the logs; expire producers.

        Raises OSError; the previous checkpoints are then unchanged and still valid.
        """
        with self._checkpointing:  # an older one must not overwrite a newer one
            self._checkpoint_is_stale = False
            now_ms = self._clock.monotonic_ms()
            expiration_ms = self._expiration_ms(now_ms)
            found: dict[TopicPartition, PartitionCheckpoint] = {}
            for logs in _some_at_a_time(self.logs()):
                with self._lock:
                    for log in logs:
                        log.producers.expire(now_ms, expiration_ms)
                    found |= self._checkpoint_of(log for log in logs if self._is_current(log))
            self._checkpoint_writer.write(found)
            for logs in _some_at_a_time(self.logs()):
                with self._lock:
                    for log in logs:
                        _note_checkpoint(log, found.get(log.topic_partition))

    def _expiration_ms(self, now_ms: int) -> int:
        """The age at which producers expire in this round; most rounds expire none."""
        if now_ms < self._expiry_check_ms:
            return LONG_MAX
        self._expiry_check_ms = now_ms + self.config.producer_id_expiration_check_interval_ms
        return self.config.producer_id_expiration_ms

    def _is_current(self, log: PartitionLog) -> bool:
        return self.get(log.topic_partition) is log

    def _checkpoint_of(
        self, logs: Iterable[PartitionLog]
    ) -> dict[TopicPartition, PartitionCheckpoint]:
        return {
            log.topic_partition: PartitionCheckpoint(
                log.topic_id,
                log.recovery_point,
                log.start_offset,
                self.cleaned_offsets.get(log.topic_partition, NOT_CLEANED),
                starts_inside_segment=log.start_offset > log.segments[0].base_offset,
            )
            for log in logs
            if log.segments
        }


def _note_checkpoint(log: PartitionLog, written: PartitionCheckpoint | None) -> None:
    """Store the recovery point that is on disk now; the log may be newer than it."""
    if written is not None and written.topic_id == log.topic_id:
        log.checkpointed_offset = min(written.recovery_point, log.end_offset)


def _guarded(job: Callable[[], object]) -> None:
    try:
        job()
    except Exception:
        LOGGER.exception("a background task failed")


def _some_at_a_time(logs: list[PartitionLog]) -> Iterator[list[PartitionLog]]:
    """Slices of a list: a loop over all logs releases the lock in between."""
    for start in range(0, len(logs), LOGS_AT_ONCE_MAX):
        yield logs[start : start + LOGS_AT_ONCE_MAX]
