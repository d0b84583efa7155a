"""Sinks: serialize records and send them to partitions of topics."""

from collections.abc import Callable
from typing import Any, Protocol, cast, runtime_checkable

import orjson

from broker.client.partitioner import partition_for_key
from broker.serde import BindableSerde, JsonSerde, Serde, StringSerde
from streams.errors import StreamsError
from streams.processor import NodeContext, Process, Rows
from streams.record import Headers
from streams.runtime.dead_letters import Failures
from streams.runtime.output import Output, sender_to
from streams.runtime.task_metrics import Counter
from streams.serdes import SessionWindowedSerde, WindowedSerde, given_inner
from streams.topology import Partitioner, SinkNode, TopicChooser

Encode = Callable[[str, object], bytes | None]

_DIRECT: dict[type[Any], Callable[[Any], bytes]] = {  # Any: serdes of any type of value
    JsonSerde: orjson.dumps,
    StringSerde: str.encode,
}


@runtime_checkable
class WindowedKeySerde(Protocol):
    """A serde of windowed keys, which are partitioned by the key without its window."""

    def serialize_inner(self, topic: str, key: object) -> bytes | None:
        """The bytes of the plain key."""
        ...


class OpenSink:
    """The parts of a sink in one task."""

    __slots__ = ("context", "failures", "key_serde", "output", "processed", "value_serde")

    def __init__(
        self,
        context: NodeContext,
        output: Output,
        failures: Failures,
        processed: Counter,
        *,
        key_serde: Serde[Any],
        value_serde: Serde[Any],
    ) -> None:
        self.context = context
        self.output = output
        self.failures = failures
        self.processed = processed
        self.key_serde = key_serde
        self.value_serde = value_serde


# Processes all rows of a run.
ConsumeRows = Callable[[Rows], None]


def open_sink(
    node: SinkNode, topic_of: Callable[[str], str], sink: OpenSink
) -> tuple[Process, ConsumeRows | None]:
    """The function of a sink node, and one for pulled rows if that is faster.

    `topic_of` returns the name of a topic on the broker.
    """
    if isinstance(node.topic, str) and node.partitioner is None:
        topic = topic_of(node.topic)
        if isinstance(sink.key_serde, WindowedSerde | SessionWindowedSerde):
            return _open_windowed(node, topic, sink, sink.key_serde), None
        if not isinstance(sink.key_serde, WindowedKeySerde):
            return _open_plain(node, topic, sink)
    return _open_choosing(node, topic_of, sink), None


def _open_plain(node: SinkNode, topic: str, sink: OpenSink) -> tuple[Process, ConsumeRows]:
    """For one topic, partitioned by the key."""
    encode_key = _encoder(sink.key_serde, topic)
    encode_value = _encoder(sink.value_serde, topic)
    send_to = sender_to(sink.output, topic)
    failures, processed = sink.failures, sink.processed

    def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        try:
            raw_key = None if key is None else encode_key(key)
            raw_value = None if value is None else encode_value(value)
        except Exception as error:
            cause = _serde_error(sink, topic, key, value) or error
            failures.production(node.name, cause, (key, value, timestamp_ms, headers))
            return
        processed.value += 1
        send_to(raw_key, raw_key, raw_value, timestamp_ms, headers)

    def consume_rows(rows: Rows) -> None:
        count = 0
        try:
            for key, value, timestamp_ms, headers in rows:
                try:
                    raw_key = None if key is None else encode_key(key)
                    raw_value = None if value is None else encode_value(value)
                except Exception as error:
                    cause = _serde_error(sink, topic, key, value) or error
                    failures.production(node.name, cause, (key, value, timestamp_ms, headers))
                    continue
                count += 1
                send_to(raw_key, raw_key, raw_value, timestamp_ms, headers)
        finally:
            processed.value += count

    return process, consume_rows


# Any: keys of any type.
def _open_windowed(
    node: SinkNode,
    topic: str,
    sink: OpenSink,
    serde: WindowedSerde[Any] | SessionWindowedSerde[Any],
) -> Process:
    """For one topic, partitioned by the key without its window, which is serialized once."""
    encode_inner = _encoder(given_inner(serde.inner), topic)
    encode_value = _encoder(sink.value_serde, topic)
    encode_window = serde.serialize_window
    send_to = sender_to(sink.output, topic)
    failures, processed = sink.failures, sink.processed

    def process(key: Any, value: object, timestamp_ms: int, headers: Headers) -> None:
        raw_inner = raw_key = None
        try:
            if key is not None:
                raw_inner = encode_inner(key.key)
                raw_key = raw_inner + encode_window(key)  # type: ignore[operator] # not None
            raw_value = None if value is None else encode_value(value)
        except Exception as error:
            cause = _serde_error(sink, topic, key, value) or error
            failures.production(node.name, cause, (key, value, timestamp_ms, headers))
            return
        processed.value += 1
        send_to(raw_inner, raw_key, raw_value, timestamp_ms, headers)

    return process


