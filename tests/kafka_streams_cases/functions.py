"""The function language of the case format, turned into Python functions.

    expression   (key, value) -> object           mappers, key selectors
    predicate    (key, value) -> bool
    fold         (key, aggregate, value) -> object   adders, reducers, mergers
    joiner       (key, left, right) -> object

Functions that a case defines by a sentence are in `named.py`.
"""

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.kafka_streams_cases import named
from tests.kafka_streams_cases.values import number, text

Expression = Callable[[Any, Any], Any]
Predicate = Callable[[Any, Any], bool]
Fold = Callable[[Any, Any, Any], Any]

COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_PLACE = re.compile(r"%(?:(\d+)\$)?([sd%])")


class UnknownFunction(Exception):
    """A function that this runner does not know."""


def formatted(pattern: str, arguments: tuple[object, ...]) -> str:
    """Java's String.format with %s, %d, %1$s and %%."""
    taken = 0

    def fill(match: re.Match[str]) -> str:
        nonlocal taken
        if match[2] == "%":
            return "%"
        if match[1]:
            return text(arguments[int(match[1]) - 1])
        taken += 1
        return text(arguments[taken - 1])

    return _PLACE.sub(fill, pattern)


def split(pattern: str, written: str) -> list[str]:
    """Java's String.split: empty texts at the end are left out."""
    parts = re.split(pattern, written)
    while len(parts) > 1 and parts[-1] == "":
        parts.pop()
    return parts


# ---- expressions


def expression(spec: Any) -> Expression:
    """A mapper of (key, value)."""
    if isinstance(spec, str):
        return _expression_by_name(spec)
    if not isinstance(spec, dict):
        return lambda key, value: spec
    if "pair" in spec:
        first, second = (expression(part) for part in spec["pair"])
        return lambda key, value: (first(key, value), second(key, value))
    if "list" in spec:
        items = [expression(part) for part in spec["list"]]
        return lambda key, value: [item(key, value) for item in items]
    if "format" in spec:
        return lambda key, value: formatted(spec["format"], (key, value))
    if "const" in spec:
        return lambda key, value: spec["const"]
    if "text_of" in spec:
        inner = expression(spec["text_of"])
        return lambda key, value: text(inner(key, value))
    return _operation(spec)


def _expression_by_name(name: str) -> Expression:
    known: dict[str, Expression] = {
        "value": lambda key, value: value,
        "key": lambda key, value: key,
        "length": lambda key, value: None if value is None else len(text(value)),
        "upper": lambda key, value: None if value is None else text(value).upper(),
        "null": lambda key, value: None,
        **named.EXPRESSIONS,
    }
    if name not in known:
        raise UnknownFunction(f'the expression "{name}" is not known')
    return known[name]


def _operation(spec: dict[str, Any]) -> Expression:
    """An operator that is applied to `of`, by default the value."""
    of = expression(spec.get("of", "value"))
    if "add" in spec:
        addend = expression(spec["add"])
        return lambda key, value: number(of(key, value)) + number(addend(key, value))
    if "mul" in spec:
        return lambda key, value: number(of(key, value)) * spec["mul"]
    if "first_chars" in spec:
        return lambda key, value: text(of(key, value))[: spec["first_chars"]]
    if "lookup" in spec:
        return lambda key, value: spec["lookup"].get(text(of(key, value)))
    if "split" in spec:
        return lambda key, value: split(spec["split"], text(of(key, value)))
    if "field" in spec:
        return lambda key, value: text(of(key, value)).split(",")[spec["field"]]
    raise UnknownFunction(f"the expression {spec} is not known")


def pair(spec: Any) -> Expression:
    """A mapper that gives (key, value), or None."""
    if spec == "same":
        return lambda key, value: (key, value)
    return expression(spec)


def pairs(spec: Any) -> Expression:
    """A mapper that gives several (key, value)."""
    if spec == "same":
        return lambda key, value: [(key, value)]
    return expression(spec)


# ---- predicates


