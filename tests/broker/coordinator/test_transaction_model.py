"""Transactions against a model: whatever happens, readers see exactly what was committed."""

import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from broker.errors import BrokerError, ErrorCode
from broker.model import ProducerIdentity, TopicPartition
from broker.storage.partition_log import PartitionLog
from tests.broker.coordinator.transaction_fixture import TransactionBench, committed_values

PARTITIONS = [TopicPartition("orders", number) for number in range(2)]
NAMES = ("bank", "shop", "mill")
TIMEOUT_MS = 10_000


class Stopped(BaseException):
    """The process ends here."""


@dataclass(eq=False)
class ModelTransaction:
    """How a transaction ended, if it did."""

    start_ms: int
    outcome: str = "open"


@dataclass
class ModelProducer:
    """The newest producer of an id, as its application knows it."""

    identity: ProducerIdentity
    sequences: dict[TopicPartition, int] = field(default_factory=dict)
    transaction: ModelTransaction | None = None
    fenced: bool = False


class Transactions(RuleBasedStateMachine):
    """Producers begin, write, end, are fenced, are too slow; the broker crashes at any append."""

    def __init__(self) -> None:
        super().__init__()
        self.path = Path(tempfile.mkdtemp())
        self.bench = TransactionBench(self.path)
        self.bench.topics.create("orders", partition_count=len(PARTITIONS))
        self.producers: dict[str, ModelProducer] = {}
        self.zombies: list[tuple[str, ProducerIdentity]] = []
        self.written: dict[TopicPartition, list[tuple[bytes, ModelTransaction]]] = {
            partition: [] for partition in PARTITIONS
        }
        self.count = 0

    def teardown(self) -> None:
        self.bench.close()
        shutil.rmtree(self.path)

    @rule(name=st.sampled_from(NAMES))
    def a_producer_starts(self, name: str) -> None:
        old = self.producers.get(name)
        if old is not None:
            self.zombies.append((name, old.identity))
            if old.transaction is not None:
                old.transaction.outcome = "aborted"
        identity = self._begin(name)
        assert identity not in [zombie for _, zombie in self.zombies]
        self.producers[name] = ModelProducer(identity)

    def _begin(self, name: str) -> ProducerIdentity:
        try:
            return self.bench.begin(name, timeout_ms=TIMEOUT_MS)
        except BrokerError as error:
            if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                raise
            return self.bench.begin(name, timeout_ms=TIMEOUT_MS)

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), partition=st.sampled_from(PARTITIONS))
    def a_producer_writes(self, data: st.DataObject, partition: TopicPartition) -> None:
        name = data.draw(st.sampled_from(sorted(self.producers)))
        producer = self.producers[name]
        value = f"{name} {self.count}".encode()
        self.count += 1
        sequence = producer.sequences.get(partition, 0)
        try:
            self.bench.produce(name, producer.identity, partition, sequence=sequence, value=value)
        except BrokerError:
            if not producer.fenced:
                raise
            return
        assert not producer.fenced
        if producer.transaction is None:
            producer.transaction = ModelTransaction(self.bench.clock.now_ms())
        producer.sequences[partition] = sequence + 1
        self.written[partition].append((value, producer.transaction))

    @precondition(lambda self: self.producers)
    @rule(data=st.data(), commit=st.booleans(), appends=st.none() | st.integers(0, 4))
    def a_producer_ends(self, data: st.DataObject, commit: bool, appends: int | None) -> None:
        """With a number of appends the broker ends after as many; then the producer asks again."""
        name = data.draw(st.sampled_from(sorted(self.producers)))
        producer = self.producers[name]
        if appends is not None:
            with suppress(Stopped, BrokerError), _stopped_after(appends):
                self.bench.end(name, producer.identity, commit=commit)
            self.bench.crash()
        try:
            self.bench.end(name, producer.identity, commit=commit)
        except BrokerError:
            if producer.transaction is not None and not producer.fenced:
                raise
            return
        assert not producer.fenced
        if producer.transaction is not None:
            producer.transaction.outcome = "committed" if commit else "aborted"
            producer.transaction = None

    @precondition(lambda self: self.zombies)
    @rule(data=st.data(), partition=st.sampled_from(PARTITIONS))
    def a_zombie_is_refused(self, data: st.DataObject, partition: TopicPartition) -> None:
        name, identity = data.draw(st.sampled_from(self.zombies))
        for attempt in (
            lambda: self.bench.produce(name, identity, partition, sequence=0, value=b"zombie"),
            lambda: self.bench.write(name, identity, partition, sequence=0, value=b"zombie"),
            lambda: self.bench.end(name, identity, commit=True),
        ):
            with pytest.raises(BrokerError):
                attempt()

    @rule(milliseconds=st.sampled_from([1, 3000, TIMEOUT_MS + 1001]))
    def time_passes(self, milliseconds: int) -> None:
        self.bench.advance(milliseconds)
        for name, producer in self.producers.items():
            found = self.bench.coordinator.get(name)
            assert found is not None
            if producer.transaction is not None and found.producer != producer.identity:
                age_ms = self.bench.clock.now_ms() - producer.transaction.start_ms
                assert age_ms > TIMEOUT_MS
                producer.transaction.outcome = "aborted"
                producer.transaction = None
                producer.fenced = True

    @rule()
    def the_broker_crashes(self) -> None:
        self.bench.crash()
        self.time_passes(0)

    @rule()
    def the_broker_restarts_in_order(self) -> None:
        self.bench.close()
        self.bench.start()
        self.time_passes(0)

    @invariant()
    def readers_see_what_was_committed(self) -> None:
        for partition, records in self.written.items():
            expected = []
            for value, transaction in records:
                if transaction.outcome == "open":
                    break
                if transaction.outcome == "committed":
                    expected.append(value)
            assert committed_values(self.bench.log(partition)) == expected


class _stopped_after:
    """Lets some appends through and ends the process at the next."""

    def __init__(self, appends: int) -> None:
        self._left = appends
        self._append = PartitionLog.append

    def __enter__(self) -> None:
        append = self._append

        def counted(log: PartitionLog, *arguments: object, **options: object) -> object:
            if not self._left:
                raise Stopped
            self._left -= 1
            return append(log, *arguments, **options)  # type: ignore[arg-type]

        PartitionLog.append = counted  # type: ignore[assignment,method-assign]

    def __exit__(self, *_: object) -> None:
        PartitionLog.append = self._append  # type: ignore[method-assign]


TestTransactions = pytest.mark.timeout(1800)(pytest.mark.slow(Transactions.TestCase))
TestTransactions.settings = settings(
    max_examples=max(30, settings().max_examples // 5), stateful_step_count=30
)
