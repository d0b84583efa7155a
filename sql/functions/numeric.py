"""Functions of numbers: rounding, powers, angles, distances on the globe."""

import math
from collections.abc import Callable
from decimal import Decimal

from broker.machine import Machine
from sql.functions.decimals import (
    TO_ZERO,
    ceiling,
    first_type,
    floor,
    half_up,
    rounded,
    same_scale,
    whole_type,
)
from sql.functions.registry import Family, Implementation

numeric = Family("MATHEMATICAL")

_INFINITY = math.inf
_LONG_MIN, _LONG_MAX = -(2**63), 2**63 - 1
_INT_MIN = -(2**31)
_EARTH_KM, _EARTH_MILES = 6371, 3959
_RADIUS = {
    **dict.fromkeys(("mi", "mile", "miles"), _EARTH_MILES),
    **dict.fromkeys(("km", "kilometer", "kilometers", "kilometre", "kilometres"), _EARTH_KM),
}


@numeric.scalar("Abs(number INT) -> INT", "The absolute value of a number.")
def abs_int(number: int) -> int:
    """The smallest INT has no positive counterpart: it is returned, as in Java."""
    return abs(number) if number != _INT_MIN else number


@numeric.scalar("Abs(number BIGINT) -> BIGINT")
def abs_bigint(number: int) -> int:
    return abs(number) if number != _LONG_MIN else number


@numeric.scalar("Abs(number DECIMAL) -> DECIMAL", result_type=first_type)
def abs_decimal(number: Decimal) -> Decimal:
    """Without the rounding of abs()."""
    return number.copy_abs()


numeric.scalar("Abs(number DOUBLE) -> DOUBLE")(abs)


@numeric.scalar("Ceil(number INT) -> INT", "The smallest integer that is not less than a number.")
@numeric.scalar("Ceil(number BIGINT) -> BIGINT")
@numeric.scalar(
    "Floor(number INT) -> INT", "The largest integer that is not greater than a number."
)
@numeric.scalar("Floor(number BIGINT) -> BIGINT")
@numeric.scalar("Round(number INT) -> BIGINT")
@numeric.scalar("Round(number BIGINT) -> BIGINT")
@numeric.scalar("trunc(number INT) -> BIGINT")
@numeric.scalar("trunc(number BIGINT) -> BIGINT")
def whole(number: int) -> int:
    """Integers are not changed."""
    return number


@numeric.scalar("Ceil(number DOUBLE) -> DOUBLE")
def ceil_double(number: float) -> float:
    """Large, infinite and undefined numbers are returned; the sign of zero is kept."""
    if not math.isfinite(number):
        return number
    return math.copysign(float(math.ceil(number)), number)


@numeric.scalar("Floor(number DOUBLE) -> DOUBLE")
def floor_double(number: float) -> float:
    if not math.isfinite(number):
        return number
    return math.copysign(float(math.floor(number)), number)


numeric.scalar("Ceil(number DECIMAL) -> DECIMAL", result_type=first_type)(ceiling)
numeric.scalar("Floor(number DECIMAL) -> DECIMAL", result_type=first_type)(floor)


def _long(number: float) -> int:
    """Java's conversion of a double: the nearest BIGINT, 0 for NaN."""
    if number != number:
        return 0
    if abs(number) >= 2**63:
        return _LONG_MAX if number > 0 else _LONG_MIN
    return int(number)


@numeric.scalar(
    "Round(number DOUBLE) -> BIGINT",
    "Rounds to a number of decimal places, by default 0. Halves are rounded up.",
)
def round_double(number: float) -> int:
    """Like Math.round: -1.5 becomes -1."""
    if number != number or abs(number) >= 2**52:
        return _long(number)
    below = math.floor(number)
    return below + (number - below >= 0.5)


def _digits(number: float) -> Decimal:
    if not math.isfinite(number):
        raise ValueError("NaN and Infinity cannot be rounded to places")
    return Decimal(repr(number))


