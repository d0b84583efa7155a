"""Converters with a registry over HTTP, and Confluent's serializers for Python beside them."""

import datetime
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from broker import Broker
from broker.registry.registry import Registry
from broker.registry.server import RegistryServer
from connect.converters.avro_converter import AvroConverter
from connect.converters.json_schema_converter import JsonSchemaConverter
from connect.converters.protobuf_converter import ProtobufConverter
from connect.converters.registry_converter import RegistryConverter
from connect.data import INT32, INT64, OPTIONAL_STRING, STRING, ConnectSchema, Struct, struct
from connect.errors import DataError, RetriableError
from tests.connect.converters.values import ANNA, CUSTOMER

pytestmark = pytest.mark.slow

VALUE = SerializationContext("t", MessageField.VALUE)
PLAIN = {
    "id": 7,
    "name": "Änna",
    "limit": Decimal("12.50"),
    "since": datetime.date(2020, 2, 29),
    "address": {"street": "Hill", "number": None},
    "tags": ["a", ""],
    "scores": {"x": 1.5},
}


@pytest.fixture
def url(broker: Broker) -> Iterator[str]:
    """The address of an empty registry."""
    with Registry(broker) as registry, RegistryServer(registry, listen="127.0.0.1:0") as server:
        yield server.url


@pytest.fixture
def client(url: str) -> Iterator[SchemaRegistryClient]:
    """Confluent's client of the same registry."""
    with SchemaRegistryClient({"url": url}) as confluent:
        yield confluent


def configured(converter: RegistryConverter, url: str, **settings: str) -> RegistryConverter:
    """A converter with this registry."""
    config = {name.replace("_", "."): value for name, value in settings.items()}
    converter.configure({"schema.registry.url": url, **config}, False)
    return converter


@pytest.mark.parametrize("make", [AvroConverter, JsonSchemaConverter, ProtobufConverter])
def test_values_go_through_a_registry_over_http(make: type[RegistryConverter], url: str) -> None:
    writer, reader = configured(make(), url), configured(make(), url)
    data = writer.from_connect_data("t", (), CUSTOMER, ANNA)
    schema, value = reader.to_connect_data("t", (), data)
    assert schema is not None
    assert schema.version == 1
    assert isinstance(value, Struct)
    found = value.to_dict()
    if make is ProtobufConverter:  # it has no null unless that is set
        found["address"] = {"street": "Hill", "number": None}
    assert found == PLAIN


def test_confluents_deserializers_read_what_is_written(
    url: str, client: SchemaRegistryClient
) -> None:
    # Any: Confluent's classes have no types.
    avro: Any = AvroDeserializer(client)
    data = configured(AvroConverter(), url).from_connect_data("t", (), CUSTOMER, ANNA)
    assert avro(data, VALUE) == PLAIN
    json: Any = JSONDeserializer(None, schema_registry_client=client)
    schema = CUSTOMER.with_(fields=CUSTOMER.fields[:2])
    row = Struct(schema, [7, "Änna"])
    data = configured(JsonSchemaConverter(), url).from_connect_data("u", (), schema, row)
    context = SerializationContext("u", MessageField.VALUE)
    assert json(data, context) == {"id": 7, "name": "Änna"}


def test_what_confluents_serializer_wrote_is_read(url: str, client: SchemaRegistryClient) -> None:
    text = (
        '{"type":"record","name":"shop.Order","fields":[{"name":"id","type":"long"},'
        '{"name":"note","type":["null","string"],"default":null},'
        '{"name":"count","type":"int","default":1}]}'
    )
    serializer: Any = AvroSerializer(client, text)
    data = serializer({"id": 3, "note": "x", "count": 2}, VALUE)
    schema, value = configured(AvroConverter(), url).to_connect_data("t", (), data)
    parameters = {"io.confluent.connect.avro.field.default": "true"}
    assert schema == struct(
        "shop.Order",
        {
            "id": INT64,
            "note": OPTIONAL_STRING,
            "count": INT32.with_(default=1, parameters=parameters),
        },
    ).with_(version=1)
    assert isinstance(value, Struct)
    assert value.values == [3, "x", 2]


def test_a_schema_that_is_not_compatible_says_so(url: str) -> None:
    converter = configured(AvroConverter(), url)

    def order(**fields: ConnectSchema) -> Struct:
        schema = struct("Order", fields)
        return Struct(schema, ["x"] * len(fields))

    first, second = order(a=STRING), order(a=STRING, b=STRING)
    converter.from_connect_data("t", (), first.schema, first)
    with pytest.raises(DataError, match="READER_FIELD_MISSING_DEFAULT_VALUE") as failed:
        converter.from_connect_data("t", (), second.schema, second)
    assert "compatible" in failed.value.hint


def test_a_registry_that_is_away_is_for_a_retry() -> None:
    converter = configured(AvroConverter(), "http://127.0.0.1:1")
    with pytest.raises(RetriableError, match="Failed to serialize Avro data from topic t"):
        converter.from_connect_data("t", (), STRING, "x")
