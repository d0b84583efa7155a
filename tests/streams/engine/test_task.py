"""Tasks: stores, commits, closing, positions, counters, global stores."""

from functools import partial

import pytest

from broker.client.partitioner import partition_for_key
from broker.clock import ManualClock
from broker.model import TopicPartition
from broker.serde import LongSerde, StringSerde
from streams.config import StreamsConfig
from streams.errors import ProcessingFailed, StoreNotFound, StreamsError
from streams.processor import NodeContext, Process
from streams.record import Chunk, Headers, Position, Windowed
from streams.runtime.global_task import GlobalTask
from streams.runtime.task_times import TEXT_MAX, decode_times, encode_times, short_name
from streams.serdes import WindowedSerde
from streams.state.store import StoreKind, StoreSpec
from streams.state.task_state import TaskState
from streams.topology import GlobalStore, RepartitionTopic, Topology
from tests.streams.engine.harness import LoneTask, Outbox
from tests.streams.engine.topologies import Mapped, Opened, Summed, node, sink, source, topology

SUMS = StoreSpec("sums", StoreKind.TIMESTAMPED_KEY_VALUE, value_serde=LongSerde())


def test_children_get_a_record_in_order_and_completely_one_after_the_other() -> None:
    seen: list[str] = []

    def noting(name: str) -> Opened:
        def opened(context: NodeContext) -> Process:
            forward = context.forward

            def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
                seen.append(name)
                forward(key, value, timestamp_ms, headers)

            return process

        return Opened(opened)

    lone = LoneTask(
        topology(
            [
                source("in"),
                node("a", noting("a"), "in"),
                node("b", noting("b"), "in"),
                node("c", noting("c"), "in"),
                node("a1", noting("a1"), "a"),
                node("a2", noting("a2"), "a"),
            ]
        )
    )
    lone.add("in", [("k", b"1", 1)])
    lone.run()
    assert seen == ["a", "a1", "a2", "b", "c"]


def test_a_record_may_go_to_one_child_by_name() -> None:
    def opened(context: NodeContext) -> Process:
        with pytest.raises(StreamsError, match='has no child "nobody"') as caught:
            context.forward_to("nobody")
        assert caught.value.hint == 'its children are "one", "two"'
        return context.forward_to("two")

    lone = LoneTask(
        topology(
            [source("in"), node("p", opened, "in"), sink("one", "1", "p"), sink("two", "2", "p")]
        )
    )
    lone.add("in", [("k", b"1", 1)])
    lone.run()
    assert [record.topic for record in lone.outbox.sent] == ["2"]


def test_only_connected_and_global_stores_are_found() -> None:
    other = StoreSpec("other", StoreKind.KEY_VALUE)
    found: list[object] = []

    def opened(context: NodeContext) -> Process:
        found.append(context.store("everywhere"))
        with pytest.raises(StoreNotFound, match='"other" is not connected to node "p"') as caught:
            context.store("other")
        assert caught.value.hint.startswith('connected are "sums"')
        return context.forward

    tree = topology(
        [
            source("in"),
            node("p", opened, "in", stores=("sums",)),
            node("q", lambda context: context.forward, "in", stores=("other",)),
        ],
        stores=[SUMS, other],
    )
    LoneTask(tree, global_stores={"everywhere": "the store"})
    assert found == ["the store"]


def test_nodes_share_objects_and_times_by_name() -> None:
    found: list[object] = []

    def opened(context: NodeContext) -> Process:
        found.append(context.shared("list", list))
        found.append(context.time("joint"))
        found.append(context.time())
        return context.forward

    LoneTask(topology([source("in"), node("p", opened, "in"), node("q", opened, "p")]))
    assert found[0] is found[3]
    assert found[1] is found[4]
    assert found[2] is not found[5]


def test_what_is_held_back_is_flushed_parents_first_as_if_it_had_just_come() -> None:
    positions: list[object] = []

    def holding(context: NodeContext) -> Process:
        forward = context.forward
        held: list[tuple[Position | None, object]] = []

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            held.append((context.position, value))

        def flush() -> None:
            for position, value in held:
                context.at(position, partial(forward, "k", value, 1, ()))
            held.clear()

        context.before_commit(flush)
        return process

    def noting(context: NodeContext) -> Process:
        return lambda key, value, timestamp_ms, headers: positions.append(context.position)

    lone = LoneTask(
        topology(
            [
                source("in"),
                node("p", holding, "in"),
                node("q", holding, "p"),
                node("r", noting, "q"),
            ]
        )
    )
    lone.add("in", [("k", b"1", 1), ("k", b"2", 2)])
    lone.run()
    assert positions == []
    lone.task.flush()
    assert positions == [Position("in", 0, 0), Position("in", 0, 1)]


