"""Rows as JSON: values by their columns' types, prepared once for each query."""

import base64
import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import orjson

from broker.schema.java_times import date_text, time_text, timestamp_text
from sql.datatypes import (
    BYTES,
    DATE,
    DOUBLE,
    STRING,
    TIME,
    TIMESTAMP,
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StructType,
)
from sql.engine.results import ResultColumn

# Any: values of all types; which they are is known by the column.
Preparing = Callable[[Any], object]


def row_preparation(columns: Sequence[ResultColumn]) -> Callable[[Sequence[object]], list[object]]:
    """From a row to what orjson writes as ksqlDB would."""
    preparations = [_preparation(each.type) for each in columns]
    places = [(index, each) for index, each in enumerate(preparations) if each is not None]

    def prepare(row: Sequence[object]) -> list[object]:
        values = list(row)
        for index, preparing in places:
            if values[index] is not None:
                values[index] = preparing(values[index])
        return values

    return prepare


def json_line(content: object) -> bytes:
    """A value as JSON, without a line's end."""
    return orjson.dumps(content, default=_number_text)


def _number_text(value: object) -> object:
    """What orjson does not know: whole numbers that are longer than 64 bits."""
    if isinstance(value, int):
        return orjson.Fragment(str(value).encode())
    raise TypeError


def _preparation(type_: DataType) -> Preparing | None:
    """What makes a value that is not null ready to be written; None if it is ready."""
    match type_:
        case DecimalType():
            return _decimal
        case ArrayType(element=element):
            return _array(_preparation(element))
        case MapType(key=key, value=value):
            return _map(key, _preparation(value))
        case StructType():
            return _struct(type_)
        case _:
            return SINGLE.get(type_)


def _decimal(value: Decimal) -> object:
    """All digits of the scale, never with an exponent."""
    return orjson.Fragment(format(value, "f").encode())


def _double(value: float) -> object:
    if math.isfinite(value):
        return value
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _bytes(value: bytes) -> str:
    return base64.b64encode(value).decode()


SINGLE: dict[DataType, Preparing] = {
    DOUBLE: _double,
    BYTES: _bytes,
    TIME: time_text,
    DATE: date_text,
    TIMESTAMP: timestamp_text,
}


def _array(element: Preparing | None) -> Preparing | None:
    if element is None:
        return None
    inner = element
    return lambda array: [None if each is None else inner(each) for each in array]


def _map(key: DataType, value: Preparing | None) -> Preparing | None:
    if value is None and key is STRING:
        return None
    preparing_key = _preparation(key)

    def prepare(entries: dict[object, object]) -> dict[str, object]:
        return {
            _key_text(each, preparing_key): inner
            if inner is None or value is None
            else value(inner)
            for each, inner in entries.items()
        }

    return prepare


def _key_text(key: object, preparing: Preparing | None) -> str:
    match key:
        case None:
            return "null"
        case bool():
            return "true" if key else "false"
        case Decimal():
            return format(key, "f")
        case _:
            return str(key if preparing is None else preparing(key))


def _struct(type_: StructType) -> Preparing:
    fields = [(each.name, _preparation(each.type)) for each in type_.fields]

    def prepare(struct: dict[str, object]) -> dict[str, object]:
        found = {}
        for name, preparing in fields:
            value = struct.get(name)
            found[name] = value if value is None or preparing is None else preparing(value)
        return found

    return prepare
