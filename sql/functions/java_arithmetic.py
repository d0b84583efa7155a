"""Sums that overflow as in Java."""

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

from sql.datatypes import BIGINT, DOUBLE, INT, DataType, DecimalType
from sql.errors import RecordFailed

# Any: both are values of one numeric type.
Operation = Callable[[Any, Any], Any]


def wrap_int(number: int) -> int:
    """The number as an INT, with overflow."""
    return number if -(2**31) <= number < 2**31 else (number + 2**31) % 2**32 - 2**31


def wrap_bigint(number: int) -> int:
    """The number as a BIGINT, with overflow."""
    return number if -(2**63) <= number < 2**63 else (number + 2**63) % 2**64 - 2**63


def add_ints(left: int, right: int) -> int:
    total = left + right
    return total if -(2**31) <= total < 2**31 else wrap_int(total)


def subtract_ints(left: int, right: int) -> int:
    return wrap_int(left - right)


def add_bigints(left: int, right: int) -> int:
    total = left + right
    return total if -(2**63) <= total < 2**63 else wrap_bigint(total)


def subtract_bigints(left: int, right: int) -> int:
    return wrap_bigint(left - right)


def add_doubles(left: float, right: float) -> float:
    return left + right


def subtract_doubles(left: float, right: float) -> float:
    return left - right


def _decimals(type_: DecimalType) -> tuple[Operation, Operation]:
    # One more digit than the type, to detect overflows.
    context = Context(prec=type_.precision + 1)
    whole = type_.precision - type_.scale
    limit = Decimal((0, (1,), whole))
    lower = -limit

    def fit(total: Decimal) -> Decimal:
        if lower < total < limit:
            return total
        raise RecordFailed(
            f"Numeric field overflow: A field with precision {type_.precision} and scale "
            f"{type_.scale} must round to an absolute value less than 10^{whole}. Got {total:f}"
        )

    def add(left: Decimal, right: Decimal) -> Decimal:
        return fit(context.add(left, right))

    def subtract(left: Decimal, right: Decimal) -> Decimal:
        return fit(context.subtract(left, right))

    return add, subtract


def addition(type_: DataType) -> tuple[Operation, Operation]:
    """Functions that add and subtract values of a numeric type."""
    if isinstance(type_, DecimalType):
        return _decimals(type_)
    if type_ is INT:
        return add_ints, subtract_ints
    if type_ is BIGINT:
        return add_bigints, subtract_bigints
    assert type_ is DOUBLE, f"{type_} is not a number"
    return add_doubles, subtract_doubles


def zero(type_: DataType) -> object:
    """Zero, as a value of a numeric type."""
    if isinstance(type_, DecimalType):
        return Decimal((0, (0,), -type_.scale))
    return 0.0 if type_ is DOUBLE else 0
