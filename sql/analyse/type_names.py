"""Types that texts name, as the types that they stand for."""

from collections.abc import Mapping

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
)
from sql.errors import StatementFailed
from sql.syntax.type_names import ArrayOf, MapOf, NamedType, StructOf, TypeSyntax

DEPTH_MAX = 64
NAMED: dict[str, DataType] = {
    "BOOLEAN": BOOLEAN,
    "INT": INT,
    "INTEGER": INT,
    "BIGINT": BIGINT,
    "DOUBLE": DOUBLE,
    "STRING": STRING,
    "VARCHAR": STRING,
    "BYTES": BYTES,
    "TIME": TIME,
    "DATE": DATE,
    "TIMESTAMP": TIMESTAMP,
}


def data_type(syntax: TypeSyntax, types: Mapping[str, DataType], *, depth: int = 0) -> DataType:
    """The type that a text names; `types` are those of CREATE TYPE."""
    if depth > DEPTH_MAX:
        raise _failed(f"types can only be nested {DEPTH_MAX} levels deep", syntax)
    match syntax:
        case NamedType():
            return _named(syntax, types)
        case ArrayOf(element):
            return ArrayType(data_type(element, types, depth=depth + 1))
        case MapOf(key, value):
            return MapType(
                data_type(key, types, depth=depth + 1), data_type(value, types, depth=depth + 1)
            )
        case StructOf(fields):
            names = [name for name, _ in fields]
            if len(set(names)) < len(names):
                raise _failed("Duplicate field names found in STRUCT", syntax)
            return StructType(
                tuple(Field(name, data_type(each, types, depth=depth + 1)) for name, each in fields)
            )


def _named(syntax: NamedType, types: Mapping[str, DataType]) -> DataType:
    name = syntax.name.upper()
    if name in ("DECIMAL", "DEC"):
        return _decimal(syntax)
    found = NAMED.get(name)
    if found is None:
        found = types.get(syntax.name) or types.get(name)
    if found is None:
        raise _failed(f"Cannot resolve unknown type: {syntax.name}", syntax)
    # VARCHAR(10) is a STRING of any length, as in ksqlDB.
    if syntax.parameters and found is not STRING:
        raise _failed(f"{name} has no parameters", syntax)
    return found


def _decimal(syntax: NamedType) -> DecimalType:
    if len(syntax.parameters) != 2:
        raise _failed("DECIMAL needs a precision and a scale: DECIMAL(10, 2)", syntax)
    precision, scale = syntax.parameters
    if precision < 1:
        raise _failed(f"DECIMAL precision must be >= 1: DECIMAL({precision},{scale})", syntax)
    if scale < 0:
        raise _failed(f"DECIMAL scale must be >= 0: DECIMAL({precision},{scale})", syntax)
    if precision < scale:
        raise _failed(f"DECIMAL precision must be >= scale: DECIMAL({precision},{scale})", syntax)
    try:
        return DecimalType(precision, scale)
    except ValueError as error:
        raise _failed(str(error), syntax) from None


def _failed(message: str, syntax: TypeSyntax) -> StatementFailed:
    return StatementFailed(message, line=syntax.position.line, column=syntax.position.column)
