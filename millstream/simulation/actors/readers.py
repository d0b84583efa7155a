"""Readers: members of a consumer group, with the classic protocol or KIP-848."""

from collections.abc import Iterable

from broker.client import consumer
from broker.client.api import RebalanceListener
from broker.errors import MillstreamError
from broker.model import TopicPartition
from millstream.simulation.actors.actor import Actor
from millstream.simulation.actors.producers import PLAIN
from millstream.simulation.observations import Violation

MAX_POLL_INTERVAL_MS = 10_000
SLOW_CHANCE = 0.1  # that processing is slow, possibly until other members get the partitions


class GroupReader(Actor):
    """Reads a topic as a member of a group, commits after each poll, and stores the offsets."""

    def run(self) -> None:
        """Read until stopped; open another consumer after an error."""
        self.protocol = self.name.split()[0]
        self.group = f"{self.protocol} readers"
        while not self.must_stop:
            try:
                self._read()
            except MillstreamError as error:
                self.note("opens another consumer after", type(error).__name__, error.message[:120])
                self.sleep(100, 1_000)

    def _read(self) -> None:
        wait_ms = 2_000 * self.platform.scenario.pace
        settings: dict[str, object] = {"group_protocol": self.protocol}
        if self.protocol == "classic":
            settings |= {"session_timeout_ms": 10_000, "heartbeat_interval_ms": 3_000}
        with consumer(
            self.target,
            group_id=self.group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            fetch_max_wait_ms=wait_ms,
            request_timeout_ms=10_000,
            default_api_timeout_ms=20_000,
            max_poll_interval_ms=MAX_POLL_INTERVAL_MS,
            **settings,
        ) as reader:

            def assigned(partitions: Iterable[TopicPartition]) -> None:
                for tp in partitions:
                    self._set_owner(tp, reader.group_metadata().generation_id)
                    self._check_position(tp, reader.position(tp))

            reader.subscribe([PLAIN], RebalanceListener(assigned=assigned))
            delivered = self.platform.observations.delivered[self.group]
            while not self.must_stop:
                records = reader.poll(timeout_ms=self.random.choice((100, wait_ms)))
                if not records:
                    continue
                ends: dict[TopicPartition, int] = {}
                for record in records:
                    tp = TopicPartition(record.topic, record.partition)
                    delivered[tp].add(record.offset)
                    ends[tp] = record.offset + 1
                if self.random.random() < SLOW_CHANCE:
                    self.sleep(1_000, MAX_POLL_INTERVAL_MS * 3 // 2)
                owners = {
                    tp: self.platform.observations.owners.get((self.group, tp)) for tp in ends
                }
                reader.commit()
                for tp, end in ends.items():
                    self._committed(tp, end, owners[tp])
                self.platform.broker.acknowledged_to(self.name)
                self.note("has read", len(records), "records")

    def _set_owner(self, tp: TopicPartition, generation: int) -> None:
        """Store the new owner of a partition, unless its generation is older than another's."""
        owners = self.platform.observations.owners
        if generation >= owners.get((self.group, tp), ("", -1))[1]:
            owners[self.group, tp] = (f"{self.name}/{self.starts}", generation)

    def _committed(self, tp: TopicPartition, end: int, owner: tuple[str, int] | None) -> None:
        """Store a committed offset; `owner` is the partition's owner when the commit began."""
        observations = self.platform.observations
        observations.committed[self.group, tp] = max(
            end, observations.committed.get((self.group, tp), 0)
        )
        if owner is not None and owner[0] != f"{self.name}/{self.starts}":
            raise Violation(
                "one owner per partition",
                f"{self.name} has committed {end} for {tp}, which {owner[0]} has since "
                f"generation {owner[1]}",
            )

    def _check_position(self, tp: TopicPartition, position: int) -> None:
        committed = self.platform.observations.committed.get((self.group, tp), 0)
        self.note("is assigned", tp, "at", position)
        if position < committed:
            self.platform.report(
                Violation(
                    "no committed offset is lost",
                    f"{self.group} begins {tp} at {position}, and {committed} was committed",
                )
            )
