"""Fields: columns and types, in the form of the REST API."""

from collections.abc import Iterable

from sql.datatypes import (
    ArrayType,
    Column,
    DataType,
    DecimalType,
    MapType,
    Primitive,
    StructType,
)
from sql.engine.entities import FieldInfo, FieldSchema
from sql.engine.results import ResultColumn
from sql.schema import Schema


def field_schema(type_: DataType) -> FieldSchema:
    """The parts of a type."""
    match type_:
        case Primitive():
            return FieldSchema(str(type_))
        case DecimalType(precision=precision, scale=scale):
            return FieldSchema("DECIMAL", parameters={"precision": precision, "scale": scale})
        case ArrayType(element=element):
            return FieldSchema("ARRAY", None, field_schema(element))
        case MapType(value=value):
            return FieldSchema("MAP", None, field_schema(value))
        case StructType(fields=fields):
            return FieldSchema(
                "STRUCT", tuple(FieldInfo(each.name, field_schema(each.type)) for each in fields)
            )


def schema_fields(schema: Schema) -> tuple[FieldInfo, ...]:
    """The columns of a stream or table; keys and headers are marked."""
    return (
        *(FieldInfo(each.name, field_schema(each.type), "KEY") for each in schema.key),
        *(FieldInfo(each.name, field_schema(each.type)) for each in schema.value),
        *(
            FieldInfo(each.name, field_schema(each.type), "HEADER", each.key)
            for each in schema.headers
        ),
    )


def column_fields(columns: Iterable[Column | ResultColumn]) -> tuple[FieldInfo, ...]:
    """The columns of a query's result."""
    return tuple(FieldInfo(each.name, field_schema(each.type)) for each in columns)
