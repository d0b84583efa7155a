"""Functions of arrays and maps."""

from collections.abc import Callable, Iterable
from typing import Any

from broker.java.number_text import double_text
from sql.functions.ordering import equal, holds, key_of_values, not_null, one_nan, text_key
from sql.functions.registry import Family

arrays = Family("ARRAY")
maps = Family("MAP")
others = Family("OTHER")

# A longer series is a mistake, and would fill the memory.
SERIES_MAX = 1_000_000

_LARGEST_FIRST = {"ASC": False, "ASCENDING": False, "DESC": True, "DESCENDING": True}

# Any: the type of elements, T, depends on the call; arrays and maps never mix types.
Elements = list[Any]
Entries = dict[Any, Any]


@arrays.scalar("ARRAY_LENGTH(array ARRAY<T>) -> INT", "The number of elements of an array.")
def array_length(array: Elements) -> int:
    """Including nulls."""
    return len(array)


@arrays.scalar(
    "ARRAY_CONTAINS(array ARRAY<T>, value T) -> BOOLEAN",
    "Whether an array contains a value; false for a null array.",
    nulls=True,
)
def array_contains(array: Elements | None, value: object) -> bool:
    """Null may be an element."""
    return array is not None and holds(array, value)


@arrays.scalar(
    "array_concat(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>",
    "The elements of both arrays. A null array counts as empty.",
    nulls=True,
)
def array_concat(left: Elements | None, right: Elements | None) -> Elements | None:
    """Null if both are null."""
    if left is None or right is None:
        return right if left is None else left
    return left + right


def _distinct(elements: Iterable[Any]) -> Elements:
    """Each element once, at its first position."""
    listed = one_nan(list(elements))
    try:
        return list(dict.fromkeys(listed))
    except TypeError:  # arrays, maps and structs
        result: Elements = []
        for each in listed:
            if each not in result:
                result.append(each)
        return result


arrays.scalar(
    "array_distinct(array ARRAY<T>) -> ARRAY<T>",
    "The distinct elements of an array, in the order of their first occurrence.",
)(_distinct)


@arrays.scalar(
    "array_except(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>",
    "The distinct elements of the left array that are not in the right one.",
)
def array_except(left: Elements, right: Elements) -> Elements:
    others = one_nan(right)
    return _distinct(each for each in one_nan(left) if each not in others)


@arrays.scalar(
    "array_intersect(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>",
    "The distinct elements that both arrays have.",
)
def array_intersect(left: Elements, right: Elements) -> Elements:
    others = one_nan(right)
    return _distinct(each for each in one_nan(left) if each in others)


@arrays.scalar(
    "array_union(left ARRAY<T>, right ARRAY<T>) -> ARRAY<T>", "The distinct elements of two arrays."
)
def array_union(left: Elements, right: Elements) -> Elements:
    """The elements of the left array first."""
    return _distinct(left + right)


@arrays.scalar(
    "array_remove(array ARRAY<T>, victim T) -> ARRAY<T>",
    "The array without the elements that equal a value.",
    nulls=True,
)
def array_remove(array: Elements | None, victim: object) -> Elements | None:
    """Null elements can be removed, too."""
    return None if array is None else [each for each in array if not equal(each, victim)]


@arrays.scalar("array_max(array ARRAY<T>) -> T", "The largest element; nulls are ignored.")
def array_max(array: Elements) -> object:
    found = not_null(array)
    return max(found, key=key_of_values(found), default=None)


@arrays.scalar("array_min(array ARRAY<T>) -> T", "The smallest element; nulls are ignored.")
def array_min(array: Elements) -> object:
    found = not_null(array)
    return min(found, key=key_of_values(found), default=None)


@arrays.scalar(
    "array_sort(array ARRAY<T>) -> ARRAY<T>",
    "The elements in ascending (ASC, the default) or descending order, nulls last.",
)
def array_sort(array: Elements) -> Elements:
    """Smallest first."""
    return _sorted(array, largest_first=False)


@arrays.scalar("array_sort(array ARRAY<T>, direction STRING) -> ARRAY<T>")
def array_sort_in(array: Elements, direction: str) -> Elements | None:
    """Null for an invalid direction."""
    largest_first = _LARGEST_FIRST.get(direction.upper())
    return None if largest_first is None else _sorted(array, largest_first=largest_first)


def _sorted(array: Elements, *, largest_first: bool) -> Elements:
    found = not_null(array)
    missing: Elements = [None] * (len(array) - len(found))
    return sorted(found, key=key_of_values(found), reverse=largest_first) + missing


@arrays.scalar(
    "Slice(array ARRAY<T>, from INT, to INT) -> ARRAY<T>",
    "The elements from one position to another, both inclusive, starting at 1. Null: no bound.",
    nulls=True,
)
def array_slice(array: Elements | None, start: int | None, end: int | None) -> Elements | None:
    """Null if a position is out of range."""
    if array is None:
        return None
    first = 0 if start is None else start - 1
    last = len(array) if end is None else end
    return array[first:last] if 0 <= first <= last <= len(array) else None


