"""A transaction coordinator over real logs, on a manual clock, that can crash and come back."""

import threading
from collections.abc import Mapping
from pathlib import Path

from broker.batch.codec import decode_records, encode_batch, read_control
from broker.batch.layout import read_header
from broker.clock import ManualClock
from broker.config import BrokerConfig
from broker.coordinator.partitions import Partitions
from broker.coordinator.topics import TopicCatalog
from broker.coordinator.transactions import TransactionCoordinator
from broker.model import GROUP_TOPIC, FileSlice, ProducerIdentity, TopicPartition
from broker.pending import Pending
from broker.storage.data_directory import DataDirectory
from broker.storage.partition_log import PartitionLog
from broker.timers import Timers

SETTINGS = {
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "60000",
    "transactional.id.expiration.ms": "3600000",
}


class TransactionBench:
    """One broker's worth of coordinator, topics and logs."""

    def __init__(self, path: Path, settings: Mapping[str, str] | None = None) -> None:
        self.path = path
        self.config = BrokerConfig.from_properties({**SETTINGS, **(settings or {})})
        self.clock = ManualClock()
        self.start()

    def start(self) -> None:
        """Open what is on disk."""
        self.lock = threading.RLock()
        self.timers = Timers(self.clock)
        self.storage = DataDirectory(
            self.path, config=self.config, clock=self.clock, lock=self.lock
        )
        partitions = Partitions(self.storage)
        self.topics = TopicCatalog(self.path, config=self.config, partitions=partitions)
        self.topics.load()
        # The ends of transactions that reach the group coordinator.
        self.completed: list[tuple[ProducerIdentity, bool]] = []
        with self.lock:
            self.storage.open(self.topics.expected())
            partitions.lead_all()
            self.coordinator = TransactionCoordinator(
                config=self.config,
                clock=self.clock,
                timers=self.timers,
                topics=self.topics,
                storage=self.storage,
                complete_offsets=self._complete_offsets,
            )
            self.coordinator.load()

    def _complete_offsets(self, producer: ProducerIdentity, commit: bool) -> None:
        self.completed.append((producer, commit))

    def crash(self) -> None:
        """Leave everything as it is on disk and start again."""
        self.storage._lock_file = None
        self.start()

    def close(self) -> None:
        """Stop in order."""
        self.storage.close()

    def advance(self, milliseconds: int) -> None:
        """Let time pass and do what is due then."""
        self.clock.advance(milliseconds)
        self.timers.run_due()

    def log(self, partition: TopicPartition) -> PartitionLog:
        """A partition's log."""
        return self.storage.log(partition)

    # What a client does

    def begin(
        self,
        name: str,
        expected: ProducerIdentity = ProducerIdentity(),  # noqa: B008 - a value
        *,
        timeout_ms: int = 60_000,
    ) -> ProducerIdentity:
        """InitProducerId."""
        answer = self.coordinator.init_producer_id(name, timeout_ms=timeout_ms, expected=expected)
        assert not isinstance(answer, Pending)
        return answer

    def produce(
        self,
        name: str,
        producer: ProducerIdentity,
        partition: TopicPartition,
        *,
        sequence: int,
        value: bytes,
    ) -> None:
        """AddPartitionsToTxn and Produce of one record."""
        self.coordinator.add_partitions(name, producer, [partition])
        self.write(name, producer, partition, sequence=sequence, value=value)

    def write(
        self,
        name: str,
        producer: ProducerIdentity,
        partition: TopicPartition,
        *,
        sequence: int,
        value: bytes,
    ) -> None:
        """Produce of one record."""
        self.coordinator.verify(name, producer, [partition])
        batch = encode_batch(
            [(None, value, (), self.clock.now_ms())],
            producer=producer,
            base_sequence=sequence,
            transactional=True,
        )
        self.log(partition).append(
            memoryview(bytearray(batch)), origin="client", now_ms=self.clock.now_ms()
        )

    def end(self, name: str, producer: ProducerIdentity, *, commit: bool) -> ProducerIdentity:
        """EndTxn."""
        answer = self.coordinator.end(name, producer, commit=commit)
        assert not isinstance(answer, Pending)
        return answer


def committed_values(log: PartitionLog) -> list[bytes]:
    """What a read_committed reader sees, found as clients find it."""
    aborted = sorted(
        log.aborted_transactions(log.start_offset, log.last_stable_offset),
        key=lambda transaction: transaction.first_offset,
    )
    aborting: set[int] = set()
    values: list[bytes] = []
    for data in stable_batches(log):
        header = read_header(data)
        while aborted and aborted[0].first_offset <= header.last_offset:
            aborting.add(aborted.pop(0).producer_id)
        records = decode_records(data)
        if header.is_control:
            if not read_control(records[0])[0]:
                aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            values += [bytes(record.value or b"") for record in records]
    return values


def stable_batches(log: PartitionLog) -> list[memoryview]:
    """The batches below the last stable offset."""
    found = []
    offset = log.start_offset
    while offset < log.last_stable_offset:
        fetched = log.read(offset, bytes_max=1 << 20, offset_limit=log.last_stable_offset)
        records = fetched.records
        data = memoryview(records.read() if isinstance(records, FileSlice) else records)
        position = 0
        while position < len(data):
            size = read_header(data, position).size
            found.append(data[position : position + size])
            position += size
        offset = fetched.next_offset
    return found


def offsets_partition(bench: TransactionBench, group: str) -> TopicPartition:
    """Where a group's offsets are."""
    partition = bench.coordinator.offsets_partition(group)
    assert partition.topic == GROUP_TOPIC
    return partition
