"""Mutations: defects of the past, and others, that tests switch on to see whether they are found.

Each is a small change of the product, made inside `with`. Those with a number are defects that
users met or that reading found; the others are invented. `found_in` is a seed that finds it.
"""

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from broker.client.accumulator import Accumulator
from broker.client.record_consumer import Consumer
from broker.client.sender import Sender
from broker.coordinator import transaction
from broker.coordinator.consumer_group import ConsumerGroup
from broker.coordinator.group import ClassicGroup
from broker.coordinator.housekeeping import Housekeeping
from broker.coordinator.internal_topics import InternalLog
from broker.coordinator.transactions import TransactionCoordinator
from broker.errors import ErrorCode
from broker.files import FileSystem, NotOpened
from broker.handlers import metadata
from broker.handlers.fetch import _Wait
from broker.storage import (
    compaction,
    data_directory,
    flushing,
    partition_checkpoint,
    producer_state,
    recovery,
    retention,
)
from broker.storage.data_directory import DataDirectory
from broker.storage.flusher import Flusher
from broker.storage.flushing import FlushTicket
from broker.storage.offset_map import OffsetMap
from broker.storage.partition_log import PartitionLog
from broker.storage.producer_state import ProducerStates
from broker.storage.segment import SWAP, Segment
from broker.timers import Timers
from tests.millstream.simulation.mutation import mutation


@mutation(
    "1: checkpoints are kept by name, not by topic id",
    needs=("topics", "end after an answer"),
    found_in=374,
)
def checkpoints_by_name() -> Iterator[None]:
    def read(files: FileSystem, folder: str, topic_ids: Any) -> Any:
        found = partition_checkpoint._read(files, folder) or {}
        nothing = partition_checkpoint.PartitionCheckpoint()
        return {tp: found.get(tp, nothing) for tp in topic_ids}

    never = property(lambda storage: False, lambda storage, value: None)
    with (
        patch.object(data_directory, "read_checkpoints", read),
        patch.object(DataDirectory, "_checkpoint_is_stale", never, create=True),
    ):
        yield


@mutation("9: a flush does not fsync the folder", needs=("producer", "power loss"), found_in=4)
def no_folder_fsync() -> Iterator[None]:
    def sync(ticket: FlushTicket, files: FileSystem) -> None:
        for file in ticket.files:
            files.fsync(files.open(file) if isinstance(file, str) else file)

    with patch.object(FlushTicket, "sync", sync):
        yield


@mutation(
    "10: a file that cannot be opened counts as a failed fsync",
    needs=("producer", "scarce descriptors"),
    found_in=118,
)
def descriptors_fail_logs() -> Iterator[None]:
    def postpone(flusher: Flusher, ticket: FlushTicket, error: NotOpened) -> None:
        flusher._failed(ticket.log, error)

    with patch.object(Flusher, "_postpone", postpone):
        yield


@mutation("16: a housekeeping thread ends at the first error", found_in=7)
def unguarded_housekeeping() -> Iterator[None]:
    with patch.object(Housekeeping, "_guarded", lambda self, job: job()):
        yield


@mutation(
    "17: transactions time out by the wall clock",
    needs=("transactions", "clock back", "long absence"),
    found_in=121,
)
def wall_clock_timeouts() -> Iterator[None]:
    clock_class = TransactionCoordinator
    real = clock_class.__init__

    def init(self: Any, **given: Any) -> None:
        real(self, **{**given, "clock": _WallClock(given["clock"])})

    with patch.object(clock_class, "__init__", init):
        yield


class _WallClock:
    """Takes the time of day for monotonic time."""

    def __init__(self, clock: Any) -> None:
        self.now_ms = clock.now_ms
        self.monotonic_ms = clock.now_ms
        self.wait = clock.wait


@mutation("a forgotten fsync of the data", needs=("producer", "power loss"), found_in=4)
def no_fsync() -> Iterator[None]:
    with patch.object(FlushTicket, "sync", lambda ticket, files: None):
        yield


