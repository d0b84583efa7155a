"""Serdes by type, and stores by keywords."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from broker.serde import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    JsonSerde,
    LongSerde,
    StringSerde,
    UuidSerde,
)
from streams import StreamsBuilder
from streams.dsl.logical import SourceStep
from streams.dsl.stored import Stored, serde_of, stored
from streams.state.store import StoreKind
from tests.streams.dsl.running import run

BY_TYPE = {
    str: StringSerde,
    int: LongSerde,
    float: DoubleSerde,
    bytes: BytesSerde,
    bool: BooleanSerde,
    dict: JsonSerde,
    list: JsonSerde,
    object: JsonSerde,
    UUID: UuidSerde,
    dict[str, int]: JsonSerde,
    list[str]: JsonSerde,
}


@pytest.mark.parametrize(("given", "serde"), BY_TYPE.items())
def test_a_type_has_its_serde(given: Any, serde: type) -> None:
    assert isinstance(serde_of(given), serde)


@dataclass(frozen=True)
class Order:
    """A value with fields."""

    user: str
    amount: int


def test_values_of_a_dataclass_come_to_functions_as_such() -> None:
    def build(builder: StreamsBuilder) -> None:
        orders = builder.stream("in", key=str, value=Order)
        orders.map_values(lambda order: Order(order.user, order.amount + 1)).to("out", value=Order)

    assert run(build, [("a", Order("ann", 1))], value=Order) == [("a", Order("ann", 2), 0)]


def test_a_serde_stands_for_itself_and_nothing_for_the_default() -> None:
    mine = StringSerde()
    assert serde_of(mine) is mine
    assert serde_of(None) is None
    assert serde_of(None, mine) is mine


def test_only_what_the_user_says_counts_as_given() -> None:
    assert not stored().given
    assert stored("name").given
    assert stored(value=str).given
    assert stored(logging=False).given


def test_options_become_a_store() -> None:
    options = stored(
        "kept",
        key=str,
        value=int,
        caching=False,
        logging=False,
        persistent=False,
        retention=timedelta(hours=1),
        topic_config={"cleanup.policy": "delete"},
    )
    spec = options.spec("kept", StoreKind.TIMESTAMPED_WINDOW, retention_ms=5, window_size_ms=10)
    assert isinstance(spec.key_serde, StringSerde)
    assert isinstance(spec.value_serde, LongSerde)
    assert (spec.caching, spec.logging, spec.persistent) == (False, False, False)
    assert (spec.retention_ms, spec.window_size_ms) == (3_600_000, 10)
    assert spec.topic_config == {"cleanup.policy": "delete"}


def test_a_table_is_cached_and_logged_by_default() -> None:
    spec = stored().table_spec("t")
    assert spec.kind is StoreKind.TIMESTAMPED_KEY_VALUE
    assert spec.caching
    assert spec.logging


def test_history_makes_a_versioned_store_that_holds_nothing_back() -> None:
    spec = stored(versioned_history=1000, caching=True).table_spec("t")
    assert spec.kind is StoreKind.VERSIONED
    assert spec.history_ms == 1000
    assert not spec.caching


def test_a_stored_value_takes_serdes_that_it_lacks() -> None:
    mine = Stored(name="kept", key_serde=StringSerde())
    filled = stored(mine, key=int, value=int)
    assert isinstance(filled.key_serde, StringSerde)
    assert isinstance(filled.value_serde, LongSerde)
    assert filled.name == "kept"


def test_a_source_has_what_it_was_given() -> None:
    def early(key: object, value: object, timestamp_ms: int, partition_time_ms: int) -> int:
        return 0

    builder = StreamsBuilder()
    read = builder.stream(
        {"b", "a"}, key=str, value=int, timestamp_extractor=early, offset_reset="latest"
    )
    step = read.node.step
    assert isinstance(step, SourceStep)
    assert step.topics == ("a", "b")
    assert step.timestamp_extractor is early
    assert step.offset_reset == "latest"


def test_a_topic_named_twice_is_read_once() -> None:
    builder = StreamsBuilder()
    builder.stream(["a", "b", "a"])
    (part,) = builder.build().sub_topologies
    assert part.source_topics == ("a", "b")


def test_the_reset_of_either_read_holds_for_both() -> None:
    builder = StreamsBuilder()
    builder.stream("a")
    builder.stream("a", offset_reset="earliest")
    (part,) = builder.build().sub_topologies
    assert part.nodes[0].offset_reset == "earliest"  # type: ignore[union-attr]
