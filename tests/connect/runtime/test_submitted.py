"""Offsets never advance over a record that is not known to be written."""

from collections.abc import Mapping
from typing import Self

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from broker.client.produced_batch import Delivery, Outcomes, ProducedBatch
from broker.clock import ManualClock
from broker.errors import BrokerError, ErrorCode
from broker.model import TopicPartition
from connect.records import SourceRecord
from connect.runtime.source.submitted import SubmittedRecords

REFUSED = BrokerError(ErrorCode.MESSAGE_TOO_LARGE)


class Fate(Delivery):
    """The delivery of a record that is alone in its batch; a test decides its outcome."""

    def __new__(cls, is_done: bool = False, error: BrokerError | None = None) -> Self:
        batch = ProducedBatch(TopicPartition("out", 0), 0, Outcomes(ManualClock()))
        batch.done, batch.error = is_done, error
        return super().__new__(cls, (batch, 0, 0))

    @property
    def is_done(self) -> bool:
        return self[0].done

    def decide(self, error: BrokerError | None = None) -> None:
        self[0].done, self[0].error = True, error


def row(partition: str, number: int) -> SourceRecord:
    return SourceRecord({"file": partition}, {"line": number}, "out")


def offsets(submitted: SubmittedRecords) -> dict[str, object]:
    """The offsets that may be stored, by file."""
    found = submitted.acknowledged().offsets.values()
    return {str(partition["file"]): offset["line"] for partition, offset in found}


def never(record: SourceRecord, error: BaseException) -> bool:
    raise AssertionError("nothing was refused")


def test_an_offset_waits_for_all_records_before_it() -> None:
    submitted = SubmittedRecords(never, keep_records=False)
    fates = [Fate() for _ in range(4)]
    submitted.submit([row("a", n) for n in range(4)], list(fates))
    fates[1].decide()
    fates[3].decide()
    assert offsets(submitted) == {}
    fates[0].decide()
    assert offsets(submitted) == {"a": 1}
    fates[2].decide()
    assert offsets(submitted) == {"a": 3}
    assert len(submitted) == 0


def test_partitions_of_the_source_do_not_wait_for_each_other() -> None:
    submitted = SubmittedRecords(never, keep_records=False)
    submitted.submit([row("a", 1), row("b", 1), row("a", 2)], [Fate(), Fate(True), Fate(True)])
    submitted.submit([row("b", 2)], [Fate(True)])
    assert offsets(submitted) == {"b": 2}
    assert len(submitted) == 2


def test_records_that_were_dropped_count_as_written() -> None:
    submitted = SubmittedRecords(never, keep_records=True)
    submitted.submit([row("a", 1), row("a", 2)], [Fate(True), None])
    found = submitted.acknowledged()
    assert (found.written, found.dropped) == (1, 1)
    assert [record.source_offset["line"] for record, _ in found.records] == [1, 2]
    assert found.records[1][1] is None


def test_a_refused_record_stops_its_partition_unless_tolerated() -> None:
    refused: list[SourceRecord] = []

    def refuse(record: SourceRecord, error: BaseException) -> bool:
        refused.append(record)
        return record.source_partition["file"] == "tolerant"

    submitted = SubmittedRecords(refuse, keep_records=False)
    for name in ("strict", "tolerant"):
        fates = [Fate(True), Fate(True, REFUSED), Fate(True)]
        submitted.submit([row(name, n) for n in range(3)], list(fates))
    assert offsets(submitted) == {"strict": 0, "tolerant": 2}
    assert [record.source_offset["line"] for record in refused] == [1, 1]
    assert offsets(submitted) == {}


class Deliveries(RuleBasedStateMachine):
    """Records of three partitions, acknowledged in any order, against a list per partition."""

    waiting = Bundle("waiting")

    def __init__(self) -> None:
        super().__init__()
        self.submitted = SubmittedRecords(lambda record, error: True, keep_records=False)
        self.lines: dict[str, list[Fate | None]] = {"a": [], "b": [], "c": []}
        self.stored: dict[str, int] = {}

    @rule(
        target=waiting,
        files=st.lists(st.sampled_from("abc"), min_size=1, max_size=8),
        dropped=st.lists(st.booleans(), min_size=8, max_size=8),
    )
    def poll(self, files: list[str], dropped: list[bool]) -> list[Fate]:
        records: list[SourceRecord] = []
        fates: list[Fate | None] = []
        for name, is_dropped in zip(files, dropped, strict=False):
            fate = None if is_dropped else Fate()
            records.append(row(name, len(self.lines[name])))
            self.lines[name].append(fate)
            fates.append(fate)
        self.submitted.submit(records, list(fates))
        return [fate for fate in fates if fate is not None]

    @rule(fates=consumes(waiting), order=st.randoms(use_true_random=False), part=st.booleans())
    def acknowledge(self, fates: list[Fate], order: object, part: bool) -> None:
        shuffled = list(fates)
        order.shuffle(shuffled)  # type: ignore[attr-defined]  # hypothesis' own Random
        for fate in shuffled[: len(shuffled) // 2] if part else shuffled:
            fate.decide()

    @rule(fates=consumes(waiting))
    def refuse(self, fates: list[Fate]) -> None:
        for fate in fates:
            fate.decide(REFUSED)

    @invariant()
    def only_offsets_behind_which_everything_is_known_are_given_out(self) -> None:
        for name, line in offsets(self.submitted).items():
            assert isinstance(line, int)
            assert line > self.stored.get(name, -1)
            self.stored[name] = line
        for name, fates in self.lines.items():
            known = 0
            while known < len(fates) and (fates[known] is None or fates[known].is_done):  # type: ignore[union-attr]
                known += 1
            assert self.stored.get(name, -1) == known - 1


TestDeliveries = Deliveries.TestCase
TestDeliveries.settings = settings(max_examples=30, stateful_step_count=25)
TestDeliveries = pytest.mark.slow(TestDeliveries)


def test_equal_partitions_are_one_whatever_the_order_of_their_names() -> None:
    submitted = SubmittedRecords(never, keep_records=False)
    first: Mapping[str, object] = {"host": 1, "file": "a"}
    second: Mapping[str, object] = {"file": "a", "host": 1}
    fate = Fate()
    submitted.submit([SourceRecord(first, {"line": 1}, "out")], [fate])
    submitted.submit([SourceRecord(second, {"line": 2}, "out")], [Fate(True)])
    assert offsets(submitted) == {}
    fate.decide()
    assert offsets(submitted) == {"a": 2}
