"""Records that fail: what the three handlers decide, and what is said about it."""

import logging
from collections.abc import Callable

import pytest

from broker.errors import SerdeError
from broker.serde import LongSerde, StringSerde
from streams.errors import (
    BufferOverflow,
    DeserializationFailed,
    ProcessingFailed,
    ProductionFailed,
    StreamsConfigError,
)
from streams.handlers import (
    Answer,
    DeadLetter,
    Failure,
    FailureKind,
    dead_letter,
    log_and_continue,
    log_and_fail,
)
from streams.processor import NodeContext, Process, PunctuationType
from streams.record import Headers, Position
from streams.stream_time import fail_on_invalid_timestamp
from streams.topology import Topology
from tests.streams.engine.harness import LoneTask
from tests.streams.engine.topologies import Mapped, node, sink, source, topology


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "streams")


def half(value: object) -> object:
    return 100 // int(str(value))


def halves(name: str = "halve", **more: object) -> Topology:
    """100 divided by each value; zero fails. A second sink has the values as they came."""
    return topology(
        [
            source("in"),
            node(name, Mapped(half), "in"),
            node("after", Mapped(lambda value: value), name),
            sink("out", "out", "after", **more),
            sink("all", "all", "in"),
        ]
    )


def piped(lone: LoneTask, *values: bytes) -> LoneTask:
    lone.add("in", [(f"k{index}", value, index) for index, value in enumerate(values)])
    lone.run()
    return lone


def sent_to(lone: LoneTask, topic: str) -> list[bytes | None]:
    return [record.value for record in lone.outbox.sent if record.topic == topic]


def headers_of(lone: LoneTask, topic: str) -> dict[str, str]:
    (record,) = (record for record in lone.outbox.sent if record.topic == topic)
    return {name: (data or b"").decode() for name, data in record.headers}


# Processing


def test_a_failing_function_stops_the_task_and_is_named() -> None:
    lone = LoneTask(halves())
    with pytest.raises(ProcessingFailed) as caught:
        piped(lone, b"5", b"0", b"2")
    error = caught.value
    assert error.message.startswith('node "halve" failed: ZeroDivisionError:')
    assert error.at.startswith(
        'topic "in" partition 0 offset 1, node "halve", task 0_0, key \'k1\''
    )
    assert "test_handlers.py" in error.at
    assert "return 100 // int(str(value))" in error.at
    assert "log_and_continue" in error.hint
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert sent_to(lone, "out") == [b"20"]


def test_the_node_is_found_among_nodes_with_the_same_code() -> None:
    tree = topology(
        [
            source("in"),
            node("good", Mapped(lambda value: value), "in"),
            node("bad", Mapped(half), "good"),
            node("never", Mapped(lambda value: value), "bad"),
        ]
    )
    with pytest.raises(ProcessingFailed, match='node "bad" failed'):
        piped(LoneTask(tree), b"0")


def test_a_long_key_is_shortened() -> None:
    lone = LoneTask(halves())
    lone.add("in", [("x" * 5000, b"0", 1)])
    with pytest.raises(ProcessingFailed) as caught:
        lone.run()
    assert len(caught.value.at) < 500
    assert "(5002 characters)" in caught.value.at


def test_to_continue_drops_the_record_at_its_node_only() -> None:
    lone = piped(LoneTask(halves(), processing_exception_handler=log_and_continue), b"0", b"2")
    assert sent_to(lone, "out") == [b"50"]
    assert sent_to(lone, "all") == [b"0", b"2"]
    assert lone.task.metrics.total("dropped-records-total") == 1


def test_an_error_of_a_child_is_not_blamed_on_its_parents() -> None:
    failures: list[Failure] = []

    def handler(failure: Failure) -> Answer:
        failures.append(failure)
        return Answer.FAIL

    tree = topology(
        [source("in"), node("up", Mapped(lambda v: v), "in"), node("down", Mapped(half), "up")]
    )
    with pytest.raises(ProcessingFailed, match='node "down" failed'):
        piped(LoneTask(tree, processing_exception_handler=handler), b"0")
    (failure,) = failures
    assert failure.kind is FailureKind.PROCESSING
    assert (failure.node, failure.task_id, failure.position) == (
        "down",
        "0_0",
        Position("in", 0, 0),
    )
    assert (failure.key, failure.value, failure.raw_value) == ("k0", 0, b"0")


