"""Values of models with a registry: they come back, evolve, and are checked."""

from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import RegistryError, SerdeError
from broker.serde import ModelSerde, avro, json_schema, protobuf
from broker.serde.avro_codec.fastavro_codec import decoder, encoder
from broker.serde.models.avro_accessors import bytes_reader, bytes_writer
from broker.serde.models.avro_conversion import AvroReading, AvroWriting
from broker.serde.models.avro_derivation import avro_schema_of
from broker.serde.models.hints import shape_of
from broker.serde.schema.avro_schema import parse_avro
from tests.broker.serde.models.sample_models import (
    EVERYONE,
    LINES,
    NODES,
    ORDER,
    ORDERS,
    Card,
    Everyone,
    Line,
    Node,
    Order,
)
from tests.support.memory_registry import MemoryRegistry

FORMATS = [avro, json_schema, protobuf]
# JSON needs unions with tags, which dataclasses have not.
BINARY = [avro, protobuf]
SERDES: dict[Any, dict[type, ModelSerde[Any]]] = {
    each: {model: each(model, MemoryRegistry()) for model in (Node, Line)} for each in FORMATS
}
for each_format in BINARY:
    for each_model in (Order, Everyone):
        SERDES[each_format][each_model] = each_format(each_model, MemoryRegistry())


def there_and_back(serde: ModelSerde[Any], value: object) -> object:
    """What is read of what is written."""
    return serde.deserialize("t", serde.serialize("t", value))


@pytest.mark.slow
@pytest.mark.parametrize("form", BINARY)
@given(order=ORDERS)
def test_every_order_comes_back(form: Any, order: Order) -> None:
    assert there_and_back(SERDES[form][Order], order) == order


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
@given(node=NODES, line=LINES)
def test_every_tree_and_line_comes_back(form: Any, node: Node, line: Line) -> None:
    assert there_and_back(SERDES[form][Node], node) == node
    assert there_and_back(SERDES[form][Line], line) == line


@pytest.mark.slow
@pytest.mark.parametrize("form", BINARY)
@given(value=EVERYONE)
def test_models_of_every_family_come_back(form: Any, value: Everyone) -> None:
    assert there_and_back(SERDES[form][Everyone], value) == value


@pytest.mark.slow
@given(value=ORDERS | EVERYONE)
def test_avro_is_written_and_read_as_fastavro_does(value: Order | Everyone) -> None:
    shape = shape_of(type(value))
    schema = parse_avro(avro_schema_of(shape).text, {})
    by_dicts = encoder(schema)(AvroWriting("dicts").function(shape)(value))
    assert bytes_writer("bytes", shape, schema.root)(value) == by_dicts
    assert bytes_reader("value", shape, schema.root)(by_dicts) == value
    assert AvroReading("value").function(shape)(decoder(schema)(by_dicts)) == value


@pytest.mark.parametrize("form", FORMATS)
def test_null_is_null(form: Any) -> None:
    serde = SERDES[form][Line]
    assert serde.serialize("t", None) is None
    assert serde.deserialize("t", None) is None


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
@given(data=st.binary(max_size=60), line=LINES)
def test_any_other_bytes_are_an_error_of_serdes(form: Any, data: bytes, line: Line) -> None:
    for model in (Line, Node):
        serde = SERDES[form][model]
        prefix = (serde.serialize("t", line if model is Line else Node("a")) or b"")[:5]
        for bad in (data, prefix + data, prefix + b"\0" + data):
            try:
                serde.deserialize("t", bad)
            except SerdeError:
                continue


@pytest.mark.slow
@pytest.mark.parametrize("form", BINARY)
@given(order=ORDERS, place=st.integers(0, 200), byte=st.integers(0, 255))
def test_a_changed_byte_is_another_value_or_an_error_of_serdes(
    form: Any, order: Order, place: int, byte: int
) -> None:
    serde = SERDES[form][Order]
    data = bytearray(serde.serialize("t", order) or b"")
    data[5 + place % (len(data) - 5)] = byte
    with suppress(SerdeError):
        assert isinstance(serde.deserialize("t", bytes(data)), Order)


