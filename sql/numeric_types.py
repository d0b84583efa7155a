"""The ranges of numeric types; ValueError if a number does not fit."""

from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    Context,
    Decimal,
    DecimalException,
    Inexact,
    InvalidOperation,
)
from functools import lru_cache

from broker.java.number_text import DECIMAL
from broker.java.times import DAY_MS
from sql.datatypes import BIGINT, DATE, INT, TIME, TIMESTAMP, DecimalType, Primitive

# The smallest and largest values of the integer types.
INTEGER_RANGES: dict[Primitive, tuple[int, int]] = {
    INT: (-(2**31), 2**31 - 1),
    BIGINT: (-(2**63), 2**63 - 1),
    TIME: (0, DAY_MS),
    DATE: (-(2**31), 2**31 - 1),
    TIMESTAMP: (-(2**63), 2**63 - 1),
}


def parse_decimal(text: str, wanted: DecimalType) -> Decimal:
    """Like `new BigDecimal(text)`, converted to the type."""
    if DECIMAL.fullmatch(text) is None:
        raise ValueError("the string is not a number")
    return fit_decimal(Decimal(text), wanted)


@lru_cache(maxsize=1024)
def _exactness(wanted: DecimalType) -> tuple[Decimal, Context]:
    unit = Decimal((0, (1,), -wanted.scale))
    return unit, Context(
        prec=wanted.precision, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation]
    )


def fit_decimal(number: Decimal, wanted: DecimalType) -> Decimal:
    """The number with the type's scale; ValueError if it must be rounded or is too large."""
    unit, context = _exactness(wanted)
    try:
        fitting = number.quantize(unit, context=context)
    except DecimalException as error:
        rounded = isinstance(error, Inexact)
        why = "without rounding" if rounded else "because it is too large"
        raise ValueError(f"the number does not fit {wanted} {why}") from None
    if fitting:
        if fitting != fitting:
            raise ValueError("the string is not a number")
        return fitting
    return fitting.copy_abs()  # Java's decimals have no negative zero
