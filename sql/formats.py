"""Formats as statements see them: their features, and the columns that they support.

The serdes are in sql/rows; this module only contains the checks of statements.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sql.catalog import FormatInfo
from sql.datatypes import (
    BIGINT,
    BYTES,
    DOUBLE,
    INT,
    STRING,
    ArrayType,
    Column,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from sql.errors import StatementFailed

AVRO_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class FormatFeatures:
    """The features of a format."""

    inferred: bool = False  # whether a registry contains its schemas
    wraps: bool = False  # a single column may be a record of one field
    unwraps: bool = False  # a single column may be unwrapped
    # The supported properties, by their names in errors, and those that a sink inherits.
    properties: frozenset[str] = frozenset()
    inherited: frozenset[str] = frozenset()


REGISTERED = frozenset({"fullSchemaName", "schemaId"})
FORMATS = {
    "NONE": FormatFeatures(),
    "DELIMITED": FormatFeatures(
        unwraps=True, properties=frozenset({"delimiter"}), inherited=frozenset({"delimiter"})
    ),
    "JSON": FormatFeatures(wraps=True, unwraps=True),
    "JSON_SR": FormatFeatures(inferred=True, wraps=True, unwraps=True, properties=REGISTERED),
    "AVRO": FormatFeatures(inferred=True, wraps=True, unwraps=True, properties=REGISTERED),
    "PROTOBUF": FormatFeatures(
        inferred=True,
        wraps=True,
        properties=REGISTERED | {"nullableRepresentation"},
        inherited=frozenset({"fullSchemaName"}),
    ),
    "PROTOBUF_NOSR": FormatFeatures(
        wraps=True,
        properties=frozenset({"nullableRepresentation"}),
        inherited=frozenset({"nullableRepresentation"}),
    ),
    "KAFKA": FormatFeatures(unwraps=True),
}


def abilities(name: str) -> FormatFeatures:
    """The features of a format; StatementFailed if it is unknown."""
    result = FORMATS.get(name)
    if result is None:
        raise StatementFailed(f"Unknown format: {name}")
    return result


def key_wrapping(name: str, keys: int) -> bool | None:
    """Whether a key is a record: a single column is unwrapped if the format allows both."""
    found = abilities(name)
    return False if keys == 1 and found.unwraps and found.wraps else None


def value_wrapping(
    name: str, values: int, explicit: bool | None, default: bool | None
) -> bool | None:
    """Whether a single value column is wrapped, by its statement or the settings."""
    found = abilities(name)
    if explicit is not None:
        if values != 1:
            raise StatementFailed(
                "'WRAP_SINGLE_VALUE' is only valid for single-field value schemas"
            )
        if not (found.wraps if explicit else found.unwraps):
            raise StatementFailed(
                f"Format '{name}' does not support 'WRAP_SINGLE_VALUE' set to "
                f"'{str(explicit).lower()}'."
            )
        return explicit
    if values != 1 or default is None or not (found.wraps and found.unwraps):
        return None
    return default


def check_format(info: FormatInfo, columns: Sequence[Column], *, is_key: bool) -> None:
    """Refuse columns that a format does not support."""
    if is_key:
        for column in columns:
            if _contains_map(column.type):
                raise StatementFailed(
                    "Map keys, including types that contain maps, are not supported as they may "
                    "lead to unexpected behavior due to inconsistent serialization. Key column "
                    f"name: `{column.name}`. Column type: {column.type}. See "
                    "https://github.com/confluentinc/ksql/issues/6621 for more."
                )
    reason = _refusal(info.name, columns, " KEY" if is_key else "")
    if reason is None:
        return
    features = "UNWRAP_SINGLES" if info.wrapped is False else "WRAP_SINGLES"
    raise StatementFailed(
        f"{'Key' if is_key else 'Value'} format does not support schema.\n"
        f"format: {info.name}\n"
        f"schema: Persistence{{columns={_shown(columns, ' KEY' if is_key else '')}, "
        f"features=[{'' if info.wrapped is None else features}]}}\n"
        f"reason: {reason}"
    )


def _refusal(name: str, columns: Sequence[Column], suffix: str) -> str | None:
    match name:
        case "NONE":
            if columns:
                return (
                    "The 'NONE' format can only be used when no columns are defined. "
                    f"Got: {_shown(columns, suffix)}"
                )
        case "KAFKA":
            if len(columns) > 1:
                return (
                    "The 'KAFKA' format only supports a single field. "
                    f"Got: {_shown(columns, suffix)}"
                )
            for column in columns:
                if column.type not in (INT, BIGINT, DOUBLE, STRING, BYTES):
                    return f"The 'KAFKA' format does not support type '{base_name(column.type)}'"
        case "DELIMITED":
            for column in columns:
                if isinstance(column.type, ArrayType | MapType | StructType):
                    return (
                        "The 'DELIMITED' format does not support type "
                        f"'{base_name(column.type)}', column: `{column.name}`"
                    )
        case _:
            return _map_refusal(name, columns)
    return None


def _map_refusal(name: str, columns: Sequence[Column]) -> str | None:
    maps = {
        "AVRO": "Avro only supports MAPs with STRING keys",
        "PROTOBUF": "PROTOBUF format only supports MAP types with STRING keys",
        "PROTOBUF_NOSR": "PROTOBUF format only supports MAP types with STRING keys",
    }
    for column in columns:
        for part in _parts(column.type):
            if isinstance(part, MapType) and part.key is not STRING:
                return maps.get(name, "JSON only supports MAP types with STRING keys")
    if name == "AVRO":
        for each in _names(columns):
            if not AVRO_NAME.fullmatch(each):
                starts = not AVRO_NAME.match(each)
                return (
                    "Schema is not compatible with Avro: Illegal "
                    f"{'initial character' if starts else 'character in'}: {each}"
                )
    return None


def base_name(type_: DataType) -> str:
    """A type's name without its parameters."""
    match type_:
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


def _names(columns: Sequence[Column]) -> Iterable[str]:
    for column in columns:
        yield column.name
        for part in _parts(column.type):
            if isinstance(part, StructType):
                yield from (each.name for each in part.fields)


def _parts(type_: DataType) -> Iterable[DataType]:
    yield type_
    match type_:
        case ArrayType(element=element):
            yield from _parts(element)
        case MapType(key=key, value=value):
            yield from _parts(key)
            yield from _parts(value)
        case StructType(fields=fields):
            for each in fields:
                yield from _parts(each.type)


def _contains_map(type_: DataType) -> bool:
    return any(isinstance(part, MapType) for part in _parts(type_))


def _shown(columns: Sequence[Column], suffix: str) -> str:
    return "[" + ", ".join(f"`{each.name}` {each.type}{suffix}" for each in columns) + "]"