@mutation("recovery cuts off the last good batch", needs=("producer", "kill"), found_in=4)
def short_recovery() -> Iterator[None]:
    real = recovery._check_chunk

    def check(segment: Any, producers: Any, epochs: Any, chunk: memoryview) -> int:
        return real(segment, producers, epochs, chunk[:-1])

    with patch.object(recovery, "_check_chunk", check):
        yield


@mutation(
    "the high watermark does not wait for the disk", needs=("producer", "power loss"), found_in=4
)
def early_watermark() -> Iterator[None]:
    real = PartitionLog._advance

    def advance(log: PartitionLog) -> None:
        log.durable_offset = max(log.durable_offset, log.end_offset)
        real(log)

    with patch.object(PartitionLog, "_advance", advance):
        yield


@mutation(
    "records that are sent again are written again", needs=("producer", "disconnect"), found_in=8
)
def no_duplicates_found() -> Iterator[None]:
    with (
        patch.object(producer_state, "_find_duplicate", lambda entry, header: None),
        patch.object(producer_state, "_check_sequence", lambda entry, header: None),
    ):
        yield


@mutation("the state of producers is lost in a restart", needs=("producer", "kill"), found_in=4)
def lost_producers() -> Iterator[None]:
    empty = staticmethod(lambda *_: ProducerStates())
    with (
        patch.object(recovery, "load_producers", empty),
        patch.object(recovery, "_apply", lambda *_: True),
    ):
        yield


@mutation(
    "a new transactional producer does not fence the old one", needs=("transactions",), found_in=49
)
def no_fence() -> Iterator[None]:
    with patch.object(transaction, "_next_epoch", lambda found, _: (max(found.epoch, 0), -1)):
        yield


@mutation("readers see open transactions", needs=("transactions", "audit"), found_in=23)
def unstable_reads() -> Iterator[None]:
    def first_unstable(self: ProducerStates, high_watermark: int) -> int:
        return high_watermark

    with patch.object(ProducerStates, "first_unstable_offset", first_unstable):
        yield


@mutation(
    "11: a bad record in an internal topic stops the start",
    needs=("bad record", "kill"),
    found_in=4,
)
def fatal_bad_records() -> Iterator[None]:
    def skip(log: InternalLog, partition: int, offset: int, reason: object) -> None:
        raise ValueError(f"{log.topic}-{partition} offset {offset}: {reason}")

    with patch.object(InternalLog, "skip", skip):
        yield


@mutation("13: unknown topics are made one by one, under the lock", needs=("unknown",), found_in=2)
def topics_one_by_one() -> Iterator[None]:
    def make(state: Any, request: Any) -> Any:
        for asked in request.topics or ():
            if metadata._is_missing(state, asked):
                state.topics.create(asked.name, partition_count=1)
        return metadata.NOTHING_MADE

    with patch.object(metadata, "_make_topics", make):
        yield


@mutation(
    "16: the session of a KIP-848 member never ends",
    needs=("consumer reader", "long absence"),
    found_in=68,
)
def endless_sessions() -> Iterator[None]:
    with patch.object(ConsumerGroup, "next_deadline_ms", lambda self: None):
        yield


@mutation(
    "16: markers are written to all partitions when one fails",
    needs="failing partition",
    found_in=122,
)
def markers_again() -> Iterator[None]:
    real = TransactionCoordinator._try_again

    def try_again(self: Any, entry: Any, error: Exception, step: Any) -> None:
        entry.markers = {}
        real(self, entry, error, step)

    with patch.object(TransactionCoordinator, "_try_again", try_again):
        yield


@mutation("16: a timer that fails is not repeated", needs="overdue transaction", found_in=61)
def timers_end() -> Iterator[None]:
    def repeat(self: Timers, interval_ms: int, callback: Callable[[], None]) -> None:
        def run() -> None:
            callback()
            self.schedule(interval_ms, run)

        self.schedule(interval_ms, run)

    def abort(self: Any, entry: Any) -> None:
        self._store(entry, transaction.fence(entry.transaction, now_ms=self._clock.now_ms()))
        self._finish(entry)

    with (
        patch.object(Timers, "repeat", repeat),
        patch.object(TransactionCoordinator, "_abort_overdue", abort),
    ):
        yield


