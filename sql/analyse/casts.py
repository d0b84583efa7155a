"""The casts that CAST supports, and implicit conversions."""

from sql.datatypes import (
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
    DataType,
    DecimalType,
    Field,
    MapType,
    StructType,
    decimal_of,
    is_numeric,
)
from sql.functions.matching import wider_decimal

FROM_STRING = (BOOLEAN, INT, BIGINT, DOUBLE, TIME, DATE, TIMESTAMP, BYTES)
BETWEEN_TIMES = ((TIMESTAMP, TIME), (TIMESTAMP, DATE), (DATE, TIMESTAMP))


def base_name(type_: DataType | None) -> str:
    """The name of a type without its parameters."""
    match type_:
        case None:
            return "NULL"
        case DecimalType():
            return "DECIMAL"
        case ArrayType():
            return "ARRAY"
        case MapType():
            return "MAP"
        case StructType():
            return "STRUCT"
        case _:
            return str(type_)


def castable(given: DataType, wanted: DataType) -> bool:
    """Whether CAST supports these types."""
    if given == wanted:
        return True
    if wanted is STRING:
        return given is not BYTES
    if given is STRING:
        return wanted in FROM_STRING or isinstance(wanted, DecimalType)
    match given, wanted:
        case ArrayType(), ArrayType():
            return castable(given.element, wanted.element)
        case MapType(), MapType():
            return castable(given.key, wanted.key) and castable(given.value, wanted.value)
        case StructType(), StructType():
            fields = {each.name: each.type for each in wanted.fields}
            return all(
                castable(each.type, fields[each.name])
                for each in given.fields
                if each.name in fields
            )
    return (is_numeric(given) and is_numeric(wanted)) or (given, wanted) in BETWEEN_TIMES


def wider(given: DataType, wanted: DataType, *, literal: bool) -> DataType | None:
    """The type that can hold values of both types, or None.

    Literals may become strings, too; the caller handles numbers in strings: it has the strings.
    """
    if given == wanted:
        return wanted
    if is_numeric(given) and is_numeric(wanted):
        return _wider_number(given, wanted)
    if literal and wanted is STRING and given is not BYTES:
        return STRING
    if given is STRING and wanted in (TIME, DATE, TIMESTAMP):
        return wanted
    match given, wanted:
        case ArrayType(), ArrayType():
            element = wider(given.element, wanted.element, literal=literal)
            return None if element is None else ArrayType(element)
        case MapType(), MapType():
            key = wider(given.key, wanted.key, literal=literal)
            value = wider(given.value, wanted.value, literal=literal)
            return None if key is None or value is None else MapType(key, value)
        case StructType(), StructType():
            return _wider_struct(given, wanted, literal=literal)
    return None


def _wider_number(given: DataType, wanted: DataType) -> DataType | None:
    if wanted is DOUBLE:
        return DOUBLE
    if given is DOUBLE:
        return None
    if isinstance(wanted, DecimalType):
        return wider_decimal(decimal_of(given), wanted)
    if isinstance(given, DecimalType):
        return None
    return BIGINT if wanted is BIGINT else None


def _wider_struct(given: StructType, wanted: StructType, *, literal: bool) -> StructType | None:
    types = {each.name: each.type for each in wanted.fields}
    for field in given.fields:
        if field.name not in types:
            return None
        found = wider(field.type, types[field.name], literal=literal)
        if found is None:
            return None
        types[field.name] = found
    return StructType(tuple(Field(name, each) for name, each in types.items()))
