"""How the tests of joins run them: two topics in, one out, keys and values are text."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from streams.dsl.builder import StreamsBuilder
from streams.dsl.stream import Stream
from streams.dsl.table import Table
from streams.testing import TopologyTestDriver

EMIT_AT_ONCE = {"__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": 0}

# topic, key, value, timestamp
Input = tuple[str, str | None, str | None, int]
# key, value, timestamp
Output = tuple[str | None, str | None, int]


def pair(left: object, right: object) -> str:
    """A joiner whose result shows both sides."""
    return f"{'null' if left is None else left}-{'null' if right is None else right}"


class Running:
    """A topology in a driver."""

    def __init__(self, driver: TopologyTestDriver) -> None:
        """Inputs are opened as they are used."""
        self.driver = driver
        self._inputs: dict[str, Any] = {}
        self._outputs: dict[str, Any] = {}

    def pipe(self, topic: str, key: str | None, value: str | None, timestamp_ms: int) -> None:
        """Process one record completely."""
        if topic not in self._inputs:
            self._inputs[topic] = self.driver.create_input_topic(topic, key=str, value=str)
        self._inputs[topic].pipe_input(key, value, timestamp_ms)

    def take(self, topic: str = "out") -> list[Output]:
        """What was written since the last time."""
        if topic not in self._outputs:
            self._outputs[topic] = self.driver.create_output_topic(topic, key=str, value=str)
        records = self._outputs[topic].read_records_to_list()
        return [(record.key, record.value, record.timestamp_ms) for record in records]

    def run(self, inputs: Iterable[Input]) -> list[Output]:
        """Process records one after the other; all results."""
        for topic, key, value, timestamp_ms in inputs:
            self.pipe(topic, key, value, timestamp_ms)
        return self.take()


Wire = Callable[[StreamsBuilder], Stream[Any, Any] | Table[Any, Any]]


@contextmanager
def running(
    wire: Wire,
    *,
    settings: Mapping[str, object] | None = None,
    cache_bytes: int = 0,
    optimize: bool = False,
    **options: Any,
) -> Iterator[Running]:
    """Run what `wire` makes; its result goes to topic "out"."""
    builder = StreamsBuilder()
    result = wire(builder)
    stream = result.to_stream() if isinstance(result, Table) else result
    stream.to("out", key=str, value=str)
    config = {"statestore_cache_max_bytes": cache_bytes, **EMIT_AT_ONCE, **(settings or {})}
    topology = builder.build(optimize=optimize)
    with TopologyTestDriver(topology, config=config, **options) as driver:
        yield Running(driver)


def stream(builder: StreamsBuilder, topic: str) -> Stream[str, str]:
    """A stream of text."""
    return builder.stream(topic, key=str, value=str)


def table(builder: StreamsBuilder, topic: str, **options: Any) -> Table[str, str]:
    """A table of text."""
    return builder.table(topic, key=str, value=str, **options)
