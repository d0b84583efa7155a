"""RetainedTopic: a topic with a short retention time or a small retention size."""

from typing import TYPE_CHECKING

from broker.client import admin, consumer, producer
from broker.client.administration.values import NewTopic
from broker.client.record_consumer import Consumer
from broker.errors import ErrorCode, MillstreamError
from broker.model import TopicPartition
from millstream.simulation.actors.actor import Actor
from millstream.simulation.actors.producers import SETTINGS
from millstream.simulation.clock import START_MS
from millstream.simulation.observations import Violation

if TYPE_CHECKING:
    from millstream.simulation.simulated_platform import SimulatedPlatform

RETENTION_MS = 15_000
RETENTION_BYTES = 8_000
SEGMENT_BYTES = 2_000
VALUE_BYTES = 100
RECORD_BYTES = (VALUE_BYTES, VALUE_BYTES + 80)  # with its share of a batch: from, to
AT_ONCE_MAX = 10
EXPIRY_SECONDS_MAX = 120
CLIENT = {"request_timeout_ms": 10_000, "default_api_timeout_ms": 20_000}
INVARIANT = "retention removes expired segments, and nothing else"


class RetainedTopic(Actor):
    """Writes and reads: only expired records may be missing, and in the end they must be."""

    def __init__(self, name: str, platform: "SimulatedPlatform") -> None:
        super().__init__(name, platform)
        self._by_time = name.endswith("time")
        self._tp = TopicPartition(name.replace(" ", "-"), 0)
        self._values: dict[int, tuple[bytes, int]] = {}  # acknowledged, with their timestamps
        self._number = 0
        self._start = 0
        self._power_losses = 0

    def run(self) -> None:
        """Write and check until stopped; then wait until all records have expired."""
        self._create()
        while not self.must_stop:
            try:
                self._fill()
                self._check()
            except MillstreamError as error:
                self.note("could not go on:", type(error).__name__, error.message[:120])
            self.pause(200, 6_000)
        self._await_expiry()

    def _create(self) -> None:
        configs = {"segment.bytes": str(SEGMENT_BYTES)}
        if self._by_time:
            configs["retention.ms"] = str(RETENTION_MS)
        else:
            configs["retention.bytes"] = str(RETENTION_BYTES)
        with admin(self.target, **CLIENT) as cluster:
            while not self.must_stop:
                try:
                    new = NewTopic(self._tp.topic, 1, configs=configs)
                    errors = cluster.create_topics([new]).errors.values()
                except MillstreamError:
                    continue
                if all(error.code == ErrorCode.TOPIC_ALREADY_EXISTS for error in errors):
                    return

    def _fill(self) -> None:
        with producer(self.target, **SETTINGS) as out:
            sent = []
            for _ in range(self.random.randint(1, AT_ONCE_MAX)):
                self._number += 1
                value = b"%0*d" % (VALUE_BYTES, self._number)
                sent.append((value, out.send(self._tp.topic, value, partition=0)))
            for value, delivery in sent:
                stored = delivery.result(timeout_ms=90_000)
                before, _ = self._values.setdefault(stored.offset, (value, stored.timestamp_ms))
                if before != value:
                    self._fail(f"offset {stored.offset} was acknowledged for two records")
                self.platform.broker.acknowledged_to(self.name)

    def _check(self) -> None:
        values: dict[int, bytes] = {}
        with self._reader() as reader:
            start = reader.beginning_offsets([self._tp])[self._tp]
            end = reader.end_offsets([self._tp])[self._tp]
            reader.seek(self._tp, start)
            while reader.position(self._tp) < end and not self.must_stop:
                for record in reader.poll(timeout_ms=1_000):
                    values[record.offset] = record.value or b""
            removed_before = reader.beginning_offsets([self._tp])[
                self._tp
            ]  # some may have expired in the meantime
        if not self.must_stop:
            self.note("has read", self._tp, "from", start, "to", end)
            self._check_start(start)
            if end <= max(self._values, default=-1):
                self._fail(f"ends at {end}, and {max(self._values)} was acknowledged")
            removed_before = max(removed_before, self._end_of_gaps(values, removed_before, end))
            self._check_removed(removed_before)
            self._check_retained(removed_before, end)
            for offset, (value, _) in self._values.items():
                if removed_before <= offset < end and values.get(offset) != value:
                    self._fail(f"offset {offset} is {values.get(offset)!r}, not {value!r}")

    def _check_start(self, start: int) -> None:
        losses = self.platform.disk_of(self.platform.actors["broker"]).power_losses
        if start < self._start and losses == self._power_losses:
            self._fail(f"the log started at {self._start}, and starts at {start} now")
        self._start, self._power_losses = start, losses

    def _end_of_gaps(self, values: dict[int, bytes], start: int, end: int) -> int:
        """The offset after the last missing record, if there was a power loss.

        After a power loss, the first of several removed segments may exist again, and the next one
        not. That is correct if both had expired.
        """
        if not self._power_losses:
            return 0
        return 1 + max(
            (each for each in self._values if start <= each < end and each not in values),
            default=-1,
        )

    def _check_retained(self, start: int, end: int) -> None:
        kept_bytes_max = (end - start + AT_ONCE_MAX) * RECORD_BYTES[1]
        if not self._by_time and start and kept_bytes_max < RETENTION_BYTES:
            self._fail(f"{start} to {end} is less than {RETENTION_BYTES} bytes")

    def _check_removed(self, before: int) -> None:
        if not self._by_time:
            return
        platform = self.platform
        clock = platform.clock_of(platform.actors["broker"])
        now_ms = START_MS + clock.ahead_max_ms + platform.simulation.scheduler.now_us // 1_000
        for offset, (_, timestamp_ms) in self._values.items():
            if offset < before and now_ms - timestamp_ms <= RETENTION_MS:
                self._fail(f"offset {offset} is gone after {now_ms - timestamp_ms} ms")

    def _await_expiry(self) -> None:
        """Wait until expired records are removed, without faults."""
        clock = self.platform.clock_of(self.platform.actors["broker"])
        if clock.ahead_ms < 0:
            return  # records seem newer than they are
        start = end = 0
        remaining_max = 0 if self._by_time else (RETENTION_BYTES + SEGMENT_BYTES) // RECORD_BYTES[0]
        with consumer(self.target, **CLIENT) as reader:
            for _ in range(EXPIRY_SECONDS_MAX):
                try:
                    start = reader.beginning_offsets([self._tp])[self._tp]
                    end = reader.end_offsets([self._tp])[self._tp]
                except MillstreamError:
                    continue
                if end - start <= remaining_max:
                    return
                self.platform.simulation.scheduler.sleep(1_000_000)
        self._fail(f"offsets {start} to {end} are still there after {EXPIRY_SECONDS_MAX} s")

    def _reader(self) -> Consumer:
        reader = consumer(
            self.target, auto_offset_reset="earliest", fetch_max_wait_ms=500, **CLIENT
        )
        reader.assign([self._tp])
        return reader

    def _fail(self, details: str) -> None:
        self.platform.report(Violation(INVARIANT, f"{self._tp}: {details}"))
