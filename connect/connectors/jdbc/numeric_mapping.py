"""numeric.mapping: the schemas of NUMERIC columns and the conversion of their values."""

import enum
from collections.abc import Callable
from decimal import Decimal
from typing import Final

from connect.data import FLOAT64, INT8, INT16, INT32, INT64, ConnectSchema, decimal

# The largest precision of integers that fit 64 bits.
_INTEGER_DIGITS_MAX = 18
# The scale of columns that do not define one.
UNLIMITED_SCALE: Final = 127


class NumericMapping(enum.Enum):
    """The values of numeric.mapping."""

    NONE = "none"
    PRECISION_ONLY = "precision_only"
    BEST_FIT = "best_fit"
    BEST_FIT_EAGER_DOUBLE = "best_fit_eager_double"


def numeric_schema(
    mapping: NumericMapping, precision: int | None, scale: int | None
) -> ConnectSchema:
    """The schema of a NUMERIC(precision, scale); None if the column does not define them."""
    if precision is not None and scale is not None:
        fits = precision <= _INTEGER_DIGITS_MAX
        whole = scale == 0 if mapping is NumericMapping.PRECISION_ONLY else scale < 1
        if mapping is not NumericMapping.NONE and whole and fits:
            return _integer_schema(precision)
        is_double = mapping is NumericMapping.BEST_FIT_EAGER_DOUBLE or (
            mapping is NumericMapping.BEST_FIT and fits
        )
        if is_double and scale > 0:
            return FLOAT64
    return decimal(UNLIMITED_SCALE if scale is None else scale)


def _integer_schema(precision: int) -> ConnectSchema:
    for digits_max, schema in ((2, INT8), (4, INT16), (9, INT32)):
        if precision <= digits_max:
            return schema
    return INT64


def numeric_reader(schema: ConnectSchema) -> Callable[[Decimal], object] | None:
    """The conversion of a driver's Decimal to the schema; None if it is the value."""
    if schema.name is None:
        return float if schema is FLOAT64 else int
    assert schema.parameters is not None
    if schema.parameters["scale"] == str(UNLIMITED_SCALE):
        return _with_unlimited_scale
    return None


def _with_unlimited_scale(value: Decimal) -> Decimal:
    return with_scale(value, UNLIMITED_SCALE)


def with_scale(value: Decimal, scale: int) -> Decimal:
    """The same number with exactly this scale."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "infinity and NaN have no schema"
    missing = exponent + scale
    if missing >= 0:
        return Decimal((sign, digits + (0,) * missing, -scale))
    return round(value, scale)
