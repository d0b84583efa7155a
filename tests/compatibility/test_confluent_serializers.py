"""Confluent's serializers for Python, unchanged: with our registry, and beside our serdes.

Each value goes through a real topic, written by one side and read by the other.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.schema_registry import Schema as ConfluentSchema
from confluent_kafka.schema_registry import (
    SchemaReference,
    SchemaRegistryClient,
    record_subject_name_strategy,
)
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from broker.errors import RegistryError, SerdeError
from broker.registry.registry import Registry
from broker.registry.server import RegistryServer
from broker.serde import (
    RegistryAvroSerde,
    RegistryJsonSerde,
    RegistryProtobufSerde,
    Serde,
    record_name,
)
from broker.serde.registry import HttpSchemaRegistry
from broker.serde.schema.protobuf_schema import parse_protobuf
from broker.serde.schema.schema import Reference, Schema, SchemaKind

pytestmark = pytest.mark.slow

Unique = Callable[[str], str]

AVRO = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "prices", "type": {"type": "map", "values": "double"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "DONE"]}},
    ],
}
AVRO_LATER = {
    **AVRO,
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string", "default": "nobody"},
    ],
}
JSON = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "note": {"type": ["string", "null"]},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["id"],
}
VALUE = {"id": 3, "note": "Zoë", "tags": ["a", "b"], "prices": {"x": 1.5}, "state": "DONE"}
PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "common/money.proto";
message Header { string name = 1; }
message Order {
  message Line { string article = 1; common.Money price = 2; }
  int64 id = 1;
  repeated Line lines = 2;
  map<string, int32> counts = 3;
  google.protobuf.Timestamp at = 4;
  optional string note = 5;
  oneof payment { string card = 6; bool cash = 7; }
}
"""
MONEY = 'syntax = "proto3";\npackage common;\nmessage Money {\n  int64 units = 1;\n}\n'

# Any: classes made at run time have no types.
SHOP: Any = parse_protobuf(PROTO, {"common/money.proto": MONEY})
ORDER: Any = SHOP.message_class("shop.Order")
LINE: Any = SHOP.message_class("shop.Order.Line")
HEADER: Any = SHOP.message_class("shop.Header")
ORDER_VALUE: Any = ORDER(
    id=3,
    lines=[{"article": "a", "price": {"units": 5}}],
    counts={"x": 1},
    at={"seconds": 1_700_000_000},
    note="hi",
    cash=True,
)


