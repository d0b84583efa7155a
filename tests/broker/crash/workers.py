"""Producers and committers that load a broker and note what it acknowledged.

Each worker is a thread with clients of its own, producers of confluent-kafka. What it notes is read
by others only after it has ended.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from random import Random

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from broker.errors import ErrorCode
from broker.protocol.messages.offsets import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tests.support.raw_client import RawClient

PLAIN_TOPIC = "plain"
LEDGER_TOPIC = "ledger"
INPUT_TOPIC = "input"
PARTITIONS = 3
PATIENCE_S = 60.0

# A broker that comes back should be noticed at once. It is always the same one: librdkafka 2.16
# otherwise forgets it as it goes down, and with it what a transaction waits for.
IMPATIENT = {
    "metadata.recovery.strategy": "none",
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 100,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "topic.metadata.refresh.fast.interval.ms": 50,
    "socket.timeout.ms": 10_000,
    "log_level": 0,
}


class Worker(ABC):
    """A thread that repeats one step until it is told to stop; its failure is kept."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.progress = 0
        self.failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begins to load the broker."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after the step that is under way; raises what went wrong in the thread."""
        self._stopping.set()
        self._thread.join(2 * PATIENCE_S)
        assert not self._thread.is_alive(), f"{self.name} hangs"
        if self.failure is not None:
            raise self.failure

    def _run(self) -> None:
        try:
            with closing(self._steps()) as steps:
                for _ in steps:
                    self.progress += 1
                    if self._stopping.is_set():
                        break
        except BaseException as error:
            self.failure = error

    @abstractmethod
    def _steps(self) -> Generator[None, None, None]:
        """Does one step each time it is asked for the next."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A record the broker has confirmed."""

    partition: int
    offset: int
    value: bytes


class IdempotentWorker(Worker):
    """Writes numbered records with an idempotent producer, many in flight."""

    def __init__(self, name: str, bootstrap: str, random: Random) -> None:
        super().__init__(name)
        self._random = random
        self.acknowledged: list[Acknowledged] = []
        self.failed: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": int(PATIENCE_S * 1000),
                **IMPATIENT,
            }
        )

    def _steps(self) -> Generator[None, None, None]:
        number = 0
        try:
            while True:
                for _ in range(self._random.randint(1, 40)):
                    self._produce(number)
                    number += 1
                self._producer.poll(0.005)
                while len(self._producer) > 400:
                    self._producer.poll(0.02)
                yield
        finally:
            waiting = self._producer.flush(PATIENCE_S)
            assert waiting == 0, f"{waiting} records of {self.name} were never answered"

    def _produce(self, number: int) -> None:
        self._producer.produce(
            PLAIN_TOPIC,
            f"{self.name} {number}".encode(),
            partition=number % PARTITIONS,
            on_delivery=self._delivered,
        )

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failed.append(str(error))
            return
        value = message.value()
        assert isinstance(value, bytes)
        self.acknowledged.append(Acknowledged(message.partition(), message.offset(), value))


@dataclass(slots=True)
class Outcome:
    """What is known of one transaction: its records, and how it ended."""

    values: list[tuple[int, bytes]]
    with_offsets: bool
    ended: str = "unknown"  # committed, aborted, unknown


