"""Compares what was expected with what came."""

from collections.abc import Iterable, Mapping
from typing import Any

Row = dict[str, Any]


class Mismatch(Exception):
    """What came is not what was expected."""


def as_row(record: Mapping[str, Any], like: Mapping[str, Any]) -> Row:
    """A record, as far as an expected one looks: its time may be null, headers may be left out."""
    row = {"key": record["key"], "value": record["value"], "ts": record["ts"]}
    if like.get("ts") is None:
        row["ts"] = None
    if "headers" in like:
        row["headers"] = record.get("headers", [])
    return row


def compare_records(action: Mapping[str, Any], found: list[Row]) -> None:
    """Raise Mismatch unless the records of a topic are those of an `expect` action."""
    topic, expected = action["expect"], list(action["records"])
    if action.get("last_per_key"):
        found = _last_per_key(found)
        expected = _last_per_key(expected)
        _compare_unordered(topic, expected, found)
    elif action.get("any_order"):
        _compare_unordered(topic, expected, found)
    else:
        _compare_in_order(topic, expected, found)


def _last_per_key(records: Iterable[Row]) -> list[Row]:
    last: dict[str, Row] = {}
    for record in records:
        last[repr(record["key"])] = record
    return list(last.values())


def _compare_in_order(topic: str, expected: list[Row], found: list[Row]) -> None:
    position = 0
    while position < len(expected):
        end = _end_of_equal_positions(expected, position)
        candidates = found[position:end]
        for wanted in expected[position:end]:
            match = next((row for row in candidates if _equal(wanted, row)), None)
            if match is None:
                got = found[position] if position < len(found) else None
                raise _different(topic, position, wanted, got, expected, found)
            candidates.remove(match)
        position = end
    if len(found) > position:
        raise _different(topic, position, None, found[position], expected, found)


def _end_of_equal_positions(expected: list[Row], position: int) -> int:
    """The end of the records from here on that may come in any order: those marked so, or one."""
    end = position
    while end < len(expected) and expected[end].get("any_order"):
        end += 1
    return max(end, position + 1)


def _equal(wanted: Row, record: Row) -> bool:
    return as_row(record, wanted) == as_row(wanted, wanted)


def _compare_unordered(topic: str, expected: list[Row], found: list[Row]) -> None:
    left = list(found)
    for position, wanted in enumerate(expected):
        match = next((row for row in left if _equal(wanted, row)), None)
        if match is None:
            raise _different(topic, position, wanted, None, expected, found)
        left.remove(match)
    if left:
        raise _different(topic, len(expected), None, left[0], expected, found)


def _different(
    topic: str, position: int, wanted: Row | None, got: Row | None, *both: list[Row]
) -> Mismatch:
    expected, found = both
    return Mismatch(
        f'topic "{topic}", record {position}: expected {short(wanted)}, got {short(got)}\n'
        f"  expected: {', '.join(map(short, expected)) or 'nothing'}\n"
        f"  got:      {', '.join(map(short, found)) or 'nothing'}"
    )


def short(record: Row | None) -> str:
    """A record in a few signs."""
    if record is None:
        return "nothing"
    written = f"{_short_key(record['key'])}:{record['value']!r}@{record['ts']}"
    return f"{written}+{record['headers']}" if record.get("headers") else written


def _short_key(key: Any) -> str:
    if isinstance(key, dict) and "start" in key:
        return f"{key['key']}[{key['start']},{key['end']}]"
    return repr(key)


def compare_rows(store: str, expected: list[list[Any]], found: list[list[Any]]) -> None:
    """Raise Mismatch unless a store holds the expected rows, in any order.

    An expected row may have the value's time as its third element.
    """
    left = list(found)
    for wanted in expected:
        match = next((row for row in left if row[: len(wanted)] == wanted), None)
        if match is None:
            raise Mismatch(f'store "{store}" has no row {wanted}\n  got: {found}')
        left.remove(match)
    if left:
        raise Mismatch(f'store "{store}" has a row too much: {left[0]}\n  expected: {expected}')
