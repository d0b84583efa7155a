"""Functions that cases describe in a sentence, by name; processors are in `processors.py`."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.kafka_streams_cases.values import number, text


def _after_bar(written: object) -> str | None:
    """What follows the first bar; nothing without one."""
    _, bar, rest = text(written).partition("|")
    return rest if bar else None


def _after_bar_or_null(key: object, value: object) -> str | None:
    """The same, but the text "returnNull" stands for nothing."""
    found = _after_bar(value)
    return None if found == "returnNull" else found


def _second_field(key: object, value: object) -> str | None:
    """What stands between the first and the second comma; nothing when there is no comma."""
    fields = text(value).split(",")
    return fields[1] if len(fields) > 1 else None


def _repart(key: object, value: object) -> tuple[object, object] | None:
    """By value; but the key "null" gives no group, and the key "NULL" nothing at all."""
    if key == "NULL":
        return None
    return (None, value) if key == "null" else (value, value)


def _key_sum(key: object, left: object, right: object) -> str:
    """The sum of both sides after the key; a side that is missing adds nothing."""
    return f"{text(key)}:{number(left) + (0 if right is None else number(right))}"


def _fail(key: object, value: object) -> bool:
    """Raise, whatever the record is."""
    raise RuntimeError("the case's function always fails")


EXPRESSIONS: Mapping[str, Callable[[Any, Any], Any]] = {
    "second_char": lambda key, value: text(key)[1],
    "window_key": lambda key, value: key.key,
    "after_bar": lambda key, value: _after_bar(value),
    "after_bar_or_null": _after_bar_or_null,
    "key_then_value": lambda key, value: text(key) + text(value),
    "second_field": _second_field,
    "repart": _repart,
    "same": lambda key, value: value,
    "fail": _fail,
}
PREDICATES: Mapping[str, Callable[[Any, Any], bool]] = {
    "not_null": lambda key, value: value is not None,
    "always": lambda key, value: True,
    "fail": _fail,
}
FOLDS: Mapping[str, Callable[[Any, Any, Any], Any]] = {
    "join_text": lambda key, aggregate, value: text(aggregate) + text(value),
    "remove_text": lambda key, aggregate, value: text(aggregate).replace(text(value), ""),
    "sum_text": lambda key, aggregate, value: number(aggregate) + int(text(value)),
}
JOINERS: Mapping[str, Callable[[Any, Any, Any], Any]] = {"key_sum": _key_sum}
