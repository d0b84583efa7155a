"""Sequences: the producer id and the sequence numbers of batches, for idempotence.

Every record of a partition has a sequence; a batch has that of its first record. The broker accepts
only the next one, so a batch that is sent twice is stored once. When a numbered batch fails, the
broker will never receive its sequences: the producer then increments its epoch and restarts at 0 in
all partitions, as soon as nothing is in flight and no outcome is uncertain.
"""

from broker.batch.layout import SEQUENCE_COUNT
from broker.client.produced_batch import ProducedBatch
from broker.model import ProducerIdentity, TopicPartition

EPOCH_MAX = 32_767


class Sequences:
    """The sequences of one producer; only the sender's thread uses it."""

    def __init__(self) -> None:
        self.producer: ProducerIdentity | None = None
        self.restart_wanted = False
        self._next: dict[TopicPartition, int] = {}

    def start(self, producer: ProducerIdentity) -> None:
        """Use a producer id from the broker, with sequences from 0."""
        self.producer = producer
        self.restart_wanted = False
        self._next.clear()

    def restart(self) -> None:
        """Increment the epoch, which the broker accepts; the last epoch needs a new producer id."""
        assert self.producer is not None, "nothing was numbered yet"
        producer_id, epoch = self.producer
        if epoch >= EPOCH_MAX:
            self.producer = None
            self.restart_wanted = False
            self._next.clear()
        else:
            self.start(ProducerIdentity(producer_id, epoch + 1))

    def number(self, batch: ProducedBatch) -> None:
        """Give a batch the next sequences of its partition."""
        assert self.producer is not None, "the identity comes first"
        sequence = self._next.get(batch.tp, 0)
        batch.producer = self.producer
        batch.base_sequence = sequence
        self._next[batch.tp] = (sequence + batch.record_count) % SEQUENCE_COUNT
