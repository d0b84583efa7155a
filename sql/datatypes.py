"""Types of SQL: those of columns, and what the language knows about them."""

from broker.schema.datatypes import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    Field,
    MapType,
    Primitive,
    StructType,
)

__all__ = [
    "BIGINT",
    "BOOLEAN",
    "BYTES",
    "DATE",
    "DOUBLE",
    "INT",
    "STRING",
    "TIME",
    "TIMESTAMP",
    "ArrayType",
    "Column",
    "DataType",
    "DecimalType",
    "Field",
    "MapType",
    "Primitive",
    "StructType",
    "decimal_of",
    "is_numeric",
]


def is_numeric(type_: DataType) -> bool:
    """Whether one can calculate with it."""
    return type_ in (INT, BIGINT, DOUBLE) or isinstance(type_, DecimalType)


def decimal_of(type_: DataType) -> DecimalType:
    """The decimal that holds every value of a whole number's type."""
    if isinstance(type_, DecimalType):
        return type_
    assert type_ in (INT, BIGINT), f"{type_} is not an exact number"
    return DecimalType(10, 0) if type_ is INT else DecimalType(19, 0)
