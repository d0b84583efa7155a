"""Shared reads against a model log: every reader sees exactly what a private one would see."""

from concurrent.futures import Future
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.client.answers import code_of
from broker.client.sharing.fetches import Reader
from broker.errors import ConnectionFailed, ErrorCode
from broker.protocol.messages.fetch import PartitionData
from tests.broker.client.model_log import (
    ModelCluster,
    ModelLog,
    bases_of,
    partitions_of,
    run_of,
)

PARTITIONS = 2
READERS = 4  # the last two read committed data
DRAIN_STEPS_MAX = 2_000


@dataclass(slots=True)
class Position:
    """Where a model reader stands in a partition, and what it asked last."""

    offset: int = 0
    epoch: int = 0
    asked: tuple[int, int] = (0, 0)


@dataclass(slots=True)
class ModelReader:
    """A consumer of a few lines."""

    reader: Reader
    isolation: int
    positions: list[Position] = field(
        default_factory=lambda: [Position() for _ in range(PARTITIONS)]
    )
    answer: Future[object] | None = None
    bytes_max: int = 1_000_000


class SharedReading(RuleBasedStateMachine):
    """Logs change, readers ask and move, answers come in any order."""

    @initialize(
        cache_bytes=st.sampled_from([0, 300, 2_000, 1_000_000]),
        bytes_max=st.lists(
            st.sampled_from([1, 200, 1_000_000]), min_size=READERS, max_size=READERS
        ),
    )
    def open(self, cache_bytes: int, bytes_max: list[int]) -> None:
        self.cluster = ModelCluster(PARTITIONS, cache_bytes=cache_bytes)
        self.old: dict[tuple[int, int], ModelLog] = {}  # logs of leaders before, by epoch
        self.readers = [
            ModelReader(self.cluster.reader(), int(number >= READERS // 2), bytes_max=size)
            for number, size in enumerate(bytes_max)
        ]

    # --- the log ------------------------------------------------------------------------------

    @rule(
        partition=st.integers(0, PARTITIONS - 1),
        kind=st.sampled_from(["plain", "data", "data", "commit", "abort"]),
        count=st.integers(1, 3),
        producer=st.integers(1, 2),
    )
    def append(self, partition: int, kind: str, count: int, producer: int) -> None:
        log = self.cluster.logs[partition]
        log.append(kind, count=count, producer=-1 if kind == "plain" else producer)

    @rule(partition=st.integers(0, PARTITIONS - 1), share=st.floats(0, 1))
    def retain(self, partition: int, share: float) -> None:
        log = self.cluster.logs[partition]
        log.start += int((log.end - log.start) * share)

    @rule(partition=st.integers(0, PARTITIONS - 1), which=st.integers(0, 50))
    def compact(self, partition: int, which: int) -> None:
        plain = [batch for batch in self.cluster.logs[partition].batches if batch.kind == "plain"]
        if plain[:-1]:
            plain[which % (len(plain) - 1)].compacted = True

    @rule(partition=st.integers(0, PARTITIONS - 1), count=st.integers(0, 4))
    def new_leader(self, partition: int, count: int) -> None:
        """Another leader, which may lack the last batches."""
        log = self.cluster.logs[partition]
        self.old[partition, log.epoch] = ModelLog(list(log.batches), log.start, log.end, log.epoch)
        log.epoch += 1
        self._truncate(log, count)

    @rule(partition=st.integers(0, PARTITIONS - 1), count=st.integers(0, 4))
    def restart(self, partition: int, count: int) -> None:
        """The same leader comes back without the last batches."""
        self._truncate(self.cluster.logs[partition], count)
        self.cluster.break_connections()

    def _truncate(self, log: ModelLog, count: int) -> None:
        log.truncate(min(count, sum(batch.base >= log.start for batch in log.batches)))

    # --- readers ------------------------------------------------------------------------------

    @rule(number=st.integers(0, READERS - 1))
    def ask(self, number: int) -> None:
        reader = self.readers[number]
        if reader.answer is None:
            self._ask(reader)

    @rule(
        number=st.integers(0, READERS - 1),
        partition=st.integers(0, PARTITIONS - 1),
        share=st.floats(0, 1.2),
    )
    def seek(self, number: int, partition: int, share: float) -> None:
        reader = self.readers[number]
        if reader.answer is None:
            reader.positions[partition].offset = int(self.cluster.logs[partition].end * share)

    @rule(number=st.integers(0, READERS - 1))
    def close_and_open(self, number: int) -> None:
        reader = self.readers[number]
        self.cluster.reads.leave(reader.reader)
        assert reader.answer is None or reader.answer.done()
        reader.reader = self.cluster.reader()
        reader.answer = None

    @rule(first=st.integers(0, READERS - 1), second=st.integers(0, READERS - 1))
    def join(self, first: int, second: int) -> None:
        """One reader goes where another is."""
        reader = self.readers[first]
        if reader.answer is None:
            for mine, other in zip(reader.positions, self.readers[second].positions, strict=True):
                mine.offset = other.offset

    # --- the way ------------------------------------------------------------------------------

    @rule(which=st.integers(0, 20))
    def answer_one(self, which: int) -> None:
        waiting = self.cluster.waiting
        if waiting:
            waiting[which % len(waiting)].complete()

    @rule(which=st.integers(0, 20))
    def fail_one(self, which: int) -> None:
        waiting = self.cluster.waiting
        if waiting:
            waiting[which % len(waiting)].complete(ConnectionFailed("lost"))

    @rule(at_once=st.booleans())
    def change_pace(self, at_once: bool) -> None:
        self.cluster.at_once = at_once

    @rule(passed_ms=st.integers(0, 600))
    def wait(self, passed_ms: int) -> None:
        self.cluster.clock.advance(passed_ms)

    @invariant()
    def answers_are_right(self) -> None:
        for reader in getattr(self, "readers", ()):
            if reader.answer is not None and reader.answer.done():
                self._take(reader)

    def teardown(self) -> None:
        """All readers come to the end, however little is kept."""
        for _ in range(DRAIN_STEPS_MAX):
            if all(self._is_through(reader) for reader in getattr(self, "readers", ())):
                return
            for reader in self.readers:
                if reader.answer is None and not self._is_through(reader):
                    self._ask(reader)
            if self.cluster.waiting:
                self.cluster.waiting[0].complete()
            self.answers_are_right()
        raise AssertionError("some readers do not get on")

    # --- what a reader does -------------------------------------------------------------------

    def _is_through(self, reader: ModelReader) -> bool:
        return all(
            position.epoch == log.epoch
            and log.start <= position.offset <= log.end
            and not log.visible(
                position.offset, log.limit(reader.isolation), reader.isolation, compacted=False
            )
            for position, log in zip(reader.positions, self.cluster.logs, strict=True)
        )

    def _ask(self, reader: ModelReader) -> None:
        for position in reader.positions:
            position.asked = (position.offset, position.epoch)
        reader.answer = self.cluster.ask_at(
            reader.reader,
            [position.asked for position in reader.positions],
            isolation=reader.isolation,
            partition_max_bytes=reader.bytes_max,
        )

    def _take(self, reader: ModelReader) -> None:
        answer, reader.answer = reader.answer, None
        assert answer is not None
        if answer.exception() is not None:
            return
        for data in partitions_of(answer):
            self._take_partition(reader, data)

    def _take_partition(self, reader: ModelReader, data: PartitionData) -> None:
        position = reader.positions[data.partition_index]
        log = self.cluster.logs[data.partition_index]
        code = code_of(data.error_code)
        if code is ErrorCode.FENCED_LEADER_EPOCH:
            position.epoch = log.epoch
        elif code is ErrorCode.OFFSET_OUT_OF_RANGE:
            position.offset = log.start
        elif data.records is not None and len(data.records):
            offset, epoch = position.asked
            if epoch != log.epoch:
                log = self.old[data.partition_index, epoch]
            run = run_of(data, offset, reader.isolation)
            seen = bases_of(run, offset)
            ends = (offset, run.next_offset, reader.isolation)
            assert set(log.visible(*ends, compacted=False)) <= set(seen)
            assert set(seen) <= set(log.visible(*ends, compacted=True))
            written = {batch.base: batch.data for batch in log.batches}
            again = run_of(data, offset, reader.isolation)
            while (head := again.peek()) is not None:
                assert bytes(head[0]) == written[head[1].base_offset]
                again.advance()
            assert len(data.records) <= reader.bytes_max or len(seen) <= 1
            position.offset = run.next_offset


TestSharedReading = pytest.mark.slow(SharedReading.TestCase)
TestSharedReading.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
