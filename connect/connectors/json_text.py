"""Values as JSON without schemas, with the numbers and texts Kafka's JSON converter writes.

bytes are base64, a Decimal is a number, a Date is days since 1970, a Time is milliseconds of the
day and a Timestamp is milliseconds since 1970.
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
    """A value as JSON; DataError when it cannot be."""
    return _text(value, _OPTIONS)


def json_lines(values: Sequence[object]) -> bytes:
    """Each value as JSON in a line; DataError when one of them cannot be."""
    lines = bytearray()  # each text is let go of at once, and its memory is used again
    options = _OPTIONS | orjson.OPT_APPEND_NEWLINE
    for value in values:
        lines += _text(value, options)
    return bytes(lines)


def _text(value: object, options: int) -> bytes:
    try:
        whole = _dict_of(value) if type(value) is Struct else value
        return orjson.dumps(whole, _plain, options)
    except orjson.JSONEncodeError as error:
        raise DataError(f"cannot write the value as JSON: {error}") from None


def _dict_of(struct: Struct) -> dict[str, object]:
    # Not deep: structs inside come here by themselves.
    found = dict(zip(struct.schema.positions, struct.values, strict=True))
    defaults, numbered = _special_fields(struct.schema)
    for name, default in defaults:
        if found[name] is None:
            found[name] = default
    for name, kind, number_of in numbered:
        if type(found[name]) is kind:
            found[name] = number_of(found[name])
    return found


@lru_cache(maxsize=256)
def _special_fields(
    schema: ConnectSchema,
) -> tuple[list[tuple[str, object]], list[tuple[str, type, Callable[..., int]]]]:
    """Fields whose null is something else, and those that are numbers in JSON, not in Python."""
    names = [(each.name, logical_name(each.schema)) for each in schema.fields]
    defaults = [(each.name, each.schema.default) for each in schema.fields]
    return (
        [(name, default) for name, default in defaults if default is not NO_DEFAULT],
        [(name, *NUMBERED[logical][:2]) for name, logical in names if logical in NUMBERED],
    )


def _plain(value: object) -> object:
    match value:
        case Struct():
            return _dict_of(value)
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
    raise TypeError(f"a {type(value).__name__} is no value of Connect")
