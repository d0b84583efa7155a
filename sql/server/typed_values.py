"""Converts JSON values to values of columns, for rows that are inserted without SQL."""

import base64
import binascii
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from broker.errors import MillstreamError
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
from sql.engine.insert_records import NotCoercible, coerced
from sql.numeric_types import fit_decimal

INT_LIMIT = 1 << 31
BIGINT_LIMIT = 1 << 63
NOT_FINITE = ("NaN", "Infinity", "-Infinity")


def typed_value(value: object, type_: DataType) -> object:
    """A JSON value converted to a type; NotCoercible if that is impossible."""
    if value is None:
        return None
    match type_:
        case ArrayType(element=element):
            return [typed_value(each, element) for each in _checked(value, list)]
        case MapType(key=key, value=inner):
            return {
                _key(name, key): typed_value(each, inner)
                for name, each in _checked(value, dict).items()
            }
        case StructType():
            return _struct(_checked(value, dict), type_)
        case DecimalType():
            return _decimal(value, type_)
        case _:
            return SINGLE[type_](value)


# Any: a value of the expected class.
def _checked(value: object, kind: type) -> Any:
    if type(value) is not kind:
        raise NotCoercible
    return value


def _key(name: str, type_: DataType) -> object:
    """The key of a map, which is a string in JSON."""
    if type_ in (INT, BIGINT):
        try:
            return typed_value(int(name), type_)
        except ValueError as error:
            raise NotCoercible from error
    return typed_value(name, type_)


def _struct(value: dict[str, object], type_: StructType) -> dict[str, object]:
    """Names ignore case, as in SQL."""
    exact, loose = dict(value), {name.upper(): each for name, each in value.items()}
    return {
        each.name: typed_value(exact.get(each.name, loose.get(each.name)), each.type)
        for each in type_.fields
    }


def _decimal(value: object, type_: DecimalType) -> Decimal | None:
    if type(value) not in (int, float, str, Decimal):
        raise NotCoercible
    try:
        return fit_decimal(Decimal(str(value)), type_)
    except (InvalidOperation, MillstreamError) as error:
        raise NotCoercible from error


def _whole(limit: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if type(value) is not int or not -limit <= value < limit:
            raise NotCoercible
        return value

    return read


def _double(value: object) -> float:
    if type(value) not in (int, float, Decimal) and value not in NOT_FINITE:
        raise NotCoercible
    return float(value)  # type: ignore[arg-type]  # checked above


def _bytes(value: object) -> bytes:
    try:
        return base64.b64decode(_checked(value, str), validate=True)
    except binascii.Error as error:
        raise NotCoercible from error


def _time(type_: DataType) -> Callable[[object], object]:
    def read(value: object) -> object:
        return coerced(_checked(value, str), STRING, type_)

    return read


SINGLE: dict[DataType, Callable[[object], object]] = {
    BOOLEAN: lambda value: _checked(value, bool),
    INT: _whole(INT_LIMIT),
    BIGINT: _whole(BIGINT_LIMIT),
    DOUBLE: _double,
    STRING: lambda value: _checked(value, str),
    BYTES: _bytes,
    TIME: _time(TIME),
    DATE: _time(DATE),
    TIMESTAMP: _time(TIMESTAMP),
}
