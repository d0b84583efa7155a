"""How the tests of the DSL run a topology: records in, (key, value, timestamp) out."""

from collections.abc import Callable, Iterable
from typing import Any

from streams import StreamsBuilder
from streams.testing import TopologyTestDriver

# key, value, timestamp_ms
Row = tuple[Any, Any, int]


def run(
    build: Callable[[StreamsBuilder], object],
    inputs: Iterable[tuple[Any, Any]],
    *,
    key: Any = str,
    value: Any = str,
    out_value: Any = None,
    **settings: object,
) -> list[Row]:
    """Write records to "in", one millisecond apart, and read "out" when all are processed."""
    builder = StreamsBuilder()
    build(builder)
    config = {"statestore_cache_max_bytes": 0, **settings}
    with TopologyTestDriver(builder.build(), config=config) as driver:
        topic = driver.create_input_topic("in", key=key, value=value)
        out = driver.create_output_topic("out", key=key, value=out_value or value)
        for timestamp_ms, (record_key, record_value) in enumerate(inputs):
            topic.pipe_input(record_key, record_value, timestamp_ms)
        return [(row.key, row.value, row.timestamp_ms) for row in out.read_records_to_list()]
