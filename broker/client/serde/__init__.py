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
from broker.client.serde.serde import Serde

__all__ = [
    "AvroSerde",
    "BooleanSerde",
    "BytesSerde",
    "DoubleSerde",
    "FloatSerde",
    "IntegerSerde",
    "JsonSerde",
    "LongSerde",
    "Serde",
    "ShortSerde",
    "StringSerde",
    "UuidSerde",
]
