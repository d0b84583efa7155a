"""Models as values: dataclasses, msgspec and pydantic classes, with schemas of their hints."""

from broker.client.serde.models.annotations import (
    DecimalDigits,
    FieldNumber,
    Float32,
    Int32,
    LocalTime,
)
from broker.client.serde.models.model_serde import ModelSerde, avro, json_schema, protobuf

__all__ = [
    "DecimalDigits",
    "FieldNumber",
    "Float32",
    "Int32",
    "LocalTime",
    "ModelSerde",
    "avro",
    "json_schema",
    "protobuf",
]