def test_nodes_close_parents_first_and_all_of_them() -> None:
    closed: list[str] = []

    def closing(name: str, *, fails: bool = False) -> Opened:
        def close() -> None:
            closed.append(name)
            if fails:
                raise RuntimeError(name)

        def opened(context: NodeContext) -> Process:
            context.on_close(close)
            return context.forward

        return Opened(opened)

    lone = LoneTask(
        topology(
            [source("in"), node("p", closing("p", fails=True), "in"), node("q", closing("q"), "p")]
        )
    )
    with pytest.raises(RuntimeError, match="p"):
        lone.task.close()
    assert closed == ["p", "q"]


def test_a_node_may_ask_for_a_commit() -> None:
    def opened(context: NodeContext) -> Process:
        return lambda key, value, timestamp_ms, headers: context.request_commit()

    lone = LoneTask(topology([source("in"), node("p", opened, "in")]))
    assert not lone.task.commit_requested
    lone.add("in", [("k", b"1", 1)])
    lone.run()
    assert lone.task.commit_requested
    lone.task.committed()
    assert not lone.task.commit_requested


def test_times_of_operators_survive_with_the_offsets() -> None:
    times: list[int] = []

    def opened(context: NodeContext) -> Process:
        time = context.time()
        times.append(time.ms)

        def process(key: object, value: object, timestamp_ms: int, headers: Headers) -> None:
            time.advance(timestamp_ms + 1000)
            times.append(time.ms)

        return process

    tree = topology([source("in"), node("p", opened, "in")])
    lone = LoneTask(tree)
    lone.add("in", [("k", b"1", 5)])
    lone.run()
    moved = LoneTask(tree)
    moved.task.resume_from(lone.task.offsets())
    moved.add("in", [("k", b"1", 1)], offset=1)
    moved.run()
    assert times == [-1, 1005, -1, 1005]
    assert moved.task.stream_time_ms == 5


def test_times_in_metadata_are_read_as_written() -> None:
    operators = {
        "KSTREAM-AGGREGATE-0000000003": 1_700_000_000_000,
        "join": 1_700_000_000_123,
        "x": -1,
    }
    [text] = encode_times([1_700_000_000_200], operators)
    found = decode_times(text)
    assert found.partition_ms == 1_700_000_000_200
    assert found.operators == {short_name(name): ms for name, ms in operators.items() if ms >= 0}
    assert len(text) < 60


@pytest.mark.parametrize("partitions", [1, 3, 40])
@pytest.mark.parametrize("count", [0, 1, 50, 60, 140, 400])
def test_the_times_of_many_operators_are_read_as_written(partitions: int, count: int) -> None:
    operators = {f"operator {n}": 1_700_000_000_000 + n % 7 for n in range(count)}
    times = list(range(1_700_000_000_000, 1_700_000_000_000 + partitions))
    texts = encode_times(times, operators)
    assert max(map(len, texts)) <= TEXT_MAX
    assert [decode_times(text).partition_ms for text in texts] == times
    found: dict[str, int] = {}
    for text in texts:
        found |= decode_times(text).operators
    assert found == {short_name(name): ms for name, ms in operators.items()}


def test_times_of_releases_before_are_read() -> None:
    found = decode_times("1;loyw3v28;loyw3v28;1xyz=0;zzzzzz=2s")
    assert found == (int("loyw3v28", 36), {"1xyz": found[0], "zzzzzz": found[0] - 100})


def test_metadata_has_a_limit_and_text_of_others_is_ignored() -> None:
    [text] = encode_times([1], {f"operator {n}": n * 10**9 for n in range(1000)})
    assert len(text) <= TEXT_MAX
    for text in (
        "",
        "AQAAAYlu",
        "3;1;1",
        "2;1;1;?=abc",
        "1;",
        "1;x y;1",
        "1;1;1;abc",
        "1;1;1;abc=?",
    ):
        assert decode_times(text).partition_ms == -1, text


def test_internal_topics_have_the_applications_id_in_front() -> None:
    lone = LoneTask(
        topology(
            [source("in"), sink("to", "r-repartition", "in")],
            [source("r-repartition")],
            repartition=[RepartitionTopic("r-repartition")],
        )
    )
    lone.add("in", [("k", b"1", 1)])
    lone.run()
    assert lone.outbox.sent[0].topic == "app-r-repartition"


def test_a_sink_may_choose_topics_and_partitions() -> None:
    def chooser(
        key: object, value: object, timestamp_ms: int, headers: Headers, position: Position | None
    ) -> str:
        return f"out-{value}-{position.offset if position else None}"

    answers: dict[object, int | frozenset[int] | None] = {
        0: 3,
        1: None,
        2: frozenset({2, 0}),
        3: frozenset(),
    }
    tree = topology(
        [
            source("in"),
            sink(
                "out",
                chooser,  # type: ignore[arg-type]
                "in",
                partitioner=lambda topic, key, value, count: answers[value],
            ),
        ]
    )
    lone = LoneTask(tree)
    lone.add("in", [("k", str(n).encode(), n) for n in range(4)])
    lone.run()
    assert [(record.topic, record.partition) for record in lone.outbox.sent] == [
        ("out-0-0", 3),
        ("out-1-1", None),
        ("out-2-2", 0),
        ("out-2-2", 2),
    ]


