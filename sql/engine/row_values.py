"""Values as JSON: conversions by type, prepared once per query.

Times, bytes, NaN and infinities are strings; the caller chooses the type of decimals.
"""

import base64
import math
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from broker.java.times import date_text, time_text, timestamp_text
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

# Any: values of all types; the column determines the type.
Preparing = Callable[[Any], object]


def row_preparation(
    types: Iterable[DataType], decimals: Preparing | None = None
) -> Callable[[Sequence[object]], list[object]]:
    """A function from rows to JSON values; `decimals` converts decimals, if given."""
    preparations = [_preparation(each, decimals) for each in types]
    places = [(index, each) for index, each in enumerate(preparations) if each is not None]

    def prepare(row: Sequence[object]) -> list[object]:
        values = list(row)
        for index, preparing in places:
            if values[index] is not None:
                values[index] = preparing(values[index])
        return values

    return prepare


def _preparation(type_: DataType, decimals: Preparing | None) -> Preparing | None:
    """The conversion of a value that is not null; None if there is none."""
    match type_:
        case DecimalType():
            return decimals
        case ArrayType(element=element):
            return _array(_preparation(element, decimals))
        case MapType(key=key, value=value):
            return _map(key, _preparation(value, decimals))
        case StructType():
            return _struct(type_, decimals)
        case _:
            return SINGLE.get(type_)


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
    preparing_key = _preparation(key, None)

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


def _struct(type_: StructType, decimals: Preparing | None) -> Preparing:
    fields = [(each.name, _preparation(each.type, decimals)) for each in type_.fields]

    def prepare(struct: dict[str, object]) -> dict[str, object]:
        result = {}
        for name, preparing in fields:
            value = struct.get(name)
            result[name] = value if value is None or preparing is None else preparing(value)
        return result

    return prepare