def test_a_dead_letter_is_the_input_as_it_came_with_headers_that_say_why() -> None:
    lone = LoneTask(halves(), processing_exception_handler=dead_letter("dead"))
    piped(lone, b" 0 ", b"2")
    assert sent_to(lone, "out") == [b"50"]
    assert sent_to(lone, "dead") == [b" 0 "]
    found = headers_of(lone, "dead")
    assert found["__streams.errors.exception"] == "builtins.ZeroDivisionError"
    assert "division" in found["__streams.errors.message"]
    assert "return 100 // int(str(value))" in found["__streams.errors.stacktrace"]
    assert found["__streams.errors.topic"] == "in"
    assert found["__streams.errors.partition"] == "0"
    assert found["__streams.errors.offset"] == "0"
    assert lone.task.metrics.total("dead-letters-total") == 1


def test_built_in_handlers_write_dead_letters_when_there_is_a_topic_for_them() -> None:
    lone = LoneTask(
        halves(),
        processing_exception_handler=log_and_continue,
        errors_dead_letter_queue_topic_name="dead",
    )
    piped(lone, b"0")
    assert sent_to(lone, "dead") == [b"0"]
    failing = LoneTask(halves(), errors_dead_letter_queue_topic_name="dead")
    with pytest.raises(ProcessingFailed):
        piped(failing, b"0")
    assert sent_to(failing, "dead") == [b"0"]


def test_a_handler_may_ask_for_the_dead_letter_topic_only_if_there_is_one() -> None:
    def handler(failure: Failure) -> Answer:
        return Answer.DEAD_LETTER

    lone = LoneTask(
        halves(),
        processing_exception_handler=handler,
        errors_dead_letter_queue_topic_name="dead",
    )
    assert sent_to(piped(lone, b"0"), "dead") == [b"0"]
    with pytest.raises(StreamsConfigError, match="no topic for dead letters"):
        piped(LoneTask(halves(), processing_exception_handler=handler), b"0")


def test_a_dead_letter_may_be_written_and_the_task_stopped() -> None:
    def handler(failure: Failure) -> DeadLetter:
        return DeadLetter("dead", fail=True)

    lone = LoneTask(halves(), processing_exception_handler=handler)
    with pytest.raises(ProcessingFailed):
        piped(lone, b"0")
    assert sent_to(lone, "dead") == [b"0"]


@pytest.mark.parametrize("answer", [None, Answer.RETRY, "continue"])
def test_only_a_clear_answer_lets_a_record_be_lost(answer: object) -> None:
    lone = LoneTask(halves(), processing_exception_handler=lambda failure: answer)
    with pytest.raises(ProcessingFailed, match='node "halve" failed'):
        piped(lone, b"0")


def test_a_handler_that_fails_stops_the_task() -> None:
    def handler(failure: Failure) -> Answer:
        raise KeyError("oops")

    lone = LoneTask(halves(), processing_exception_handler=handler)
    with pytest.raises(ProcessingFailed, match="handler itself failed") as caught:
        piped(lone, b"0")
    assert "ZeroDivisionError" in caught.value.hint
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("handler", [log_and_fail, log_and_continue])
def test_punctuators_and_flushes_are_guarded_too(handler: Callable[[Failure], Answer]) -> None:
    def fail(*_: object) -> None:
        raise BufferOverflow("full")

    def opened(context: NodeContext) -> Process:
        context.schedule(1, PunctuationType.WALL_CLOCK_TIME, fail)
        context.before_commit(fail)
        return context.forward

    lone = LoneTask(
        topology([source("in"), node("p", opened, "in")]), processing_exception_handler=handler
    )
    lone.clock.advance(1)
    if handler is log_and_continue:
        lone.task.punctuate_wall_clock()
        lone.task.flush()
        assert lone.task.metrics.total("dropped-records-total") == 2
        return
    with pytest.raises(ProcessingFailed, match='node "p" failed: BufferOverflow: full') as caught:
        lone.task.punctuate_wall_clock()
    assert caught.value.at.startswith('node "p", task 0_0\n')
    with pytest.raises(ProcessingFailed, match='node "p" failed'):
        lone.task.flush()


@pytest.mark.parametrize("handler", [log_and_fail, log_and_continue])
def test_a_result_held_back_fails_at_the_place_it_came_from(
    handler: Callable[[Failure], Answer], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "streams.handlers")

    def holding(context: NodeContext) -> Process:
        """Forwards a record when the next one comes."""
        forward = context.forward
        held: list[tuple[Position | None, object]] = []

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            held.append((context.position, value))
            if len(held) > 1:
                position, last = held.pop(0)
                context.at(position, lambda: forward(key, last, timestamp_ms, headers))

        return process

    tree = topology([source("in"), node("h", holding, "in"), node("bad", Mapped(half), "h")])
    lone = LoneTask(tree, processing_exception_handler=handler)
    if handler is log_and_fail:
        with pytest.raises(ProcessingFailed, match='node "bad" failed'):
            piped(lone, b"0", b"1")
    else:
        piped(lone, b"0", b"1")
    assert 'topic "in" partition 0 offset 0, node "bad"' in caplog.text