@numeric.scalar("Round(number DOUBLE, places INT) -> DOUBLE")
def round_double_places(number: float, places: int) -> float:
    """Rounds the printed digits, not the binary value."""
    exact = _digits(number)
    return float(same_scale(exact, places, half_up(exact))) + 0.0


@numeric.scalar("Round(number DECIMAL) -> DECIMAL", result_type=whole_type)
def round_decimal(number: Decimal) -> Decimal:
    """The result has scale 0."""
    return rounded(number, 0, half_up(number))


@numeric.scalar("Round(number DECIMAL, places INT) -> DECIMAL", result_type=first_type)
def round_decimal_places(number: Decimal, places: int) -> Decimal:
    """The result has the same scale."""
    return same_scale(number, places, half_up(number))


numeric.scalar(
    "trunc(number DOUBLE) -> BIGINT",
    "Truncates to a number of decimal places, by default 0.",
)(_long)


@numeric.scalar("trunc(number DOUBLE, places INT) -> DOUBLE")
def trunc_double_places(number: float, places: int) -> float:
    """Truncates the printed digits."""
    return float(same_scale(_digits(number), places, TO_ZERO)) + 0.0


@numeric.scalar("trunc(number DECIMAL) -> DECIMAL", result_type=whole_type)
def trunc_decimal(number: Decimal) -> Decimal:
    """The result has scale 0."""
    return rounded(number, 0, TO_ZERO)


@numeric.scalar("trunc(number DECIMAL, places INT) -> DECIMAL", result_type=first_type)
def trunc_decimal_places(number: Decimal, places: int) -> Decimal:
    """The result has the same scale."""
    return same_scale(number, places, TO_ZERO)


@numeric.scalar(
    "sign(value INT) -> INT", "-1, 0 or 1 for a negative value, zero or a positive value."
)
@numeric.scalar("sign(value BIGINT) -> INT")
@numeric.scalar("sign(value DOUBLE) -> INT")
def sign(value: float) -> int:
    """0 for NaN."""
    return (value > 0) - (value < 0)


def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return _INFINITY


def _ln(value: float) -> float:
    if value > 0:
        return math.log(value)
    return -_INFINITY if value == 0 else math.nan


def _angle(function: Callable[[float], float]) -> Callable[[float], float]:
    """A function of an angle; NaN for infinity."""

    def of_angle(value: float) -> float:
        return function(value) if math.isfinite(value) else math.nan

    return of_angle


def _cot(value: float) -> float:
    if not math.isfinite(value):
        return math.nan
    sine = math.sin(value)
    return math.cos(value) / sine if sine else math.copysign(_INFINITY, sine)


def _sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(_INFINITY, value)


def _cosh(value: float) -> float:
    try:
        return math.cosh(value)
    except OverflowError:
        return _INFINITY


def _arc(function: Callable[[float], float]) -> Callable[[float], float]:
    """A function of a ratio; NaN outside of [-1, 1]."""

    def of_ratio(value: float) -> float:
        return function(value) if -1 <= value <= 1 else math.nan

    return of_ratio


_OF_ONE_NUMBER: dict[str, tuple[Callable[[float], float], str]] = {
    "sqrt": (_sqrt, "The square root of a value; NaN if it is negative."),
    "cbrt": (math.cbrt, "The cube root of a value."),
    "exp": (_exp, "e to the power of a value."),
    "ln": (_ln, "The natural logarithm of a value; -Infinity for zero, NaN if it is negative."),
    "log": (_ln, "The logarithm of a value to a base; without a base, the natural logarithm."),
    "sin": (_angle(math.sin), "The sine of an angle in radians."),
    "cos": (_angle(math.cos), "The cosine of an angle in radians."),
    "tan": (_angle(math.tan), "The tangent of an angle in radians."),
    "cot": (_cot, "The cotangent of an angle in radians; Infinity for zero."),
    "sinh": (_sinh, "The hyperbolic sine of a value."),
    "cosh": (_cosh, "The hyperbolic cosine of a value."),
    "tanh": (math.tanh, "The hyperbolic tangent of a value."),
    "asin": (_arc(math.asin), "The arc sine of a value, in radians; NaN outside of -1 to 1."),
    "acos": (_arc(math.acos), "The arc cosine of a value, in radians; NaN outside of -1 to 1."),
    "atan": (math.atan, "The arc tangent of a value, in radians."),
    "degrees": (math.degrees, "Converts radians to degrees."),
    "radians": (math.radians, "Converts degrees to radians."),
}
for _name, (_function, _description) in _OF_ONE_NUMBER.items():
    for _type in ("INT", "BIGINT", "DOUBLE"):
        numeric.scalar(f"{_name}(value {_type}) -> DOUBLE", _description)(_function)


