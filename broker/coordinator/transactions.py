"""TransactionCoordinator: all transactional ids, stored in __transaction_state.

A transaction ends in three steps, each durable before the next begins:

    1. PREPARE_COMMIT or PREPARE_ABORT in __transaction_state: from here on the outcome is final
    2. a marker in every partition of the transaction: readers see it, the group coordinator
       applies or drops the offsets that were committed with it
    3. COMPLETE_COMMIT or COMPLETE_ABORT in __transaction_state: the next one may begin

`load` completes the steps after a crash: step 2 may be repeated. States change in memory when their
record is appended; a response that depends on one waits until it is durable.
"""

import logging
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, TypeVar

from broker.batch.codec import control_batch
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.coordinator import transaction as machine
from broker.coordinator.internal_topics import InternalLog, Written, partition_for
from broker.coordinator.parts import Parts
from broker.coordinator.producer_ids import ProducerIds
from broker.coordinator.topics import TopicCatalog
from broker.coordinator.transaction import Transaction, TransactionState
from broker.coordinator.transaction_log import read_transactions, to_record, to_tombstone
from broker.errors import BrokerError, ErrorCode, StorageError
from broker.model import (
    GROUP_TOPIC,
    TRANSACTION_TOPIC,
    ProducerIdentity,
    TopicPartition,
)
from broker.pending import Pending
from broker.storage.data_directory import DataDirectory
from broker.timers import Timers

logger = logging.getLogger(__name__)

T = TypeVar("T")

MARKER_RETRY_MS = 500
MARKERS_AT_ONCE_MAX = 20  # the first record of a partition creates files
COORDINATOR_EPOCH = 0  # one node coordinates everything and never loses it

# A partition with a newer epoch than the marker's has already received the end of the transaction.
MARKER_IS_LATE = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)

# Producers get other codes than clients of the coordinator: those that all producers support.
PRODUCE_ERRORS = {
    ErrorCode.PRODUCER_FENCED: ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.NOT_ENOUGH_REPLICAS,
}

Answer: TypeAlias = T | Pending[T]


@dataclass(slots=True)
class _Entry:
    """A transactional id, its newest record, and the waiters for the end of its transaction."""

    transaction: Transaction
    written: Written | None = None
    # The monotonic time at which the open transaction is aborted.
    deadline_ms: int | None = None
    # Markers of the ending transaction that are already written.
    markers: dict[TopicPartition, Written | None] = field(default_factory=dict)
    waiters: list[Pending[ProducerIdentity]] = field(default_factory=list)


