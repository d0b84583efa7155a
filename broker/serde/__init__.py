"""Serdes: convert values to bytes and back."""

from typing import TYPE_CHECKING

from broker.public_names import public_names
from broker.serde.json_serde import JsonSerde
from broker.serde.models.annotations import DecimalDigits, FieldNumber, Float32, Int32, LocalTime
from broker.serde.primitives import (
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
from broker.serde.serde import BindableSerde, ChunkSerde, Serde
from broker.serde.subjects import record_name, topic_name, topic_record_name

if TYPE_CHECKING:
    from broker.serde.avro_serde import AvroSerde
    from broker.serde.models.model_serde import ModelSerde, avro, json_schema, protobuf
    from broker.serde.registry_avro import RegistryAvroSerde
    from broker.serde.registry_json import RegistryJsonSerde
    from broker.serde.registry_protobuf import RegistryProtobufSerde
else:
    # The libraries of formats are imported on demand: the imports are slow.
    __getattr__, __dir__ = public_names(
        __name__,
        {
            "avro_serde": ["AvroSerde"],
            "models.model_serde": ["ModelSerde", "avro", "json_schema", "protobuf"],
            "registry_avro": ["RegistryAvroSerde"],
            "registry_json": ["RegistryJsonSerde"],
            "registry_protobuf": ["RegistryProtobufSerde"],
        },
    )


__all__ = [
    "AvroSerde",
    "BindableSerde",
    "BooleanSerde",
    "BytesSerde",
    "ChunkSerde",
    "DecimalDigits",
    "DoubleSerde",
    "FieldNumber",
    "Float32",
    "FloatSerde",
    "Int32",
    "IntegerSerde",
    "JsonSerde",
    "LocalTime",
    "LongSerde",
    "ModelSerde",
    "RegistryAvroSerde",
    "RegistryJsonSerde",
    "RegistryProtobufSerde",
    "Serde",
    "ShortSerde",
    "StringSerde",
    "UuidSerde",
    "avro",
    "json_schema",
    "protobuf",
    "record_name",
    "topic_name",
    "topic_record_name",
]
