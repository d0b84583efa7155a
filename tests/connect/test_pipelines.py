"""Records through transforms and converters, and what becomes of those that fail there."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pytest

from broker import Broker
from broker.client.api import ConsumerRecord
from broker.model import TopicPartition
from connect.config.connector import ErrorSettings
from connect.converters.primitives import IntegerConverter, StringConverter
from connect.errors import ConnectError, DataError, RetriableError
from connect.records import Header, Record, SinkRecord, SourceRecord
from connect.runtime.conversion import Converters, Transform
from connect.runtime.error_handling import ErrorHandler, RecordFailure, Stage
from connect.runtime.metrics import ErrorCounts
from connect.runtime.sink.pipeline import ReportableRecord, SinkPipeline
from connect.runtime.source.pipeline import SourcePipeline
from connect.stop_signal import StopSignal
from tests.connect.hasty_clock import HastyClock
from tests.connect.running_worker import (
    committed_offsets,
    make_topic,
    running_worker,
    string_values,
    write,
)
from tests.support.peer import wait_until

AWAY = RetriableError("away")


@dataclass
class Notes:
    """A reporter that keeps everything."""

    failures: list[RecordFailure] = field(default_factory=list)

    def report(self, failure: RecordFailure) -> None:
        self.failures.append(failure)


def handler_with(**settings: bool | int) -> tuple[ErrorHandler, Notes]:
    clock, notes = HastyClock(), Notes()
    made = ErrorSettings(**settings)  # type: ignore[arg-type]
    return ErrorHandler(made, ErrorCounts(), clock, StopSignal(clock), [notes]), notes


def converters(
    key: type[StringConverter | IntegerConverter] = StringConverter,
    value: type[StringConverter | IntegerConverter] = StringConverter,
) -> Converters:
    made = key(), value(), StringConverter()
    for converter, is_key in zip(made, (True, False, False), strict=True):
        converter.configure({}, is_key)
    return Converters(*made, "a.KeyConverter", "a.ValueConverter", "a.HeaderConverter")


def upper(record: Record) -> Record:
    return record.changed(value=str(record.value).upper())


def drop(record: Record) -> None:
    return None


def failing(*errors: Exception) -> Callable[[Record], Record]:
    """A transform that raises these, one after the other, and then does its work."""
    left = list(errors)

    def apply(record: Record) -> Record:
        if left:
            raise left.pop(0)
        return record.changed(topic=record.topic + "!")

    return apply


ROW = SourceRecord({}, {"n": 1}, "t", 3, None, "k", None, "v", 99, [Header("h", None, "x")])
READ = ConsumerRecord("t", 3, 7, 99, b"k", b"v", (("h", b"x"),))


# --- sources --------------------------------------------------------------------------------------


def test_a_source_record_becomes_what_a_producer_sends() -> None:
    handler, _ = handler_with()
    pipeline = SourcePipeline([Transform("a.Upper", upper)], converters(), handler)
    assert pipeline.row(ROW) == ("t", (b"k", b"V", [("h", b"x")], 99, 3))


def test_a_source_record_that_a_transform_drops_is_nothing() -> None:
    handler, notes = handler_with()
    transforms = [Transform("a.Drop", drop), Transform("a.Never", failing(AWAY))]
    assert SourcePipeline(transforms, converters(), handler).row(ROW) is None
    assert notes.failures == []


def test_only_the_operation_that_failed_is_tried_again() -> None:
    handler, _ = handler_with(retry_timeout_ms=60_000)
    seen: list[object] = []

    def note(record: Record) -> Record:
        seen.append(record.value)
        return record

    transforms = [
        Transform("a.Note", note),
        Transform("a.Failing", failing(AWAY, AWAY)),
        Transform("a.Upper", upper),
    ]
    assert SourcePipeline(transforms, converters(), handler).row(ROW) == (
        "t!",
        (b"k", b"V", [("h", b"x")], 99, 3),
    )
    assert seen == ["v"]
    assert handler.counts.retries == 2


def test_a_second_failure_on_the_way_is_handled_too() -> None:
    handler, notes = handler_with(retry_timeout_ms=60_000, tolerates_all=True)
    transforms = [
        Transform("a.Failing", failing(AWAY)),
        Transform("a.AlsoFailing", failing(AWAY, ValueError("no"))),
    ]
    assert SourcePipeline(transforms, converters(), handler).row(ROW) is None
    (failure,) = notes.failures
    assert (failure.stage, failure.performed_by) == (Stage.TRANSFORMATION, "a.AlsoFailing")
    assert failure.record is ROW
    assert failure.attempts == 2


@pytest.mark.parametrize("part", ["key", "value"])
def test_a_converter_that_fails_is_named(part: str) -> None:
    handler, notes = handler_with(tolerates_all=True)
    made = converters(**{part: IntegerConverter})
    assert SourcePipeline([], made, handler).row(ROW) is None
    (failure,) = notes.failures
    assert failure.stage.name == f"{part.upper()}_CONVERTER"
    assert failure.performed_by == f"a.{part.capitalize()}Converter"
    assert isinstance(failure.error, DataError)


def test_a_negative_timestamp_is_refused_and_minus_one_is_none() -> None:
    handler, _ = handler_with()
    pipeline = SourcePipeline([], converters(), handler)
    row = pipeline.row(ROW.changed(timestamp_ms=-1))
    assert row is not None
    assert row[1][3] is None
    with pytest.raises(DataError, match="Invalid record timestamp -2"):
        pipeline.row(ROW.changed(timestamp_ms=-2))


# --- sinks ----------------------------------------------------------------------------------------


def test_a_read_record_becomes_what_a_task_takes() -> None:
    handler, _ = handler_with()
    pipeline = SinkPipeline([Transform("a.Upper", upper)], converters(), handler, reportable=False)
    record = pipeline.record(READ, "CreateTime")
    assert record is not None
    assert (record.topic, record.partition, record.offset) == ("t", 3, 7)
    assert (record.key, record.value, record.timestamp_ms) == ("k", "V", 99)
    assert record.timestamp_type == "CreateTime"
    assert [(header.key, header.value) for header in record.headers] == [("h", "x")]
    assert type(record) is SinkRecord


def test_a_record_without_time_says_so() -> None:
    handler, _ = handler_with()
    pipeline = SinkPipeline([], converters(), handler, reportable=False)
    record = pipeline.record(READ._replace(timestamp_ms=-1), "CreateTime")
    assert record is not None
    assert (record.timestamp_ms, record.timestamp_type) == (None, "NoTimestampType")


def test_reportable_records_remember_their_bytes_through_transforms() -> None:
    handler, _ = handler_with()
    pipeline = SinkPipeline([Transform("a.Upper", upper)], converters(), handler, reportable=True)
    record = pipeline.record(READ, "CreateTime")
    assert isinstance(record, ReportableRecord)
    assert (record.consumed, record.value) == (READ, "V")


def test_a_sink_record_goes_on_after_retries_at_any_stage() -> None:
    handler, _ = handler_with(retry_timeout_ms=60_000)
    made = converters()
    flaky = _FlakyConverter([AWAY, AWAY])
    converted = Converters(made.key, flaky, made.header, "a.Key", "a.Value", "a.Header")
    transforms = [Transform("a.Failing", failing(AWAY)), Transform("a.Upper", upper)]
    pipeline = SinkPipeline(transforms, converted, handler, reportable=False)
    record = pipeline.record(READ, "CreateTime")
    assert record is not None
    assert (record.topic, record.original_topic, record.value) == ("t!", "t", "V")
    assert len(record.headers) == 1
    assert handler.counts.retries == 3


class _FlakyConverter(StringConverter):
    """Fails a few times."""

    def __init__(self, errors: list[Exception]) -> None:
        super().__init__()
        self._errors = errors
        self.configure({}, False)

    def to_connect_data(self, topic, headers, data):  # type: ignore[no-untyped-def]
        if self._errors:
            raise self._errors.pop(0)
        return super().to_connect_data(topic, headers, data)


def test_a_poison_record_of_a_sink_is_reported_as_it_was_read() -> None:
    handler, notes = handler_with(tolerates_all=True)
    pipeline = SinkPipeline([], converters(value=IntegerConverter), handler, reportable=False)
    assert pipeline.record(READ, "CreateTime") is None
    (failure,) = notes.failures
    assert failure.record is READ
    assert failure.stage is Stage.VALUE_CONVERTER


def test_without_tolerance_the_place_of_the_record_is_named() -> None:
    handler, _ = handler_with()
    pipeline = SinkPipeline([], converters(value=IntegerConverter), handler, reportable=False)
    with pytest.raises(ConnectError) as raised:
        pipeline.record(READ, "CreateTime")
    assert raised.value.at.startswith('topic "t" partition 3 offset 7, stage VALUE_CONVERTER')


# --- through a worker -----------------------------------------------------------------------------

FILTER = {
    "transforms": "keep",
    "transforms.keep.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.keep.predicate": "dead",
    "predicates": "dead",
    "predicates.dead.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
}
ROUTER = {
    "transforms": "route",
    "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "transforms.route.regex": "(.*)",
    "transforms.route.replacement": "new-$1",
}


@pytest.mark.slow
def test_records_that_a_transform_drops_advance_the_offsets_of_a_source(broker: Broker) -> None:
    with running_worker(broker) as worker:
        script, _ = worker.source("src", 0, None, **_plain(FILTER))
        rows = [SourceRecord({"f": 1}, {"n": n}, "out", value=v) for n, v in ((1, "a"), (2, None))]
        script.feed(rows)
        wait_until(lambda: len(script.committed) == 2, "both notified")
        worker.stop("src")
        assert string_values(broker, "out") == ["a"]
        assert worker.stored("src", f=1) == {"n": 2}


@pytest.mark.slow
def test_offsets_of_a_sink_are_those_of_the_topic_it_reads_whatever_transforms_say(
    broker: Broker,
) -> None:
    make_topic(broker, "in")
    write(broker, "in", "a", "b")
    with running_worker(broker) as worker:
        script, _ = worker.sink(topics="in", **_plain(ROUTER))  # type: ignore[arg-type]
        wait_until(lambda: script.values() == ["a", "b"], "both")
        worker.stop("snk")
    assert {record.topic for record in script.batches[0]} == {"new-in"}
    assert script.offered == [{TopicPartition("in", 0): 2}]
    assert committed_offsets(broker, "connect-snk") == {TopicPartition("in", 0): 2}


def _plain(settings: Mapping[str, str]) -> dict[str, str]:
    return {name.replace(".", "_"): value for name, value in settings.items()}
