"""Functions that generated code calls: Java's arithmetic, comparisons, parts of values, LIKE.

An unexpected None raises TypeError, as null in ksqlDB: the expression has no value.
"""

import math
import re
from collections.abc import Callable
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    Clamped,
    Context,
    Decimal,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
)
from functools import lru_cache

from broker.linear_patterns import Pattern, compile_pattern
from sql.datatypes import DecimalType

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
BIGINT_MIN, BIGINT_MAX = -(2**63), 2**63 - 1
# Divisions without an end would fill the memory before they fail.
DIGITS_MAX = 10_000
LIKE_PATTERNS_MAX = 1024

# Bytes are compared as signed numbers, as in Java.
SIGNED_BYTES = bytes(each ^ 0x80 for each in range(256))


def wrap_int(number: int) -> int:
    """The lowest 32 bits, as a signed number."""
    return ((number + 2**31) & 0xFFFF_FFFF) - 2**31


def wrap_bigint(number: int) -> int:
    """The lowest 64 bits, as a signed number."""
    return ((number + 2**63) & 0xFFFF_FFFF_FFFF_FFFF) - 2**63


def divide_whole(left: int, right: int) -> int:
    """Integer division that rounds towards zero."""
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) is (right < 0) else -quotient


def remainder_whole(left: int, right: int) -> int:
    """The remainder, with the sign of the left number."""
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def divide_by_zero(left: float, right: float) -> float:
    """The result of dividing a double by zero, depending on the sign of the zero."""
    if right != 0:
        return left / right
    if left == 0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def remainder_double(left: float, right: float) -> float:
    """Java's % for doubles; NaN if it is undefined."""
    try:
        return math.fmod(left, right)
    except ValueError:
        return math.nan


def exact_context(type_: DecimalType) -> Context:
    """A context with the digits of a type, which raises if they are not enough."""
    return Context(
        prec=min(type_.precision, DIGITS_MAX),
        Emax=MAX_EMAX,
        Emin=MIN_EMIN,
        traps=[Clamped, DivisionByZero, Inexact, InvalidOperation, Overflow],
    )


def decimal_division(type_: DecimalType) -> Callable[[Decimal, Decimal], Decimal]:
    """left / right; raises if it is not exactly a number of the type."""
    context, unit = exact_context(type_), Decimal((0, (1,), -type_.scale))
    divide, quantize = context.divide, context.quantize

    def divided(left: Decimal, right: Decimal) -> Decimal:
        found = quantize(divide(left, right), unit)
        return found if found else found.copy_abs()

    return divided


def decimal_remainder(
    left_type: DecimalType, right_type: DecimalType
) -> Callable[[Decimal, Decimal], Decimal]:
    """left % right, with the sign of the left number."""
    # The integer quotient, which is computed internally, has the most digits.
    digits = left_type.precision + right_type.precision + max(left_type.scale, right_type.scale)
    remainder = exact_context(DecimalType(digits, 0)).remainder

    def rest(left: Decimal, right: Decimal) -> Decimal:
        found = remainder(left, right)
        return found if found else found.copy_abs()

    return rest


def decimal_of_double(number: float) -> Decimal:
    """The decimal number of a double's shortest digits."""
    if not math.isfinite(number):
        raise ValueError(f"{number} is not a decimal number")
    return Decimal(repr(number))


def distinct_doubles(left: float | None, right: float | None) -> bool:
    """IS DISTINCT FROM; NaN is only distinct from null, as comparisons with it are false."""
    if left is None or right is None:
        return left is not right
    return left < right or left > right


def distinct_decimals(left: float | Decimal | None, right: float | Decimal | None) -> bool:
    """IS DISTINCT FROM of a double and a decimal."""
    if left is None or right is None:
        return left is not right
    left = decimal_of_double(left) if isinstance(left, float) else left
    right = decimal_of_double(right) if isinstance(right, float) else right
    return left != right


def among(value: object, choices: tuple[object, ...]) -> bool:
    """value IN choices; false for null."""
    return value is not None and value in choices


def text_before(left: str, right: str) -> bool:
    """Whether a string precedes another in UTF-16 order, as in Java."""
    if left.isascii() or right.isascii():
        return left < right
    return _utf16(left) < _utf16(right)


def text_not_after(left: str, right: str) -> bool:
    """Whether a string precedes another or is equal."""
    return left == right or text_before(left, right)


def _utf16(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")


def bytes_before(left: bytes, right: bytes) -> bool:
    """Whether bytes precede other bytes."""
    return left.translate(SIGNED_BYTES) < right.translate(SIGNED_BYTES)


def bytes_not_after(left: bytes, right: bytes) -> bool:
    """Whether bytes precede other bytes or are equal."""
    return left.translate(SIGNED_BYTES) <= right.translate(SIGNED_BYTES)


def joined_texts(left: str | None, right: str | None) -> str:
    """left + right; null becomes the string that Java prints for it."""
    return ("null" if left is None else left) + ("null" if right is None else right)


def element(array: list[object], index: int) -> object:
    """An element, counted from 1, or from the end if negative; None if there is none."""
    place = index - 1 if index >= 0 else len(array) + index
    return array[place] if 0 <= place < len(array) else None


def null_condition() -> bool:
    """NULL where a condition must be true or false: raises."""
    raise TypeError("NULL is neither true nor false")


@lru_cache(LIKE_PATTERNS_MAX)
def like_pattern(pattern: str, escape: str | None) -> Pattern:
    """A pattern of LIKE as a regular expression: % is any string, _ any character."""
    parts, escaped = [], False
    for character in pattern:
        if escaped:
            parts.append(re.escape(character))
            escaped = False
        elif character == escape:
            escaped = True
        elif character == "%":
            parts.append(".*")
        elif character == "_":
            parts.append(".")
        else:
            parts.append(re.escape(character))
    if escaped:
        raise ValueError("LIKE pattern must not end with escape character")
    return compile_pattern("".join(parts), re.DOTALL)


def like(text: str, pattern: str, escape: str | None) -> bool:
    """text LIKE pattern ESCAPE escape."""
    if pattern is None:
        raise TypeError("the pattern of LIKE is NULL")
    return like_pattern(pattern, escape).fullmatch(text) is not None
