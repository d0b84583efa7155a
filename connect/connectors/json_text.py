"""Values as JSON without schemas, with the numbers and strings that Kafka's JSON converter writes.

bytes are base64, a Decimal is a number, a Date is days since 1970, a Time is milliseconds of the
day, and a Timestamp is milliseconds since 1970.
"""

import base64
import datetime
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache

import orjson

from connect.data import NO_DEFAULT, ConnectSchema, Struct
from connect.errors import DataError
from connect.logical_values import (
    NUMBERED,
    days_of,
    logical_name,
    time_milliseconds,
    timestamp_milliseconds,
)

_OPTIONS = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS


def json_text(value: object) -> bytes:
    """A value as JSON; DataError if it cannot be encoded."""
    try:
        return orjson.dumps(value, _plain, _OPTIONS)
    except orjson.JSONEncodeError as error:
        raise DataError(f"cannot write the value as JSON: {error}") from None


def json_lines(values: Sequence[object]) -> bytes:
    """Values as lines of JSON; DataError if one cannot be encoded."""
    lines = bytearray()  # each string is released immediately, and its memory is reused
    options = _OPTIONS | orjson.OPT_APPEND_NEWLINE
    schema: ConnectSchema | None = None
    try:
        for value in values:
            if type(value) is Struct:
                if value.schema is not schema:
                    schema = value.schema
                    special = _special_fields(schema)
                value = _dict_of(value, special)
            lines += orjson.dumps(value, _plain, options)
    except orjson.JSONEncodeError as error:
        raise DataError(f"cannot write the value as JSON: {error}") from None
    return bytes(lines)


def _dict_of(struct: Struct, special: "_Special") -> dict[str, object]:
    # Not recursive: the JSON encoder calls `_plain` for nested structs.
    result = dict(zip(struct.schema.positions, struct.values, strict=True))
    defaults, numbered = special
    for name, default in defaults:
        if result[name] is None:
            result[name] = default
    for name, kind, number_of in numbered:
        if type(result[name]) is kind:
            result[name] = number_of(result[name])
    return result


# Fields with defaults for null, and fields that are numbers in JSON but not in Python.
_Special = tuple[list[tuple[str, object]], list[tuple[str, type, Callable[..., int]]]]


@lru_cache(maxsize=256)
def _special_fields(schema: ConnectSchema) -> _Special:
    names = [(each.name, logical_name(each.schema)) for each in schema.fields]
    defaults = [(each.name, each.schema.default) for each in schema.fields]
    return (
        [(name, default) for name, default in defaults if default is not NO_DEFAULT],
        [(name, *NUMBERED[logical][:2]) for name, logical in names if logical in NUMBERED],
    )


def _plain(value: object) -> object:
    match value:
        case Struct():
            return _dict_of(value, _special_fields(value.schema))
        case Decimal():
            return orjson.Fragment(format(value, "f"))
        case datetime.datetime():
            return timestamp_milliseconds(value)
        case datetime.date():
            return days_of(value)
        case datetime.time():
            return time_milliseconds(value)
        case bytes() | bytearray() | memoryview():
            return base64.b64encode(bytes(value)).decode("ascii")
    raise TypeError(f"Connect has no values of type {type(value).__name__}")
