"""Mutations of transactions and groups in the broker; see mutation.py."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from broker.batch.layout import BatchHeader
from broker.coordinator import (
    consumer_group,
    group_records,
    producer_ids,
    reconciliation,
    transaction,
)
from broker.coordinator.consumer_group import ConsumerGroup
from broker.coordinator.group import ClassicGroup
from broker.coordinator.offsets import OffsetStore
from broker.coordinator.transactions import TransactionCoordinator
from broker.errors import ErrorCode
from broker.storage import cleaner, compaction, partition_log
from broker.storage.batch_positions import segments_from
from broker.storage.cleaned_transactions import CleanedTransactions
from broker.storage.index import AbortedRange
from broker.storage.partition_log import PartitionLog
from broker.storage.producer_state import Marker, ProducerStates
from tests.millstream.simulation.mutation import mutation


@mutation("the transaction index begins one record late", needs="transactions", found_in=4)
def late_aborted_ranges() -> Iterator[None]:
    real = ProducerStates.ended

    def ended(self: ProducerStates, header: BatchHeader, marker: Marker) -> AbortedRange | None:
        found = real(self, header, marker)
        return None if found is None else found._replace(first_offset=found.first_offset + 1)

    with patch.object(ProducerStates, "ended", ended):
        yield


@mutation("aborted transactions are looked for in one segment", needs="transactions", found_in=5)
def one_transaction_index() -> Iterator[None]:
    real = PartitionLog.aborted_transactions

    def aborted(log: PartitionLog, first: int, last: int) -> Any:
        def first_only(segments: Any, offset: int) -> Iterator[Any]:
            yield next(segments_from(segments, offset))

        with patch.object(partition_log, "segments_from", first_only):
            return real(log, first, last)

    with patch.object(PartitionLog, "aborted_transactions", aborted):
        yield


@mutation(
    "the last stable offset follows the newest transaction",
    needs=("transactions 1", "audit"),
    found_in=32,
)
def late_stable_offset() -> Iterator[None]:
    def first_unstable(self: ProducerStates, high_watermark: int) -> int:
        newest = next(reversed(self.open_transactions.values()), high_watermark)
        return min(newest, high_watermark)

    with patch.object(ProducerStates, "first_unstable_offset", first_unstable):
        yield


@mutation("an overdue transaction keeps its epoch", needs="transactions", found_in=4)
def unfenced_timeouts() -> Iterator[None]:
    real = transaction.fence

    def fence(found: Any, *, now_ms: int) -> Any:
        return replace(real(found, now_ms=now_ms), epoch=found.epoch)

    with patch.object(transaction, "fence", fence):
        yield


@mutation("a start leaves decided transactions as they are", needs="transactions", found_in=5)
def unfinished_transactions() -> Iterator[None]:
    with patch.object(TransactionCoordinator, "_finish_after_start", lambda self, entry: None):
        yield


@mutation("the last partition of a transaction gets no marker", needs="transactions", found_in=4)
def missing_marker() -> Iterator[None]:
    real = TransactionCoordinator._write_markers

    def write_markers(self: Any, entry: Any) -> None:
        if len(entry.transaction.partitions) > 1 and not entry.markers:
            entry.markers = {max(entry.transaction.partitions): None}
        real(self, entry)

    with patch.object(TransactionCoordinator, "_write_markers", write_markers):
        yield


@mutation("snapshots forget open transactions", needs=("transactions", "stop"), found_in=5)
def forgotten_open_transactions() -> Iterator[None]:
    real = ProducerStates._restore

    def restore(self: ProducerStates, rows: Any) -> None:
        real(self, [(*row[:-1], -1) for row in rows])

    with patch.object(ProducerStates, "_restore", restore):
        yield


@mutation("offsets of an aborted transaction count", needs="application", found_in=5)
def aborted_offsets() -> Iterator[None]:
    real = OffsetStore.complete

    def complete(self: OffsetStore, producer_id: int, *, commit: bool, concerns: Any) -> Any:
        return real(self, producer_id, commit=True, concerns=concerns)

    with patch.object(OffsetStore, "complete", complete):
        yield


@mutation("a start drops offsets that transactions committed", needs="application", found_in=1)
def dropped_offsets() -> Iterator[None]:
    def read_control(item: Any) -> tuple[bool, int]:
        return False, 0

    with patch("broker.coordinator.group_replay.read_control", read_control):
        yield


@mutation("producer ids are given again after a restart", needs=("producer", "kill"), found_in=4)
def producer_ids_again() -> Iterator[None]:
    with patch.object(producer_ids.ProducerIds, "_parsed", lambda self, data: 0):
        yield


@mutation("compaction does not wait for the end of a transaction", needs="balances", found_in=11)
def undecided_compaction() -> Iterator[None]:
    def first_uncleanable(log: PartitionLog, first_dirty: int, now_ms: int) -> int:
        return log.segments[-1].base_offset

    with patch.object(cleaner, "_first_uncleanable", first_uncleanable):
        yield


@mutation("compaction takes aborted values for the last ones", needs="balances", found_in=11)
def aborted_values() -> Iterator[None]:
    real = compaction._enter_keys

    def enter_keys(offset_map: Any, transactions: Any, header: Any, batch: Any) -> bool:
        with patch.object(CleanedTransactions, "is_aborted", lambda self, header: False):
            return real(offset_map, transactions, header, batch)

    with patch.object(compaction, "_enter_keys", enter_keys):
        yield


@mutation("compaction keeps records of aborted transactions", needs="balances", found_in=11)
def kept_aborted_records() -> Iterator[None]:
    cleaning = compaction._GroupCleaning
    real = cleaning._kept

    def kept(self: Any, header: Any, batch: Any, *, keep_empty: bool) -> Any:
        with (
            patch.object(CleanedTransactions, "is_aborted", lambda self, header: False),
            patch.object(CleanedTransactions, "end", lambda self, header, marker: (True, None)),
        ):
            return real(self, header, batch, keep_empty=keep_empty)

    with patch.object(cleaning, "_kept", kept):
        yield


@mutation("a group begins its generations again", needs=("classic reader 1", "kill"), found_in=7)
def generations_again() -> Iterator[None]:
    real = group_records.replay_classic_group

    def replay(group: ClassicGroup, value: Any) -> None:
        real(group, value)
        group.generation = 0

    with patch("broker.coordinator.groups.replay_classic_group", replay):
        yield


@mutation("a member that was removed may commit", needs=("reader 1", "freeze"), found_in=7)
def commits_of_unknown_members() -> Iterator[None]:
    def tolerant(real: Any) -> Any:
        def check(self: Any, *identity: Any, transactional: bool) -> ErrorCode:
            found: ErrorCode = real(self, *identity, transactional=transactional)
            return ErrorCode.NONE if found is ErrorCode.UNKNOWN_MEMBER_ID else found

        return check

    with (
        patch.object(ClassicGroup, "check_commit", tolerant(ClassicGroup.check_commit)),
        patch.object(ConsumerGroup, "check_commit", tolerant(ConsumerGroup.check_commit)),
    ):
        yield


@mutation("a partition is given before it is revoked", needs="consumer reader 1", found_in=4)
def unrevoked_partitions() -> Iterator[None]:
    def reconcile(holding: Any, target: Any, *, owned: Any, is_free: Any) -> Any:
        return reconciliation.reconcile(
            holding, target, owned=owned, is_free=lambda partition: True
        )

    with patch.object(consumer_group, "reconcile", reconcile):
        yield