def test_a_method_as_a_nodes_code_is_found() -> None:
    class Code:
        def __init__(self, name: str) -> None:
            self.name = name

        def process(self, key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            raise ValueError(self.name)

    tree = topology(
        [
            source("in"),
            node("one", lambda context: context.forward, "in"),
            node("two", lambda context: Code("two").process, "one"),
        ]
    )
    with pytest.raises(ProcessingFailed, match='node "two" failed: ValueError: two'):
        piped(LoneTask(tree), b"1")


def test_a_node_that_cannot_be_opened_is_named_and_the_others_are_closed() -> None:
    closed: list[str] = []

    def good(context: NodeContext) -> Process:
        context.on_close(lambda: closed.append("child"))
        return context.forward

    def bad(context: NodeContext) -> Process:
        raise KeyError("no such thing")

    tree = topology([source("in"), node("p", bad, "in"), node("c", good, "p")])
    with pytest.raises(ProcessingFailed, match='node "p" cannot be opened: KeyError') as caught:
        LoneTask(tree)
    assert 'raise KeyError("no such thing")' in caught.value.at
    assert closed == ["child"]


# Deserialization


def numbers() -> Topology:
    return topology([source("in", value_serde=LongSerde()), sink("out", "out", "in")])


def test_bytes_that_are_no_value_stop_the_task() -> None:
    with pytest.raises(DeserializationFailed, match="cannot decode as long: 3 bytes") as caught:
        piped(LoneTask(numbers()), b"abc")
    assert caught.value.at.startswith('topic "in" partition 0 offset 0, node "in", task 0_0')
    assert isinstance(caught.value.__cause__, SerdeError)


def test_the_serde_says_what_is_wrong_also_where_it_was_passed_by() -> None:
    with pytest.raises(DeserializationFailed, match="SerdeError: cannot decode as JSON"):
        piped(LoneTask(halves()), b"{")


@pytest.mark.parametrize("looks_inside", [False, True])
def test_to_continue_skips_bytes_that_are_no_value(looks_inside: bool) -> None:
    def own_time(key: object, value: object, timestamp_ms: int, partition_ms: int) -> int:
        return timestamp_ms

    lone = LoneTask(
        numbers(),
        deserialization_exception_handler=log_and_continue,
        default_timestamp_extractor=own_time if looks_inside else fail_on_invalid_timestamp,
    )
    piped(lone, b"abc", (7).to_bytes(8, "big"), b"")
    assert sent_to(lone, "out") == [b"7"]
    assert lone.task.metrics.total("dropped-records-total") == 2
    assert [found.offset for found in lone.task.offsets().values()] == [3]


def test_a_dead_letter_keeps_bytes_that_are_no_value() -> None:
    lone = LoneTask(numbers(), deserialization_exception_handler=dead_letter("dead"))
    piped(lone, b"abc", (7).to_bytes(8, "big"))
    (letter,) = (record for record in lone.outbox.sent if record.topic == "dead")
    assert (letter.key, letter.value, letter.timestamp_ms) == (b"k0", b"abc", 0)
    assert headers_of(lone, "dead")["__streams.errors.exception"] == "broker.errors.SerdeError"


# Production


def test_a_result_that_cannot_be_bytes_stops_the_task() -> None:
    lone = LoneTask(halves(value_serde=StringSerde()))
    with pytest.raises(ProductionFailed, match="cannot encode as string") as caught:
        piped(lone, b"5")
    assert 'node "out"' in caught.value.at


def test_to_continue_skips_a_result_that_cannot_be_bytes() -> None:
    lone = LoneTask(
        halves(value_serde=StringSerde()), production_exception_handler=log_and_continue
    )
    piped(lone, b"5", b"2")
    assert sent_to(lone, "out") == []
    assert sent_to(lone, "all") == [b"5", b"2"]
    assert lone.task.metrics.total("dropped-records-total") == 2


def test_a_dead_letter_of_a_result_is_the_input_it_came_from() -> None:
    lone = LoneTask(
        halves(value_serde=StringSerde()), production_exception_handler=dead_letter("dead")
    )
    piped(lone, b"5")
    assert sent_to(lone, "dead") == [b"5"]
    assert "cannot encode as string" in headers_of(lone, "dead")["__streams.errors.message"]
