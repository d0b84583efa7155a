"""Encoding and decoding compared with confluent-kafka, with one registry over HTTP."""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import (
    DoubleDeserializer,
    DoubleSerializer,
    IntegerDeserializer,
    IntegerSerializer,
    MessageField,
    SerializationContext,
    StringDeserializer,
    StringSerializer,
)

from benchmarks.formats.orders import (
    AVRO,
    JSON_SCHEMA,
    ORDER,
    PROTO,
    Order,
    as_object,
    fields_of,
    order_of,
)
from benchmarks.report import Report
from broker import Broker
from broker.registry.registry import Registry
from broker.registry.server import RegistryServer
from broker.serde import (
    DoubleSerde,
    IntegerSerde,
    RegistryAvroSerde,
    RegistryJsonSerde,
    RegistryProtobufSerde,
    Serde,
    StringSerde,
    avro,
)
from broker.serde.registry import HttpSchemaRegistry
from broker.serde.schema.protobuf_schema import parse_protobuf

CALLS = 4_000
WARM_UP = 200
PEER = "confluent-kafka"

# Any: one table holds serializers of all types.
Call = Callable[[Any], Any]


@contextmanager
def registry_url() -> Iterator[str]:
    """A registry served over HTTP, on a broker in this process."""
    with (
        TemporaryDirectory() as folder,
        Broker(data_directory=folder) as broker,
        Registry(broker) as registry,
        RegistryServer(registry, listen="127.0.0.1:0") as server,
    ):
        yield server.url


def microseconds(call: Call, value: object) -> float:
    """The mean time of one call."""
    begin = time.perf_counter()
    for _ in range(CALLS):
        call(value)
    return (time.perf_counter() - begin) / CALLS * 1e6


def compare(report: Report, rounds: int, name: str, value: object, ours: Call, theirs: Call) -> Any:
    """Measure both sides alternately; return the result of our call."""
    sides = (ours, theirs)
    for call in sides:
        for _ in range(WARM_UP):
            call(value)
    times = [[microseconds(call, value) for call in sides] for _ in range(rounds)]
    mine, other = (median(each) for each in zip(*times, strict=True))
    report.add(name, "µs", mine, other, peer=PEER, higher_is_better=False)
    return ours(value)


def measure(report: Report, options: argparse.Namespace) -> None:
    """Measure all formats that both sides support."""
    with registry_url() as url:
        client = SchemaRegistryClient({"url": url})
        registry = HttpSchemaRegistry(url)
        rounds: int = options.rounds

        def both(
            name: str,
            topic: str,
            value: object,
            serde: Serde[Any],
            serializer: Any,
            deserializer: Any,
        ) -> None:
            context = SerializationContext(topic, MessageField.VALUE)
            data = compare(
                report,
                rounds,
                f"{name}: encode",
                value,
                lambda each: serde.serialize(topic, each),
                lambda each: serializer(each, context),
            )
            compare(
                report,
                rounds,
                f"{name}: decode",
                data,
                lambda each: serde.deserialize(topic, each),
                lambda each: deserializer(each, context),
            )

        measure_registry_formats(both, client, registry)
        both(
            "string", "string", "some text", StringSerde(), StringSerializer(), StringDeserializer()
        )
        both("int", "int", 12345, IntegerSerde(), IntegerSerializer(), IntegerDeserializer())
        both("double", "double", 1.5, DoubleSerde(), DoubleSerializer(), DoubleDeserializer())


def measure_registry_formats(
    both: Callable[..., None], client: SchemaRegistryClient, registry: HttpSchemaRegistry
) -> None:
    """Measure Avro, JSON Schema and Protobuf."""
    both(
        "Avro, dict",
        "avro",
        ORDER,
        RegistryAvroSerde(registry, AVRO),
        AvroSerializer(client, AVRO),
        AvroDeserializer(client),
    )
    both(
        "Avro, dataclass",
        "avro-model",
        as_object(),
        avro(Order, registry=registry),
        AvroSerializer(client, AVRO, to_dict=fields_of),
        AvroDeserializer(client, from_dict=order_of),
    )
    both(
        "JSON Schema, validated",
        "json",
        ORDER,
        RegistryJsonSerde(registry, JSON_SCHEMA),
        JSONSerializer(JSON_SCHEMA, client),
        JSONDeserializer(JSON_SCHEMA, schema_registry_client=client),
    )
    message = parse_protobuf(PROTO, {}).message_class("Order")
    both(
        "Protobuf",
        "protobuf",
        message(**ORDER),
        RegistryProtobufSerde(registry, message),
        ProtobufSerializer(message, client, {"use.deprecated.format": False}),
        ProtobufDeserializer(message, {"use.deprecated.format": False}, client),
    )