@dataclass(frozen=True, slots=True)
class Setting:
    """A registry over HTTP, both sides' clients of it, and a broker for the records."""

    bootstrap: str
    ours: HttpSchemaRegistry
    theirs: SchemaRegistryClient

    def carry(self, topic: str, data: bytes | None) -> bytes | None:
        """Write bytes to the topic and read them again."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        producer.produce(topic, value=data)
        assert producer.flush(30) == 0
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": topic,
                "auto.offset.reset": "earliest",
            }
        )
        try:
            consumer.subscribe([topic])
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None
            consumer.commit(message, asynchronous=False)
            value: bytes | None = message.value()
            return value
        finally:
            consumer.close()


@pytest.fixture(scope="module")
def url(bootstrap: str) -> Iterator[str]:
    with (
        Registry(bootstrap) as registry,
        RegistryServer(registry, listen="127.0.0.1:0") as server,
    ):
        yield server.url


@pytest.fixture
def setting(bootstrap: str, url: str) -> Iterator[Setting]:
    with HttpSchemaRegistry(url) as ours, SchemaRegistryClient({"url": url}) as theirs:
        yield Setting(bootstrap, ours, theirs)


def context(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


# Serializers and deserializers of both sides for one format, and a value of it.
Both = tuple[Serde[Any], Callable[..., Any], Callable[..., Any], Any]


def avro(setting: Setting) -> Both:
    theirs = setting.theirs
    writer = AvroSerializer(theirs, json.dumps(AVRO))
    return RegistryAvroSerde(setting.ours, AVRO), writer, AvroDeserializer(theirs), VALUE


def json_schema(setting: Setting) -> Both:
    theirs, text = setting.theirs, json.dumps(JSON)
    writer = JSONSerializer(text, theirs)
    reader = JSONDeserializer(text, schema_registry_client=theirs)
    return RegistryJsonSerde(setting.ours, JSON), writer, reader, VALUE


def protobuf(setting: Setting) -> Both:
    return protobuf_of(setting, ORDER_VALUE)


def nested_protobuf(setting: Setting) -> Both:
    return protobuf_of(setting, LINE(article="a", price={"units": -1}))


def first_protobuf(setting: Setting) -> Both:
    return protobuf_of(setting, HEADER(name="x"))


def protobuf_of(setting: Setting, message: Any) -> Both:
    theirs, kind = setting.theirs, type(message)
    writer = ProtobufSerializer(kind, theirs, {})
    reader = ProtobufDeserializer(kind, {}, theirs)
    return RegistryProtobufSerde(setting.ours, kind), writer, reader, message


FORMATS = [avro, json_schema, protobuf, nested_protobuf, first_protobuf]


@pytest.mark.parametrize("make", FORMATS)
def test_they_read_what_we_write(
    setting: Setting, unique: Unique, make: Callable[[Setting], Both]
) -> None:
    topic = unique("ours")
    serde, _, read, value = make(setting)
    data = setting.carry(topic, serde.serialize(topic, value))
    assert read(data, context(topic)) == value


@pytest.mark.parametrize("make", FORMATS)
def test_we_read_what_they_write(
    setting: Setting, unique: Unique, make: Callable[[Setting], Both]
) -> None:
    topic = unique("theirs")
    serde, write, _, value = make(setting)
    data = setting.carry(topic, write(value, context(topic)))
    assert serde.deserialize(topic, data) == value


@pytest.mark.parametrize("make", FORMATS)
def test_both_write_the_same_bytes_with_the_same_schema(
    setting: Setting, unique: Unique, make: Callable[[Setting], Both]
) -> None:
    topic = unique("same")
    serde, write, _, value = make(setting)
    ours, theirs = serde.serialize(topic, value), write(value, context(topic))
    assert ours is not None
    if make is json_schema:  # spaces are a matter of taste
        assert (ours[:5], json.loads(ours[5:])) == (theirs[:5], json.loads(theirs[5:]))
    else:
        assert ours == theirs
    assert setting.ours.versions(f"{topic}-value") == [1]


@pytest.mark.parametrize("make", FORMATS)
def test_nulls_are_nulls_on_both_sides(
    setting: Setting, unique: Unique, make: Callable[[Setting], Both]
) -> None:
    topic = unique("nulls")
    serde, write, read, _ = make(setting)
    assert serde.serialize(topic, None) is None
    assert write(None, context(topic)) is None
    data = setting.carry(topic, None)
    assert serde.deserialize(topic, data) is None
    assert read(data, context(topic)) is None


def test_messages_without_a_class_are_made_from_their_registered_schema(
    setting: Setting, unique: Unique
) -> None:
    topic = unique("dynamic")
    data = ProtobufSerializer(ORDER, setting.theirs, {})(ORDER_VALUE, context(topic))
    found: Any = RegistryProtobufSerde(setting.ours).deserialize(topic, data)
    assert found.DESCRIPTOR.full_name == "shop.Order"
    assert found.lines[0].price.units == 5
    assert ORDER.FromString(found.SerializeToString()) == ORDER_VALUE


def test_each_side_finds_the_imports_that_the_other_registered(
    setting: Setting, unique: Unique
) -> None:
    ours, theirs = unique("ours"), unique("theirs")
    RegistryProtobufSerde(setting.ours, ORDER).serialize(ours, ORDER_VALUE)
    ProtobufSerializer(ORDER, setting.theirs, {})(ORDER_VALUE, context(theirs))
    first, second = (setting.ours.version(f"{topic}-value") for topic in (ours, theirs))
    assert first.schema_id == second.schema_id
    (reference,) = first.schema.references
    assert (reference.name, reference.subject) == ("common/money.proto", "common/money.proto")
    assert "message Money" in setting.ours.version("common/money.proto").schema.text


def test_avro_references_are_resolved_by_both(setting: Setting, unique: Unique) -> None:
    topic, subject = unique("baskets"), unique("order")
    setting.ours.register(subject, Schema(json.dumps(AVRO)))
    text = json.dumps(
        {"type": "record", "name": "Basket", "fields": [{"name": "order", "type": "shop.Order"}]}
    )
    basket = {"order": VALUE}
    ours = RegistryAvroSerde(
        setting.ours, Schema(text, references=(Reference("shop.Order", subject, 1),))
    )
    references = [SchemaReference("shop.Order", subject, 1)]
    theirs = AvroSerializer(setting.theirs, ConfluentSchema(text, "AVRO", references))
    data = ours.serialize(topic, basket)
    assert data == theirs(basket, context(topic))
    assert ours.deserialize(topic, data) == basket
    assert AvroDeserializer(setting.theirs)(data, context(topic)) == basket


def test_json_references_are_resolved_by_both(setting: Setting, unique: Unique) -> None:
    topic, subject = unique("baskets"), unique("order")
    setting.ours.register(subject, Schema(json.dumps(JSON), SchemaKind.JSON))
    text = json.dumps(
        {
            "title": "Basket",
            "type": "object",
            "properties": {"order": {"$ref": "order.json"}},
        }
    )
    references = (Reference("order.json", subject, 1),)
    ours = RegistryJsonSerde(setting.ours, Schema(text, SchemaKind.JSON, references))
    their_schema = ConfluentSchema(text, "JSON", [SchemaReference("order.json", subject, 1)])
    theirs = JSONSerializer(their_schema, setting.theirs)
    basket = {"order": VALUE}
    assert ours.deserialize(topic, theirs(basket, context(topic))) == basket
    reader = JSONDeserializer(their_schema, schema_registry_client=setting.theirs)
    assert reader(ours.serialize(topic, basket), context(topic)) == basket
    with pytest.raises(SerdeError, match="#/order/id"):
        ours.serialize(topic, {"order": {"id": "x"}})


def test_readers_of_both_sides_see_old_records_as_their_own(
    setting: Setting, unique: Unique
) -> None:
    topic = unique("evolution")
    old = RegistryAvroSerde(setting.ours, AVRO).serialize(topic, VALUE)
    new = AvroSerializer(setting.theirs, json.dumps(AVRO_LATER))(
        {"id": 4, "customer": "z"}, context(topic)
    )
    ours = RegistryAvroSerde(setting.ours, reader=AVRO_LATER)
    theirs = AvroDeserializer(setting.theirs, json.dumps(AVRO_LATER))
    for data, expected in (
        (old, {"id": 3, "customer": "nobody"}),
        (new, {"id": 4, "customer": "z"}),
    ):
        assert ours.deserialize(topic, data) == expected
        assert theirs(data, context(topic)) == expected
    assert setting.ours.versions(f"{topic}-value") == [1, 2]


def test_both_are_refused_a_schema_that_cannot_read_what_is_there(
    setting: Setting, unique: Unique
) -> None:
    topic = unique("incompatible")
    RegistryAvroSerde(setting.ours, AVRO).serialize(topic, VALUE)
    text = json.dumps({**AVRO, "fields": [{"name": "added", "type": "string"}]})
    with pytest.raises(SchemaRegistryError) as theirs:
        AvroSerializer(setting.theirs, text)({"added": "x"}, context(topic))
    with pytest.raises(SerdeError, match="incompatible") as ours:
        RegistryAvroSerde(setting.ours, text).serialize(topic, {"added": "x"})
    cause = ours.value.__cause__
    assert isinstance(cause, RegistryError)
    assert theirs.value.http_status_code == cause.status == 409
    assert "compatibility level" in ours.value.hint
    assert not setting.ours.compatible(f"{topic}-value", Schema(text))


def test_subjects_by_the_records_name_are_the_same(setting: Setting, unique: Unique) -> None:
    topic, name = unique("records"), unique("Order").replace("-", "_")
    schema = {**AVRO_LATER, "name": name}
    value = {"id": 1, "customer": "z"}
    theirs = AvroSerializer(
        setting.theirs,
        json.dumps(schema),
        conf={"subject.name.strategy": record_subject_name_strategy},
    )
    data = theirs(value, context(topic))
    ours = RegistryAvroSerde(setting.ours, schema, subject=record_name, auto_register=False)
    assert ours.serialize(topic, value) == data
    assert setting.ours.versions(f"shop.{name}") == [1]


def test_both_write_with_the_latest_schema(setting: Setting, unique: Unique) -> None:
    topic = unique("latest")
    setting.ours.register(f"{topic}-value", Schema(json.dumps(AVRO)))
    setting.ours.register(f"{topic}-value", Schema(json.dumps(AVRO_LATER)))
    latest = {"auto.register.schemas": False, "use.latest.version": True}
    theirs = AvroSerializer(setting.theirs, None, conf=latest)
    ours = RegistryAvroSerde(setting.ours, use_latest=True)
    value = {"id": 1, "customer": "z"}
    data = theirs(value, context(topic))
    assert ours.serialize(topic, value) == data
    assert ours.deserialize(topic, data) == value