def _open_choosing(node: SinkNode, topic_of: Callable[[str], str], sink: OpenSink) -> Process:
    """For a topic chosen per record, or partitions that are not chosen by the key."""
    choose = _chooser(node.topic, topic_of, sink.context)
    partitions = _partitions_of(node.partitioner, sink)
    serialize_key, serialize_value = sink.key_serde.serialize, sink.value_serde.serialize
    send, failures, processed = sink.output.send, sink.failures, sink.processed

    def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
        topic = choose(key, value, timestamp_ms, headers)
        try:
            raw_key = serialize_key(topic, key)
            raw_value = serialize_value(topic, value)
        except Exception as error:
            failures.production(node.name, error, (key, value, timestamp_ms, headers))
            return
        for partition in partitions(topic, key, value):
            processed.value += 1
            send(topic, raw_key, raw_value, timestamp_ms, headers, partition)

    return process


Choose = Callable[[object, object, int, Headers], str]
Partitions = Callable[[str, object, object], "tuple[int | None, ...]"]


def _chooser(
    topic: str | TopicChooser, topic_of: Callable[[str], str], context: NodeContext
) -> Choose:
    if isinstance(topic, str):
        name = topic_of(topic)
        return lambda key, value, timestamp_ms, headers: name
    chooser = topic

    def choose(key: object, value: object, timestamp_ms: int, headers: Headers) -> str:
        chosen = cast("object", chooser(key, value, timestamp_ms, headers, context.position))
        if not isinstance(chosen, str) or not chosen:
            raise StreamsError(
                f"the topic chooser returned {chosen!r}",
                at=f'sink node "{context.node}"',
                hint="it must return the name of a topic",
            )
        return chosen

    return choose


def _partitions_of(partitioner: Partitioner | None, sink: OpenSink) -> Partitions:
    """A function that returns the partitions of a record; None: by the bytes of its key."""
    by_key = _by_plain_key(sink)
    if partitioner is None:
        return by_key
    count_of, node = sink.output.partition_count, sink.context.node

    def partitions(topic: str, key: object, value: object) -> tuple[int | None, ...]:
        count = count_of(topic)
        chosen = partitioner(topic, key, value, count)
        if chosen is None:
            return by_key(topic, key, value)
        several = (chosen,) if isinstance(chosen, int) else tuple(sorted(chosen))
        for partition in several:
            if not 0 <= partition < count:
                raise StreamsError(
                    f'the partitioner returned {partition}, but topic "{topic}" has {count} '
                    "partitions",
                    at=f'sink node "{node}"',
                    hint=f"return a number from 0 to {count - 1}, or None to partition by key",
                )
        return several

    return partitions


def _by_plain_key(sink: OpenSink) -> Partitions:
    serde = sink.key_serde
    if not isinstance(serde, WindowedKeySerde):
        return lambda topic, key, value: (None,)
    serialize_inner, count_of = serde.serialize_inner, sink.output.partition_count

    def partitions(topic: str, key: object, value: object) -> tuple[int | None, ...]:
        inner = None if key is None else serialize_inner(topic, key)
        return (None,) if inner is None else (partition_for_key(inner, count_of(topic)),)

    return partitions


def _encoder(serde: Serde[Any], topic: str) -> Callable[[object], bytes | None]:
    """A function that serializes values other than None."""
    direct = _DIRECT.get(type(serde))
    if direct is not None:
        return direct
    if isinstance(serde, BindableSerde):
        return serde.encoder(topic)
    serialize = serde.serialize
    return lambda value: serialize(topic, value)


def _serde_error(sink: OpenSink, topic: str, key: object, value: object) -> Exception | None:
    """The serde's own error for a key or value that it cannot serialize."""
    for serde, part in ((sink.key_serde, key), (sink.value_serde, value)):
        try:
            serde.serialize(topic, part)
        except Exception as error:
            return error
    return None
