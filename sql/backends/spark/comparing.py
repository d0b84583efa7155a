"""Comparisons in Spark's SQL: two-valued (null gives false), with Java's order of values."""

from collections.abc import Callable

from sql.backends.spark.spark_code import (
    NotNative,
    SqlCode,
    any_of,
    certain,
    constant,
    failing,
    known_type,
    unless,
)
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
    DataType,
    DecimalType,
    decimal_of,
)
from sql.expressions import Among, Comparing, Matching, TypedExpression
from sql.functions.matching import wider_decimal

Write = Callable[[TypedExpression], SqlCode]

# Strings with only characters below this one have the same order in code points and UTF-16.
SURROGATES = "\ud800"
DISTINCT = ("IS DISTINCT FROM", "IS NOT DISTINCT FROM")
ORDERED = (INT, BIGINT, BOOLEAN, DATE, TIME, TIMESTAMP)
# Characters that need no escape in a SQL literal.
ESCAPES = "!#$&*+-/:;<=>?@^|~" + "".join(map(chr, range(ord("a"), ord("z") + 1)))


def compared(node: Comparing, write: Write) -> SqlCode:
    """left op right; the right side is not computed if the left one is null."""
    left, right = _sides(node, write)
    if node.operator in DISTINCT:
        return _distinct(node, left, right)
    test = _test(node, left, right)
    if not left.can_fail and not right.can_fail:
        if not left.nullable and not right.nullable:
            return certain(test)
        return certain(f"coalesce({test}, FALSE)")
    if not left.nullable and not right.nullable and DOUBLE not in (node.left.type, node.right.type):
        return failing(test)
    cases = [
        *_cases(left.failed, "NULL"),
        *_cases(f"({left.text} IS NULL)" if left.nullable else None, "FALSE"),
        *_cases(right.failed, "NULL"),
        *_cases(f"({right.text} IS NULL)" if right.nullable else None, "FALSE"),
    ]
    return failing(f"CASE {' '.join(cases)} ELSE {test} END")


def _cases(condition: str | None, result: str) -> list[str]:
    return [] if condition is None else [f"WHEN {condition} THEN {result}"]


def _sides(node: Comparing, write: Write) -> tuple[SqlCode, SqlCode]:
    """Both sides, converted to one type."""
    left, right = write(node.left), write(node.right)
    types = (node.left.type, node.right.type)
    if types[0] == types[1] or None in types or set(types) == {INT, BIGINT}:
        return left, right
    if DOUBLE in types:
        return _as_double(left, types[0]), _as_double(right, types[1])
    return _as_wider(left, right, types)


def _as_double(code: SqlCode, type_: DataType | None) -> SqlCode:
    if type_ is DOUBLE:
        return code
    if code.is_constant and isinstance(code.value, int):
        return constant(float(code.value), DOUBLE)
    if type_ is INT:
        return _changed(code, f"CAST({code.text} AS DOUBLE)")
    raise NotNative(f"{type_} beside DOUBLE is compared digit by digit")


def _as_wider(
    left: SqlCode, right: SqlCode, types: tuple[DataType | None, DataType | None]
) -> tuple[SqlCode, SqlCode]:
    numbers = [each for each in types if each in (INT, BIGINT) or isinstance(each, DecimalType)]
    if len(numbers) < 2:
        raise NotNative(f"{types[0]} beside {types[1]}")
    wide = wider_decimal(*(decimal_of(each) for each in numbers if each is not None))
    cast = f"AS {known_type(wide)})"
    return _changed(left, f"CAST({left.text} {cast}"), _changed(right, f"CAST({right.text} {cast}")


def _changed(code: SqlCode, text: str) -> SqlCode:
    return SqlCode(text, code.nullable, code.can_fail, code.failure)


def _test(node: Comparing, left: SqlCode, right: SqlCode) -> str:
    """The comparison of values that are not null."""
    type_, operator = node.left.type or node.right.type, node.operator
    if DOUBLE in (node.left.type, node.right.type):
        return _double_test(operator, left, right)
    if operator in ("=", "<>"):
        if type_ is None or type_ in (*ORDERED, STRING, BYTES) or isinstance(type_, DecimalType):
            return f"({left.text} {operator} {right.text})"
        raise NotNative(f"{type_} is compared part by part")
    if type_ in ORDERED or isinstance(type_, DecimalType):
        return f"({left.text} {operator} {right.text})"
    if type_ is STRING:
        if _has_common_order(left) or _has_common_order(right):
            return f"({left.text} {operator} {right.text})"
        return f"({_units(left)} {operator} {_units(right)})"
    raise NotNative(f"the order of {type_}")


