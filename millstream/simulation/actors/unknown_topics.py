"""UnknownTopics: requests metadata of many unknown topics, which creates them."""

from broker.client import admin, consumer
from broker.errors import MillstreamError
from broker.model import TopicPartition
from millstream.simulation.actors.actor import Actor

AT_ONCE = 40
CLIENT = {"request_timeout_ms": 10_000, "default_api_timeout_ms": 20_000}


class UnknownTopics(Actor):
    """Requests topics with one request, then deletes them."""

    def run(self) -> None:
        """Request topics until stopped."""
        number = 0
        while not self.must_stop:
            number += 1
            names = [f"unknown-{number}-{each}" for each in range(AT_ONCE)]
            try:
                self._request(names)
            except MillstreamError as error:
                self.note("was refused:", type(error).__name__, error.message[:120])
            self.sleep(5_000, 60_000)

    def _request(self, names: list[str]) -> None:
        partitions = [TopicPartition(name, 0) for name in names]
        try:
            with consumer(self.target, auto_offset_reset="earliest", **CLIENT) as reader:
                reader.assign(partitions)
                reader.end_offsets(partitions)
            self.note("has asked for", len(names), "topics")
        finally:
            with admin(self.target, **CLIENT) as cluster:
                cluster.delete_topics(names)
