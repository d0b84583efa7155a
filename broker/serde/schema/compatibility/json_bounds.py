"""Differences of keywords that limit numbers, strings and counts."""

from collections.abc import Iterator
from fractions import Fraction

from broker.serde.schema.compatibility.json_difference import Difference
from broker.serde.schema.compatibility.json_parts import Json, Part
from broker.serde.schema.json_text import write_json

# Keyword, name of its differences, and whether it is an upper bound.
Bound = tuple[str, str, bool]

STRING_BOUNDS: tuple[Bound, ...] = (
    ("maxLength", "MAX_LENGTH", True),
    ("minLength", "MIN_LENGTH", False),
)
NUMBER_BOUNDS: tuple[Bound, ...] = (
    ("maximum", "MAXIMUM", True),
    ("minimum", "MINIMUM", False),
    ("exclusiveMaximum", "EXCLUSIVE_MAXIMUM", True),
    ("exclusiveMinimum", "EXCLUSIVE_MINIMUM", False),
)
OBJECT_BOUNDS: tuple[Bound, ...] = (
    ("maxProperties", "MAX_PROPERTIES", True),
    ("minProperties", "MIN_PROPERTIES", False),
)
ARRAY_BOUNDS: tuple[Bound, ...] = (
    ("maxItems", "MAX_ITEMS", True),
    ("minItems", "MIN_ITEMS", False),
)
CONTAINS_BOUNDS: tuple[Bound, ...] = (
    ("maxContains", "MAX_CONTAINS", True),
    ("minContains", "MIN_CONTAINS", False),
)


def bound_differences(
    old: Json, new: Json, bounds: tuple[Bound, ...], path: str
) -> Iterator[Difference]:
    """Bounds that are stricter now."""
    for word, name, upper in bounds:
        before, after = number(old.get(word)), number(new.get(word))
        if after is None or before == after:
            continue
        if before is None:
            # Lengths and counts are never below zero.
            if upper or after > 0 or bounds is NUMBER_BOUNDS:
                yield Difference(f"{name}_ADDED", f"{path}/{word}")
        elif upper and after < before:
            yield Difference(f"{name}_DECREASED", f"{path}/{word}")
        elif not upper and after > before:
            yield Difference(f"{name}_INCREASED", f"{path}/{word}")


def string_differences(old: Part, new: Part, path: str) -> Iterator[Difference]:
    """Strings: lengths and pattern."""
    yield from bound_differences(old.words, new.words, STRING_BOUNDS, path)
    before, after = old.words.get("pattern"), new.words.get("pattern")
    if after is not None and before != after:
        kind = "PATTERN_ADDED" if before is None else "PATTERN_CHANGED"
        yield Difference(kind, f"{path}/pattern")


def number_differences(old: Part, new: Part, path: str) -> Iterator[Difference]:
    """Numbers: bounds, multiples and integers."""
    before, after = with_limits(old.words), with_limits(new.words)
    yield from bound_differences(before, after, NUMBER_BOUNDS, path)
    yield from multiple_differences(old.words, new.words, path)
    if new.integer and not old.integer:
        yield Difference("TYPE_NARROWED", path)


def with_limits(words: Json) -> Json:
    """Draft 4's exclusive bounds are flags of the bounds; in later drafts they are bounds."""
    found = dict(words)
    for exclusive, inclusive in (
        ("exclusiveMaximum", "maximum"),
        ("exclusiveMinimum", "minimum"),
    ):
        flag = words.get(exclusive)
        if isinstance(flag, bool):
            del found[exclusive]
            if flag and inclusive in found:
                found[exclusive] = found.pop(inclusive)
    return found


def multiple_differences(old: Json, new: Json, path: str) -> Iterator[Difference]:
    """A multiple of the new number is not always a multiple of the old one."""
    before, after = number(old.get("multipleOf")), number(new.get("multipleOf"))
    if after is None or before == after:
        return
    if before is None:
        kind = "MULTIPLE_OF_ADDED"
    elif before % after == 0:
        return
    else:
        kind = "MULTIPLE_OF_EXPANDED" if after % before == 0 else "MULTIPLE_OF_CHANGED"
    yield Difference(kind, f"{path}/multipleOf")


def number(value: object) -> Fraction | None:
    """A JSON number, exactly as in its text: 0.1 is a tenth."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return Fraction(repr(value))


def enum_differences(old: Part, new: Part, path: str) -> Iterator[Difference]:
    """Values that are no longer allowed."""
    word = "const" if "const" in new.words else "enum"
    before, after = allowed(old.words), allowed(new.words)
    if before <= after:
        return
    kind = "ENUM_ARRAY_NARROWED" if after < before and word == "enum" else "ENUM_ARRAY_CHANGED"
    yield Difference(kind, f"{path}/{word}")


def allowed(words: Json) -> frozenset[str]:
    """The values that const and enum allow, as strings that are equal for equal JSON values."""
    found = [words["const"]] if "const" in words else words.get("enum")
    values = found if isinstance(found, list) else []
    keys = frozenset(write_json(plain(each), sort=True) for each in values)
    given = words.get("enum")
    if "const" in words and isinstance(given, list):
        return keys & allowed({"enum": given})
    return keys


def plain(value: object) -> object:
    """A value with whole floats as integers, since 1.0 equals 1 in JSON Schema."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [plain(each) for each in value]
    return value
