"""Serdes: values to bytes and back."""

from broker.client.serde.avro_serde import AvroSerde
from broker.client.serde.json_serde import JsonSerde
from broker.client.serde.primitives import (
    BooleanSerde,
    BytesSerde,
    DoubleSerde,
    FloatSerde,
    IntegerSerde,
    LongSerde,
    ShortSerde,
    StringSerde,
    UuidSerde,
)
from broker.client.serde.registry_avro import RegistryAvroSerde
from broker.client.serde.registry_json import RegistryJsonSerde
from broker.client.serde.serde import Serde
from broker.client.serde.subjects import record_name, topic_name, topic_record_name

__all__ = [
    "AvroSerde",
    "BooleanSerde",
    "BytesSerde",
    "DoubleSerde",
    "FloatSerde",
    "IntegerSerde",
    "JsonSerde",
    "LongSerde",
    "RegistryAvroSerde",
    "RegistryJsonSerde",
    "Serde",
    "ShortSerde",
    "StringSerde",
    "UuidSerde",
    "record_name",
    "topic_name",
    "topic_record_name",
]
