"""Sequences: who the producer is and how its batches are numbered, for idempotence.

Every record of a partition has a sequence; a batch carries its first. The broker takes only the
next one, so a batch sent twice is stored once. When a numbered batch is given up, the broker will
never see its sequences: the producer then raises its epoch and starts at 0 everywhere, as soon as
nothing is in flight and no outcome is uncertain.
"""

from broker.batch.layout import SEQUENCE_COUNT
from broker.client.produced_batch import ProducedBatch
from broker.model import ProducerIdentity, TopicPartition

EPOCH_MAX = 32_767


class Sequences:
    """The numbers of one producer; belongs to the sender's thread."""

    def __init__(self) -> None:
        self.producer: ProducerIdentity | None = None
        self.restart_wanted = False
        self._next: dict[TopicPartition, int] = {}

    def start(self, producer: ProducerIdentity) -> None:
        """Take an identity from the broker and number from 0."""
        self.producer = producer
        self.restart_wanted = False
        self._next.clear()

    def restart(self) -> None:
        """Raise the epoch by ourselves, which the broker accepts; the last epoch needs a new id."""
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