def _has_common_order(code: SqlCode) -> bool:
    return isinstance(code.value, str) and all(sign < SURROGATES for sign in code.value)


def _units(code: SqlCode) -> str:
    """A string as bytes that sort as strings do in Java."""
    return f"encode({code.text}, 'UTF-16BE')"


def _double_test(operator: str, left: SqlCode, right: SqlCode) -> str:
    """In Java, no comparison with NaN is true; in Spark, NaN equals NaN and is the largest."""
    tests = [f"{left.text} {operator} {right.text}"]
    tests += [f"NOT isnan({each.text})" for each in (left, right) if not _is_number(each)]
    return f"({' AND '.join(tests)})"


def _is_number(code: SqlCode) -> bool:
    return isinstance(code.value, float) and code.value == code.value


def _distinct(node: Comparing, left: SqlCode, right: SqlCode) -> SqlCode:
    if DOUBLE in (node.left.type, node.right.type):
        same = (
            f"(({left.text} <=> {right.text}) OR coalesce("
            f"isnan({left.text}) AND {right.text} IS NOT NULL"
            f" OR isnan({right.text}) AND {left.text} IS NOT NULL, FALSE))"
        )
    elif (node.left.type or node.right.type) in (*ORDERED, STRING, BYTES, None) or isinstance(
        node.left.type or node.right.type, DecimalType
    ):
        same = f"({left.text} <=> {right.text})"
    else:
        raise NotNative("a type that is compared part by part")
    test = same if node.operator == "IS NOT DISTINCT FROM" else f"(NOT {same})"
    failed = any_of((left.failed, right.failed))
    return certain(test) if failed is None else failing(unless(failed, test))


def among(node: Among, write: Write) -> SqlCode:
    """value IN (choices); all choices are computed."""
    value = write(node.value)
    choices = [write(each) for each in node.choices]
    type_ = node.value.type
    if any(each.type not in (type_, None) for each in node.choices):
        raise NotNative("choices of different types")
    if type_ is DOUBLE and not all(map(_is_number, choices)):
        raise NotNative("NaN is found by chance")
    if type_ not in (*ORDERED, STRING, BYTES, DOUBLE) and not isinstance(type_, DecimalType):
        raise NotNative(f"{type_} is compared part by part")
    shown = [each.text for each in choices if not each.is_null]
    if not shown:
        test = "FALSE"
    elif type_ is DOUBLE:
        # With many choices, Spark's IN distinguishes the two zeros.
        test = f"coalesce({' OR '.join(f'{value.text} = {each}' for each in shown)}, FALSE)"
    else:
        test = f"coalesce({value.text} IN ({', '.join(shown)}), FALSE)"
    failed = any_of((value.failed, *(each.failed for each in choices)))
    return certain(test) if failed is None else failing(unless(failed, test))


def matched(node: Matching, write: Write) -> SqlCode:
    """value LIKE pattern; fails for a null value."""
    value, pattern = write(node.value), write(node.pattern)
    if not isinstance(pattern.value, str):
        raise NotNative("LIKE with a pattern that is not constant")
    text, escape = _plain_pattern(pattern.value, node.escape)
    test = f"like({value.text}, {constant(text, STRING).text}, '{escape}')"
    if not value.nullable and not value.can_fail:
        return certain(test)
    return failing(test)


def _plain_pattern(pattern: str, escape: str | None) -> tuple[str, str]:
    """A pattern without superfluous escapes, and its escape character."""
    sign = next((each for each in ESCAPES if each not in pattern), None)
    if sign is None:
        raise NotNative("LIKE with a pattern of many characters")
    found, escaped = "", False
    for each in pattern:
        if not escaped and each == escape:
            escaped = True
            continue
        found += sign + each if escaped and each in "%_" else each
        escaped = False
    if escaped:
        raise NotNative("LIKE with a pattern that ends with its escape character")
    return found, sign
