"""A task alone, with everything it sends kept in a list."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from broker.clock import ManualClock
from streams.config import StreamsConfig
from streams.processor import CacheBudget
from streams.record import Chunk, Headers
from streams.runtime.task import Task
from streams.state.task_state import TaskState
from streams.topology import Topology


class Sent(NamedTuple):
    """A record that a task has sent."""

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Headers
    partition: int | None


class Outbox:
    """An Output that keeps what it is given."""

    def __init__(self, partition_count: int = 4) -> None:
        self.sent: list[Sent] = []
        self._partition_count = partition_count

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int,
        headers: Headers,
        partition: int | None,
    ) -> None:
        self.sent.append(Sent(topic, key, value, timestamp_ms, headers, partition))

    def partition_count(self, topic: str) -> int:
        return self._partition_count


class LoneTask:
    """A task of the first sub-topology, on partition 0."""

    def __init__(
        self,
        topology: Topology,
        *,
        clock: ManualClock | None = None,
        global_stores: Mapping[str, object] | None = None,
        cache: CacheBudget | None = None,
        **settings: object,
    ) -> None:
        self.outbox = Outbox()
        self.clock = ManualClock(0) if clock is None else clock
        config = StreamsConfig.of(application_id="app", **settings)
        sub = topology.sub_topologies[0]
        self.state = TaskState(
            [topology.stores[name] for name in sub.stores],
            directory=None,
            default_key_serde=config.default_key_serde,
            default_value_serde=config.default_value_serde,
        )
        self.task = Task(
            topology,
            sub,
            partition=0,
            application_id="app",
            state=self.state,
            output=self.outbox,
            clock=self.clock,
            config=config,
            global_stores=global_stores or {},
            cache=cache,
        )

    def add(
        self, topic: str, rows: Sequence[tuple[str | None, bytes | None, int]], *, offset: int = 0
    ) -> None:
        """Queue records: key, value as bytes, timestamp."""
        keys = [None if key is None else key.encode() for key, _, _ in rows]
        self.task.add(
            Chunk(
                topic,
                0,
                range(offset, offset + len(rows)),
                [timestamp for _, _, timestamp in rows],
                keys,
                [value for _, value, _ in rows],
                None,
                offset + len(rows),
            )
        )

    def run(self) -> int:
        """Process all that waits."""
        done = 0
        while self.task.buffered_total:
            done += self.task.process(1000)
        return done

    @property
    def values(self) -> list[bytes | None]:
        """Values of what was sent."""
        return [record.value for record in self.outbox.sent]