@mutation(
    "a file is replaced without an fsync of its folder", needs=("topics", "power loss"), found_in=9
)
def no_fsync_after_rename() -> Iterator[None]:
    real = FileSystem.write_file

    def write_file(files: FileSystem, path: str, data: bytes, *, durable: bool = True) -> None:
        with patch.object(files, "fsync_directory", lambda path: None):
            real(files, path, data, durable=durable)

    with patch.object(FileSystem, "write_file", write_file):
        yield


@mutation(
    "an fsync counts for what was written after it began",
    needs=("producer", "power loss after an answer"),
    found_in=303,
)
def generous_fsync() -> Iterator[None]:
    real = PartitionLog.flushed

    def flushed(log: PartitionLog, ticket: FlushTicket) -> None:
        log.durable_offset = log.end_offset
        real(log, ticket)

    with patch.object(PartitionLog, "flushed", flushed):
        yield


@mutation(
    "the recovery point is ahead of the disk", needs="power loss after a checkpoint", found_in=25
)
def early_recovery_point() -> Iterator[None]:
    with patch.object(PartitionLog, "recovery_point", property(lambda log: log.end_offset)):
        yield


@mutation("recovery does not see holes", needs="power loss in a roll", found_in=57)
def unseen_holes() -> Iterator[None]:
    with patch.object(recovery, "_is_hole", lambda *_: False):
        yield


@mutation("compaction drops the last value of a key", needs=("topics",), found_in=1)
def lost_last_values() -> Iterator[None]:
    real = OffsetMap.last_offsets

    def last_offsets(self: Any, keys: Any) -> Iterator[int]:
        return (offset + 1 for offset in real(self, keys))

    with patch.object(OffsetMap, "last_offsets", last_offsets):
        yield


@mutation("compaction drops tombstones at once", needs=("topics",), found_in=1)
def early_horizon() -> Iterator[None]:
    cleaning = compaction._GroupCleaning
    with patch.object(cleaning, "_new_horizon_ms", lambda self: self._task.now_ms):
        yield


@mutation("compaction forgets whom a tombstone deletes", needs=("topics",), found_in=3)
def resurrection() -> Iterator[None]:
    real = compaction._keys

    def keys(columns: Any) -> list[bytes | None]:
        found = zip(real(columns), columns.value_starts, strict=True)
        return [None if start < 0 else key for key, start in found]

    with patch.object(compaction, "_keys", keys):
        yield


@mutation(
    "compacted segments are not on the disk when they count",
    needs=("topics", "power loss"),
    found_in=71,
)
def hasty_compaction() -> Iterator[None]:
    def make_ready(task: Any, cleaned: Segment) -> None:
        cleaned.close()
        cleaned.rename(SWAP)

    with patch.object(compaction, "_make_ready", make_ready):
        yield


@mutation("retention removes one segment too many", needs=("retention by time",), found_in=5)
def greedy_retention() -> Iterator[None]:
    real = retention.expired_segments

    def expired(log: PartitionLog, now_ms: int) -> list[Segment]:
        found = real(log, now_ms)
        return log.segments[: min(len(found) + 1, len(log.segments) - 1)] if found else found

    with patch.object(retention, "expired_segments", expired):
        yield


@mutation("retention removes nothing", needs=("retention by size",), found_in=8)
def no_retention() -> Iterator[None]:
    with patch.object(retention, "expired_segments", lambda log, now_ms: []):
        yield


@mutation(
    "segments go without a checkpoint",
    needs=("retention", "power loss in a removal"),
    found_in=657,
)
def hasty_retention() -> Iterator[None]:
    real = retention._ending_before

    def ending_before(log: PartitionLog, gone: list[Segment], offset: int) -> list[Segment]:
        return real(log, gone, log.end_offset)

    with patch.object(retention, "_ending_before", ending_before):
        yield