class TransactionalWorker(Worker):
    """Writes transactions over several partitions, some with offsets, some aborted."""

    def __init__(self, name: str, bootstrap: str, random: Random) -> None:
        super().__init__(name)
        self._bootstrap = bootstrap
        self._random = random
        self.group = f"group-of-{name}"
        self.outcomes: list[Outcome] = []
        self.restarts = 0
        self._group_member = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": self.group, **IMPATIENT}
        )

    def _steps(self) -> Generator[None, None, None]:
        producer = self._new_producer()
        while True:
            try:
                self._one_transaction(producer)
            except KafkaException as error:
                # Fenced or out of sequence for good: as an application would, start anew.
                if not error.args[0].fatal():
                    raise
                self.restarts += 1
                producer = self._new_producer()
            yield

    def _new_producer(self) -> Producer:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "transactional.id": self.name,
                "transaction.timeout.ms": 60_000,
                # An abort that meets records waiting for their retry waits until these time out.
                "message.timeout.ms": 5_000,
                "linger.ms": 1,
                **IMPATIENT,
            }
        )
        _until_done(lambda: producer.init_transactions(PATIENCE_S))
        return producer

    def _one_transaction(self, producer: Producer) -> None:
        number = len(self.outcomes)
        values = [
            (self._random.randrange(PARTITIONS), f"{self.name} {number} {part}".encode())
            for part in range(self._random.randint(1, 12))
        ]
        outcome = Outcome(values, with_offsets=self._random.random() < 0.5)
        self.outcomes.append(outcome)
        producer.begin_transaction()
        try:
            for partition, value in values:
                producer.produce(LEDGER_TOPIC, value, partition=partition)
            if outcome.with_offsets:
                self._send_offsets(producer, number)
            if self._random.random() < 0.8:
                _until_done(lambda: producer.commit_transaction(PATIENCE_S))
                outcome.ended = "committed"
                return
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
        _until_done(lambda: producer.abort_transaction(PATIENCE_S))
        outcome.ended = "aborted"

    def _send_offsets(self, producer: Producer, number: int) -> None:
        offsets = [TopicPartition(INPUT_TOPIC, 0, number + 1)]
        metadata = self._group_member.consumer_group_metadata()
        _until_done(lambda: producer.send_offsets_to_transaction(offsets, metadata, PATIENCE_S))


class OffsetWorker(Worker):
    """Commits the offsets of a group, one after the other, each until it is acknowledged."""

    def __init__(self, name: str, bootstrap: str) -> None:
        super().__init__(name)
        self.group = name
        self.acknowledged = 0
        self._bootstrap = bootstrap
        self._client: RawClient | None = None

    def _steps(self) -> Generator[None, None, None]:
        try:
            while True:
                if self._commit(self.acknowledged + 1):
                    self.acknowledged += 1
                    yield
                else:
                    # The broker is down, or was when it should have answered.
                    self._stopping.wait(0.05)
        finally:
            self._disconnect()

    def _commit(self, offset: int) -> bool:
        part = OffsetCommitRequestPartition(1, offset)
        request = OffsetCommitRequest(
            self.group, topics=[OffsetCommitRequestTopic(INPUT_TOPIC, partitions=[part])]
        )
        try:
            if self._client is None:
                self._client = RawClient(self._bootstrap)
            response = self._client.ask(request, OffsetCommitResponse, 8)
        except (OSError, EOFError):
            self._disconnect()
            return False
        code = ErrorCode(response.topics[0].partitions[0].error_code)
        assert code is ErrorCode.NONE, code
        return True

    def _disconnect(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


@dataclass(slots=True)
class Workers:
    """All that load the broker at once."""

    idempotent: list[IdempotentWorker] = field(default_factory=list)
    transactional: list[TransactionalWorker] = field(default_factory=list)
    offsets: list[OffsetWorker] = field(default_factory=list)

    @classmethod
    def make(cls, bootstrap: str, random: Random) -> "Workers":
        """Two of each kind, of offsets one."""
        return cls(
            [IdempotentWorker(f"idempotent-{n}", bootstrap, _derived(random)) for n in range(2)],
            [TransactionalWorker(f"bank-{n}", bootstrap, _derived(random)) for n in range(2)],
            [OffsetWorker("committers", bootstrap)],
        )

    def all(self) -> list[Worker]:
        """Every worker."""
        return [*self.idempotent, *self.transactional, *self.offsets]


def _derived(random: Random) -> Random:
    return Random(random.getrandbits(64))


def _until_done(attempt: Callable[[], object]) -> None:
    """Repeats a call of the transactional client for as long as it says that it may be."""
    while True:
        try:
            attempt()
        except KafkaException as error:
            if not error.args[0].retriable():
                raise
        else:
            return
