"""Neither restarts nor the number of partitions change results, whatever the topology keeps."""

from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.dsl.builder import StreamsBuilder
from streams.dsl.suppressed import until_time_limit, until_window_closes
from streams.record import Record
from streams.testing import TopologyTestDriver
from streams.testing.strategies import out_of_order_records
from streams.topology import Topology
from streams.windows import hopping, join_within, session, sliding, tumbling

pytestmark = pytest.mark.slow

# Without these, results wait for the wall clock too, which a restart starts anew.
EMIT_AT_ONCE = {
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": 0,
    "__emit.interval.ms.kstreams.windowed.aggregation__": 0,
}

Build = Callable[[StreamsBuilder], None]


def windowed_count(builder: StreamsBuilder) -> None:
    counts = builder.stream("in", key=str, value=int).group_by_key()
    counts.windowed_by(tumbling(10, grace=5)).count().to_stream().to("out")


def hopping_sum(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in", key=str, value=int).group_by_key()
    sums = grouped.windowed_by(hopping(10, 4, grace=3)).reduce(lambda old, new: old + new)
    sums.to_stream().to("out")


def sliding_count(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in", key=str, value=int).group_by_key()
    grouped.windowed_by(sliding(8, grace=6)).count().to_stream().to("out")


def sessions(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in", key=str, value=int).group_by_key()
    grouped.windowed_by(session(6, grace=4)).count().to_stream().to("out")


def final_counts(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in", key=str, value=int).group_by_key()
    counts = grouped.windowed_by(tumbling(10, grace=5)).count()
    counts.suppress(until_window_closes()).to_stream().to("out")


def emit_on_close(builder: StreamsBuilder) -> None:
    grouped = builder.stream("in", key=str, value=int).group_by_key()
    grouped.windowed_by(tumbling(10, grace=5), emit="on_close").count().to_stream().to("out")


def delayed(builder: StreamsBuilder) -> None:
    counts = builder.stream("in", key=str, value=int).group_by_key().count()
    counts.suppress(until_time_limit(7)).to_stream().to("out")


def outer_join(builder: StreamsBuilder) -> None:
    stream = builder.stream("in", key=str, value=int)
    even = stream.filter(lambda key, value: value % 2 == 0)
    odd = stream.filter(lambda key, value: value % 2 == 1)
    even.outer_join(odd, lambda left, right: [left, right], join_within(5, grace=4)).to(
        "out", value=list
    )


def regrouped_table(builder: StreamsBuilder) -> None:
    table = builder.table("in", key=str, value=int)
    parity = table.group_by(lambda key, value: (str(value % 2), value), key=str, value=int)
    sums = parity.aggregate(
        lambda: 0,
        lambda key, value, total: total + value,
        lambda key, value, total: total - value,
        value=int,
    )
    sums.to_stream().to("out")


TOPOLOGIES: dict[str, Build] = {
    build.__name__: build
    for build in (
        windowed_count,
        hopping_sum,
        sliding_count,
        sessions,
        final_counts,
        emit_on_close,
        delayed,
        outer_join,
        regrouped_table,
    )
}
RECORDS = out_of_order_records(
    st.sampled_from("ab"), st.integers(0, 9), lateness=12, step=6, max_size=15
)


def built(build: Build) -> Topology:
    builder = StreamsBuilder()
    build(builder)
    return builder.build()


def results(
    topology: Topology,
    records: list[Record[str, int]],
    restarts: frozenset[int] = frozenset(),
    partitions: int = 1,
) -> list[tuple[bytes, bytes, int]]:
    with TopologyTestDriver(topology, config=EMIT_AT_ONCE, partitions=partitions) as driver:
        numbers = driver.create_input_topic("in", key=str, value=int)
        output = driver.create_output_topic("out", key=bytes, value=bytes)
        for index, record in enumerate(records):
            if index in restarts:
                driver.restart()
            numbers.pipe_record(record)
        return [(row.key, row.value, row.timestamp_ms) for row in output.read_records_to_list()]


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_restarts_do_not_change_results(name: str) -> None:
    topology = built(TOPOLOGIES[name])
    run = partial(results, topology)

    @settings(max_examples=25, deadline=None)
    @given(records=RECORDS, restarts=st.frozensets(st.integers(0, 14), max_size=4))
    def check(records: list[Record[str, int]], restarts: frozenset[int]) -> None:
        assert run(records, restarts) == run(records)

    check()


def test_the_number_of_partitions_does_not_change_results() -> None:
    """With times in order, so that the stream time of a partition makes nothing late."""
    topology = built(regrouped_table)
    in_order = out_of_order_records(st.sampled_from("abcdef"), st.integers(0, 9), max_size=15)

    @settings(max_examples=25, deadline=None)
    @given(records=in_order)
    def check(records: list[Record[str, int]]) -> None:
        one, four = results(topology, records), results(topology, records, partitions=4)
        assert {key: value for key, value, _ in one} == {key: value for key, value, _ in four}

    check()