def test_a_partition_that_is_not_there_is_refused() -> None:
    tree = topology(
        [source("in"), sink("out", "out", "in", partitioner=lambda topic, key, value, count: 4)]
    )
    lone = LoneTask(tree)
    lone.add("in", [("k", b"1", 1)])
    with pytest.raises(ProcessingFailed, match='partitioner returned 4, but topic "out" has 4'):
        lone.run()


def test_windowed_keys_are_partitioned_by_their_keys() -> None:
    def windowing(context: NodeContext) -> Process:
        forward = context.forward
        return lambda key, value, timestamp_ms, headers: forward(
            Windowed(key, timestamp_ms, timestamp_ms + 10), value, timestamp_ms, headers
        )

    tree = topology(
        [
            source("in"),
            node("w", windowing, "in"),
            sink("out", "out", "w", key_serde=WindowedSerde(StringSerde(), 10)),
        ]
    )
    lone = LoneTask(tree)
    lone.add("in", [("some key", b"1", time) for time in range(20)])
    lone.run()
    assert {record.partition for record in lone.outbox.sent} == {partition_for_key(b"some key", 4)}


def test_dropped_records_are_counted() -> None:
    def opened(context: NodeContext) -> Process:
        return lambda key, value, timestamp_ms, headers: context.drop("it is too old")

    lone = LoneTask(topology([source("in"), node("p", opened, "in")]))
    lone.add("in", [("k", b"1", 1)] * 3)
    lone.run()
    assert lone.task.metrics.total("dropped-records-total") == 3


def test_many_dropped_records_are_told_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    def opened(context: NodeContext) -> Process:
        return lambda key, value, timestamp_ms, headers: context.drop("it is too old")

    lone = LoneTask(topology([source("in"), node("p", opened, "in")]))
    for first, waited_ms in ((0, 9_999), (3, 1), (5, 0)):
        lone.add("in", [("k", b"1", 1)] * 2, offset=first)
        lone.run()
        lone.clock.advance(waited_ms)
    told = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(told) == 2
    assert told[0].startswith('node "p" of task 0_0 drops a record: it is too old')
    assert "drops 4 records since the last message: it is too old" in told[1]
    assert "offset=5" in told[1]
    assert lone.task.metrics.total("dropped-records-total") == 6


@pytest.mark.parametrize(("level", "of_node"), [("INFO", 0), ("DEBUG", 2)])
def test_records_are_counted_at_sources_and_sinks_and_at_every_node_for_debugging(
    level: str, of_node: int
) -> None:
    lone = LoneTask(
        topology([source("in"), node("p", Mapped(str), "in"), sink("out", "out", "p")]),
        metrics_recording_level=level,
    )
    lone.add("in", [("k", b"1", 1), ("k", b"2", 2)])
    lone.run()
    found = {at: value for name, at, value in lone.task.metrics.items() if name == "process-total"}
    assert (found["in"], found.get("p", 0), found["out"]) == (2, of_node, 2)


def test_settings_are_seen_by_nodes_under_both_names() -> None:
    found: list[object] = []

    def opened(context: NodeContext) -> Process:
        found.extend(context.setting(name) for name in ("poll.ms", "poll_ms", "__secret__", "no"))
        return context.forward

    LoneTask(topology([source("in"), node("p", opened, "in")]), poll_ms=7, __secret__=1)
    assert found == [7, 7, 1, None]


def test_the_cache_is_divided_among_threads() -> None:
    found: list[int] = []

    def opened(context: NodeContext) -> Process:
        found.append(context.cache_bytes)
        return context.forward

    tree = topology([source("in"), node("p", opened, "in")])
    LoneTask(tree, statestore_cache_max_bytes=1000, num_stream_threads=2)
    LoneTask(tree, statestore_cache_max_bytes=0)
    assert found == [500, 0]


def test_a_global_task_fills_its_stores_from_all_partitions() -> None:
    processor = node("keep", Summed("sums"), "g", stores=("sums",))
    tree = Topology(
        (),
        {},
        global_stores={
            "sums": GlobalStore(SUMS, "g", source("g", value_serde=LongSerde()), processor)
        },
    )
    config = StreamsConfig.of(application_id="app")
    state = TaskState(
        [SUMS],
        directory=None,
        default_key_serde=config.default_key_serde,
        default_value_serde=config.default_value_serde,
    )
    task = GlobalTask(
        tree,
        application_id="app",
        state=state,
        output=Outbox(),
        clock=ManualClock(0),
        config=config,
    )
    one = (1).to_bytes(8, "big")
    task.apply(Chunk("g", 0, [0, 1], [1, 2], [b"a", b"b"], [one, one], None, 2))
    task.apply(Chunk("g", 3, [0], [3], [b"a"], [one], None, 1))
    task.commit()
    store = task.stores["sums"]
    assert dict(store.all()) == {"a": (2, 3), "b": (1, 2)}  # type: ignore[attr-defined]
    assert task.positions() == {TopicPartition("g", 0): 2, TopicPartition("g", 3): 1}
