"""PartitionLog: the log of one partition. Append, read, roll, flush, truncate.

    start offset <= last stable offset <= high watermark <= end offset

Readers see the records below the high watermark; read_committed readers those below the last stable
offset, where the first open transaction begins. On one node the high watermark is the end offset
or, if only durable records count, the flushed offset.

All methods are called under the broker's lock, except `FlushTicket.sync` (see flushing.py).
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, takewhile
from typing import Literal

from broker.batch.codec import (
    RecordFacts,
    check_batches,
    check_records,
    place_batch,
    stamp_append_time,
)
from broker.batch.layout import LOG_APPEND_TIME_BIT, BatchHeader
from broker.config import TopicConfig
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.files import NotOpened
from broker.model import (
    NO_TIMESTAMP,
    AbortedTransaction,
    FileSlice,
    ProducerIdentity,
    TopicPartition,
)
from broker.storage import admission, checkpoints, lookup
from broker.storage.batch_positions import BatchPositions, segments_from, slice_end
from broker.storage.context import LogContext
from broker.storage.flushing import FlushTicket, LogFlushing
from broker.storage.index import AbortedRange, StaleIndex
from broker.storage.leader_epochs import LeaderEpochs
from broker.storage.producer_state import Marker, ProducerStates
from broker.storage.replay import (
    apply_batch,
    load_producers,
    read_marker,
    remove_snapshots,
    replay,
)
from broker.storage.rolling import must_roll
from broker.storage.segment import (
    DELETED,
    POSITION_MAX,
    SNAPSHOT,
    Segment,
    TornTail,
    file_name,
)

DELETED_AT_ONCE_MAX = 100

Origin = Literal["client", "coordinator", "raw"]


@dataclass(slots=True)
class Appended:
    """The offsets of appended records; `duplicate` if they were already in the log."""

    base_offset: int
    last_offset: int
    append_time_ms: int
    start_offset: int
    duplicate: bool = False


@dataclass(slots=True)
class Fetched:
    """Whole batches of one segment; all their records are below `next_offset`."""

    records: FileSlice | bytes
    next_offset: int


class PartitionLog:
    """The log of one partition; its offsets are described at the top of the module.

    An unused log has no files: the first append creates them.
    """

    __slots__ = (
        "__weakref__",
        "_context",
        "_positions",
        "_snapshot_offset",
        "_subscribers",
        "checkpointed_offset",
        "config",
        "durable_offset",
        "end_offset",
        "epochs",
        "failure",
        "flush_offset",
        "flushing",
        "folder",
        "high_watermark",
        "last_stable_offset",
        "leader_epoch",
        "producers",
        "segments",
        "start_offset",
        "topic_id",
        "topic_partition",
        "truncations",
    )

    def __init__(
        self,
        context: LogContext,
        folder: str,
        topic_partition: TopicPartition,
        *,
        topic_id: bytes,
        config: TopicConfig,
    ) -> None:
        """An empty log; broker/storage/recovery.py loads its files."""
        self._context = context
        self.folder = folder
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.config = config
        self.segments: list[Segment] = []
        self.producers = ProducerStates()
        self.epochs = LeaderEpochs()
        self.start_offset = 0
        self.end_offset = 0
        self.high_watermark = 0
        self.last_stable_offset = 0
        self.leader_epoch = 0  # in which records are appended
        self.durable_offset = 0
        self.checkpointed_offset = 0  # the recovery point that is on disk
        # Records below it count as written once they are durable: flush.messages requires it.
        self.flush_offset = 0
        # Why the log accepts no more records: an fsync failed, or a torn batch could not be
        # removed.
        self.failure: StorageError | None = None
        self._subscribers: dict[Callable[[], None], None] = {}
        self._positions = BatchPositions()
        self._snapshot_offset = -1
        self.truncations = 0  # how often the end was truncated
        self.flushing = LogFlushing(self)

    def __repr__(self) -> str:
        return f"PartitionLog({self.topic_partition}, {self.start_offset}..{self.end_offset})"

    @property
    def size_bytes(self) -> int:
        """Bytes of all segments."""
        return sum(segment.size_bytes for segment in self.segments)

    @property
    def recovery_point(self) -> int:
        """The offset from which every batch is checked after a crash."""
        unflushed = self.flushing.segments()
        if len(unflushed) > 1:
            return min(unflushed[0].base_offset, self.durable_offset)
        return self.durable_offset

    def epoch_at(self, offset: int) -> int:
        """The epoch of the record at an offset, or of the next record."""
        known = offset < self.end_offset and self.epochs.entries
        return self.epochs.at(offset) if known else self.leader_epoch

    def end_of_epoch(self, epoch: int) -> tuple[int, int] | None:
        """The largest epoch up to this one, and its end; None for an unknown epoch."""
        return self.epochs.end_of(
            epoch, current_epoch=self.leader_epoch, end_offset=self.end_offset
        )

    @property
    def context(self) -> LogContext:
        """The resources that all logs share."""
        return self._context

    @property
    def is_durable(self) -> bool:
        """Whether all written records are on disk, as far as is known."""
        return self.failure is None and (
            not self.segments
            or (self.segments[-1].flushed and self.durable_offset >= self.end_offset)
        )

    def is_written(self, offset: int) -> bool:
        """Whether a record is in the log, and durable if that is required."""
        if self.durable_offset > offset:
            return True
        return not self._context.acknowledge_durable and offset >= self.flush_offset

    def update_config(self, config: TopicConfig) -> None:
        """Apply changed settings immediately."""
        self.config = config
        if self.segments:
            self.segments[-1].index_interval_bytes = config.index_interval_bytes

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call back whenever the high watermark or the last stable offset moves."""
        self._subscribers[callback] = None

    def unsubscribe(self, callback: Callable[[], None]) -> None:
        """Stop calling back."""
        self._subscribers.pop(callback, None)

    # --- append ---

    def append(
        self,
        records: memoryview,
        *,
        origin: Origin,
        now_ms: int,
        facts: RecordFacts | None = None,
    ) -> Appended:
        """Append batches with one write; `records` are changed in place: offsets, append time.

        Only batches of producers (origin client) are checked: for operations that clients must not
        do, for their records (`facts`: if they are already checked) and for their sequences. Raises
        BrokerError, or StorageError if the disk fails.
        """
        if self.failure is not None:
            raise self.failure
        config = self.config
        from_client = origin == "client"
        headers = check_batches(
            records, batch_bytes_max=config.max_message_bytes, from_client=from_client
        )
        if from_client:
            records, headers = self._admit(records, headers, facts, now_ms)
        if len(records) > min(config.segment_bytes, POSITION_MAX):
            raise BrokerError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"{len(records)} bytes do not fit into a segment of {config.segment_bytes}",
            )
        markers: list[Marker | None] = [None] * len(headers)
        has_marker = False
        for number, header in enumerate(headers):
            if header.producer_id >= 0:
                duplicate = self.producers.check(header, sequences=from_client)
                if duplicate is not None:
                    first, last = duplicate.first_offset, duplicate.last_offset
                    time_ms = duplicate.timestamp_ms
                    return Appended(first, last, time_ms, self.start_offset, duplicate=True)
                if header.is_control:
                    markers[number] = self._checked_marker(records, headers, number)
                    has_marker = True
        append_time_ms = self._place(records, headers, now_ms)
        active = self._active_for(headers, len(records), now_ms)
        if has_marker:
            active.aborted()  # read now: nothing may fail once the batch is written
        try:
            active.append(records, headers)
        except TornTail as error:
            self.failure = error
            raise
        return self._appended(headers, markers, append_time_ms)

    def _admit(
        self,
        records: memoryview,
        headers: list[BatchHeader],
        facts: RecordFacts | None,
        now_ms: int,
    ) -> tuple[memoryview, list[BatchHeader]]:
        """Check batches of a client; returns them with the topic's compression."""
        config = self.config
        header = headers[0]
        if len(headers) > 1:
            raise BrokerError(
                ErrorCode.INVALID_RECORD, f"{len(headers)} batches for one partition, not one"
            )
        facts = facts or check_records(records)
        if not config.log_append_time:
            admission.check_timestamps(records, facts, config, now_ms)
            if header.max_timestamp != facts.last_timestamp_ms:
                admission.correct_max_timestamp(records, header, facts)
        if config.compacts:
            admission.check_keys(facts)
        other = admission.recompress(records, header, config)
        if other is None:
            return records, headers
        return other, check_batches(other, batch_bytes_max=config.max_message_bytes)

    def _checked_marker(
        self, records: memoryview, headers: list[BatchHeader], number: int
    ) -> Marker:
        position = sum(header.size for header in headers[:number])
        header = headers[number]
        marker = read_marker(records[position : position + header.size])
        producer = ProducerIdentity(header.producer_id, header.producer_epoch)
        self.producers.check_marker(producer, marker)
        return marker

    def _place(self, records: memoryview, headers: list[BatchHeader], now_ms: int) -> int:
        """Set the offsets of the batches and, if the topic requires it, the broker's time."""
        offset = self.end_offset
        position = 0
        log_append_time = self.config.log_append_time
        leader_epoch = self.leader_epoch
        for header in headers:
            place_batch(records, position, base_offset=offset, leader_epoch=leader_epoch)
            header.base_offset = offset
            header.leader_epoch = leader_epoch
            if log_append_time:
                stamp_append_time(records, position, now_ms)
                header.max_timestamp = now_ms
                header.attributes |= LOG_APPEND_TIME_BIT
            offset += header.last_offset_delta + 1
            position += header.size
        return now_ms if log_append_time else NO_TIMESTAMP

    def _appended(
        self, headers: list[BatchHeader], markers: list[Marker | None], append_time_ms: int
    ) -> Appended:
        base_offset = self.end_offset
        try:
            for header, marker in zip(headers, markers, strict=True):
                if header.producer_id >= 0:
                    aborted = apply_batch(self.producers, header, marker)
                    if aborted is not None:
                        self.segments[-1].add_aborted(aborted)
        except Exception as error:
            # The file contains a batch that the log does not: the next one would get the same
            # offset.
            self.failure = StorageError(f"an append did not complete: {error}", at=self.folder)
            raise
        self.end_offset = headers[-1].next_offset
        if self.flushing.wrote(self.end_offset - base_offset):
            self.flush_offset = self.end_offset
            self._context.flush_soon(self)
        self._advance()
        return Appended(base_offset, self.end_offset - 1, append_time_ms, self.start_offset)

    def _advance(self) -> None:
        """Advance high watermark and last stable offset, and notify listeners."""
        high_watermark = self.end_offset
        if self._context.acknowledge_durable:
            high_watermark = self.durable_offset
        stable = self.producers.first_unstable_offset(high_watermark)
        if high_watermark == self.high_watermark and stable == self.last_stable_offset:
            return
        self.high_watermark = high_watermark
        self.last_stable_offset = stable
        for callback in tuple(self._subscribers):
            callback()

    # --- rolling ---

    def _active_for(self, headers: list[BatchHeader], size_bytes: int, now_ms: int) -> Segment:
        """The segment to append to; a new one if the last is full or old."""
        if not self.segments:
            self._create_files()
            return self.segments[-1]
        if self.epochs.latest != self.leader_epoch:
            self._begin_epoch()
        active = self.segments[-1]
        active.reopen()
        if active.size_bytes and must_roll(active, self.config, headers, size_bytes, now_ms):
            self.roll()
            active = self.segments[-1]
        return active

    def roll(self) -> None:
        """Seal the last segment and start another; an empty one is kept."""
        if not self.segments:
            return
        sealed = self.segments[-1]
        if not sealed.size_bytes:
            return
        try:
            sealed.seal()
            self.write_snapshot()
            self._add_segment()
        except OSError as error:
            sealed.reopen()
            raise StorageError(f"cannot roll: {error.strerror}", at=self.folder) from error
        self.flushing.announce()

    def _create_files(self) -> None:
        files = self._context.files
        try:
            self._context.free_folder(self.folder)
            files.make_folder(self.folder)
            checkpoints.write_topic_id(files, self.folder, self.topic_id)
            # The topic id must be known when the topic's name is used again.
            self.flushing.add_file(os.path.join(self.folder, checkpoints.PARTITION_METADATA))
            self._begin_epoch()
            self._add_segment()
        except OSError as error:
            raise StorageError(f"cannot create files: {error.strerror}", at=self.folder) from error

    def _begin_epoch(self) -> None:
        """Before the first append of a process, store that its epoch begins at the end."""
        epochs = self.epochs.entries
        self._write_epochs([*epochs, (self.leader_epoch, self.end_offset)])
        self.epochs.assign(self.leader_epoch, self.end_offset)

    def _write_epochs(self, entries: list[tuple[int, int]]) -> None:
        try:
            checkpoints.write_leader_epochs(self._context.files, self.folder, entries)
        except OSError as error:
            path = os.path.join(self.folder, checkpoints.LEADER_EPOCHS)
            raise StorageError(f"cannot write: {error.strerror}", at=path) from error
        self.flushing.add_file(os.path.join(self.folder, checkpoints.LEADER_EPOCHS))
        self.flushing.add_folder(self.folder)

    def _add_segment(self) -> None:
        segment = Segment.create(self._context, self.folder, self.end_offset)
        segment.index_interval_bytes = self.config.index_interval_bytes
        jitter_ms = min(self.config.segment_jitter_ms, self.config.segment_ms)
        segment.jitter_ms = self._context.random.randrange(jitter_ms) if jitter_ms else 0
        self.segments.append(segment)
        self.flushing.add_folder(self.folder)

    # --- reading ---

    def read(
        self, offset: int, *, bytes_max: int, offset_limit: int, minimum_one: bool = True
    ) -> Fetched:
        """Whole batches of one segment, from the one with an offset on, below a limit.

        At most `bytes_max` bytes, but at least one batch with `minimum_one`. Empty at the end;
        OFFSET_OUT_OF_RANGE before the start and after the end.
        """
        if not self.start_offset <= offset <= self.end_offset:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is not between {self.start_offset} and {self.end_offset}",
                at=str(self.topic_partition),
            )
        limit = min(offset_limit, self.end_offset)
        if offset >= limit:
            return Fetched(b"", offset)
        place = self._positions.find(self.segments, offset)
        if place is None:
            return Fetched(b"", offset)
        segment, position = place
        end, next_offset = slice_end(
            segment, position, bytes_max=bytes_max, limit=limit, minimum_one=minimum_one
        )
        if end <= position:
            return Fetched(b"", offset)
        self._positions.remember(next_offset, segment, end)
        return Fetched(FileSlice(segment.file(), position, end - position), next_offset)

    def offset_for_timestamp(self, timestamp_ms: int) -> tuple[int, int] | None:
        """Offset and timestamp of the first record at or after a time."""
        return lookup.offset_for_timestamp(
            segments_from(self.segments, self.start_offset),
            timestamp_ms,
            start_offset=self.start_offset,
        )

    def max_timestamp(self) -> tuple[int, int] | None:
        """Offset and timestamp of the first record with the largest timestamp."""
        return lookup.max_timestamp(
            segments_from(self.segments, self.start_offset), start_offset=self.start_offset
        )

    def aborted_transactions(self, first: int, last: int) -> list[AbortedTransaction]:
        """Aborted transactions with records from an offset up to another, exclusive."""
        ranges = (self._aborted_of(segment) for segment in segments_from(self.segments, first))
        return lookup.aborted_transactions(ranges, first, last)

    def _aborted_of(self, segment: Segment) -> list[AbortedRange]:
        try:
            return segment.aborted()
        except StaleIndex:
            producers = load_producers(
                self._context, self.folder, self.segments, segment.base_offset
            )
            found = replay(producers, segment, segment.base_offset, segment.next_offset)
            segment.replace_aborted(found)
            return found

    # --- removing ---

    def delete_records_before(self, offset: int) -> int:
        """Advance the start offset; returns it. Housekeeping removes the segments before it."""
        if offset > self.high_watermark:
            raise BrokerError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"offset {offset} is beyond the high watermark {self.high_watermark}",
                at=str(self.topic_partition),
            )
        if offset > self.start_offset:
            self.start_offset = offset
            self.epochs.cut_start(offset)
            self._context.starts_later[self] = None
        return self.start_offset

    def delete_segments(self, gone: list[Segment]) -> bool:
        """Remove segments at the start; never the active one.

        Returns False if later ones must be flushed first: without the removed segments, only a
        snapshot contains their producers.
        """
        assert gone == self.segments[: len(gone)]
        assert len(gone) < len(self.segments) or not gone
        flushed = list(takewhile(lambda segment: segment.flushed, gone))
        if flushed:
            del self.segments[: len(flushed)]
            self._positions.forget()
            self._discard(flushed)
            self.start_offset = max(self.start_offset, self.segments[0].base_offset)
            self.epochs.cut_start(self.start_offset)
        return len(flushed) == len(gone)

    def _discard(self, gone: list[Segment]) -> None:
        """Rename the files; housekeeping removes them after a delay."""
        due_ms = self._context.clock.monotonic_ms() + self.config.file_delete_delay_ms
        for segment in gone:
            segment.close()
            for path in segment.rename(DELETED):
                self._context.discarded.append((due_ms, path))
            if segment.base_offset != self._snapshot_offset:
                snapshot = os.path.join(self.folder, file_name(segment.base_offset, SNAPSHOT))
                self._context.files.unlink(snapshot)

    def replace_segments(self, old: list[Segment], new: list[Segment]) -> None:
        """Replace adjacent segments with compacted ones, which are sealed and have suffix .swap.

        They and their names are on disk: after a crash, opening the log completes the step.
        """
        first = self.segments.index(old[0])
        assert self.segments[first : first + len(old)] == old
        assert old[-1] is not self.segments[-1], "the last segment is being written to"
        self.segments[first : first + len(old)] = new
        self._positions.forget()
        kept_offsets = {segment.base_offset for segment in new}
        self._discard([segment for segment in old if segment.base_offset not in kept_offsets])
        for segment in old:
            if segment.base_offset in kept_offsets:
                self._discard_replaced(segment)
        # Earlier segments are flushed before it or with it; no flush looks for gaps.
        flushed = first == 0 or self.segments[first - 1].flushed
        for segment in new:
            segment.rename("")
            segment.flushed = flushed
        for segment, following in pairwise(self.segments):
            segment.next_offset = following.base_offset

    def _discard_replaced(self, segment: Segment) -> None:
        due_ms = self._context.clock.monotonic_ms() + self.config.file_delete_delay_ms
        segment.close()
        self._context.discarded.extend((due_ms, path) for path in segment.rename(DELETED))

    def truncate_to(self, offset: int) -> None:
        """Remove all batches from an offset on, including the one that contains it, permanently."""
        if offset >= self.end_offset:
            return
        if self.failure is not None:
            raise self.failure
        try:
            self._truncate_to(offset)
        except OSError as error:
            raise self.fail(error) from error

    def _truncate_to(self, offset: int) -> None:
        self.truncations += 1
        self._positions.forget()
        while len(self.segments) > 1 and self.segments[-1].base_offset >= offset:
            self._discard([self.segments.pop()])
        end_offset = offset
        if self.segments:
            last = self.segments[-1]
            last.reopen()
            found = last.find(offset)
            if found is not None:
                last.truncate(found[0])
                end_offset = min(offset, found[1].base_offset)
            end_offset = max(end_offset, last.base_offset)
            last.next_offset = end_offset
        self._restart_at(end_offset)
        if self.segments and self._content_end() < end_offset:
            # Compaction removed the records before the cut: after a restart, only a segment that
            # begins there shows that their offsets were assigned.
            last.seal()
            self._add_segment()
            self._context.files.fsync_directory(self.folder)

    def _content_end(self) -> int:
        """The offset after the last batch of the last segment."""
        last = self.segments[-1]
        end = last.base_offset
        for _, header in last.headers():
            end = header.next_offset
        return end

    def _restart_at(self, end_offset: int) -> None:
        self.end_offset = end_offset
        self.start_offset = min(self.start_offset, end_offset)
        self.durable_offset = min(self.durable_offset, end_offset)
        self.checkpointed_offset = min(self.checkpointed_offset, end_offset)
        self.flush_offset = min(self.flush_offset, end_offset)
        self._snapshot_offset = remove_snapshots(
            self._context, self.folder, self.segments, end_offset
        )
        self.epochs.cut_end(end_offset)
        if self.segments:
            self._write_epochs(self.epochs.entries)
            self.producers = load_producers(self._context, self.folder, self.segments, end_offset)
        self._advance()

    # --- flushing and closing ---

    def flushed(self, ticket: FlushTicket) -> None:
        """Everything in the ticket is on disk: advance the durable offset."""
        if self.failure is not None:
            return
        for segment in ticket.sealed:
            segment.flushed = segment.sealed
        if ticket.truncations == self.truncations:
            self.durable_offset = max(self.durable_offset, ticket.end_offset)
        self._advance()

    def fail(self, error: OSError) -> StorageError:
        """Accept no more appends: after a failed fsync it is unknown what is on disk."""
        self.flushing.give_up()
        if self.failure is None:
            self.failure = StorageError(
                f"cannot make records durable: {error.strerror}",
                at=self.folder,
                hint="the log accepts no more records until the broker is restarted",
            )
        return self.failure

    def flush(self) -> None:
        """Flush everything before returning; StorageError if that fails.

        It blocks the caller, which holds the lock: a running broker uses its flusher instead.
        """
        ticket = self.flushing.begin()
        if ticket is None:
            return
        try:
            ticket.sync(self._context.files)
        except NotOpened as error:
            self.flushing.abandon(ticket)
            raise StorageError(f"cannot flush now: {error.strerror}", at=self.folder) from error
        except OSError as error:
            raise self.fail(error) from error
        self.flushing.finish(ticket)

    def write_snapshot(self) -> None:
        """Write a snapshot of the current producers."""
        offset = self.end_offset
        if offset == self._snapshot_offset or not self.segments:
            return
        path = os.path.join(self.folder, file_name(offset, SNAPSHOT))
        files = self._context.files
        files.write_file(path, self.producers.to_snapshot(), durable=False)
        self.flushing.add_file(path)
        previous, self._snapshot_offset = self._snapshot_offset, offset
        if previous >= 0 and all(segment.base_offset != previous for segment in self.segments):
            self._context.files.unlink(os.path.join(self.folder, file_name(previous, SNAPSHOT)))

    def seal(self) -> None:
        """Write indexes and producers, so that opening the log need not scan it."""
        if self.failure is not None:
            raise self.failure
        if not self.segments or self.segments[-1].sealed:
            return
        try:
            self.segments[-1].seal()
            self.write_snapshot()
            self.flushing.add_folder(self.folder)  # for the names of indexes
        except OSError as error:
            raise StorageError(f"cannot close: {error.strerror}", at=self.folder) from error

    def close(self) -> None:
        """Flush everything and close the files."""
        try:
            self.seal()
            self.flush()
        finally:
            self.release()

    def release(self) -> None:
        """Close the files without flushing."""
        for segment in self.segments:
            segment.close()

    def opened(self, *, start_offset: int, end_offset: int, snapshot_offset: int) -> None:
        """Set the offsets that recovery found; durability is unchanged."""
        self.start_offset = start_offset
        self.end_offset = end_offset
        self._snapshot_offset = snapshot_offset
        self.high_watermark = self.last_stable_offset = start_offset
        self._advance()