@mutation("deleted records are back after a restart", needs=("topics", "stop"), found_in=75)
def lost_start_offsets() -> Iterator[None]:
    real = recovery.open_log

    def open_log(log: PartitionLog, *, start_offset: int, **given: Any) -> None:
        real(log, start_offset=0, **given)

    with patch.object(data_directory, "open_log", open_log):
        yield


@mutation("the folder of a deleted topic keeps its name", needs=("topics",), found_in=14)
def kept_folders() -> Iterator[None]:
    def free_folder(self: Any, folder: str) -> None:
        self._condemned_folders.pop(folder, None)

    with patch.object(DataDirectory, "_free_folder", free_folder):
        yield


@mutation(
    "coordinators answer before the record is on the disk",
    needs=("producer", "reader", "power loss after an answer"),
    found_in=137,
)
def early_answers() -> Iterator[None]:
    with patch.object(
        InternalLog, "answer_when_durable", lambda self, written, answer, failed=None: answer
    ):
        yield


@mutation(
    "a transaction is complete before its markers are on the disk",
    needs=("transactions", "power loss after an answer"),
    found_in=303,
)
def early_completion() -> Iterator[None]:
    def when_all_durable(self: Any, written: Any, callback: Callable[[], None]) -> None:
        callback()

    with patch.object(TransactionCoordinator, "_when_all_durable", when_all_durable):
        yield


@mutation("aborted transactions are not written down", needs=("transactions",), found_in=4)
def lost_aborts() -> Iterator[None]:
    with patch.object(Segment, "add_aborted", lambda self, aborted: None):
        yield


@mutation(
    "the coordinator forgets generations", needs=("reader 1", "freeze", "producer"), found_in=7
)
def forgotten_generations() -> Iterator[None]:
    def check(self: Any, *identity: Any, transactional: bool) -> ErrorCode:
        return ErrorCode.NONE

    with (
        patch.object(ClassicGroup, "check_commit", check),
        patch.object(ConsumerGroup, "check_commit", check),
    ):
        yield


@mutation("files that were opened to be fsynced stay open", needs=("producer",), found_in=4)
def leaked_files() -> Iterator[None]:
    real, leaked = flushing._open, []

    def open_file(files: FileSystem, path: str) -> Any:
        leaked.append(real(files, path))
        return leaked[-1]

    with patch.object(flushing, "_open", open_file):
        yield


@mutation("fetches whose client is gone go on waiting", needs=("reader", "disconnect"), found_in=6)
def endless_fetches() -> Iterator[None]:
    with patch.object(_Wait, "_forget", lambda self: None):
        yield


@mutation(
    "a producer sends again under a new sequence", needs=("producer", "disconnect"), found_in=8
)
def new_sequences() -> Iterator[None]:
    real = Accumulator.put_back

    def put_back(self: Accumulator, batch: Any) -> None:
        batch.base_sequence = -1
        real(self, batch)

    with patch.object(Accumulator, "put_back", put_back):
        yield


@mutation(
    "a producer takes a lost connection for an answer", needs=("producer", "disconnect"), found_in=8
)
def dropped_batches() -> Iterator[None]:
    def not_answered(self: Any, batch: Any, error: Exception) -> None:
        self._complete(batch, 0, -1)

    with patch.object(Sender, "_not_answered", not_answered):
        yield


@mutation("a consumer commits what it has fetched", needs=("producer", "reader"), found_in=7)
def early_commits() -> Iterator[None]:
    real = Consumer._positions_to_commit

    def positions(self: Any) -> Any:
        ends = {each.topic_partition: each.fetch_offset for each in self._positions.states()}
        found = real(self)
        return {tp: type(each)(ends[tp], each.leader_epoch) for tp, each in found.items()}

    with patch.object(Consumer, "_positions_to_commit", positions):
        yield
