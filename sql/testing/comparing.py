"""Comparing records with those that a case expects."""

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

ABSOLUTE_DIFFERENCE = 1e-6
RELATIVE_DIFFERENCE = 1e-12


@dataclass(frozen=True, slots=True)
class KeyWindow:
    """The window of a key; `kind` is "time" or "session"."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class TypedRecord:
    """A record whose key and value are plain Python values: numbers, strings, lists, dicts."""

    key: object
    value: object
    timestamp_ms: int
    window: KeyWindow | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def difference(
    actual: TypedRecord, expected: Mapping[str, Any], *, any_time: bool = False
) -> str | None:
    """The difference in words; None if the record is the expected one."""
    expected_window = _window(expected.get("window"))
    checks = (
        ("key", same(actual.key, expected.get("key")), actual.key, expected.get("key")),
        ("value", same(actual.value, expected.get("value")), actual.value, expected.get("value")),
        ("window", actual.window == expected_window, actual.window, expected_window),
        (
            "headers",
            actual.headers == _headers(expected.get("headers")),
            actual.headers,
            expected.get("headers"),
        ),
        (
            "timestamp",
            any_time or expected.get("timestamp") in (None, actual.timestamp_ms),
            actual.timestamp_ms,
            expected.get("timestamp"),
        ),
    )
    for name, equal, found, wanted in checks:
        if not equal:
            return f"{name} is {found!r}, expected {_plain(wanted)!r}"
    return None


def same(actual: object, expected: object) -> bool:
    """Whether a value equals a JSON value; the scale of decimals is compared, too."""
    match expected:
        case None:
            return actual is None
        case bool():
            return isinstance(actual, bool) and actual == expected
        case dict():
            return isinstance(actual, dict) and _same_entries(actual, expected)
        case list():
            return (
                isinstance(actual, list)
                and len(actual) == len(expected)
                and all(map(same, actual, expected))
            )
        case str():
            return _same_text(actual, expected)
        case int() | Decimal():
            return _same_number(actual, expected)
        case _:
            return False


def _same_entries(actual: dict[str, object], expected: dict[str, object]) -> bool:
    def found(name: str) -> object:
        value = actual.get(name)
        return actual.get(name.upper()) if value is None else value

    return len(actual) == len(expected) and all(
        same(found(name), value) for name, value in expected.items()
    )


def _same_text(actual: object, expected: str) -> bool:
    if isinstance(actual, Decimal):
        try:
            return actual.as_tuple() == Decimal(expected).as_tuple()
        except ArithmeticError:
            return False
    if isinstance(actual, bytes):
        return base64.b64encode(actual).decode() == expected
    return actual == expected


def _same_number(actual: object, expected: int | Decimal) -> bool:
    match actual:
        case bool():
            return False
        case int():
            return int(expected) == actual
        case float():
            wanted = float(expected)
            return abs(wanted - actual) < ABSOLUTE_DIFFERENCE or math.isclose(
                wanted, actual, rel_tol=RELATIVE_DIFFERENCE
            )
        case Decimal():
            if isinstance(expected, int):
                return actual == expected and not _has_fraction(actual)
            return actual.as_tuple() == expected.as_tuple()
        case _:
            return False


def _has_fraction(number: Decimal) -> bool:
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent < 0


def _window(expected: Mapping[str, Any] | None) -> KeyWindow | None:
    if expected is None:
        return None
    return KeyWindow(int(expected["start"]), int(expected["end"]), expected["type"].lower())


def _headers(
    expected: list[Mapping[str, Any]] | None,
) -> tuple[tuple[str, bytes | None], ...]:
    return tuple(
        (each["key"], None if each.get("value") is None else base64.b64decode(each["value"]))
        for each in expected or ()
    )


def headers_of(given: Mapping[str, Any]) -> tuple[tuple[str, bytes | None], ...]:
    """The headers of a record in a case."""
    return _headers(given.get("headers"))


def _plain(value: object) -> object:
    """The value with decimals as plain numbers, for messages."""
    match value:
        case Decimal():
            return float(value)
        case dict():
            return {name: _plain(each) for name, each in value.items()}
        case list():
            return [_plain(each) for each in value]
        case _:
            return value
