"""Serdes: values to bytes and back."""

from importlib import import_module
from typing import TYPE_CHECKING

from broker.client.serde.json_serde import JsonSerde
from broker.client.serde.models.annotations import (
    DecimalDigits,
    FieldNumber,
    Float32,
    Int32,
    LocalTime,
)
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
from broker.client.serde.serde import BindableSerde, ChunkSerde, Serde
from broker.client.serde.subjects import record_name, topic_name, topic_record_name

if TYPE_CHECKING:
    from broker.client.serde.avro_serde import AvroSerde
    from broker.client.serde.models.model_serde import ModelSerde, avro, json_schema, protobuf
    from broker.client.serde.registry_avro import RegistryAvroSerde
    from broker.client.serde.registry_json import RegistryJsonSerde
    from broker.client.serde.registry_protobuf import RegistryProtobufSerde
else:
    # The libraries of formats are imported when they are used: the imports are slow.
    _MODULES = {
        "AvroSerde": "avro_serde",
        "ModelSerde": "models.model_serde",
        "RegistryAvroSerde": "registry_avro",
        "RegistryJsonSerde": "registry_json",
        "RegistryProtobufSerde": "registry_protobuf",
        "avro": "models.model_serde",
        "json_schema": "models.model_serde",
        "protobuf": "models.model_serde",
    }

    def __getattr__(name: str) -> object:
        """Import a serde when it is asked for."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"broker.client.serde.{_MODULES[name]}"), name)


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
