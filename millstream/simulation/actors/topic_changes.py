"""TopicChanges: creates, fills, truncates, deletes and recreates topics."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from broker.client import admin, consumer, producer
from broker.client.administration.values import NewTopic, Results
from broker.client.cluster_admin import Admin
from broker.errors import ErrorCode, MillstreamError
from broker.model import TopicPartition
from millstream.simulation.actors.actor import Actor
from millstream.simulation.actors.broker import BrokerActor
from millstream.simulation.actors.producers import SETTINGS
from millstream.simulation.observations import Violation

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import SimulatedPlatform

NAMES = ("changing 0", "changing 1", "compacted", "forgetful")
SMALL = {"segment.bytes": "1000"}
COMPACTING = SMALL | {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
COMPACTED = {
    "compacted": COMPACTING,  # tombstones are kept for a day, longer than clock jumps
    "forgetful": COMPACTING | {"delete.retention.ms": "1000"},
}
KEYS = 5
TOMBSTONE_CHANCE = 0.2
Pair = tuple[bytes, bytes | None]


@dataclass(slots=True)
class Content:
    """The expected content of a topic."""

    records: dict[int, Pair] = field(default_factory=dict)
    start: int = 0  # earlier records may be deleted
    deleted: int = 0  # earlier records must be deleted, unless the broker has crashed since
    crashes: int = 0  # of the broker, before the deletion
    is_known: bool = True


class TopicChanges(Actor):
    """Changes topics step by step, and compares them with their expected content."""

    def __init__(self, name: str, platform: "SimulatedPlatform") -> None:
        super().__init__(name, platform)
        self.topics: dict[str, Content] = {}
        self._names_used_before: set[str] = set()
        self._number = 0

    def run(self) -> None:
        """Change topics until stopped."""
        with admin(
            self.target, request_timeout_ms=10_000, default_api_timeout_ms=20_000
        ) as cluster:
            while not self.must_stop:
                name = self.random.choice(NAMES).replace(" ", "-")
                try:
                    self._step(cluster, name)
                except MillstreamError as error:
                    self.note("could not change", name, type(error).__name__, error.message[:120])
                self.pause(200, 4_000)

    def _step(self, cluster: Admin, name: str) -> None:
        content = self.topics.get(name)
        if content is None:
            self._create(cluster, name)
        elif not content.is_known:
            self._delete(cluster, name)  # after a response that was lost
        elif name not in cluster.list_topics():
            details = f"{name} was created, and does not exist"
            self.platform.report(
                Violation("a topic has exactly the records that were written to it", details)
            )
        else:
            steps: list[Callable[[Admin, str], None]] = [self._fill, self._fill, self._check]
            if name not in COMPACTED:
                steps += [self._truncate, self._check]
            steps += [self._delete] if self.random.random() < 0.4 else []
            self.random.choice(steps)(cluster, name)

    def _create(self, cluster: Admin, name: str) -> None:
        new = NewTopic(name, 1, configs=COMPACTED.get(name, SMALL))
        _raise_errors(cluster.create_topics([new]), ErrorCode.TOPIC_ALREADY_EXISTS)
        self.topics[name] = Content()
        self.note("has created", name)

    def _delete(self, cluster: Admin, name: str) -> None:
        self.topics[name].is_known = False
        _raise_errors(cluster.delete_topics([name]), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        del self.topics[name]
        self._names_used_before.add(name)
        self.note("has deleted", name)

    def _fill(self, cluster: Admin, name: str) -> None:
        content = self.topics[name]
        content.is_known = False  # until all are acknowledged
        tp = TopicPartition(name, 0)
        with producer(self.target, allow_auto_create_topics=False, **SETTINGS) as out:
            sent = []
            for _ in range(self.random.choice((1, 10, 60))):
                self._number += 1
                key = b"%d" % self.random.randrange(KEYS)
                is_tombstone = name in COMPACTED and self.random.random() < TOMBSTONE_CHANCE
                if is_tombstone and self._number % 2:
                    key = (
                        b"left %d" % self._number
                    )  # no later record has this key: compaction must keep it
                value = None if is_tombstone else b"%d" % self._number
                sent.append((key, value, out.send(name, value, key=key, partition=0)))
            for key, value, delivery in sent:
                content.records[delivery.result(timeout_ms=90_000).offset] = (key, value)
        content.is_known = True
        self.note("has filled", tp, "with", len(sent), "records")
        if name in self._names_used_before:
            self.platform.actors["broker"].on_acknowledged()

    def _truncate(self, cluster: Admin, name: str) -> None:
        content = self.topics[name]
        if not content.records:
            return
        crashes = self._crashes()
        before = self.random.choice(list(content.records))
        content.start = max(content.start, before)  # also if the response is lost
        tp = TopicPartition(name, 0)
        _raise_errors(cluster.delete_records({tp: before}), ErrorCode.OFFSET_OUT_OF_RANGE)
        content.deleted, content.crashes = before, crashes
        self.note("has deleted records of", tp, "before", before)

    def _crashes(self) -> int:
        broker = self.platform.actors["broker"]
        assert isinstance(broker, BrokerActor)
        return broker.crashes

    def _check(self, cluster: Admin, name: str) -> None:
        content, tp = self.topics[name], TopicPartition(name, 0)
        records = self._read(tp)
        if self.must_stop:
            return  # possibly before all records were read
        expected = {o: each for o, each in content.records.items() if o >= content.start}
        if name in COMPACTED:
            last = {key: offset for offset, (key, _) in sorted(expected.items())}
            expected = {offset: expected[offset] for offset in last.values()}
        wrong = [offset for offset, each in expected.items() if records.get(offset) != each]
        if (
            name == "forgetful"
        ):  # its tombstones may be deleted, together with all records of their keys
            values = dict(records[offset] for offset in sorted(records))
            wrong = [o for o in wrong if expected[o][1] or values.get(expected[o][0])]
        wrong += [offset for offset, each in records.items() if content.records.get(offset) != each]
        if content.crashes == self._crashes():
            wrong += [offset for offset in records if offset < content.deleted]
        self.note("has checked", tp, "with", len(records), "records")
        if wrong:
            first = min(wrong)
            self.platform.report(
                Violation(
                    "a topic has exactly the records that were written to it",
                    f"{name}: {len(wrong)} of {len(expected)} records are wrong, the first at "
                    f"{first}: {content.records.get(first)} is {records.get(first)} now",
                )
            )

    def _read(self, tp: TopicPartition) -> dict[int, Pair]:
        records: dict[int, Pair] = {}
        with consumer(
            self.target,
            allow_auto_create_topics=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=500,
            request_timeout_ms=10_000,
            default_api_timeout_ms=20_000,
        ) as reader:
            reader.assign([tp])
            end = reader.end_offsets([tp])[tp]
            reader.seek_to_beginning([tp])
            while reader.position(tp) < end and not self.must_stop:
                for record in reader.poll(timeout_ms=1_000):
                    records[record.offset] = (record.key or b"", record.value)
        return records


def _raise_errors(results: Results[Any, Any], *accepted: ErrorCode) -> None:
    """Raise the error of a result, unless it is an accepted one."""
    for error in results.errors.values():
        if error.code not in accepted:
            raise error