# Any: values that no type checker would let through.
RED: Any = "RED"
WRONG: list[tuple[Any, str]] = [
    ({"id": "7"}, r"\$\.id must be a 64-bit int, not str"),
    ({"id": 2**63}, r"\$\.id must be a 64-bit int, not an int with more bits"),
    ({"id": True}, r"\$\.id must be a 64-bit int, not bool"),
    ({"user": b"ann"}, r"\$\.user must be a str, not bytes"),
    ({"user": "\ud800"}, r"\$\.user must be a str"),
    ({"paid": 1}, r"\$\.paid must be a bool, not int"),
    ({"weight": "1"}, r"\$\.weight must be a float, not str"),
    ({"signature": "x"}, r"\$\.signature must be bytes, not str"),
    ({"at": datetime(2024, 1, 1)}, r"\$\.at must be a datetime with a time zone"),  # noqa: DTZ001
    ({"day": ORDER.at}, r"\$\.day must be a date, not datetime"),
    ({"clock": ORDER.clock.replace(tzinfo=ORDER.at.tzinfo)}, r"\$\.clock must be a time without"),
    ({"took": 5}, r"\$\.took must be a timedelta, not int"),
    ({"key": "7"}, r"\$\.key must be a UUID, not str"),
    ({"lines": [ORDER.lines[0], "x"]}, r'\$\.lines\[1\] must be a "Line", not str'),
    ({"lines": "ab"}, r"\$\.lines must be a list, not str"),
    ({"by_name": {5: ORDER.lines[0]}}, r"the key 5 of \$\.by_name must be a str"),
    (
        {"by_name": {"a": replace(ORDER.lines[0], price=Decimal("0.0001"))}},
        r"\$\.by_name\['a'\]\.price must have at most 12 digits, 3 after the decimal point, not 0",
    ),
    ({"lines": [replace(ORDER.lines[0], count=2**31)]}, r"count must be a 32-bit int"),
    (
        {"lines": [replace(ORDER.lines[0], colour=RED)]},
        r'colour must be a "Colour", not str',
    ),
    ({"kind": "post"}, r"\$\.kind must be one of \('web', 'shop'\), not 'post'"),
    ({"payment": 5}, r"\$\.payment has type int, which is none of its types"),
    ({"payment": Card(5)}, r"\$\.payment\.number must be a str, not int"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("form", BINARY)
@pytest.mark.parametrize(("change", "reason"), WRONG)
def test_a_value_that_does_not_fit_is_an_error_with_its_path(
    form: Any, change: dict[str, Any], reason: str
) -> None:
    with pytest.raises(SerdeError, match=reason):
        SERDES[form][Order].serialize("t", replace(ORDER, **change))


def test_json_that_does_not_fit_is_an_error_with_its_path() -> None:
    serde = SERDES[json_schema][Line]
    with pytest.raises(SerdeError, match=r"Expected `str`, got `int` - at `\$.article`"):
        serde.serialize("t", Line(5, Decimal(1)))  # type: ignore[arg-type]


@pytest.mark.parametrize("form", FORMATS)
def test_another_object_is_refused(form: Any) -> None:
    with pytest.raises(SerdeError, match="cannot encode as Line"):
        SERDES[form][Line].serialize("t", "line")


# --- evolution ------------------------------------------------------------------------------------


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


@dataclass
class Old:
    __schema_name__ = "Sale"
    __schema_namespace__ = "shop"

    id: int
    gone: str = ""
    mood: Mood = Mood.GOOD


@dataclass
class New:
    __schema_name__ = "Sale"
    __schema_namespace__ = "shop"

    id: int
    gone: str = ""
    mood: Mood = Mood.BAD
    count: int = 3
    tags: list[str] = field(default_factory=list)
    line: Line = field(default_factory=lambda: Line("none", Decimal(0)))
    note: str | None = None


@dataclass
class Wider:
    __schema_name__ = "Sale"
    __schema_namespace__ = "shop"

    id: float


@dataclass
class Demanding:
    __schema_name__ = "Sale"
    __schema_namespace__ = "shop"

    id: int
    gone: str
    mood: Mood
    owner: str
    at: datetime


@dataclass
class Unlike:
    __schema_name__ = "Sale"
    __schema_namespace__ = "shop"

    id: list[str]


@pytest.mark.parametrize("form", [json_schema, protobuf])
def test_new_fields_take_their_defaults(form: Any) -> None:
    registry = MemoryRegistry()
    data = form(Old, registry).serialize("t", Old(5, "x", Mood.GOOD))
    found = form(New, registry).deserialize("t", data)
    assert found == New(5, "x", Mood.GOOD)


@dataclass
class Added:
    __schema_name__ = "Sale"
    __schema_namespace__ = "shop"

    id: int
    mood: Mood = Mood.BAD
    count: int = 3
    tags: list[str] = field(default_factory=list)
    note: str | None = None
    card: Card | None = None


def test_avro_resolves_what_was_added_and_removed() -> None:
    registry = MemoryRegistry()
    data = avro(Old, registry).serialize("t", Old(5, "x", Mood.GOOD))
    assert avro(Added, registry).deserialize("t", data) == Added(5, Mood.GOOD)
    assert avro(Wider, registry).deserialize("t", data) == Wider(5.0)
    with pytest.raises(SerdeError):
        avro(Demanding, registry).deserialize("t", data)
    with pytest.raises(SerdeError):
        avro(Unlike, registry).deserialize("t", data)


@pytest.mark.parametrize("form", FORMATS)
def test_fields_that_are_gone_are_left_out(form: Any) -> None:
    registry = MemoryRegistry()
    value = Added(5, Mood.GOOD, 4, ["a"], "b", Card("7"))
    writer = form(Added, registry)
    data = writer.serialize("t", value)
    if form is protobuf:
        # Fields go by their numbers there: what comes after the ones that are read is left out.
        @dataclass
        class Sale:
            __schema_namespace__ = "shop"
            id: int

        assert form(Sale, registry).deserialize("t", data) == Sale(5)
    else:
        assert form(Wider, registry).deserialize("t", data) == Wider(5)


def test_a_record_of_another_message_is_refused() -> None:
    registry = MemoryRegistry()
    data = protobuf(Line, registry).serialize("t", ORDER.lines[0])
    with pytest.raises(SerdeError, match=r'the record is a ".*Line", not a ".*Node"'):
        protobuf(Node, registry).deserialize("t", data)


def test_a_required_time_that_a_message_lacks_is_an_error() -> None:
    registry = MemoryRegistry()
    data = protobuf(Old, registry).serialize("t", Old(5))
    with pytest.raises(SerdeError, match='the record has no "at"'):
        protobuf(Demanding, registry).deserialize("t", data)


# --- registration ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_the_schema_is_registered_with_the_first_record_or_when_it_is_checked(form: Any) -> None:
    registry = MemoryRegistry()
    serde = form(Line, registry)
    assert registry.calls == []
    assert serde.check("t") == 1
    serde.serialize("t", ORDER.lines[0])
    assert registry.calls == ["register t-value"]
    form(Line, registry, is_key=True).serialize("t", ORDER.lines[0])
    assert registry.calls[1:] == ["register t-key"]


def test_without_registering_the_schema_must_be_there() -> None:
    serde = avro(Line, MemoryRegistry(), auto_register=False)
    with pytest.raises(RegistryError, match='the schema of "Line" for subject "t-value"') as caught:
        serde.check("t")
    assert caught.value.status == 404


def test_the_latest_schema_may_be_the_one_to_write_with() -> None:
    registry = MemoryRegistry()
    avro(Added, registry).check("t")
    serde = avro(Old, registry, use_latest=True)
    assert serde.check("t") == 1
    data = serde.serialize("t", Old(5, "x", Mood.GOOD))
    assert avro(Added, registry).deserialize("t", data) == Added(5, Mood.GOOD)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(SerdeError, match='unknown model format "XML"'):
        ModelSerde(Line, MemoryRegistry(), "XML")  # type: ignore[arg-type]


class Click(msgspec.Struct, tag=True):
    x: int


class Swipe(msgspec.Struct, tag=True):
    far: float


class Gesture(msgspec.Struct):
    made: Click | Swipe | None
    then: "Gesture | None" = None


@pytest.mark.parametrize("form", FORMATS)
def test_structs_with_tags_may_be_in_unions_of_every_format(form: Any) -> None:
    serde = form(Gesture, MemoryRegistry())
    for value in (Gesture(Click(5)), Gesture(Swipe(0.5), Gesture(None))):
        assert there_and_back(serde, value) == value


@dataclass(frozen=True)
class GiftCard(Card):
    giver: str


@dataclass
class Paid:
    by: Card | GiftCard


@pytest.mark.parametrize("form", BINARY)
def test_a_derived_class_in_a_union_is_not_taken_for_its_base(form: Any) -> None:
    serde = form(Paid, MemoryRegistry())
    for value in (Paid(Card("5")), Paid(GiftCard("5", "ann"))):
        assert there_and_back(serde, value) == value
