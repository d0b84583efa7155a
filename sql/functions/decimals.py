"""Decimals of any length, computed exactly and with Java's scales."""

from decimal import (
    MAX_EMAX,
    MAX_PREC,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_DOWN,
    ROUND_HALF_UP,
    Context,
    Decimal,
)

from sql.datatypes import DataType, DecimalType
from sql.errors import StatementFailed


def _exact(rounding: str) -> Context:
    return Context(prec=MAX_PREC, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN)


# Contexts that quantize without a limit of digits.
TO_ZERO = _exact(ROUND_DOWN)
HALF_AWAY_FROM_ZERO = _exact(ROUND_HALF_UP)
HALF_TO_ZERO = _exact(ROUND_HALF_DOWN)
_UP = _exact(ROUND_CEILING)
_DOWN = _exact(ROUND_FLOOR)

_UNITS = {places: Decimal((0, (1,), -places)) for places in range(-64, 65)}


def rounded(number: Decimal, places: int, rounding: Context) -> Decimal:
    """Round to a number of decimal places, which may be negative. Zero has no sign."""
    unit = _UNITS.get(places) or Decimal((0, (1,), -places))
    found = rounding.quantize(number, unit)
    return found if found else found.copy_abs()


def same_scale(number: Decimal, places: int, rounding: Context) -> Decimal:
    """Round a number, but keep its scale."""
    if places not in _UNITS:
        exponent = number.as_tuple().exponent
        assert isinstance(exponent, int), "no column holds NaN or Infinity"
        if places >= -exponent:
            return number
        # A place beyond all digits gives the same result as the first one.
        places = max(places, min(0, -number.adjusted() - 2))
    found = rounding.quantize(rounded(number, places, rounding), number)
    return found if found else found.copy_abs()


def half_up(number: Decimal) -> Context:
    """The context that rounds halves up, like Math.round."""
    return HALF_TO_ZERO if number.is_signed() else HALF_AWAY_FROM_ZERO


def ceiling(number: Decimal) -> Decimal:
    """The smallest integer that is not less, with the same scale."""
    return same_scale(number, 0, _UP)


def floor(number: Decimal) -> Decimal:
    return same_scale(number, 0, _DOWN)


def whole_type(types: tuple[DataType, ...]) -> DataType:
    """The type of a decimal with scale 0."""
    given = types[0]
    assert isinstance(given, DecimalType), f"{given} is not a decimal"
    if given.precision == given.scale:
        raise StatementFailed("DECIMAL precision must be >= 1: DECIMAL(0,0)")
    return DecimalType(given.precision - given.scale, 0)


def first_type(types: tuple[DataType, ...]) -> DataType:
    """The type of the first argument."""
    return types[0]
