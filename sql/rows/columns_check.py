"""Checks of columns that several formats share."""

from collections.abc import Iterator, Sequence

from broker.errors import SchemaError
from sql.datatypes import STRING, ArrayType, Column, DataType, MapType, Primitive, StructType
from sql.rows.row_format import RowOptions


def is_alone(columns: Sequence[Column], options: RowOptions) -> bool:
    """Whether a single column is written unwrapped; keys always are."""
    return len(columns) == 1 and (options.is_key or not options.wrapped)


def unsupported_type(name: str, column: Column) -> SchemaError:
    """The error for a column type that a format does not support."""
    return SchemaError(
        f'format "{name}" does not support type {type_name(column.type)}',
        at=f'column "{column.name}"',
        hint="use another format, such as JSON or AVRO",
    )


def check_map_keys(name: str, columns: Sequence[Column]) -> None:
    """Refuse maps whose keys are not strings."""
    for column in columns:
        for each in parts_of(column.type):
            if isinstance(each, MapType) and each.key is not STRING:
                raise SchemaError(
                    f'format "{name}" supports only maps with keys of type STRING',
                    at=f'column "{column.name}"',
                    hint=f"declare it as MAP<STRING, {each.value}>",
                )


def parts_of(data_type: DataType) -> Iterator[DataType]:
    """A type and all types that it contains."""
    yield data_type
    match data_type:
        case ArrayType(element):
            yield from parts_of(element)
        case MapType(key, value):
            yield from parts_of(key)
            yield from parts_of(value)
        case StructType(fields):
            for each in fields:
                yield from parts_of(each.type)
        case _:
            pass


def type_name(data_type: DataType) -> str:
    """The name of a type without its parameters."""
    if isinstance(data_type, Primitive):
        return data_type.value
    return type(data_type).__name__.removesuffix("Type").upper()
