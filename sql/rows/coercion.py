"""The written types that columns accept, as in ksqlDB's translation of Connect's values.

    column              written
    INT                 INT, DATE, TIME
    BIGINT              the same, BIGINT, TIMESTAMP
    DOUBLE              DOUBLE
    STRING              STRING, BOOLEAN, and all numbers but DECIMAL
    DECIMAL             DECIMAL, if no digit is lost
    TIME, DATE          themselves, INT
    TIMESTAMP           itself, BIGINT
    BOOLEAN, BYTES      themselves

Compound types are handled by the formats.
"""

from collections.abc import Callable
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal

from broker.errors import SerdeError
from broker.java.number_text import double_text
from sql.datatypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    STRING,
    TIME,
    TIMESTAMP,
    DataType,
    DecimalType,
)
from sql.numeric_types import fit_decimal

# A function of values that are not null; None if values are not changed.
Convert = Callable[..., object]

_SAME: dict[DataType, frozenset[DataType]] = {
    INT: frozenset({DATE, TIME}),
    BIGINT: frozenset({INT, DATE, TIME, TIMESTAMP}),
    TIME: frozenset({INT}),
    DATE: frozenset({INT}),
    TIMESTAMP: frozenset({BIGINT}),
}
_WHOLE = frozenset({INT, BIGINT, DATE, TIME, TIMESTAMP})
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)


def mismatch(written: object, wanted: object, path: str) -> SerdeError:
    """The error for values that a column does not accept."""
    return SerdeError(
        f'cannot read {written} as {wanted} for column "{path}"',
        hint="declare the column with the type that its schema has",
    )


def coercion(written: DataType, wanted: DataType, path: str) -> Convert | None:
    """The conversion of values of one scalar type to another; SerdeError if there is none."""
    if written == wanted or written in _SAME.get(wanted, ()):
        return None
    if wanted is STRING:
        if written in _WHOLE:
            return str
        if written is DOUBLE:
            return double_text
        if written is BOOLEAN:
            return _boolean_text
    if isinstance(written, DecimalType) and isinstance(wanted, DecimalType):
        return lambda value: fit_decimal(value, wanted)
    raise mismatch(written, wanted, path)


def unscaled(value: Decimal, wanted: DecimalType) -> int:
    """All digits of a decimal as an integer; ValueError if they do not fit the type."""
    return int(_EXACT.scaleb(fit_decimal(value, wanted), wanted.scale))


def scaled(number: int, scale: int) -> Decimal:
    """The decimal with these digits, of which `scale` are after the point."""
    return _EXACT.scaleb(Decimal(number), -scale)


def two_complement(number: int) -> bytes:
    """An integer as the shortest big-endian bytes, as Java's BigInteger writes it."""
    length = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return number.to_bytes(length, "big", signed=True)


def _boolean_text(value: bool) -> str:
    return "true" if value else "false"
