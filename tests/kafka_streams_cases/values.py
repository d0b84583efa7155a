"""Values of the case format: their serdes, their conversion to a serde's type, their JSON form."""

import base64
from collections.abc import Mapping
from typing import Any

from broker.serde import (
    BytesSerde,
    DoubleSerde,
    IntegerSerde,
    JsonSerde,
    LongSerde,
    Serde,
    StringSerde,
)
from streams.record import Windowed

SERDES: Mapping[str, Serde[Any]] = {
    "int": IntegerSerde(),
    "long": LongSerde(),
    "double": DoubleSerde(),
    "string": StringSerde(),
    "bytes": BytesSerde(),
    "json": JsonSerde(),
}


def text(value: object) -> str:
    """A value as Java prints it: null, true, and numbers without a needless sign."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case Windowed():
            return f"[{text(value.key)}@{value.start_ms}/{value.end_ms}]"
        case _:
            return str(value)


def number(value: object) -> int | float:
    """A value as a number; text is read, whole where it can be."""
    if isinstance(value, (int, float)):
        return value
    written = text(value)
    try:
        return int(written)
    except ValueError:
        return float(written)


def convert(value: object, serde: str) -> object:
    """What a function gave, as the type of a serde; None stays None."""
    if value is None or isinstance(value, Windowed):
        return value
    match serde:
        case "int" | "long":
            return int(number(value))
        case "double":
            return float(number(value))
        case "string":
            return text(value)
        case "bytes":
            return value if isinstance(value, bytes) else text(value).encode()
        case _:
            return value


def to_json(value: object) -> object:
    """A key or value as the case files write it."""
    match value:
        case Windowed():
            return {"key": to_json(value.key), "start": value.start_ms, "end": value.end_ms}
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return value


def from_json(value: Any, serde: str) -> object:
    """A key or value that a case file writes, as the type of a serde; the other way round."""
    if isinstance(value, dict) and set(value) == {"key", "start", "end"}:
        return Windowed(from_json(value["key"], serde), value["start"], value["end"])
    if serde == "bytes" and isinstance(value, str):
        return base64.b64decode(value)
    return convert(value, serde)
