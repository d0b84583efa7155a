"""RegistryProtobufSerde: round trips, classes with and without code, imports, and errors."""

from contextlib import suppress
from typing import Any

import pytest
from google.protobuf.message import Message  # type: ignore[import-untyped]
from google.protobuf.timestamp_pb2 import Timestamp  # type: ignore[import-untyped]
from hypothesis import given
from hypothesis import strategies as st

from broker.clock import ManualClock
from broker.errors import SchemaError, SerdeError
from broker.serde import RegistryAvroSerde, RegistryProtobufSerde, record_name, topic_record_name
from broker.serde.registry import CachedRegistry
from broker.serde.schema.protobuf_schema import parse_protobuf
from broker.serde.schema.schema import Reference, Schema, SchemaKind
from tests.support.memory_registry import MemoryRegistry

TEXT = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  message Line { string article = 1; sint32 count = 2; }
  int64 id = 1;
  string note = 2;
  repeated Line lines = 3;
  map<string, double> prices = 4;
  google.protobuf.Timestamp at = 5;
  optional bool paid = 6;
  bytes raw = 7;
}
message Customer { string name = 1; }
"""
OTHER_TEXT = """
syntax = "proto3";
package market;
message Order { int64 id = 1; fixed32 colour = 9; }
"""
MONEY = 'syntax = "proto3"; package common; message Money { int64 units = 1; }'
BILL = """
syntax = "proto3";
package shop;
import "common/money.proto";
message Bill { common.Money total = 1; }
"""
VALUE = {"id": 3, "note": "hi", "lines": [{"article": "a", "count": -1}], "paid": False}

# Any: classes made at run time have no types.
ORDER: Any = parse_protobuf(TEXT, {}).message_class("shop.Order")
LINE: Any = parse_protobuf(TEXT, {}).message_class("shop.Order.Line")
CUSTOMER: Any = parse_protobuf(TEXT, {}).message_class("shop.Customer")
OTHER_ORDER: Any = parse_protobuf(OTHER_TEXT, {}).message_class("market.Order")
BILL_CLASS: Any = parse_protobuf(BILL, {"common/money.proto": MONEY}).message_class("shop.Bill")
SHARED = MemoryRegistry()
BY_CLASS = RegistryProtobufSerde(SHARED, ORDER)
READER = RegistryProtobufSerde(SHARED)

VALUES = st.fixed_dictionaries(
    {},
    optional={
        "id": st.integers(-(2**63), 2**63 - 1),
        "note": st.text(max_size=10),
        "lines": st.lists(
            st.fixed_dictionaries(
                {"article": st.text(max_size=5), "count": st.integers(-(2**31), 2**31 - 1)}
            ),
            max_size=3,
        ),
        "prices": st.dictionaries(st.text(max_size=5), st.floats(allow_nan=False), max_size=3),
        "at": st.fixed_dictionaries({"seconds": st.integers(0, 10**9)}),
        "paid": st.booleans(),
        "raw": st.binary(max_size=10),
    },
)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (None, "00 00000001 00 0803"),
        ("shop.Order", "00 00000001 00 0803"),
        ("shop.Customer", "00 00000001 02 02 0a0178"),
        ("shop.Order.Line", "00 00000001 04 00 00 0a0178"),
    ],
)
def test_the_bytes_are_prefix_place_and_message(message: str | None, expected: str) -> None:
    values: dict[str | None, dict[str, object]] = {
        "shop.Customer": {"name": "x"},
        "shop.Order.Line": {"article": "x"},
    }
    serde = RegistryProtobufSerde(MemoryRegistry(), TEXT, message=message)
    value = values.get(message, {"id": 3})
    data = serde.serialize("t", value)
    assert data == bytes.fromhex(expected)
    found = serde.deserialize("t", data)
    assert isinstance(found, Message)
    assert found == type(found)(**value)


def test_null_is_null_both_ways() -> None:
    serde = RegistryProtobufSerde(MemoryRegistry(), TEXT)
    assert serde.serialize("t", None) is None
    assert serde.deserialize("t", None) is None


@pytest.mark.slow
@given(VALUES)
def test_messages_come_back(value: dict[str, object]) -> None:
    data = BY_CLASS.serialize("t", ORDER(**value))
    assert BY_CLASS.deserialize("t", data) == ORDER(**value)
    assert BY_CLASS.deserialize("t", BY_CLASS.serialize("t", value)) == ORDER(**value)
    dynamic = READER.deserialize("t", data)
    assert isinstance(dynamic, Message)
    assert ORDER.FromString(dynamic.SerializeToString()) == ORDER(**value)


@pytest.mark.slow
@given(VALUES, st.data())
def test_damaged_bytes_are_messages_or_serde_errors(
    value: dict[str, object], drawn: st.DataObject
) -> None:
    good = BY_CLASS.serialize("t", value)
    assert good is not None
    cut = drawn.draw(st.integers(0, len(good)))
    noise = drawn.draw(st.binary(max_size=20))
    for data in (good[:cut], good[:cut] + noise, good[:5] + noise, good[:6] + noise):
        with suppress(SerdeError):
            READER.deserialize("t", data)


def test_a_class_reads_as_itself_and_registers_its_file() -> None:
    registry = MemoryRegistry()
    serde = RegistryProtobufSerde(registry, ORDER)
    found = serde.deserialize("orders", serde.serialize("orders", ORDER(**VALUE)))
    assert type(found) is ORDER
    registered = registry.version("orders-value").schema
    assert (registered.kind, registered.references) == (SchemaKind.PROTOBUF, ())
    assert parse_protobuf(registered.text, {}).message_names[0] == "shop.Order"


def test_messages_of_several_classes_share_a_topic() -> None:
    registry = MemoryRegistry()
    serde = RegistryProtobufSerde(registry, subject=topic_record_name)
    for message in (ORDER(**VALUE), CUSTOMER(name="z"), LINE(article="a")):
        data = serde.serialize("t", message)
        found = serde.deserialize("t", data)
        assert isinstance(found, Message)
        assert found.DESCRIPTOR.full_name == message.DESCRIPTOR.full_name
        assert found.SerializeToString() == message.SerializeToString()
    for name in ("shop.Order", "shop.Customer", "shop.Order.Line"):
        assert registry.version(f"t-{name}").schema_id == 1


def test_a_message_of_the_same_name_from_elsewhere_is_written_too() -> None:
    serde = RegistryProtobufSerde(MemoryRegistry(), TEXT)
    assert serde.serialize("t", ORDER(id=3)) == bytes.fromhex("00 00000001 00 0803")


def test_a_reader_in_another_package_reads_what_it_knows() -> None:
    registry = MemoryRegistry()
    data = RegistryProtobufSerde(registry, ORDER).serialize("t", ORDER(**VALUE))
    found: Any = RegistryProtobufSerde(registry, reader=OTHER_ORDER).deserialize("t", data)
    assert type(found) is OTHER_ORDER
    assert found.id == 3


def test_a_message_of_another_name_is_not_read_as_something_it_is_not() -> None:
    registry = MemoryRegistry()
    data = RegistryProtobufSerde(registry, CUSTOMER).serialize("t", CUSTOMER(name="x"))
    with pytest.raises(SerdeError, match=r'"shop\.Customer", not a "shop\.Order"'):
        RegistryProtobufSerde(registry, reader=ORDER).deserialize("t", data)


def test_imports_are_registered_first_and_well_known_ones_are_not() -> None:
    registry = MemoryRegistry()
    serde = RegistryProtobufSerde(registry, BILL_CLASS)
    data = serde.serialize("bills", BILL_CLASS(total={"units": 5}))
    expected = (Reference("common/money.proto", "common/money.proto", 1),)
    assert registry.version("bills-value").schema.references == expected
    assert registry.calls[0] == "register common/money.proto"
    dynamic: Any = RegistryProtobufSerde(registry).deserialize("bills", data)
    assert dynamic.total.units == 5
    RegistryProtobufSerde(MemoryRegistry(), Timestamp).serialize("t", Timestamp(seconds=1))


def test_a_text_may_refer_to_what_is_registered() -> None:
    registry = MemoryRegistry()
    registry.register("money", Schema(MONEY, SchemaKind.PROTOBUF))
    references = (Reference("common/money.proto", "money", 1),)
    serde = RegistryProtobufSerde(registry, Schema(BILL, SchemaKind.PROTOBUF, references))
    data = serde.serialize("bills", {"total": {"units": 5}})
    found: Any = serde.deserialize("bills", data)
    assert found.total.units == 5


def test_without_registering_imports_must_be_there() -> None:
    serde = RegistryProtobufSerde(MemoryRegistry(), BILL_CLASS, auto_register=False)
    with pytest.raises(SerdeError, match=r'subject "common/money\.proto"'):
        serde.serialize("bills", BILL_CLASS())


def test_the_latest_schema_may_be_taken_from_the_registry() -> None:
    registry, clock = MemoryRegistry(), ManualClock()
    registry.register("t-value", Schema(TEXT, SchemaKind.PROTOBUF))
    cached = CachedRegistry(registry, latest_ms=1_000, clock=clock)
    by_class = RegistryProtobufSerde(cached, CUSTOMER, use_latest=True)
    by_name = RegistryProtobufSerde(cached, message="shop.Customer", use_latest=True)
    expected = bytes.fromhex("00 00000001 02 02 0a0178")
    assert by_class.serialize("t", CUSTOMER(name="x")) == expected
    assert by_name.serialize("t", {"name": "x"}) == expected
    registry.register("t-value", Schema(OTHER_TEXT, SchemaKind.PROTOBUF))
    clock.advance(1_000)
    with pytest.raises(SerdeError, match=r'no message "shop\.Customer"'):
        by_class.serialize("t", CUSTOMER(name="x"))


def test_the_registry_is_asked_once_per_topic_and_id() -> None:
    registry = MemoryRegistry()
    serde = RegistryProtobufSerde(registry, LINE, subject=record_name)
    for _ in range(3):
        serde.deserialize("t", serde.serialize("t", LINE(article="a")))
    assert registry.calls == ["register shop.Order.Line", "schema 1"]


def test_a_place_beyond_64_is_read_like_any_other() -> None:
    registry = MemoryRegistry()
    messages = "".join(f"message M{number} {{ int32 x = 1; }}\n" for number in range(200))
    text = f'syntax = "proto3";\n{messages}'
    serde = RegistryProtobufSerde(registry, text, message="M150")
    data = serde.serialize("t", {"x": 1})
    assert data == bytes.fromhex("00 00000001 02 ac02 0801")
    for _ in range(2):
        found: Any = serde.deserialize("t", data)
        assert (found.DESCRIPTOR.name, found.x) == ("M150", 1)
    assert registry.calls.count("schema 1") == 1


def test_values_may_be_converted_both_ways() -> None:
    serde = RegistryProtobufSerde(
        MemoryRegistry(),
        CUSTOMER,
        to_value=lambda name: CUSTOMER(name=name),
        from_value=lambda message: str(getattr(message, "name", "")),
    )
    assert serde.deserialize("t", serde.serialize("t", "Zoë")) == "Zoë"


@pytest.mark.parametrize("value", [5, "text", {"nothing": 1}, {"id": "x"}, CUSTOMER(), {1: 2}])
def test_other_values_are_refused(value: object) -> None:
    for schema in (TEXT, ORDER):
        with pytest.raises(SerdeError, match="cannot encode as Protobuf"):
            RegistryProtobufSerde(MemoryRegistry(), schema).serialize("t", value)


def test_without_a_schema_only_messages_can_be_written() -> None:
    with pytest.raises(SerdeError, match="not a Protobuf message class"):
        RegistryProtobufSerde(MemoryRegistry()).serialize("t", {"id": 1})


@pytest.mark.parametrize(
    ("schema", "message"),
    [("message {", None), (TEXT, "shop.Nothing"), (int, None), (Schema("{}"), None)],
)
def test_a_wrong_schema_is_refused_at_once(schema: Any, message: str | None) -> None:
    with pytest.raises(SchemaError):
        RegistryProtobufSerde(MemoryRegistry(), schema, message=message)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("00 00000001", "indexes are invalid"),
        ("00 00000001 00 ff", "cannot decode as Protobuf"),
        ("00 00000001 02 0a", r"no message at \[5\]"),
        ("00 00000001 06 00 00 00", "no message at"),
        ("00 00000009 00", "id 9 is not in the registry"),
        ("7b7d", "looks like JSON"),
        ("", "no bytes"),
    ],
)
def test_wrong_bytes_are_told_apart(data: str, expected: str) -> None:
    registry = MemoryRegistry()
    registry.register("t-value", Schema(TEXT, SchemaKind.PROTOBUF))
    with pytest.raises(SerdeError, match=expected):
        RegistryProtobufSerde(registry).deserialize("t", bytes.fromhex(data))


def test_avro_bytes_name_the_right_serde() -> None:
    registry = MemoryRegistry()
    data = RegistryAvroSerde(registry, '"string"').serialize("t", "a")
    with pytest.raises(SerdeError, match="AVRO, not PROTOBUF"):
        RegistryProtobufSerde(registry).deserialize("t", data)