class TransactionCoordinator:
    """Handles the requests of producers about transactions; a refusal is a BrokerError."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        clock: Clock,
        timers: Timers,
        topics: TopicCatalog,
        storage: DataDirectory,
        complete_offsets: Callable[[ProducerIdentity, bool], None],
    ) -> None:
        """Nothing is loaded before `load`.

        `complete_offsets` applies or drops the offsets that a producer's transaction committed.
        """
        self._config = config
        self._clock = clock
        self._timers = timers
        self._topics = topics
        self._partitions = topics.partitions
        self._complete_offsets = complete_offsets
        self._producer_ids = ProducerIds(
            storage.path, files=storage.files, in_background=storage.in_background
        )
        self._entries: dict[str, _Entry] = {}
        self._log = InternalLog(
            TRANSACTION_TOPIC,
            partition_count=config.transaction_state_log_num_partitions,
            topics=topics,
            clock=clock,
        )

    def load(self) -> None:
        """Replay the log, complete decided transactions, and start the timers."""
        self._producer_ids.load()
        for name, transaction in read_transactions(self._log).items():
            entry = self._entries[name] = _Entry(transaction)
            self._set_deadline(entry)
            newest = max(transaction.producer_id, transaction.next_producer_id)
            self._producer_ids.skip_past(newest)
        for entry in self._entries.values():
            if entry.transaction.state.is_prepared:
                self._finish_after_start(entry)
        self._watch_timeouts()
        self._watch_expiry()
        config = self._config
        self._timers.repeat(
            config.transaction_abort_timed_out_transaction_cleanup_interval_ms, self._watch_timeouts
        )
        self._timers.repeat(
            config.transaction_remove_expired_transaction_cleanup_interval_ms, self._watch_expiry
        )

    def _finish_after_start(self, entry: _Entry) -> None:
        try:
            self._write_markers(entry)
        except Exception as error:  # one transaction that cannot end must not stop the start
            self._try_again(entry, error, self._write_markers)

    # Requests of producers

    def init_producer_id(
        self, transactional_id: str | None, *, timeout_ms: int, expected: ProducerIdentity
    ) -> Answer[ProducerIdentity]:
        """Id and epoch for a producer that starts; the previous one is fenced."""
        if transactional_id is None:
            return ProducerIdentity(self._producer_ids.next(), 0)
        if not transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "a transactional id cannot be empty")
        if not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
            raise BrokerError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"timeout of {timeout_ms} ms is not between 1 and "
                f"{self._config.transaction_max_timeout_ms} ms",
                hint="the upper bound is the broker's setting transaction.max.timeout.ms",
            )
        entry = self._entries.get(transactional_id)
        if entry is None:
            entry = _Entry(Transaction(transactional_id, self._producer_ids.next()))
        after = machine.initialise(
            entry.transaction,
            expected,
            timeout_ms=timeout_ms,
            now_ms=self._clock.now_ms(),
            new_producer_id=self._producer_ids.next,
        )
        self._store(entry, after)
        self._entries[transactional_id] = entry
        if after.state is TransactionState.PREPARE_ABORT:
            self._finish(entry)
            raise BrokerError(ErrorCode.CONCURRENT_TRANSACTIONS, "an open transaction is aborted")
        return self._log.answer_when_durable(entry.written, after.producer)

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
        *,
        client_version: int = machine.TRANSACTIONS_V1,
    ) -> Answer[ErrorCode]:
        """Add partitions to the producer's transaction."""
        entry = self._entry(transactional_id)
        after = machine.add_partitions(
            entry.transaction,
            producer,
            partitions,
            now_ms=self._clock.now_ms(),
            client_version=client_version,
        )
        self._store(entry, after)
        return self._log.answer_when_durable(entry.written, ErrorCode.NONE)

    def offsets_partition(self, group_id: str) -> TopicPartition:
        """The partition that stores the offsets of a group that a transaction commits."""
        topic = self._topics.ensure_internal(GROUP_TOPIC)
        return TopicPartition(GROUP_TOPIC, partition_for(group_id, topic.partition_count))

    def end(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        *,
        commit: bool,
        client_version: int = machine.TRANSACTIONS_V1,
    ) -> Answer[ProducerIdentity]:
        """Commit or abort; returns the id and epoch for the next transaction."""
        entry = self._entry(transactional_id)
        after = machine.end(
            entry.transaction,
            producer,
            commit=commit,
            now_ms=self._clock.now_ms(),
            new_producer_id=self._producer_ids.next,
            client_version=client_version,
        )
        if after is entry.transaction:
            return self._log.answer_when_durable(entry.written, after.visible_producer)
        self._store(entry, after)
        pending: Pending[ProducerIdentity] = Pending()
        entry.waiters.append(pending)
        self._finish(entry)
        return after.visible_producer if pending.done else pending

    def missing_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
    ) -> set[TopicPartition]:
        """The partitions that are not part of the producer's transaction."""
        entry = self._entry(transactional_id)
        return machine.missing_partitions(entry.transaction, producer, partitions)

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdentity,
        partitions: Collection[TopicPartition],
        *,
        refusal: ErrorCode = ErrorCode.INVALID_TXN_STATE,
        waits: bool = False,
    ) -> None:
        """Refuse writes to partitions that are not part of the producer's transaction.

        With `waits`, CONCURRENT_TRANSACTIONS means that the previous one is about to end.
        """
        try:
            missing = self.missing_partitions(transactional_id, producer, partitions)
        except BrokerError as error:
            code = error.code
            if not (waits and code is ErrorCode.CONCURRENT_TRANSACTIONS):
                code = PRODUCE_ERRORS.get(code, code)
            raise BrokerError(code, error.message, at=error.at) from error
        if missing:
            names = ", ".join(str(partition) for partition in sorted(missing))
            raise BrokerError(refusal, f"{names} was not added to the transaction")

    # Requests of tools

    def transactions(self) -> list[Transaction]:
        """All transactional ids, in order."""
        return [self._entries[name].transaction for name in sorted(self._entries)]

    def get(self, transactional_id: str) -> Transaction | None:
        """One transactional id."""
        entry = self._entries.get(transactional_id)
        return None if entry is None else entry.transaction

    def write_markers(
        self,
        producer: ProducerIdentity,
        partitions: Iterable[TopicPartition],
        *,
        commit: bool,
        coordinator_epoch: int,
    ) -> Answer[dict[TopicPartition, ErrorCode]]:
        """End a producer's transaction in some partitions; the coordinator's state is ignored."""
        results: dict[TopicPartition, ErrorCode] = {}
        written: list[Written] = []
        for partition in partitions:
            try:
                done = self._write_marker(
                    producer, partition, commit=commit, coordinator_epoch=coordinator_epoch
                )
            except BrokerError as error:
                results[partition] = error.code
                continue
            found = done is not None
            results[partition] = ErrorCode.NONE if found else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if done is not None:
                written.append(done)
        pending: Pending[dict[TopicPartition, ErrorCode]] = Pending()
        self._when_all_durable(written, lambda: _complete(pending, results))
        return results if pending.done else pending

    # The end of a transaction

    def _finish(self, entry: _Entry) -> None:
        assert entry.written is not None
        self._log.when_durable(entry.written, partial(self._write_markers, entry))

    def _write_markers(self, entry: _Entry) -> None:
        """Write the missing markers; when all are durable, the transaction is complete."""
        missing = sorted(entry.transaction.partitions - entry.markers.keys())
        failure: Exception | None = None
        for partition in missing[:MARKERS_AT_ONCE_MAX]:
            try:
                entry.markers[partition] = self._write_marker(
                    entry.transaction.producer,
                    partition,
                    commit=entry.transaction.is_commit,
                    coordinator_epoch=COORDINATOR_EPOCH,
                )
            except Exception as error:
                if isinstance(error, BrokerError) and error.code in MARKER_IS_LATE:
                    logger.warning("%s refused a late marker: %s", partition, error)
                    entry.markers[partition] = None
                    continue
                failure = failure or error
        if failure is not None:
            self._try_again(entry, failure, self._write_markers)
            return
        if len(missing) > MARKERS_AT_ONCE_MAX:  # other requests are handled in between
            self._timers.schedule(0, partial(self._write_markers, entry))
            return
        written = [done for done in entry.markers.values() if done is not None]
        self._when_all_durable(written, partial(self._complete, entry))

    def _write_marker(
        self,
        producer: ProducerIdentity,
        partition: TopicPartition,
        *,
        commit: bool,
        coordinator_epoch: int,
    ) -> Written | None:
        """Write one marker; None if the partition was deleted."""
        found = self._partitions.get(partition)
        if found is None:
            return None
        now_ms = self._clock.now_ms()
        marker = control_batch(
            commit=commit,
            producer=producer,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=now_ms,
        )
        appended = found.append_internal(marker, now_ms=now_ms)
        if partition.topic == GROUP_TOPIC:
            self._complete_offsets(producer, commit)
        return Written(found, appended.last_offset)

    def _complete(self, entry: _Entry) -> None:
        prepared = entry.transaction
        try:
            self._store(entry, machine.complete(prepared, now_ms=self._clock.now_ms()))
        except Exception as error:
            self._try_again(entry, error, self._complete)
            return
        entry.markers = {}
        waiters, entry.waiters = entry.waiters, []
        for pending in waiters:
            pending.complete(prepared.visible_producer)

    def _try_again(self, entry: _Entry, error: Exception, step: Callable[[_Entry], None]) -> None:
        name = entry.transaction.transactional_id
        logger.warning('cannot end the transaction of "%s" yet: %s', name, error)
        self._timers.schedule(MARKER_RETRY_MS, partial(step, entry))

    def _when_all_durable(self, written: list[Written], callback: Callable[[], None]) -> None:
        remaining = len(written)
        if not remaining:
            callback()

        def count() -> None:
            nonlocal remaining
            remaining -= 1
            if not remaining:
                callback()

        for done in written:
            self._log.when_durable(done, count, partial(self._marker_failed, done, count))

    def _marker_failed(self, done: Written, count: Callable[[], None], error: StorageError) -> None:
        if self._partitions.get(done.partition.topic_partition) is not done.partition:
            count()  # it was deleted with its partition
        else:
            # The transaction stays decided; it is completed after the next start.
            logger.error("a transaction marker may not be durable: %s", error)

    # Time

    def _watch_timeouts(self) -> None:
        self._timers.run_in_parts(self._abort_all_overdue())

    def _abort_all_overdue(self) -> Parts[None]:
        now_ms = self._clock.monotonic_ms()
        for entry in list(self._entries.values()):
            if entry.deadline_ms is not None and entry.deadline_ms < now_ms:
                self._abort_overdue(entry)
            yield

    def _set_deadline(self, entry: _Entry) -> None:
        """For an open transaction; its stored start time is wall time."""
        entry.deadline_ms = None
        if entry.transaction.state is TransactionState.ONGOING:
            left_ms = machine.remaining_ms(entry.transaction, now_ms=self._clock.now_ms())
            entry.deadline_ms = self._clock.monotonic_ms() + left_ms

    def _abort_overdue(self, entry: _Entry) -> None:
        name = entry.transaction.transactional_id
        try:
            self._store(entry, machine.fence(entry.transaction, now_ms=self._clock.now_ms()))
        except Exception as error:
            logger.warning('cannot abort the overdue transaction of "%s" yet: %s', name, error)
            return
        logger.info('aborted the transaction of "%s": it was open for too long', name)
        self._finish(entry)

    def _watch_expiry(self) -> None:
        self._timers.run_in_parts(self._forget_all_expired())

    def _forget_all_expired(self) -> Parts[None]:
        now_ms = self._clock.now_ms()
        expiration_ms = self._config.transactional_id_expiration_ms
        for name, entry in list(self._entries.items()):
            expired = machine.is_expired(
                entry.transaction, now_ms=now_ms, expiration_ms=expiration_ms
            )
            if expired and self._entries.get(name) is entry:
                self._forget(name)
            yield

    def _forget(self, name: str) -> None:
        try:
            self._log.append(self._log.partition_for(name), [to_tombstone(name)])
        except Exception as error:
            logger.warning('cannot expire transactional id "%s" yet: %s', name, error)
            return
        del self._entries[name]

    # Entries

    def _entry(self, transactional_id: str) -> _Entry:
        if not transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "a transactional id cannot be empty")
        entry = self._entries.get(transactional_id)
        if entry is None:
            raise BrokerError(
                ErrorCode.INVALID_PRODUCER_ID_MAPPING,
                f'transactional id "{transactional_id[:100]}" is not known',
            )
        return entry

    def _store(self, entry: _Entry, transaction: Transaction) -> None:
        """Write a changed transaction; the memory changes only after a successful write."""
        if transaction is entry.transaction:
            return
        number = self._log.partition_for(transaction.transactional_id)
        entry.written = self._log.append(number, [to_record(transaction)])
        began = (
            transaction.state is TransactionState.ONGOING
            and entry.transaction.state is not TransactionState.ONGOING
        )
        ended = transaction.state is not TransactionState.ONGOING
        entry.transaction = transaction
        if began or ended:
            self._set_deadline(entry)


def _complete(pending: Pending[T], answer: T) -> None:
    pending.complete(answer)
