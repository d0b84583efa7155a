"""Values as strings, as in CAST(... AS STRING): 1.0E10, [1, null], {a=1}, Struct{A=1,B=x}."""

from base64 import b64encode
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from broker.java.number_text import decimal_text, double_text
from broker.java.times import date_text, time_text, timestamp_text
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
    MapType,
    StructType,
)

# Any: a function's argument has the type that it was created for.
Text = Callable[[Any], str]


def cast_text(type_: DataType) -> Text:
    """A function that converts values of a type to strings; it is not called with null."""
    if isinstance(type_, DecimalType):
        return decimal_text
    return _TEXTS[type_] if type_ in _TEXTS else _inner_text(type_)


def _inner_text(type_: DataType) -> Text:
    """The format of a value inside another."""
    match type_:
        case DecimalType():
            return _java_decimal
        case ArrayType(element):
            return _array_text(_nullable(_inner_text(element)))
        case MapType(key, value):
            return _map_text(_nullable(_inner_text(key)), _nullable(_inner_text(value)))
        case StructType():
            return _struct_text(type_)
        case _:
            return _INNER_TEXTS.get(type_) or _TEXTS[type_]


def _nullable(text: Text) -> Text:
    return lambda value: "null" if value is None else text(value)


def _array_text(element: Text) -> Text:
    return lambda array: f"[{', '.join(map(element, array))}]"


def _map_text(key: Text, value: Text) -> Text:
    def text(entries: dict[object, object]) -> str:
        shown = (f"{key(name)}={value(each)}" for name, each in entries.items())
        return f"{{{', '.join(shown)}}}"

    return text


def _struct_text(type_: StructType) -> Text:
    """Null fields are omitted."""
    texts = [(each.name, _inner_text(each.type)) for each in type_.fields]

    def text(struct: dict[str, object]) -> str:
        shown = (
            f"{name}={each(value)}"
            for name, each in texts
            if (value := struct.get(name)) is not None
        )
        return f"Struct{{{','.join(shown)}}}"

    return text


def _java_decimal(number: Decimal) -> str:
    """The format of BigDecimal.toString: with an exponent if the number is very small."""
    return str(number if number else number.copy_abs())


def _boolean_text(value: bool) -> str:
    return "true" if value else "false"


def _sql_time(milliseconds: int) -> str:
    """The format of java.sql.Time: always with seconds."""
    shown = time_text(milliseconds)
    return shown if len(shown) > 5 else f"{shown}:00"


def _sql_timestamp(milliseconds: int) -> str:
    """The format of java.sql.Timestamp, in UTC: at least one digit after the point."""
    whole, _, fraction = timestamp_text(milliseconds).replace("T", " ").partition(".")
    return f"{whole}.{fraction.rstrip('0') or '0'}"


_TEXTS: dict[DataType, Text] = {
    BOOLEAN: _boolean_text,
    INT: str,
    BIGINT: str,
    DOUBLE: double_text,
    STRING: str,
    DATE: date_text,
    TIME: time_text,
    TIMESTAMP: timestamp_text,
}
_INNER_TEXTS: dict[DataType, Text] = {
    TIME: _sql_time,
    TIMESTAMP: _sql_timestamp,
    BYTES: lambda value: b64encode(value).decode(),
}