def predicate(spec: Any) -> Predicate:
    """A question about (key, value)."""
    if isinstance(spec, str):
        if spec not in named.PREDICATES:
            raise UnknownFunction(f'the predicate "{spec}" is not known')
        return named.PREDICATES[spec]
    if "const" in spec:
        return lambda key, value: bool(spec["const"])
    if "value_starts" in spec:
        return lambda key, value: value is not None and text(value).startswith(spec["value_starts"])
    if "key_starts" in spec:
        return lambda key, value: key is not None and text(key).startswith(spec["key_starts"])
    for side, at in (("key", 0), ("value", 1)):
        if side in spec:
            return _comparison(spec, spec[side], at)
    raise UnknownFunction(f"the predicate {spec} is not known")


def _comparison(spec: dict[str, Any], sign: str, at: int) -> Predicate:
    if sign == "%":
        # Java's remainder has the sign of the dividend, as fmod's.
        return lambda *record: (
            record[at] is not None and math.fmod(number(record[at]), spec["mod"]) == spec["equals"]
        )
    compare, than = COMPARISONS[sign], spec["than"]

    def test(*record: object) -> bool:
        found = record[at]
        if found is None or than is None:
            return compare(found, than) if sign in ("==", "!=") else False
        return compare(found if isinstance(than, str) else number(found), than)

    return test


# ---- folds


def fold(spec: Any) -> Fold:
    """An adder, reducer or merger of (key, aggregate, value)."""
    if isinstance(spec, dict):
        return _fold_by_parts(spec)
    if spec is None:
        return lambda key, aggregate, value: None
    if spec not in FOLDS:
        raise UnknownFunction(f'the fold "{spec}" is not known')
    return FOLDS[spec]


def _fold_by_parts(spec: dict[str, Any]) -> Fold:
    if "null_if" in spec:
        asked, otherwise = predicate(spec["null_if"]), fold(spec["else"])
        return lambda key, aggregate, value: (
            None if asked(key, value) else otherwise(key, aggregate, value)
        )
    if "format" in spec:
        return lambda key, aggregate, value: formatted(spec["format"], (aggregate, value))
    raise UnknownFunction(f"the fold {spec} is not known")


FOLDS: Mapping[str, Fold] = {
    "null": lambda key, aggregate, value: None,
    "append": lambda key, aggregate, value: f"{text(aggregate)}+{text(value)}",
    "subtract_text": lambda key, aggregate, value: f"{text(aggregate)}-{text(value)}",
    "concat": lambda key, aggregate, value: f"{text(aggregate)}+{text(value)}",
    "sum": lambda key, aggregate, value: number(aggregate) + number(value),
    "subtract": lambda key, aggregate, value: number(aggregate) - number(value),
    "max": lambda key, aggregate, value: max(number(aggregate), number(value)),
    "min": lambda key, aggregate, value: min(number(aggregate), number(value)),
    "first": lambda key, aggregate, value: aggregate,
    "last": lambda key, aggregate, value: value,
    "count_add": lambda key, aggregate, value: number(aggregate) + 1,
    **named.FOLDS,
}


# ---- joiners


def joiner(spec: Any) -> Fold:
    """A joiner of (key, left, right)."""
    if isinstance(spec, dict) and "format3" in spec:
        return lambda *arguments: formatted(spec["format3"], arguments)
    if isinstance(spec, dict) and "format" in spec:
        return lambda key, left, right: formatted(spec["format"], (left, right))
    if isinstance(spec, str) and "%" in spec:
        return lambda key, left, right: formatted(spec, (left, right))
    if isinstance(spec, str) and spec in named.JOINERS:
        return named.JOINERS[spec]
    if spec == "sum":
        return lambda key, left, right: sum(number(side) for side in (left, right) if side)
    return fold(spec)


def needs_key(spec: Any) -> bool:
    """Whether a joiner looks at the key."""
    return spec in named.JOINERS if isinstance(spec, str) else "format3" in spec


def gives_text(spec: Any) -> bool:
    """Whether a joiner gives text whatever its sides are."""
    return spec not in ("sum", "first", "last", "max", "min", "subtract")


def as_list(found: object) -> Iterable[Any]:
    """The results of a flat operation; None is none."""
    return found if isinstance(found, list) else () if found is None else (found,)