# Functions of two numbers have one overload, so that a call may mix INT and BIGINT.
@numeric.scalar("log(base DOUBLE, value DOUBLE) -> DOUBLE")
def log_of_base(base: float, value: float) -> float:
    """NaN for an invalid base."""
    if base <= 0 or base == 1:
        return math.nan
    found = _ln(value)
    return found / _ln(base) if found == found else found


@numeric.scalar(
    "power(base DOUBLE, exponent DOUBLE) -> DOUBLE", "A base raised to the power of an exponent."
)
def power(base: float, exponent: float) -> float:
    """Like Math.pow: a result that is not finite is Infinity or NaN."""
    if abs(base) == 1 and (math.isinf(exponent) or exponent != exponent):
        return math.nan
    odd = math.isfinite(exponent) and exponent % 2 == 1
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -_INFINITY if base < 0 and odd else _INFINITY
    except ValueError:
        if base != 0:
            return math.nan
        return math.copysign(_INFINITY, base) if odd else _INFINITY


numeric.scalar(
    "atan2(y DOUBLE, x DOUBLE) -> DOUBLE", "The angle in radians of the point x, y from the origin."
)(math.atan2)


@numeric.scalar("pi() -> DOUBLE", "The constant pi.")
def pi() -> float:
    return math.pi


@numeric.machine_scalar(
    "Random() -> DOUBLE", "A random number from 0 (inclusive) to 1 (exclusive).", volatile=True
)
def random_number(machine: Machine) -> Implementation:
    return machine.random.random


@numeric.scalar(
    "geo_distance(lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE) -> DOUBLE",
    "The great-circle distance between two points, given in degrees.",
)
def geo_distance(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """In kilometres."""
    return _arc_length(lat1, lon1, lat2, lon2) * _EARTH_KM


@numeric.scalar(
    "geo_distance(lat1 DOUBLE, lon1 DOUBLE, lat2 DOUBLE, lon2 DOUBLE, units STRING) -> DOUBLE",
    nulls=True,
)
def geo_distance_in(
    lat1: float, lon1: float, lat2: float, lon2: float, units: str | None
) -> float | None:
    """In kilometres or miles; the default is kilometres."""
    if lat1 is None or lon1 is None or lat2 is None or lon2 is None:
        return None
    name = units.strip().lower() if units is not None else ""
    radius = _RADIUS.get(name or "km")
    if radius is None:
        raise ValueError(f"GEO_DISTANCE has no unit '{units}': use one of {', '.join(_RADIUS)}")
    return _arc_length(lat1, lon1, lat2, lon2) * radius


def _arc_length(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """The haversine formula, for a globe of radius 1."""
    if abs(lat1) > 90 or abs(lat2) > 90:
        raise ValueError("latitudes of GEO_DISTANCE must be between -90 and 90 degrees")
    if abs(lon1) > 180 or abs(lon2) > 180:
        raise ValueError("longitudes of GEO_DISTANCE must be between -180 and 180 degrees")
    height = math.sin(math.radians(lat2 - lat1) / 2) ** 2
    width = math.sin(math.radians(lon2 - lon1) / 2) ** 2
    both = height + width * math.cos(math.radians(lat1)) * math.cos(math.radians(lat2))
    return 2 * math.asin(math.sqrt(min(both, 1.0)))
