"""Tables joined by a foreign key: left values are "payload|foreign key", or have no key."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.serde import LongSerde
from streams.dsl.builder import StreamsBuilder
from streams.errors import StreamsError, TopologyError
from streams.operators.foreign_key_messages import (
    Instruction,
    Response,
    Subscription,
    decode_response,
    decode_subscription,
    encode_response,
    encode_subscription,
    hash_of,
    response_partition,
    subscription_prefix,
)
from streams.processor import CacheBudget
from tests.streams.engine.harness import LoneTask
from tests.streams.joins.driving import Output, pair, running, table

DROPPED = "dropped-records-total"
FK_STORE = "KTABLE-FK-JOIN-SUBSCRIPTION-STATE-STORE-0000000010"


def after_bar(value: str) -> str | None:
    return value.partition("|")[2] or None


def joined(method: str, left: Any = None, right: Any = None, **options: Any) -> Any:
    def wire(builder: StreamsBuilder) -> Any:
        lefts = table(builder, "left", **(left or {}))
        rights = table(builder, "right", **(right or {}))
        return getattr(lefts, method)(rights, pair, foreign_key=after_bar, **options)

    return wire


# The left table goes through these values; before, there are right values for x and y.
# The other columns are what each step gives.
STEPS = """
left      ; join                ; left_join
A|x       ; A|x-X               ; A|x-X
B|x       ; B|x-X               ; B|x-X
C|y       ; C|y-Y               ; C|y-Y
D|missing ; null                ; D|missing-null
E|missing ;                     ; E|missing-null
F|none    ; null                ; F|none-null
G         ; null                ; G-null
H         ;                     ; H-null
I|x       ; I|x-X               ; I|x-X
J|y       ; J|y-Y               ; J|y-Y
K         ; null                ; K-null
null      ;                     ; null
null      ;                     ;
L|missing ;                     ; L|missing-null
null      ; null                ; null
M         ;                     ; M-null
null      ;                     ; null
"""


@pytest.mark.parametrize("cache_bytes", [0, 10_000_000])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("method", ["join", "left_join"])
def test_every_way_from_one_foreign_key_to_another(
    method: str, partitions: int, cache_bytes: int
) -> None:
    head, *lines = (
        [cell.strip() for cell in line.split(";")] for line in STEPS.strip().splitlines()
    )
    column = head.index(method)
    with running(joined(method), partitions=partitions, cache_bytes=cache_bytes) as run:
        assert run.run([("right", "x", "X", 1), ("right", "y", "Y", 1)]) == []
        for number, line in enumerate(lines):
            value = None if line[0] == "null" else line[0]
            results = [None if word == "null" else word for word in line[column].split()]
            run.pipe("left", "k", value, 10 + number)
            assert run.take() == [("k", found, 10 + number) for found in results], f"row {line}"


@pytest.mark.parametrize(
    ("method", "missing", "gone"),
    [
        ("join", [], [("q", None, 9), ("r", None, 9)]),
        (
            "left_join",
            [("q", "B|10-null", 6), ("r", "C|10-null", 7)],
            [("q", "B|10-null", 9), ("r", "C|10-null", 9)],
        ),
    ],
)
def test_a_right_change_reaches_all_who_refer_to_it(
    method: str, missing: list[Output], gone: list[Output]
) -> None:
    with running(joined(method)) as run:
        assert run.run([("left", "q", "B|10", 6), ("left", "r", "C|10", 7)]) == missing
        found = [("q", "B|10-baz", 8), ("r", "C|10-baz", 8)]
        assert run.run([("right", "10", "baz", 8)]) == found
        assert run.run([("right", "10", None, 9)]) == gone
        assert run.run([("right", "77", "unreferenced", 10), ("right", "1", "prefix", 11)]) == []


def test_results_have_the_later_time_but_right_changes_their_own() -> None:
    with running(joined("join")) as run:
        assert run.run([("right", "x", "X", 100), ("left", "k", "A|x", 50)]) == [
            ("k", "A|x-X", 100)
        ]
        assert run.run([("left", "k", "B|x", 200)]) == [("k", "B|x-X", 200)]
        assert run.run([("right", "x", "Y", 150)]) == [("k", "B|x-Y", 150)]


def test_a_value_without_foreign_key_is_counted_as_dropped_by_the_inner_join() -> None:
    with running(joined("join")) as run:
        assert run.run([("left", "k", "A", 1)]) == []
        assert run.driver.metric(DROPPED) == 1
    with running(joined("left_join")) as run:
        assert run.run([("left", "k", "A", 1)]) == [("k", "A-null", 1)]
        assert run.driver.metric(DROPPED) == 0


@pytest.mark.parametrize("method", ["join", "left_join"])
@pytest.mark.parametrize("last", ["C", None])
def test_old_subscriptions_are_forgotten(method: str, last: str | None) -> None:
    with running(joined(method)) as run:
        run.run([("left", "k", "A|x", 1), ("left", "k", "B|y", 2), ("left", "k", last, 3)])
        assert list(run.driver.get_state_store(FK_STORE).all()) == []
        assert run.run([("right", "x", "X", 4), ("right", "y", "Y", 5)]) == []


def test_an_answer_to_a_value_that_has_changed_since_is_dropped() -> None:
    with running(joined("join")) as run:
        # Answers have the right value's time, so both left records are read before the first.
        run.run([("right", "x", "X", 100)])
        lefts = run.driver.create_input_topic("left", key=str, value=str)
        run.driver.pipe_batch([lefts.row("k", "A|x", 1), lefts.row("k", "B|x", 2)])
        assert run.take() == [("k", "B|x-X", 100)]
        assert run.driver.metric(DROPPED) == 1


@pytest.mark.parametrize("side", ["left", "right"])
def test_an_out_of_order_change_of_a_versioned_table_changes_nothing(side: str) -> None:
    history = {"versioned_history": 60_000, "store": "versions"}
    with running(joined("join", **{side: history})) as run:
        assert run.run([("right", "x", "X", 10), ("left", "k", "A|x", 10)]) == [("k", "A|x-X", 10)]
        late = ("left", "k", "B|x", 5) if side == "left" else ("right", "x", "Y", 5)
        assert run.run([late]) == []
        newer = ("left", "k", "B|x", 20) if side == "left" else ("right", "x", "Y", 20)
        assert len(run.run([newer])) == 1


def test_the_foreign_key_may_come_from_key_and_value() -> None:
    def wire(builder: StreamsBuilder) -> Any:
        lefts, rights = table(builder, "left"), table(builder, "right")
        return lefts.join(rights, pair, foreign_key=lambda key, value: key[:1])

    with running(wire) as run:
        assert run.run([("right", "k", "X", 0), ("left", "k1", "A", 1)]) == [("k1", "A-X", 1)]


def test_left_and_right_keys_may_have_different_types() -> None:
    def wire(builder: StreamsBuilder) -> Any:
        lefts = table(builder, "left")
        rights = builder.table("right", key=LongSerde(), value=str)
        return lefts.left_join(rights, pair, foreign_key=int)

    with running(wire) as run:
        numbers = run.driver.create_input_topic("right", key=LongSerde(), value=str)
        numbers.pipe_input(7, "seven", 0)
        assert run.run([("left", "k", "7", 1), ("left", "j", "8", 2)]) == [
            ("k", "7-seven", 1),
            ("j", "8-null", 2),
        ]


def test_the_result_is_a_table_like_others() -> None:
    def wire(builder: StreamsBuilder) -> Any:
        lefts, rights = table(builder, "left"), table(builder, "right")
        by_foreign_key = lefts.join(rights, pair, foreign_key=after_bar, value=str)
        return by_foreign_key.outer_join(table(builder, "third"), pair)

    with running(wire) as run:
        run.run([("right", "x", "X", 0), ("left", "k", "A|x", 1)])
        assert run.run([("third", "k", "T", 2)]) == [("k", "A|x-X-T", 2)]
        assert run.run([("right", "x", None, 3)]) == [("k", "null-T", 3)]


def test_subscriptions_survive_a_restart() -> None:
    with running(joined("join")) as run:
        run.run([("left", "k", "A|x", 1)])
        run.driver.restart()
        assert run.run([("right", "x", "X", 2)]) == [("k", "A|x-X", 2)]


def test_topics_nodes_and_stores_are_named_as_kafka_names_them() -> None:
    with running(joined("join")) as run:
        topology = run.driver.topology
        assert sorted(topology.repartition_topics) == [
            "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic",
            "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic",
        ]
        found = {node.name for part in topology.sub_topologies for node in part.nodes}
        assert found == {
            "KSTREAM-SOURCE-0000000001",
            "KTABLE-SOURCE-0000000002",
            "KSTREAM-SOURCE-0000000004",
            "KTABLE-SOURCE-0000000005",
            "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000007",
            "KTABLE-SINK-0000000008",
            "KTABLE-SOURCE-0000000009",
            "KTABLE-FK-JOIN-SUBSCRIPTION-PROCESSOR-0000000011",
            "KTABLE-FK-JOIN-SUBSCRIPTION-PROCESSOR-0000000012",
            "KTABLE-FK-JOIN-SUBSCRIPTION-PROCESSOR-0000000013",
            "KTABLE-SINK-0000000015",
            "KTABLE-SOURCE-0000000016",
            "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-0000000017",
            "KTABLE-FK-JOIN-OUTPUT-0000000018",
            "KTABLE-TOSTREAM-0000000020",
            "KSTREAM-SINK-0000000021",
        }
        assert FK_STORE in topology.stores
        assert len(topology.sub_topologies) == 2


def test_a_named_join_names_everything_after_itself() -> None:
    with running(joined("join", name="of")) as run:
        topology = run.driver.topology
        assert sorted(topology.repartition_topics) == [
            "of-subscription-registration-topic",
            "of-subscription-response-topic",
        ]
        assert "of-subscription-store" in topology.stores


def test_what_is_no_table_is_refused() -> None:
    builder = StreamsBuilder()
    lefts: Any = table(builder, "left")
    with pytest.raises(TopologyError, match="cannot be joined"):
        lefts.join(builder.stream("right"), pair, foreign_key=after_bar)
    with pytest.raises(TopologyError, match="foreign_key is 7"):
        lefts.join(table(builder, "right"), pair, foreign_key=7)


# ---- messages

HASHES = st.none() | st.binary(min_size=16, max_size=16)


@given(
    found=HASHES,
    instruction=st.sampled_from(Instruction),
    partition=st.integers(0, 1 << 20),
    left_key=st.binary(max_size=20),
)
def test_a_subscription_is_read_as_it_was_written(
    found: bytes | None, instruction: Instruction, partition: int, left_key: bytes
) -> None:
    subscription = Subscription(found, instruction, partition, left_key)
    assert decode_subscription(encode_subscription(subscription)) == subscription


@given(found=HASHES, partition=st.integers(0, 1 << 20), value=st.none() | st.binary(max_size=20))
def test_a_response_is_read_as_it_was_written(
    found: bytes | None, partition: int, value: bytes | None
) -> None:
    response = Response(found, partition, value)
    data = encode_response(response)
    assert decode_response(data) == response
    assert response_partition(data) == partition


def test_the_layout_of_messages_does_not_change() -> None:
    found = hash_of(b"value")
    assert found.hex() == "b9593f9e1096b5482cd35ed7e15d1f18"
    subscription = Subscription(found, Instruction.PROPAGATE_NULL_IF_MISSING, 3, b"k")
    assert encode_subscription(subscription) == b"\x01\x02" + found + b"\0\0\0\x03k"
    assert encode_response(Response(None, 3, None)) == b"\xc1\0\0\0\x03"
    assert subscription_prefix(b"ab") == b"\0\0\0\x02ab"


def test_a_message_of_a_later_release_is_refused() -> None:
    with pytest.raises(StreamsError, match="has version 2"):
        decode_response(b"\x02" + bytes(20))


# ---- against a relational join

CHANGES = st.lists(
    st.one_of(
        st.tuples(
            st.just("left"),
            st.sampled_from("abc"),
            st.none() | st.sampled_from(["1|x", "2|x", "1|y", "2|z", "3"]),
        ),
        st.tuples(st.just("right"), st.sampled_from("xyz"), st.none() | st.sampled_from("PQ")),
    ),
    max_size=30,
)


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("method", ["join", "left_join"])
@settings(max_examples=40, deadline=None)
@given(changes=CHANGES)
def test_after_any_changes_the_result_is_the_relational_join(
    method: str, partitions: int, changes: list[tuple[str, str, str | None]]
) -> None:
    tables: dict[str, dict[str, str]] = {"left": {}, "right": {}}
    with running(joined(method, store="result", value=str), partitions=partitions) as run:
        seen: dict[str | None, str | None] = {}
        for number, (topic, key, value) in enumerate(changes):
            if value is None:
                tables[topic].pop(key, None)
            else:
                tables[topic][key] = value
            for found, result, _ in run.run([(topic, key, value, number)]):
                seen[found] = result
            expected = {
                k: pair(v, tables["right"].get(after_bar(v) or ""))
                for k, v in tables["left"].items()
                if method == "left_join" or after_bar(v) in tables["right"]
            }
            assert {k: v for k, v in seen.items() if v is not None} == expected
            kept = {
                k: v for store in run.driver.get_state_stores("result") for k, (v, _) in store.all()
            }
            assert kept == expected


@pytest.mark.slow
@pytest.mark.parametrize("method", ["join", "left_join"])
@settings(max_examples=60, deadline=None)
@given(changes=CHANGES)
def test_answers_that_come_late_do_not_spoil_the_result(
    method: str, changes: list[tuple[str, str, str | None]]
) -> None:
    tables: dict[str, dict[str, str]] = {"left": {}, "right": {}}
    with running(joined(method, store="result", value=str), partitions=2) as run:
        inputs = {name: run.driver.create_input_topic(name, key=str, value=str) for name in tables}
        rows = []
        for number, (topic, key, value) in enumerate(changes):
            rows.append(inputs[topic].row(key, value, number))
            if value is None:
                tables[topic].pop(key, None)
            else:
                tables[topic][key] = value
        # All changes are read before the first subscription is answered.
        run.driver.pipe_batch(rows)
        kept = {
            k: v for store in run.driver.get_state_stores("result") for k, (v, _) in store.all()
        }
        assert kept == {
            k: pair(v, tables["right"].get(after_bar(v) or ""))
            for k, v in tables["left"].items()
            if method == "left_join" or after_bar(v) in tables["right"]
        }


# --- many changes at a time -----------------------------------------------------------------------

SUBSCRIPTIONS = "app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic"
LEFT_KEYS = ("k", "l", "m")


def right_side(cache_bytes: int) -> LoneTask:
    """The task of the right table, uncached; three left rows refer to its key x."""
    builder = StreamsBuilder()
    joined("join", right={"caching": False})(builder).to_stream().to("out", key=str, value=str)
    topology = builder.build()
    sides = [sub for sub in topology.sub_topologies if "right" in sub.source_topics]
    cache = CacheBudget(cache_bytes)
    lone = LoneTask(replace(topology, sub_topologies=tuple(sides)), cache=cache)
    found, instruction = hash_of(b"A|x"), Instruction.PROPAGATE_ONLY_IF_RIGHT_EXISTS
    rows = [
        ("x", encode_subscription(Subscription(found, instruction, 0, key.encode())), 1)
        for key in LEFT_KEYS
    ]
    lone.add(SUBSCRIPTIONS, rows)
    lone.run()
    assert not lone.outbox.sent
    return lone


def answers(lone: LoneTask) -> list[tuple[str, bytes | None, int]]:
    taken, lone.outbox.sent = lone.outbox.sent, []
    return [
        (bytes(sent.key or b"").decode(), decode_response(bytes(sent.value or b"")).value, time)
        for sent in taken
        for time in (sent.timestamp_ms,)
    ]


def test_a_right_row_that_changes_often_at_a_time_tells_its_last_value_only() -> None:
    lone = right_side(cache_bytes=1_000_000)
    changes = [("x", b"value %d" % number, number) for number in range(100)]
    lone.add("right", changes)
    assert lone.task.process(1000) == 100
    assert answers(lone) == [(key, b"value 99", 99) for key in LEFT_KEYS]
    lone.add("right", [("x", b"again", 200)], offset=100)
    lone.run()
    assert answers(lone) == [(key, b"again", 200) for key in LEFT_KEYS], "without a commit"


def test_a_right_row_that_comes_and_goes_at_a_time_is_told_as_it_is_in_the_end() -> None:
    lone = right_side(cache_bytes=1_000_000)
    lone.add("right", [("x", b"X", 10), ("y", b"Y", 11), ("x", None, 12)])
    lone.run()
    assert answers(lone) == [(key, None, 12) for key in LEFT_KEYS]
    lone.add("right", [("x", None, 13), ("x", b"Z", 14)], offset=3)
    lone.run()
    assert answers(lone) == [(key, b"Z", 14) for key in LEFT_KEYS]


def test_without_a_cache_every_change_of_a_right_row_is_told() -> None:
    lone = right_side(cache_bytes=0)
    lone.add("right", [("x", b"X", 10), ("x", b"Y", 11)])
    lone.run()
    expected = [(key, value, time) for value, time in ((b"X", 10), (b"Y", 11)) for key in LEFT_KEYS]
    assert answers(lone) == expected


def test_an_answer_that_comes_too_late_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "streams")
    with running(joined("join")) as run:
        run.run([("right", "x", "X", 100)])
        lefts = run.driver.create_input_topic("left", key=str, value=str)
        rows = [lefts.row("k", f"{number}|x", number) for number in range(1, 50)]
        run.driver.pipe_batch(rows)
        assert run.driver.metric(DROPPED) > 10
    told = [
        record for record in caplog.records if "has changed since it subscribed" in record.message
    ]
    assert [record.levelname for record in told] == ["INFO"]
