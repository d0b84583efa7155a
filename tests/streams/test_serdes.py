"""Serdes of streams: by type, and in Kafka Streams' bytes for windowed keys and changes."""

from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import SerdeError
from broker.serde import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    JsonSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UuidSerde,
)
from streams.errors import TopologyError
from streams.record import Windowed
from streams.serdes import ChangeSerde, SessionWindowedSerde, WindowedSerde, serde_of


@pytest.mark.parametrize(
    ("given_type", "expected"),
    [
        (str, StringSerde),
        (int, LongSerde),
        (float, DoubleSerde),
        (bytes, BytesSerde),
        (bool, BooleanSerde),
        (UUID, UuidSerde),
        (dict, JsonSerde),
        (dict[str, int], JsonSerde),
        (list, JsonSerde),
        (list[int], JsonSerde),
        (Any, JsonSerde),
    ],
)
def test_a_type_has_a_serde(given_type: object, expected: type) -> None:
    assert type(serde_of(given_type)) is expected


def test_a_serde_is_taken_as_it_is() -> None:
    serde = ShortSerde()
    assert serde_of(serde) is serde


@pytest.mark.parametrize("given_type", [set, StringSerde, 5, "str", None])
def test_what_is_no_serde_is_refused(given_type: object) -> None:
    with pytest.raises(TopologyError, match="pass a Serde object"):
        serde_of(given_type)


class Colour(Enum):
    RED = "red"


@dataclass
class Item:
    name: str
    parts: "list[Item]" = field(default_factory=list)


@dataclass
class Order:
    id: UUID
    day: date
    at: datetime
    colour: Colour | None
    items: list[Item]
    by_name: dict[str, Item]
    pair: tuple[int, str] = (0, "")


def test_a_dataclass_comes_back_as_it_was() -> None:
    order = Order(
        UUID(int=7),
        date(2024, 2, 29),
        datetime.fromisoformat("2024-02-29T12:00:00+00:00"),
        Colour.RED,
        [Item("a", [Item("b")])],
        {"c": Item("c")},
        (1, "x"),
    )
    serde = serde_of(Order)
    data = serde.serialize("t", order)
    assert serde.deserialize("t", data) == order
    assert serde.deserialize("t", None) is None
    assert serde.serialize("t", None) is None


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"nome": "x"}', b"{}"])
def test_json_that_is_no_such_object_is_an_error(data: bytes) -> None:
    with pytest.raises(SerdeError, match="cannot decode as Item"):
        serde_of(Item).deserialize("t", data)


def test_another_object_is_refused() -> None:
    with pytest.raises(SerdeError, match="cannot encode as Item: the value is a dict"):
        serde_of(Item).serialize("t", {"name": "x"})


def test_a_windowed_key_is_key_and_start() -> None:
    serde = WindowedSerde(StringSerde(), 500)
    data = serde.serialize("t", Windowed("key", 258, 758))
    assert data == b"key\0\0\0\0\0\0\1\2"
    assert serde.deserialize("t", data) == Windowed("key", 258, 758)
    assert serde.deserialize("t", None) is None
    assert serde.serialize("t", None) is None
    with pytest.raises(SerdeError, match="7 bytes are less than 8"):
        serde.deserialize("t", b"1234567")


def test_a_session_key_is_key_end_and_start() -> None:
    serde = SessionWindowedSerde(StringSerde())
    data = serde.serialize("t", Windowed("key", 1, 258))
    assert data == b"key\0\0\0\0\0\0\1\2\0\0\0\0\0\0\0\1"
    assert serde.deserialize("t", data) == Windowed("key", 1, 258)


def test_a_change_is_as_in_kafkas_repartition_topics() -> None:
    serde = ChangeSerde(StringSerde())
    assert serde.serialize("t", ("new", None, True)) == b"new\1"
    assert serde.serialize("t", (None, "old", True)) == b"old\0"
    assert serde.serialize("t", ("new", "old", True)) == b"\6newold\2"
    with pytest.raises(SerdeError, match="neither"):
        serde.serialize("t", (None, None, True))
    with pytest.raises(SerdeError, match="unknown flag 9"):
        serde.deserialize("t", b"new\x09")


def test_a_change_of_a_newer_kafka_says_whether_it_is_the_latest() -> None:
    serde = ChangeSerde(StringSerde())
    assert serde.deserialize("t", b"old\0\3") == (None, "old", False)
    assert serde.deserialize("t", b"new\1\4") == ("new", None, True)
    assert serde.deserialize("t", b"\6newold\0\5") == ("new", "old", False)


@given(new=st.one_of(st.none(), st.text()), old=st.one_of(st.none(), st.text(max_size=200)))
def test_every_change_comes_back(new: str | None, old: str | None) -> None:
    if new is None and old is None:
        return
    serde = ChangeSerde(StringSerde())
    data = serde.serialize("t", (new, old, True))
    assert serde.deserialize("t", data) == (new, old, True)
