"""Processors of the user, in the DSL and by hand."""

from typing import Any

import pytest

from broker.serde import LongSerde, StringSerde
from streams import (
    Processor,
    PunctuationType,
    Record,
    StoreKind,
    StoreSpec,
    StreamsBuilder,
    TopologyBuilder,
)
from streams.errors import StreamsError
from streams.testing import TopologyTestDriver
from tests.streams.dsl.running import run

COUNTS = StoreSpec("counts", StoreKind.KEY_VALUE, StringSerde(), LongSerde())


class Count(Processor[str, str, str, int]):
    """Counts records of each key in a store."""

    def init(self, context: Any) -> None:
        """Keep the store."""
        super().init(context)
        self.store = context.store("counts")

    def process(self, record: Record[str, str]) -> None:
        """Forward the count."""
        count = (self.store.get(record.key) or 0) + 1
        self.store.put(record.key, count)
        self.context.forward(Record(record.key, count, record.timestamp_ms, record.headers))


def test_a_processor_has_its_store_and_forwards() -> None:
    def build(builder: StreamsBuilder) -> None:
        words = builder.stream("in", key=str, value=str)
        words.process(Count, stores=[COUNTS]).to("out", key=str, value=int)

    out = run(build, [("a", "x"), ("b", "x"), ("a", "y")], out_value=int)
    assert out == [("a", 1, 0), ("b", 1, 1), ("a", 2, 2)]


def test_process_values_keeps_the_key_and_needs_no_repartition() -> None:
    builder = StreamsBuilder()
    builder.add_state_store(COUNTS)
    counted = builder.stream("in", key=str, value=str).process_values(Count, stores=["counts"])
    counted.group_by_key(value=int).count().to_stream().to("out")
    assert builder.build().repartition_topics == {}


class OtherKey(Processor[str, str, str, str]):
    """Forwards under another key."""

    def process(self, record: Record[str, str]) -> None:
        """Not allowed in process_values."""
        self.context.forward(Record(record.value, record.value, record.timestamp_ms))


def test_process_values_refuses_another_key() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in", key=str, value=str).process_values(OtherKey).to("out")

    with pytest.raises(StreamsError) as raised:
        run(build, [("a", "b")])
    assert "process_values forwards key 'b' for input key 'a'" in chain(raised.value)


class Latest(Processor[str, str, str, str]):
    """Forwards each record one later."""

    kept: Record[str, Any] | None = None

    def process(self, record: Record[str, str]) -> None:
        """Forward the one before, whose key may be another."""
        if self.kept is not None:
            self.context.forward(self.kept)
        self.kept = record.with_value(record.value.upper())


def test_process_values_may_forward_a_record_that_it_kept() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in", key=str, value=str).process_values(Latest).to("out", value=str)

    assert run(build, [("a", "x"), ("b", "y"), ("c", "z")]) == [("a", "X", 0), ("b", "Y", 1)]


class Renames(Processor[str, str, str, str]):
    """Asks for another key."""

    def process(self, record: Record[str, str]) -> None:
        """Not allowed in process_values."""
        record.with_key("other")


def test_a_record_of_process_values_has_no_other_key() -> None:
    def build(builder: StreamsBuilder) -> None:
        builder.stream("in", key=str, value=str).process_values(Renames)

    with pytest.raises(StreamsError) as raised:
        run(build, [("a", "b")])
    assert "process_values cannot change keys" in chain(raised.value)


def chain(error: BaseException) -> str:
    """The texts of an error and its causes."""
    texts = []
    cause: BaseException | None = error
    while cause is not None:
        texts.append(str(cause))
        cause = cause.__cause__
    return "\n".join(texts)


def test_process_may_change_keys_so_grouping_repartitions() -> None:
    builder = StreamsBuilder()
    other = builder.stream("in", key=str, value=str).process(OtherKey)
    other.group_by_key(key=str, value=str, name="again").count()
    assert set(builder.build().repartition_topics) == {"again-repartition"}


class Everything(Processor[str, str, str, str]):
    """Uses all that a context offers."""

    closed: list[str]

    def __init__(self, closed: list[str]) -> None:
        """Where to note that it was closed."""
        self.closed = closed

    def init(self, context: Any) -> None:
        """Schedule."""
        super().init(context)
        context.schedule(10, PunctuationType.WALL_CLOCK_TIME, self.tick)

    def process(self, record: Record[str, str]) -> None:
        """Forward what the context says, to one child."""
        position = self.context.record_metadata
        assert position is not None
        said = f"{position.topic} {position.partition} {position.offset} {self.context.task_id}"
        self.context.forward(Record("record", said, record.timestamp_ms), "sink")
        self.context.commit()

    def tick(self, time_ms: int) -> None:
        """Forward the time to all children."""
        assert self.context.record_metadata is None
        said = f"{time_ms} {self.context.now_ms()} {self.context.stream_time_ms}"
        self.context.forward(Record("tick", said, time_ms))

    def close(self) -> None:
        """Note it."""
        self.closed.append("closed")


def test_a_processor_sees_its_record_and_the_times() -> None:
    closed: list[str] = []
    builder = TopologyBuilder().add_source(
        "source", "in", key_serde=StringSerde(), value_serde=StringSerde()
    )
    builder.add_processor("all", lambda: Everything(closed), "source")
    for name, topic in (("sink", "out"), ("other", "elsewhere")):
        builder.add_sink(name, topic, "all", key_serde=StringSerde(), value_serde=StringSerde())
    with TopologyTestDriver(builder.build(), start_ms=100) as driver:
        topic_in = driver.create_input_topic("in", key=str, value=str)
        topic_in.pipe_input("a", "x", 7)
        topic_in.pipe_input("a", "x", 3)
        driver.advance_wall_clock_time(10)
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_key_values_to_list() == [
            ("record", "in 0 0 0_0"),
            ("record", "in 0 1 0_0"),
            ("tick", "110 110 7"),
        ]
        elsewhere = driver.create_output_topic("elsewhere", key=str, value=str)
        assert elsewhere.read_key_values_to_list() == [("tick", "110 110 7")]
    assert closed == ["closed"]


class Fill(Processor[str, str, str, str]):
    """Writes a global store."""

    def process(self, record: Record[str, str]) -> None:
        """Upper-case values."""
        self.context.store("names").put(record.key, record.value.upper())


class LookUp(Processor[str, str, str, str]):
    """Reads a global store."""

    def process(self, record: Record[str, str]) -> None:
        """Forward what is stored for the value."""
        found = self.context.store("names").get(record.value)
        self.context.forward(Record(record.key, found, record.timestamp_ms))


def test_a_global_store_is_filled_by_its_processor_and_read_by_all() -> None:
    builder = StreamsBuilder()
    spec = StoreSpec("names", StoreKind.KEY_VALUE, StringSerde(), StringSerde())
    builder.add_global_store(spec, "names-topic", Fill, key=str, value=str)
    builder.stream("in", key=str, value=str).process(LookUp).to("out", key=str, value=str)
    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("names-topic", key=str, value=str).pipe_input("1", "one")
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "1")
        out = driver.create_output_topic("out", key=str, value=str)
        assert out.read_key_values_to_list() == [("k", "ONE")]
