"""Producers: idempotent and transactional ones."""

from broker.client import producer
from broker.client.produced_batch import Delivery
from broker.client.record_producer import Producer
from broker.errors import MillstreamError
from broker.model import TopicPartition
from millstream.simulation.actors.actor import Actor
from millstream.simulation.observations import Transaction, Violation

PLAIN, LEDGER = "plain", "ledger"
PARTITIONS = 3
FENCED_CHANCE = 0.05  # of a transaction during which another producer with the same id starts
BURST_RECORDS = 12
BURST_BATCH_BYTES = 600  # five of them can be in flight
BURST_PADDING = "x" * 200
SETTINGS: dict[str, object] = {
    "delivery_timeout_ms": 60_000,
    "request_timeout_ms": 10_000,
    "retry_backoff_ms": 100,
    "max_block_ms": 30_000,
}


class IdempotentProducer(Actor):
    """Sends numbered records, and stores the acknowledged ones."""

    pause_ms = (100, 3_000)

    def run(self) -> None:
        """Open a producer and send; open the next one after a fatal error."""
        life = 0
        while not self.must_stop:
            life += 1
            try:
                with producer(self.target, **self._settings(), **SETTINGS) as out:
                    self._send(out, f"{self.name}/{self.starts}.{life}")
            except MillstreamError as error:
                self.note("opens another producer after", type(error).__name__, error.message[:120])
                self.sleep(100, 1_000)

    def _settings(self) -> dict[str, object]:
        return {"linger_ms": self.random.choice((0, 5, 100))}

    def _next_partitions(self) -> list[TopicPartition]:
        """The partitions of the next records."""
        count = self.random.choice((1, 3, 20))
        return [TopicPartition(PLAIN, self.random.randrange(PARTITIONS)) for _ in range(count)]

    def _send(self, out: Producer, who: str) -> None:
        number = 0
        while not self.must_stop:
            sent: list[tuple[TopicPartition, bytes, Delivery]] = []
            for tp in self._next_partitions():
                value = f"{who} {number}".encode()
                sent.append((tp, value, out.send(tp.topic, value, partition=tp.partition)))
                number += 1
            for tp, value, delivery in sent:
                metadata = delivery.result(timeout_ms=90_000)
                self.platform.observations.acknowledge(tp, metadata.offset, value)
                self.platform.broker.acknowledged_to(self.name)
            self.note("got acknowledgements of", len(sent), "records of", who)
            self.pause(*self.pause_ms)


class BurstProducer(IdempotentProducer):
    """Sends many small batches to one partition at once: several segments, if those are small."""

    pause_ms = (500, 4_000)

    def _settings(self) -> dict[str, object]:
        return {"linger_ms": 0, "batch_size": BURST_BATCH_BYTES}

    def _next_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(PLAIN, self.random.randrange(PARTITIONS))] * BURST_RECORDS

    def _send(self, out: Producer, who: str) -> None:
        super()._send(out, f"{who} {BURST_PADDING}")


class TransactionalProducer(Actor):
    """Sends records in transactions, and stores their outcomes."""

    def run(self) -> None:
        """Open a producer and run transactions; open the next one after a fatal error."""
        life = 0
        while not self.must_stop:
            life += 1
            timeout_ms = self.random.choice((5_000, 15_000))
            try:
                with self._open(timeout_ms) as out:
                    out.init_transactions()
                    self._run(out, f"{self.name}/{self.starts}.{life}")
            except MillstreamError as error:
                self.note("opens another producer after", type(error).__name__, error.message[:120])
                self.sleep(100, 1_000)

    def _open(self, timeout_ms: int) -> Producer:
        return producer(
            self.target,
            transactional_id=self.name,
            transaction_timeout_ms=timeout_ms,
            **SETTINGS,
        )

    def _run(self, out: Producer, who: str) -> None:
        number = 0
        while not self.must_stop:
            name = f"{who} from {number}"
            transaction = self.platform.observations.transactions[name] = Transaction()
            out.begin_transaction()
            count = self.random.choice((1, 3, 10))
            fenced_at = self.random.randrange(count) if self.random.random() < FENCED_CHANCE else -1
            for index in range(count):
                tp = TopicPartition(LEDGER, self.random.randrange(PARTITIONS))
                value = f"{who} {number}".encode()
                transaction.values.append((tp, value))
                out.send(tp.topic, value, partition=tp.partition)
                number += 1
                if self.random.random() < 0.1:
                    self.sleep(1, 20_000)
                if index == fenced_at:
                    with self._open(15_000) as other:  # as if two were started by mistake
                        other.init_transactions()
                    self.note("has fenced itself in", name)
            if fenced_at >= 0:
                out.commit_transaction()
                raise Violation("a fenced producer is refused", f"{name} was committed")
            if self.random.random() < 0.3:
                out.abort_transaction()
                transaction.outcome = "aborted"
            else:
                out.commit_transaction()
                transaction.outcome = "committed"
            self.platform.broker.acknowledged_to(self.name)
            self.note("has", transaction.outcome, name)
            self.pause(100, 3_000)
