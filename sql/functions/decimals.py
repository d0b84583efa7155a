"""Decimals of any length: calculated exactly, with Java's idea of scales."""

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

EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def rounded(number: Decimal, places: int, rounding: str) -> Decimal:
    """The number with so many digits behind the point; they may be negative. Zero has no sign."""
    found = number.quantize(Decimal((0, (1,), -places)), rounding=rounding, context=EXACT)
    return found if found else found.copy_abs()


def scale_of(number: Decimal) -> int:
    """How many digits it has behind the point."""
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), "no column holds NaN or Infinity"
    return -exponent


def same_scale(number: Decimal, places: int, rounding: str) -> Decimal:
    """The number rounded, but still with as many digits behind the point as before."""
    scale = scale_of(number)
    if places >= scale:
        return number
    # Beyond all of its digits there is nothing left to be found.
    places = max(places, min(0, -number.adjusted() - 2))
    return rounded(rounded(number, places, rounding), scale, ROUND_DOWN)


def half_up(number: Decimal) -> str:
    """The rounding of halves to the larger number, as Math.round does."""
    return ROUND_HALF_UP if number > 0 else ROUND_HALF_DOWN


def ceiling(number: Decimal) -> Decimal:
    """The next whole number, with the same scale."""
    return same_scale(number, 0, ROUND_CEILING)


def floor(number: Decimal) -> Decimal:
    """The whole number before, with the same scale."""
    return same_scale(number, 0, ROUND_FLOOR)


def whole_type(types: tuple[DataType, ...]) -> DataType:
    """The type of a decimal without its digits behind the point."""
    given = types[0]
    assert isinstance(given, DecimalType), f"{given} is no decimal"
    if given.precision == given.scale:
        raise StatementFailed("DECIMAL precision must be >= 1: DECIMAL(0,0)")
    return DecimalType(given.precision - given.scale, 0)


def first_type(types: tuple[DataType, ...]) -> DataType:
    """The type of the first argument."""
    return types[0]
