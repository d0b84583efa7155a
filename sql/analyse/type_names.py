"""Resolves type names in statements to types."""

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
PARTS_MAX = 20_000
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


def data_type(syntax: TypeSyntax, types: Mapping[str, DataType]) -> DataType:
    """The type with a name; `types` are custom types."""
    result = _typed(syntax, types, 0)
    _check_size(result, syntax)
    return result


def _check_size(type_: DataType, syntax: TypeSyntax) -> None:
    """Refuse types that are too large: nested custom types grow faster than their SQL."""
    left = [(type_, 0)]
    for _ in range(PARTS_MAX):
        if not left:
            return
        each, depth = left.pop()
        if depth > DEPTH_MAX:
            raise _failed(f"types can only be nested {DEPTH_MAX} levels deep", syntax)
        left += ((inner, depth + 1) for inner in _inner(each))
    raise _failed(f"a type can only have {PARTS_MAX} fields and elements", syntax)


def _inner(type_: DataType) -> tuple[DataType, ...]:
    match type_:
        case ArrayType(element=element):
            return (element,)
        case MapType(key=key, value=value):
            return (key, value)
        case StructType(fields=fields):
            return tuple(each.type for each in fields)
        case _:
            return ()


def _typed(syntax: TypeSyntax, types: Mapping[str, DataType], depth: int) -> DataType:
    if depth > DEPTH_MAX:
        raise _failed(f"types can only be nested {DEPTH_MAX} levels deep", syntax)
    match syntax:
        case NamedType():
            return _named(syntax, types)
        case ArrayOf(element):
            return ArrayType(_typed(element, types, depth + 1))
        case MapOf(key, value):
            return MapType(_typed(key, types, depth + 1), _typed(value, types, depth + 1))
        case StructOf(fields):
            names = [name for name, _ in fields]
            if len(set(names)) < len(names):
                raise _failed("Duplicate field names found in STRUCT", syntax)
            return StructType(
                tuple(Field(name, _typed(each, types, depth + 1)) for name, each in fields)
            )


def _named(syntax: NamedType, types: Mapping[str, DataType]) -> DataType:
    name = syntax.name.upper()
    if name in ("DECIMAL", "DEC"):
        return _decimal(syntax)
    result = NAMED.get(name)
    if result is None:
        result = types.get(syntax.name) or types.get(name)
    if result is None:
        raise _failed(f"Cannot resolve unknown type: {syntax.name}", syntax)
    # As in ksqlDB, VARCHAR(10) is a STRING of any length.
    if syntax.parameters and result is not STRING:
        raise _failed(f"{name} has no parameters", syntax)
    return result


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
