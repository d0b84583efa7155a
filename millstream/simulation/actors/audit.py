"""Audit: reads committed records while transactions are open, and stores them."""

from broker.client import consumer
from broker.errors import MillstreamError
from broker.model import TopicPartition
from millstream.simulation.actors.actor import Actor
from millstream.simulation.actors.producers import LEDGER, PARTITIONS


class Audit(Actor):
    """Reads from the beginning at each start: records once read must be read again."""

    def run(self) -> None:
        """Read until stopped; open another consumer after an error."""
        while not self.must_stop:
            try:
                self._read()
            except MillstreamError as error:
                self.note("opens another consumer after", type(error).__name__, error.message[:120])
                self.sleep(100, 1_000)

    def _read(self) -> None:
        visible = self.platform.observations.visible
        with consumer(
            self.target,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=2_000,
            request_timeout_ms=10_000,
            default_api_timeout_ms=20_000,
        ) as reader:
            reader.assign([TopicPartition(LEDGER, number) for number in range(PARTITIONS)])
            while not self.must_stop:
                for record in reader.poll(timeout_ms=2_000):
                    tp = TopicPartition(record.topic, record.partition)
                    visible[tp][record.offset] = record.value or b""
