"""RecordSender: passes rows to a producer, and waits while that is impossible.

It waits while a broker is unavailable, a topic does not exist yet or a buffer is full. The caller
handles permanent errors of the broker.
"""

import logging
from collections.abc import Callable, Sequence

from broker.client.produced_batch import Delivery
from broker.client.record_producer import Producer
from broker.errors import MillstreamError
from connect.retries import RETRY_MS, is_transient
from connect.runtime.source.pipeline import Row
from connect.runtime.topic_creation import TopicCreator
from connect.stop_signal import StopSignal

logger = logging.getLogger(__name__)


class RecordSender:
    """Sends the records of one task; only the task's thread calls it."""

    def __init__(
        self,
        producer: Producer,
        stop: StopSignal,
        creator: TopicCreator | None,
        on_topic: Callable[[str], None],
    ) -> None:
        """`on_topic` is called for every topic, before its first record."""
        self._send_many = producer.send_many
        self._stop = stop
        self._creator = creator
        self._on_topic = on_topic
        self._topics: set[str] = set()

    def send(self, rows: Sequence[Row | None], deliveries: list[Delivery | None]) -> None:
        """Queue the rows that have no delivery yet; None is skipped.

        Waits while that is impossible; raises TaskStopped if the task must stop. Any other
        exception is about the row after the last delivery.
        """
        while (start := len(deliveries)) < len(rows):
            first = rows[start]
            if first is None:
                deliveries.append(None)
                continue
            topic = first[0]
            run = []
            for row in rows[start:] if start else rows:
                if row is None or row[0] != topic:
                    break
                run.append(row[1])
            try:
                if topic not in self._topics:
                    self._begin(topic)
                self._send_many(topic, run, deliveries)
                continue
            except MillstreamError as error:
                if not is_transient(error):
                    raise
                logger.warning('cannot send to topic "%s", will retry: %s', topic, error)
            self._stop.pause(RETRY_MS)

    def _begin(self, topic: str) -> None:
        if self._creator is not None:
            self._creator.ensure(topic)
        self._on_topic(topic)
        self._topics.add(topic)