@arrays.scalar(
    "GENERATE_SERIES(start INT, end INT) -> ARRAY<INT>",
    "The numbers from start to end, both inclusive, in steps of 1, -1 or a given step.",
)
@arrays.scalar("GENERATE_SERIES(start BIGINT, end BIGINT) -> ARRAY<BIGINT>")
def generate_series(start: int, end: int) -> list[int]:
    return generate_series_by(start, end, 1 if end > start else -1)


@arrays.scalar("GENERATE_SERIES(start INT, end INT, step INT) -> ARRAY<INT>")
@arrays.scalar("GENERATE_SERIES(start BIGINT, end BIGINT, step INT) -> ARRAY<BIGINT>")
def generate_series_by(start: int, end: int, step: int) -> list[int]:
    """The last number may be before the end."""
    if step == 0:
        raise ValueError("GENERATE_SERIES step cannot be zero")
    if start != end and (end > start) != (step > 0):
        raise ValueError("GENERATE_SERIES step has wrong sign")
    if abs(end - start) // abs(step) >= SERIES_MAX:
        raise ValueError(f"GENERATE_SERIES returns at most {SERIES_MAX} numbers")
    return list(range(start, end + (1 if step > 0 else -1), step))


_JOIN = "The elements of an array as one string, separated by a delimiter; the default is a comma."


def _text_of_boolean(value: object) -> str:
    return "true" if value else "false"


_TEXTS: dict[str, Callable[[Any], str]] = {
    "BOOLEAN": _text_of_boolean,
    "INT": str,
    "BIGINT": str,
    "DOUBLE": double_text,
    "DECIMAL": str,
    "STRING": str,
}


def _joining(text: Callable[[Any], str]) -> Callable[..., str | None]:
    def array_join(array: Elements | None, delimiter: str | None = ",") -> str | None:
        if array is None:
            return None
        strings = ["null" if each is None else text(each) for each in array]
        return (delimiter or "").join(strings)

    return array_join


for _type, _text in _TEXTS.items():
    arrays.scalar(f"ARRAY_JOIN(array ARRAY<{_type}>) -> STRING", _JOIN)(_joining(_text))
    arrays.scalar(
        f"ARRAY_JOIN(array ARRAY<{_type}>, delimiter STRING) -> STRING", _JOIN, nulls=True
    )(_joining(_text))


@arrays.scalar("ARRAY_JOIN(array ARRAY<T>) -> STRING", _JOIN)
@arrays.scalar("ARRAY_JOIN(array ARRAY<T>, delimiter STRING) -> STRING", _JOIN)
def join_others(array: Elements, delimiter: str = ",") -> str | None:
    """Arrays of other types: only nulls can be joined."""
    if not_null(array):
        raise ValueError("ARRAY_JOIN takes arrays of booleans, numbers and strings")
    return delimiter.join(["null"] * len(array))


@maps.scalar(
    "AS_MAP(keys ARRAY<STRING>, values ARRAY<T>) -> MAP<STRING, T>",
    "A map of keys and values from two arrays; missing values are null.",
)
def as_map(keys: list[str], values: Elements) -> Entries:
    """Values without keys are ignored."""
    missing = len(keys) - len(values)
    return dict(zip(keys, values + [None] * missing, strict=False))


@maps.scalar("map_keys(map MAP<K, V>) -> ARRAY<K>", "The keys of a map.")
def map_keys(entries: Entries) -> Elements:
    """In any order."""
    return list(entries)


@maps.scalar("map_values(map MAP<K, V>) -> ARRAY<V>", "The values of a map.")
def map_values(entries: Entries) -> Elements:
    """In the order of the keys."""
    return list(entries.values())


@maps.scalar(
    "map_union(first MAP<K, V>, second MAP<K, V>) -> MAP<K, V>",
    "The entries of both maps; the second map wins where both have a key. Null counts as empty.",
    nulls=True,
)
def map_union(first: Entries | None, second: Entries | None) -> Entries | None:
    """Null if both are null."""
    if first is None or second is None:
        return second if first is None else first
    return first | second


def entries_of(entries: Entries, is_sorted: bool) -> Elements:
    """Entries as structs of K and V, optionally sorted by key."""
    keys = sorted(entries, key=text_key) if is_sorted else entries
    return [{"K": key, "V": entries[key]} for key in keys]


for _type in ("INT", "BIGINT", "DOUBLE", "BOOLEAN", "STRING"):
    maps.scalar(
        f"ENTRIES(map MAP<STRING, {_type}>, sorted BOOLEAN) -> ARRAY<STRUCT<K STRING, V {_type}>>",
        "The entries of a map as structs of K and V, sorted by key if sorted is true.",
    )(entries_of)


@others.scalar("AS_VALUE(column T) -> T", "A copy of a key column for the value of the record.")
def as_value(value: object) -> object:
    return value
