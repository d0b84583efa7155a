"""Runs one aggregate on the TopologyTestDriver: records in, results out."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from broker.serde import Serde, StringSerde
from streams.dsl.builder import StreamsBuilder
from streams.dsl.grouped import GroupedStream
from streams.dsl.table import Table
from streams.record import Windowed
from streams.serdes import serde_or_default
from streams.testing import TopologyTestDriver

# Key, value and time of a record; keys and values may be None.
Given = tuple[str | None, str | None, int]
# Key (with its window, if it has one), value and time of a result.
Result = tuple[Any, Any, int]
# Any, because results have types of all kinds.
AnyTable = Table[Any, Any]

NO_CACHE: Mapping[str, object] = {
    "statestore_cache_max_bytes": 0,
    "__emit.interval.ms.kstreams.windowed.aggregation__": 0,
}


class Running:
    """A topology with the topics "in" (and "other") and "out"."""

    def __init__(
        self,
        build: Callable[[StreamsBuilder], AnyTable],
        *,
        config: Mapping[str, object] | None = None,
        commit: str = "each",
        start_ms: int = 0,
        partitions: int = 1,
    ) -> None:
        """Open the driver. Results are not held back unless the config says so."""
        builder = StreamsBuilder()
        table = build(builder)
        table.to_stream().to("out")
        self._key_serde: Serde[Any] | None = table.node.key_serde
        self._value_serde: Serde[Any] | None = table.node.value_serde
        self.driver = TopologyTestDriver(
            builder.build(),
            config={**NO_CACHE, **(config or {})},
            commit=commit,
            start_ms=start_ms,
            partitions=partitions,
        )
        self._out = self.driver.create_output_topic(
            "out",
            key=_filled(self._key_serde),
            value=self._value_serde,
        )

    def feed(self, *records: Given, topic: str = "in") -> list[Result]:
        """Pipe records; the results since the last time."""
        given = self.driver.create_input_topic(topic, key=str, value=str)
        for key, value, timestamp_ms in records:
            given.pipe_input(key, value, timestamp_ms)
        return self.results()

    def results(self) -> list[Result]:
        """Results that were not read yet."""
        return [(r.key, r.value, r.timestamp_ms) for r in self._out.read_records_to_list()]

    @property
    def dropped(self) -> int:
        """How many records were dropped."""
        return self.driver.metric("dropped-records-total")


def _filled(serde: Serde[Any] | None) -> Serde[Any] | None:
    return None if serde is None else serde_or_default(serde, StringSerde())


def grouped(builder: StreamsBuilder, topic: str = "in") -> GroupedStream[str, str]:
    """The stream of texts, by key."""
    return builder.stream(topic, key=str, value=str).group_by_key()


def append(key: str, value: str | None, aggregate: str) -> str:
    """An adder whose result tells the order of everything that was added."""
    return f"{aggregate}+{value}"


def remove(key: str, value: str, aggregate: str) -> str:
    """A subtractor that tells what was subtracted."""
    return f"{aggregate}-{value}"


def empty() -> str:
    """The initial value for `append`."""
    return "0"


def join_texts(left: str, right: str) -> str:
    """A reducer that tells the order."""
    return f"{left}+{right}"


def last_by_key(results: Iterable[Result]) -> dict[Any, Any]:
    """The last value of each key; deleted ones are left out."""
    found = {key: value for key, value, _ in results}
    return {key: value for key, value in found.items() if value is not None}


def at(key: str, start_ms: int, end_ms: int) -> Windowed[str]:
    """A windowed key."""
    return Windowed(key, start_ms, end_ms)
