"""Balances: transactions on a compacted topic, some of them aborted or left open for a while.

Compaction reads segments with open transactions. It must retain the last committed value of each
key, regardless of open and aborted transactions.
"""

from typing import TYPE_CHECKING

from broker.client import admin, consumer, producer
from broker.client.administration.values import NewTopic
from broker.client.record_producer import Producer
from broker.errors import ErrorCode, MillstreamError
from broker.model import TopicPartition
from millstream.simulation.actors.actor import Actor
from millstream.simulation.actors.producers import SETTINGS
from millstream.simulation.observations import Violation

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import SimulatedPlatform

TOPIC = "balances"
CONFIGS = {
    "segment.bytes": "1000",  # a transaction has records in several segments
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
}
KEYS = 5
PADDING = b" " * 100
ABORT_CHANCE = 0.5
OPEN_CHANCE = 0.3  # of a transaction that stays open until the log has been compacted
OPEN_MS = (2_000, 8_000)
TIMEOUT_MS = 15_000
CLIENT = {"request_timeout_ms": 10_000, "default_api_timeout_ms": 20_000}
INVARIANT = "compaction keeps the last committed value of a key"


class Balances(Actor):
    """Writes transactions, and reads and checks the topic after some of them."""

    def __init__(self, name: str, platform: "SimulatedPlatform") -> None:
        super().__init__(name, platform)
        self._tp = TopicPartition(TOPIC, 0)
        self._number = 0
        self._committed: dict[bytes, bytes] = {}  # the last value of each key
        # Later values of each key, from transactions with an unknown outcome.
        self._possible: dict[bytes, set[bytes]] = {}
        self._aborted: set[bytes] = set()

    def run(self) -> None:
        """Write until stopped; open another producer after an error."""
        self._create()
        while not self.must_stop:
            try:
                with producer(
                    self.target,
                    transactional_id=self.name,
                    transaction_timeout_ms=TIMEOUT_MS,
                    **SETTINGS,
                ) as out:
                    out.init_transactions()
                    while not self.must_stop:
                        self._run(out)
                        if self.random.random() < 0.5:
                            self._check()
                        self.pause(100, 3_000)
            except MillstreamError as error:
                self.note("opens another producer after", type(error).__name__, error.message[:120])
                self.sleep(100, 1_000)

    def _create(self) -> None:
        with admin(self.target, **CLIENT) as cluster:
            while not self.must_stop:
                try:
                    new = NewTopic(TOPIC, 1, configs=CONFIGS)
                    errors = cluster.create_topics([new]).errors.values()
                except MillstreamError:
                    continue
                if all(error.code == ErrorCode.TOPIC_ALREADY_EXISTS for error in errors):
                    return

    def _run(self, out: Producer) -> None:
        """Run one transaction."""
        written: dict[bytes, bytes] = {}
        values: set[bytes] = set()
        out.begin_transaction()
        for _ in range(self.random.choice((1, 5, 20))):
            self._number += 1
            key, value = b"%d" % self.random.randrange(KEYS), b"%d" % self._number + PADDING
            self._possible.setdefault(key, set()).add(value)
            written[key] = value
            values.add(value)
            out.send(TOPIC, value, key=key, partition=0)
        if self.random.random() < OPEN_CHANCE:
            out.flush()
            self.sleep(*OPEN_MS)
        if self.random.random() < ABORT_CHANCE:
            out.abort_transaction()
            self._aborted |= values
            for key in written:
                self._possible[key] -= values
        else:
            out.commit_transaction()
            self._committed |= written
            for key in written:
                del self._possible[key]
        self.note("has ended a transaction of", len(values), "records")

    def _check(self) -> None:
        values: dict[bytes, bytes] = {}
        with consumer(
            self.target,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            fetch_max_wait_ms=500,
            **CLIENT,
        ) as reader:
            reader.assign([self._tp])
            end = reader.end_offsets([self._tp])[self._tp]
            while reader.position(self._tp) < end:
                for record in reader.poll(timeout_ms=1_000):
                    value = record.value or b""
                    if value in self._aborted:
                        self._fail(f"offset {record.offset} has {value!r}, which was aborted")
                    values[record.key or b""] = value
                if self.must_stop:
                    return  # possibly before all records were read
        for key, value in self._committed.items():
            if values.get(key) not in {value, *self._possible.get(key, ())}:
                self._fail(f"key {key!r} is {values.get(key)!r}, not {value!r}")
        self.note("has checked", len(values), "keys")

    def _fail(self, details: str) -> None:
        self.platform.report(Violation(INVARIANT, f"{TOPIC}: {details}"))
